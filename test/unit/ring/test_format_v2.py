"""The sections of ring files of version 2, uncompressed (ring.md §5)."""

import hashlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ring.errors import RingFormatError
from swift.ring.format_v2 import ASSIGNMENTS, DEVICES, METADATA, IndexWriter, decode, framed, sections
from swift.ring.table import RingTable
from test.unit.ring.test_ringfile import make_table


def whole(parts, *, change=lambda index: None):
    """A file of these sections; ``change`` may spoil its index."""
    body = bytearray(b"magic!")
    writer = IndexWriter(lambda: (len(body), len(body)))
    for name, part in parts:
        writer.add(name, framed(part), body.extend)
    blob, start, compressed = writer.render()
    index = json.loads(blob[8:])
    change(index)
    return bytes(body) + framed(json.dumps(index).encode()) + start + compressed


def parts_of(table=None, **changes):
    return [
        (name, changes.get(name.rpartition("/")[2], part)) for name, part in sections(table or make_table())
    ]


@pytest.mark.parametrize("typecode", ["H", "I"])
def test_what_was_written_is_read(typecode):
    table = make_table(typecode=typecode)
    found = decode(whole(parts_of(table)))
    assert found.rows == table.rows and found.records == table.records
    assert (found.build_version, found.next_part_power, found.format_version) == (5, 3, 2)


def test_rows_are_big_endian_on_every_machine():
    (_, body) = sections(make_table(rows=([0, 2, 0, 2],)))[2]
    assert body == bytes([0, 0, 0, 2, 0, 0, 0, 2])


def test_sections_that_are_not_known_are_left_alone():
    assert decode(whole([*parts_of(), ("swift/ring/later", b"?")])).rows == make_table().rows


@pytest.mark.parametrize("kind", ["md5", "sha1", "sha512"])
def test_other_digests_are_believed_too(kind):
    parts = parts_of()

    def change(index):
        for name, part in parts:
            index[name][4:] = [kind, hashlib.new(kind, framed(part)).hexdigest()]

    assert decode(whole(parts, change=change)).rows == make_table().rows


def set_in(name, place, value):
    return lambda index: index[name].__setitem__(place, value)


@pytest.mark.parametrize(
    "body, reason",
    [
        (b"", "ends before its index"),
        (b"x" * 15, "ends before its index"),
        (b"x" * 16, "its index lies outside"),
        (framed(b"{}") + struct.pack(">QQ", 0, 0), "section swift/ring/metadata is missing"),
        (framed(b"[]") + struct.pack(">QQ", 0, 0), "index is not an object"),
        (framed(b"{") + struct.pack(">QQ", 0, 0), "index is not JSON"),
        (struct.pack(">Q", 1 << 63) + struct.pack(">QQ", 0, 0), "ends inside its index"),
        (whole(parts_of(metadata=b"[]")), "metadata is not an object"),
        (whole(parts_of(metadata=b'{"part_shift": 30}')), "dev_id_bytes is None"),
        (whole(parts_of(metadata=b'{"part_shift": 30, "dev_id_bytes": 3}')), "dev_id_bytes is 3"),
        (whole(parts_of(devices=b"nothing")), "device list is not JSON"),
        (whole(parts_of(assignments=b"\0")), "ends inside a device id"),
        (whole(parts_of()[:2]), "section swift/ring/assignments is missing"),
        (whole(parts_of(), change=set_in(DEVICES, 5, "0" * 64)), "does not match its digest"),
        (whole(parts_of(), change=set_in(DEVICES, 4, "crc")), "unknown kind 'crc'"),
        (whole(parts_of(), change=set_in(DEVICES, 3, 7)), "differs from the index"),
        (whole(parts_of(), change=set_in(DEVICES, 1, "6")), "holds no offsets"),
        (whole(parts_of(), change=set_in(DEVICES, 1, -1)), "lies outside"),
        (whole(parts_of(), change=set_in(DEVICES, 1, 1 << 70)), "lies outside"),
        (whole(parts_of(), change=lambda index: index[METADATA].pop()), "six elements"),
    ],
)
def test_what_does_not_add_up_is_refused_with_the_reason(body, reason):
    with pytest.raises(RingFormatError, match=reason):
        decode(body)


@given(st.integers(0), st.integers(1, 255))
def test_a_changed_byte_of_a_section_is_found(place, change):
    body = bytearray(whole(parts_of()))
    start = body.index(framed(dict(parts_of())[ASSIGNMENTS]))
    place = start + 8 + place % (len(framed(dict(parts_of())[ASSIGNMENTS])) - 8)
    body[place] ^= change
    with pytest.raises(RingFormatError, match="digest"):
        decode(bytes(body))


@given(st.binary(max_size=200))
def test_hostile_bytes_are_refused_by_that_error_alone(body):
    try:
        assert isinstance(decode(body), RingTable)
    except RingFormatError:
        return
