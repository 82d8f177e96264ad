"""The audit log's file, shared by the workers of a server, and the queue before it.

A line is one ``write`` to a file that is open for appending, so lines of several processes do not mix. A file
that is large enough is renamed under a lock. Disks may be slow: requests only put lines into the queue, and
one thread writes them.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Sequence

from swift import green
from swift.base.errors import LockTimeout
from swift.platform.disk import Disk
from swift.platform.locks import file_lock
from swift.platform.regularfiles import open_regular
from swift.telemetry.log import Log
from swift.telemetry.metrics import CounterMetric, Registry

_DROPPED = CounterMetric(
    "swift_audit_log_dropped_total", "Lines that are missing in the audit log.", ("reason",)
)

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
MODE = 0o640
LOCK_TIMEOUT_S = 5.0
#: Seconds that one thread waits for another one's write.
STALL_S = 10.0
#: Bytes of lines that may wait for the disk in one process.
WAITING_BYTES_MAX = 16 << 20
#: Seconds between attempts to rotate.
ROTATION_RETRY_S = 60.0
#: The end of a rotated file's name.
_STAMP = re.compile(r"\d{8}T\d{15}Z")


class AuditFile:
    """A file of lines; at ``max_bytes`` it is renamed and a new one begun.

    Rotated files have the time in their names; the ``backups`` newest stay. Another program may rename the
    file too: the next batch goes to a new one.
    """

    def __init__(
        self, path: str, max_bytes: int = 0, backups: int = 0, now_ns: Callable[[], int] = time.time_ns
    ):
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._now_ns = now_ns
        self._disk = Disk()
        self._lock = threading.Lock()
        self._fd = -1
        #: Monotonic time of the next rotation after a failed one.
        self._rotate_after_s = 0.0
        #: The last line was cut off, as the disk was full.
        self._is_torn = False

    def append(self, lines: Sequence[bytes]) -> tuple[int, str]:
        """Write lines; return how many were written and the reason why the others were not."""
        # The end of a process does not wait for a thread that a stalled disk holds.
        if not self._lock.acquire(timeout=STALL_S):
            return 0, f"{self._path}: the disk does not respond"
        try:
            return self._append(lines)
        finally:
            self._lock.release()

    def _append(self, lines: Sequence[bytes]) -> tuple[int, str]:
        for done, line in enumerate(lines):
            try:
                if not done:
                    self._reopen_if_moved()
                self._write(line)
            except (OSError, LockTimeout) as error:
                self.close()
                return done, str(error)
        return len(lines), ""

    def _write(self, line: bytes) -> None:
        is_full = self._max_bytes and self._size() and self._size() + len(line) > self._max_bytes
        if is_full and time.monotonic() >= self._rotate_after_s:
            try:
                self._rotate()
            except (OSError, LockTimeout):
                # The open file takes more lines; a rotation is tried again later.
                self._rotate_after_s = time.monotonic() + ROTATION_RETRY_S
                self._reopen_if_moved()
        data = b"\n" + line if self._is_torn else line
        written = os.write(self._fd, data)
        self._is_torn = written < len(data)
        if self._is_torn:
            raise OSError(f"{self._path}: only {written} of {len(data)} bytes were written")

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def _reopen_if_moved(self) -> None:
        if self._fd >= 0 and not self._is_current():
            self.close()
        if self._fd < 0:
            self._fd = open_regular(self._disk, self._path, _APPEND, MODE)

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _rotate(self) -> None:
        """Rename the file, unless another process just did, and go on in the new one."""
        with file_lock(self._disk, f"{self._path}.lock", LOCK_TIMEOUT_S):
            if self._is_current():
                os.rename(self._path, self._rotated_path())
                self._remove_oldest()
            self._reopen_if_moved()

    def _rotated_path(self) -> str:
        now_ns = self._now_ns()
        while True:
            stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ns // 10**9))
            path = f"{self._path}-{stamp}{now_ns % 10**9:09d}Z"
            if not os.path.lexists(path):
                return path
            now_ns += 1

    def _remove_oldest(self) -> None:
        rotated = rotated_files(self._path)
        for each in rotated[: max(0, len(rotated) - self._backups)]:
            with contextlib.suppress(OSError):
                os.unlink(each)

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._disk.close(fd)

    def __repr__(self) -> str:
        return f"AuditFile({self._path!r}, {self._max_bytes}, {self._backups})"


def rotated_files(path: str) -> list[str]:
    """Return the rotated files of a log, oldest first. Raises OSError."""
    directory, name = os.path.split(path)
    return [
        os.path.join(directory, each)
        for each in sorted(os.listdir(directory or "."))
        if each.startswith(f"{name}-") and _STAMP.fullmatch(each[len(name) + 1 :])
    ]


#: Writes lines; returns how many it wrote and why not all.
Append = Callable[[Sequence[bytes]], tuple[int, str]]


class AuditQueue:
    """Lines on their way to ``append``, at most ``size``; others are dropped and counted.

    ``run`` calls a function in a thread, and ``spawn`` starts a green thread.
    """

    def __init__(
        self,
        append: Append,
        size: int,
        log: Log,
        metrics: Registry,
        *,
        run: Callable[[Append, Sequence[bytes]], tuple[int, str]] | None = None,
        spawn: Callable[[Callable[[], None]], object] = green.spawn_detached,
    ):
        self._append = append
        self._size = size
        self._log = log
        self._run: Callable[[Append, Sequence[bytes]], tuple[int, str]] = (
            run or green.ThreadPool(1, "audit").call
        )
        self._spawn = spawn
        self._lines: list[bytes] = []
        self._in_flight = 0
        self._waiting_bytes = 0
        self._is_draining = False
        #: The loss that is known was logged; cleared when lines are written again.
        self._is_logged = False
        self._dropped = {reason: _DROPPED.of(metrics, reason=reason) for reason in ("queue", "write")}

    def put(self, line: bytes) -> None:
        """Take a line; never waits."""
        is_full = len(self._lines) + self._in_flight >= self._size
        if is_full or self._waiting_bytes + len(line) > WAITING_BYTES_MAX:
            self._drop(1, "queue", "too many lines wait for the disk; raise queue_size or find a faster one")
            return
        self._lines.append(line)
        self._waiting_bytes += len(line)
        if not self._is_draining:
            self._is_draining = True
            self._spawn(self._drain)

    def _drain(self) -> None:
        """Write until nothing waits."""
        try:
            while self._lines:
                self._write_waiting(self._run)
        finally:
            self._is_draining = False

    def flush(self) -> None:
        """Write what waits, and wait for what is being written; before the process ends."""
        if self._lines or self._in_flight:
            self._write_waiting(lambda append, lines: append(lines))

    def _write_waiting(self, run: Callable[[Append, Sequence[bytes]], tuple[int, str]]) -> None:
        lines, self._lines = self._lines, []
        self._in_flight = len(lines)
        try:
            written, problem = run(self._append, lines)
        finally:
            self._in_flight = 0
            self._waiting_bytes -= sum(map(len, lines))
        if problem:
            self._drop(len(lines) - written, "write", problem)
        else:
            self._is_logged = False

    def _drop(self, count: int, reason: str, problem: str) -> None:
        self._dropped[reason].inc(count)
        if not self._is_logged:
            self._is_logged = True
            self._log.error(f"ERROR the audit log is incomplete, lines are dropped: {problem}")
