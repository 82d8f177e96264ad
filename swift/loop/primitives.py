"""Synchronization between green threads of one loop: Event, Condition, Semaphore, Queue and Future.

All of them belong to one loop and are used in its operating system thread. A result of another thread arrives
through ``Loop.call_from_thread`` and a ``Future``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Generic, cast

import greenlet

from swift.base.calls import T
from swift.loop.base import DeadlineExceeded, loop


class _Waiters:
    """Green threads that wait for one thing, in the order of their arrival."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[greenlet.greenlet] = []

    def wait(self, deadline: float | None) -> None:
        """Suspend the caller until a wake-up, which may be stale; raises ``DeadlineExceeded``."""
        current = greenlet.getcurrent()
        self._waiting.append(current)
        try:
            loop().park(deadline)
        finally:
            if current in self._waiting:
                self._waiting.remove(current)

    def wake_all(self) -> None:
        """Resume all that wait now."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            wake = loop().wake
            for waiter in waiting:
                wake(waiter)

    def wake_one(self) -> None:
        """Resume the one that waits longest."""
        if self._waiting:
            loop().wake(self._waiting.pop(0))


def _deadline_of(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else time.monotonic() + timeout_s


def _has_passed(deadline: float | None) -> bool:
    """Return True if a wait ended by its own deadline, not by that of a ``Timeout`` around it."""
    return deadline is not None and time.monotonic() >= deadline


class Event:
    """A flag that is set once; any number of green threads may wait for it."""

    __slots__ = ("_waiters", "is_set")

    def __init__(self) -> None:
        self._waiters = _Waiters()
        #: True once ``set`` was called.
        self.is_set = False

    def set(self) -> None:
        """Set the flag and resume all that wait; later calls do nothing."""
        self.is_set = True
        self._waiters.wake_all()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the flag is set; return False when ``timeout_s`` passed first."""
        deadline = _deadline_of(timeout_s)
        while not self.is_set:
            try:
                self._waiters.wait(deadline)
            except DeadlineExceeded:
                if not _has_passed(deadline):
                    raise
                return self.is_set
        return True


class Condition:
    """Announces changes of a state that several green threads look at."""

    __slots__ = ("_changes", "_waiters")

    def __init__(self) -> None:
        self._changes = 0
        self._waiters = _Waiters()

    def notify_all(self) -> None:
        """Resume all that wait now."""
        self._changes += 1
        self._waiters.wake_all()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the next ``notify_all``; return False when ``timeout_s`` passed first."""
        deadline, seen = _deadline_of(timeout_s), self._changes
        while self._changes == seen:
            try:
                self._waiters.wait(deadline)
            except DeadlineExceeded:
                if not _has_passed(deadline):
                    raise
                return self._changes != seen
        return True

    def wait_for(self, predicate: Callable[[], object], deadline: float | None = None) -> None:
        """Return once ``predicate()`` is true; raises ``DeadlineExceeded``.

        The predicate is checked at once and after each ``notify_all``. Nothing runs between the check that
        succeeds and the return.
        """
        while not predicate():
            self._waiters.wait(deadline)


class Semaphore:
    """A counter of free places; a context manager that takes one and returns it."""

    __slots__ = ("_free", "_waiters")

    def __init__(self, places: int = 1) -> None:
        if places < 0:
            raise ValueError("a semaphore has at least 0 places")
        self._free = places
        self._waiters = _Waiters()

    def acquire(self, timeout_s: float | None = None) -> bool:
        """Take a place; return False when none is free in time, with 0 at once."""
        deadline = _deadline_of(timeout_s)
        while self._free <= 0:
            if timeout_s == 0:
                return False
            try:
                self._waiters.wait(deadline)
            except BaseException as error:
                if self._free > 0:
                    # The wake-up may have been for this green thread.
                    self._waiters.wake_one()
                if isinstance(error, DeadlineExceeded) and _has_passed(deadline):
                    return False
                raise
        self._free -= 1
        return True

    def release(self) -> None:
        """Return a place."""
        self._free += 1
        self._waiters.wake_one()

    def locked(self) -> bool:
        """Return True when no place is free."""
        return self._free <= 0

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Semaphore: {self._free} free>"


class Queue(Generic[T]):
    """Values put by any number of green threads and taken in order."""

    __slots__ = ("_values", "_waiters")

    def __init__(self) -> None:
        self._values: deque[T] = deque()
        self._waiters = _Waiters()

    def put(self, value: T) -> None:
        """Append a value; resumes the green thread that waits longest."""
        self._values.append(value)
        self._waiters.wake_one()

    def get(self, deadline: float | None = None) -> T:
        """Remove and return the oldest value; raises ``DeadlineExceeded`` when none comes in time."""
        while not self._values:
            try:
                self._waiters.wait(deadline)
            except BaseException:
                if self._values:
                    # The wake-up may have been for this green thread.
                    self._waiters.wake_one()
                raise
        return self._values.popleft()

    def __len__(self) -> int:
        return len(self._values)


class Future(Generic[T]):
    """The result of a call that ends later; one green thread waits for it.

    A result that comes after the waiting green thread was killed or timed out is dropped.
    """

    __slots__ = ("_error", "_is_done", "_value", "_waiter")

    def __init__(self) -> None:
        self._is_done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._waiter: greenlet.greenlet | None = None

    def result(self, deadline: float | None = None) -> T:
        """Wait for the value and return it, or raise the error; raises ``DeadlineExceeded``."""
        if not self._is_done:
            self._waiter = greenlet.getcurrent()
            try:
                while not self._is_done:
                    loop().park(deadline)
            finally:
                self._waiter = None
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def set_result(self, value: T) -> None:
        """End the call with a value."""
        self._value = value
        self._end()

    def set_error(self, error: BaseException) -> None:
        """End the call with an error, which ``result`` raises."""
        self._error = error
        self._end()

    def _end(self) -> None:
        self._is_done = True
        waiter = self._waiter
        if waiter is None:
            return
        here = loop()
        if here.is_current():
            here.resume(waiter)
        else:
            here.wake(waiter)
