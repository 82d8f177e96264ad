"""An even pace: N a second, never a burst to make up for an idle time."""

from __future__ import annotations

import _queue
from collections.abc import Callable

from swift.base.clock import Clock

#: Waits some seconds and returns True if work should end.
Wait = Callable[[float], bool]


class Throttle:
    """Hands out turns ``1 / per_second`` apart; zero or less means no limit. Any thread may take turns."""

    __slots__ = ("_clock", "_wait", "_gap_s", "_next_s", "_token")

    def __init__(self, per_second: float, clock: Clock, wait: Wait):
        self._clock = clock
        self._wait = wait
        self._gap_s = 1.0 / per_second if per_second > 0 else 0.0
        self._next_s = clock.monotonic()
        # A lock for operating system threads and green threads alike.
        self._token: _queue.SimpleQueue[None] = _queue.SimpleQueue()
        self._token.put(None)

    def wait_for_turn(self, amount: int = 1) -> None:
        """Wait for the next turn, of ``amount`` at once; returns early when work should end."""
        if not self._gap_s:
            return
        self._token.get()
        try:
            now = self._clock.monotonic()
            ahead_s = self._next_s - now
            # Counted from the planned moment, so that late wake-ups do not slow the pace down.
            self._next_s = max(self._next_s, now) + self._gap_s * amount
        finally:
            self._token.put(None)
        if ahead_s > 0:
            self._wait(ahead_s)
