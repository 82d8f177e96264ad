"""Which nodes to leave alone for a while, and when to try them again (spec: proxy.md §7).

An *avoided* node is never a missing one: whoever hands out nodes (``cluster.placement``) gives it last, and a
success there, however it came about, ends its avoidance. Besides, one request at a time is sent to it as a
*probe*: a second after it was avoided, then after two, four and so on, up to the configured interval. So a
server that was restarted is back within a second or two, and one that hangs costs few requests their time.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.clock import Clock
from swift.ring.device import Device
from swift.telemetry.statsd import Statsd

#: Pause before the first probe; a server's restart takes about as long.
FIRST_PAUSE_S = 1.0


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


class ErrorLimiter:
    """Counts errors per node (``ip:port/device``) in this process and says which nodes to avoid.

    More than ``limit`` errors, none of them ``interval_s`` seconds after the one before, make a node avoided;
    ``interval_s`` is also the longest pause between two probes.
    """

    def __init__(
        self, clock: Clock, *, limit: int = 10, interval_s: float = 60.0, statsd: Statsd | None = None
    ):
        self._clock = clock
        self._limit = limit
        self._interval_s = interval_s
        self._statsd = statsd
        self._records: dict[str, _Record] = {}

    def is_limited(self, node: Device) -> bool:
        """Whether the node is avoided."""
        record = self._records.get(node.key) if self._records else None
        return record is not None and record.pause_s > 0

    def is_slow(self, node: Device) -> bool:
        """Whether the node's last error was a timeout, so that asking it may cost another one."""
        record = self._records.get(node.key)
        return record is not None and record.slow

    def admits(self, node: Device) -> bool:
        """Whether to use the node now: it is not avoided, or this request shall be its probe."""
        record = self._records.get(node.key) if self._records else None
        if record is None or not record.pause_s:
            return True
        now = self._clock.monotonic()
        if now < record.probe_at:
            self._count("is_limited")
            return False
        # The others go on avoiding it until this one knows; should it never know, there will be another.
        record.probing, record.probe_at = True, now + record.pause_s
        return True

    def succeeded(self, node: Device) -> None:
        """The node gave a proper answer: it is not avoided any more."""
        if self._records:
            record = self._records.get(node.key)
            if record is not None and record.pause_s:
                del self._records[node.key]

    def failed(self, node: Device, *, slow: bool = False) -> bool:
        """Count an error, a timeout if ``slow``; True when the node is avoided from now on."""
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
