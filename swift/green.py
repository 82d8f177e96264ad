"""Green threads: the only file that knows eventlet, so that it can be exchanged here.

A process runs one event loop (the *hub*). Code that would block hands the loop over: ``sleep``, waiting
for a socket (``wait_readable``, ``wait_writable``), the small synchronisers below, or ``ThreadPool.call``
for system calls that may block. Deadlines are absolute ``time.monotonic()`` seconds; one sweep looks
after all waiting green threads, so a deadline costs a dictionary entry instead of a timer.

It refuses to know HTTP, disks or configuration.
"""

from __future__ import annotations

import _queue
import os
import select
import socket as _plain_socket
import sys
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

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

_threading = eventlet.patcher.original("threading")
_socket = eventlet.patcher.original("socket")

#: How often overdue waits are looked for; deadlines are late by at most this, seconds.
SWEEP_INTERVAL_S = 0.1

_ONESHOT = select.EPOLLONESHOT
_READABLE = select.EPOLLIN | select.EPOLLRDHUP | _ONESHOT
_WRITABLE = select.EPOLLOUT | _ONESHOT

#: The socket class that stays unpatched; everything here uses non-blocking plain sockets.
PlainSocket = _socket.socket
#: Blocks; for threads of a ``ThreadPool``.
blocking_getaddrinfo = _socket.getaddrinfo
_plain_sleep = time.sleep


class DeadlineExceeded(Exception):
    """A wait passed its deadline."""


class Killed(greenlet.GreenletExit):
    """Raised inside a green thread that another one ended."""


def patch() -> None:
    """Make the standard library cooperative; only the first line of an executable may call this."""
    eventlet.monkey_patch(os=False)


def use_hub() -> None:
    """Take our event loop for this process; a forked worker calls this to get its own."""
    _hubs.use_hub(_Hub)


def sleep(seconds: float = 0.0) -> None:
    """Let others run for at least ``seconds``."""
    _our_hub()
    eventlet.sleep(seconds)


def pause(seconds: float) -> None:
    """Sleep wherever this is called: a green thread lets others run, another thread just sleeps."""
    (eventlet.sleep if in_green_thread() else _plain_sleep)(seconds)


def in_green_thread() -> bool:
    """Whether the caller may wait for others of this loop."""
    parent = greenlet.getcurrent().parent
    # The parent of a green thread is the hub, whose parent is the first greenlet of the thread.
    return parent is not None and parent.parent is not None


# --- green threads ---------------------------------------------------------------------------------


class Task:
    """A running green thread."""

    __slots__ = ("_thread",)

    def __init__(self, thread: Any):
        self._thread = thread

    def wait(self) -> Any:
        """Its result; raises what it raised."""
        return self._thread.wait()

    def kill(self) -> None:
        """End it at its next switch; harmless when it has ended."""
        self._thread.kill(Killed)

    def on_exit(self, callback: Callable[[], None]) -> None:
        """Call back in the loop once it has ended."""
        self._thread.link(lambda _thread: callback())

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._thread.dead


def spawn(function: Callable[..., Any], *args: Any) -> Task:
    """Start a green thread whose result can be waited for."""
    _our_hub()
    return Task(eventlet.spawn(function, *args))


def spawn_detached(function: Callable[..., Any], *args: Any) -> None:
    """Start a green thread nobody waits for; it must handle its own errors."""
    _our_hub()
    eventlet.spawn_n(function, *args)


def spawn_after(seconds: float, function: Callable[..., Any], *args: Any) -> Task:
    """Start a green thread later; ``kill`` before then cancels it."""
    _our_hub()
    return Task(eventlet.spawn_after(seconds, function, *args))


def gather(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Run calls at the same time; their results in order. The first error is raised after all ended."""
    tasks = [spawn(call) for call in calls]
    results, failure = [], None
    for task in tasks:
        try:
            results.append(task.wait())
        except Exception as error:
            failure = failure or error
            results.append(None)
    if failure is not None:
        raise failure
    return results


class Timeout(eventlet.Timeout):
    """``with Timeout(seconds):`` raises ``DeadlineExceeded`` in the block when it takes longer.

    For whole operations; single socket waits take a deadline instead, which is cheaper.
    """

    def __init__(self, seconds: float | None):
        super().__init__(seconds, DeadlineExceeded(f"{seconds} s passed"))


class Event:
    """Something that happens once; any number of green threads may wait for it."""

    __slots__ = ("_waiters", "is_set")

    def __init__(self) -> None:
        self._waiters: list[Any] = []
        #: Whether it has happened.
        self.is_set = False

    def set(self) -> None:
        """Wake all who wait; later calls do nothing."""
        self.is_set = True
        waiters, self._waiters = self._waiters, []
        if waiters:
            _hubs.get_hub().schedule_call_global(0, self._wake, waiters)

    def _wake(self, waiters: list[Any]) -> None:
        try:
            while waiters:
                # One that was killed or timed out in between has left those who are parked.
                if (waiter := waiters.pop(0)) in _parked:
                    waiter.switch()
        finally:
            # What ends a green thread is raised here; the others must wake all the same.
            if waiters:
                _hubs.get_hub().schedule_call_global(0, self._wake, waiters)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is set; False when ``timeout_s`` passed first."""
        if self.is_set:
            return True
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        current = greenlet.getcurrent()
        while not self.is_set:
            self._waiters.append(current)
            try:
                _park(deadline)
            except DeadlineExceeded:
                return self.is_set
            finally:
                if current in self._waiters:
                    self._waiters.remove(current)
        return True


class Semaphore(_semaphore.Semaphore):
    """A counter of free places; a context manager."""


class Mailbox:
    """Values put by many green threads and taken by one."""

    __slots__ = ("_values", "_waiter")

    def __init__(self) -> None:
        self._values: deque[Any] = deque()
        self._waiter: Any = None

    def put(self, value: Any) -> None:
        """Leave a value; wakes the one that waits."""
        self._values.append(value)
        if self._waiter is not None:
            _hubs.get_hub().schedule_call_global(0, self._wake)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.switch()

    def get(self, deadline: float | None = None) -> Any:
        """The oldest value; raises ``DeadlineExceeded`` when none comes in time."""
        while not self._values:
            self._waiter = greenlet.getcurrent()
            try:
                _park(deadline)
            finally:
                self._waiter = None
        return self._values.popleft()


# --- waiting for sockets ---------------------------------------------------------------------------


class _Sweeper:
    """Throws ``DeadlineExceeded`` into green threads whose wait is overdue."""

    def __init__(self) -> None:
        self.waiting: dict[Any, float] = {}
        self._pid = 0

    def watch(self, current: Any, deadline: float) -> None:
        self.waiting[current] = deadline
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self.waiting = {current: deadline}
            _hubs.get_hub().schedule_call_global(SWEEP_INTERVAL_S, self._sweep)

    def _sweep(self) -> None:
        now = time.monotonic()
        try:
            for waiter in [w for w, deadline in self.waiting.items() if deadline <= now]:
                if self.waiting.pop(waiter, None) is not None:
                    waiter.throw(DeadlineExceeded("no progress before the deadline"))
        finally:
            # What a green thread does not catch comes out here; sweeping must go on all the same.
            if self.waiting:
                _hubs.get_hub().schedule_call_global(SWEEP_INTERVAL_S, self._sweep)
            else:
                self._pid = 0


_sweeper = _Sweeper()
#: Green threads that wait for an event rather than a socket.
_parked: set[Any] = set()


def _park(deadline: float | None) -> None:
    """Sleep until somebody switches here; raises ``DeadlineExceeded``.

    A wake-up may be stale, meant for an earlier sleep: callers look again at what they wait for.
    """
    current = greenlet.getcurrent()
    _parked.add(current)
    try:
        if deadline is None:
            _hubs.get_hub().switch()
        else:
            _sweeper.watch(current, deadline)
            try:
                _hubs.get_hub().switch()
            finally:
                _sweeper.waiting.pop(current, None)
    finally:
        _parked.discard(current)


def _ignore(*_args: Any) -> None:
    """The hub tells us that a descriptor was closed under it; the next system call says so too."""


class _Hub(_epolls.Hub):  # type: ignore[misc]
    """eventlet's epoll loop with a short way for our own waits.

    A wait arms its descriptor for one event (EPOLLONESHOT): one system call instead of two, and no
    listener objects. What eventlet registers itself (sockets of foreign libraries) works as before. One
    green thread at a time may wait for a descriptor.
    """

    @staticmethod
    def is_available() -> bool:
        """epoll is there on every system that this project runs on; eventlet asks."""
        return True

    def __init__(self, clock: Any = None) -> None:
        super().__init__(clock)
        self.running = self.stopping = False
        self._waiters: dict[int, Any] = {}

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
            _sweeper.watch(current, deadline)
        try:
            self.switch()
        finally:
            if deadline is not None:
                _sweeper.waiting.pop(current, None)
            if waiters.get(fd) is current:
                del waiters[fd]
                self._disarm(fd)

    def _disarm(self, fd: int) -> None:
        try:
            self.poll.modify(fd, _ONESHOT)
        except OSError:
            # Closed meanwhile: the kernel has forgotten it.
            return

    def run(self, *_args: Any, **_kwargs: Any) -> None:
        """The loop: due timers, then descriptors, until told to stop."""
        if self.running:
            raise RuntimeError("the event loop runs already")
        self.running, self.stopping = True, False
        clock, timers = self.clock, self.timers
        try:
            while not self.stopping:
                while self.closed:
                    self.close_one()
                self.prepare_timers()
                if timers and timers[0][0] <= clock():
                    self.fire_timers(clock())
                    self.prepare_timers()
                self.wait(max(0.0, timers[0][0] - clock()) if timers else self.default_sleep())
            self.timers_canceled = 0
            timers.clear()
            self.next_timers.clear()
        finally:
            self.running = self.stopping = False

    def wait(self, seconds: float | None = None) -> None:
        """Wait for descriptors and wake those who wait for them."""
        try:
            ready = self.poll.poll(seconds)
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
        """What eventlet's own loop does for the listeners of its ``add``."""
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


def _our_hub() -> _Hub:
    """This thread's loop, ours from its first use on."""
    hub = _hubs.get_hub()
    if not isinstance(hub, _Hub):
        if hub.running:
            raise RuntimeError("another event loop runs already; call green.use_hub() first")
        use_hub()
        hub = _hubs.get_hub()
    return hub


def wait_readable(fd: int, deadline: float | None = None) -> None:
    """Wait until ``fd`` has something to read; raises ``DeadlineExceeded``.

    A wake-up may be stale: callers try their system call and wait again.
    """
    _our_hub().wait_for(fd, _READABLE, deadline)


def wait_writable(fd: int, deadline: float | None = None) -> None:
    """Wait until ``fd`` takes more bytes; like ``wait_readable``."""
    _our_hub().wait_for(fd, _WRITABLE, deadline)


def connect(ip: str, port: int, deadline: float | None) -> Any:
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


def listen(ip: str, port: int, backlog: int, *, keep_idle_s: int = 0) -> Any:
    """A listening non-blocking TCP socket; raises OSError when the address is taken.

    With ``keep_idle_s`` the kernel probes connections that were silent for so long.
    """
    family = _plain_socket.AF_INET6 if ":" in ip else _plain_socket.AF_INET
    sock = PlainSocket(family, _plain_socket.SOCK_STREAM)
    try:
        sock.setsockopt(_plain_socket.SOL_SOCKET, _plain_socket.SO_REUSEADDR, 1)
        if keep_idle_s:
            sock.setsockopt(_plain_socket.SOL_SOCKET, _plain_socket.SO_KEEPALIVE, 1)
            sock.setsockopt(_plain_socket.IPPROTO_TCP, _plain_socket.TCP_KEEPIDLE, keep_idle_s)
        sock.bind((ip, port))
        sock.listen(backlog)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


# --- system calls that may block --------------------------------------------------------------------


class _Completions:
    """Brings results of operating system threads back into the loop through one eventfd."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.done: deque[tuple[Any, bool, Any]] = deque()
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        _our_hub().add("read", self.fd, self._deliver, _ignore, _ignore)

    def post(self, waiter: Any, failed: bool, value: Any) -> None:
        """Called in a worker thread."""
        self.done.append((waiter, failed, value))
        os.eventfd_write(self.fd, 1)

    def _deliver(self, _fd: int) -> None:
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            return
        while self.done:
            waiter, failed, value = self.done.popleft()
            waiter.pool.thread_is_free()
            try:
                if failed:
                    waiter.throw(value)
                else:
                    waiter.switch(value)
            except Exception:
                # A green thread ended by an error nobody caught. Let through, it would make the hub
                # forget this descriptor, and no call would ever return again.
                traceback.print_exc()


_completions: _Completions | None = None


def _current_completions() -> _Completions:
    global _completions
    if _completions is None or _completions.pid != os.getpid():
        _completions = _Completions()
    return _completions


class ThreadPool:
    """A few operating system threads for calls that may block, e.g. one pool per disk.

    Threads start at first use and end with the process. A call cannot be interrupted: a green thread
    that is killed while it waits leaves its call running to the end.
    """

    def __init__(self, size: int, name: str = "pool"):
        self.size = size
        self.name = name
        self._pid = 0
        self._jobs: Any = None
        self._started = 0
        self._idle = 0

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run ``function(*args)`` in a thread while other green threads go on; its result or error."""
        completions = _current_completions()
        if self._pid != os.getpid():
            self._pid, self._jobs, self._started, self._idle = os.getpid(), _queue.SimpleQueue(), 0, 0
        if self._idle > 0:
            self._idle -= 1
        elif self._started < self.size:
            self._started += 1
            thread = _threading.Thread(target=self._work, args=(self._jobs,), daemon=True, name=self.name)
            thread.start()
        handover = _Handover(self)
        self._jobs.put((completions, handover, function, args))
        try:
            return handover.wait()
        finally:
            handover.abandon()

    def thread_is_free(self) -> None:
        """A thread finished its call; the loop counts, so that no lock is needed."""
        self._idle += 1

    def _work(self, jobs: Any) -> None:
        while True:
            completions, handover, function, args = jobs.get()
            try:
                value, failed = function(*args), False
            except BaseException as error:
                value, failed = error, True
            completions.post(handover, failed, value)
            del completions, handover, function, args, value

    def __repr__(self) -> str:
        return f"<ThreadPool {self.name} {self._started}/{self.size}>"


class _Handover:
    """Where one green thread waits for one threaded call; late results for abandoned ones vanish."""

    __slots__ = ("pool", "_waiter")

    def __init__(self, pool: ThreadPool) -> None:
        self.pool = pool
        self._waiter: Any = None

    def wait(self) -> Any:
        self._waiter = greenlet.getcurrent()
        return _hubs.get_hub().switch()

    def abandon(self) -> None:
        self._waiter = None

    def switch(self, value: Any) -> None:
        if self._waiter is not None:
            self._waiter.switch(value)

    def throw(self, error: BaseException) -> None:
        if self._waiter is not None:
            self._waiter.throw(error)
