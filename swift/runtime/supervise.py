"""Worker processes of a daemon's pass: each takes one share, tells what came of it, and ends.

A process per share and pass gives its memory back, and a share whose device hangs or whose worker is killed
holds up nobody else: its result is missing from this pass and tried again in the next. The parent never
runs an event loop, because a forked child would share it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from swift import green
from swift.green import pause
from swift.runtime.stop import Stop
from swift.runtime.workers import GRACE_S, die_with_parent
from swift.telemetry.log import Log

_POLL_S = 0.02

#: Runs in the child: does a share and returns what JSON can carry.
ShareWork = Callable[[str], dict[str, Any]]


def run_shares(
    shares: Sequence[str], work: ShareWork, limit: int, stop: Stop, log: Log, *, grace_s: float = GRACE_S
) -> dict[str, dict[str, Any]]:
    """Do every share in a process of its own, ``limit`` at a time; the results of those that ended well.

    When ``stop`` is requested no further one is started, and the running ones are told; who does not end
    within ``grace_s`` is killed.
    """
    waiting, results = list(shares), {}
    running: dict[int, _Child] = {}
    kill_at: float | None = None
    while running or (waiting and not stop.requested):
        while waiting and len(running) < limit and not stop.requested:
            child = _fork(waiting.pop(0), work, log)
            running[child.pid] = child
        for child in [c for c in running.values() if c.has_ended()]:
            del running[child.pid]
            result = child.result(log)
            if result is not None:
                results[child.share] = result
        if stop.requested and kill_at is None:
            kill_at = time.monotonic() + grace_s
            _tell(running, signal.SIGTERM)
        elif kill_at is not None and time.monotonic() >= kill_at:
            _tell(running, signal.SIGKILL)
        if running:
            pause(_POLL_S)
    return results


class _Child:
    """A running worker; its result comes through a file in memory."""

    def __init__(self, pid: int, share: str, fd: int):
        self.pid = pid
        self.share = share
        self._fd = fd
        self._status = 0

    def has_ended(self) -> bool:
        pid, self._status = os.waitpid(self.pid, os.WNOHANG)
        return pid == self.pid

    def result(self, log: Log) -> dict[str, Any] | None:
        with os.fdopen(self._fd, "rb") as file:
            file.seek(0)
            data = file.read()
        if self._status:
            code = os.waitstatus_to_exitcode(self._status)
            log.error(f"worker for {self.share} (pid {self.pid}) ended with status {code}")
            return None
        try:
            value = json.loads(data)
        except ValueError:
            # It was told to end and did so without a word.
            return None
        return value if isinstance(value, dict) else None


def _fork(share: str, work: ShareWork, log: Log) -> _Child:
    fd = os.memfd_create(f"result-{share}", os.MFD_CLOEXEC)
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return _Child(pid, share, fd)
    status = 1
    try:
        die_with_parent()
        green.use_hub()
        os.write(fd, json.dumps(work(share)).encode())
        status = 0
    except Exception as error:
        log.exception(f"worker for {share} failed", error)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status)


def _tell(running: dict[int, _Child], sig: signal.Signals) -> None:
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)
