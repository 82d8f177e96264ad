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
