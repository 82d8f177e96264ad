"""The header in front of every erasure coded fragment (spec: replication.md §4).

80 little-endian bytes that liberasurecode writes and checks. They are read here without the library, to know
a fragment's index and true length: the library itself must never see a fragment that is shorter than its
header says, because it would read beyond it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from swift.base.errors import InvalidValue

HEADER_BYTES = 80
MAGIC = 0x0B0C5ECC
_LAYOUT = struct.Struct("<IIIQB32sBBIIII")
_CHECKED_BYTES = 59


class BadFragment(InvalidValue):
    """These bytes are not one whole fragment."""


@dataclass(frozen=True, slots=True)
class FragmentHeader:
    """Metadata in a fragment's header."""

    index: int
    #: Payload bytes, those of the library's own notes included.
    payload_size: int
    #: Bytes of the segment that it is a part of.
    segment_length: int
    backend_id: int
    #: CRC-32 of the header's first 59 bytes, as stored.
    checksum: int
    #: The CRC-32 that those bytes really have. Old libraries stored a different sum.
    computed_checksum: int

    @classmethod
    def parse(cls, data: bytes | memoryview) -> FragmentHeader:
        """Return the header at the start of ``data``; raises ``BadFragment``."""
        if len(data) < HEADER_BYTES:
            raise BadFragment(f"a fragment of {len(data)} bytes is shorter than its header")
        index, size, extra, length, _, _, _, backend, _, magic, _, checksum = _LAYOUT.unpack_from(data)
        if magic != MAGIC:
            raise BadFragment("this is not an erasure coded fragment")
        computed = zlib.crc32(data[:_CHECKED_BYTES])
        return cls(index, size + extra, length, backend, checksum, computed)


def check_fragment(fragment: bytes) -> FragmentHeader:
    """Return the header of exactly one whole fragment; raises ``BadFragment``."""
    header = FragmentHeader.parse(fragment)
    if len(fragment) != HEADER_BYTES + header.payload_size:
        raise BadFragment(
            f"fragment {header.index} has {len(fragment)} bytes, not {HEADER_BYTES + header.payload_size}"
        )
    return header
