"""What objects contain: bytes that only this object has, made without work, and compared without hashing."""

from __future__ import annotations

import random
from collections.abc import Iterator

PIECE_BYTES = 1 << 20
#: Between the beginnings of two objects; odd, so that neighbours never look alike.
_STRIDE = 7919


class Content:
    """The bytes of all objects of a workload, cut out of one random piece that repeats."""

    def __init__(self, seed: int):
        piece = random.Random(f"content/{seed}").randbytes(PIECE_BYTES)
        self._twice = memoryview(piece + piece)

    def pieces(self, number: int, size: int) -> Iterator[memoryview]:
        """The object ``number``, at most 1 MiB at a time."""
        begin = number * _STRIDE % PIECE_BYTES
        left = size
        while left > 0:
            take = min(left, PIECE_BYTES)
            yield self._twice[begin : begin + take]
            left -= take

    def checker(self, number: int) -> Checker:
        """Compares the object ``number`` with what comes."""
        return Checker(self._twice, number * _STRIDE % PIECE_BYTES)


class Checker:
    """Compares an object's bytes as they come."""

    def __init__(self, twice: memoryview, begin: int):
        self._twice = twice
        self._begin = begin
        self.received = 0

    def feed(self, data: bytes | memoryview) -> bool:
        """Whether these are the next bytes."""
        view, matches = memoryview(data), True
        while view and matches:
            at = (self._begin + self.received) % PIECE_BYTES
            take = min(len(view), PIECE_BYTES)
            matches = view[:take] == self._twice[at : at + take]
            self.received += take
            view = view[take:]
        return matches
