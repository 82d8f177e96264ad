"""The ``container`` table: merging rows into it, reading changes out of it (account-container.md §7, §13)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from swift.account.rows import ContainerRow, merge
from swift.db.rowtable import RowTable
from swift.db.syncpoints import set_sync

TABLE = RowTable(
    "container",
    (
        "name",
        "put_timestamp",
        "delete_timestamp",
        "object_count",
        "bytes_used",
        "deleted",
        "storage_policy_index",
    ),
    "delete_timestamp",
)
#: Rows looked up by one statement.
_CHUNK = 500


def merge_rows(connection: sqlite3.Connection, rows: Sequence[ContainerRow]) -> None:
    """Merge rows by §7 inside the caller's transaction, in their order."""
    for start in range(0, len(rows), _CHUNK):
        _merge_chunk(connection, rows[start : start + _CHUNK])


def _merge_chunk(connection: sqlite3.Connection, rows: Sequence[ContainerRow]) -> None:
    have = _existing(connection, {row.name for row in rows})
    merged: dict[str, ContainerRow] = {}
    for row in rows:
        before = merged.pop(row.name, None) or (have[row.name][1] if row.name in have else None)
        merged[row.name] = merge(before, row)
    changed = [name for name, row in merged.items() if name not in have or have[name][1] != row]
    connection.executemany(
        "DELETE FROM container WHERE ROWID = ?",
        [(row_id,) for name in changed for row_id in _row_ids(have, name)],
    )
    connection.executemany(
        f"INSERT INTO container ({TABLE.column_list}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [merged[name] for name in changed],
    )


def _row_ids(have: dict[str, tuple[list[int], ContainerRow]], name: str) -> list[int]:
    return have[name][0] if name in have else []


def _existing(
    connection: sqlite3.Connection, names: Iterable[str]
) -> dict[str, tuple[list[int], ContainerRow]]:
    """The row of each name with its ROWID; should there be several, all ROWIDs and the last row."""
    wanted = list(names)
    found = connection.execute(
        f"SELECT ROWID, {TABLE.column_list} FROM container WHERE deleted IN (0, 1) "
        f"AND name IN ({', '.join('?' * len(wanted))}) ORDER BY ROWID",
        wanted,
    )
    have: dict[str, tuple[list[int], ContainerRow]] = {}
    for row in found:
        row_ids = [*_row_ids(have, row[1]), row[0]]
        have[row[1]] = (row_ids, ContainerRow(*row[1:]))
    return have


def merge_items(
    connection: sqlite3.Connection, items: Sequence[tuple[int, ContainerRow]], source: str
) -> None:
    """Merge replicated (ROWID there, row) pairs and remember how far ``source`` came."""
    merge_rows(connection, [row for _, row in items])
    if items:
        set_sync(connection, source, max(row_id for row_id, _ in items), incoming=True)


def items_since(connection: sqlite3.Connection, row_id: int, count: int) -> list[dict[str, object]]:
    """Up to ``count`` rows after a ROWID, as ``merge_items`` messages carry them."""
    return [ContainerRow(*row[1:]).as_dict(row[0]) for row in TABLE.rows_since(connection, row_id, count)]
