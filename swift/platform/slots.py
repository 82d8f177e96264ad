"""A few places shared by all processes that were forked after it was made.

A place is the lock of a nameless file in memory: it is free again when its holder closes it or ends, however
that happens, so a killed worker takes none with it.
"""

from __future__ import annotations

import fcntl
import os


class TakenSlot:
    """A taken place; ``close`` gives it back."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int):
        self._fd = fd

    def close(self) -> None:
        """Give it back; again does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class SharedSlots:
    """``count`` places; 0 means any number."""

    def __init__(self, count: int):
        self.count = count
        self._files = [os.memfd_create(f"place-{number}") for number in range(count)]

    def take(self) -> TakenSlot | None:
        """Return a free place, None when all are taken; never waits. Raises OSError."""
        if not self.count:
            return TakenSlot(-1)
        for file in self._files:
            # A lock belongs to an open file: opened anew, it excludes this process's other holders as well.
            fd = os.open(f"/proc/self/fd/{file}", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return TakenSlot(fd)
            except BlockingIOError:
                os.close(fd)
            except BaseException:
                os.close(fd)
                raise
        return None

    def __del__(self) -> None:
        for file in self._files:
            os.close(file)
        self._files = []

    def __repr__(self) -> str:
        return f"SharedSlots({self.count})"
