"""The tables of an account database and the steps from older ones (account-container.md §4)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from swift.db.schema import (
    SYNC_COLUMNS,
    SYNC_TABLES,
    UPDATE_REFUSED,
    Migration,
    SchemaFacts,
    make_tables,
    missing_columns,
    missing_index,
    missing_sync_tables,
    run_statements,
)
from swift.db.triggers import CountingTriggers

CONTAINER_TABLE = """
CREATE TABLE container (
    ROWID INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT,
    put_timestamp TEXT,
    delete_timestamp TEXT,
    object_count INTEGER,
    bytes_used INTEGER,
    deleted INTEGER DEFAULT 0,
    storage_policy_index INTEGER DEFAULT 0
)
"""

CONTAINER_INDEX = "CREATE INDEX ix_container_deleted_name ON container (deleted, name)"

_HASHED = (
    "{row}.name, {row}.put_timestamp || '-' || {row}.delete_timestamp || '-' || "
    "{row}.object_count || '-' || {row}.bytes_used"
)

#: Every row that comes or goes is counted in the totals and folded into the hash.
TOTAL_TRIGGERS = (
    f"""
CREATE TRIGGER container_insert AFTER INSERT ON container BEGIN
    UPDATE account_stat SET
        container_count = container_count + (new.deleted IS 0),
        object_count = object_count + new.object_count,
        bytes_used = bytes_used + new.bytes_used,
        hash = chexor(hash, {_HASHED.format(row="new")});
END
""",
    f"CREATE TRIGGER container_update BEFORE UPDATE ON container {UPDATE_REFUSED}",
    f"""
CREATE TRIGGER container_delete AFTER DELETE ON container BEGIN
    UPDATE account_stat SET
        container_count = container_count - (old.deleted IS 0),
        object_count = object_count - old.object_count,
        bytes_used = bytes_used - old.bytes_used,
        hash = chexor(hash, {_HASHED.format(row="old")});
END
""",
)

POLICY_STAT_TABLE = """
CREATE TABLE policy_stat (
    storage_policy_index INTEGER PRIMARY KEY,
    container_count INTEGER DEFAULT 0,
    object_count INTEGER DEFAULT 0,
    bytes_used INTEGER DEFAULT 0
)
"""

POLICY_TRIGGERS = (
    """
CREATE TRIGGER container_insert_ps AFTER INSERT ON container BEGIN
    INSERT OR IGNORE INTO policy_stat (storage_policy_index) VALUES (new.storage_policy_index);
    UPDATE policy_stat SET
        container_count = container_count + (new.deleted IS 0),
        object_count = object_count + new.object_count,
        bytes_used = bytes_used + new.bytes_used
        WHERE storage_policy_index = new.storage_policy_index;
END
""",
    """
CREATE TRIGGER container_delete_ps AFTER DELETE ON container BEGIN
    UPDATE policy_stat SET
        container_count = container_count - (old.deleted IS 0),
        object_count = object_count - old.object_count,
        bytes_used = bytes_used - old.bytes_used
        WHERE storage_policy_index = old.storage_policy_index;
END
""",
)

_UNKNOWN = "SELECT COALESCE(SUM(c.deleted - 1), 0) FROM container c WHERE c.deleted > 1"
COUNTING = CountingTriggers(
    {
        "container_insert": TOTAL_TRIGGERS[0],
        "container_delete": TOTAL_TRIGGERS[2],
        "container_insert_ps": POLICY_TRIGGERS[0],
        "container_delete_ps": POLICY_TRIGGERS[1],
    },
    frozenset(("policy_stat", "account_stat")),
    frozenset(
        (
            *("name", "put_timestamp", "delete_timestamp", "object_count", "bytes_used"),
            *("deleted", "storage_policy_index"),
        )
    ),
    (
        f"UPDATE account_stat SET container_count = container_count + ({_UNKNOWN})",
        f"UPDATE policy_stat SET container_count = container_count + ({_UNKNOWN} "
        "AND c.storage_policy_index = policy_stat.storage_policy_index)",
    ),
)

STAT_COLUMNS = {
    "account": "TEXT",
    "created_at": "TEXT",
    "put_timestamp": "TEXT DEFAULT '0'",
    "delete_timestamp": "TEXT DEFAULT '0'",
    "container_count": "INTEGER",
    "object_count": "INTEGER DEFAULT 0",
    "bytes_used": "INTEGER DEFAULT 0",
    "hash": f"TEXT DEFAULT '{'0' * 32}'",
    "id": "TEXT",
    "status": "TEXT DEFAULT ''",
    "status_changed_at": "TEXT DEFAULT '0'",
    "metadata": "TEXT DEFAULT ''",
}

STAT_TABLE = f"CREATE TABLE account_stat ({', '.join(f'{n} {d}' for n, d in STAT_COLUMNS.items())})"


#: Every table, index and trigger of a new database, but for those that all have.
TABLES = (CONTAINER_TABLE, CONTAINER_INDEX, *TOTAL_TRIGGERS, POLICY_STAT_TABLE, *POLICY_TRIGGERS, STAT_TABLE)


#: Table to columns of this release, lower-case; what else a database has comes from a newer one.
KNOWN_TABLES: Mapping[str, frozenset[str]] = {
    "container": COUNTING.columns | {"rowid"},
    "policy_stat": frozenset(("storage_policy_index", "container_count", "object_count", "bytes_used")),
    "account_stat": frozenset(STAT_COLUMNS),
    **dict.fromkeys(SYNC_TABLES, SYNC_COLUMNS),
}


def create_tables(connection: sqlite3.Connection) -> None:
    """Create all tables, including the sync tables."""
    make_tables(connection, TABLES)


def _count_by_policy(connection: sqlite3.Connection, facts: SchemaFacts) -> None:
    """From the days before policy statistics (or before their container counts): count anew."""
    if facts.lacks_column("container", "storage_policy_index"):
        connection.execute("ALTER TABLE container ADD COLUMN storage_policy_index INTEGER DEFAULT 0")
    run_statements(
        connection,
        (
            "DROP TRIGGER IF EXISTS container_insert_ps",
            "DROP TRIGGER IF EXISTS container_delete_ps",
            "DROP TABLE IF EXISTS policy_stat",
            POLICY_STAT_TABLE,
            "INSERT INTO policy_stat (storage_policy_index, container_count, object_count, bytes_used) "
            "SELECT storage_policy_index, SUM(deleted IS 0), SUM(object_count), SUM(bytes_used) "
            "FROM container GROUP BY storage_policy_index",
            *POLICY_TRIGGERS,
        ),
    )


MIGRATIONS = (
    Migration(
        "policy statistics",
        lambda facts: (
            not facts.has_table("policy_stat")
            or facts.lacks_column("policy_stat", "container_count")
            or facts.lacks_column("container", "storage_policy_index")
        ),
        _count_by_policy,
    ),
    missing_columns("account_stat", STAT_COLUMNS),
    missing_index("ix_container_deleted_name", CONTAINER_INDEX),
    missing_sync_tables(),
)
