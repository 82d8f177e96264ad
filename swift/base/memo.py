"""Caches of results; clients cannot make them grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


#: Longest text that is kept as a key, characters.
TEXT_MAX = 256


class Memo(dict[K, V]):
    """``memo[key]`` is ``make(key)``, made once for the first ``size_max`` requested keys.

    A key that is in it costs no function call of ours; when it is full, other keys are made each time. For
    pure functions of few usual arguments; ``functools.lru_cache`` has old keys make room for new ones. Texts
    of more than ``TEXT_MAX`` characters are never kept: clients choose some of them.
    """

    __slots__ = ("_make", "_size_max")

    def __init__(
        self, make: Callable[[K], V], size_max: int, known: Mapping[K, V] | Iterable[tuple[K, V]] = ()
    ):
        super().__init__(known)
        self._make = make
        self._size_max = size_max

    def __missing__(self, key: K) -> V:
        value = self._make(key)
        if len(self) < self._size_max and not (isinstance(key, str) and len(key) > TEXT_MAX):
            self[key] = value
        return value


class SizedCache(dict[K, V]):
    """Values by key, each with a size, within a number of bytes; the oldest make room.

    ``get`` is that of a dictionary: a value that is in it costs no function call of ours.
    """

    __slots__ = ("_bytes_max", "_sizes", "size_bytes")

    def __init__(self, bytes_max: int):
        super().__init__()
        self._bytes_max = bytes_max
        self._sizes: dict[K, int] = {}
        self.size_bytes = 0

    def keep(self, key: K, value: V, size_bytes: int) -> V:
        """Keep a value unless it alone is too large; return it."""
        self.drop(key)
        if size_bytes <= self._bytes_max:
            while self.size_bytes + size_bytes > self._bytes_max:
                self.drop(next(iter(self)))
            self[key] = value
            self._sizes[key] = size_bytes
            self.size_bytes += size_bytes
        return value

    def drop(self, key: K) -> None:
        """Forget a value if it is there."""
        self.pop(key, None)
        self.size_bytes -= self._sizes.pop(key, 0)
