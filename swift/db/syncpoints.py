"""Sync points: the progress of replication with each remote database (account-container.md §3, §7, §13)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue

#: SQLite's integers are below it.
_ROW_ID_END = 1 << 63


def _table(*, incoming: bool) -> str:
    return "incoming_sync" if incoming else "outgoing_sync"


def get_sync(connection: sqlite3.Connection, remote_id: str, *, incoming: bool) -> int:
    """Return the last row exchanged with a database id, -1 when none."""
    row = connection.execute(
        f"SELECT sync_point FROM {_table(incoming=incoming)} WHERE remote_id = ?", (remote_id,)
    ).fetchone()
    return -1 if row is None or row[0] is None else int(row[0])


def all_syncs(connection: sqlite3.Connection, *, incoming: bool) -> list[dict[str, object]]:
    """Every entry as the REPLICATE messages carry them."""
    rows = connection.execute(f"SELECT remote_id, sync_point FROM {_table(incoming=incoming)}")
    return [{"remote_id": remote_id, "sync_point": point} for remote_id, point in rows]


def described_syncs(connection: sqlite3.Connection, *, incoming: bool) -> list[tuple[int, str, str]]:
    """Every entry with the time (Unix seconds) of its last change, for people."""
    rows = connection.execute(f"SELECT sync_point, remote_id, updated_at FROM {_table(incoming=incoming)}")
    return [(int(point), remote_id, str(updated or 0)) for point, remote_id, updated in rows]


def set_sync(connection: sqlite3.Connection, remote_id: str, sync_point: int, *, incoming: bool) -> None:
    """Remember a point; an entry never goes back."""
    table = _table(incoming=incoming)
    connection.execute(
        f"INSERT INTO {table} (remote_id, sync_point) VALUES (?, ?) "
        "ON CONFLICT (remote_id) DO UPDATE SET sync_point = max(excluded.sync_point, sync_point)",
        (remote_id, sync_point),
    )


def merge_syncs(connection: sqlite3.Connection, syncs: Iterable[JsonObject], *, incoming: bool) -> None:
    """Take over another database's entries; raises ``InvalidValue`` for malformed ones."""
    for sync in syncs:
        try:
            remote_id, point = sync["remote_id"], int(sync["sync_point"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidValue("a sync entry needs remote_id and sync_point")
        if not isinstance(remote_id, str) or not remote_id.isprintable():
            raise InvalidValue("remote_id must be text")
        if not -_ROW_ID_END <= point < _ROW_ID_END:
            raise InvalidValue("sync_point is out of range")
        set_sync(connection, remote_id, point, incoming=incoming)


def stale_syncs(connection: sqlite3.Connection, before_s: int) -> bool:
    """Return True if ``reclaim_syncs`` would remove rows."""
    return any(
        connection.execute(
            f"SELECT 1 FROM {table} WHERE CAST(updated_at AS INTEGER) < ? LIMIT 1", (before_s,)
        ).fetchone()
        for table in ("outgoing_sync", "incoming_sync")
    )


def reclaim_syncs(connection: sqlite3.Connection, before_s: int) -> None:
    """Forget remotes not heard of since ``before_s`` (Unix seconds)."""
    for table in ("outgoing_sync", "incoming_sync"):
        connection.execute(f"DELETE FROM {table} WHERE CAST(updated_at AS INTEGER) < ?", (before_s,))
