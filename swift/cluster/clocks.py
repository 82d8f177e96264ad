"""Compares the clocks of storage servers with this process's, by the Date header of their responses.

The newest timestamp wins, so clocks that differ make acknowledged writes vanish. Each server is compared
once in ``INTERVAL_S``, at no cost but a look-up for the responses between. A Date has whole seconds, and a
response may have waited: only what exceeds ``TOLERANCE_S`` counts as a difference. It stands alone because
clocks say nothing of a node's health.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from statistics import median

from swift.base.clock import Clock
from swift.telemetry.metrics import Gauge

INTERVAL_S = 60.0
TOLERANCE_S = 2.0
_SECOND_S = 1.0


class ClockComparison:
    """The clocks of the servers that one process sends to."""

    def __init__(self, clock: Clock, warn: Callable[[str], None], gauge: Gauge):
        """Show the median difference, seconds, in ``gauge``; it is positive when this clock is slow."""
        self._clock = clock
        self._warn = warn
        self._gauge = gauge
        #: Device (``ip:port/device``) → when its server is compared next, monotonic seconds.
        self._due_s: dict[str, float] = {}
        #: Server (``ip:port``) → by how much its clock is ahead, seconds.
        self._ahead_s: dict[str, float] = {}

    def compare(self, key: str, date: str) -> None:
        """Compare the clock of a node's server with ours, if that is due; ``date`` is its response's Date."""
        now_s = self._clock.monotonic()
        if now_s < self._due_s.get(key, now_s):
            return
        self._due_s[key] = now_s + INTERVAL_S
        try:
            begin_s = parsedate_to_datetime(date).timestamp() - self._clock.time()
        except ValueError:
            return
        ahead_s = begin_s if begin_s > 0 else min(0.0, begin_s + _SECOND_S)
        server = key.partition("/")[0]
        self._ahead_s[server] = ahead_s
        typical_s = median(self._ahead_s.values())
        self._gauge.set(typical_s)
        if abs(ahead_s) <= TOLERANCE_S:
            return
        count = sum(other * typical_s > TOLERANCE_S * abs(typical_s) for other in self._ahead_s.values())
        if len(self._ahead_s) > 1 and abs(typical_s) > TOLERANCE_S and 2 * count > len(self._ahead_s):
            self._warn(
                f"this server's clock is {_describe_offset(-typical_s)} "
                f"those of {count} of {len(self._ahead_s)} "
                "storage servers; check its time synchronization"
            )
        else:
            self._warn(
                f"the clock of {server} is {_describe_offset(ahead_s)} "
                "this server's; check its time synchronization"
            )

    def __repr__(self) -> str:
        return f"<ClockComparison {self._ahead_s}>"


def _describe_offset(ahead_s: float) -> str:
    return f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"
