"""Error limiting: which nodes to leave alone for a while (spec: proxy.md §7)."""

from __future__ import annotations

from swift.base.clock import Clock
from swift.ring.device import Device
from swift.telemetry.statsd import Statsd


class ErrorLimiter:
    """Counts errors per node (``ip:port/device``) in this process.

    A node with more than ``limit`` errors is limited until ``interval_s`` after its last error.
    """

    def __init__(
        self, clock: Clock, *, limit: int = 10, interval_s: float = 60.0, statsd: Statsd | None = None
    ):
        self._clock = clock
        self._limit = limit
        self._interval_s = interval_s
        self._statsd = statsd
        self._errors: dict[str, tuple[int, float]] = {}

    def is_limited(self, node: Device) -> bool:
        """Whether to skip the node now."""
        if not self._errors:
            return False
        state = self._errors.get(node.key)
        if state is None:
            return False
        count, last = state
        if self._clock.monotonic() - last >= self._interval_s:
            del self._errors[node.key]
            return False
        limited = count > self._limit
        if limited:
            self._count("is_limited")
        return limited

    def failed(self, node: Device) -> bool:
        """Count an error; True when the node is limited from now on."""
        count = self._errors.get(node.key, (0, 0.0))[0] + 1
        self._errors[node.key] = (count, self._clock.monotonic())
        if count == self._limit + 1:
            self._count("incremented_limit")
        return count > self._limit

    def limit(self, node: Device) -> None:
        """Limit a node at once, as its 507 asks for."""
        self._errors[node.key] = (self._limit + 1, self._clock.monotonic())
        self._count("forced_limit")

    def _count(self, name: str) -> None:
        if self._statsd is not None:
            self._statsd.increment(f"error_limiter.{name}")

    def __repr__(self) -> str:
        return f"<ErrorLimiter {len(self._errors)} nodes with errors>"
