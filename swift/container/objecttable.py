"""The ``object`` table: merging rows into it and reading changes out of it (account-container.md §7, §13)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from swift.container.rows import ObjectRow, merge
from swift.db.syncpoints import set_sync

_COLUMNS = "name, created_at, size, content_type, etag, deleted, storage_policy_index"
#: Rows looked up by one statement.
_CHUNK = 500


def merge_rows(connection: sqlite3.Connection, rows: Sequence[ObjectRow]) -> None:
    """Merge rows by §7 inside the caller's transaction, in their order."""
    for start in range(0, len(rows), _CHUNK):
        _merge_chunk(connection, rows[start : start + _CHUNK])


def _merge_chunk(connection: sqlite3.Connection, rows: Sequence[ObjectRow]) -> None:
    have = _existing(connection, {row.name for row in rows})
    merged: dict[tuple[str, int], ObjectRow] = {}
    for row in rows:
        key = row.key
        before = merged.get(key) or (have[key][1] if key in have else None)
        after = merge(before, row)
        if after is not before:
            # Taken out and put in again, so that the last change of the batch is the last row.
            merged.pop(key, None)
            merged[key] = after
    if not merged:
        return
    connection.executemany(
        "DELETE FROM object WHERE ROWID = ?", [(have[key][0],) for key in merged if key in have]
    )
    connection.executemany(
        f"INSERT INTO object ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", [row[:7] for row in merged.values()]
    )


def _existing(
    connection: sqlite3.Connection, names: Iterable[str]
) -> dict[tuple[str, int], tuple[int, ObjectRow]]:
    """The rows of these names in every policy, with their ROWIDs."""
    wanted = list(names)
    found = connection.execute(
        f"SELECT ROWID, {_COLUMNS} FROM object WHERE deleted IN (0, 1) "
        f"AND name IN ({', '.join('?' * len(wanted))})",
        wanted,
    )
    return {(row[1], row[7]): (row[0], ObjectRow(*row[1:])) for row in found}


def merge_items(connection: sqlite3.Connection, items: Sequence[tuple[int, ObjectRow]], source: str) -> None:
    """Merge replicated (ROWID there, row) pairs and remember how far ``source`` came."""
    merge_rows(connection, [row for _, row in items])
    if items:
        set_sync(connection, source, items[-1][0], incoming=True)


def items_since(connection: sqlite3.Connection, row_id: int, count: int) -> list[dict[str, Any]]:
    """Up to ``count`` rows after a ROWID, as ``merge_items`` messages carry them."""
    rows = connection.execute(
        f"SELECT ROWID, {_COLUMNS} FROM object WHERE ROWID > ? ORDER BY ROWID LIMIT ?", (row_id, count)
    )
    return [ObjectRow(*row[1:]).as_dict(row[0]) for row in rows]


def reclaim_rows(connection: sqlite3.Connection, before: str, *, after_name: str, count: int) -> str | None:
    """Remove tombstones older than ``before`` among the next ``count`` of them by name (§13).

    Returns the name to go on after, None when all were looked at.
    """
    names = connection.execute(
        "SELECT name FROM object WHERE deleted = 1 AND name > ? ORDER BY name LIMIT 1 OFFSET ?",
        (after_name, count),
    ).fetchone()
    last = None if names is None else names[0]
    bound = "" if last is None else " AND name <= :last"
    connection.execute(
        f"DELETE FROM object WHERE deleted = 1 AND name > :after AND created_at < :before{bound}",
        {"after": after_name, "before": before, "last": last},
    )
    return last
