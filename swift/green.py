"""Green threads: the interface to the event loop, and the only file that imports eventlet.

A process runs one event loop. Code that would block hands over to the loop: ``sleep``, waits for sockets
(``wait_readable``, ``wait_writable``), ``Event``, ``Condition``, ``Semaphore``, ``Queue``, ``Future``, and
``ThreadPool.call`` for calls that block in the kernel. Nothing of the standard library is monkey patched: a
blocking call blocks the whole process. ``doc/explanation/concurrency.md`` says what runs where.

The environment variable ``SWIFT_EVENT_LOOP`` chooses the implementation: ``epoll`` (``swift.loop.epoll``,
the default) or ``eventlet``. Decision 0025 has the figures.
"""

from __future__ import annotations

import os
import select
import warnings
from collections.abc import Callable
from typing import Any, Unpack

import greenlet

from swift.base.calls import Ts
from swift.loop.base import DeadlineExceeded as DeadlineExceeded
from swift.loop.base import Killed as Killed
from swift.loop.base import Loop as Loop
from swift.loop.base import Timer as Timer
from swift.loop.base import loop as loop
from swift.loop.base import root_greenlet, set_factory
from swift.loop.epoll import EpollLoop
from swift.loop.primitives import Condition as Condition
from swift.loop.primitives import Event as Event
from swift.loop.primitives import Future as Future
from swift.loop.primitives import Queue as Queue
from swift.loop.primitives import Semaphore as Semaphore
from swift.loop.signals import on_signals as on_signals
from swift.loop.sockets import connect as connect
from swift.loop.sockets import handshake as handshake
from swift.loop.sockets import on_readable as on_readable
from swift.loop.sockets import wait_readable as wait_readable
from swift.loop.sockets import wait_writable as wait_writable
from swift.loop.tasks import Task as Task
from swift.loop.tasks import Timeout as Timeout
from swift.loop.tasks import bounded_map as bounded_map
from swift.loop.tasks import gather as gather
from swift.loop.tasks import in_green_thread as in_green_thread
from swift.loop.tasks import pause as pause
from swift.loop.tasks import sleep as sleep
from swift.loop.tasks import spawn as spawn
from swift.loop.tasks import spawn_after as spawn_after
from swift.loop.tasks import spawn_detached as spawn_detached
from swift.loop.threads import ThreadPool as ThreadPool
from swift.loop.threads import call_in_loop as call_in_loop

#: The environment variable that chooses the event loop.
VARIABLE = "SWIFT_EVENT_LOOP"


class EventletLoop(Loop):
    """The event loop of eventlet, through the public methods of its hub."""

    def __init__(self) -> None:
        super().__init__()
        os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
        with warnings.catch_warnings():
            # Its deprecation is known; decision 0025 says what follows from it.
            warnings.simplefilter("ignore")
            from eventlet import hubs
        # A new one also after a fork.
        hubs.use_hub()
        self._hub = hubs.get_hub()
        self._hub.ensure_greenlet()
        self.greenlet = self._hub.greenlet
        self.greenlet.parent = root_greenlet()
        self._reads, self._writes = self._hub.READ, self._hub.WRITE
        self._wake_hourly()

    def _wake_hourly(self) -> None:
        # The hub waits until its next timer, and the kernel takes at most 24 days.
        self._hub.schedule_call_global(3600.0, self._wake_hourly)

    def call_soon(self, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """See ``Loop``."""
        self._hub.schedule_call_global(0, self._call, function, args)

    def _call(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            function(*args)
        except BaseException:
            self.handle_error()

    def call_after_poll(self, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """See ``Loop``: calls that a call plans are made after the next poll."""
        self._hub.schedule_call_global(0, self.call_soon, function, *args)

    def call_later(self, seconds: float, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> Timer:
        """See ``Loop``."""
        return self._hub.schedule_call_global(seconds, self._call, function, args)

    def wait_for(self, fd: int, events: int, deadline: float | None) -> None:
        """See ``Loop``."""
        hub, current = self._hub, greenlet.getcurrent()
        kind = self._writes if events & select.EPOLLOUT else self._reads
        try:
            listener = hub.add(kind, fd, lambda _fd: self._call(current.switch, ()), current.throw, _ignore)
        except RuntimeError:
            raise RuntimeError(f"two green threads wait for descriptor {fd}")
        if deadline is not None:
            self.watch(current, deadline)
        try:
            self.switch()
        finally:
            if deadline is not None:
                self.unwatch(current)
            hub.remove(listener)

    def on_readable(self, fd: int, callback: Callable[[], None]) -> None:
        """See ``Loop``."""
        self._hub.add(self._reads, fd, lambda _fd: callback(), _ignore, _ignore)


def _ignore(*_args: Any) -> None:
    """Do nothing."""


LOOPS: dict[str, type[Loop]] = {"epoll": EpollLoop, "eventlet": EventletLoop}


def _make_loop() -> Loop:
    name = os.environ.get(VARIABLE) or "epoll"
    if name not in LOOPS:
        raise SystemExit(f"{VARIABLE}={name}: there is no such event loop; use {' or '.join(LOOPS)}")
    return LOOPS[name]()


set_factory(_make_loop)
