"""Which nodes to leave alone for a while, and when to try them again (spec: proxy.md §7).

An *avoided* node is never a missing one: whoever hands out nodes (``cluster.placement``) gives it last, and a
success there, however it came about, ends its avoidance. Besides, one request at a time is sent to it as a
*probe*: a second after it was avoided, then after two, four and so on, up to the configured interval. So a
server that was restarted is back within a second or two, and one that hangs costs few requests their time.

A node is *silent* while nothing it was asked for ``SILENCE_S`` has been answered, whoever asked it: one that
is stopped or cut off, but takes connections, would otherwise cost every request a timeout until enough of
them have failed. A busy node answers something now and then and is not silent. A silent one is treated like
an avoided one, with a probe each second.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.clock import Clock
from swift.ring.device import Device
from swift.telemetry.statsd import Statsd

#: Pause before the first probe; a server's restart takes about as long.
FIRST_PAUSE_S = 1.0
#: A node that answers nobody for so long is silent; a disk that seeks is slower than one second now and then.
SILENCE_S = 2.0


@dataclass(slots=True)
class _Record:
    """The errors of one node; ``pause_s`` is 0 while it is not avoided."""

    errors: int = 0
    last_error: float = 0.0
    pause_s: float = 0.0
    probe_at: float = 0.0
    #: A request was sent to find out whether the node works again.
    probing: bool = False
    #: The last error was a timeout.
    slow: bool = False


@dataclass(slots=True)
class _Unheard:
    """What a node was asked, and when, since it last answered."""

    since: float
    last: float
    probe_at: float

    def is_silent(self, now: float, patience_s: float) -> bool:
        """Whether it has been asked long enough; requests given up by now prove nothing about today."""
        return now - self.since > SILENCE_S and now - self.last <= patience_s


class ErrorLimiter:
    """Counts errors per node (``ip:port/device``) in this process and says which nodes to avoid.

    More than ``limit`` errors, none of them ``interval_s`` seconds after the one before, make a node avoided;
    ``interval_s`` is also the longest pause between two probes. No request waits longer than ``patience_s``.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        limit: int = 10,
        interval_s: float = 60.0,
        patience_s: float = 10.0,
        statsd: Statsd | None = None,
    ):
        self._clock = clock
        self._limit = limit
        self._interval_s = interval_s
        self._patience_s = patience_s
        self._statsd = statsd
        self._records: dict[str, _Record] = {}
        self._unheard: dict[str, _Unheard] = {}

    def asked(self, node: Device, now: float) -> None:
        """A request was sent to the node at ``now`` of the monotonic clock."""
        unheard = self._unheard.get(node.key)
        if unheard is None or now - unheard.last > self._patience_s:
            self._unheard[node.key] = _Unheard(now, now, now + SILENCE_S + FIRST_PAUSE_S)
        else:
            unheard.last = now

    def heard(self, node: Device) -> None:
        """The node answered something, whatever it was."""
        self._unheard.pop(node.key, None)

    def _is_silent(self, node: Device, now: float) -> bool:
        unheard = self._unheard.get(node.key)
        return unheard is not None and unheard.is_silent(now, self._patience_s)

    def is_limited(self, node: Device) -> bool:
        """Whether the node is avoided."""
        record = self._records.get(node.key) if self._records else None
        return record is not None and record.pause_s > 0

    def is_slow(self, node: Device) -> bool:
        """Whether asking the node may cost a timeout: its last error was one, or it is silent."""
        record = self._records.get(node.key)
        return (record is not None and record.slow) or self._is_silent(node, self._clock.monotonic())

    def admits(self, node: Device) -> bool:
        """Whether to use the node now: neither avoided nor silent, or this request shall be its probe."""
        record = self._records.get(node.key) if self._records else None
        if record is None or not record.pause_s:
            return node.key not in self._unheard or self._admits_unheard(node)
        now = self._clock.monotonic()
        if now < record.probe_at:
            self._count("is_limited")
            return False
        # The others go on avoiding it until this one knows; should it never know, there will be another.
        record.probing, record.probe_at = True, now + record.pause_s
        return True

    def _admits_unheard(self, node: Device) -> bool:
        now, unheard = self._clock.monotonic(), self._unheard[node.key]
        if not unheard.is_silent(now, self._patience_s):
            return True
        if now < unheard.probe_at:
            self._count("is_silent")
            return False
        unheard.probe_at = now + FIRST_PAUSE_S
        return True

    def succeeded(self, node: Device) -> None:
        """The node gave a proper answer: it is not avoided any more."""
        self.heard(node)
        if self._records:
            record = self._records.get(node.key)
            if record is not None and record.pause_s:
                del self._records[node.key]

    def failed(self, node: Device, *, slow: bool = False) -> bool:
        """Count an error, a timeout if ``slow``; True when the node is avoided from now on."""
        if not slow:
            self.heard(node)
        now = self._clock.monotonic()
        record = self._records.get(node.key)
        if record is None:
            record = self._records[node.key] = _Record()
        record.slow = slow
        if record.pause_s:
            if record.probing:
                self._avoid(record, min(2 * record.pause_s, self._interval_s), now)
            return False
        if now - record.last_error >= self._interval_s:
            record.errors = 0
        record.errors += 1
        record.last_error = now
        if record.errors <= self._limit:
            return False
        self._avoid(record, min(FIRST_PAUSE_S, self._interval_s), now)
        self._count("incremented_limit")
        return True

    def limit(self, node: Device) -> None:
        """Avoid a node at once and for the whole interval, as its 507 asks for."""
        self.heard(node)
        record = self._records.setdefault(node.key, _Record())
        record.slow = False
        self._avoid(record, self._interval_s, self._clock.monotonic())
        self._count("forced_limit")

    @staticmethod
    def _avoid(record: _Record, pause_s: float, now: float) -> None:
        record.pause_s, record.probe_at, record.probing = pause_s, now + pause_s, False

    def _count(self, name: str) -> None:
        if self._statsd is not None:
            self._statsd.increment(f"error_limiter.{name}")

    def __repr__(self) -> str:
        avoided = sorted(key for key, record in self._records.items() if record.pause_s)
        return (
            f"<ErrorLimiter {len(self._records)} nodes with errors, avoided: {', '.join(avoided) or 'none'}>"
        )
