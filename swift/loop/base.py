"""The interface of an event loop, and the parts that every implementation shares.

A process runs one loop per operating system thread that waits; servers have one. A *green thread* is a
greenlet whose parent is the loop's own greenlet. Switches go only between a green thread and the loop:

=====================  =========================  =====================================================
from                   to                         by
=====================  =========================  =====================================================
a green thread         the loop, always           ``Loop.switch`` (``park``, ``wait_for``, ``Future.result``)
the loop               a green thread             a descriptor is ready, ``wake``, a deadline, a ``Future``
the loop               an idle detached thread    its entry in ``ready``, when there is work for it
another OS thread      nothing                    ``call_from_thread`` leaves a call and writes to an eventfd
=====================  =========================  =====================================================

A green thread switches to another one only to end it (``throw``). Code between two waits therefore runs
without interruption by other green threads.

Deadlines are absolute ``time.monotonic()`` seconds. One sweep serves the deadlines of all waits, so a
deadline costs a dictionary entry instead of a timer.

Implementations: ``swift.loop.epoll`` and the classes in ``swift.green``. Suite:
``test/contract/loop``.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, Unpack

import greenlet

from swift.base.calls import Call, Ts

#: The interval between two sweeps for overdue waits; a deadline fires late by at most this, seconds.
SWEEP_INTERVAL_S = 0.1


class DeadlineExceeded(Exception):
    """A wait passed its deadline."""


class Killed(greenlet.GreenletExit):
    """Raised inside a green thread that another one ended."""


class Timer(Protocol):
    """A call planned by ``Loop.call_later``."""

    def cancel(self) -> object:
        """Drop the call; does nothing after it was made."""


class Loop(ABC):
    """An event loop of one operating system thread.

    A subclass provides ``call_soon``, ``call_after_poll``, ``call_later``, ``wait_for`` and
    ``on_readable``, and sets ``greenlet`` to the greenlet that polls.
    """

    #: The greenlet that polls; the parent of all green threads.
    greenlet: greenlet.greenlet

    def __init__(self) -> None:
        #: Detached green threads that wait for work.
        self.idle: list[greenlet.greenlet] = []
        self._parked: set[greenlet.greenlet] = set()
        self._deadlines: dict[greenlet.greenlet, float] = {}
        #: The time of the next sweep; infinite without deadlines.
        self._sweep_at_s = math.inf
        self._from_threads: deque[Call] = deque()
        self._eventfd = -1

    # --- provided by implementations -------------------------------------------------------------------

    @abstractmethod
    def call_soon(self, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """Make a call from the loop in its next turn."""

    @abstractmethod
    def call_after_poll(self, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """Make a call after the loop has polled its descriptors once more."""

    @abstractmethod
    def call_later(self, seconds: float, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> Timer:
        """Make a call after at least ``seconds``."""

    @abstractmethod
    def wait_for(self, fd: int, events: int, deadline: float | None) -> None:
        """Suspend the caller until one of the epoll ``events`` happens on ``fd``.

        A wake-up may be stale: callers try their system call again. Raises ``DeadlineExceeded``, and
        RuntimeError when another green thread waits for the same descriptor.
        """

    @abstractmethod
    def on_readable(self, fd: int, callback: Callable[[], None]) -> None:
        """Call back from the loop, from now on, whenever ``fd`` is readable; the callback must not raise."""

    # --- waits ---------------------------------------------------------------------------------------

    def switch(self) -> object:
        """Suspend the caller and run the loop; returns the value that the caller is resumed with."""
        current, loop = greenlet.getcurrent(), self.greenlet
        if current.parent is not loop and current.parent is not None:
            # A green thread of the loop before a fork.
            current.parent = loop
        return loop.switch()

    def park(self, deadline: float | None) -> None:
        """Suspend the caller until ``wake``; raises ``DeadlineExceeded``.

        A wake-up may be stale, meant for an earlier wait: callers check their condition again.
        """
        current = greenlet.getcurrent()
        self._parked.add(current)
        if deadline is not None:
            self.watch(current, deadline)
        try:
            self.switch()
        finally:
            self._parked.discard(current)
            if deadline is not None:
                self._deadlines.pop(current, None)

    def wake(self, waiter: greenlet.greenlet) -> None:
        """Resume a parked green thread in the next turn; does nothing if it is no longer parked then."""
        self.call_soon(self.resume, waiter)

    def resume(self, waiter: greenlet.greenlet) -> None:
        """Resume a parked green thread now; only called by the loop."""
        # A green thread that was killed or timed out in between is no longer parked.
        if waiter in self._parked:
            waiter.switch()

    def throw(self, target: greenlet.greenlet, error: BaseException) -> None:
        """Raise an error in another green thread now; return once it has ended or waits again.

        The one case in which a green thread switches to another one: its end reaches the loop, which
        resumes the caller in its next turn.
        """
        current = greenlet.getcurrent()
        if current is self.greenlet:
            target.throw(error)
            return
        self._parked.add(current)
        self.call_soon(self.resume, current)
        try:
            target.throw(error)
        finally:
            self._parked.discard(current)

    def is_current(self) -> bool:
        """Return True when the loop itself is running, not a green thread."""
        return greenlet.getcurrent() is self.greenlet

    # --- deadlines -----------------------------------------------------------------------------------

    def watch(self, waiter: greenlet.greenlet, deadline: float) -> None:
        """Throw ``DeadlineExceeded`` into a green thread that is suspended past ``deadline``."""
        self._deadlines[waiter] = deadline
        if deadline < self._sweep_at_s:
            self._sweep_before(deadline, time.monotonic())

    def unwatch(self, waiter: greenlet.greenlet) -> None:
        """Forget the deadline of a green thread."""
        self._deadlines.pop(waiter, None)

    def _sweep_before(self, deadline: float, now: float) -> None:
        """Plan a sweep for this deadline; sweeps are at least ``SWEEP_INTERVAL_S`` apart."""
        self._sweep_at_s = max(deadline, now + SWEEP_INTERVAL_S)
        self.call_later(self._sweep_at_s - now, self._sweep)

    def _sweep(self) -> None:
        now, waiting = time.monotonic(), self._deadlines
        if now < self._sweep_at_s:
            # An earlier deadline was added after this sweep was planned, and had a sweep of its own.
            return
        for waiter in [waiter for waiter, deadline in waiting.items() if deadline <= now]:
            self.call_soon(self._expire, waiter, now)
        self._sweep_at_s = math.inf
        if waiting:
            self._sweep_before(min(waiting.values()), now)

    def _expire(self, waiter: greenlet.greenlet, now: float) -> None:
        # It may have been resumed in between, and wait again.
        if self._deadlines.get(waiter, now + 1.0) <= now:
            del self._deadlines[waiter]
            waiter.throw(DeadlineExceeded("no progress before the deadline"))

    # --- other operating system threads ------------------------------------------------------------------

    def accept_calls_from_threads(self) -> None:
        """Make ``call_from_thread`` usable; called in the loop's thread."""
        if self._eventfd < 0:
            self._eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self.on_readable(self._eventfd, self._make_calls_from_threads)

    def call_from_thread(self, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """Make a call from the loop as soon as possible; any operating system thread may call this."""
        self._from_threads.append((function, args))
        os.eventfd_write(self._eventfd, 1)

    def _make_calls_from_threads(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._eventfd)
        while self._from_threads:
            function, args = self._from_threads.popleft()
            try:
                function(*args)
            except Exception:
                # The error of a green thread that nothing handles; the other calls are made all the same.
                traceback.print_exc()

    # --- errors --------------------------------------------------------------------------------------

    def handle_error(self) -> None:
        """Print the current error of a call.

        The main greenlet receives SystemExit and KeyboardInterrupt.
        """
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit | KeyboardInterrupt):
            self.throw_into_main(error)
        else:
            traceback.print_exc()

    def throw_into_main(self, error: BaseException) -> None:
        """Raise an error in the main greenlet, which waits for the loop.

        The loop continues when it waits again.
        """
        main = self.greenlet.parent
        assert main is not None
        main.throw(error)


class _Current(threading.local):
    """The loop of an operating system thread."""

    loop: Loop | None = None


_current = _Current()
_factories: list[Callable[[], Loop]] = []
#: Loops of the parent process. Their greenlets must not be collected: a collected greenlet runs its
#: ``finally``.
_abandoned: list[Loop] = []


def set_factory(factory: Callable[[], Loop]) -> None:
    """Set the function that makes the loop of a thread that has none."""
    _factories[:] = [factory]


def loop() -> Loop:
    """Return this thread's loop; made at its first use, and again after a fork."""
    found = _current.loop
    if found is None:
        found = _current.loop = _factories[0]()
    return found


def has_loop() -> bool:
    """Return True if this thread has a loop already."""
    return _current.loop is not None


def use(chosen: Loop | None) -> None:
    """Make this the loop of the calling thread; with None, make a new one at its next use."""
    _current.loop = chosen


def root_greenlet() -> greenlet.greenlet:
    """Return the first greenlet of this operating system thread."""
    found = greenlet.getcurrent()
    while found.parent is not None:
        found = found.parent
    return found


def _abandon() -> None:
    if _current.loop is not None:
        _abandoned.append(_current.loop)
        _current.loop = None


os.register_at_fork(after_in_child=_abandon)
