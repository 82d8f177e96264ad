"""An account's database as replication sees it: rows of messages, and when it may be forgotten."""

from __future__ import annotations

import json

import pytest

from swift.account.containertable import TABLE
from swift.account.replication import replica_at, replica_of
from swift.account.rows import ContainerRow
from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp
from swift.db.broker import Engine
from swift.db.syncpoints import get_sync
from test.support.databases import make_account


def at(seconds):
    return Timestamp(seconds).internal


@pytest.fixture
def replica(tmp_path):
    broker = make_account(tmp_path)
    yield replica_of(broker)
    broker.close()


def item(name, row_id, **changes):
    row = dict(zip(TABLE.columns, ContainerRow(name, at(9), "0", 3, 30), strict=False))
    return {"ROWID": row_id, **row, **changes}


def merge(replica, items, source):
    replica.broker.write(lambda connection: replica.merge_items(connection, items, source))


def point_of(replica, source):
    return replica.broker.read(lambda connection: get_sync(connection, source, incoming=True))


def test_replicated_rows_count_and_say_how_far_their_source_came(replica):
    merge(replica, [item("b", 9), item("a", 7)], "peer")
    assert point_of(replica, "peer") == 9
    info = replica.broker.info()
    assert (info.container_count, info.object_count, info.bytes_used) == (2, 6, 60)
    merge(replica, [item("a", 7)], "peer")
    assert replica.broker.info() == info and point_of(replica, "peer") == 9


def test_rows_of_no_source_leave_no_point(replica):
    merge(replica, [item("a", 7)], None)
    assert replica.broker.read(lambda c: c.execute("SELECT COUNT(*) FROM incoming_sync").fetchone()) == (0,)


@pytest.mark.parametrize(
    "wrong",
    [
        item("b", None),
        item("b", 1 << 63),
        item("", 9),
        item(None, 9),
        item("\ud800", 9),
        item("b", 9, put_timestamp="never"),
        item("b", 9, object_count="many"),
        item("b", 9, bytes_used=1e300),
        item("b", 9, storage_policy_index=[]),
        ["b"],
        None,
    ],
)
def test_a_message_with_one_wrong_row_changes_nothing(replica, wrong):
    before = replica.broker.info()
    with pytest.raises(InvalidValue):
        merge(replica, [item("a", 7), wrong], "peer")
    assert replica.broker.info() == before
    assert point_of(replica, "peer") == -1


def test_what_is_sent_is_what_is_merged_there(replica, tmp_path):
    merge(replica, [item("ö", 7), item("b", 8, deleted=1, delete_timestamp=at(10))], "peer")
    text, last = replica.broker.read(lambda c: replica.rows.message_since(c, -1, 10))
    items = replica.broker.read(lambda c: replica.rows.items_since(c, -1, 10))
    assert [row["name"] for row in json.loads(text)] == [row["name"] for row in items] == ["ö", "b"]
    other = replica_of(make_account(tmp_path / "sda", "1" * 32))
    merge(other, json.loads(text), "us")
    assert other.broker.info().hash == replica.broker.info().hash
    assert point_of(other, "us") == last == 2
    other.broker.close()


def test_the_answer_to_sync_has_the_peer_s_keys(replica):
    info = replica.broker.read(replica.info)
    assert list(info) == [
        *("account", "created_at", "put_timestamp", "delete_timestamp", "status_changed_at"),
        *("object_count", "bytes_used", "hash", "id", "count", "metadata", "max_row"),
    ]
    assert (info["account"], info["count"], info["metadata"], info["max_row"]) == ("a", 0, "", -1)


def test_the_broker_of_a_directory_learns_whose_it_is(replica):
    found = replica_at(replica.broker.place, Engine())
    assert found.broker.refresh()
    found.broker.names = found.broker.read(found.names)
    assert found.broker.account == "a"
    found.broker.close()


# --- forgetting


@pytest.mark.parametrize(
    ("deleted_at", "before", "is_over"), [(None, 99, False), (7, 7, False), (7, 8, True), (4, 99, False)]
)
def test_an_account_may_go_when_it_was_deleted_long_ago_after_its_last_put(
    replica, deleted_at, before, is_over
):
    if deleted_at is not None:
        replica.broker.delete(Timestamp(deleted_at))
    question = replica.old.is_reclaimable
    assert replica.broker.read(lambda c: question(c, Timestamp(before))) == is_over


def test_a_deleted_account_stays_until_its_containers_are_reaped(replica):
    merge(replica, [item("c", 1)], None)
    replica.broker.delete(Timestamp(20))
    assert not replica.broker.read(lambda c: replica.old.is_reclaimable(c, Timestamp(99)))
    merge(replica, [item("c", 2, object_count=0, delete_timestamp=at(30))], None)
    assert replica.broker.read(lambda c: replica.old.is_reclaimable(c, Timestamp(99)))


def test_only_tombstones_older_than_that_are_old(replica):
    old = replica.old
    merge(replica, [item("b", 1), item("c", 2, object_count=0, delete_timestamp=at(30))], None)
    assert not replica.broker.read(lambda c: old.has_old_rows(c, Timestamp(30)))
    assert replica.broker.read(lambda c: old.has_old_rows(c, Timestamp(31)))
    replica.broker.write(lambda c: old.reclaim_rows(c, Timestamp(31), "", 10))
    assert [row["name"] for row in replica.broker.read(lambda c: replica.rows.items_since(c, -1, 10))] == [
        "b"
    ]
