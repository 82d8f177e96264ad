"""A fast checksum for every chunk of a body, kept in an attribute of our own beside the MD5.

MD5 covers only whole bodies and costs five times as much as CRC-32. The sidecar lets large and range
reads be verified chunk by chunk before a byte is sent (doc/decisions/0002-verified-reads.md). Other
implementations neither write nor read it; a body without one, or with a damaged one, is as good as ever.

Attribute ``user.swift.crc32``: ``1:<log2 of the chunk size>:`` and one big-endian CRC-32 per chunk.
"""

from __future__ import annotations

import struct
import zlib

SIDECAR_ATTRIBUTE = "user.swift.crc32"
#: Bodies up to this size are always read whole and checked by MD5.
SMALL_BYTES = 65536
CHUNK_BYTES = 1 << 20
CHUNK_BYTES_MAX = 8 << 20
#: Attributes of a file share 4 KiB on some filesystems.
CHUNKS_MAX = 640
#: The chunk of bodies whose length is not known in advance.
CHUNK_BYTES_UNKNOWN = 4 << 20
_HEAD = b"1:"


def chunk_size_for(size: int | None) -> int:
    """The chunk size of a body of this many bytes; a power of two."""
    if size is None:
        return CHUNK_BYTES_UNKNOWN
    chunk = CHUNK_BYTES
    while chunk < CHUNK_BYTES_MAX and size > chunk * CHUNKS_MAX:
        chunk *= 2
    return chunk


class ChunkSums:
    """Computes the checksums while a body is written."""

    __slots__ = ("_chunk", "_sums", "_current", "_filled")

    def __init__(self, chunk_size: int):
        self._chunk = chunk_size
        self._sums: list[int] = []
        self._current = 0
        self._filled = 0

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        while view:
            piece = view[: self._chunk - self._filled]
            self._current = zlib.crc32(piece, self._current)
            self._filled += len(piece)
            if self._filled == self._chunk:
                self._sums.append(self._current)
                self._current = self._filled = 0
            view = view[len(piece) :]

    def encode(self) -> bytes | None:
        """The attribute's value; None when there are too many chunks to keep."""
        sums = [*self._sums, self._current] if self._filled else self._sums
        if not sums or len(sums) > CHUNKS_MAX:
            return None
        head = b"%b%d:" % (_HEAD, self._chunk.bit_length() - 1)
        return head + struct.pack(f">{len(sums)}I", *sums)


class Sidecar:
    """The chunk size and the checksums read back."""

    __slots__ = ("chunk", "sums")

    def __init__(self, chunk: int, sums: tuple[int, ...]):
        self.chunk = chunk
        self.sums = sums

    @classmethod
    def decode(cls, value: bytes | None, size: int) -> Sidecar | None:
        """The sidecar of a body of ``size`` bytes; None when it is missing or does not fit it."""
        if value is None or not value.startswith(_HEAD):
            return None
        end = value.find(b":", len(_HEAD))
        exponent, packed = value[len(_HEAD) : end], value[end + 1 :]
        if end < 0 or not exponent.isdigit() or not 16 <= int(exponent) <= 30 or len(packed) % 4:
            return None
        chunk = 1 << int(exponent)
        if len(packed) // 4 != -(-size // chunk):
            return None
        return cls(chunk, struct.unpack(f">{len(packed) // 4}I", packed))

    def matches(self, number: int, data: bytes) -> bool:
        """Whether ``data`` is chunk ``number``."""
        return zlib.crc32(data) == self.sums[number]
