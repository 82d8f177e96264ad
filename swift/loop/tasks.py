"""Green threads: tasks with a result, detached ones, and calls at the same time."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sized
from typing import Generic, TypeVar, Unpack

import greenlet

from swift.base.calls import T, Ts
from swift.loop.base import DeadlineExceeded, Killed, Loop, Timer, loop
from swift.loop.primitives import Event

S = TypeVar("S")

#: The number of detached green threads without work that are kept for the next call.
_IDLE_MAX = 32
_plain_sleep = time.sleep


def sleep(seconds: float = 0.0) -> None:
    """Suspend the caller for at least ``seconds``; with 0, resume it after all that can run now have run."""
    here, current = loop(), greenlet.getcurrent()
    if seconds <= 0.0:
        here.call_after_poll(here.resume, current)
        here.park(None)
        return
    until = time.monotonic() + seconds
    while seconds > 0.0:
        timer = here.call_later(seconds, here.resume, current)
        try:
            here.park(None)
        finally:
            timer.cancel()
        # Something is left when the loop's clock is a little ahead, or the wake-up was for an earlier wait.
        seconds = until - time.monotonic()


def pause(seconds: float) -> None:
    """Sleep in a green thread or in any other thread; only a green thread lets others run."""
    (sleep if in_green_thread() else _plain_sleep)(seconds)


def in_green_thread() -> bool:
    """Return True when the caller is a green thread: it may wait for others of its loop."""
    parent = greenlet.getcurrent().parent
    # The parent of a green thread is the loop, whose parent is the first greenlet of the operating system
    # thread.
    return parent is not None and parent.parent is not None


class Task(Generic[T]):
    """A green thread with a result. An error that neither ``wait`` nor ``kill`` took is printed."""

    __slots__ = ("_callbacks", "_ended", "_error", "_greenlet", "_is_taken", "_loop", "_timer", "_value")

    def __init__(self, here: Loop) -> None:
        self._loop = here
        self._greenlet: greenlet.greenlet | None = None
        self._timer: Timer | None = None
        self._ended = Event()
        self._value: T
        self._error: BaseException | None = None
        self._is_taken = False
        self._callbacks: list[Callable[[], None]] = []

    def start(self, function: Callable[[Unpack[Ts]], T], args: tuple[*Ts]) -> None:
        """Run the function in a new green thread; called by the loop."""
        if not self.done:
            self._timer = None
            self._greenlet = greenlet.greenlet(self._run, self._loop.greenlet)
            self._greenlet.switch(function, args)

    def _run(self, function: Callable[[Unpack[Ts]], T], args: tuple[*Ts]) -> None:
        try:
            self._value = function(*args)
        except (Exception, Killed) as error:
            self._error = error
        except BaseException as error:
            self._error, self._is_taken = error, True
            raise
        finally:
            del function, args
            self._end()

    def _end(self) -> None:
        self._ended.set()
        for callback in self._callbacks:
            self._loop.call_soon(callback)
        self._callbacks.clear()

    def wait(self) -> T:
        """Wait for the end; return the result or raise the error. A killed task raises ``Killed``."""
        self._ended.wait()
        self._is_taken = True
        if self._error is not None:
            raise self._error
        return self._value

    def kill(self) -> None:
        """End the green thread where it waits, and return once it has handled that; its error is dropped."""
        self._is_taken = True
        if self.done:
            return
        if self._greenlet is None:
            if self._timer is not None:
                self._timer.cancel()
            self._error = Killed()
            self._end()
        elif self._greenlet is greenlet.getcurrent():
            raise Killed
        else:
            self._loop.throw(self._greenlet, Killed())

    def on_exit(self, callback: Callable[[], None]) -> None:
        """Call back from the loop once the task has ended."""
        if self.done:
            self._loop.call_soon(callback)
        else:
            self._callbacks.append(callback)

    @property
    def done(self) -> bool:
        """Return True when the task has ended."""
        return self._ended.is_set

    def start_later(self, timer: Timer) -> None:
        """Keep the timer that starts the task, for ``kill``."""
        self._timer = timer

    def __del__(self) -> None:
        if not self._is_taken and isinstance(self._error, Exception):
            traceback.print_exception(self._error)


def spawn(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> Task[T]:
    """Start a green thread in the next turn of the loop and return its task."""
    here = loop()
    task: Task[T] = Task(here)
    here.call_soon(task.start, function, args)
    return task


def spawn_after(seconds: float, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> Task[T]:
    """Start a green thread later; ``kill`` before that cancels it."""
    here = loop()
    task: Task[T] = Task(here)
    task.start_later(here.call_later(seconds, task.start, function, args))
    return task


def spawn_detached(function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
    """Start a green thread without a result; it must handle its own errors.

    Detached green threads are reused: a new one costs fresh memory for its stack.
    """
    here = loop()
    worker = here.idle.pop() if here.idle else greenlet.greenlet(_work, here.greenlet)
    here.call_soon(worker.switch, function, args)


def _work(function: Callable[..., object], args: tuple[object, ...]) -> None:
    """Make one call after the other until one fails or enough green threads are idle."""
    here, current = loop(), greenlet.getcurrent()
    while True:
        function(*args)
        del function, args
        if len(here.idle) >= _IDLE_MAX:
            return
        here.idle.append(current)
        function, args = here.greenlet.switch()


def gather(calls: Iterable[Callable[[], T]]) -> list[T]:
    """Make calls at the same time; return their results in order. Raise the first error after all ended."""
    results: dict[int, T] = {}
    failures: dict[int, Exception] = {}

    def run(number: int, call: Callable[[], T]) -> None:
        try:
            results[number] = call()
        except Exception as error:
            failures[number] = error

    for task in [spawn(run, *each) for each in enumerate(calls)]:
        task.wait()
    if failures:
        raise failures[min(failures)]
    return [results[number] for number in sorted(results)]


def bounded_map(function: Callable[[S], T], items: Iterable[S], at_once: int) -> list[T]:
    """Apply a function to items in at most ``at_once`` green threads; return the results in order.

    After an error no further item is started. Raise the error of the first item that failed once the items
    under way have ended.
    """
    results: dict[int, T] = {}
    failures: dict[int, Exception] = {}
    waiting = enumerate(items)

    def work() -> None:
        for number, item in waiting:
            try:
                results[number] = function(item)
            except Exception as error:
                failures[number] = error
            if failures:
                return

    places = min(at_once, len(items)) if isinstance(items, Sized) else at_once
    if places == 1:
        work()
    else:
        for task in [spawn(work) for _ in range(places)]:
            task.wait()
    if failures:
        raise failures[min(failures)]
    return [results[number] for number in sorted(results)]


class Timeout:
    """``with Timeout(seconds):`` raises ``DeadlineExceeded`` in a block that takes longer; None never does.

    For whole operations; a wait for one socket takes a deadline instead, which is cheaper.
    """

    __slots__ = ("_seconds", "_timer")

    def __init__(self, seconds: float | None):
        self._seconds = seconds
        self._timer: Timer | None = None

    def __enter__(self) -> None:
        if self._seconds is not None:
            error = DeadlineExceeded(f"{self._seconds} s passed")
            self._timer = loop().call_later(self._seconds, greenlet.getcurrent().throw, error)

    def __exit__(self, *_error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
