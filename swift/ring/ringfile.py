"""Ring files on disk: the gzip envelope, the magic, and writing without ever leaving half a file.

The envelope is written by hand instead of with ``gzip`` because readers of version 2 seek in the file:
the magic is a stored block at a fixed place, sections end on full flushes and the index offsets sit at a
fixed distance from the end. The fixed time stamp makes equal rings equal files. What the bytes inside mean
is known to ``format_v1`` and ``format_v2`` only. spec: ring.md §4, §5
"""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from hashlib import md5

from swift.platform import durable
from swift.platform.disk import Disk
from swift.platform.privileges import inherit_owner
from swift.platform.regularfiles import read_through_links
from swift.ring import format_v1, format_v2
from swift.ring.errors import RingFileError, RingFormatError
from swift.ring.table import RingTable, check_assigned

MAGIC = b"R1NG"
_HEAD_BYTES = 6
_GZIP_HEADER = bytes.fromhex("1f8b0808f42a844d02ff")
_RING_FILE_MODE = 0o644
_DECODERS = {1: lambda raw: format_v1.decode(raw[_HEAD_BYTES:]), 2: format_v2.decode}


def load_table(path: str, *, thorough: bool = True) -> RingTable:
    """Read a ring file of version 1 or 2; ``thorough`` also checks every entry of the rows.

    Raises RingFileError for content that is no ring, OSError when the file cannot be read.
    """
    packed = read_through_links(path)
    try:
        table = decode_file(packed)
        if thorough:
            check_assigned(table)
    except RingFormatError as error:
        raise RingFileError(path, str(error))
    return replace(
        table,
        size=len(packed),
        raw_size=int.from_bytes(packed[-4:], "little"),
        digest=md5(packed, usedforsecurity=False).hexdigest(),
    )


def decode_file(packed: bytes) -> RingTable:
    """Return the table in the bytes of a ring file. Raises RingFormatError."""
    return decode(_inflate(packed))


def _inflate(packed: bytes) -> bytes:
    if packed[:2] != _GZIP_HEADER[:2]:
        raise RingFormatError("not a ring file (it is not gzip)")
    inflater = zlib.decompressobj(wbits=31)
    try:
        raw = inflater.decompress(packed) + inflater.flush()
    except zlib.error as error:
        raise RingFormatError(f"the compressed data are damaged ({error})")
    if not inflater.eof:
        raise RingFormatError("the file is truncated")
    if inflater.unused_data.strip(b"\0"):
        raise RingFormatError("there are other bytes after its end")
    return raw


def decode(raw: bytes) -> RingTable:
    """Return the table in the uncompressed bytes of a file of any version. Raises RingFormatError."""
    if raw[: len(MAGIC)] != MAGIC:
        raise RingFormatError(f"bad magic {raw[: len(MAGIC)]!r}, not a ring file")
    version = int.from_bytes(raw[len(MAGIC) : _HEAD_BYTES], "big")
    if version not in _DECODERS:
        raise RingFormatError(f"ring format version {version} is not supported")
    return _DECODERS[version](memoryview(raw))


class _Envelope:
    """A gzip member under construction; every ``write`` ends on a full flush unless told otherwise."""

    def __init__(self, name: str):
        self._file_bytes = bytearray(_GZIP_HEADER + name.encode("latin-1", "replace") + b"\0")
        self._crc = 0
        self._raw_size = 0

    def position(self) -> tuple[int, int]:
        """Bytes of the file so far, uncompressed bytes so far."""
        return len(self._file_bytes), self._raw_size

    def write(self, data: bytes, *, level: int = 9, flush: int = zlib.Z_FULL_FLUSH) -> None:
        """Append ``data`` as one flushed run; a new compressor has an empty dictionary anyway."""
        compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._file_bytes += compressor.compress(data) + compressor.flush(flush)
        self._crc = zlib.crc32(data, self._crc)
        self._raw_size += len(data)

    def close(self) -> bytes:
        """Return the finished file: checksum and size follow the last block."""
        tail = self._crc.to_bytes(4, "little") + (self._raw_size & 0xFFFFFFFF).to_bytes(4, "little")
        return bytes(self._file_bytes) + tail


def encode(table: RingTable, name: str, *, format_version: int = 1) -> bytes:
    """Return the bytes of a ring file called ``name``.

    Raises RingFormatError when the format cannot hold it.
    """
    base = name[: -len(".gz")] if name.endswith(".gz") else name
    envelope = _Envelope(base)
    if format_version not in _DECODERS:
        raise RingFormatError(f"ring format version {format_version} is not supported")
    envelope.write(MAGIC + format_version.to_bytes(2, "big"), level=0)
    if format_version == 1:
        envelope.write(format_v1.encode(table), flush=zlib.Z_FINISH)
        return envelope.close()
    index = format_v2.IndexWriter(envelope.position)
    for section, body in format_v2.sections(table):
        index.add(section, format_v2.framed(body), envelope.write)
    blob, uncompressed_offset, compressed_offset = index.render()
    envelope.write(blob)
    # Stored blocks of known length: a reader finds the compressed offset 31 bytes before the end.
    envelope.write(uncompressed_offset, level=0)
    envelope.write(compressed_offset, level=0)
    envelope.write(b"", level=0, flush=zlib.Z_FINISH)
    return envelope.close()


def save_table(table: RingTable, path: str, *, format_version: int = 1) -> None:
    """Write a ring file so that readers see the old one or the whole new one.

    Raises RingFileError when the format cannot hold the table, OSError when the disk refuses.
    """
    try:
        data = encode(table, os.path.basename(path), format_version=format_version)
    except RingFormatError as error:
        raise RingFileError(path, str(error))
    replace_file(path, data, mode=_RING_FILE_MODE)


def replace_file(path: str, data: bytes, *, mode: int) -> None:
    """Set the content of a ring, builder or composite file: readers see the old or the whole new one."""
    durable.replace_file(Disk(), os.path.abspath(path), data, mode=mode)
    inherit_owner(path)
