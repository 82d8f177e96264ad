"""A memcached in memory that can be away."""

from swift.cluster.memcache import MemcacheError


class SharedCache:
    """What ``gateway.infocache.Cache`` promises, without time."""

    def __init__(self):
        self.values = {}
        self.is_away = False

    def get(self, key, default=None, *, raise_on_error=False):
        if self.is_away:
            if raise_on_error:
                raise MemcacheError("away")
            return default
        return self.values.get(key, default)

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        if self.is_away:
            if raise_on_error:
                raise MemcacheError("away")
            return
        self.values[key] = value

    def delete(self, key, *, server_key=None):
        self.values.pop(key, None)

    def incr(self, key, delta=1, *, ttl_s=0):
        if self.is_away:
            raise MemcacheError("away")
        self.values[key] = max(0, self.values.get(key, 0) + delta)
        return self.values[key]
