"""swift/store/packed/entry.py: entries, sizes and keys of the index."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import Timestamp
from swift.store.packed.entry import (
    VOLUME_NUMBERS,
    VOLUME_UNITS,
    BadEntry,
    Entry,
    decode_entries,
    encode_entries,
    object_hash_of,
    object_key,
    partition_prefix,
    size_code,
    size_of,
    space_bits,
)
from swift.store.packed.record import BODY_BYTES_MAX, METADATA_BYTES_MAX, Kind, Position

TICKS_MAX = 10**15 - 1
ENTRIES = st.builds(
    Entry,
    st.sampled_from([Kind.DATA, Kind.META, Kind.TOMBSTONE]),
    st.builds(Timestamp.from_raw, st.integers(0, TICKS_MAX), st.integers(0, 3) | st.integers(0, 2**64 - 1)),
    st.builds(Position, st.integers(0, VOLUME_NUMBERS - 1), st.integers(0, VOLUME_UNITS - 1)),
    st.integers(0, 255),
    st.none() | st.integers(0, 255),
    st.booleans(),
    st.booleans(),
    st.none() | st.builds(Timestamp.from_raw, st.integers(0, TICKS_MAX)),
)
HASHES = st.binary(min_size=16, max_size=16)
PARTITIONS = st.integers(0, 64) | st.integers(0, 2**32 - 1)


@given(st.lists(ENTRIES, max_size=4))
def test_entries_come_back_as_they_were(entries):
    assert decode_entries(encode_entries(entries)) == entries


def test_an_entry_of_a_plain_object_has_15_bytes():
    entry = Entry(Kind.DATA, Timestamp(1), Position(1, 1), 3)
    assert len(entry.encode()) == 15


@given(st.binary(max_size=80))
def test_what_is_no_entry_is_refused_in_one_way(data):
    try:
        entries = decode_entries(data)
    except BadEntry:
        return
    assert len(entries) <= len(data) // 15


@given(st.lists(ENTRIES, min_size=1, max_size=2), st.integers(1, 14))
def test_entries_that_are_cut_off_are_refused(entries, lacking):
    with pytest.raises(BadEntry):
        decode_entries(encode_entries(entries)[:-lacking])


@given(st.integers(0, METADATA_BYTES_MAX + BODY_BYTES_MAX))
def test_a_code_stands_for_the_size_or_a_little_more(length):
    code = size_code(length)
    assert 0 <= code <= 255
    assert length <= size_of(code) <= max(64, length * 1.06 + 2)
    assert not code or size_of(code - 1) < length


# --- keys ---------------------------------------------------------------------------------------------


@given(PARTITIONS, HASHES, st.integers(0, 32))
def test_the_keys_of_a_partition_are_those_between_its_bounds(partition, object_hash, part_power):
    """Whatever the hash begins with: no other partition's key is between them, in any space."""
    natural = int.from_bytes(object_hash[:4], "big") >> (32 - part_power) if part_power else 0
    for own in {partition, natural}:
        bits = space_bits(own, object_hash)
        key = object_key(1, bits, own, object_hash)
        assert object_hash_of(key) == object_hash
        near = {own, partition, natural, own + 1, max(own - 1, 0), own * 2, own // 2}
        for other in {number for number in near if number < 2**32}:
            begin, end = partition_prefix(1, bits, other)
            is_within = bool(begin) and begin <= key and (not end or key < end)
            assert is_within == (own == other), (own, other, bits)


@given(HASHES, st.integers(1, 32))
def test_a_partition_that_the_hash_begins_with_costs_no_bytes(object_hash, part_power):
    partition = int.from_bytes(object_hash[:4], "big") >> (32 - part_power)
    if partition:
        bits = space_bits(partition, object_hash)
        assert bits <= 32
        assert len(object_key(1, bits, partition, object_hash)) == 17


@given(st.integers(1, 254), st.integers(0, 32) | st.just(255), PARTITIONS)
def test_bounds_stay_within_their_space(prefix, bits, partition):
    begin, end = partition_prefix(prefix, bits, partition)
    if begin:
        assert bytes((prefix,)) <= begin < end <= bytes((prefix + 1,))


@given(PARTITIONS, HASHES, HASHES)
def test_two_objects_of_a_space_have_keys_of_their_own(partition, one, two):
    bits = space_bits(partition, one)
    if space_bits(partition, two) == bits:
        keys = {object_key(1, bits, partition, each) for each in (one, two)}
        assert len(keys) == len({one, two})
