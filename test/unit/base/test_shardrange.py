"""Shard ranges: parsing, states and the merge rule (account-container.md §19.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace, check_bounds
from swift.base.shardrange import (
    AUDITING_STATES,
    LISTING_STATES,
    ShardRange,
    State,
    merge,
    parse_states,
)
from swift.base.timestamp import Timestamp


def t(seconds):
    return Timestamp(seconds).internal


def make(time=1, meta=1, state_time=1, **fields):
    defaults = {"object_count": 1, "bytes_used": 2, "state": State.ACTIVE, "tombstones": 0}
    return ShardRange(
        ".shards_a/c-1",
        t(time),
        meta_timestamp=t(meta),
        state_timestamp=t(state_time),
        **{**defaults, **fields},
    )


def test_the_newer_range_wins_entirely_and_is_unreported():
    old, new = make(1, lower="a", reported=True), make(2, lower="b", object_count=9, reported=True)
    assert merge(old, new) == make(2, lower="b", object_count=9, reported=False)
    assert merge(new, old) is new


def test_of_one_age_the_bounds_and_deletion_stay():
    merged = merge(make(lower="a", upper="m"), make(lower="b", upper="z", deleted=True, meta=2))
    assert (merged.lower, merged.upper, merged.deleted) == ("a", "m", False)


def test_newer_counts_are_taken_with_the_tombstones():
    merged = merge(make(meta=1), make(meta=2, object_count=7, bytes_used=70, tombstones=3))
    assert (merged.object_count, merged.bytes_used, merged.tombstones) == (7, 70, 3)
    assert merge(make(meta=2), make(meta=1, object_count=7)) == make(meta=2)


def test_a_state_goes_forward_at_one_time_and_follows_the_newer_time():
    assert merge(make(), make(state=State.SHARDING)).state is State.SHARDING
    assert merge(make(state=State.SHARDING), make()).state is State.SHARDING
    newer = merge(make(state=State.SHARDED), make(state=State.ACTIVE, state_time=2, epoch=t(9)))
    assert (newer.state, newer.epoch) == (State.ACTIVE, t(9))


@pytest.mark.parametrize(
    "ours, theirs, expected",
    [
        (make(reported=True), make(reported=False), True),
        (make(reported=False), make(reported=True), True),
        (make(reported=True), make(meta=2, object_count=7), False),
        (make(reported=True), make(meta=2), True),
        (make(reported=True), make(state=State.SHARDING), False),
        (make(reported=False), make(reported=False), False),
    ],
)
def test_a_report_counts_while_it_is_what_the_row_says(ours, theirs, expected):
    assert merge(ours, theirs).reported is expected


versions = st.builds(
    make,
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(1, 2),
    state=st.sampled_from([State.ACTIVE, State.SHARDING]),
)


@given(versions)
def test_merging_is_idempotent(a):
    assert merge(a, a) is a


@given(versions, versions)
def test_merging_twice_changes_nothing_more(a, b):
    once = merge(a, b)
    assert merge(once, b) == once


@given(versions, versions)
def test_merging_is_commutative_where_contents_follow_their_times(a, b):
    assert merge(a, b) == merge(b, a)


def test_rows_of_json_and_database_are_read():
    row = make(upper="m", epoch=t(5), reported=True)
    assert ShardRange.from_mapping(row.as_dict()) == row
    assert ShardRange.from_mapping({"name": "a/c", "timestamp": "1"}) == ShardRange("a/c", t(1))
    assert ShardRange.from_mapping({"name": "a/c", "timestamp": "1", "state": "active"}).state is State.ACTIVE


@pytest.mark.parametrize(
    "values",
    [
        "x",
        {},
        {"name": "noslash", "timestamp": "1"},
        {"name": "a/c"},
        {"name": "a/\ud800", "timestamp": "1"},
        {"name": "a/c", "timestamp": "1", "upper": "\ud800"},
        {"name": "a/c", "timestamp": "x"},
        {"name": "a/c", "timestamp": []},
        {"name": "a/c", "timestamp": "1", "state": 41},
        {"name": "a/c", "timestamp": "1", "state": "none"},
        {"name": "a/c", "timestamp": "1", "lower": "b", "upper": "a"},
        {"name": "a/c", "timestamp": "1", "lower": 5},
        {"name": "a/c", "timestamp": "1", "object_count": -1},
        {"name": "a/c", "timestamp": "1", "bytes_used": "x"},
    ],
    ids=repr,
)
def test_malformed_rows_are_refused(values):
    with pytest.raises(InvalidValue):
        ShardRange.from_mapping(values)


def test_states_by_name_number_and_alias():
    assert parse_states("active,50") == {State.ACTIVE, State.SHRINKING}
    assert parse_states("Listing") == LISTING_STATES
    assert parse_states("auditing,found") == AUDITING_STATES | {State.FOUND}
    for bad in ("", "bogus", "41", "active,"):
        with pytest.raises(InvalidValue):
            parse_states(bad)


def test_sorting_puts_open_ends_last():
    ranges = [make(upper=""), make(upper="m"), make(upper="z"), make(upper="m", state=State.FOUND)]
    ordered = sorted(ranges, key=lambda item: item.sort_key)
    assert [(r.upper, int(r.state)) for r in ordered] == [("m", 10), ("m", 40), ("z", 40), ("", 40)]


def test_namespaces_hold_what_is_above_lower_up_to_upper():
    space = Namespace("a/c-1", "g", "p")
    assert not space.includes("g") and space.includes("g\x00") and space.includes("p")
    assert not space.includes("p\x00")
    assert Namespace("a/c").includes("x") and Namespace("a/c").is_whole
    assert (space.account, space.container) == ("a", "c-1")


def test_overlaps():
    space = Namespace("a/c", "g", "p")
    assert space.overlaps("", "h") and space.overlaps("o", "") and space.overlaps("", "")
    assert not space.overlaps("p", "") and not space.overlaps("", "g")


def test_bounds_must_ascend():
    assert check_bounds("a", "") == ("a", "")
    for low, high in (("b", "a"), ("a", "a"), (1, "a"), ("a", None)):
        with pytest.raises(InvalidValue):
            check_bounds(low, high)
