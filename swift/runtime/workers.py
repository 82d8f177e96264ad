"""Prefork workers: a master that only forks, watches and passes signals on (spec: cli-and-config.md §8).

SIGTERM and SIGINT end everything: workers stop accepting, finish what they serve, and are killed after the
grace. SIGHUP does the same without the kill. A worker that dies is replaced, slowly when it dies young.
Workers sit in numbered slots; a slot that is not wanted any more has its worker told to end. When the master
is killed the kernel tells the workers, so none is ever left behind.

SIGUSR1 has the master become a new image of itself (``renew``), which keeps its sockets and its pid.
The new image starts workers of its own and then tells the former ones, with SIGHUP, to accept no more and
to end when their last request is answered: nothing is refused or broken off meanwhile. A new image that
cannot start keeps the former workers (``adopt_previous``), and tries again when one of them ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swift.telemetry.log import Log

GRACE_S = 30.0
#: A worker that lives shorter than this is restarted only after a pause.
EARLY_EXIT_S = 1.0
_PR_SET_PDEATHSIG = 1
_SIGNALS = frozenset((signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD))
#: A worker of a former image that still serves a request after so long is ended.
STALE_S = 86400.0

#: A master that keeps former workers tries to be renewed this often once one of them has ended.
RETRY_S = 10.0

#: Runs in a worker process: gets the worker's index and a "please stop" subscription.
WorkerMain = Callable[[int], None]
#: Told the pids of all workers: replaces this image of the master by another, or returns when that cannot be.
Renew = Callable[[Sequence[int]], None]


@dataclass(frozen=True)
class ProcessRenewal:
    """Renewal of a master process, and the state inherited from its previous image."""

    renew: Renew = lambda _pids: None
    #: Workers of former images, which are to end when the new ones have begun.
    former: Sequence[int] = ()
    stale_s: float = STALE_S


def die_with_parent(sig: int = signal.SIGTERM) -> None:
    """Have the kernel send ``sig`` when the parent ends, however it ends (Linux).

    The parent is the *thread* that forked (prctl(2), PR_SET_PDEATHSIG): fork in one that lives as long as the
    process.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)


def adopt_previous(succession: ProcessRenewal, log: Log, *, on_hangup: Callable[[], None]) -> int:
    """Supervise the workers of the former image because this image cannot start; return the exit code.

    SIGUSR1 reloads again. The end of a worker, which cannot be replaced, does so too, every ``RETRY_S``.
    """
    return Master(
        lambda: (), lambda _slot: None, log, succession=succession, on_hangup=on_hangup, keeps_former=True
    ).run()


class Master:
    """Keeps a worker in every slot that ``slots`` returns, until a signal ends it."""

    def __init__(
        self,
        slots: Callable[[], Sequence[int]],
        main: WorkerMain,
        log: Log,
        *,
        grace_s: float = GRACE_S,
        succession: ProcessRenewal | None = None,
        on_ready: Callable[[], None] = lambda: None,
        on_hangup: Callable[[], None] = lambda: None,
        keeps_former: bool = False,
    ):
        """``on_ready`` is called when the first workers run, ``on_hangup`` when SIGHUP ends this server."""
        self._slots = slots
        self._main = main
        self._log = log
        self._grace_s = grace_s
        self._succession = succession or ProcessRenewal()
        self._former = set(self._succession.former)
        self._keeps_former = keeps_former
        self._former_count = len(self._former)
        self._retry_at = 0.0
        self._stale_at = time.monotonic() + self._succession.stale_s
        self._on_ready = on_ready
        self._on_hangup = on_hangup
        self._is_to_renew = False
        self._workers: dict[int, tuple[int, float]] = {}
        self._dismissed: set[int] = set()
        self._stop_signal = 0
        self._pause_until = 0.0
        self._mask: set[signal.Signals] | set[int] = set()

    def run(self) -> int:
        """Fork the workers and wait; returns the exit code."""
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        self._start_missing()
        if not self._keeps_former:
            self._signal_previous(signal.SIGHUP)
        self._on_ready()
        while not self._stop_signal:
            self._start_missing()
            self._wait(1.0)
            if self._keeps_former:
                self._retry_when_one_ended()
            elif self._former and time.monotonic() >= self._stale_at:
                self._signal_previous(signal.SIGKILL)
            if self._is_to_renew and not self._stop_signal:
                self._exec_new_image()
        self._signal_workers(signal.SIGTERM)
        if self._stop_signal == signal.SIGHUP:
            self._on_hangup()
        deadline = time.monotonic() + self._grace_s
        while self._has_workers and (self._stop_signal == signal.SIGHUP or time.monotonic() < deadline):
            self._wait(0.1)
        self._signal_workers(signal.SIGKILL)
        while self._has_workers:
            self._wait(0.1)
        return 0

    @property
    def _has_workers(self) -> bool:
        return bool(self._workers or self._former)

    def _exec_new_image(self) -> None:
        """Become a new image; on return that failed, and everything continues as before."""
        self._is_to_renew = False
        # A second request meanwhile must not end the image that is not ready for it.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        try:
            self._succession.renew([*self._workers, *self._former])
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            signal.signal(signal.SIGUSR1, signal.SIG_DFL)

    def _retry_when_one_ended(self) -> None:
        if len(self._former) < self._former_count and time.monotonic() >= self._retry_at:
            self._is_to_renew = True
            self._retry_at = time.monotonic() + RETRY_S

    def _wait(self, seconds: float) -> None:
        """Sleep until a signal comes; take note of it, and of children that ended."""
        info = signal.sigtimedwait(_SIGNALS, seconds)
        if info is not None and info.si_signo == signal.SIGUSR1:
            self._is_to_renew = True
        elif info is not None and info.si_signo != signal.SIGCHLD:
            self._stop_signal = info.si_signo
        while self._reap():
            continue

    def _start_missing(self) -> None:
        wanted = self._slots()
        self._stop_worker(set(wanted))
        busy = {index for index, _ in self._workers.values()}
        for index in wanted:
            if index in busy or self._stop_signal:
                continue
            if time.monotonic() < self._pause_until:
                return
            pid = os.fork()
            if pid == 0:
                self._become_worker(index)
            self._workers[pid] = (index, time.monotonic())

    def _stop_worker(self, wanted: set[int]) -> None:
        """Signal the workers of surplus slots to end."""
        for pid, (index, _) in self._workers.items():
            if index not in wanted and pid not in self._dismissed:
                self._dismissed.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

    def _become_worker(self, index: int) -> None:
        status = 1
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            die_with_parent()
            self._main(index)
            status = 0
        except Exception as error:
            self._log.exception("unexpected error; the worker ends", error)
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> bool:
        """Collect one ended child; False when there is none."""
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            self._workers.clear()
            self._former.clear()
            return False
        if not pid:
            return False
        self._former.discard(pid)
        index, born = self._workers.pop(pid, (-1, 0.0))
        if pid in self._dismissed:
            self._dismissed.discard(pid)
        elif index >= 0 and not self._stop_signal:
            self._log.error(f"worker {index} (pid {pid}) ended with status {status}; starting another")
            if time.monotonic() - born < EARLY_EXIT_S:
                self._pause_until = time.monotonic() + EARLY_EXIT_S
        return True

    def _signal_workers(self, sig: int) -> None:
        for pid in list(self._workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        self._signal_previous(sig)

    def _signal_previous(self, sig: int) -> None:
        for pid in self._former:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
