"""Rates by the size of containers, and the counter that all proxies share.

A counter is a running time: every request moves it on by the time that a request may take. When it is behind
the clock nothing has to wait; it never falls behind by more than a buffer, so a quiet hour allows no storm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.config.schema import Conf
from swift.gateway.infocache import Cache

#: Ticks by which a counter moves on at most: memcached counts up to 64 bits.
_STEP_MAX = 1 << 53


class TooFast(Exception):
    """The wait would exceed the longest allowed one."""


class SizedRates:
    """Requests a second for containers of so many objects: linear between the sizes that have one."""

    def __init__(self, rates: Mapping[int, float]):
        self.points = sorted(rates.items())

    @classmethod
    def parse(cls, conf: Conf, prefix: str) -> SizedRates:
        """From options ``<prefix><size> = <rate>``; raises ``ConfigError`` naming one."""
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

    def rate_of(self, objects: int) -> float | None:
        """Return the rate for a container with so many objects, None when there is no limit."""
        points = self.points
        if not points or objects < points[0][0]:
            return None
        for (low, low_rate), (high, high_rate) in zip(points, points[1:], strict=False):
            if objects < high:
                return low_rate + (high_rate - low_rate) * (objects - low) / (high - low)
        return points[-1][1]


@dataclass(frozen=True, slots=True)
class Pace:
    """Clock of the counters: ticks a second; the buffer and the longest wait in seconds."""

    accuracy: int
    buffer_s: float
    sleep_max_s: float

    def wait_s(self, cache: Cache, key: str, rate: float, now_s: float) -> float:
        """Seconds that this request has to wait; raises ``TooFast`` and ``MemcacheError``."""
        now = round(now_s * self.accuracy)
        step = max(1, round(min(self.accuracy / rate, _STEP_MAX)))
        running = cache.incr(key, step)
        behind = now - running
        if behind > self.buffer_s * self.accuracy:
            # Set, not moved on: two that come first at the same time would add the time twice.
            cache.set(key, now + step)
            return 0.0
        wait = max(0, running - now - step)
        if wait > self.sleep_max_s * self.accuracy:
            # A rejected request does not use up a slot.
            cache.incr(key, -step)
            raise TooFast
        return wait / self.accuracy
