"""The ``container`` table: merging rows into it, reading changes out of it (account-container.md §7, §13)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import groupby

from swift.account.rows import ContainerRow, merge
from swift.account.schema import COUNTING
from swift.db.listing import PageRow
from swift.db.rowtable import RowTable
from swift.db.unknown import add_columns, column_list, named, values_of

TABLE = RowTable("container", ContainerRow._fields[:-1], "delete_timestamp")
#: Rows looked up by one statement.
_CHUNK = 500


def merge_rows(connection: sqlite3.Connection, rows: Sequence[ContainerRow]) -> None:
    """Merge rows by §7 inside the caller's transaction, in their order."""
    columns = TABLE.unknown_columns(connection)
    if any(row.unknown for row in rows):
        rows = [row._replace(unknown=named(row.unknown, columns)) if row.unknown else row for row in rows]
    for start in range(0, len(rows), _CHUNK):
        _merge_chunk(connection, rows[start : start + _CHUNK])


def _merge_chunk(connection: sqlite3.Connection, rows: Sequence[ContainerRow]) -> None:
    have = _existing(connection, {row.name for row in rows})
    merged: dict[str, ContainerRow] = {}
    for row in rows:
        before = merged.pop(row.name, None) or (have[row.name][1] if row.name in have else None)
        merged[row.name] = merge(before, row)
    changed = [name for name, row in merged.items() if name not in have or have[name][1] != row]
    new = [merged[name] for name in changed]
    if any(row.deleted > 1 for row in new) or any(
        have[name][1].deleted > 1 for name in changed if name in have
    ):
        COUNTING.renew(connection)
    add_columns(connection, TABLE.name, (row.unknown for row in new))
    connection.executemany(
        "DELETE FROM container WHERE ROWID = ?",
        [(row_id,) for name in changed for row_id in _row_ids(have, name)],
    )
    for names, rows_of_names in groupby(new, key=_unknown_names):
        marks = ", ?" * len(names)
        connection.executemany(
            f"INSERT INTO container ({TABLE.column_list}{column_list(names)}) "
            f"VALUES (?, ?, ?, ?, ?, ?, ?{marks})",
            [(*row[:7], *(value for _, value in row.unknown)) for row in rows_of_names],
        )


def _unknown_names(row: ContainerRow) -> tuple[str, ...]:
    return tuple(name for name, _ in row.unknown)


def _row_ids(have: dict[str, tuple[list[int], ContainerRow]], name: str) -> list[int]:
    return have[name][0] if name in have else []


def _existing(
    connection: sqlite3.Connection, names: Iterable[str]
) -> dict[str, tuple[list[int], ContainerRow]]:
    """Return the row of each name with its ROWID; should there be several, all ROWIDs and the last row."""
    wanted, unknown = list(names), TABLE.unknown_columns(connection)
    found = connection.execute(
        f"SELECT ROWID, {TABLE.column_list}{column_list(unknown)} FROM container "
        f"WHERE deleted IN ({TABLE.state_list(connection)}) "
        f"AND name IN ({', '.join('?' * len(wanted))}) ORDER BY ROWID",
        wanted,
    )
    have: dict[str, tuple[list[int], ContainerRow]] = {}
    for row in found:
        row_ids = [*_row_ids(have, row[1]), row[0]]
        have[row[1]] = (row_ids, _row_of(row, unknown))
    return have


def _row_of(row: PageRow, unknown: Sequence[str]) -> ContainerRow:
    return ContainerRow(*row[1:8])._replace(unknown=values_of(unknown, row[8:]))
