"""Names say what they mean and come back when printed (spec: object-disk.md §3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import RAW_MAX, Timestamp
from swift.store.layout import (
    UnexpectedName,
    data_name,
    is_plain_data,
    is_rsync_temporary,
    meta_name,
    parse_name,
    tombstone_name,
)

_TIMES = st.builds(Timestamp.from_raw, st.integers(0, RAW_MAX), st.integers(0, 16**16 - 1))


@given(_TIMES, st.integers(0, 5), st.booleans())
def test_printed_names_parse_back(at, index, durable):
    assert parse_name(data_name(at))[1:3] == (at, ".data")
    assert parse_name(tombstone_name(at))[1:3] == (at, ".ts")
    file = parse_name(data_name(at, index, durable=durable), 6)
    assert (file.timestamp, file.fragment, file.durable) == (at, index, durable)


@given(_TIMES, st.integers(0, RAW_MAX))
def test_content_type_times_travel_in_meta_names(at, raw):
    ctype = Timestamp.from_raw(raw)
    file = parse_name(meta_name(at, ctype))
    assert file.timestamp == at
    # The same tick means the very same time, its offset included.
    assert file.ctype_timestamp == (at if raw == at.raw else ctype)
    assert parse_name(meta_name(at)).ctype_timestamp is None


def test_the_recorded_examples():
    at = Timestamp(5000000005)
    assert meta_name(at, Timestamp(5000000004)) == "5000000005.00000-186a0.meta"
    assert meta_name(Timestamp(5000000003), Timestamp(5000000003)) == "5000000003.00000+0.meta"
    moved = Timestamp("5000000010.00000_ac")
    assert meta_name(moved, moved) == "5000000010.00000_ac+0.meta"
    assert meta_name(moved) == "5000000010.00000_00000000000000ac.meta"


@pytest.mark.parametrize(
    "name",
    ["1.data", "1#x.data", "1#-1.data", "1#6.data", "1#\u0663.data", "foo#1.data", "#1.data"],
)
def test_archives_without_a_proper_index_are_unexpected(name):
    with pytest.raises(UnexpectedName):
        parse_name(name, 6)


def test_rsync_s_partial_files_are_known():
    assert is_rsync_temporary(".5000000018.00000.data.aB3xY9")
    assert not is_rsync_temporary("5000000018.00000.data")


@given(st.one_of(st.builds(data_name, _TIMES), st.text(max_size=22), st.from_regex(r"[0-9.]{16}\.data")))
def test_a_plain_name_is_its_own_printed_form(name):
    if is_plain_data(name):
        assert data_name(parse_name(name).timestamp) == name
        assert parse_name(name).timestamp.offset == 0


def test_only_replicated_data_without_offset_is_plain():
    assert is_plain_data("1700000000.00000.data")
    for name in ("1700000000.00000_1.data", "1700000000.00000#1.data", "1700000000.00000.meta", "17.0.data"):
        assert not is_plain_data(name)
