"""Logs of bodies on the SSD: circular files that overwrite the oldest bodies first.

A position only grows; where it is in the file is its remainder. Before each piece stand its position, its
owner (the beginning of the MD5 of the body that it is of) and its CRC-32, so that whatever has been
written over, torn or rolled back is no piece. Which positions are whose is in the index.
"""

from __future__ import annotations

import os
import struct
import zlib

from swift.store.tier.entry import Extent

_HEAD = struct.Struct("<IQQII")
_MAGIC = 0x45545753


def owner_of(etag: str, number: int = 0) -> int:
    """Return the owner of a piece: the body and the number of the piece."""
    try:
        return int(etag[:16], 16) ^ number
    except ValueError:
        return 0


def room_for(length: int) -> int:
    """Bytes that a piece takes in the log."""
    return _HEAD.size + length


def place_after(head: int, length: int, capacity: int) -> int:
    """Return the position of the next piece: none goes over the end of the file."""
    left = capacity - head % capacity
    return head if room_for(length) <= left else head + left


class _File:
    """A descriptor that is closed when the last call that uses it has ended, and not before."""

    def __init__(self, path: str):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)


class ExtentLog:
    """One log. Calls raise OSError."""

    def __init__(self, path: str, capacity: int):
        self._path = path
        self._capacity = capacity
        self._opened: _File | None = None

    def _file(self) -> _File:
        file = self._opened
        if file is None:
            file = _File(self._path)
            if os.fstat(file.fd).st_size > self._capacity:
                os.ftruncate(file.fd, self._capacity)
            self._opened = file
        return file

    def _put(self, data: bytes, at: int) -> int:
        file = self._file()
        return os.pwrite(file.fd, data, at)

    def _get(self, length: int, at: int) -> bytes:
        file = self._file()
        return os.pread(file.fd, length, at)

    def write(self, position: int, owner: int, data: bytes) -> Extent:
        """Store a piece at a position that is the caller's."""
        head = _HEAD.pack(_MAGIC, position, owner, len(data), zlib.crc32(data))
        at, pack_report = position % self._capacity, head + data
        while pack_report:
            done = self._put(pack_report, at)
            at, pack_report = at + done, pack_report[done:]
        return Extent(position, len(data))

    def read(self, extent: Extent, owner: int) -> bytes | None:
        """Return the piece, None when something else is there by now."""
        length = room_for(extent.length)
        pack_report = self._get(length, extent.position % self._capacity)
        if len(pack_report) != length:
            return None
        magic, position, its_owner, its_length, crc = _HEAD.unpack_from(pack_report)
        if (magic, position, its_owner, its_length) != (_MAGIC, extent.position, owner, extent.length):
            return None
        data = pack_report[_HEAD.size :]
        return data if zlib.crc32(data) == crc else None

    def close(self) -> None:
        """Give the file up."""
        self._opened = None
