"""File locks between processes: ``flock`` polled with a deadline (spec: object-disk.md §13).

A lock belongs to an open file, so it also excludes threads of one process from each other as long as
each opens the file itself. A green thread that waits lets others run, elsewhere the operating system
thread sleeps.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from swift.base.errors import LockTimeout
from swift.green import pause
from swift.platform.disk import Disk
from swift.platform.regularfiles import open_or_replace
from swift.platform.waiting import yielding

LOCK_TIMEOUT_S = 10.0
_LOCK_FILE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FIRST_PAUSE_S = 0.0005
_PAUSE_MAX_S = 0.05
#: Pauses are this part of what was waited so far: a holder that takes the lock again and again, each time
#: for a moment, must not starve one that looks rarely.
_PAUSE_GROWTH = 0.05
#: A change waits so long for a holder that may be stopped, seconds: less than proxies wait for a node.
HOLDER_TIMEOUT_S = 5.0
#: It waits so long after one that waited in vain, seconds: not every request of a device may take long then.
STUCK_TIMEOUT_S = 0.25


class Patience:
    """Time to wait for a lock whose holder may be a stopped process.

    It is ``timeout_s`` until one waits in vain, then little until one gets the lock.
    """

    def __init__(self, timeout_s: float = HOLDER_TIMEOUT_S):
        self._timeout_s = timeout_s
        #: True after a wait in vain.
        self.is_exhausted = False

    @property
    def timeout_s(self) -> float:
        """Seconds that the next one waits."""
        return min(self._timeout_s, STUCK_TIMEOUT_S) if self.is_exhausted else self._timeout_s

    def __repr__(self) -> str:
        return f"Patience({self.timeout_s:g})"


def poll(attempt: Callable[[], bool], timeout_s: float, *, pause_max_s: float = _PAUSE_MAX_S) -> bool:
    """Repeat an attempt until it returns True; return False if it did not in time."""
    if attempt():
        return True
    started = time.monotonic()
    while (waited_s := time.monotonic() - started) < timeout_s:
        with yielding():
            pause(min(max(_FIRST_PAUSE_S, waited_s * _PAUSE_GROWTH), pause_max_s))
        if attempt():
            return True
    return False


def lock_descriptor(disk: Disk, fd: int, path: str, timeout_s: float = LOCK_TIMEOUT_S) -> None:
    """Take the exclusive lock of an open file or directory; raises ``LockTimeout`` naming ``path``."""

    def attempt() -> bool:
        try:
            disk.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            return False
        return True

    if not poll(attempt, timeout_s):
        raise LockTimeout(path, timeout_s)


def lock_file(disk: Disk, path: str, timeout_s: float = LOCK_TIMEOUT_S) -> int:
    """Return a descriptor of the (created) file ``path`` that holds its lock; closing it gives it back.

    Its directory must exist. An odd file in its place is moved aside. Raises FileNotFoundError, OSError and
    ``LockTimeout``.
    """
    fd = open_or_replace(disk, path, _LOCK_FILE, 0o644)
    try:
        lock_descriptor(disk, fd, path, timeout_s)
    except BaseException:
        disk.close(fd)
        raise
    return fd


@contextmanager
def file_lock(disk: Disk, path: str, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock of ``lock_file``; raises like it."""
    fd = lock_file(disk, path, timeout_s)
    try:
        yield
    finally:
        disk.close(fd)


def lock_directory(disk: Disk, path: str, timeout_s: float = LOCK_TIMEOUT_S) -> int:
    """Return a descriptor of an existing directory that holds its exclusive lock; closing it gives it back.

    No lock file appears in the directory. Raises FileNotFoundError, NotADirectoryError, ``LockTimeout``.
    """
    while True:
        fd = disk.open(path, _DIRECTORY)
        try:
            lock_descriptor(disk, fd, path, timeout_s)
            if disk.fstat(fd).st_nlink:
                return fd
        except BaseException:
            disk.close(fd)
            raise
        # The former holder removed the directory; there may be a new one of that name.
        disk.close(fd)
