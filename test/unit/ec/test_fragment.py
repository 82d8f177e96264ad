"""The header in front of every fragment."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ec.fragment import HEADER_BYTES, MAGIC, BadFragment, FragmentHeader, check_fragment


def fragment(payload=b"x" * 20, *, index=3, size=None, magic=MAGIC):
    head = struct.pack(
        "<IIIQB32sBBIII",
        *(index, len(payload) if size is None else size, 0, 100, 0, bytes(32), 0, 6, 0, magic, 0),
    )
    head += struct.pack("<I", zlib.crc32(head[:59]))
    return head.ljust(HEADER_BYTES, b"\0") + payload


def test_a_fragment_says_what_it_is():
    header = check_fragment(fragment())
    assert (header.index, header.payload_size, header.segment_length, header.backend_id) == (3, 20, 100, 6)
    assert header.checksum == header.computed_checksum


@pytest.mark.parametrize(
    "data",
    [b"", fragment()[:79], fragment(magic=1), fragment(b"short", size=20), fragment(size=19)],
    ids=["nothing", "less than a header", "something else", "cut off", "too long"],
)
def test_what_is_not_one_whole_fragment_never_reaches_the_library(data):
    with pytest.raises(BadFragment):
        check_fragment(data)


def test_a_damaged_header_has_another_checksum():
    data = bytearray(fragment())
    data[0] ^= 1
    header = FragmentHeader.parse(bytes(data))
    assert header.checksum != header.computed_checksum


@given(st.binary(max_size=200))
def test_whatever_comes_is_a_fragment_or_is_refused(data):
    try:
        assert len(data) == HEADER_BYTES + check_fragment(data).payload_size
    except BadFragment:
        pass
