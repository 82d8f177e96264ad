"""One value spread over numbered extended attributes (spec: object-disk.md §4).

``name``, ``name1``, ``name2`` ... hold pieces of at most 64 KiB; readers concatenate until the next
attribute is missing.
"""

from __future__ import annotations

import errno

from swift.platform.disk import Disk

PIECE_BYTES = 65536
_MISSING = frozenset((errno.ENODATA, errno.ENOENT))


class AttributesUnsupported(OSError):
    """The filesystem keeps no user attributes."""


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


def write_attribute(disk: Disk, file: int | str, name: str, value: bytes) -> None:
    """Set one attribute. Raises ``AttributesUnsupported`` or OSError."""
    try:
        disk.setxattr(file, name, value)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTSUP):
            raise AttributesUnsupported(error.errno, "no user extended attributes here")
        raise


def read_rest(disk: Disk, file: int | str, name: str, first: bytes) -> bytes:
    """``first`` and the pieces ``name1``, ``name2`` ... that follow it."""
    pieces = [first]
    while (piece := read_attribute(disk, file, f"{name}{len(pieces)}")) is not None:
        pieces.append(piece)
    return b"".join(pieces)


def write_pieces(disk: Disk, file: int | str, name: str, value: bytes) -> None:
    """Store a value of any length under ``name``, ``name1`` ..."""
    write_attribute(disk, file, name, value[:PIECE_BYTES])
    for number, start in enumerate(range(PIECE_BYTES, len(value), PIECE_BYTES), 1):
        write_attribute(disk, file, f"{name}{number}", value[start : start + PIECE_BYTES])
