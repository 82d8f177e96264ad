"""What a database looks like, and that steps from older ones are taken all or not at all."""

from __future__ import annotations

import sqlite3

import pytest

from swift.db.connection import DatabaseBroken, DatabaseError, connect
from swift.db.schema import (
    UPDATE_REFUSED,
    Migration,
    facts_of,
    make_tables,
    max_row,
    migrate,
    missing_columns,
    missing_index,
    missing_sync_tables,
)

TABLE = "CREATE TABLE thing (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)"
INDEX = "CREATE INDEX ix_thing ON thing (name)"


@pytest.fixture
def connection():
    made = connect(":memory:", create=True)
    yield made
    made.close()


def run(connection, *migrations):
    return migrate(connection, "path", migrations)


def test_the_catalogue_tells_tables_with_their_columns_from_the_rest(connection):
    make_tables(connection, (TABLE, INDEX, "CREATE VIEW view_of AS SELECT name FROM thing"))
    facts = facts_of(connection)
    assert facts.tables["thing"] == ("ROWID", "name")
    assert facts.has_table("thing") and not facts.has_table("view_of")
    assert facts.views == {"view_of"} and "ix_thing" in facts.indexes
    assert {"outgoing_sync", "incoming_sync"} < facts.tables.keys()
    assert "incoming_sync_update" in facts.triggers
    assert facts.lacks_column("thing", "size")
    assert not facts.lacks_column("thing", "name") and not facts.lacks_column("nothing", "size")


def test_odd_names_in_a_catalogue_are_only_names(connection):
    connection.execute("""CREATE TABLE "it's; DROP TABLE thing" (a TEXT)""")
    assert facts_of(connection).tables["it's; DROP TABLE thing"] == ("a",)


def test_what_is_needed_is_done_in_order_and_only_once(connection):
    connection.execute(TABLE)
    steps = (
        missing_columns("thing", {"size": "INTEGER DEFAULT 7", "name": "TEXT"}),
        missing_index("ix_size", "CREATE INDEX ix_size ON thing (size)"),
        missing_sync_tables(),
    )
    connection.execute("INSERT INTO thing (name) VALUES ('a')")
    assert run(connection, *steps) == ["columns of thing", "index ix_size", "sync tables"]
    assert connection.execute("SELECT name, size FROM thing").fetchall() == [("a", 7)]
    assert run(connection, *steps) == []


def test_a_step_is_looked_at_again_after_those_before_it(connection):
    """One may have made the other needless."""
    connection.execute(TABLE)
    add = missing_columns("thing", {"size": "INTEGER"})
    assert run(connection, add, missing_columns("thing", {"size": "INTEGER"})) == ["columns of thing"]


def test_a_table_that_is_not_there_lacks_no_columns(connection):
    assert run(connection, missing_columns("thing", {"size": "INTEGER"})) == []


def test_one_of_the_sync_tables_is_made_where_the_other_is(connection):
    make_tables(connection, ())
    connection.execute("DROP TABLE incoming_sync")
    connection.execute("INSERT INTO outgoing_sync (remote_id, sync_point) VALUES ('x', 5)")
    assert run(connection, missing_sync_tables()) == ["sync tables"]
    assert connection.execute("SELECT remote_id FROM outgoing_sync").fetchall() == [("x",)]


def test_when_a_step_fails_none_was_taken(connection):
    connection.execute(TABLE)
    before = facts_of(connection)

    def fail(_connection, _facts):
        raise sqlite3.OperationalError("disk I/O error")

    steps = (missing_columns("thing", {"size": "INTEGER"}), Migration("bad", lambda _facts: True, fail))
    with pytest.raises(DatabaseError):
        run(connection, *steps)
    assert facts_of(connection) == before
    assert not connection.in_transaction


def test_a_file_that_is_no_database_is_broken(tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(b"no database at all" * 100)
    made = connect(str(path))
    with pytest.raises(DatabaseBroken):
        migrate(made, str(path), (missing_sync_tables(),))
    made.close()


def test_the_last_row_that_was_given_out_counts_although_it_is_gone(connection):
    assert max_row_of(connection) == -1
    connection.executemany("INSERT INTO thing (name) VALUES (?)", [("a",), ("b",)])
    connection.execute("DELETE FROM thing")
    assert max_row(connection, "thing") == 2


def max_row_of(connection):
    connection.execute(TABLE)
    return max_row(connection, "thing")


def test_rows_that_may_not_change_do_not(connection):
    connection.execute(TABLE)
    connection.execute(f"CREATE TRIGGER thing_update BEFORE UPDATE ON thing {UPDATE_REFUSED}")
    connection.execute("INSERT INTO thing (name) VALUES ('a')")
    with pytest.raises(sqlite3.IntegrityError, match="UPDATE not allowed"):
        connection.execute("UPDATE thing SET name = 'b'")
