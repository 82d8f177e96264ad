"""What shards leave open is their container's own: at the end always, elsewhere while it takes them in."""

import pytest

from swift.base.shardrange import ShardRange, State
from swift.container.shardtable import ShardQuery, filled

STAMP = "1795000000.00000"


def own(state=State.SHARDED, lower="", upper=""):
    return ShardRange("a/c", STAMP, lower, upper, state=state)


def shards(*bounds):
    return [ShardRange(f".shards_a/c-{n}", STAMP, *edges) for n, edges in enumerate(bounds)]


def shown(ranges, whose, **query):
    found = filled(ranges, whose, ShardQuery(**query))
    return [(item.lower, item.upper, item.name == whose.name) for item in found]


@pytest.mark.parametrize("state", [State.ACTIVE, State.SHARDING, State.SHARDED])
def test_the_open_end_is_the_containers_own(state):
    assert shown(shards(("", "b"), ("b", "d")), own(state)) == [
        ("", "b", False),
        ("b", "d", False),
        ("d", "", True),
    ]
    assert shown([], own(state)) == [("", "", True)]
    assert shown(shards(("", "b"), ("b", "")), own(state)) == [("", "b", False), ("b", "", False)]


def test_a_root_that_takes_its_shards_in_has_the_names_of_those_that_are_gone():
    ranges = shards(("b", "d"), ("f", "h"))
    assert shown(ranges, own(State.ACTIVE)) == [
        ("", "b", True),
        ("b", "d", False),
        ("d", "f", True),
        ("f", "h", False),
        ("h", "", True),
    ]
    assert shown(ranges, own()) == [("b", "d", False), ("f", "h", False), ("h", "", True)]


def test_nothing_is_filled_beside_what_is_asked_for():
    ranges = shards(("b", "d"))
    active = own(State.ACTIVE)
    assert shown(ranges, active, marker="a", end_marker="c") == [("a", "b", True), ("b", "d", False)]
    assert shown(ranges, active, marker="c", end_marker="x") == [("b", "d", False), ("d", "x", True)]
    assert shown(ranges, active, marker="x", end_marker="b") == [("b", "d", False)]
    assert shown([], active, includes="c") == []


def test_the_bounds_of_a_shard_are_kept():
    assert shown(shards(("b", "c")), own(State.ACTIVE, "a", "d")) == [
        ("a", "b", True),
        ("b", "c", False),
        ("c", "d", True),
    ]
