"""A table of nonces that the processes of a machine share, so that each is taken once.

The table is a file in memory of 131,072 buckets with eight entries of 64 bits. A nonce's low bits are the
number of its bucket; an entry has the other bits and the second of the nonce's time. A new entry stands
first in its bucket, and the last one gives way. ``take`` holds a lock of the file for its bucket, which
the kernel releases if the process ends.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat

BUCKETS = 1 << 17
ENTRIES = 8
ENTRY_BYTES = 8
BUCKET_BYTES = ENTRIES * ENTRY_BYTES
BYTES = BUCKETS * BUCKET_BYTES
_EMPTY = bytes(ENTRY_BYTES)
#: Bits of a nonce in its entry, above those of its second.
_TAG_SHIFT, _SECONDS_MASK = 16, 0xFFFF
_TAG = slice(2, None)
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
        begin = (nonce & (BUCKETS - 1)) * BUCKET_BYTES
        end = begin + BUCKET_BYTES
        entry = (nonce >> _TAG_SHIFT << _TAG_SHIFT | int(time_s) & _SECONDS_MASK).to_bytes(8, "little")
        fcntl.lockf(self._fd, fcntl.LOCK_EX, BUCKET_BYTES, begin)
        try:
            bucket = self._table[begin:end]
            if entry[_TAG] in bucket and _has_tag(bucket, entry):
                return False
            self._table[begin:end] = entry + bucket[:-ENTRY_BYTES]
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, BUCKET_BYTES, begin)
        last = bucket[-ENTRY_BYTES:]
        if last != _EMPTY and self._is_valid(last, int(now_s)):
            self.overwritten += 1
        return True

    def _is_valid(self, entry: bytes, now: int) -> bool:
        """Return True if a request with the nonce of an entry could be sent again."""
        age = (now - int.from_bytes(entry[:2], "little")) & _SECONDS_MASK
        # An age above the maximum is that of an entry ahead of the clock.
        return age <= self._window_s or age > _AGE_MAX

    def close(self) -> None:
        """Give up the memory."""
        self._table.close()
        os.close(self._fd)

    def __repr__(self) -> str:
        return f"<NonceTable {self.overwritten} overwritten>"


def _has_tag(bucket: bytes, entry: bytes) -> bool:
    """Return True if an entry of a bucket has the nonce of ``entry``, whatever its time."""
    return any(
        bucket[at : at + ENTRY_BYTES][_TAG] == entry[_TAG] and bucket[at : at + ENTRY_BYTES] != _EMPTY
        for at in range(0, BUCKET_BYTES, ENTRY_BYTES)
    )
