"""Overlaps and gaps among shards are found, and what mends them is chosen (account-container.md §19)."""

from hashlib import md5

from hypothesis import given
from hypothesis import strategies as st

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.sharding.repair import (
    Gap,
    are_related,
    best_sequence,
    expanded,
    filler_of,
    find_gaps,
    find_overlaps,
    is_younger,
    isolated_in,
    staying,
)

STAMP = "1795000000.00000"
LATER = "1795000500.00000"


def shard(lower, upper, count=0, state=State.ACTIVE, stamp=STAMP, name=None):
    return ShardRange(name or f".shards_a/c-{lower}-{upper}-{stamp}", stamp, lower, upper, count, state=state)


def bounds(ranges):
    return [(item.lower, item.upper) for item in ranges]


def test_the_sequence_with_most_objects_is_the_best():
    ranges = [shard("", "m", 5), shard("m", "", 5), shard("", "k", 50), shard("k", "", 1)]
    assert bounds(best_sequence(ranges)) == [("", "k"), ("k", "")]


def test_of_sequences_with_as_many_objects_the_one_made_at_one_time_is_better():
    ranges = [shard("", "m", 5), shard("m", "", 5, stamp=LATER), shard("", "k", 5), shard("k", "", 5)]
    assert bounds(best_sequence(ranges)) == [("", "k"), ("k", "")]


def test_a_sequence_that_has_its_rows_is_better_than_a_fuller_one_that_has_not():
    ranges = [shard("", "m", 1), shard("m", "", 1), shard("", "", 100, State.CREATED)]
    assert bounds(best_sequence(ranges)) == [("", "m"), ("m", "")]


def test_what_does_not_reach_the_end_is_no_sequence():
    assert best_sequence([shard("", "m"), shard("n", "")]) == []
    assert best_sequence([]) == []
    assert bounds(best_sequence([shard("c", "m")], "c", "m")) == [("c", "m")]


def test_rows_in_a_part_of_a_sequence_are_said_to_be_isolated():
    whole, created = shard("", "m"), shard("m", "", state=State.CREATED)
    assert isolated_in([whole], [created]) == ""
    assert isolated_in([whole, created], []) == "acceptor path"
    assert isolated_in([created], [whole]) == "donor ranges"
    assert isolated_in([created], [created]) == ""


def test_a_shard_is_related_to_the_one_it_was_split_off():
    parent = shard("", "", name=".shards_a/c-0-1-0")
    digest = md5(b"c-0-1-0").hexdigest()
    child = shard("", "m", name=f".shards_a/c-{digest}-{STAMP}-0")
    assert are_related(parent, child)
    assert are_related(child, parent)
    assert not are_related(child, shard("m", ""))


def test_a_range_is_young_until_its_age_has_passed():
    now = Timestamp("1795000010.00000")
    assert is_younger(shard("", ""), now, 11)
    assert not is_younger(shard("", ""), now, 10)


def test_gaps_are_what_no_staying_shard_takes():
    assert find_gaps([shard("", "c"), shard("f", "k"), shard("k", "m")]) == [Gap("c", "f"), Gap("m", "")]
    assert find_gaps([shard("", "c"), shard("c", "", state=State.SHRINKING)]) == [Gap("c", "")]
    assert find_gaps([]) == [Gap("", "")]
    assert find_gaps([shard("", "")]) == []
    assert find_gaps([shard("c", "k")], "c", "k") == []


def test_overlaps_are_ranges_that_begin_before_an_earlier_one_ends():
    ranges = [shard("", "m"), shard("k", "p"), shard("p", "")]
    assert bounds(find_overlaps(ranges)) == [("k", "p")]
    assert find_overlaps([shard("", "m"), shard("k", "m", state=State.SHRUNK), shard("m", "")]) == []
    assert bounds(find_overlaps([shard("", ""), shard("z", "")])) == [("z", "")]


def test_a_gap_is_filled_by_the_active_neighbour_above_it_if_there_is_one():
    below, above = shard("", "c"), shard("f", "")
    gap = Gap("c", "f")
    assert filler_of(gap, [below, above]) == above
    assert filler_of(gap, [below, shard("f", "", state=State.CREATED)]) == below
    assert filler_of(gap, []) is None
    now = Timestamp(LATER)
    assert bounds([expanded(above, gap, now)]) == [("c", "")]
    assert bounds([expanded(below, gap, now)]) == [("", "f")]
    assert expanded(below, gap, now).timestamp == now.normal


_EDGES = st.sampled_from(["", "b", "d", "f", "h"])
_RANGES = st.lists(
    st.builds(
        lambda lower, upper, count, state: shard(lower, upper, count, state),
        _EDGES,
        _EDGES,
        st.integers(0, 9),
        st.sampled_from([State.CREATED, State.CLEAVED, State.ACTIVE, State.SHRINKING]),
    ).filter(lambda item: not item.upper or item.lower < item.upper),
    max_size=8,
)


@given(_RANGES)
def test_every_name_is_in_a_gap_or_in_a_staying_shard_and_never_in_both(ranges):
    kept, gaps = staying(ranges), find_gaps(ranges)
    for name in "acegi":
        is_taken = any(item.lower < name and (not item.upper or name <= item.upper) for item in kept)
        is_missed = any(gap.lower < name and (not gap.upper or name <= gap.upper) for gap in gaps)
        assert is_taken != is_missed


@given(_RANGES)
def test_the_best_sequence_has_neither_gaps_nor_overlaps(ranges):
    best = best_sequence(ranges)
    if best:
        assert best[0].lower == ""
        assert best[-1].upper == ""
        assert all(one.upper == other.lower for one, other in zip(best, best[1:], strict=False))
