"""The metadata column: newest pair wins, in any order."""

import json

from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import Timestamp
from swift.db import metadata

times = st.integers(min_value=1, max_value=4).map(lambda n: Timestamp(n).internal)
columns = st.dictionaries(
    st.sampled_from(["X-Container-Meta-A", "X-Container-Meta-B", "X-Container-Read"]),
    st.tuples(st.sampled_from(["", "x", "y"]), times),
)


@given(columns, columns)
def test_merging_is_commutative(a, b):
    assert metadata.merge(a, b) == metadata.merge(b, a)


@given(columns, columns, columns)
def test_merging_is_associative(a, b, c):
    assert metadata.merge(metadata.merge(a, b), c) == metadata.merge(a, metadata.merge(b, c))


@given(columns)
def test_merging_is_idempotent_and_says_so(a):
    assert metadata.merge(a, a) is a


@given(columns)
def test_the_column_text_reads_back(a):
    assert metadata.parse(metadata.dump(a)) == a


def test_the_golden_text_of_the_peer_is_written_exactly():
    text = (
        '{"X-Container-Meta-Color": ["blue", "1795228430.50414"], '
        '"X-Container-Read": [".r:*", "1795228430.50414"]}'
    )
    assert metadata.dump(metadata.parse(text)) == text


def test_damaged_columns_lose_only_what_is_damaged():
    assert metadata.parse("not json") == {}
    assert metadata.parse("[]") == {}
    assert metadata.parse("[" * 100_000) == {}
    assert metadata.parse(json.dumps({"A": ["x", "1"], "B": "y", "C": [1, 2]})) == {"A": ("x", "1")}


def test_blanking_spares_the_names_it_is_told():
    before = {"X-Container-Meta-A": ("v", Timestamp(1).internal), "X-Keep": ("k", Timestamp(1).internal)}
    after = metadata.blanked(before, Timestamp(2), frozenset(("x-keep",)))
    assert after["X-Container-Meta-A"] == ("", Timestamp(2).internal)
    assert after["X-Keep"] == ("k", Timestamp(1).internal)


def test_blanking_does_not_touch_newer_values():
    before = {"X-A": ("v", Timestamp(5).internal)}
    assert metadata.blanked(before, Timestamp(2)) is before


def test_only_old_deleted_headers_are_reclaimed():
    column = {
        "Old-Deleted": ("", Timestamp(1).internal),
        "New-Deleted": ("", Timestamp(9).internal),
        "Old-Alive": ("v", Timestamp(1).internal),
        "Unreadable-Time": ("", "x"),
    }
    assert set(metadata.reclaimed(column, Timestamp(5))) == {"New-Deleted", "Old-Alive"}
    alive = {"A": ("v", Timestamp(1).internal)}
    assert metadata.reclaimed(alive, Timestamp(5)) is alive


def test_user_items_are_those_of_the_kind():
    column = {"X-Container-Meta-A": ("v", "1"), "X-Container-Sysmeta-B": ("w", "1")}
    assert list(metadata.user_items(column, "container")) == [("A", "v")]
