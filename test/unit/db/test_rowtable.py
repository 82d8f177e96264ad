"""A table of rows, as replication reads it and reclaiming empties it."""

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.db.rowtable import RowTable

TABLE = RowTable("thing", ("name", "at", "deleted"), "at")


def filled(rows):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE thing (name TEXT, at TEXT, deleted INTEGER)")
    connection.executemany("INSERT INTO thing VALUES (?, ?, ?)", rows)
    return connection


@pytest.fixture
def three():
    return filled([("a", "1", 0), ("b", "2", 1), ('c"', "3", 0)])


def test_rows_come_in_the_order_in_which_they_were_added(three):
    assert TABLE.rows_since(three, 1, 10) == [(2, "b", "2", 1), (3, 'c"', "3", 0)]
    assert [row[0] for row in TABLE.rows_since(three, 0, 2)] == [1, 2]


def test_a_message_says_the_same_as_json_and_how_far_it_goes(three):
    text, last = TABLE.message_since(three, 1, 10)
    assert json.loads(text) == [
        {"ROWID": 2, "name": "b", "at": "2", "deleted": 1},
        {"ROWID": 3, "name": 'c"', "at": "3", "deleted": 0},
    ]
    assert last == 3


def test_a_message_of_nothing_goes_no_further(three):
    assert TABLE.message_since(three, 3, 10) == ("[]", 3)


@given(
    st.dictionaries(st.text("ab", min_size=1), st.tuples(st.integers(0, 9), st.booleans())), st.integers(1, 5)
)
def test_in_pieces_of_any_size_exactly_the_old_tombstones_go(rows, count):
    connection = filled([(name, str(at), int(deleted)) for name, (at, deleted) in rows.items()])
    after = ""
    while after is not None:
        after = TABLE.reclaim(connection, "5", after_name=after, count=count)
    left = {name for (name,) in connection.execute("SELECT name FROM thing")}
    assert left == {name for name, (at, deleted) in rows.items() if not (deleted and at < 5)}
