"""Rates by the size of containers, and the counters that all proxies share in memcached.

A counter is a running clock: every request advances it by the time that one request may take. A request waits
while the counter is ahead of the real clock. The counter never lags by more than a buffer, so that an idle
hour does not allow a burst.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.config.schema import Conf
from swift.gateway.infocache import Cache

#: Largest step of a counter in ticks: memcached counters have 64 bits.
_STEP_MAX = 1 << 53


class WaitTooLong(Exception):
    """The wait would exceed the longest allowed one."""


class RatesBySize:
    """Requests a second by the number of objects in a container, interpolated between configured sizes."""

    def __init__(self, rates: Mapping[int, float]):
        self.points = sorted(rates.items())

    @classmethod
    def parse(cls, conf: Conf, prefix: str) -> RatesBySize:
        """Return the rates of the options ``<prefix><size> = <rate>``; raises ``ConfigError`` naming one."""
        rates: dict[int, float] = {}
        for name, value in conf.items():
            size = name.removeprefix(prefix)
            if size == name or not size.isascii() or not size.isdigit():
                continue
            try:
                rates[int(size)] = float(value)
            except ValueError:
                raise ConfigError(f"option {name} must be a number, not {value!r}")
            if not 0 < rates[int(size)] < float("inf"):
                raise ConfigError(f"option {name} must be more than 0, not {value!r}")
        return cls(rates)

    def get_rate(self, objects: int) -> float | None:
        """Return the rate for a container with so many objects, None without a limit."""
        points = self.points
        if not points or objects < points[0][0]:
            return None
        for (low_size, low_rate), (high_size, high_rate) in zip(points, points[1:], strict=False):
            if objects < high_size:
                return low_rate + (high_rate - low_rate) * (objects - low_size) / (high_size - low_size)
        return points[-1][1]


@dataclass(frozen=True, slots=True)
class RatelimitClock:
    """Settings of the counters: ticks a second, the buffer and the longest wait in seconds."""

    ticks_per_s: int
    buffer_s: float
    sleep_max_s: float

    def advance(self, cache: Cache, key: str, rate: float, now_s: float) -> float:
        """Advance a counter and return the seconds to wait; raises ``WaitTooLong`` and ``MemcacheError``."""
        now = round(now_s * self.ticks_per_s)
        step = max(1, round(min(self.ticks_per_s / rate, _STEP_MAX)))
        counter = cache.incr(key, step)
        lag = now - counter
        if lag > self.buffer_s * self.ticks_per_s:
            # Set the counter instead of adding to it: concurrent first requests would add the time twice.
            cache.set(key, now + step)
            return 0.0
        wait = max(0, counter - now - step)
        if wait > self.sleep_max_s * self.ticks_per_s:
            # A rejected request does not advance the counter.
            cache.incr(key, -step)
            raise WaitTooLong
        return wait / self.ticks_per_s
