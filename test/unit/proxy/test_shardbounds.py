"""Lists of shards as they are cached (proxy.md §14)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.entity import EntityPath
from swift.base.namespace import Namespace
from swift.proxy.shardbounds import (
    bounds_of,
    find_shard,
    is_complete,
    namespaces_from,
    sorted_by_lower,
    validated_bounds,
)

LOWERS = st.lists(st.text("abcdefgh", min_size=1, max_size=3), max_size=6, unique=True)


def spaces_of(lowers):
    """Namespaces that hold every name once."""
    edges = ["", *sorted(lowers), ""]
    return [
        Namespace(f".shards_a/c-{n}", low, high)
        for n, (low, high) in enumerate(zip(edges, edges[1:], strict=False))
    ]


@given(LOWERS, st.randoms())
def test_what_is_complete_comes_back_as_it_was(lowers, rng):
    spaces = spaces_of(lowers)
    mixed = rng.sample(spaces, len(spaces))
    assert is_complete(sorted_by_lower(mixed))
    bounds = bounds_of(sorted_by_lower(mixed))
    assert validated_bounds(bounds) == bounds
    assert namespaces_from(bounds) == spaces


@given(LOWERS.filter(bool), st.text("abcdefgh", min_size=1, max_size=4))
def test_a_name_is_in_the_shard_whose_namespace_includes_it(lowers, name):
    spaces = spaces_of(lowers)
    (home,) = [space for space in spaces if space.includes(name)]
    assert find_shard(bounds_of(spaces), name) == EntityPath(home.account, home.container)


@given(LOWERS.filter(lambda lowers: len(lowers) > 1), st.data())
def test_a_gap_or_an_overlap_is_not_complete(lowers, data):
    spaces = spaces_of(lowers)
    gone = data.draw(st.integers(0, len(spaces) - 1))
    assert not is_complete(spaces[:gone] + spaces[gone + 1 :])
    wider = spaces[1]._replace(lower="")
    assert not is_complete([spaces[0], wider, *spaces[2:]])


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [],
        "text",
        [["", "a/c"], ["b"]],
        [["", "a/c"], ["b", 1]],
        [["", "noslash"]],
        [["", "/c"]],
        [["b", "a/c"], ["a", "a/d"]],
        [["a", "a/c"], ["a", "a/d"]],
        [[["deep"], "a/c"]],
    ],
)
def test_what_others_left_in_the_cache_is_a_miss_unless_it_is_in_order(value):
    assert validated_bounds(value) is None
