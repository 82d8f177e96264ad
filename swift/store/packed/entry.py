"""Entries of the index: what of an object is where (doc/formats/packed.md, "Index").

The index maps an object in a partition to its entries, one for each file that the file engine would keep. An
entry has 15 bytes unless its time has an offset or a content type of its own: time, kind, fragment, position
and the size of the record, rounded up.

Partitions are the leading bits of hashes, so the key of an object is its hash behind a byte for the policy
and the number of bits; objects in a partition of another number have that in their key as well.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from swift.base.errors import InvalidValue
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.store.packed.record import ALIGNMENT, Header, Kind, Position, file_name

_WORD = struct.Struct(">Q")
_ENTRY_BYTES = 15
_EXTRA = struct.Struct(">BQQ")
_NO_TIME = 0xFFFFFFFFFFFFFFFF
_KINDS = (Kind.DATA, Kind.META, Kind.TOMBSTONE)
_DURABLE, _EXTERNAL, _HAS_EXTRA, _HAS_FRAGMENT = 1, 2, 4, 8
_EXTRA_FRAGMENT = 1
#: Volumes have at most 2^24 units, and there are at most so many numbers of volumes.
VOLUME_NUMBERS = 1 << 24
VOLUME_UNITS = 1 << 24
#: Sizes are rounded up to an eighth of a power of two at worst.
_STEPS = 12


class BadEntry(InvalidValue):
    """The index holds something that is no entry."""


class Entry(NamedTuple):
    """One file of an object: a record, or a file beside the volumes with a record about it."""

    kind: Kind
    timestamp: Timestamp
    position: Position
    #: Code of the record's size, see ``size_code``.
    size: int
    fragment: int | None = None
    durable: bool = False
    external: bool = False
    ctype_timestamp: Timestamp | None = None

    @property
    def name(self) -> str:
        """Name that the file engine would give it."""
        return file_name(self.kind, self.timestamp, self.fragment, self.durable, self.ctype_timestamp)

    @property
    def read_bytes(self) -> int:
        """Bytes to read for the whole record, or a little more."""
        return size_of(self.size)

    def is_archive(self, timestamp: Timestamp, fragment: int | None) -> bool:
        """Return True for the archive of an upload, durable or not."""
        return self.kind is Kind.DATA and self.timestamp == timestamp and self.fragment == fragment

    def encode(self) -> bytes:
        """Return the bytes of the entry."""
        flags = (_DURABLE if self.durable else 0) | (_EXTERNAL if self.external else 0)
        ctype, timestamp = self.ctype_timestamp, self.timestamp
        fragment, extra = self.fragment, b""
        if timestamp.offset or ctype is not None:
            flags |= _HAS_EXTRA
            extra = _EXTRA.pack(0, timestamp.offset, _NO_TIME if ctype is None else ctype.raw)
        if fragment is not None:
            flags |= _HAS_FRAGMENT
        word = timestamp.raw << 14 | self.kind << 12 | flags << 8 | (fragment or 0)
        place = self.position.volume << 32 | self.position.unit << 8 | self.size
        return _WORD.pack(word) + place.to_bytes(7, "big") + extra


def decode_entries(value: bytes) -> list[Entry]:
    """Return the entries in a value of the index; raises ``BadEntry``."""
    try:
        return _decode(value)
    except InvalidTimestamp as error:
        raise BadEntry(str(error))


def _decode(value: bytes) -> list[Entry]:
    entries, at = [], 0
    while at < len(value):
        if len(value) - at < _ENTRY_BYTES:
            raise BadEntry("an entry is cut off")
        (word,) = _WORD.unpack_from(value, at)
        place = int.from_bytes(value[at + 8 : at + _ENTRY_BYTES], "big")
        at += _ENTRY_BYTES
        flags, offset, ctype = word >> 8 & 15, 0, None
        if flags & _HAS_EXTRA:
            if len(value) - at < _EXTRA.size:
                raise BadEntry("an entry is cut off")
            _, offset, raw = _EXTRA.unpack_from(value, at)
            at += _EXTRA.size
            ctype = None if raw == _NO_TIME else Timestamp.from_raw(raw)
        kind = word >> 12 & 3
        if not kind:
            raise BadEntry("an entry is of no kind")
        entries.append(
            Entry(
                _KINDS[kind - 1],
                Timestamp.from_raw(word >> 14, offset),
                Position(place >> 32, place >> 8 & 0xFFFFFF),
                place & 0xFF,
                word & 0xFF if flags & _HAS_FRAGMENT else None,
                bool(flags & _DURABLE),
                bool(flags & _EXTERNAL),
                ctype,
            )
        )
    return entries


def encode_entries(entries: list[Entry]) -> bytes:
    """Return the value of the index for entries."""
    return b"".join([entry.encode() for entry in entries])


def entry_of(header: Header, position: Position, length: int) -> Entry:
    """Return the entry of a record of so many bytes at a position."""
    return Entry(
        header.kind,
        header.timestamp,
        position,
        size_code(length),
        header.fragment,
        header.durable,
        header.external,
        header.ctype_timestamp,
    )


def size_code(length: int) -> int:
    """Return the smallest code whose ``size_of`` is at least ``length``."""
    if length <= ALIGNMENT:
        return 0
    code = max(math.floor(math.log2(length / ALIGNMENT) * _STEPS), 0)
    while size_of(code) < length:
        code += 1
    return code


def size_of(code: int) -> int:
    """Return the number of bytes that a code stands for."""
    return math.ceil(ALIGNMENT * 2 ** (code / _STEPS))


#: First byte of keys that are not of objects.
META_SPACE = b"\0"
#: Number of bits of a space whose keys have the partition in them.
EXPLICIT = 255
_PARTITION = struct.Struct(">I")
_HASH_BITS = 128


class Space(NamedTuple):
    """Objects of a policy whose partitions are so many leading bits of their hashes; 255: any number."""

    policy: int
    bits: int

    @property
    def row(self) -> bytes:
        """Key of the row that has the first byte of keys in this space."""
        return META_SPACE + b"s" + struct.pack(">IB", self.policy, self.bits)


def space_bits(partition: int, object_hash: bytes) -> int:
    """Return the number of leading bits of a hash that are a partition; 255 when none are."""
    if not partition:
        # A space of its own, in which hashes may be any.
        return 0
    number = int.from_bytes(object_hash, "big")
    bits = partition.bit_length() + _HASH_BITS - number.bit_length()
    return bits if bits <= 32 and number >> (_HASH_BITS - bits) == partition else EXPLICIT


def object_key(prefix: int, bits: int, partition: int, object_hash: bytes) -> bytes:
    """Return the key of an object in a space with this first byte."""
    if bits == EXPLICIT:
        return bytes((prefix,)) + _PARTITION.pack(partition) + object_hash
    return bytes((prefix,)) + object_hash


def partition_prefix(prefix: int, bits: int, partition: int) -> tuple[bytes, bytes]:
    """Return the first key that a partition may have in a space, and the first one behind it.

    The second is empty when there is none behind. Partition 0 of a space of 0 bits is all of it.
    """
    first = bytes((prefix,))
    if bits == EXPLICIT:
        begin = first + _PARTITION.pack(partition)
        return begin, _after(begin)
    if not bits or not partition:
        # Partition 0 has a space of its own.
        return (first, _after(first)) if bits == partition else (b"", b"")
    if partition >> bits:
        return b"", b""
    low = partition << (_HASH_BITS - bits)
    high = (partition + 1) << (_HASH_BITS - bits)
    end = _after(first) if high >> _HASH_BITS else first + high.to_bytes(16, "big")
    return first + low.to_bytes(16, "big"), end


def _after(prefix: bytes) -> bytes:
    """Return the first key behind all with a prefix."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big") if number >> len(prefix) * 8 == 0 else b""


def object_hash_of(key: bytes) -> bytes:
    """Return the hash in a key of an object."""
    return key[-16:]
