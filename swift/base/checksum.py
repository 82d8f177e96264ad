"""A fast checksum for every chunk of a body, computed while the body passes by.

CRC-32 costs a fifth of MD5 at most. Object servers keep the checksums beside a body, so that ranges can be
verified (``store.verified``); a proxy sends their digest along, so that an object server knows it
has what the proxy hashed (``wire.etagtrailer``).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from hashlib import md5

CHUNK_BYTES = 1 << 20
CHUNK_BYTES_MAX = 8 << 20
#: Attributes of a file share 4 KiB on some filesystems.
CHUNKS_MAX = 640
#: The chunk of bodies whose length is not known in advance.
CHUNK_BYTES_UNKNOWN = 4 << 20


def chunk_size_for(size: int | None) -> int:
    """Return the chunk size of a body of this many bytes; a power of two."""
    if size is None:
        return CHUNK_BYTES_UNKNOWN
    chunk = CHUNK_BYTES
    while chunk < CHUNK_BYTES_MAX and size > chunk * CHUNKS_MAX:
        chunk *= 2
    return chunk


class ChunkSums:
    """Computes the checksums while a body is written."""

    __slots__ = ("chunk", "_crc", "_sums", "_current", "_filled")

    def __init__(self, chunk_size: int, crc: Callable[[memoryview, int], int] = zlib.crc32):
        """``crc`` computes CRC-32, perhaps faster than usual (``platform.fastcrc``)."""
        self.chunk = chunk_size
        self._crc = crc
        self._sums: list[int] = []
        self._current = 0
        self._filled = 0

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        while view:
            piece = view[: self.chunk - self._filled]
            self._current = self._crc(piece, self._current)
            self._filled += len(piece)
            if self._filled == self.chunk:
                self._sums.append(self._current)
                self._current = self._filled = 0
            view = view[len(piece) :]

    def packed(self) -> bytes:
        """Return the checksums so far, big-endian, the last chunk as short as it is."""
        sums = [*self._sums, self._current] if self._filled else self._sums
        return struct.pack(f">{len(sums)}I", *sums)

    def digest(self) -> str:
        """Return a hex digest that identifies a body of this chunk size."""
        return md5(b"%d:" % self.chunk + self.packed(), usedforsecurity=False).hexdigest()
