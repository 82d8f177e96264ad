"""The content of ring files of version 1, without gzip and files around it (ring.md §4)."""

import json
import struct
import sys
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ring.errors import RingFormatError
from swift.ring.format_v1 import decode, dump_json, encode, load_json
from swift.ring.table import RingTable
from test.unit.ring.test_ringfile import RECORDS, make_table


def content(rows=b"", *, length=None, text=None, **head):
    head = {"devs": list(RECORDS), "part_shift": 31, "replica_count": 1, "byteorder": "little", **head}
    text = json.dumps(head).encode() if text is None else text
    return struct.pack(">I", len(text) if length is None else length) + text + rows


def test_what_was_encoded_is_decoded():
    table = make_table()
    assert decode(encode(table)) == table


@given(
    st.integers(0, 4).flatmap(
        lambda power: st.lists(
            st.lists(st.sampled_from([0, 2]), min_size=1 << power, max_size=1 << power), max_size=3
        ).map(lambda rows: (power, rows))
    ),
    st.integers(0, 1 << 40) | st.none(),
)
def test_any_table_survives(powered_rows, version):
    power, rows = powered_rows
    table = RingTable(32 - power, tuple(array("H", row) for row in rows), RECORDS, version)
    assert decode(encode(table)) == table


@pytest.mark.parametrize("order", ["little", "big"])
def test_rows_of_either_byte_order_are_read(order):
    rows = b"".join(number.to_bytes(2, order) for number in (0, 2))
    assert decode(content(rows, byteorder=order)).rows == (array("H", [0, 2]),)


def test_without_an_order_rows_are_this_machines():
    text = json.dumps({"devs": list(RECORDS), "part_shift": 31, "replica_count": 1}).encode()
    rows = b"".join(number.to_bytes(2, sys.byteorder) for number in (2, 0))
    assert decode(content(rows, text=text)).rows == (array("H", [2, 0]),)


def test_the_header_is_sorted_ascii_with_spaces():
    assert dump_json({"b": "ü", "a": [1]}) == b'{"a": [1], "b": "\\u00fc"}'


def test_a_last_row_may_be_shorter():
    rows = array("H", [0, 2, 2]).tobytes()
    table = decode(content(rows, replica_count=2))
    assert [list(row) for row in table.rows] == [[0, 2], [2]] and table.replica_count == 1.5


GOOD = array("H", [0, 2]).tobytes()


@pytest.mark.parametrize(
    "body, reason",
    [
        (b"\0\0", "ends before its JSON header"),
        (content(length=4000), "ends inside its JSON header"),
        (content(text=b"{"), "JSON header is not JSON"),
        (content(text=b"[1]"), "not an object"),
        (content(text=b"[" * 100_000), "not JSON"),
        (content(GOOD, part_shift=33), "part_shift is 33"),
        (content(GOOD, part_shift=True), "part_shift is True"),
        (content(GOOD, byteorder="middle"), "byteorder is 'middle'"),
        (content(GOOD, replica_count=-1), "replica_count is -1"),
        (content(GOOD, replica_count=True), "replica_count is True"),
        (content(GOOD, replica_count=1.0), "replica_count is 1.0"),
        (content(GOOD, replica_count=10**9), "ends after 1 of 1000000000"),
        (content(GOOD[:3]), "ends inside a device id"),
        (content(GOOD, devs={}), "dev"),
        (content(GOOD, version="x"), "version"),
        (content(GOOD, next_part_power=70), "next_part_power"),
    ],
)
def test_what_is_none_is_refused_with_the_reason(body, reason):
    with pytest.raises(RingFormatError, match=reason):
        decode(body)


@given(st.binary(max_size=200))
def test_hostile_bytes_are_refused_by_that_error_alone(body):
    with pytest.raises(RingFormatError):
        decode(body)


@given(st.integers(0, 300), st.integers(0, 255))
def test_a_changed_byte_is_refused_or_another_table(place, value):
    body = bytearray(encode(make_table()))
    body[place % len(body)] = value
    try:
        assert isinstance(decode(bytes(body)), RingTable)
    except RingFormatError:
        return


def test_ids_of_four_bytes_have_no_place_here():
    with pytest.raises(RingFormatError, match="2-byte"):
        encode(make_table(typecode="I"))


def test_json_that_is_none_is_named():
    with pytest.raises(RingFormatError, match="its device list is not JSON"):
        load_json(b"\xff", "device list")
