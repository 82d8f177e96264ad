"""Green threads: the only file that knows eventlet, so that it can be exchanged here.

A process runs one event loop (the *hub*). Code that would block hands the loop over: ``sleep``, waiting
for a socket (``wait_readable``, ``wait_writable``), an ``Event`` or ``Mailbox``, or ``Handover.wait`` for the
result of another operating system thread (``platform.threads``). Deadlines are absolute
``time.monotonic()`` seconds; one sweep looks after all waiting green threads, so a deadline costs a
dictionary entry instead of a timer.

``swift.loop`` has what waits are made of, and the table of who may switch to whom; this module is what others
import, with the loop itself. It refuses to know HTTP, disks or configuration.
"""

from __future__ import annotations

import logging
import math
import os
import select
import socket as _plain_socket
import sys
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Generic, Unpack

import greenlet

with warnings.catch_warnings():
    # Its end of life upstream is known and the reason for this file.
    warnings.simplefilter("ignore")
    # Its resolver of names weighs 11 MiB in every process; ``cluster.hosts`` asks the system's in a thread.
    os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
    import eventlet
    import eventlet.patcher
from eventlet import hubs as _hubs
from eventlet import semaphore as _semaphore
from eventlet.hubs import epolls as _epolls

from swift.base.calls import Call, T, Ts
from swift.loop import current as loops
from swift.loop.current import DeadlineExceeded as DeadlineExceeded
from swift.loop.primitives import Event as Event
from swift.loop.primitives import Handover as Handover
from swift.loop.primitives import Mailbox as Mailbox
from swift.loop.sockets import ONESHOT
from swift.loop.sockets import handshake as handshake
from swift.loop.sockets import on_readable as on_readable
from swift.loop.sockets import wait_readable as wait_readable
from swift.loop.sockets import wait_writable as wait_writable

_threading = eventlet.patcher.original("threading")
_socket = eventlet.patcher.original("socket")

#: How often overdue waits are looked for; deadlines are late by at most this, seconds.
SWEEP_INTERVAL_S = 0.1

#: How many events of descriptors are taken from the kernel at once.
_EVENTS_MAX = 128
#: How often in a row calls that were made ready by others run before descriptors are looked at.
_READY_ROUNDS = 4
#: How many green threads without work are kept for the next one.
_IDLE_MAX = 32

#: The socket and thread classes that stay unpatched; sockets here are non-blocking. What such a one accepts
#: is plain too: the class of the standard library's own module would make it cooperative.
PlainSocket = _socket.socket
PlainThread = _threading.Thread
PlainCondition = _threading.Condition
#: For what green threads and other threads share; its holder may take it again. Of a patched lock a waiter in
#: another thread would never be told that it is free.
PlainLock = _threading.RLock
#: Blocks; for threads of a ``ThreadPool``.
blocking_getaddrinfo = _socket.getaddrinfo
_plain_sleep = time.sleep


class Killed(greenlet.GreenletExit):
    """Raised inside a green thread that another one ended."""


def patch() -> None:
    """Make the standard library cooperative; only the first line of an executable may call this."""
    # A patched subprocess raises a TimeoutExpired that no ``except subprocess.TimeoutExpired`` matches;
    # programs are run by ``runtime.childprocess``, which does not block the loop.
    eventlet.monkey_patch(os=False, subprocess=False)
    # Threads of devices write log lines too, so the locks of handlers, and the one of all, are plain.
    vars(logging).update(threading=_threading, _lock=PlainLock())
    if logging.lastResort is not None:
        logging.lastResort.createLock()


def use_hub() -> None:
    """Take our event loop for this process; a forked worker calls this to get its own."""
    _hubs.use_hub(_Hub)
    loops.use(_hubs.get_hub())


def sleep(seconds: float = 0.0) -> None:
    """Let others run for at least ``seconds``; with 0 all who can go on now, waiting for whatever."""
    hub = _our_hub()
    if seconds > 0.0:
        eventlet.sleep(seconds)
    else:
        hub.after_turn.append((_wake, (greenlet.getcurrent(),)))
        hub.park(None)


def pause(seconds: float) -> None:
    """Sleep wherever this is called: a green thread lets others run, another thread just sleeps."""
    (sleep if in_green_thread() else _plain_sleep)(seconds)


def in_green_thread() -> bool:
    """Whether the caller may wait for others of this loop."""
    parent = greenlet.getcurrent().parent
    # The parent of a green thread is the hub, whose parent is the first greenlet of the thread.
    return parent is not None and parent.parent is not None


# --- green threads ---------------------------------------------------------------------------------


class _Failure:
    """An error as a green thread's result: eventlet prints errors besides raising them to the waiter."""

    __slots__ = ("error", "is_taken")

    def __init__(self, error: Exception):
        self.error = error
        self.is_taken = False

    def __del__(self) -> None:
        if not self.is_taken:
            traceback.print_exception(self.error)


def _caught(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T | _Failure:
    try:
        return function(*args)
    except Exception as error:
        return _Failure(error)


class Task(Generic[T]):
    """A running green thread. An error that neither ``wait`` nor ``kill`` took is printed."""

    __slots__ = ("_thread",)

    def __init__(self, thread: Any):
        self._thread = thread

    def wait(self) -> T:
        """Its result; raises what it raised."""
        result = self._thread.wait()
        if type(result) is not _Failure:
            return result
        result.is_taken = True
        raise result.error

    def kill(self) -> None:
        """End it at its next switch; its error is dropped."""
        if self._thread.dead:
            with suppress(Exception, Killed):
                self.wait()
            return
        # All three, for one that has not begun yet.
        self._thread.kill(Killed, Killed(), None)

    def on_exit(self, callback: Callable[[], None]) -> None:
        """Call back in the loop once it has ended."""
        self._thread.link(lambda _thread: callback())

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._thread.dead


def spawn(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> Task[T]:
    """Start a green thread whose result can be waited for."""
    _our_hub()
    return Task(eventlet.spawn(_caught, function, *args))


def spawn_detached(function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
    """Start a green thread nobody waits for; it must handle its own errors.

    One that has ended is used again: a new one costs fresh memory for its stack.
    """
    hub = _our_hub()
    worker = hub.idle.pop() if hub.idle else greenlet.greenlet(_work, hub.greenlet)
    hub.ready.append((worker.switch, (function, args)))


def _work(function: Callable[..., object], args: tuple[object, ...]) -> None:
    """The life of a detached green thread: one call after the other, until one fails."""
    hub, current = _our_hub(), greenlet.getcurrent()
    while True:
        function(*args)
        del function, args
        if len(hub.idle) >= _IDLE_MAX:
            return
        hub.idle.append(current)
        function, args = hub.greenlet.switch()


def spawn_after(seconds: float, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> Task[T]:
    """Start a green thread later; ``kill`` before then cancels it."""
    _our_hub()
    return Task(eventlet.spawn_after(seconds, function, *args))


def gather(calls: Iterable[Callable[[], T]]) -> list[T]:
    """Run calls at the same time; their results in order. The first error is raised after all ended."""
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


class Timeout(eventlet.Timeout):
    """``with Timeout(seconds):`` raises ``DeadlineExceeded`` in the block when it takes longer.

    For whole operations; single socket waits take a deadline instead, which is cheaper.
    """

    def __init__(self, seconds: float | None):
        super().__init__(seconds, DeadlineExceeded(f"{seconds} s passed"))


class Semaphore(_semaphore.Semaphore):
    """A counter of free places; a context manager."""


#: Green threads that wait for an event rather than a socket.
_parked: set[greenlet.greenlet] = set()


def _wake(waiter: greenlet.greenlet) -> None:
    # One that was killed or timed out in between has left those who are parked.
    if waiter in _parked:
        waiter.switch()


# --- the loop ---------------------------------------------------------------------------------------


class _Hub(_epolls.Hub):
    """eventlet's epoll loop with a short way for our own waits.

    A wait arms its descriptor for one event (EPOLLONESHOT): one system call instead of two, and no
    listener objects. What is to run at once is a pair in ``ready`` instead of a timer. What eventlet
    registers itself (sockets of foreign libraries) works as before. One green thread at a time may wait for a
    descriptor.
    """

    @staticmethod
    def is_available() -> bool:
        """epoll is there on every system that this project runs on; eventlet asks."""
        return True

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        super().__init__(clock)
        self.running = self.stopping = False
        #: Calls to make in the next turn.
        self.ready: deque[Call] = deque()
        #: Calls to make in the turn after the next look at the descriptors.
        self.after_turn: deque[Call] = deque()
        #: Detached green threads that wait for work.
        self.idle: list[greenlet.greenlet] = []
        self._waiters: dict[int, greenlet.greenlet] = {}
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._deadlines: dict[greenlet.greenlet, float] = {}
        #: When deadlines are looked at next; infinite when nobody has one.
        self._sweep_at_s = math.inf

    def switch(self) -> Any:
        """Go on with the loop until somebody switches back here."""
        loop = self.greenlet
        if greenlet.getcurrent().parent is loop and not loop.dead:
            return loop.switch()
        return super().switch()

    def park(self, deadline: float | None) -> None:
        """Sleep until somebody switches here; raises ``DeadlineExceeded``.

        A wake-up may be stale, meant for an earlier sleep: callers look again at what they wait for.
        """
        current = greenlet.getcurrent()
        _parked.add(current)
        if deadline is not None:
            self._watch(current, deadline)
        try:
            self.switch()
        finally:
            _parked.discard(current)
            if deadline is not None:
                self._deadlines.pop(current, None)

    def wake(self, waiter: greenlet.greenlet) -> None:
        """See ``Loop``."""
        self.ready.append((_wake, (waiter,)))

    def _watch(self, current: greenlet.greenlet, deadline: float) -> None:
        """Have ``DeadlineExceeded`` thrown into a green thread when it sleeps for too long."""
        self._deadlines[current] = deadline
        if deadline < self._sweep_at_s:
            self._sweep_before(deadline, time.monotonic())

    def _sweep_before(self, deadline: float, now: float) -> None:
        """Look at deadlines when this one is due, but not all the time when many are."""
        self._sweep_at_s = max(deadline, now + SWEEP_INTERVAL_S)
        self.schedule_call_global(self._sweep_at_s - now, self._sweep)

    def _sweep(self) -> None:
        now, waiting = time.monotonic(), self._deadlines
        if now < self._sweep_at_s:
            # An earlier deadline came after this look was planned, and has been looked at since.
            return
        for waiter in [waiter for waiter, deadline in waiting.items() if deadline <= now]:
            self.ready.append((self._expire, (waiter, now)))
        self._sweep_at_s = math.inf
        if waiting:
            self._sweep_before(min(waiting.values()), now)

    def _expire(self, waiter: greenlet.greenlet, now: float) -> None:
        # It may have been woken in between, and sleep again.
        if self._deadlines.get(waiter, now + 1.0) <= now:
            del self._deadlines[waiter]
            waiter.throw(DeadlineExceeded("no progress before the deadline"))

    def on_readable(self, fd: int, callback: Callable[[], None]) -> None:
        """Call back in the loop whenever ``fd`` has something to read."""
        self._callbacks[fd] = callback
        self.poll.register(fd, select.EPOLLIN)

    def wait_for(self, fd: int, events: int, deadline: float | None) -> None:
        """Sleep until one of ``events`` happens on ``fd``; a wake-up may be stale."""
        waiters, current = self._waiters, greenlet.getcurrent()
        if fd in waiters:
            raise RuntimeError(f"two green threads wait for descriptor {fd}")
        try:
            self.poll.modify(fd, events)
        except FileNotFoundError:
            self.poll.register(fd, events)
        waiters[fd] = current
        if deadline is not None:
            self._watch(current, deadline)
        try:
            self.switch()
        finally:
            if deadline is not None:
                self._deadlines.pop(current, None)
            if waiters.get(fd) is current:
                del waiters[fd]
                self._disarm(fd)

    def _disarm(self, fd: int) -> None:
        try:
            self.poll.modify(fd, ONESHOT)
        except OSError:
            # Closed meanwhile: the kernel has forgotten it.
            return

    def run(self, *_args: object, **_kwargs: object) -> None:
        """The loop: due timers, what was made ready, then descriptors, until told to stop."""
        if self.running:
            raise RuntimeError("the event loop runs already")
        self.running, self.stopping = True, False
        try:
            while not self.stopping:
                while self.closed:
                    self.close_one()
                if self.next_timers:
                    self.prepare_timers()
                if self.timers and self.timers[0][0] <= self.clock():
                    self.fire_timers(self.clock())
                if self.after_turn:
                    self.ready.extend(self.after_turn)
                    self.after_turn.clear()
                if self.ready:
                    self._run_ready()
                self.wait(self._until_next())
            self.timers_canceled = 0
            self.timers.clear()
            self.next_timers.clear()
            self.ready.clear()
            self.after_turn.clear()
            self._sweep_at_s = math.inf
        finally:
            self.running = self.stopping = False

    def _run_ready(self) -> None:
        ready = self.ready
        for _round in range(_READY_ROUNDS):
            for _place in range(len(ready)):
                function, args = ready.popleft()
                try:
                    function(*args)
                except self.SYSTEM_EXCEPTIONS:
                    raise
                except BaseException:
                    self.squelch_generic_exception(sys.exc_info())
            if not ready:
                return

    def _until_next(self) -> float:
        """Seconds for which nothing is to be done but for descriptors."""
        if self.ready or self.after_turn:
            return 0.0
        if self.next_timers:
            self.prepare_timers()
        return max(0.0, self.timers[0][0] - self.clock()) if self.timers else self.default_sleep()

    def wait(self, seconds: float | None = None) -> None:
        """Wait for descriptors and wake those who wait for them."""
        try:
            ready = self.poll.poll(seconds, _EVENTS_MAX)
        except InterruptedError:
            return
        waiters, foreign = self._waiters, []
        for fd, event in ready:
            waiter = waiters.pop(fd, None)
            if waiter is None:
                foreign.append((fd, event))
                continue
            try:
                waiter.switch()
            except self.SYSTEM_EXCEPTIONS:
                raise
            except BaseException:
                self.squelch_generic_exception(sys.exc_info())
        for fd, event in foreign:
            self._call_listeners(fd, event)

    def _call_listeners(self, fd: int, event: int) -> None:
        """What eventlet's own loop does for the listeners of its ``add``, and our callbacks."""
        callback = self._callbacks.get(fd)
        if callback is not None:
            callback()
            return
        found = []
        if event & (self.READ_MASK | self.EXC_MASK):
            found.append(self.listeners[self.READ].get(fd))
        if event & (self.WRITE_MASK | self.EXC_MASK):
            found.append(self.listeners[self.WRITE].get(fd))
        for listener in found:
            if listener is None:
                continue
            try:
                listener.cb(fd)
            except self.SYSTEM_EXCEPTIONS:
                raise
            except BaseException:
                self.squelch_exception(fd, sys.exc_info())


def _begin() -> _Hub:
    """The loop of a thread that has none of ours yet."""
    found = _hubs.get_hub()
    if not isinstance(found, _Hub):
        if found.running:
            raise RuntimeError("another event loop runs already; call green.use_hub() first")
        _hubs.use_hub(_Hub)
        found = _hubs.get_hub()
    return found


def _our_hub() -> _Hub:
    return loops.loop()  # type: ignore[return-value]


loops.begin_with(_begin)


# --- sockets ----------------------------------------------------------------------------------------


def connect(ip: str, port: int, deadline: float | None) -> _plain_socket.socket:
    """A connected non-blocking TCP socket; raises OSError or ``DeadlineExceeded``."""
    family = _plain_socket.AF_INET6 if ":" in ip else _plain_socket.AF_INET
    sock = PlainSocket(family, _plain_socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(_plain_socket.IPPROTO_TCP, _plain_socket.TCP_NODELAY, 1)
        try:
            sock.connect((ip, port))
        except BlockingIOError:
            wait_writable(sock.fileno(), deadline)
            code = sock.getsockopt(_plain_socket.SOL_SOCKET, _plain_socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock
