"""The event loop on greenlet, epoll and a heap of timers.

A wait arms its descriptor for one event (EPOLLONESHOT): one system call per wait. The kernel forgets a
descriptor that is closed, so no bookkeeping follows descriptors. One green thread at a time may wait for a
descriptor.
"""

from __future__ import annotations

import heapq
import select
import time
from collections import deque
from collections.abc import Callable
from typing import NoReturn, Unpack

import greenlet

from swift.base.calls import Call, Ts
from swift.loop.base import Loop, root_greenlet

#: The number of descriptor events taken from the kernel at once.
_EVENTS_MAX = 128
#: The number of rounds of calls added by calls before the loop polls descriptors.
_READY_ROUNDS = 4
#: The longest poll without anything planned, seconds.
_POLL_MAX_S = 60.0
#: Cancelled timers stay in the heap until there are this many and they are the majority.
_CANCELLED_MAX = 256


class _Timer:
    """A planned call; ``function`` is None after ``cancel`` and after the call."""

    __slots__ = ("_heap", "args", "function")

    def __init__(self, heap: _TimerHeap, function: Callable[..., object], args: tuple[object, ...]):
        self._heap = heap
        self.function: Callable[..., object] | None = function
        self.args = args

    def cancel(self) -> None:
        """Drop the call; does nothing after it was made."""
        if self.function is not None:
            self.function, self.args = None, ()
            self._heap.one_was_cancelled()


class _TimerHeap:
    """Planned calls by time, then by order of planning."""

    def __init__(self) -> None:
        #: A heap; its first entry may be a cancelled timer.
        self.entries: list[tuple[float, int, _Timer]] = []
        self._count = 0
        self._cancelled = 0

    def add(self, when: float, function: Callable[..., object], args: tuple[object, ...]) -> _Timer:
        """Plan a call for monotonic time ``when``."""
        timer = _Timer(self, function, args)
        self._count += 1
        heapq.heappush(self.entries, (when, self._count, timer))
        return timer

    def one_was_cancelled(self) -> None:
        """Count a cancelled timer; remove all of them once they are many."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_MAX and 2 * self._cancelled > len(self.entries):
            self.entries[:] = [entry for entry in self.entries if entry[2].function is not None]
            heapq.heapify(self.entries)
            self._cancelled = 0

    def pop_due(self, now: float) -> Call | None:
        """Remove and return the next call planned for ``now`` or before; None if there is none.

        One at a time, because a call may cancel the next one.
        """
        while self.entries and self.entries[0][0] <= now:
            timer = heapq.heappop(self.entries)[2]
            if timer.function is None:
                self._cancelled -= 1
            else:
                due = timer.function, timer.args
                timer.function, timer.args = None, ()
                return due
        return None


class EpollLoop(Loop):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.greenlet = greenlet.greenlet(self._run, root_greenlet())
        self._poll = select.epoll()
        self._ready: deque[Call] = deque()
        self._after_poll: deque[Call] = deque()
        self._timers = _TimerHeap()
        self._waiters: dict[int, greenlet.greenlet] = {}
        self._callbacks: dict[int, Callable[[], None]] = {}

    def call_soon(self, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """See ``Loop``."""
        self._ready.append((function, args))

    def call_after_poll(self, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """See ``Loop``."""
        self._after_poll.append((function, args))

    def call_later(self, seconds: float, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> _Timer:
        """See ``Loop``."""
        return self._timers.add(time.monotonic() + seconds, function, args)

    def on_readable(self, fd: int, callback: Callable[[], None]) -> None:
        """See ``Loop``."""
        self._callbacks[fd] = callback
        self._poll.register(fd, select.EPOLLIN)

    def wait_for(self, fd: int, events: int, deadline: float | None) -> None:
        """See ``Loop``."""
        waiters, current, here = self._waiters, greenlet.getcurrent(), self.greenlet
        if fd in waiters:
            raise RuntimeError(f"two green threads wait for descriptor {fd}")
        events |= select.EPOLLONESHOT
        try:
            self._poll.modify(fd, events)
        except FileNotFoundError:
            self._poll.register(fd, events)
        waiters[fd] = current
        if deadline is not None:
            self._deadlines[current] = deadline
            if deadline < self._sweep_at_s:
                self._sweep_before(deadline, time.monotonic())
        try:
            if current.parent is here:
                here.switch()
            else:
                self.switch()
        finally:
            if deadline is not None:
                self._deadlines.pop(current, None)
            if waiters.get(fd) is current:
                # Killed or past its deadline: its descriptor is still armed.
                del waiters[fd]
                self._stop_polling(fd)

    def _stop_polling(self, fd: int) -> None:
        try:
            self._poll.modify(fd, select.EPOLLONESHOT)
        except OSError:
            # Closed meanwhile: the kernel has forgotten it.
            return

    def _run(self) -> None:
        """Make due and ready calls, then poll descriptors, for ever."""
        while True:
            try:
                self._run_turns()
            except BaseException as error:
                # Of a signal handler: the errors of calls are handled already.
                self.throw_into_main(error)

    def _run_turns(self) -> NoReturn:
        # One large download has thousands of turns: they call no function that is not needed.
        ready, after_poll, timers = self._ready, self._after_poll, self._timers
        waiters, callbacks, poll, monotonic = self._waiters, self._callbacks, self._poll.poll, time.monotonic
        entries = timers.entries
        while True:
            if entries and entries[0][0] <= (now := monotonic()):
                while (due := timers.pop_due(now)) is not None:
                    self._call(*due)
            if after_poll:
                ready.extend(after_poll)
                after_poll.clear()
            if ready:
                self._make_ready_calls()
            if ready or after_poll:
                seconds = 0.0
            else:
                # The kernel takes at most 24 days.
                seconds = min(_POLL_MAX_S, max(0.0, entries[0][0] - monotonic())) if entries else _POLL_MAX_S
            for fd, _event in poll(seconds, _EVENTS_MAX):
                waiter = waiters.pop(fd, None)
                try:
                    if waiter is not None:
                        waiter.switch()
                    elif fd in callbacks:
                        callbacks[fd]()
                except BaseException:
                    self.handle_error()

    def _call(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            function(*args)
        except BaseException:
            self.handle_error()

    def _make_ready_calls(self) -> None:
        ready = self._ready
        for _round in range(_READY_ROUNDS):
            for _place in range(len(ready)):
                function, args = ready.popleft()
                try:
                    function(*args)
                except BaseException:
                    self.handle_error()
            if not ready:
                return

    def __repr__(self) -> str:
        return f"<EpollLoop: {len(self._waiters)} wait for descriptors, {len(self._parked)} for others>"
