"""Places calls that may block on a disk: on the event loop while they are quick, otherwise in threads.

Handing a call to a thread costs two switches and, worse, lets two threads of one interpreter take turns
at every system call (decision 0004 has figures). A process that serves one
device has no other disk's requests to protect, so calls run where they are made as long as the device
answers quickly. When it does not, or when the process serves several devices, each device gets a few
threads of its own, so that a slow disk delays only its own requests.

Long work (hashing a partition, the batches of a large body) goes to ``threads`` in any case.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Unpack, cast

from swift.base.calls import Attempt, T, Ts, never
from swift.base.calls import Run as Run
from swift.base.calls import run_inline as run_inline
from swift.green import ThreadPool
from swift.platform.waiting import waited_s


class RunQueueDelay:
    """Time that a thread waited for a CPU. For the thread that calls first; ``path`` is the kernel's file."""

    def __init__(self, path: str = "/proc/thread-self/schedstat") -> None:
        self._path = path
        self._fd: int | None = None
        self._pid = 0

    def waited_s(self) -> float:
        """Return the seconds waited since the thread began; only differences have a meaning."""
        if self._pid != os.getpid():
            self._open()
        if self._fd is None:
            return 0.0
        try:
            return int(os.pread(self._fd, 64, 0).split()[1]) * 1e-9
        except (OSError, IndexError, ValueError):
            return 0.0

    def _open(self) -> None:
        self._pid = os.getpid()
        self._fd = None
        try:
            # It lives as long as the process, like its thread.
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return

    def __repr__(self) -> str:
        return f"<RunQueue {self.waited_s():.3f} s>"


#: One call that takes this long is enough to be doubted, and another one to leave the event loop.
STALL_S = 0.25
#: Seconds for which a device is doubted, and for which a slow one stays in threads.
PENALTY_S = 10.0
#: The average follows the last dozens of calls.
_AVERAGE_WEIGHT = 1 / 32


class InlineCalls:
    """The ``Run`` of the only device of a process; ``threads`` takes over while the device is slow.

    A call may also take long because the process had no CPU. Asking the kernel about that costs as much as a
    system call, so it is asked only for ten seconds after calls began to take long.
    """

    #: Calls that take longer than this on average belong in threads, seconds.
    average_max_s = 0.01

    def __init__(
        self,
        threads: Run,
        monotonic: Callable[[], float] = time.monotonic,
        queued_s: Callable[[], float] | None = None,
    ):
        self._threads = threads
        self._monotonic = monotonic
        self._queued_s = RunQueueDelay().waited_s if queued_s is None else queued_s
        self._average_s = 0.0
        self._slow_until = 0.0
        self._doubted_until = 0.0

    def __call__(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Run it; raises what it raises."""
        started = self._monotonic()
        if started < self._slow_until:
            return self._threads(function, *args)
        doubted = started < self._doubted_until
        others = waited_s() + (self._queued_s() if doubted else 0.0)
        try:
            return function(*args)
        finally:
            # What it waited for a CPU or let other green threads run is no fault of the device.
            others = waited_s() + (self._queued_s() if doubted else 0.0) - others
            self._record_duration(self._monotonic() - started - others, started, doubted)

    def _record_duration(self, seconds: float, started: float, doubted: bool) -> None:
        self._average_s += (seconds - self._average_s) * _AVERAGE_WEIGHT
        if self._average_s > self.average_max_s or seconds > STALL_S:
            self._average_s = 0.0
            until = started + seconds + PENALTY_S
            if doubted:
                self._slow_until = max(self._slow_until, until)
            else:
                self._doubted_until = until

    def stop_running_inline(self) -> None:
        """Run all further calls in threads, because the process has more devices now."""
        self._slow_until = math.inf

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._average_s * 1e3:.2f} ms>"


class MemoryCalls(InlineCalls):
    """The ``Attempt`` of calls that answer from memory; it makes none while they take long.

    Memory that is mapped from a file may still have to be read. Such calls hold up other devices as well.
    """

    average_max_s = 0.005

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, queued_s: Callable[[], float] | None = None
    ):
        # The called function may return None.
        super().__init__(cast(Run, never), monotonic, queued_s)


class DiskThreadPools:
    """Thread pools of the devices of one process.

    With 0 ``threads_per_disk`` everything runs where it is called. ``quick`` lets a single device be
    called on the event loop while it answers quickly.
    """

    def __init__(self, threads_per_disk: int = 4, *, quick: bool = False):
        self._size = threads_per_disk
        self._quick = quick
        self._threads: dict[tuple[str, str], Run] = {}
        self._runs: dict[str, Run] = {}
        self._attempts: dict[str, Attempt] = {}
        self._favoured: InlineCalls | None = None

    def run(self, device: str) -> Run:
        """Return the ``Run`` for short calls to a device."""
        run = self._runs.get(device)
        if run is None:
            run = self._runs[device] = self._new_run(device)
        return run

    def _new_run(self, device: str) -> Run:
        threads = self.threads(device)
        if not self._quick or not self._size:
            return threads
        if not self._runs:
            self._favoured = InlineCalls(threads)
            return self._favoured
        if self._favoured is not None:
            self._favoured.stop_running_inline()
        return threads

    def attempt(self, device: str) -> Attempt:
        """Return the ``Attempt`` of calls that answer from memory."""
        attempt = self._attempts.get(device)
        if attempt is None:
            attempt = self._attempts[device] = MemoryCalls() if self._size else run_inline
        return attempt

    def threads(self, device: str, purpose: str = "") -> Run:
        """Return the ``Run`` for long calls; those of a ``purpose`` have threads of their own."""
        run = self._threads.get((device, purpose))
        if run is None:
            name = f"disk-{device} {purpose}".strip()
            run = ThreadPool(self._size, name).call if self._size else run_inline
            self._threads[device, purpose] = run
        return run
