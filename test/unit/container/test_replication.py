"""A container's database as replication sees it: rows of messages."""

import pytest

from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.replication import ContainerReplica
from swift.container.rows import ObjectRow
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.db.syncpoints import get_sync


@pytest.fixture()
def replica(tmp_path):
    (tmp_path / "sda").mkdir()
    place = DatabasePath(str(tmp_path / "sda"), "containers", "7", "0123456789abcdef0123456789abcdef")
    broker = ContainerBroker(place, Engine(), "a", "c")
    broker.create(Timestamp(5), 0, created_at=Timestamp(5))
    return ContainerReplica(broker)


def item(name, row_id):
    return ObjectRow(name, Timestamp(9).internal, 3, "t/p", "e").as_dict(row_id)


def merge(replica, items, source):
    replica.broker.write(lambda connection: replica.merge_items(connection, items, source))


def point_of(replica, source):
    return replica.broker.read(lambda connection: get_sync(connection, source, incoming=True))


def test_replicated_rows_remember_how_far_their_source_came(replica):
    merge(replica, [item("a", 7), item("b", 9)], "peer")
    assert point_of(replica, "peer") == 9
    merge(replica, [], "peer")
    assert point_of(replica, "peer") == 9
    assert replica.broker.info().object_count == 2


def test_rows_of_no_source_leave_no_point(replica):
    merge(replica, [item("a", 7)], None)
    assert replica.broker.read(lambda c: c.execute("SELECT COUNT(*) FROM incoming_sync").fetchone()) == (0,)


def test_a_row_without_number_is_refused_with_all_of_its_message(replica):
    with pytest.raises(InvalidValue):
        merge(replica, [item("a", 7), item("b", None)], "peer")
    assert replica.broker.info().object_count == 0
    assert point_of(replica, "peer") == -1


def test_many_rows_at_once_give_the_hash_and_counts_of_single_ones(replica):
    items = [item(f"o{n:03}", n) for n in range(200)]
    merge(replica, items[:100], "peer")
    merge(replica, items[50:], "peer")
    many = replica.broker.info()
    assert many.object_count == 200
    replica.broker.write(lambda connection: connection.execute("DELETE FROM object"))
    empty = replica.broker.info()
    assert (empty.object_count, empty.hash) == (0, "0" * 32)
    for one in items:
        merge(replica, [one], "peer")
    single = replica.broker.info()
    assert (single.hash, single.bytes_used) == (many.hash, many.bytes_used)
