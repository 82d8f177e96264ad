"""A table of nonces that the processes of a machine share, so that each is taken once.

The table is a file in memory of 131,072 buckets with eight entries of 64 bits. A nonce's low bits are the
number of its bucket; an entry has the other bits and the second of the nonce's time. A nonce takes the
place of one that is older than the window, else of the oldest. ``take`` holds a lock of the file for its
bucket, which the kernel releases if the process ends.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import struct

BUCKETS = 1 << 17
ENTRIES = 8
_BUCKET = struct.Struct(f"<{ENTRIES}Q")
_ENTRY = struct.Struct("<Q")
BYTES = BUCKETS * _BUCKET.size
#: Bits of a nonce in its entry, above those of its second.
_TAG_SHIFT, _SECONDS_MASK = 16, 0xFFFF
#: Seconds that an entry's time is before the clock at most; what seems older is ahead of it.
_AGE_MAX = _SECONDS_MASK >> 1
# An entry has every bit of the nonce that does not choose its bucket.
assert BUCKETS >= 1 << _TAG_SHIFT

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NonceTable:
    """Nonces of the last ``window_s`` seconds, in the file of the descriptor ``fd``. Raises OSError."""

    def __init__(self, fd: int, *, window_s: float):
        #: Whole seconds differ by up to one more than the times do.
        self._window_s = int(window_s) + 1
        self._fd = fd
        try:
            # Now, not at first use: the kernel would kill the process if memory is full then.
            os.posix_fallocate(fd, 0, BYTES)
            self._table = mmap.mmap(fd, BYTES)
        except BaseException:
            os.close(fd)
            raise
        #: Nonces within the window that gave way to newer ones.
        self.overwritten = 0

    @classmethod
    def shared(cls, path: str, *, window_s: float) -> NonceTable:
        """Return the table of a file in memory, made if need be, of all processes of this user.

        Raises OSError, also if another user owns the file or has a right to it.
        """
        fd = os.open(path, _FLAGS, 0o600)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            os.close(fd)
            raise PermissionError(errno.EPERM, "it must be a file of this user alone", path)
        return cls(fd, window_s=window_s)

    @classmethod
    def private(cls, *, window_s: float) -> NonceTable:
        """Return a table of this process alone, and of the children that it forks."""
        return cls(os.memfd_create("nonces"), window_s=window_s)

    def take(self, nonce: int, time_s: float, now_s: float) -> bool:
        """Return True if a nonce of 64 bits is new, and remember it with its time; both are Unix seconds."""
        offset = (nonce & (BUCKETS - 1)) * _BUCKET.size
        entry = nonce >> _TAG_SHIFT << _TAG_SHIFT | int(time_s) & _SECONDS_MASK
        fcntl.lockf(self._fd, fcntl.LOCK_EX, _BUCKET.size, offset)
        try:
            return self._take(entry, offset, int(now_s))
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, _BUCKET.size, offset)

    def _take(self, new: int, offset: int, now: int) -> bool:
        place, oldest = 0, -1
        for index, entry in enumerate(_BUCKET.unpack_from(self._table, offset)):
            if (entry ^ new) <= _SECONDS_MASK and entry:
                return False
            age = (now - entry) & _SECONDS_MASK if entry else _AGE_MAX
            if age > _AGE_MAX:
                # A time ahead of the clock.
                age = 0
            if age > oldest:
                place, oldest = index, age
        if oldest <= self._window_s:
            self.overwritten += 1
        _ENTRY.pack_into(self._table, offset + place * _ENTRY.size, new)
        return True

    def close(self) -> None:
        """Give up the memory."""
        self._table.close()
        os.close(self._fd)

    def __repr__(self) -> str:
        return f"<NonceTable {self.overwritten} overwritten>"
