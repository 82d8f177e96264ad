"""Container brokers: epochs, sharding states and the counts they mean (account-container.md §19.2)."""

import shutil

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.broker import NotEmpty
from swift.container.objecttable import TABLE
from swift.container.rows import ObjectRow
from swift.db.listing import ListingQuery

EPOCH = Timestamp(100).internal


def own(state=State.SHARDING, epoch=EPOCH):
    return ShardRange("a/c", Timestamp(100).internal, state=state, epoch=epoch)


def other(name="1", **changes):
    return ShardRange(f".shards_a/c-{name}", Timestamp(100).internal, **{"state": State.ACTIVE, **changes})


def row(name, time=2, size=5):
    return ObjectRow(name, Timestamp(time).internal, size, "t/p", "e")


def split(broker):
    """A second file for the epoch, as the sharder will make it."""
    broker.merge_pending()
    shutil.copy(broker.place.file(), broker.place.file(EPOCH))
    broker.refresh()
    broker.write(lambda connection: connection.execute("DELETE FROM object"))


def test_without_epoch_it_is_unsharded_whatever_ranges_there_are(broker):
    broker.merge_shard_ranges([own(), other()])
    assert broker.info().db_state == "unsharded"


def test_two_files_are_sharding_and_listings_come_from_the_old_one(broker):
    broker.put_rows([row("old")])
    broker.merge_shard_ranges([own()])
    split(broker)
    info = broker.info()
    assert (info.db_state, info.object_count) == ("sharding", 1)
    broker.put_rows([row("new")])
    assert [r[0] for r in broker.listing(ListingQuery(10), 0)] == ["old"]
    assert [c["name"] for c in broker.read(lambda c: TABLE.items_since(c, 0, 10))] == ["new"]
    with pytest.raises(NotEmpty):
        broker.delete(Timestamp(200))


def test_a_container_is_not_empty_while_the_file_that_is_split_up_holds_rows(broker):
    broker.merge_rows([ObjectRow("old", Timestamp(2).internal, 1, "a/b", "e", 0, 0)])
    broker.merge_shard_ranges([own()])
    broker.merge_pending()
    shutil.copy(broker.place.file(), broker.place.file(EPOCH))
    broker.refresh()
    broker.write(lambda connection: connection.execute("DELETE FROM object"))
    assert broker.info().db_state == "sharding"
    with pytest.raises(NotEmpty):
        broker.delete(Timestamp(200))
    assert not broker.info().is_deleted


def sharded(broker, *ranges):
    broker.merge_shard_ranges(ranges)
    broker.merge_pending()
    shutil.move(broker.place.file(), broker.place.file(EPOCH))
    broker.refresh()
    return broker.info()


def test_a_sharded_root_counts_its_shards(broker):
    info = sharded(
        broker,
        own(State.SHARDED),
        other("1", object_count=3, bytes_used=30),
        other("2", object_count=4, bytes_used=40, state=State.SHRINKING),
        other("3", object_count=50, bytes_used=500, state=State.CLEAVED),
        other("4", object_count=60, bytes_used=600, deleted=True),
    )
    assert (info.db_state, info.object_count, info.bytes_used) == ("sharded", 7, 70)
    with pytest.raises(NotEmpty):
        broker.delete(Timestamp(200))


def test_a_sharded_shard_counts_only_itself(broker):
    root = {"X-Container-Sysmeta-Shard-Quoted-Root": ("a/r%20oot", Timestamp(2).internal)}
    broker.update_metadata(root)
    info = sharded(broker, own(State.SHARDED), other("1", object_count=3))
    assert (info.db_state, info.object_count) == ("sharded", 0)


def test_without_other_ranges_it_is_collapsed(broker):
    assert sharded(broker, own(State.ACTIVE)).db_state == "collapsed"


def test_an_epoch_that_is_not_the_own_ranges_is_unsharded(broker):
    assert sharded(broker, own(epoch=Timestamp(99).internal), other()).db_state == "unsharded"


def test_a_row_goes_to_the_shard_of_its_name(broker):
    broker.merge_shard_ranges([other("1", upper="m"), other("2", lower="m", state=State.FOUND)])
    states = frozenset((State.ACTIVE,))
    assert broker.shard_for("a", states).name == ".shards_a/c-1"
    assert broker.shard_for("m", states).name == ".shards_a/c-1"
    assert broker.shard_for("n", states) is None


def test_changing_a_range_keeps_the_row_unless_something_changed(broker):
    broker.merge_shard_ranges([other("1")])
    before = broker.read(lambda c: c.execute("SELECT MAX(ROWID) FROM shard_range").fetchone())
    broker.merge_shard_ranges([other("1")])
    assert broker.read(lambda c: c.execute("SELECT MAX(ROWID) FROM shard_range").fetchone()) == before


# --- directories --------------------------------------------------------------------------------------


def directory(name):
    return row(name)._replace(content_type="application/directory")


def steps_of(broker, ask):
    """The result of a listing, and the work of SQLite for it in steps of its machine."""
    steps = []

    def count(connection):
        connection.set_progress_handler(lambda: steps.append(1), 10)

    broker.read(count)
    try:
        return ask(), len(steps) * 10
    finally:
        broker.read(lambda connection: connection.set_progress_handler(None, 0))


def test_directories_are_listed_alone_at_no_cost_for_the_other_rows(broker):
    broker.merge_rows([directory("a/x"), directory("z/y"), row("z"), directory("gone")])
    broker.merge_rows([directory("gone")._replace(created_at=Timestamp(9).internal, deleted=1)])
    broker.merge_rows([row(f"m/{number:05}") for number in range(5000)])
    query = ListingQuery(10)
    assert [found[0] for found in broker.listing(query, 0, only_directories=True)] == ["a/x", "z/y"]
    names, steps = steps_of(
        broker, lambda: [found[0] for found in broker.listing(query, 0, only_directories=True)]
    )
    assert names == ["a/x", "z/y"] and steps < 1000
    assert [
        found[0] for found in broker.listing(ListingQuery(10, marker="a/x"), 0, only_directories=True)
    ] == ["z/y"]
    assert [found[0] for found in broker.listing(ListingQuery(1), 0, only_directories=True)] == ["a/x"]
    assert broker.listing(query, 1, only_directories=True) == []


def test_directories_are_listed_while_the_container_is_split(broker):
    broker.merge_rows([directory("old"), row("p")])
    broker.merge_shard_ranges([own()])
    split(broker)
    broker.put_rows([directory("new")])
    assert [found[0] for found in broker.listing(ListingQuery(10), 0, only_directories=True)] == ["old"]
