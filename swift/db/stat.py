"""The single row that describes a database: timestamps, status, metadata (account-container.md §8, §9).

The same statements serve accounts (``account_stat``) and containers (``container_info``). Each function runs
inside the caller's transaction. Timestamps compare as text, as the peer's statements do: all of one width,
or the schema's ``0``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from swift.base.documents import JsonObject
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.db import metadata as meta
from swift.db.metadata import Metadata


def stat_row(connection: sqlite3.Connection, table: str) -> JsonObject:
    """Return the row as a dictionary; empty when the table is."""
    cursor = connection.execute(f"SELECT * FROM {table} LIMIT 1")
    row = cursor.fetchone()
    return {} if row is None else dict(zip((c[0] for c in cursor.description), row, strict=True))


def as_timestamp(value: Any) -> Timestamp:
    """Return a timestamp column's value; the schema's 0, NULL and anything unreadable are zero."""
    try:
        return Timestamp(value or 0)
    except InvalidTimestamp:
        return Timestamp(0)


def touch_put(connection: sqlite3.Connection, table: str, timestamp: Timestamp) -> None:
    """Raise put_timestamp to ``timestamp``; it never goes back."""
    text = timestamp.internal
    connection.execute(f"UPDATE {table} SET put_timestamp = ? WHERE put_timestamp < ?", (text, text))


def touch_status(connection: sqlite3.Connection, table: str, timestamp: Timestamp) -> None:
    """Raise status_changed_at to ``timestamp``."""
    text = timestamp.internal
    connection.execute(f"UPDATE {table} SET status_changed_at = ? WHERE status_changed_at < ?", (text, text))


def mark_deleted(
    connection: sqlite3.Connection, table: str, timestamp: Timestamp, keep: frozenset[str] = frozenset()
) -> None:
    """Blank the metadata (but the lower-case names in ``keep``) and record the deletion, when newer."""
    update_metadata(connection, table, lambda have: meta.blanked(have, timestamp, keep))
    text = timestamp.internal
    connection.execute(
        f"UPDATE {table} SET delete_timestamp = ?, status = 'DELETED', status_changed_at = ? "
        "WHERE delete_timestamp < ?",
        (text, text, text),
    )


def update_metadata(
    connection: sqlite3.Connection, table: str, change: Callable[[Metadata], Metadata]
) -> Metadata:
    """Replace the metadata column by what ``change`` makes of it; the result."""
    row = connection.execute(f"SELECT metadata FROM {table} LIMIT 1").fetchone()
    have = meta.parse(row[0] if row else "")
    changed = change(have)
    if changed is not have:
        connection.execute(f"UPDATE {table} SET metadata = ?", (meta.dump(changed),))
    return changed


def merge_timestamps(
    connection: sqlite3.Connection,
    table: str,
    *,
    created_at: str,
    put_timestamp: str,
    delete_timestamp: str,
    now: Timestamp,
    is_deleted: Callable[[sqlite3.Connection], bool],
) -> None:
    """Take over another replica's times: the earliest creation, the latest put and delete (§9).

    When that makes a living database deleted or the reverse, its status changed ``now``.
    """
    before = is_deleted(connection)
    connection.execute(
        f"UPDATE {table} SET created_at = MIN(?, created_at), put_timestamp = MAX(?, put_timestamp), "
        "delete_timestamp = MAX(?, delete_timestamp)",
        (created_at, put_timestamp, delete_timestamp),
    )
    if is_deleted(connection) != before:
        touch_status(connection, table, now)


def delete_is_newer(row: JsonObject) -> bool:
    """Return True if a stat row's deletion is newer than its last put."""
    return as_timestamp(row.get("delete_timestamp")) > as_timestamp(row.get("put_timestamp"))
