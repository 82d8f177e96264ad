"""Counters that all proxies share, in memory."""

from swift.cluster.memcache import MemcacheError


class Counters:
    """memcached's counters."""

    def __init__(self):
        self.values = {}
        self.broken = False

    def get(self, key, default=None, *, raise_on_error=False):
        return default

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        if key.startswith("ratelimit"):
            self.values[key] = value

    def incr(self, key, delta=1, *, ttl_s=0):
        if self.broken:
            raise MemcacheError("away")
        self.values[key] = max(0, self.values.get(key, 0) + delta)
        return self.values[key]
