"""A fast checksum for every chunk of a body, kept in an attribute of our own beside the MD5.

MD5 covers only whole bodies and costs five times as much as CRC-32. The sidecar lets large and range
reads be verified chunk by chunk before a byte is sent (doc/decisions/0002-verified-reads.md). Other
implementations neither write nor read it; a body without one, or with a damaged one, is as good as ever.

Attribute ``user.swift.crc32``: ``1:<log2 of the chunk size>:`` and one big-endian CRC-32 per chunk.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from swift.base.checksum import CHUNKS_MAX, ChunkSums

SIDECAR_ATTRIBUTE = "user.swift.crc32"
#: Bodies up to this size are always read whole and checked by MD5.
SMALL_BYTES = 65536
_HEAD = b"1:"


def encode_sums(sums: ChunkSums) -> bytes | None:
    """The attribute's value; None when there are too many chunks to keep."""
    packed = sums.packed()
    if not packed or len(packed) > CHUNKS_MAX * 4:
        return None
    return b"%b%d:" % (_HEAD, sums.chunk.bit_length() - 1) + packed


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

    def matches(self, number: int, pieces: Iterable[bytes]) -> bool:
        """Whether ``pieces`` together are chunk ``number``."""
        checksum = 0
        for piece in pieces:
            checksum = zlib.crc32(piece, checksum)
        return checksum == self.sums[number]
