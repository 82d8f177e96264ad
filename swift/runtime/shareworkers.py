"""Worker processes of a daemon's pass: each does one share, reports its progress, and ends.

A process per share and pass gives its memory back, and a share whose device hangs or whose worker is killed
delays no other worker: its result is missing from this pass and tried again in the next. A worker that says
nothing any more is killed; one that not even that ends is left behind, and its share left out, until it has
ended. The parent never runs an event loop, because a forked child would share it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from swift.runtime.sharerun import ShareResult
from swift.runtime.stop import StopRequest
from swift.runtime.workers import GRACE_S, die_with_parent
from swift.telemetry.log import Log

#: A hanging worker reports that itself; one without reports for so many times as long is killed.
SILENCE_FACTOR = 1.5

#: Takes what has come of a share so far.
ReportProgress = Callable[[ShareResult], None]
#: Runs in the child: does a share and reports at intervals; returns None if it could not be ended.
ShareWork = Callable[[str, ReportProgress], ShareResult | None]


class ShareWorkers:
    """The worker processes of one daemon task, from pass to pass."""

    def __init__(self, log: Log, *, grace_s: float = GRACE_S):
        self._log = log
        self._grace_s = grace_s
        self._running: dict[int, _Child] = {}
        #: Killed, and not ended for all that: by share.
        self._left_behind: dict[str, _Child] = {}

    @property
    def are_running(self) -> bool:
        """True if a pass has workers at this moment."""
        return bool(self._running)

    def run(
        self,
        shares: Sequence[str],
        work: ShareWork,
        limit: int,
        stop: StopRequest,
        results: dict[str, ShareResult],
        tell: Callable[[str, ShareResult], None],
        stall_s: float,
    ) -> Iterator[None]:
        """Do every share in a process of its own, ``limit`` at a time; the results of those that ended well.

        It goes on with every step of the iterator. When ``stop`` is requested no further one is started, and
        the running ones are told; who does not end in time is killed.
        """
        waiting = self._startable(shares)
        kill_at: float | None = None
        while self._running or (waiting and not stop.requested):
            while waiting and len(self._running) < limit and not stop.requested:
                child = _fork(waiting.pop(0), work, self._log)
                self._running[child.pid] = child
            for child in list(self._running.values()):
                self._monitor(child, results, tell, stall_s)
            if stop.requested and kill_at is None:
                kill_at = time.monotonic() + self._grace_s
                _signal(self._running, signal.SIGTERM)
            elif kill_at is not None and time.monotonic() >= kill_at:
                _signal(self._running, signal.SIGKILL)
            if self._running:
                yield

    def _monitor(
        self,
        child: _Child,
        results: dict[str, ShareResult],
        tell: Callable[[str, ShareResult], None],
        stall_s: float,
    ) -> None:
        has_ended = child.has_ended()
        latest_report = child.latest_report()
        if has_ended:
            del self._running[child.pid]
            child.close(self._log)
            if child.result is not None:
                results[child.share] = child.result
        elif latest_report is not None:
            tell(child.share, latest_report)
        elif stall_s and time.monotonic() - child.reported_s > stall_s * SILENCE_FACTOR:
            self._log.error(f"ERROR worker for {child.share} (pid {child.pid}) is unresponsive; it is killed")
            del self._running[child.pid]
            self._left_behind[child.share] = child
            _signal([child.pid], signal.SIGKILL)

    def _startable(self, shares: Sequence[str]) -> list[str]:
        for share, child in list(self._left_behind.items()):
            if child.has_ended():
                child.close(self._log)
                del self._left_behind[share]
            elif share in shares:
                self._log.error(f"ERROR {share} is skipped: its earlier pass still hangs")
        return [share for share in shares if share not in self._left_behind]


class _Child:
    """A running worker; its reports are lines of a file in memory, the last one is the result."""

    def __init__(self, pid: int, share: str, fd: int):
        self.pid = pid
        self.share = share
        self.result: ShareResult | None = None
        #: Monotonic seconds of its last report.
        self.reported_s = time.monotonic()
        self._fd = fd
        self._read = 0
        self._status: int | None = None

    def has_ended(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == self.pid:
                self._status = status
        return self._status is not None

    def latest_report(self) -> ShareResult | None:
        """Return the child's last report if it is new and not the result."""
        size = os.fstat(self._fd).st_size
        if size == self._read:
            return None
        lines = os.pread(self._fd, size - self._read, self._read).rpartition(b"\n")[0]
        if not lines:
            return None
        self._read += len(lines) + 1
        self.reported_s = time.monotonic()
        value = json.loads(lines.rpartition(b"\n")[2])
        said = ShareResult(**value["result"])
        if not value["is_last"]:
            return said
        self.result = said
        return None

    def close(self, log: Log) -> None:
        """Reap the child; its report counts only after a successful exit."""
        os.close(self._fd)
        if self._status:
            code = os.waitstatus_to_exitcode(self._status)
            log.error(f"worker for {self.share} (pid {self.pid}) ended with status {code}")
            self.result = None


def _fork(share: str, work: ShareWork, log: Log) -> _Child:
    fd = os.memfd_create(f"result-{share}", os.MFD_CLOEXEC)
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return _Child(pid, share, fd)
    status = 1

    def say(result: ShareResult, *, is_last: bool = False) -> None:
        text = json.dumps({"is_last": is_last, "result": result.as_json()})
        os.write(fd, text.encode() + b"\n")

    try:
        die_with_parent()
        result = work(share, say)
        if result is not None:
            say(result, is_last=True)
        status = 0
    except Exception as error:
        log.exception(f"worker for {share} failed", error)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status)


def _signal(pids: Iterable[int], sig: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)
