"""The row that describes a database, and when its status changed (account-container.md §8, §9)."""

import sqlite3

import pytest

from swift.base.timestamp import Timestamp
from swift.db import stat

OLD, PUT, DELETE, NOW = (f"{1_700_000_000 + n}.00000" for n in range(4))


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:")
    made.execute(
        "CREATE TABLE t (created_at TEXT, put_timestamp TEXT DEFAULT '0', delete_timestamp TEXT DEFAULT '0', "
        "status TEXT DEFAULT '', status_changed_at TEXT DEFAULT '0', metadata TEXT DEFAULT '')"
    )
    made.execute(
        "INSERT INTO t (created_at, put_timestamp, status_changed_at) VALUES (?, ?, ?)", (PUT, PUT, OLD)
    )
    yield made
    made.close()


def is_deleted(connection):
    return stat.delete_is_newer(stat.stat_row(connection, "t"))


def merge(connection, created_at=PUT, put="0", delete="0"):
    stat.merge_timestamps(
        connection,
        "t",
        created_at=created_at,
        put_timestamp=put,
        delete_timestamp=delete,
        now=Timestamp(NOW),
        is_deleted=is_deleted,
    )
    return stat.stat_row(connection, "t")


def test_a_merge_that_changes_nothing_leaves_the_status_s_time(connection):
    assert merge(connection)["status_changed_at"] == OLD
    assert merge(connection, put=OLD)["status_changed_at"] == OLD


def test_a_merged_deletion_and_a_merged_revival_change_the_status_now(connection):
    row = merge(connection, delete=DELETE)
    assert (row["delete_timestamp"], row["status_changed_at"]) == (DELETE, NOW)
    connection.execute("UPDATE t SET status_changed_at = ?", (OLD,))
    assert merge(connection, delete=DELETE)["status_changed_at"] == OLD
    row = merge(connection, put=NOW)
    assert (row["put_timestamp"], row["delete_timestamp"], row["status_changed_at"]) == (NOW, DELETE, NOW)


def test_the_earliest_creation_and_the_latest_of_the_others_stay(connection):
    row = merge(connection, created_at=OLD, put=OLD, delete=OLD)
    assert (row["created_at"], row["put_timestamp"], row["delete_timestamp"]) == (OLD, PUT, OLD)
    row = merge(connection, created_at=PUT, put=DELETE)
    assert (row["created_at"], row["put_timestamp"]) == (OLD, DELETE)


def test_times_never_go_back(connection):
    stat.touch_put(connection, "t", Timestamp(OLD))
    stat.touch_status(connection, "t", Timestamp(1))
    assert stat.stat_row(connection, "t")["put_timestamp"] == PUT
    assert stat.stat_row(connection, "t")["status_changed_at"] == OLD
    stat.touch_put(connection, "t", Timestamp(DELETE))
    stat.touch_status(connection, "t", Timestamp(DELETE))
    assert stat.stat_row(connection, "t")["put_timestamp"] == DELETE
    assert stat.stat_row(connection, "t")["status_changed_at"] == DELETE


def test_only_a_newer_deletion_is_recorded(connection):
    stat.mark_deleted(connection, "t", Timestamp(DELETE))
    row = stat.stat_row(connection, "t")
    assert (row["status"], row["delete_timestamp"], row["status_changed_at"]) == ("DELETED", DELETE, DELETE)
    stat.mark_deleted(connection, "t", Timestamp(PUT))
    assert stat.stat_row(connection, "t") == row


@pytest.mark.parametrize("value", [None, "", 0, "0", "junk", b"\xff"])
def test_unreadable_times_are_zero(value):
    assert stat.as_timestamp(value) == Timestamp(0)
