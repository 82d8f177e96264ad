"""Calls in operating system threads, and calls from these threads back into the loop.

A green thread that calls through a ``ThreadPool`` waits until its call has ended; other green threads go on.
Code in such a thread reaches the loop by ``call_in_loop``, which blocks the thread.
"""

from __future__ import annotations

import _queue
import os
import threading
from collections.abc import Callable
from typing import Any, Unpack

from swift.base.calls import T, Ts
from swift.loop.base import Loop, has_loop, loop
from swift.loop.primitives import Future
from swift.loop.tasks import spawn_detached

_Job = tuple[Loop, "ThreadPool", Future[Any], Callable[..., object], tuple[object, ...]]
#: Jobs of the threads of a pool; None ends one thread.
_Jobs = _queue.SimpleQueue[_Job | None]

#: Counts forks: a child has neither the threads nor the loop of its parent.
_generation = 0
#: The loop that called into a thread last; a process has one, but for tests.
_caller: Loop | None = None


def _after_fork() -> None:
    global _generation, _caller
    _generation, _caller = _generation + 1, None


os.register_at_fork(after_in_child=_after_fork)


class ThreadPool:
    """A few operating system threads for calls that may block, for example one pool per disk.

    Threads start at first use and end with the pool, when nothing refers to it any more. A call cannot be
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
        """Run ``function(*args)`` in a thread; return its result or raise its error.

        Raises RuntimeError if the thread that it needs cannot be started.
        """
        global _caller
        here = _caller = loop()
        here.accept_calls_from_threads()
        if self._generation != _generation:
            self._generation, self._jobs, self._started, self._idle = _generation, _queue.SimpleQueue(), 0, 0
        if self._idle > 0:
            self._idle -= 1
        elif self._started < self.size:
            # Counted afterwards: without memory, or at a limit of threads, it does not start.
            threading.Thread(target=_work, args=(self._jobs,), daemon=True, name=self.name).start()
            self._started += 1
        future: Future[T] = Future()
        self._jobs.put((here, self, future, function, args))
        return future.result()

    def thread_is_free(self) -> None:
        """Count a thread that finished its call; called by the loop, so that no lock is needed."""
        self._idle += 1

    def __del__(self) -> None:
        if self._generation == _generation:
            for _ in range(self._started):
                self._jobs.put(None)

    def __repr__(self) -> str:
        return f"<ThreadPool {self.name} {self._started}/{self.size}>"


class _Serving(threading.local):
    """The loop for which an operating system thread makes a call."""

    loop: Loop | None = None


_serving = _Serving()


def _work(jobs: _Jobs) -> None:
    """Make calls until None comes; the thread refers to its pool only while it makes one."""
    while (job := jobs.get()) is not None:
        here, pool, future, function, args = job
        _serving.loop = here
        try:
            value, failed = function(*args), False
        except BaseException as error:
            value, failed = error, True
        here.call_from_thread(_deliver, pool, future, failed, value)
        del job, here, pool, future, function, args, value


def _deliver(pool: ThreadPool, future: Future[Any], failed: bool, value: Any) -> None:
    pool.thread_is_free()
    if failed:
        future.set_error(value)
    else:
        future.set_result(value)


def call_in_loop(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Run ``function(*args)`` in a green thread of the loop; return its result or raise its error.

    Called in a thread of a ``ThreadPool``, or one that code in such a thread has started, which blocks
    meanwhile; in the loop's own thread it just calls.
    """
    here = _serving.loop
    if here is None and not has_loop():
        here = _caller
    if here is None:
        return function(*args)
    ended: _queue.SimpleQueue[tuple[bool, Any]] = _queue.SimpleQueue()
    here.call_from_thread(spawn_detached, _call, ended, function, args)
    failed, value = ended.get()
    if failed:
        raise value
    return value


def _call(
    ended: _queue.SimpleQueue[tuple[bool, Any]], function: Callable[..., object], args: tuple[object, ...]
) -> None:
    try:
        ended.put((False, function(*args)))
    except BaseException as error:
        ended.put((True, error))
