"""Noticing that what is mounted has changed, at the price of one call that never waits.

The kernel marks ``/proc/self/mountinfo`` as ready for ``poll`` after every change of the table of mounts.
Which mount a directory is on is told by ``statx``: since Linux 6.8 by a number that is never used again.

Apart from its user because it knows the kernel, not the tier.
"""

from __future__ import annotations

import ctypes
import os
import struct
import zlib

_TABLE = "/proc/self/mountinfo"
_POLLERR_OR_PRI = 0x2 | 0x8
_AT_FDCWD = -100
_MNT_ID, _MNT_ID_UNIQUE = 0x1000, 0x4000
_MNT_ID_AT = 144


class _PollFd(ctypes.Structure):
    _fields_ = (("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short))


class MountWatch:
    """Detects changes of mounts since the last call. Without kernel support it reports a change."""

    def __init__(self) -> None:
        # Without giving up the interpreter's lock: the call returns at once.
        self._library = ctypes.PyDLL(None)
        self._poll: _PollFd | None = None

    def has_changed(self) -> bool:
        """Return True if anything was mounted or unmounted since the last call; true the first time."""
        if self._poll is None:
            try:
                fd = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return True
            self._poll = _PollFd(fd, _POLLERR_OR_PRI, 0)
            self._library.poll(ctypes.byref(self._poll), 1, 0)
            return True
        return bool(self._library.poll(ctypes.byref(self._poll), 1, 0))

    def mount_id(self, path: str) -> int:
        """Return a number of the mount that a directory is on, 64 bits; 0 when it is not there.

        Where the kernel may reuse the number, a remount between two calls can be missed.
        """
        buffer = ctypes.create_string_buffer(256)
        wanted = _MNT_ID | _MNT_ID_UNIQUE
        try:
            if self._library.statx(_AT_FDCWD, os.fsencode(path), 0, wanted, buffer):
                return 0
        except AttributeError:
            pass
        try:
            found = os.stat(path)
        except OSError:
            return 0
        mount = struct.unpack_from("<Q", buffer.raw, _MNT_ID_AT)[0]
        packed = struct.pack("<QQQ", mount, found.st_dev, found.st_ino)
        return zlib.crc32(packed) << 32 | zlib.crc32(packed[::-1])

    def close(self) -> None:
        """Close the table."""
        if self._poll is not None:
            os.close(self._poll.fd)
            self._poll = None
