"""A local cache in front of memcached, coherent among the workers of one server.

A value read from memcached is used for ``ttl_s`` more seconds without another request, unless a worker of
this machine set or deleted it meanwhile. A small table of generation numbers, in memory that is mapped before
the workers are forked, is incremented at every write. Other machines see a change after at most ``ttl_s``;
zero turns the cache off.

It has the interface of ``cluster.memcache.MemcacheRing``; filters find it in ``swift.cache``.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

SLOTS = 1 << 16
#: Entries held at most; beyond it the cache is cleared, which costs one look-up for each entry.
ENTRIES_MAX = 20_000


class Cache(Protocol):
    """Interface of ``swift.cache`` for filters."""

    def get(self, key: str, default: object = None, *, raise_on_error: bool = False) -> Any: ...

    def set(self, key: str, value: object, *, ttl_s: float = 0, raise_on_error: bool = False) -> None: ...

    def delete(self, key: str, *, server_key: str | None = None) -> None: ...

    def incr(self, key: str, delta: int = 1, *, ttl_s: float = 0) -> int: ...


class LocalCache:
    """Wraps a ``Cache``; construct it before forking workers.

    Values are shared between requests and must not be changed.
    """

    def __init__(self, inner: Any, *, ttl_s: float = 1.0):
        self._inner = inner
        self._ttl_s = ttl_s
        self._generations = memoryview(mmap.mmap(-1, SLOTS * 4)).cast("I")
        self._entries: dict[str, tuple[float, int, Any]] = {}

    def get(self, key: str, default: object = None, *, raise_on_error: bool = False) -> Any:
        """Return the value of a key; see ``MemcacheRing.get``."""
        slot = hash(key) & (SLOTS - 1)
        generation = self._generations[slot]
        now = time.monotonic()
        entry = self._entries.get(key)
        if entry is not None and entry[0] > now and entry[1] == generation:
            return entry[2]
        value = self._inner.get(key, None, raise_on_error=raise_on_error)
        if value is None:
            self._entries.pop(key, None)
            return default
        if len(self._entries) >= ENTRIES_MAX:
            self._entries.clear()
        self._entries[key] = (now + self._ttl_s, generation, value)
        return value

    def set(self, key: str, value: object, *, ttl_s: float = 0, raise_on_error: bool = False) -> None:
        """Store a value in memcached and invalidate it here."""
        self._inner.set(key, value, ttl_s=ttl_s, raise_on_error=raise_on_error)
        self._invalidate(key)

    def delete(self, key: str, *, server_key: str | None = None) -> None:
        """Delete a key here and in memcached."""
        self._inner.delete(key, server_key=server_key)
        self._invalidate(key)

    def _invalidate(self, key: str) -> None:
        slot = hash(key) & (SLOTS - 1)
        self._generations[slot] = (self._generations[slot] + 1) & 0xFFFFFFFF
        self._entries.pop(key, None)

    def incr(self, key: str, delta: int = 1, *, ttl_s: float = 0) -> int:
        """Increment in memcached; counters are not cached here."""
        return int(self._inner.incr(key, delta, ttl_s=ttl_s))

    def decr(self, key: str, delta: int = 1, *, ttl_s: float = 0) -> int:
        """Decrement in memcached; counters are not cached here."""
        return int(self._inner.decr(key, delta, ttl_s=ttl_s))

    def set_multi(self, values: Mapping[str, object], server_key: str, *, ttl_s: float = 0) -> None:
        """Store in memcached and invalidate here."""
        self._inner.set_multi(values, server_key, ttl_s=ttl_s)
        for key in values:
            self._invalidate(key)

    def get_multi(self, keys: Sequence[str], server_key: str) -> list[Any]:
        """Get from memcached, without this cache."""
        return list(self._inner.get_multi(keys, server_key))

    def __repr__(self) -> str:
        return f"<LocalCache {len(self._entries)} entries over {self._inner!r}>"
