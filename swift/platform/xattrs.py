"""One value spread over numbered extended attributes (spec: object-disk.md §4).

``name``, ``name1``, ``name2`` ... hold pieces of at most 64 KiB; readers concatenate until the next
attribute is missing.

Filesystems give attributes little room: ext4 about 4 KB for all of a file, XFS 64 KiB for each. That a value
does not fit is told apart from a full device, because the one is the fault of who sent it and the other of
the machine.
"""

from __future__ import annotations

import errno

from swift.base.errors import SwiftError
from swift.platform.disk import Disk

PIECE_BYTES = 65536
_MISSING = frozenset((errno.ENODATA, errno.ENOENT))
#: What filesystems answer for more than the attributes of one file may take.
_TOO_LARGE = frozenset((errno.E2BIG, errno.ERANGE))
#: With less than this left for files it is the device that is full, whatever the attribute. A filesystem may
#: need so much for an attribute of any size, because it reserves for the worst case.
ROOM_BYTES = 4 << 20


class AttributesUnsupported(OSError):
    """The filesystem keeps no user attributes."""


class AttributesTooLarge(SwiftError):
    """The attributes do not fit into those of one file; the device has space."""


def read_attribute(disk: Disk, file: int | str, name: str) -> bytes | None:
    """One attribute, None when it is missing. Raises OSError."""
    try:
        return disk.getxattr(file, name)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTSUP):
            raise AttributesUnsupported(error.errno, "no user extended attributes here")
        raise


def check_is_missing(disk: Disk, file: int | str, name: str) -> None:
    """Make sure that a file lacks an attribute which could not be read. Raises OSError if it has it.

    ENODATA means a missing attribute, but XFS also answers it for a medium error.
    """
    if name in disk.listxattr(file):
        raise OSError(errno.EIO, f"attribute {name} is there but cannot be read")


def write_attribute(disk: Disk, file: int | str, name: str, value: bytes) -> None:
    """Set one attribute. Raises ``AttributesTooLarge``, ``AttributesUnsupported`` or OSError."""
    try:
        disk.setxattr(file, name, value)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTSUP):
            raise AttributesUnsupported(error.errno, "no user extended attributes here")
        if error.errno in _TOO_LARGE or (error.errno == errno.ENOSPC and _has_room(disk, file)):
            raise AttributesTooLarge(f"no room for {len(value)} bytes in attribute {name}")
        raise


def _has_room(disk: Disk, file: int | str) -> bool:
    """Return True if other files could still be written to the filesystem of ``file``."""
    stats = disk.statvfs(file)
    if stats.f_files and not stats.f_favail:
        return False
    return stats.f_frsize * stats.f_bavail >= ROOM_BYTES


def read_rest(disk: Disk, file: int | str, name: str, first: bytes) -> bytes:
    """Return ``first`` and the pieces ``name1``, ``name2`` ... that follow it. Raises OSError."""
    pieces = [first]
    while (piece := read_attribute(disk, file, f"{name}{len(pieces)}")) is not None:
        pieces.append(piece)
    check_is_missing(disk, file, f"{name}{len(pieces)}")
    return b"".join(pieces)


def write_pieces(disk: Disk, file: int | str, name: str, value: bytes) -> None:
    """Store a value of any length under ``name``, ``name1`` ...; raises like ``write_attribute``."""
    write_attribute(disk, file, name, value[:PIECE_BYTES])
    for number, start in enumerate(range(PIECE_BYTES, len(value), PIECE_BYTES), 1):
        write_attribute(disk, file, f"{name}{number}", value[start : start + PIECE_BYTES])
