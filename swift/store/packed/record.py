"""Records of a volume: one change of one object each (doc/formats/packed.md, "Records").

A record describes itself: object, place, time, metadata and body, with checksums over all of it. So the
index can be made again from the volumes alone. A record that makes others obsolete names them in its
*references*; those are dead from the moment on at which it is durable.

Every record begins with the volume's nonce. Clients do not know it, so a body cannot contain a record that a
scan would believe.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import NamedTuple

from swift.base.errors import InvalidValue
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.platform.fastcrc import crc32
from swift.store.layout import data_name, meta_name, tombstone_name

#: Records begin at multiples of this, bytes.
ALIGNMENT = 64
NONCE_BYTES = 8
_MAGIC = b"SwR1"
#: Magic, nonce, checksum of what follows it in the header.
_BEGIN = struct.Struct("<4s8sI")
#: Kind, flags, fragment, policy, partition, other partition, hash, time (ticks, offset), time of the content
#: type, moment of writing (ns), bytes of body, bytes of metadata, references, first unit of the batch,
#: checksums of metadata and body.
_REST = struct.Struct("<BBHIII16sQQQQQIIIII")
_REFERENCE = struct.Struct("<III")
HEADER_BYTES = _BEGIN.size + _REST.size
_BATCH_AT = HEADER_BYTES - 12
_NO_PARTITION = 0xFFFFFFFF
_NO_FRAGMENT = 0xFFFF
_NO_TIME = 0xFFFFFFFFFFFFFFFF
_DURABLE, _EXTERNAL = 1, 2
#: Bounds that no record exceeds: a scan believes no larger length.
METADATA_BYTES_MAX = 16 << 20
REFERENCES_MAX = 65536
BODY_BYTES_MAX = 128 << 20


class BadRecord(InvalidValue):
    """The bytes are no record, or a damaged one."""


class Kind(IntEnum):
    """Meaning of a record."""

    #: A body with its metadata; ``EXTERNAL``: the body is a file of that name.
    DATA = 1
    #: Metadata of a POST.
    META = 2
    TOMBSTONE = 3
    #: A fragment archive becomes durable.
    COMMIT = 4
    #: Records that it references are no longer there.
    GONE = 5
    #: A record that it references is also in this partition.
    LINK = 6
    #: Records that it references were never acknowledged: neither they nor their references count.
    UNWANTED = 7


#: Members by number: to make one of a number is a call.
_KINDS = {int(kind): kind for kind in Kind}


class Position(NamedTuple):
    """Location of a record: number of its volume, and its offset in units of ``ALIGNMENT``."""

    volume: int
    unit: int


class Reference(NamedTuple):
    """A record, as of one partition: after a part power increase an object is in two."""

    partition: int
    position: Position


class Header(NamedTuple):
    """A record without metadata and body."""

    kind: Kind
    policy: int
    partition: int
    hash: bytes
    timestamp: Timestamp
    #: The partition after a part power increase, if the object is kept there as well.
    also_partition: int | None = None
    #: Erasure coding: the index of the archive.
    fragment: int | None = None
    durable: bool = False
    external: bool = False
    #: When the content type of a POST was set.
    ctype_timestamp: Timestamp | None = None
    #: Unix nanoseconds.
    written_ns: int = 0
    references: tuple[Reference, ...] = ()
    body_bytes: int = 0
    metadata_bytes: int = 0
    #: Unit at which the records begin that were synced together with this one.
    batch_unit: int = 0
    metadata_crc: int = 0
    body_crc: int = 0

    @property
    def name(self) -> str:
        """Name of the file that the file engine would keep; empty for other kinds."""
        return file_name(self.kind, self.timestamp, self.fragment, self.durable, self.ctype_timestamp)

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions that the record is for."""
        return (self.partition,) if self.also_partition is None else (self.partition, self.also_partition)

    @property
    def prefix_bytes(self) -> int:
        """Bytes before the body."""
        return HEADER_BYTES + len(self.references) * _REFERENCE.size + self.metadata_bytes

    @property
    def total_bytes(self) -> int:
        """Bytes of the whole record without padding."""
        return self.prefix_bytes + self.body_bytes


def file_name(
    kind: Kind, timestamp: Timestamp, fragment: int | None, durable: bool, ctype_timestamp: Timestamp | None
) -> str:
    """Return the name of a file with the meaning of a record; empty for records that have no file."""
    if kind is Kind.DATA:
        return data_name(timestamp, fragment, durable=durable)
    if kind is Kind.META:
        return meta_name(timestamp, ctype_timestamp)
    return tombstone_name(timestamp) if kind is Kind.TOMBSTONE else ""


def padded(length: int) -> int:
    """Return a length rounded up to the next beginning of a record."""
    return -(-length // ALIGNMENT) * ALIGNMENT


class Record(NamedTuple):
    """A record to be written."""

    header: Header
    metadata: bytes = b""
    body: bytes | memoryview = b""

    @property
    def total_bytes(self) -> int:
        """Bytes of the whole record with padding."""
        references = len(self.header.references) * _REFERENCE.size
        return padded(HEADER_BYTES + references + len(self.metadata) + len(self.body))

    def encode(self, nonce: bytes, batch_unit: int) -> tuple[bytes | memoryview, ...]:
        """Return the bytes of the record in a volume with this nonce, padded, in pieces."""
        header, crc = self.header, crc32()
        references = b"".join(_REFERENCE.pack(each.partition, *each.position) for each in header.references)
        flags = (_DURABLE if header.durable else 0) | (_EXTERNAL if header.external else 0)
        ctype = header.ctype_timestamp
        rest = _REST.pack(
            header.kind,
            flags,
            _NO_FRAGMENT if header.fragment is None else header.fragment,
            header.policy,
            header.partition,
            _NO_PARTITION if header.also_partition is None else header.also_partition,
            header.hash,
            header.timestamp.raw,
            header.timestamp.offset,
            _NO_TIME if ctype is None else ctype.raw,
            header.written_ns,
            len(self.body),
            len(self.metadata),
            len(header.references),
            batch_unit,
            zlib.crc32(self.metadata),
            crc(self.body, 0),
        )
        begin = _BEGIN.pack(_MAGIC, nonce, zlib.crc32(references, zlib.crc32(rest)))
        length = HEADER_BYTES + len(references) + len(self.metadata) + len(self.body)
        padding = bytes(-length % ALIGNMENT)
        return begin, rest, references, self.metadata, self.body, padding


def may_begin(data: bytes | memoryview, at: int, nonce: bytes) -> bool:
    """Return True if a record may begin at an offset of ``data``."""
    return bytes(data[at : at + 4 + NONCE_BYTES]) == _MAGIC + nonce


def batch_unit_at(data: bytes | memoryview, at: int) -> int:
    """Return the unit at which a batch begins, from a header that is not checked; 0 where it is cut off."""
    found = data[at + _BATCH_AT : at + _BATCH_AT + 4]
    return int.from_bytes(found, "little") if len(found) == 4 else 0


def header_bytes(data: bytes | memoryview) -> int:
    """Return the bytes of a header with its references, read from its fixed part; raises ``BadRecord``."""
    if len(data) < HEADER_BYTES:
        raise BadRecord("the record ends in its header")
    count = _REST.unpack_from(data, _BEGIN.size)[13]
    if count > REFERENCES_MAX:
        raise BadRecord("the record has too many references")
    return HEADER_BYTES + int(count) * _REFERENCE.size


def bytes_before_body(data: bytes | memoryview) -> int:
    """Return the bytes of a record before its body, read from its fixed part."""
    fields = _REST.unpack_from(data, _BEGIN.size)
    return HEADER_BYTES + int(fields[13]) * _REFERENCE.size + int(fields[12])


def parse_header(data: bytes | memoryview, nonce: bytes) -> Header:
    """Return the header at the beginning of ``data``, checked; raises ``BadRecord``."""
    end = header_bytes(data)
    if len(data) < end:
        raise BadRecord("the record ends in its references")
    magic, found, checksum = _BEGIN.unpack_from(data)
    if magic != _MAGIC or found != nonce:
        raise BadRecord("no record begins here")
    if zlib.crc32(data[_BEGIN.size : end]) != checksum:
        raise BadRecord("the checksum of the header is wrong")
    (
        kind,
        flags,
        fragment,
        policy,
        partition,
        also,
        object_hash,
        ticks,
        offset,
        ctype,
        written_ns,
        body_bytes,
        metadata_bytes,
        references,
        batch_unit,
        metadata_crc,
        body_crc,
    ) = _REST.unpack_from(data, _BEGIN.size)
    if metadata_bytes > METADATA_BYTES_MAX or body_bytes > BODY_BYTES_MAX:
        raise BadRecord("the record is too long")
    if kind not in _KINDS:
        raise BadRecord("the record is of an unknown kind")
    return Header(
        _KINDS[kind],
        policy,
        partition,
        object_hash,
        _timestamp(ticks, offset),
        None if also == _NO_PARTITION else also,
        None if fragment == _NO_FRAGMENT else fragment,
        bool(flags & _DURABLE),
        bool(flags & _EXTERNAL),
        None if ctype == _NO_TIME else _timestamp(ctype),
        written_ns,
        _references(data, references) if references else (),
        body_bytes,
        metadata_bytes,
        batch_unit,
        metadata_crc,
        body_crc,
    )


def _references(data: bytes | memoryview, count: int) -> tuple[Reference, ...]:
    words = (_REFERENCE.unpack_from(data, HEADER_BYTES + at * _REFERENCE.size) for at in range(count))
    return tuple(Reference(where, Position(volume, unit)) for where, volume, unit in words)


def _timestamp(ticks: int, offset: int = 0) -> Timestamp:
    try:
        return Timestamp.from_raw(ticks, offset)
    except InvalidTimestamp as error:
        raise BadRecord(str(error))


def check_metadata(header: Header, metadata: bytes | memoryview) -> bytes:
    """Return the metadata if it is what was written; raises ``BadRecord``."""
    found = bytes(metadata)
    if len(found) != header.metadata_bytes or zlib.crc32(found) != header.metadata_crc:
        raise BadRecord("the checksum of the metadata is wrong")
    return found


def is_body_sound(header: Header, body: bytes | memoryview) -> bool:
    """Return True if a body is what was written."""
    return len(body) == header.body_bytes and crc32()(body, 0) == header.body_crc
