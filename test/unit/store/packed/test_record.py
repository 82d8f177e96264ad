"""swift/store/packed/record.py: what is encoded is decoded, and nothing else is."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import ZERO, Timestamp
from swift.store.packed.record import (
    ALIGNMENT,
    HEADER_BYTES,
    BadRecord,
    Header,
    Kind,
    Position,
    Record,
    Reference,
    check_metadata,
    file_name,
    is_body_sound,
    may_begin,
    parse_header,
)

NONCE = b"12345678"
TICKS_MAX = 10**15 - 1
UINT32 = st.integers(0, 2**32 - 1)
PARTITIONS = st.integers(0, 2**32 - 2)
POSITIONS = st.builds(Position, UINT32, UINT32)
TIMES = st.builds(Timestamp.from_raw, st.integers(0, TICKS_MAX), st.integers(0, 2**63))
RECORDS = st.builds(
    Record,
    st.builds(
        Header,
        st.sampled_from(Kind),
        UINT32,
        PARTITIONS,
        st.binary(min_size=16, max_size=16),
        TIMES,
        st.none() | PARTITIONS,
        st.none() | st.integers(0, 65534),
        st.booleans(),
        st.booleans(),
        st.none() | st.builds(Timestamp.from_raw, st.integers(0, TICKS_MAX)),
        st.integers(0, 2**63),
        st.lists(st.builds(Reference, PARTITIONS, POSITIONS), max_size=5).map(tuple),
    ),
    st.binary(max_size=300),
    st.binary(max_size=300),
)
PLAIN = Record(Header(Kind.DATA, 0, 7, bytes(16), Timestamp(1)), b"metadata", b"body")


@given(RECORDS, UINT32)
def test_a_record_comes_back_as_it_was(record, batch_unit):
    data = b"".join(record.encode(NONCE, batch_unit))
    header = parse_header(data, NONCE)
    at = header.prefix_bytes
    metadata = check_metadata(header, data[at - header.metadata_bytes : at])
    assert is_body_sound(header, data[at : at + header.body_bytes])
    assert (metadata, data[at : at + header.body_bytes]) == (record.metadata, record.body)
    assert header.batch_unit == batch_unit
    assert header[:12] == record.header[:12]


@given(RECORDS)
def test_a_record_has_the_length_that_it_says(record):
    data = b"".join(record.encode(NONCE, 1))
    assert len(data) == record.total_bytes
    assert len(data) % ALIGNMENT == 0
    assert 0 <= len(data) - parse_header(data, NONCE).total_bytes < ALIGNMENT


@given(st.integers(0, HEADER_BYTES - 1), st.integers(1, 255))
def test_a_changed_byte_of_a_header_is_noticed(at, change):
    data = bytearray(b"".join(PLAIN.encode(NONCE, 1)))
    data[at] ^= change
    with pytest.raises(BadRecord):
        parse_header(data, NONCE)


@given(st.integers(0, len(b"".join(PLAIN.encode(NONCE, 1)))))
def test_a_record_that_is_cut_off_is_none(end):
    data = b"".join(PLAIN.encode(NONCE, 1))[:end]
    prefix = HEADER_BYTES + len(PLAIN.metadata)
    if end < HEADER_BYTES:
        with pytest.raises(BadRecord):
            parse_header(data, NONCE)
    elif end < prefix:
        with pytest.raises(BadRecord):
            check_metadata(parse_header(data, NONCE), data[HEADER_BYTES:])
    elif end < prefix + len(PLAIN.body):
        assert not is_body_sound(parse_header(data, NONCE), data[prefix:])


def test_metadata_and_body_that_changed_are_noticed():
    header = parse_header(b"".join(PLAIN.encode(NONCE, 1)), NONCE)
    with pytest.raises(BadRecord, match="metadata"):
        check_metadata(header, b"Metadata")
    assert not is_body_sound(header, b"Body")


def test_a_record_of_another_volume_is_none():
    data = b"".join(PLAIN.encode(b"anothers", 1))
    assert not may_begin(data, 0, NONCE)
    with pytest.raises(BadRecord, match="begins"):
        parse_header(data, NONCE)


@pytest.mark.parametrize(("at", "value"), [(0, b"\0"), (0, b"\xff"), (72, b"\xff\xff\xff\xff")])
def test_a_header_with_a_right_checksum_and_senseless_content_is_none(at, value):
    """Kinds of a later release, and lengths above the bounds."""
    data = bytearray(b"".join(PLAIN.encode(NONCE, 1)))
    begin = 16 + at
    data[begin : begin + len(value)] = value
    data[12:16] = struct.pack("<I", zlib.crc32(data[16:HEADER_BYTES]))
    with pytest.raises(BadRecord):
        parse_header(data, NONCE)


@pytest.mark.parametrize(
    ("kind", "fragment", "durable", "ctype", "name"),
    [
        (Kind.DATA, None, False, None, "0000000001.00000.data"),
        (Kind.DATA, 3, False, None, "0000000001.00000#3.data"),
        (Kind.DATA, 3, True, None, "0000000001.00000#3#d.data"),
        (Kind.META, None, False, None, "0000000001.00000.meta"),
        (Kind.META, None, False, Timestamp(1), "0000000001.00000+0.meta"),
        (Kind.TOMBSTONE, None, False, None, "0000000001.00000.ts"),
        (Kind.GONE, None, False, None, ""),
    ],
)
def test_a_record_has_the_name_that_the_file_engine_would_give_it(kind, fragment, durable, ctype, name):
    assert file_name(kind, Timestamp(1), fragment, durable, ctype) == name


def test_a_record_without_an_object_has_no_name():
    assert Header(Kind.UNWANTED, 0, 7, bytes(16), ZERO).name == ""
