"""Doing without triggers for a moment."""

import sqlite3

import pytest

from swift.db.triggers import without_triggers


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(
        "CREATE TABLE thing (n INTEGER); CREATE TABLE total (n INTEGER); INSERT INTO total VALUES (0);"
        "CREATE TRIGGER adding AFTER INSERT ON thing BEGIN UPDATE total SET n = n + new.n; END;"
    )
    return made


def total(connection):
    return connection.execute("SELECT n FROM total").fetchone()[0]


def triggers(connection):
    return connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()


def test_triggers_rest_during_the_block_and_are_the_same_after_it(connection):
    before = triggers(connection)
    connection.execute("BEGIN")
    with without_triggers(connection, ["adding"]):
        connection.execute("INSERT INTO thing VALUES (5)")
    connection.execute("COMMIT")
    assert total(connection) == 0 and triggers(connection) == before
    connection.execute("INSERT INTO thing VALUES (2)")
    assert total(connection) == 2


def test_after_an_error_the_transaction_brings_them_back(connection):
    before = triggers(connection)
    connection.execute("BEGIN")
    with pytest.raises(ZeroDivisionError), without_triggers(connection, ["adding"]):
        raise ZeroDivisionError
    connection.execute("ROLLBACK")
    assert triggers(connection) == before


def test_a_trigger_that_an_old_schema_lacks_is_not_missed(connection):
    with without_triggers(connection, ["adding", "removing"]):
        pass
    assert [name for name, _text in triggers(connection)] == ["adding"]
