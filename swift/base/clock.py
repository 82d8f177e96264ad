"""Time as a seam: services receive a ``Clock`` so that a simulation can own the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Source of time of a service."""

    def time(self) -> float:
        """Return Unix seconds (UTC)."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards, for deadlines."""


class SystemClock:
    """The machine's clock."""

    monotonic = staticmethod(time.monotonic)
    # Last, because from here on the name means the method.
    time = staticmethod(time.time)


class ManualClock:
    """A clock that moves only by ``advance``, for tests and simulations."""

    def __init__(self, now_s: float = 1_700_000_000.0):
        self.now_s = now_s

    def time(self) -> float:
        """Return the set Unix time in seconds."""
        return self.now_s

    def monotonic(self) -> float:
        """Return the same value; it moves only by ``advance``."""
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Move the clock forward by ``seconds``."""
        self.now_s += seconds


class CachedSecondText:
    """The text of a moment, made once a second by ``show``, which gets UTC."""

    __slots__ = ("_second", "_show", "_text")

    def __init__(self, show: Callable[[time.struct_time], str]):
        self._show = show
        self._second = -1
        self._text = ""

    def __call__(self, now_s: float) -> str:
        """Return the text of a time in Unix seconds."""
        second = int(now_s)
        if second != self._second:
            self._text = self._show(time.gmtime(second))
            self._second = second
        return self._text
