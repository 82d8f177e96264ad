"""Which nodes to leave alone for a while, and when to try them again (spec: proxy.md §7).

An *avoided* node is never a missing one: whoever hands out nodes (``cluster.placement``) gives it last, and a
success there, however it came about, ends its avoidance. Besides, one request at a time is sent to it as a
*probe*: a second after it was avoided, then after two, four and so on, up to the configured interval. So a
server that was restarted is back within a second or two, and one that hangs costs few requests their time.

A *silent* node (``cluster.silence``) is treated like an avoided one, but that no client's request is its
probe: the timeout would be the client's. ``on_doubt`` is told to ask it by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swift.base.clock import Clock
from swift.cluster.silence import Question, Silence
from swift.cluster.transport import Destination
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
        #: Called with a node that may be silent and what to ask it; must not wait. Answers go to ``heard``.
        self.on_doubt: Callable[[Destination, Question], None] | None = None
        self._statsd = statsd
        self._records: dict[str, _Record] = {}
        self._silence = Silence(clock, patience_s)

    def asked(self, node: Destination, now: float, question: Question) -> None:
        """A request was sent to the node at ``now`` of the monotonic clock, about what a probe may ask."""
        self._silence.asked(node.key, now, question)

    def heard(self, node: Destination) -> None:
        """The node answered something, whatever it was."""
        self._silence.heard(node.key)

    def is_silent(self, node: Destination) -> bool:
        """Whether the node answers nobody."""
        return self._silence.is_silent(node.key)

    def is_limited(self, node: Destination) -> bool:
        """Whether the node is avoided."""
        record = self._records.get(node.key) if self._records else None
        return record is not None and record.pause_s > 0

    def is_slow(self, node: Destination) -> bool:
        """Whether asking the node may cost a timeout: its last error was one, or it is silent."""
        record = self._records.get(node.key)
        return (record is not None and record.slow) or self.is_silent(node)

    def admits(self, node: Destination) -> bool:
        """Whether to use the node now: neither silent nor avoided, or this request shall be its probe."""
        if self._silence and self.is_silent(node):
            self._count("is_silent")
            self.doubt(node)
            return False
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

    def doubt(self, node: Destination) -> None:
        """Have the node asked whether it answers anybody, if it has not for a while."""
        question = self._silence.question(node.key)
        if self.on_doubt is not None and question is not None and self._silence.is_due(node.key):
            self.on_doubt(node, question)

    def succeeded(self, node: Destination) -> None:
        """The node gave a proper answer: it is not avoided any more."""
        self.heard(node)
        if self._records:
            record = self._records.get(node.key)
            if record is not None and record.pause_s:
                del self._records[node.key]

    def failed(self, node: Destination, *, slow: bool = False) -> bool:
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

    def limit(self, node: Destination) -> None:
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
