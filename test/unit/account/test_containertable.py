"""Rows of containers are merged whatever their order and number (account-container.md §7, §13)."""

import itertools
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.account.containertable import TABLE, merge_rows
from swift.account.rows import ContainerRow

SCHEMA = """
CREATE TABLE container (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, put_timestamp TEXT,
    delete_timestamp TEXT, object_count INTEGER, bytes_used INTEGER, deleted INTEGER DEFAULT 0,
    storage_policy_index INTEGER DEFAULT 0);
CREATE TABLE incoming_sync (remote_id TEXT UNIQUE, sync_point TEXT, updated_at TEXT DEFAULT 0);
"""


def table():
    made = sqlite3.connect(":memory:")
    made.executescript(SCHEMA)
    return made


def row(name, put="1", delete="0", count=0, used=0):
    deleted = int(delete > put)
    return ContainerRow(name, f"{put:0>10}.00000", f"{delete:0>10}.00000", count, used, deleted, 0)


def content(connection):
    return sorted(connection.execute(f"SELECT {TABLE.column_list} FROM container").fetchall())


def test_rows_come_in_and_newer_ones_replace_them():
    connection = table()
    merge_rows(connection, [row("a"), row("b")])
    merge_rows(connection, [row("a", put="2", count=7, used=70)])
    assert [(found[0], found[3], found[4]) for found in content(connection)] == [("a", 7, 70), ("b", 0, 0)]


def test_a_row_that_says_nothing_new_is_not_written_again():
    connection = table()
    merge_rows(connection, [row("a", put="2")])
    merge_rows(connection, [row("a", put="2")])
    assert [item["ROWID"] for item in TABLE.items_since(connection, 0, 10)] == [1]


def test_rows_of_one_name_in_one_message_are_merged_with_each_other():
    connection = table()
    merge_rows(connection, [row("a", put="3"), row("a", put="2", delete="4"), row("a", put="1")])
    assert len(content(connection)) == 1
    assert content(connection)[0][5] == 1, "it was deleted after it was made"


_ROWS = st.lists(
    st.builds(row, st.sampled_from("ab"), st.sampled_from("123"), st.sampled_from("0123")), max_size=4
)


@given(_ROWS)
def test_the_order_of_rows_does_not_matter(rows):
    found = set()
    for order in itertools.permutations(rows):
        connection = table()
        for each in order:
            merge_rows(connection, [each])
        found.add(tuple((r[0], r[1], r[2], r[5]) for r in content(connection)))
        connection.close()
    assert len(found) == 1


def test_more_rows_than_one_statement_takes_are_merged():
    connection = table()
    merge_rows(connection, [row(f"c{n}") for n in range(1201)])
    merge_rows(connection, [row(f"c{n}", put="2") for n in range(1201)])
    assert len(content(connection)) == 1201


def test_rows_are_read_behind_a_rowid_as_messages_carry_them():
    connection = table()
    merge_rows(connection, [row("a"), row("b"), row("c")])
    found = TABLE.items_since(connection, 1, 1)
    assert [(item["name"], item["ROWID"]) for item in found] == [("b", 2)]


@pytest.mark.parametrize("count", [2, 3])
def test_should_a_name_be_there_more_than_once_it_is_once_afterwards(count):
    connection = table()
    for n in range(count):
        connection.execute(
            f"INSERT INTO container ({TABLE.column_list}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            row("a", put=str(n + 1))[:7],
        )
    merge_rows(connection, [row("a", put="9")])
    assert [found[1] for found in content(connection)] == ["0000000009.00000"]
