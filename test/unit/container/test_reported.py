"""What an account was told about a container."""

import pytest

from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.reported import mark_reported, report_of
from swift.container.rows import ObjectRow
from swift.db.broker import Engine
from swift.db.connection import DatabaseBroken
from swift.db.files import DatabasePath


@pytest.fixture
def place(tmp_path):
    (tmp_path / "sda").mkdir()
    return DatabasePath(str(tmp_path / "sda"), "containers", "7", "0" * 32)


@pytest.fixture
def broker(place):
    made = ContainerBroker(place, Engine(), "a", "c")
    made.create(Timestamp(5), 0, created_at=Timestamp(5))
    yield made
    made.close()


def put(broker, name, time):
    broker.merge_rows([ObjectRow(name, Timestamp(time).internal, 3, "t/p", "e", 0, 0)])


def news(broker):
    return report_of(broker, broker.info())


def test_a_new_container_is_news_until_it_was_told(broker):
    report = news(broker)
    assert report.object_count == 0 and report.put_timestamp == Timestamp(5).internal
    mark_reported(broker, report)
    assert news(broker) is None


def test_objects_are_news_and_what_came_after_the_report_is_again(broker):
    mark_reported(broker, news(broker))
    put(broker, "o", 6)
    report = news(broker)
    assert (report.object_count, report.bytes_used) == (1, 3)
    put(broker, "p", 7)
    mark_reported(broker, report)
    assert news(broker).object_count == 2


def test_a_deletion_is_news(broker):
    mark_reported(broker, news(broker))
    broker.delete(Timestamp(9))
    assert news(broker).delete_timestamp == Timestamp(9).internal


def test_the_objects_of_a_shard_are_counted_by_its_root(broker):
    put(broker, "o", 6)
    stamp = Timestamp(5).internal
    broker.update_metadata({"X-Container-Sysmeta-Shard-Quoted-Root": ("a/other", stamp)})
    assert (news(broker).object_count, news(broker).bytes_used) == (0, 0)


def test_a_database_on_disk_says_whose_it_is(broker, place):
    broker.close()
    found = ContainerBroker.open_found(place, Engine())
    assert (found.account, found.container, found.own_name) == ("a", "c", "a/c")
    found.close()


def test_where_nothing_is_nothing_is_found(place):
    assert ContainerBroker.open_found(place, Engine()) is None


def test_a_database_that_does_not_say_whose_it_is_is_broken(broker, place):
    broker.write(lambda connection: connection.execute("DELETE FROM container_info").rowcount)
    broker.close()
    with pytest.raises(DatabaseBroken, match="has no account or container name"):
        ContainerBroker.open_found(place, Engine())
