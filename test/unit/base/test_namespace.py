"""Which names belong to a shard."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace, check_bounds, upper_key

NAMES = st.text("abc", max_size=3)


def test_a_namespace_excludes_its_lower_bound_and_includes_its_upper_one():
    space = Namespace(".shards_a/c-1", "b", "d")
    assert [space.includes(name) for name in ("b", "b0", "d", "d0")] == [False, True, True, False]
    assert (space.account, space.container) == (".shards_a", "c-1")


def test_empty_bounds_are_no_bounds():
    whole = Namespace("a/c")
    assert whole.is_whole and whole.includes("\U0010ffff")
    assert not Namespace("a/c", "b").is_whole
    assert Namespace("a/c", "b").includes("zzz")


@given(NAMES, NAMES, NAMES, NAMES)
def test_ranges_overlap_when_a_name_could_lie_in_both(lower, upper, other_lower, other_upper):
    assume((not upper or lower < upper) and (not other_upper or other_lower < other_upper))
    space, other = Namespace("a/c", lower, upper), Namespace("a/d", other_lower, other_upper)
    lowest = max(lower, other_lower) + "\0"  # no name of these letters comes before it
    assert space.overlaps(other_lower, other_upper) == (space.includes(lowest) and other.includes(lowest))


def test_no_upper_bound_sorts_last():
    assert sorted(["", "b", "a"], key=upper_key) == ["a", "b", ""]


@pytest.mark.parametrize(("lower", "upper"), [("a", "a"), ("b", "a"), (1, "a"), ("a", None), (b"a", "b")])
def test_bounds_from_outside_that_hold_nothing_are_refused(lower, upper):
    with pytest.raises(InvalidValue):
        check_bounds(lower, upper)


@pytest.mark.parametrize(("lower", "upper"), [("", ""), ("a", ""), ("", "a"), ("a", "b")])
def test_bounds_that_hold_names_are_given_back(lower, upper):
    assert check_bounds(lower, upper) == (lower, upper)


def test_a_namespace_is_told_as_json():
    assert Namespace("a/c", "b", "d").as_dict() == {"name": "a/c", "lower": "b", "upper": "d"}
