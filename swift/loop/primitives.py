"""What green threads wait for besides sockets: events, values, and results of other threads."""

from __future__ import annotations

import time
from collections import deque
from typing import Generic, cast

import greenlet

from swift.base.calls import T
from swift.loop.current import DeadlineExceeded, loop


class Event:
    """Something that happens once; any number of green threads may wait for it."""

    __slots__ = ("_waiters", "is_set")

    def __init__(self) -> None:
        self._waiters: list[greenlet.greenlet] = []
        #: Whether it has happened.
        self.is_set = False

    def set(self) -> None:
        """Wake all who wait; later calls do nothing."""
        self.is_set = True
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            wake = loop().wake
            for waiter in waiters:
                wake(waiter)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is set; False when ``timeout_s`` passed first."""
        if self.is_set:
            return True
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        here, current = loop(), greenlet.getcurrent()
        while not self.is_set:
            self._waiters.append(current)
            try:
                here.park(deadline)
            except DeadlineExceeded:
                return self.is_set
            finally:
                if current in self._waiters:
                    self._waiters.remove(current)
        return True


class Mailbox(Generic[T]):
    """Values put by many green threads and taken by one."""

    __slots__ = ("_values", "_waiter")

    def __init__(self) -> None:
        self._values: deque[T] = deque()
        self._waiter: greenlet.greenlet | None = None

    def put(self, value: T) -> None:
        """Leave a value; wakes the one that waits."""
        self._values.append(value)
        if self._waiter is not None:
            loop().wake(self._waiter)
            self._waiter = None

    def get(self, deadline: float | None = None) -> T:
        """The oldest value; raises ``DeadlineExceeded`` when none comes in time."""
        while not self._values:
            self._waiter = greenlet.getcurrent()
            try:
                loop().park(deadline)
            finally:
                self._waiter = None
        return self._values.popleft()


class Handover(Generic[T]):
    """Where one green thread waits for another thread's result; late results for abandoned ones vanish."""

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: greenlet.greenlet | None = None

    def wait(self) -> T:
        """What ``switch`` is called with; raises what ``throw`` is called with."""
        self._waiter = greenlet.getcurrent()
        try:
            return cast(T, loop().switch())
        finally:
            self._waiter = None

    def switch(self, value: T) -> None:
        """Called in the loop: go on with this value."""
        if self._waiter is not None:
            self._waiter.switch(value)

    def throw(self, error: BaseException) -> None:
        """Called in the loop: go on with this error."""
        if self._waiter is not None:
            self._waiter.throw(error)
