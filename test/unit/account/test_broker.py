"""An account's database: what is known of the account, how it ends, and whose it is."""

from __future__ import annotations

import sqlite3

import pytest

from swift.account.broker import AccountBroker, PolicyStat, RecentlyDeleted
from swift.account.rows import ContainerRow
from swift.base.timestamp import Timestamp
from swift.db.broker import Engine
from swift.db.connection import DatabaseBroken, DatabaseMissing
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery
from test.support.databases import make_account


def at(seconds):
    return Timestamp(seconds).internal


def row(name, time=6, *, objects=1, size=10, policy=0, deleted_at=None):
    gone = "0" if deleted_at is None else at(deleted_at)
    return ContainerRow(name, at(time), gone, objects, size, int(deleted_at is not None), policy)


@pytest.fixture
def broker(tmp_path):
    made = make_account(tmp_path)
    yield made
    made.close()


def test_a_new_account_is_empty_and_has_the_times_of_its_making(broker):
    info = broker.info()
    assert (info.account, info.status, info.is_deleted) == ("a", "", False)
    assert (info.created_at, info.put_timestamp, info.status_changed_at) == (at(5), at(5), at(5))
    assert (info.container_count, info.object_count, info.bytes_used) == (0, 0, 0)
    assert info.id.endswith("-sda")


def test_who_makes_it_second_does_not_change_it(broker):
    first = broker.info()
    second = AccountBroker(broker.place, Engine(), "a")
    assert not second.create(Timestamp(50), created_at=Timestamp(50))
    assert second.info() == first
    second.close()


def test_totals_are_those_of_containers_that_are_there_by_their_policies(broker):
    broker.put_rows(
        [row("b"), row("c", policy=1, objects=2, size=20), row("d", deleted_at=7, objects=0, size=0)]
    )
    info = broker.info()
    assert (info.container_count, info.object_count, info.bytes_used) == (2, 3, 30)
    assert broker.policy_stats() == [PolicyStat(0, 1, 1, 10), PolicyStat(1, 1, 2, 20)]


def test_a_row_without_counts_spoils_no_total(broker):
    broker.put_rows([row("b"), ContainerRow("c", at(6), "0", None, None, 0, 0)])
    broker.put_rows([ContainerRow("b", None, at(7), None, None, 0, None)])
    info = broker.info()
    assert info.object_count in (0, 1) and info.container_count in (1, 2)
    assert broker.policy_stats()[0].object_count == info.object_count


def test_listings_show_what_is_there_in_order(broker):
    broker.put_rows([row("c"), row("b/x"), row("b/y"), row("d", deleted_at=7, objects=0)])
    assert [found[:3] for found in broker.listing(ListingQuery(10))] == [
        ("b/x", 1, 10),
        ("b/y", 1, 10),
        ("c", 1, 10),
    ]
    page = broker.listing(ListingQuery(10, delimiter="/", reverse=True))
    assert [found[5] or found[0] for found in page] == ["c", "b/"]


# --- ending


def test_it_is_deleted_once_and_its_headers_with_it(broker):
    broker.update_metadata({"X-Account-Meta-A": ("b", at(6))}, lambda have: None)
    assert broker.delete(Timestamp(7))
    assert not broker.delete(Timestamp(8)), "it was already"
    info = broker.info()
    assert (info.is_deleted, info.delete_timestamp, info.status) == (True, at(7), "DELETED")
    assert info.metadata == {"X-Account-Meta-A": ("", at(7))}


def test_a_deletion_that_comes_late_is_one_all_the_same(broker):
    """Its time is older than that of the put, its mark is what counts (§9)."""
    assert broker.delete(Timestamp(4))
    assert broker.info().is_deleted
    with pytest.raises(RecentlyDeleted):
        broker.put(Timestamp(9))


def test_a_tombstone_is_not_put_again(broker):
    broker.delete(Timestamp(7))
    before = broker.info()
    with pytest.raises(RecentlyDeleted):
        broker.put(Timestamp(8))
    assert broker.info() == before


def test_what_another_replica_knows_to_be_deleted_is_not_put_again_whatever_it_holds(broker):
    broker.put_rows([row("c")])
    late = at(7)
    broker.write(lambda c: c.execute("UPDATE account_stat SET delete_timestamp = ?", (late,)).rowcount)
    info = broker.info()
    assert (info.is_status_deleted, info.is_deleted) == (True, False)
    with pytest.raises(RecentlyDeleted):
        broker.put(Timestamp(8))
    assert not broker.delete(Timestamp(9))


def test_a_put_never_goes_back_in_time(broker):
    broker.put(Timestamp(9))
    broker.put(Timestamp(8))
    assert broker.info().put_timestamp == at(9)


def test_headers_that_are_refused_are_not_kept(broker):
    def refuse(have):
        assert have["X-Account-Meta-A"] == ("b", at(6)), "it is asked about the whole"
        raise ValueError("too many")

    with pytest.raises(ValueError, match="too many"):
        broker.update_metadata({"X-Account-Meta-A": ("b", at(6))}, refuse)
    assert broker.info().metadata == {}


def test_an_older_header_does_not_come_back(broker):
    broker.update_metadata({"X-Account-Meta-A": ("new", at(9))}, lambda have: None)
    broker.update_metadata({"X-Account-Meta-A": ("old", at(8))}, lambda have: None)
    assert broker.info().metadata["X-Account-Meta-A"] == ("new", at(9))


# --- finding out whose it is


def test_a_database_on_disk_says_whose_it_is(broker):
    found = AccountBroker.open_found(broker.place, Engine())
    assert found.account == "a" and found.info().account == "a"
    found.close()


def test_where_there_is_none_there_is_no_broker(broker):
    other = DatabasePath(broker.place.device_path, "accounts", "7", "f" * 32)
    assert AccountBroker.open_found(other, Engine()) is None
    with pytest.raises(DatabaseMissing):
        AccountBroker(other, Engine(), "a").info()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM account_stat",
        "UPDATE account_stat SET account = NULL",
        "UPDATE account_stat SET account = ''",
        "UPDATE account_stat SET account = x'ff'",
        "DROP TABLE account_stat",
        "DROP TABLE container",
    ],
)
def test_a_database_that_does_not_say_whose_it_is_is_broken(broker, damage):
    path = broker.newest.path
    broker.close()
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(DatabaseBroken):
        AccountBroker.open_found(broker.place, Engine())
