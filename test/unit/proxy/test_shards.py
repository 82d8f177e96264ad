"""Lists of shards as they are cached (proxy.md §14); a row goes to the shard of its name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.entity import EntityPath
from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace
from swift.http import fields
from swift.http.request import Request
from swift.http.response import Response
from swift.proxy.shards import (
    bounds_of,
    find_shard,
    is_complete,
    namespaces_from,
    parse_namespaces,
    sorted_by_lower,
    updating_shard,
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


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"5",
        b"null",
        b'[{"name": "x", "lower": "", "upper": ""}]',
        b'[{"name": "a/c"}]',
        b"[1]",
        b"[" * 100_000,
    ],
)
def test_what_is_no_list_of_shards_is_refused(body):
    with pytest.raises(InvalidValue):
        parse_namespaces(body)


def updating(answer, name="m"):
    return updating_shard(
        Request("PUT", f"/v1/a/c/{name}"), lambda _request: answer, EntityPath("a", "c", name), recheck_s=0
    )


def shard_list(*spaces):
    rows = [{"name": space.name, "lower": space.lower, "upper": space.upper} for space in spaces]
    return Response(200, {fields.BACKEND_RECORD_TYPE: "shard"}, json.dumps(rows).encode())


def test_a_row_goes_to_the_shard_that_has_its_name():
    shards = shard_list(Namespace(".shards_a/c-1", "", "g"), Namespace(".shards_a/c-2", "g", ""))
    assert updating(shards) == EntityPath(".shards_a", "c-2")
    assert updating(shards, "g") == EntityPath(".shards_a", "c-1")


@pytest.mark.parametrize("response", [Response(404), Response(503), shard_list(), Response(200, {}, b"[]")])
def test_a_row_goes_to_the_root_when_no_shard_is_known(response):
    assert updating(response) is None
