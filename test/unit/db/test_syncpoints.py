"""Sync points never go back."""

import sqlite3

import pytest

from swift.base.errors import InvalidValue
from swift.db import syncpoints
from swift.db.schema import SYNC_TABLES, max_row, run_statements, sync_table_statements


@pytest.fixture()
def connection():
    connection = sqlite3.connect(":memory:")
    for table in SYNC_TABLES:
        run_statements(connection, sync_table_statements(table))
    return connection


def test_an_unknown_remote_is_at_minus_one(connection):
    assert syncpoints.get_sync(connection, "x", incoming=True) == -1


def test_a_point_only_grows(connection):
    for point in (3, 9, 5):
        syncpoints.set_sync(connection, "x", point, incoming=True)
    assert syncpoints.get_sync(connection, "x", incoming=True) == 9
    assert syncpoints.get_sync(connection, "x", incoming=False) == -1


def test_every_change_is_dated_so_that_old_remotes_can_be_forgotten(connection):
    syncpoints.set_sync(connection, "x", 1, incoming=True)
    syncpoints.set_sync(connection, "x", 2, incoming=True)
    dated = connection.execute("SELECT updated_at FROM incoming_sync").fetchone()[0]
    assert int(dated) > 1_500_000_000
    syncpoints.reclaim_syncs(connection, int(dated))
    assert syncpoints.all_syncs(connection, incoming=True) == [{"remote_id": "x", "sync_point": 2}]
    syncpoints.reclaim_syncs(connection, int(dated) + 1)
    assert syncpoints.all_syncs(connection, incoming=True) == []


def test_malformed_entries_are_refused(connection):
    syncpoints.merge_syncs(connection, [{"remote_id": "x", "sync_point": "7"}], incoming=False)
    assert syncpoints.get_sync(connection, "x", incoming=False) == 7
    numbers = ("y", None, float("inf"), float("nan"), 1 << 63)
    wrong = [{"remote_id": "x", "sync_point": number} for number in numbers]
    for bad in (
        {},
        {"remote_id": 1, "sync_point": 1},
        {"remote_id": "\ud800", "sync_point": 1},
        *wrong,
        "text",
    ):
        with pytest.raises(InvalidValue):
            syncpoints.merge_syncs(connection, [bad], incoming=False)


def test_max_row_of_an_empty_table_is_minus_one(connection):
    connection.execute("CREATE TABLE t (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, a)")
    assert max_row(connection, "t") == -1
    connection.execute("INSERT INTO t (a) VALUES (1)")
    connection.execute("DELETE FROM t")
    assert max_row(connection, "t") == 1
