"""A container is cut into parts of equal numbers of objects (account-container.md §19.3)."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.sharding.scan import Cut, find_cuts, in_state, ranges_of_cuts, shard_name

STAMP = "1795000000.00000"
OWN = ShardRange("a/c", STAMP)


def table(count, *, deleted=(), others=()):
    """Objects o000, o001 ... ; some deleted, some of policy 1."""
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE object (name TEXT, deleted INTEGER, storage_policy_index INTEGER)")
    made.executemany(
        "INSERT INTO object VALUES (?, ?, ?)",
        [(f"o{n:03}", n in deleted, int(n in others)) for n in range(count)],
    )
    return made


def cuts(connection, rows, minimum=1, own=OWN, **more):
    return find_cuts(connection, own, 0, rows=rows, minimum=minimum, **more)


def test_every_part_but_the_last_has_so_many_objects():
    found, is_complete = cuts(table(10), 4)
    assert found == [Cut("", "o003", 4), Cut("o003", "o007", 4), Cut("o007", "", 2)]
    assert is_complete


def test_a_rest_below_the_minimum_stays_with_the_part_before():
    assert cuts(table(10), 4, minimum=3)[0] == [Cut("", "o003", 4), Cut("o003", "", 6)]


def test_what_is_one_part_is_not_cut():
    assert cuts(table(4), 4) == ([], False)
    assert cuts(table(0), 4) == ([], False)


def test_a_limit_leaves_the_rest_for_later_and_later_goes_on_behind_it():
    connection = table(10)
    first, is_complete = cuts(connection, 4, limit=1)
    assert (first, is_complete) == ([Cut("", "o003", 4)], False)
    rest, is_complete = cuts(connection, 4, after=first[-1].upper)
    assert rest == [Cut("o003", "o007", 4), Cut("o007", "", 2)]
    assert is_complete


def test_deleted_rows_and_those_of_other_policies_do_not_count():
    found, _ = cuts(table(10, deleted={0, 1}, others={2}), 4)
    assert found == [Cut("", "o006", 4), Cut("o006", "", 3)]


def test_a_shard_is_cut_within_its_bounds():
    own = ShardRange(".shards_a/c-1", STAMP, "o001", "o006")
    assert cuts(table(10), 2, own=own)[0] == [
        Cut("o001", "o003", 2),
        Cut("o003", "o005", 2),
        Cut("o005", "o006", 1),
    ]


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 20), st.integers(1, 3))
def test_parts_found_in_any_steps_are_those_found_at_once(count, rows, minimum, step):
    connection = table(count)
    whole, is_complete = cuts(connection, rows, minimum)
    found, done = [], False
    while not done:
        after = found[-1].upper if found else ""
        more, done = cuts(connection, rows, minimum, after=after, limit=step)
        found += more
        if not more:
            break
    assert found == whole
    assert done == is_complete
    assert sum(cut.object_count for cut in whole) in (0, count)
    assert all(cut.object_count >= min(rows, minimum) for cut in whole)
    connection.close()


def test_shards_are_named_by_their_parent_time_and_number():
    name = shard_name("a", "c", "c", Timestamp(STAMP), 3)
    assert name == f".shards_a/c-4a8a08f09d37b73795649038408b5f33-{STAMP}-3"


def test_found_ranges_have_the_cuts_bounds_and_counts():
    ranges = ranges_of_cuts([Cut("", "m", 5), Cut("m", "", 2)], "a", "c", "c", Timestamp(STAMP), 7)
    assert [(r.lower, r.upper, r.object_count, r.state) for r in ranges] == [
        ("", "m", 5, State.FOUND),
        ("m", "", 2, State.FOUND),
    ]
    assert [r.name.rsplit("-", 1)[1] for r in ranges] == ["7", "8"]


@pytest.mark.parametrize("epoch", [False, True])
def test_a_new_state_has_its_own_time_and_is_to_be_reported(epoch):
    now = Timestamp("1795000009.00000")
    changed = in_state(ShardRange("a/c", STAMP, reported=True, epoch="1"), State.SHARDING, now, epoch=epoch)
    assert (changed.state, changed.state_timestamp, changed.reported) == (State.SHARDING, now.normal, False)
    assert changed.timestamp == STAMP
    assert changed.epoch == (now.normal if epoch else "1")
