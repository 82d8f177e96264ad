"""The object table: batches merge like single rows, changes come out in order."""

import json
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift.base.timestamp import Timestamp
from swift.container import objecttable
from swift.container.rows import ObjectRow, tombstone
from swift.container.schema import create_tables
from swift.db.connection import chexor


def database():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("chexor", 3, chexor)
    create_tables(connection)
    connection.execute("INSERT INTO container_info (account, container) VALUES ('a', 'c')")
    return connection


def row(name, time, **changes):
    return ObjectRow(name, Timestamp(time).internal, time, "t/p", f"e{time}")._replace(**changes)


def content(connection):
    rows = connection.execute(
        "SELECT name, created_at, size, etag, deleted, storage_policy_index FROM object"
    )
    hash_text = connection.execute("SELECT hash FROM container_info").fetchone()
    counts = connection.execute("SELECT * FROM policy_stat WHERE object_count OR bytes_used").fetchall()
    return sorted(rows.fetchall()), hash_text, counts


history = st.lists(
    st.builds(
        lambda name, time, policy, gone: (
            tombstone(name, Timestamp(time), policy)
            if gone and time % 2
            else row(name, time, storage_policy_index=policy)
        ),
        st.sampled_from(["a", "b\x00c", "é"]),
        st.integers(min_value=1, max_value=6),
        st.integers(min_value=0, max_value=1),
        st.just(True),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(history)
def test_messages_hold_the_same_rows(rows):
    connection = database()
    objecttable.merge_rows(connection, rows)
    for count in (1, 3, 100):
        text, last = objecttable.TABLE.message_since(connection, 0, count)
        items = objecttable.TABLE.items_since(connection, 0, count)
        assert json.loads(text) == items
        assert last == (items[-1]["ROWID"] if items else 0)


@pytest.mark.long
@settings(deadline=None)
@given(history, st.lists(st.integers(1, 400), min_size=objecttable.BULK, max_size=3 * objecttable.BULK))
def test_many_rows_at_once_count_as_one_by_one(before, numbers):
    at_once, one_by_one = database(), database()
    rows = [row(f"n{n % 150}", n, storage_policy_index=n % 3, deleted=n % 2) for n in numbers]
    for connection in (at_once, one_by_one):
        objecttable.merge_rows(connection, before)
    objecttable.merge_rows(at_once, rows)
    for item in rows:
        objecttable.merge_rows(one_by_one, [item])
    assert content(at_once) == content(one_by_one)
    triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    assert at_once.execute(triggers).fetchall() == one_by_one.execute(triggers).fetchall()


@pytest.mark.long
@settings(deadline=None)
@given(history, st.randoms(use_true_random=False), st.integers(min_value=1, max_value=5))
def test_replicas_that_got_the_rows_in_any_order_and_batches_are_equal(rows, random, size):
    one, other = database(), database()
    objecttable.merge_rows(one, rows)
    shuffled = rows + rows[: len(rows) // 2]
    random.shuffle(shuffled)
    for start in range(0, len(shuffled), size):
        objecttable.merge_rows(other, shuffled[start : start + size])
    assert content(one) == content(other)


def test_the_hash_is_that_of_the_rows():
    connection = database()
    objecttable.merge_rows(connection, [row("obj", 1, created_at="1402436408.91203")])
    assert content(connection)[1] == ("b66eb71632f4245c59f4a07372690b9f",)


@pytest.mark.parametrize("count", [49, 50, 51, 63, 64, 149, 150])
def test_rows_that_come_together_follow_each_other(count):
    connection = database()
    objecttable.merge_rows(connection, [row("first", 1)])
    wanted = [f"n{n * 7919 % 1000}" for n in range(count)]
    objecttable.merge_rows(connection, [row(name, 2) for name in wanted])
    changes = objecttable.TABLE.items_since(connection, 1, 1000)
    assert [(c["ROWID"], c["name"]) for c in changes] == list(enumerate(wanted, 2))


def test_one_name_has_a_row_per_policy():
    connection = database()
    objecttable.merge_rows(connection, [row("o", 1), row("o", 2, storage_policy_index=1)])
    assert content(connection)[2] == [(0, 1, 1), (1, 1, 2)]


def test_rows_are_never_updated_in_place():
    connection = database()
    objecttable.merge_rows(connection, [row("o", 1)])
    with pytest.raises(sqlite3.Error, match="UPDATE not allowed"):
        connection.execute("UPDATE object SET size = 1")


def test_changes_are_read_in_the_order_they_were_made():
    connection = database()
    objecttable.merge_rows(connection, [row("a", 1), row("b", 1)])
    objecttable.merge_rows(connection, [row("a", 2)])
    changes = objecttable.TABLE.items_since(connection, 0, 10)
    assert [(c["ROWID"], c["name"]) for c in changes] == [(2, "b"), (3, "a")]
    assert [c["name"] for c in objecttable.TABLE.items_since(connection, 2, 1)] == ["a"]
    assert list(changes[0]) == [
        "ROWID", "name", "created_at", "size", "content_type", "etag", "deleted", "storage_policy_index",
    ]  # fmt: skip


def test_only_old_tombstones_are_reclaimed_page_by_page():
    connection = database()
    objecttable.merge_rows(
        connection,
        [tombstone(f"o{n}", Timestamp(1 if n % 2 else 9), 0) for n in range(9)] + [row("alive", 1)],
    )
    after = ""
    pages = 0
    while after is not None:
        after = objecttable.TABLE.reclaim(connection, Timestamp(5).internal, after_name=after, count=2)
        pages += 1
    left = [r[0] for r in content(connection)[0]]
    assert left == ["alive", "o0", "o2", "o4", "o6", "o8"]
    assert pages > 2
