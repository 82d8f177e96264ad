"""Container databases of every age open and end with the schema of today."""

import sqlite3

import pytest

from swift.container.broker import ContainerBroker
from swift.container.schema import INFO_COLUMNS, create_tables
from swift.db.broker import Engine
from swift.db.connection import chexor
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery
from swift.db.schema import facts_of

OLD_STAT = ", ".join(
    f"{name} {kind}"
    for name, kind in INFO_COLUMNS.items()
    if name not in ("storage_policy_index", "reconciler_sync_point", "metadata")
)

#: A database from before storage policies: totals in a real table, kept by two triggers.
BEFORE_POLICIES = f"""
CREATE TABLE object (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, created_at TEXT, size INTEGER,
    content_type TEXT, etag TEXT, deleted INTEGER DEFAULT 0);
CREATE TABLE container_stat ({OLD_STAT}, object_count INTEGER DEFAULT 0, bytes_used INTEGER DEFAULT 0);
CREATE TRIGGER object_update BEFORE UPDATE ON object BEGIN SELECT RAISE(FAIL, 'no'); END;
CREATE TRIGGER object_insert AFTER INSERT ON object BEGIN
    UPDATE container_stat SET object_count = object_count + (1 - new.deleted),
        bytes_used = bytes_used + new.size, hash = chexor(hash, new.name, new.created_at); END;
CREATE TRIGGER object_delete AFTER DELETE ON object BEGIN
    UPDATE container_stat SET object_count = object_count - (1 - old.deleted),
        bytes_used = bytes_used - old.size, hash = chexor(hash, old.name, old.created_at); END;
INSERT INTO container_stat (account, container, created_at, put_timestamp, delete_timestamp, id, status,
    status_changed_at) VALUES ('a', 'c', '0000000001.00000', '0000000001.00000', '0', 'old-id', '', '1');
INSERT INTO object (name, created_at, size, content_type, etag)
    VALUES ('o1', '0000000002.00000', 5, 't/p', 'e'), ('o2', '0000000002.00000', 6, 't/p', 'e');
"""

DROPS = {
    "before shard ranges": "DROP TABLE shard_range",
    "shard ranges without epoch, reported and tombstones": (
        "DROP TABLE shard_range; CREATE TABLE shard_range (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, "
        "name TEXT, timestamp TEXT, lower TEXT, upper TEXT, object_count INTEGER DEFAULT 0, "
        "bytes_used INTEGER DEFAULT 0, meta_timestamp TEXT, deleted INTEGER DEFAULT 0, state INTEGER, "
        "state_timestamp TEXT, epoch TEXT); CREATE TRIGGER shard_range_update BEFORE UPDATE ON shard_range "
        "BEGIN SELECT RAISE(FAIL, 'no'); END; INSERT INTO shard_range (name, timestamp, lower, upper, "
        "meta_timestamp, state, state_timestamp) VALUES ('.shards_a/c-1', '0000000001.00000', '', '', "
        "'0000000001.00000', 40, '0000000001.00000')"
    ),
    "without index": "DROP INDEX ix_object_deleted_name",
    "without sync tables": "DROP TABLE incoming_sync; DROP TABLE outgoing_sync",
    "without reconciler point": (
        "DROP VIEW container_stat; ALTER TABLE container_info DROP COLUMN reconciler_sync_point"
    ),
}


def opened(tmp_path, script):
    (tmp_path / "sda").mkdir()
    place = DatabasePath(str(tmp_path / "sda"), "containers", "1", "ab" * 16)
    (tmp_path / "sda" / "containers" / "1" / "bab" / ("ab" * 16)).mkdir(parents=True)
    connection = sqlite3.connect(place.file())
    connection.create_function("chexor", 3, chexor)
    script(connection)
    connection.commit()
    connection.close()
    broker = ContainerBroker(place, Engine(), "a", "c")
    assert broker.refresh()
    return broker


def today():
    connection = sqlite3.connect(":memory:")
    connection.create_function("chexor", 3, chexor)
    create_tables(connection)
    return facts_of(connection)


def has_todays_schema(broker):
    facts, wanted = broker.read(facts_of), today()
    for table, columns in wanted.tables.items():
        assert set(columns) <= set(facts.tables[table])
    assert facts.views == wanted.views
    assert facts.triggers == wanted.triggers
    assert wanted.indexes <= facts.indexes


def test_a_database_from_before_policies_becomes_one_of_policy_zero(tmp_path):
    broker = opened(tmp_path, lambda connection: connection.executescript(BEFORE_POLICIES))
    has_todays_schema(broker)
    info = broker.info()
    assert (info.object_count, info.bytes_used, info.id) == (2, 11, "old-id")
    assert info.hash == chexor(chexor("0" * 32, "o1", "0000000002.00000"), "o2", "0000000002.00000")
    assert [r[0] for r in broker.listing(ListingQuery(10), 0)] == ["o1", "o2"]


@pytest.mark.parametrize("age", DROPS)
def test_databases_of_other_ages(tmp_path, age):
    def script(connection):
        create_tables(connection)
        connection.execute(
            "INSERT INTO container_info (account, container, created_at, put_timestamp, id) "
            "VALUES ('a', 'c', '1', '0000000001.00000', 'x')"
        )
        connection.executescript(DROPS[age])

    broker = opened(tmp_path, script)
    has_todays_schema(broker)
    assert broker.info().id == "x"


def test_the_view_of_old_readers_can_be_written(tmp_path):
    broker = opened(tmp_path, lambda connection: connection.executescript(BEFORE_POLICIES))
    broker.write(lambda connection: connection.execute("UPDATE container_stat SET status = 'X', id = 'new'"))
    assert broker.info().id == "new"


def test_opening_twice_migrates_once(tmp_path):
    broker = opened(tmp_path, lambda connection: connection.executescript(BEFORE_POLICIES))
    before = broker.info()
    broker.close()
    again = ContainerBroker(broker.place, Engine(), "a", "c")
    again.refresh()
    assert again.info() == before
