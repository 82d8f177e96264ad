"""System calls that may block: operating system threads whose results come back into the event loop.

A green thread that calls through a ``ThreadPool`` sleeps until its call has ended; the others go on.
"""

from __future__ import annotations

import _queue
import os
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, Unpack

from swift import green
from swift.base.calls import T, Ts

_Job = tuple["_Completions", "ThreadPool", green.Handover[Any], Callable[..., object], tuple[object, ...]]
#: What threads wait for; None ends one.
_Jobs = _queue.SimpleQueue[_Job | None]


class _Completions:
    """Brings results of threads back into the loop through one eventfd."""

    def __init__(self) -> None:
        self._done: deque[tuple[ThreadPool, green.Handover[Any], bool, Any]] = deque()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        green.on_readable(self._fd, self._deliver)

    def post(self, pool: ThreadPool, handover: green.Handover[Any], failed: bool, value: object) -> None:
        """Called in a worker thread."""
        self._done.append((pool, handover, failed, value))
        os.eventfd_write(self._fd, 1)

    def _deliver(self) -> None:
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return
        while self._done:
            pool, handover, failed, value = self._done.popleft()
            pool.thread_is_free()
            try:
                if failed:
                    handover.throw(value)
                else:
                    handover.switch(value)
            except Exception:
                # A green thread ended by an error nobody caught; the other results must come all the same.
                traceback.print_exc()


_completions: _Completions | None = None
#: Counts forks: a child has neither the threads nor the loop of its parent.
_generation = 0


def _after_fork() -> None:
    global _completions, _generation
    _completions = None
    _generation += 1


os.register_at_fork(after_in_child=_after_fork)


class ThreadPool:
    """A few operating system threads for calls that may block, e.g. one pool per disk.

    Threads start at first use and end with the pool, when nobody refers to it any more. A call cannot be
    interrupted: a green thread that is killed while it waits leaves its call running to the end.
    """

    def __init__(self, size: int, name: str = "pool"):
        self.size = size
        self.name = name
        self._generation = -1
        self._jobs: _Jobs = _queue.SimpleQueue()
        self._started = 0
        self._idle = 0

    def call(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Run ``function(*args)`` in a thread while other green threads go on; its result or error."""
        global _completions
        if _completions is None:
            _completions = _Completions()
        if self._generation != _generation:
            self._generation, self._jobs, self._started, self._idle = _generation, _queue.SimpleQueue(), 0, 0
        if self._idle > 0:
            self._idle -= 1
        elif self._started < self.size:
            self._started += 1
            green.PlainThread(target=_work, args=(self._jobs,), daemon=True, name=self.name).start()
        handover: green.Handover[T] = green.Handover()
        self._jobs.put((_completions, self, handover, function, args))
        return handover.wait()

    def thread_is_free(self) -> None:
        """A thread finished its call; the loop counts, so that no lock is needed."""
        self._idle += 1

    def __del__(self) -> None:
        if self._generation == _generation:
            for _ in range(self._started):
                self._jobs.put(None)

    def __repr__(self) -> str:
        return f"<ThreadPool {self.name} {self._started}/{self.size}>"


def _work(jobs: _Jobs) -> None:
    """What a thread does; it knows its pool only while it works for it."""
    while (job := jobs.get()) is not None:
        completions, pool, handover, function, args = job
        try:
            value, failed = function(*args), False
        except BaseException as error:
            value, failed = error, True
        completions.post(pool, handover, failed, value)
        del job, completions, pool, handover, function, args, value
