"""The rows of a part of a container are read in order, counted and removed (account-container.md §19.3)."""

import sqlite3

import pytest

from swift.container.objecttable import all_rows, counts_inside, remove_rows, rows_inside, rows_outside
from swift.container.rows import ObjectRow

NAMES = ["b", "a", "d", "c", "e"]


@pytest.fixture
def connection():
    """Rows of five names in the order in which they came; ``d`` is deleted."""
    made = sqlite3.connect(":memory:")
    made.execute(
        "CREATE TABLE object (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, created_at TEXT, "
        "size INTEGER, content_type TEXT, etag TEXT, deleted INTEGER, storage_policy_index INTEGER)"
    )
    for name in NAMES:
        made.execute(
            "INSERT INTO object (name, created_at, size, content_type, etag, deleted, storage_policy_index) "
            "VALUES (?, '1', 10, 'text/plain', 'e', ?, 0)",
            (name, name == "d"),
        )
    yield made
    made.close()


def names(found):
    return [row.name for _row_id, row in found]


def test_rows_inside_bounds_come_by_rowid_and_with_it(connection):
    found = rows_inside(connection, "a", "d", 0, 10)
    assert [(row_id, row.name) for row_id, row in found] == [(1, "b"), (3, "d"), (4, "c")]
    assert isinstance(found[0][1], ObjectRow)


def test_rows_are_read_behind_a_rowid_and_no_more_than_asked_for(connection):
    assert names(rows_inside(connection, "", "", 1, 2)) == ["a", "d"]
    assert names(all_rows(connection, 3, 10)) == ["c", "e"]


@pytest.mark.parametrize(("lower", "upper"), [("", ""), ("a", "d"), ("", "b"), ("c", ""), ("x", "y")])
def test_each_row_is_inside_or_outside(connection, lower, upper):
    inside, outside = (
        rows_inside(connection, lower, upper, 0, 10),
        rows_outside(connection, lower, upper, 0, 10),
    )
    assert sorted(names(inside) + names(outside)) == sorted(NAMES)
    assert all(lower < name and (not upper or name <= upper) for name in names(inside))


def test_counts_are_of_objects_bytes_and_tombstones(connection):
    assert counts_inside(connection, "", "") == (4, 40, 1)
    assert counts_inside(connection, "c", "d") == (0, 0, 1)
    assert counts_inside(connection, "x", "y") == (0, 0, 0)


def test_a_row_that_changed_keeps_its_place_when_its_old_rowid_is_removed(connection):
    connection.execute("DELETE FROM object WHERE name = 'a'")
    connection.execute("INSERT INTO object (name, deleted) VALUES ('a', 0)")
    assert remove_rows(connection, [1, 2, 4]) == 2
    assert sorted(names(all_rows(connection, 0, 10))) == ["a", "d", "e"]


def test_many_rows_are_removed(connection):
    connection.executemany(
        "INSERT INTO object (name, deleted) VALUES (?, 0)", [(f"n{n}",) for n in range(1200)]
    )
    assert remove_rows(connection, range(1, 1206)) == 1205
    assert all_rows(connection, 0, 10) == []
