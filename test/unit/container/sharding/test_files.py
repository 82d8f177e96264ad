"""A container that is being split has a second file, which begins where the old one ended."""

from __future__ import annotations

import os

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.container.sharding.files import begin_epoch, remove_retiring
from swift.container.shardtable import ShardQuery
from swift.db.broker import Engine
from swift.db.schema import max_row
from swift.db.syncpoints import all_syncs, set_sync
from test.support.databases import make_container

EPOCH = Timestamp(100).normal


def row(name, at=6, **changes):
    return ObjectRow(name, Timestamp(at).internal, 3, "t/p", "e")._replace(**changes)


def names_in(broker, database):
    query = "SELECT name FROM object WHERE deleted = 0 ORDER BY name"
    return [found[0] for found in broker.read(lambda c: c.execute(query).fetchall(), database=database)]


def last_row(broker, database):
    return broker.read(lambda c: max_row(c, "object"), database=database)


@pytest.fixture
def broker(tmp_path):
    made = make_container(tmp_path)
    made.merge_rows([row("a"), row("b")])
    made.merge_rows([row("a", 7)])
    made.update_metadata({"X-Container-Meta-A": ("b", Timestamp(6).internal)})
    made.merge_shard_ranges(
        [
            ShardRange("a/c", Timestamp(90).normal, state=State.SHARDING, epoch=EPOCH),
            ShardRange(".shards_a/c-1", Timestamp(90).normal, "", "m", state=State.CREATED),
        ]
    )
    yield made
    made.close()


def test_what_is_written_from_then_on_goes_into_the_second_file(broker):
    old = broker.newest.path
    assert begin_epoch(broker, EPOCH)
    assert [database.path for database in broker.databases] == [old, broker.place.file(EPOCH)]
    broker.put_rows([row("new")])
    broker.info()
    assert names_in(broker, broker.newest) == ["new"]
    assert names_in(broker, broker.oldest) == ["a", "b"]


def test_it_knows_of_the_container_what_the_old_one_knew_but_is_a_database_of_its_own(broker):
    broker.write(lambda c: set_sync(c, "us", 3, incoming=False))
    broker.write(lambda c: set_sync(c, "them", 4, incoming=True))
    before = broker.info()
    begin_epoch(broker, EPOCH)
    after = broker.info()
    for name in ("account", "container", "created_at", "put_timestamp", "metadata", "storage_policy_index"):
        assert getattr(after, name) == getattr(before, name)
    assert after.id != before.id and after.id.endswith("-sda")
    assert len(broker.shard_ranges(ShardQuery(include_own=True))) == 2
    for incoming, point in ((True, ("them", 4)), (False, ("us", 3))):
        found = broker.read(lambda c: all_syncs(c, incoming=incoming), database=broker.newest)  # noqa: B023
        assert [(each["remote_id"], each["sync_point"]) for each in found] == [point]


def test_rows_are_counted_on_so_that_who_has_the_old_ones_asks_for_the_new(broker):
    last = last_row(broker, broker.newest)
    begin_epoch(broker, EPOCH)
    assert last_row(broker, broker.newest) == last == 3
    broker.merge_rows([row("new")])
    assert last_row(broker, broker.newest) == 4


def test_an_empty_container_begins_at_the_beginning(tmp_path):
    empty = make_container(tmp_path)
    assert begin_epoch(empty, EPOCH)
    assert last_row(empty, empty.newest) == -1
    empty.close()


def test_beginning_again_changes_nothing(broker):
    begin_epoch(broker, EPOCH)
    broker.merge_rows([row("new")])
    before = broker.info()
    assert begin_epoch(broker, EPOCH)
    assert broker.info() == before and len(broker.databases) == 2


def test_the_old_file_goes_when_all_of_it_was_seen(broker):
    begin_epoch(broker, EPOCH)
    old = broker.oldest.path
    assert remove_retiring(broker, 3)
    assert not os.path.exists(old)
    assert [database.path for database in broker.databases] == [broker.place.file(EPOCH)]
    assert remove_retiring(broker, 3), "it is gone already"


def test_a_row_that_came_to_it_late_keeps_it(broker):
    """A server that has not seen the second file yet may have taken it."""
    late = ContainerBroker(broker.place, Engine(), "a", "c")
    late.refresh()
    late.merge_rows([row("late")])
    begin_epoch(broker, EPOCH)
    assert not remove_retiring(broker, 3)
    assert os.path.exists(broker.oldest.path) and len(broker.databases) == 2
    assert remove_retiring(broker, 4)
    late.close()


def test_the_only_file_is_never_removed(broker):
    assert remove_retiring(broker, 99)
    assert os.path.exists(broker.newest.path)
