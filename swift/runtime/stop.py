"""Waiting that ends early when a daemon is to stop (spec: cli-and-config.md §8)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from swift import green
from swift.base.clock import Clock, SystemClock
from swift.green import on_signals, pause

#: Without an event loop a signal is noticed at most this late, seconds.
SLICE_S = 0.25


class StopRequest:
    """Stop request of a daemon; daemons sleep only through it.

    It sleeps in the event loop until the end is asked for. ``sleep`` is given where that must not run
    (``make_blocking_stop_request``), and by tests that own the time: then it looks again after every slice.
    """

    def __init__(self, clock: Clock | None = None, sleep: Callable[[float], None] | None = None):
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._event = green.Event()
        self._thread = threading.get_native_id()

    @property
    def requested(self) -> bool:
        """True if the end was requested."""
        return self._event.is_set

    def request(self) -> None:
        """Ask for the end."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is over or the end is requested; return True if it was."""
        sleep = self._sleep
        if sleep is None and threading.get_native_id() != self._thread:
            sleep = pause
        if sleep is None:
            return self._event.wait(max(0.0, seconds))
        deadline = self._clock.monotonic() + seconds
        while not self.requested:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                break
            sleep(min(left, SLICE_S))
        return self.requested

    def make_child(self) -> StopRequest:
        """Return a part of the work that ends with the whole, or earlier by itself."""
        return _ChildStopRequest(self)

    def on_signals(self) -> None:
        """Request the end at SIGTERM and SIGINT, at the next unit boundary; ignore SIGHUP."""
        ends = (signal.SIGTERM, signal.SIGINT)
        if self._sleep is None:
            on_signals(ends, lambda _number: self.request())
        else:
            for sig in ends:
                signal.signal(sig, lambda *_: self.request())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def __repr__(self) -> str:
        return f"<StopRequest {'requested' if self.requested else 'not requested'}>"


class _ChildStopRequest(StopRequest):
    """See ``StopRequest.make_child``; it waits as the whole does."""

    def __init__(self, whole: StopRequest):
        super().__init__(whole._clock, whole._sleep)
        self._parent = whole

    @property
    def requested(self) -> bool:
        return self._event.is_set or self._parent.requested

    def wait(self, seconds: float) -> bool:
        return self.requested or self._parent.wait(seconds) or self.requested


def make_blocking_stop_request(clock: Clock | None = None) -> StopRequest:
    """Return a ``StopRequest`` for a process that forks.

    It starts no event loop, which children would share.
    """
    return StopRequest(clock, pause)
