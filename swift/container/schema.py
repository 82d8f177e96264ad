"""The tables of a container database and the steps from older ones (account-container.md §5).

Statements only; what they mean is the broker's.
"""

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

ZERO_HASH = "0" * 32

OBJECT_TABLE = """
CREATE TABLE object (
    ROWID INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT,
    created_at TEXT,
    size INTEGER,
    content_type TEXT,
    etag TEXT,
    deleted INTEGER DEFAULT 0,
    storage_policy_index INTEGER DEFAULT 0
)
"""

OBJECT_INDEX = "CREATE INDEX ix_object_deleted_name ON object (deleted, name)"

#: The type of rows that mark something, as the markers of multipart uploads do.
DIRECTORY = "application/directory"
IS_DIRECTORY = f"content_type = '{DIRECTORY}'"
DIRECTORY_INDEX_NAME = "ix_object_directories"
#: Made in the databases of which such rows are listed alone; OpenStack Swift keeps it up and does not use it.
DIRECTORY_INDEX = (
    f"CREATE INDEX IF NOT EXISTS {DIRECTORY_INDEX_NAME} ON object (deleted, name) WHERE {IS_DIRECTORY}"
)

OBJECT_UPDATE_TRIGGER = f"CREATE TRIGGER object_update BEFORE UPDATE ON object {UPDATE_REFUSED}"

POLICY_STAT_TABLE = """
CREATE TABLE policy_stat (
    storage_policy_index INTEGER PRIMARY KEY,
    object_count INTEGER DEFAULT 0,
    bytes_used INTEGER DEFAULT 0
)
"""

#: Every row that comes or goes is counted under its policy and folded into the hash. A row of a ``deleted``
#: above 1 counts as no object and no bytes.
POLICY_TRIGGERS = (
    """
CREATE TRIGGER object_insert_policy_stat AFTER INSERT ON object BEGIN
    UPDATE policy_stat
        SET object_count = object_count + (new.deleted IS 0),
            bytes_used = bytes_used + CASE WHEN new.deleted > 1 THEN 0 ELSE new.size END
        WHERE storage_policy_index = new.storage_policy_index;
    INSERT INTO policy_stat (storage_policy_index, object_count, bytes_used)
        SELECT new.storage_policy_index, (new.deleted IS 0),
               CASE WHEN new.deleted > 1 THEN 0 ELSE new.size END
        WHERE NOT EXISTS (SELECT 1 FROM policy_stat
                          WHERE storage_policy_index = new.storage_policy_index);
    UPDATE container_info SET hash = chexor(hash, new.name, new.created_at);
END
""",
    """
CREATE TRIGGER object_delete_policy_stat AFTER DELETE ON object BEGIN
    UPDATE policy_stat
        SET object_count = object_count - (old.deleted IS 0),
            bytes_used = bytes_used - CASE WHEN old.deleted > 1 THEN 0 ELSE old.size END
        WHERE storage_policy_index = old.storage_policy_index;
    UPDATE container_info SET hash = chexor(hash, old.name, old.created_at);
END
""",
)

INSERT_TRIGGER = "object_insert_policy_stat"
COUNTING_TRIGGERS = (INSERT_TRIGGER, "object_delete_policy_stat")
COUNTING = CountingTriggers(
    dict(zip(COUNTING_TRIGGERS, POLICY_TRIGGERS, strict=True)),
    frozenset(("policy_stat", "container_info")),
    frozenset(("name", "created_at", "size", "deleted", "storage_policy_index")),
    (
        "UPDATE policy_stat SET "
        "object_count = object_count + (SELECT COALESCE(SUM(o.deleted - 1), 0) FROM object o "
        "WHERE o.deleted > 1 AND o.storage_policy_index = policy_stat.storage_policy_index), "
        "bytes_used = bytes_used - (SELECT COALESCE(SUM(o.size), 0) FROM object o "
        "WHERE o.deleted > 1 AND o.storage_policy_index = policy_stat.storage_policy_index)",
    ),
)

#: Column → declaration, in the order of the table.
INFO_COLUMNS = {
    "account": "TEXT",
    "container": "TEXT",
    "created_at": "TEXT",
    "put_timestamp": "TEXT DEFAULT '0'",
    "delete_timestamp": "TEXT DEFAULT '0'",
    "reported_put_timestamp": "TEXT DEFAULT '0'",
    "reported_delete_timestamp": "TEXT DEFAULT '0'",
    "reported_object_count": "INTEGER DEFAULT 0",
    "reported_bytes_used": "INTEGER DEFAULT 0",
    "hash": f"TEXT DEFAULT '{ZERO_HASH}'",
    "id": "TEXT",
    "status": "TEXT DEFAULT ''",
    "status_changed_at": "TEXT DEFAULT '0'",
    "metadata": "TEXT DEFAULT ''",
    "x_container_sync_point1": "INTEGER DEFAULT -1",
    "x_container_sync_point2": "INTEGER DEFAULT -1",
    "storage_policy_index": "INTEGER DEFAULT 0",
    "reconciler_sync_point": "INTEGER DEFAULT -1",
}

INFO_TABLE = f"CREATE TABLE container_info ({', '.join(f'{n} {d}' for n, d in INFO_COLUMNS.items())})"

#: The view under the name of the table of old, for readers that know only that.
STAT_VIEW = (
    f"""
CREATE VIEW container_stat AS
SELECT {", ".join(f"ci.{n}" for n in INFO_COLUMNS)},
       COALESCE(ps.object_count, 0) AS object_count, COALESCE(ps.bytes_used, 0) AS bytes_used
FROM container_info ci LEFT JOIN policy_stat ps ON ci.storage_policy_index = ps.storage_policy_index
""",
    f"""
CREATE TRIGGER container_stat_update INSTEAD OF UPDATE ON container_stat BEGIN
    UPDATE container_info SET {", ".join(f"{n} = new.{n}" for n in INFO_COLUMNS)};
END
""",
)

SHARD_COLUMNS = {
    "name": "TEXT",
    "timestamp": "TEXT",
    "lower": "TEXT",
    "upper": "TEXT",
    "object_count": "INTEGER DEFAULT 0",
    "bytes_used": "INTEGER DEFAULT 0",
    "meta_timestamp": "TEXT",
    "deleted": "INTEGER DEFAULT 0",
    "state": "INTEGER",
    "state_timestamp": "TEXT",
    "epoch": "TEXT",
    "reported": "INTEGER DEFAULT 0",
    "tombstones": "INTEGER DEFAULT -1",
}

SHARD_STATEMENTS = (
    "CREATE TABLE shard_range (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, "
    f"{', '.join(f'{n} {d}' for n, d in SHARD_COLUMNS.items())})",
    f"CREATE TRIGGER shard_range_update BEFORE UPDATE ON shard_range {UPDATE_REFUSED}",
)


#: Every table, index, view and trigger of a new database, but for those that all have.
TABLES = (
    OBJECT_TABLE,
    OBJECT_INDEX,
    OBJECT_UPDATE_TRIGGER,
    POLICY_STAT_TABLE,
    INFO_TABLE,
    *POLICY_TRIGGERS,
    *STAT_VIEW,
    *SHARD_STATEMENTS,
)


#: Table to columns of this release, lower-case; what else a database has comes from a newer one.
KNOWN_TABLES: Mapping[str, frozenset[str]] = {
    "object": COUNTING.columns | {"rowid", "content_type", "etag"},
    "policy_stat": frozenset(("storage_policy_index", "object_count", "bytes_used")),
    "container_info": frozenset(INFO_COLUMNS),
    "shard_range": frozenset(("rowid", *SHARD_COLUMNS)),
    **dict.fromkeys(SYNC_TABLES, SYNC_COLUMNS),
}


def create_tables(connection: sqlite3.Connection) -> None:
    """Create all tables, including the sync tables."""
    make_tables(connection, TABLES)


def _adopt_policies(connection: sqlite3.Connection, facts: SchemaFacts) -> None:
    """From the days before storage policies: everything becomes policy 0."""
    if facts.lacks_column("object", "storage_policy_index"):
        connection.execute("ALTER TABLE object ADD COLUMN storage_policy_index INTEGER DEFAULT 0")
    run_statements(
        connection,
        ("DROP TRIGGER IF EXISTS object_insert", "DROP TRIGGER IF EXISTS object_delete", INFO_TABLE),
    )
    if not facts.has_table("policy_stat"):
        connection.execute(POLICY_STAT_TABLE)
    connection.execute(
        "INSERT OR REPLACE INTO policy_stat (storage_policy_index, object_count, bytes_used) "
        "SELECT 0, object_count, bytes_used FROM container_stat"
    )
    shared = ", ".join(name for name in INFO_COLUMNS if name in facts.tables["container_stat"])
    connection.execute(f"INSERT INTO container_info ({shared}) SELECT {shared} FROM container_stat")
    connection.execute("DROP TABLE container_stat")
    for name in COUNTING_TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
    run_statements(connection, (*POLICY_TRIGGERS, *STAT_VIEW))


def _add_columns(connection: sqlite3.Connection, facts: SchemaFacts) -> None:
    """Columns that came after ``container_info`` did; the view is made anew over all of them."""
    for column, declaration in INFO_COLUMNS.items():
        if facts.lacks_column("container_info", column):
            connection.execute(f"ALTER TABLE container_info ADD COLUMN {column} {declaration}")
    connection.execute("DROP TRIGGER IF EXISTS container_stat_update")
    connection.execute("DROP VIEW IF EXISTS container_stat")
    run_statements(connection, STAT_VIEW)


MIGRATIONS = (
    Migration("policies", lambda facts: facts.has_table("container_stat"), _adopt_policies),
    Migration(
        "columns of container_info",
        lambda facts: any(facts.lacks_column("container_info", column) for column in INFO_COLUMNS),
        _add_columns,
    ),
    missing_index("ix_object_deleted_name", OBJECT_INDEX),
    Migration(
        "shard ranges",
        lambda facts: not facts.has_table("shard_range"),
        lambda connection, _facts: run_statements(connection, SHARD_STATEMENTS),
    ),
    missing_columns(
        "shard_range", {name: SHARD_COLUMNS[name] for name in ("epoch", "reported", "tombstones")}
    ),
    missing_sync_tables(),
)
