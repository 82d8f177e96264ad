"""Exclusive locks of objects, between the threads and the processes that share a device.

Between processes it is a lock on one byte of a file, chosen by the object's hash; two objects may share a
byte, which costs them a wait. It ends with the process and leaves no file for each object.
"""

from __future__ import annotations

import errno
import os
import threading
from functools import partial

from swift.base.errors import LockTimeout
from swift.platform.disk import Disk
from swift.platform.locks import LOCK_TIMEOUT_S, poll

_PAUSE_MAX_S = 0.02


class ObjectLocks:
    """Locks on the bytes of one file. Raises OSError when it cannot be opened."""

    def __init__(self, disk: Disk, path: str):
        self._disk = disk
        self._path = path
        self._fd = -1
        self._fd = disk.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._held: set[int] = set()
        self._mutex = threading.Lock()

    def acquire(self, number: int, timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """Take the lock of a number below 2^62; raises ``LockTimeout``, OSError."""
        if not poll(partial(self._try, number), timeout_s, pause_max_s=_PAUSE_MAX_S):
            raise LockTimeout(self._path, timeout_s)

    def _try(self, number: int) -> bool:
        with self._mutex:
            if number in self._held:
                return False
            self._held.add(number)
        is_locked = False
        try:
            if self._fd < 0:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)
            is_locked = self._disk.lock_byte(self._fd, number)
        finally:
            if not is_locked:
                self._forget(number)
        return is_locked

    def release(self, number: int) -> None:
        """Give a lock back."""
        try:
            if self._fd >= 0:
                self._disk.unlock_byte(self._fd, number)
        finally:
            self._forget(number)

    def _forget(self, number: int) -> None:
        with self._mutex:
            self._held.discard(number)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; all locks end."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._disk.close(fd)

    def __repr__(self) -> str:
        return f"ObjectLocks({self._path!r})"
