"""Everything that a container server holds of names: rows of all files, tombstones, and shards."""

import json

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.held import held_document
from swift.container.rows import ObjectRow, tombstone
from swift.db.listing import ListingQuery
from test.unit.container.test_broker import other, own, row, split


def held(broker, **query):
    return json.loads(held_document(broker, ListingQuery(**{"limit": 100, **query}), 0))


def names(document):
    return sorted(
        (each.get("name") or each["subdir"], each.get("deleted", False)) for each in document["rows"]
    )


def gone(name, time=3):
    return tombstone(name, Timestamp(time), 0)


def test_tombstones_are_told_beside_rows(broker):
    broker.put_rows([row("a"), row("b"), gone("b"), gone("never")])
    document = held(broker)
    assert document == {
        "rows": [
            {
                "bytes": 5,
                "hash": "e",
                "name": "a",
                "content_type": "t/p",
                "last_modified": "1970-01-01T00:00:02.000000",
                "created_at": Timestamp(2).internal,
            },
            {"name": "b", "created_at": Timestamp(3).internal, "deleted": True},
            {"name": "never", "created_at": Timestamp(3).internal, "deleted": True},
        ],
        "end": "",
        "ranges": [],
    }


def test_both_files_of_a_container_that_is_split_are_told_of(broker):
    broker.put_rows([row("old"), row("both")])
    broker.merge_shard_ranges([own()])
    split(broker)
    broker.put_rows([row("new"), gone("both")])
    assert names(held(broker)) == [("both", False), ("both", True), ("new", False), ("old", False)]


def test_shards_are_named_that_have_gone_too_and_the_container_itself_is_not(broker):
    ranges = [other("1", upper="m"), other("2", lower="m", state=State.SHARDED, deleted=True)]
    broker.merge_shard_ranges([own(), *ranges])
    assert [ShardRange.from_mapping(each) for each in held(broker)["ranges"]] == ranges
    assert [each["name"] for each in held(broker, marker="m")["ranges"]] == [ranges[1].name]
    assert [each["name"] for each in held(broker, marker="m", reverse=True)["ranges"]] == [ranges[0].name]


def test_rows_of_other_policies_are_not_told(broker):
    broker.put_rows([row("a"), ObjectRow("b", Timestamp(2).internal, 1, "t/p", "e", 0, 1)])
    assert names(held(broker)) == [("a", False)]


@pytest.mark.parametrize(
    "query, end, shown",
    [
        ({"limit": 2}, "b", [("a", False), ("a1", True), ("b", False)]),
        ({"limit": 3}, "c", [("a", False), ("a1", True), ("b", False), ("c", False)]),
        ({"limit": 4}, "", [("a", False), ("a1", True), ("b", False), ("c", False), ("d", True)]),
        ({"limit": 2, "reverse": True}, "b", [("b", False), ("c", False), ("d", True)]),
        ({"limit": 1, "marker": "a"}, "a1", [("a1", True)]),
    ],
)
def test_only_so_far_is_told_as_both_kinds_of_rows_reach(broker, query, end, shown):
    broker.put_rows([row("a"), row("b"), row("c"), gone("a1"), gone("d")])
    document = held(broker, **query)
    assert (document["end"], names(document)) == (end, shown)


def test_common_prefixes_are_of_rows_alone(broker):
    broker.put_rows([row("a/1"), row("b"), gone("a/2"), gone("c/1"), gone("d")])
    assert names(held(broker, delimiter="/")) == [("a/", False), ("b", False), ("d", True)]
    # Where tombstones fill a page it ends with them, though they are not shown.
    document = held(broker, delimiter="/", limit=1)
    assert (document["end"], names(document)) == ("a/", [("a/", False)])
