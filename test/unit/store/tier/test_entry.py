"""Entries of the tier: what is packed comes back, and what is damaged is no entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.store.tier.entry import (
    FILES_MAX,
    Extent,
    FileFacts,
    Hashes,
    Snapshot,
    Stamp,
    decode,
    decode_hashes,
    encode,
    encode_hashes,
    has_body,
)

NUMBERS = st.integers(min_value=0, max_value=2**63 - 1)
FILES = st.builds(
    FileFacts,
    st.sampled_from(["1.data", "2.meta", "3.ts", "1700000000.00000#3#d.data", "é.data"]),
    st.binary(max_size=300),
    NUMBERS,
    NUMBERS,
    st.binary(max_size=128),
)
SNAPSHOTS = st.builds(
    Snapshot,
    NUMBERS,
    NUMBERS,
    st.builds(Stamp, NUMBERS, NUMBERS),
    st.lists(FILES, max_size=FILES_MAX).map(tuple),
    st.none() | st.builds(Extent, NUMBERS, st.integers(min_value=0, max_value=2**32 - 1)),
)
DIGESTS = st.binary(min_size=16, max_size=16).map(bytes.hex)
INDEXED = st.dictionaries(st.none() | st.integers(min_value=0, max_value=100), DIGESTS, max_size=4)
HASHES = st.builds(
    Hashes,
    NUMBERS,
    NUMBERS,
    st.dictionaries(st.from_regex(r"[0-9a-f]{3}", fullmatch=True), DIGESTS | INDEXED, max_size=5),
)
ONE = Snapshot(1, 2, Stamp(3, 4), (FileFacts("1.data", b"blob", 5, 6, b"handle"),), Extent(7, 8))


@given(SNAPSHOTS)
def test_a_directory_comes_back_as_it_was_kept(snapshot):
    value = encode(snapshot)
    assert decode(value) == snapshot
    assert has_body(value) == (snapshot.body is not None)


@given(HASHES)
def test_hashes_come_back_as_they_were_kept(entry):
    assert decode_hashes(encode_hashes(entry)) == entry


@pytest.mark.parametrize(
    ("value", "read"),
    [(encode(ONE), decode), (encode_hashes(Hashes(1, 2, {"abc": "00" * 16})), decode_hashes)],
    ids=["directory", "hashes"],
)
def test_whatever_bit_is_wrong_and_wherever_it_ends_it_is_no_entry(value, read):
    assert read(value) is not None
    for at in range(len(value)):
        for bit in range(8):
            assert read(value[:at] + bytes([value[at] ^ (1 << bit)]) + value[at + 1 :]) is None
        assert read(value[:at]) is None
    assert read(value + b"\0") is None


@given(st.binary(max_size=200))
def test_foreign_bytes_are_no_entry(value):
    assert decode(value) is None
    assert decode_hashes(value) is None


def test_the_body_is_the_only_file_that_has_one():
    two = ONE._replace(files=(*ONE.files, FileFacts("2.data", b"", 0, 0)))
    assert ONE.only_body == ONE.files[0] == ONE.file("1.data")
    assert two.only_body is None
    assert ONE._replace(files=(FileFacts("2.ts", b"", 0, 0),)).only_body is None
    assert two.names == ["1.data", "2.data"]
    assert not has_body(None)
    assert not has_body(b"")
