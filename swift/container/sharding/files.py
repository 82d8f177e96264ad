"""The files of a container that is being split (spec: account-container.md §19.2).

A container that is to be split gets a second file, named by the epoch, which takes all that is written from
then on. The old one is read until every row of it is in a shard, and then goes. Both steps are taken with the
directory locked, so that no row falls between them.
"""

from __future__ import annotations

import sqlite3
from uuid import uuid4

from swift.base.timestamp import Timestamp
from swift.container import shardtable
from swift.container.broker import TABLE, ContainerBroker
from swift.container.schema import KNOWN_TABLES, create_tables
from swift.container.shardtable import ShardQuery
from swift.db.schema import max_row, run_statements
from swift.db.syncpoints import all_syncs, merge_syncs
from swift.db.unknown import columns_of, has_unknown, insert_rows, quoted, rows_of, schema_of, table_names
from swift.platform.disk import Disk

_EVERY_RANGE = ShardQuery(include_deleted=True, include_own=True)
_NOT_COPIED = ("hash", "id")


def begin_epoch(broker: ContainerBroker, epoch: str) -> bool:
    """Make the second file; whether it is there now. ``refresh`` is done."""
    path = broker.newest.path
    wanted = Timestamp(epoch).normal
    if broker.place.epoch_of(path) == wanted:
        return True
    kept = broker.read(_kept)

    def build(connection: sqlite3.Connection) -> None:
        if kept.schema:
            run_statements(connection, kept.schema)
        else:
            create_tables(connection)
        _fill(connection, kept, f"{uuid4()}-{broker.place.device}")

    broker.make_file(build, epoch=wanted)
    return len(broker.databases) > 1


class _Kept:
    """Rows for the new file."""

    def __init__(self, connection: sqlite3.Connection):
        columns = [name for name in columns_of(connection, TABLE) if name not in _NOT_COPIED]
        row = connection.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {TABLE}").fetchone()
        self.info = dict(zip(columns, row, strict=True))
        self.ranges = shardtable.select(connection, "", _EVERY_RANGE)
        self.incoming = all_syncs(connection, incoming=True)
        self.outgoing = all_syncs(connection, incoming=False)
        self.max_row = max_row(connection, "object")
        #: Of a database with tables or columns of a newer release; else the new file gets our own tables.
        self.schema = schema_of(connection) if has_unknown(connection, KNOWN_TABLES) else []
        unknown = sorted(table_names(connection) - KNOWN_TABLES.keys())
        self.tables = {name: rows_of(connection, name) for name in unknown}


def _kept(connection: sqlite3.Connection) -> _Kept:
    return _Kept(connection)


def _fill(connection: sqlite3.Connection, kept: _Kept, database_id: str) -> None:
    info = {**kept.info, "id": database_id}
    marks, names = ", ".join("?" * len(info)), ", ".join(map(quoted, info))
    connection.execute(f"INSERT INTO {TABLE} ({names}) VALUES ({marks})", tuple(info.values()))
    for table, rows in kept.tables.items():
        insert_rows(connection, table, rows)
    connection.execute(
        "INSERT OR IGNORE INTO policy_stat (storage_policy_index) VALUES (?)",
        (kept.info["storage_policy_index"],),
    )
    shardtable.merge_ranges(connection, kept.ranges)
    merge_syncs(connection, kept.incoming, incoming=True)
    merge_syncs(connection, kept.outgoing, incoming=False)
    if kept.max_row > 0:
        # Rows of the new file follow those of the old one.
        connection.execute("DELETE FROM SQLITE_SEQUENCE WHERE name = 'object'")
        connection.execute("INSERT INTO SQLITE_SEQUENCE (name, seq) VALUES ('object', ?)", (kept.max_row,))


def remove_retiring(broker: ContainerBroker, seen_max_row: int) -> bool:
    """Remove the old file unless rows came to it after ``seen_max_row``; whether it went."""
    old = broker.oldest
    if len(broker.databases) < 2:
        return True

    def work(_connection: sqlite3.Connection, disk: Disk) -> bool:
        if old.query_locked(lambda connection: max_row(connection, "object")) > seen_max_row:
            return False
        disk.unlink(old.path)
        return True

    went = broker.alone(work)
    broker.refresh()
    return went
