"""Content of an entry: a snapshot of a hash directory with everything that readers need.

It holds the names, and of every file its metadata as stored, its size, its inode and a kernel file
handle. So a state is made from it by the same rules as from the disk, for every viewer. The stamp (inode
and change time of the directory) lets it be compared with the disk at the price of one look at the
directory. Packed, checked by CRC-32, without pickles: a damaged or foreign value is no entry.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from swift.store.layout import DATA

_HEAD = struct.Struct("<IBBQQQq")
_FILE = struct.Struct("<BBHQQ")
_BODY = struct.Struct("<QI")
_CRC_BYTES = 4
VERSION = 1
FILES_MAX = 8


class FileFacts(NamedTuple):
    """One file of a hash directory."""

    name: str
    #: The stored metadata, not decoded.
    blob: bytes
    size: int
    inode: int
    #: Opens it without its path; empty where the kernel does not tell.
    handle: bytes = b""


class Stamp(NamedTuple):
    """Inode and change time of the directory; zeros if unknown or missing."""

    inode: int = 0
    changed_ns: int = 0


class Extent(NamedTuple):
    """Position and length of a body in a log; see ``extents``."""

    position: int
    length: int


class Snapshot(NamedTuple):
    """A hash directory, as of the moment at which the epoch was read."""

    epoch: int
    #: Unix nanoseconds at which it was made, different for every entry.
    made_ns: int
    stamp: Stamp
    files: tuple[FileFacts, ...] = ()
    body: Extent | None = None

    @property
    def names(self) -> list[str]:
        """The names in the directory."""
        return [file.name for file in self.files]

    @property
    def only_body(self) -> FileFacts | None:
        """The file with the body; None when there is none, or several."""
        bodies = [file for file in self.files if file.name.endswith(DATA)]
        return bodies[0] if len(bodies) == 1 else None

    def file(self, name: str) -> FileFacts:
        """Return the file of a name."""
        return next(file for file in self.files if file.name == name)


def encode(snapshot: Snapshot) -> bytes:
    """Return the value of an entry."""
    pieces = [b""]
    for name, blob, size, inode, handle in snapshot.files:
        raw = name.encode()
        pieces += (_FILE.pack(len(raw), len(handle), len(blob), size, inode), raw, handle, blob)
    if snapshot.body is not None:
        pieces.append(_BODY.pack(*snapshot.body))
    count = len(snapshot.files) | (0x80 if snapshot.body is not None else 0)
    pieces[0] = _HEAD.pack(0, VERSION, count, snapshot.epoch, snapshot.made_ns, *snapshot.stamp)[_CRC_BYTES:]
    pack_report = b"".join(pieces)
    return zlib.crc32(pack_report).to_bytes(_CRC_BYTES, "little") + pack_report


def decode(value: bytes) -> Snapshot | None:
    """Return the entry of a value; None when it is none."""
    if len(value) < _HEAD.size:
        return None
    crc, version, count, epoch, made_ns, inode, changed_ns = _HEAD.unpack_from(value)
    if version != VERSION or zlib.crc32(memoryview(value)[_CRC_BYTES:]) != crc:
        return None
    files, at = [], _HEAD.size
    for _ in range(count & 0x7F):
        name_bytes, handle_bytes, blob_bytes, size, file_inode = _FILE.unpack_from(value, at)
        begin = at + _FILE.size
        middle = begin + name_bytes
        end = middle + handle_bytes
        at = end + blob_bytes
        files.append(
            FileFacts(value[begin:middle].decode(), value[end:at], size, file_inode, value[middle:end])
        )
    body = Extent(*_BODY.unpack_from(value, at)) if count & 0x80 else None
    return Snapshot(epoch, made_ns, Stamp(inode, changed_ns), tuple(files), body)


def has_body(value: bytes | None) -> bool:
    """Return True if the value of an entry names a body in a log."""
    return value is not None and len(value) >= _HEAD.size and bool(value[_CRC_BYTES + 1] & 0x80)


_HASHES = struct.Struct("<IBxQQI")


class Hashes(NamedTuple):
    """Suffix hashes of a partition."""

    epoch: int
    made_ns: int
    #: Suffix → digest, or digests by fragment index (None: what fragments share).
    hashes: dict[str, str | dict[int | None, str]]


def encode_hashes(entry: Hashes) -> bytes:
    """Return the value of an entry of the class hashes."""
    pieces = []
    for suffix, value in entry.hashes.items():
        parts = {None: value} if isinstance(value, str) else value
        pieces.append(struct.pack("<3sBB", suffix.encode(), isinstance(value, str), len(parts)))
        for index, digest in parts.items():
            pieces.append(struct.pack("<h16s", -1 if index is None else index, bytes.fromhex(digest)))
    head = _HASHES.pack(0, VERSION, entry.epoch, entry.made_ns, len(entry.hashes))
    pack_report = head[_CRC_BYTES:] + b"".join(pieces)
    return zlib.crc32(pack_report).to_bytes(_CRC_BYTES, "little") + pack_report


def decode_hashes(value: bytes) -> Hashes | None:
    """Return the entry of a value; None when it is none."""
    if len(value) < _HASHES.size:
        return None
    crc, version, epoch, made_ns, count = _HASHES.unpack_from(value)
    if version != VERSION or zlib.crc32(memoryview(value)[_CRC_BYTES:]) != crc:
        return None
    found: dict[str, str | dict[int | None, str]] = {}
    at = _HASHES.size
    for _ in range(count):
        raw, is_text, parts = struct.unpack_from("<3sBB", value, at)
        at += 5
        digests: dict[int | None, str] = {}
        for _ in range(parts):
            index, digest = struct.unpack_from("<h16s", value, at)
            digests[None if index < 0 else index] = digest.hex()
            at += 18
        found[raw.decode()] = digests[None] if is_text else digests
    return Hashes(epoch, made_ns, found)
