"""Reading the rows of a part of a container, and removing those that have another home (§19.3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from swift.container.objecttable import read_rows
from swift.container.rows import ObjectRow

_INSIDE = "name > :lower AND (:upper = '' OR name <= :upper)"
#: Rows removed by one statement.
_TOGETHER = 500


def rows_inside(
    connection: sqlite3.Connection, lower: str, upper: str, after: int, count: int
) -> list[tuple[int, ObjectRow]]:
    """Rows of the names ``lower < name <= upper`` behind a ROWID, deleted ones too, with their ROWIDs."""
    return read_rows(
        connection,
        f"WHERE ROWID > :after AND {_INSIDE} ORDER BY ROWID LIMIT :count",
        {"after": after, "lower": lower, "upper": upper, "count": count},
    )


def rows_outside(
    connection: sqlite3.Connection, lower: str, upper: str, after: int, count: int
) -> list[tuple[int, ObjectRow]]:
    """The rows of all other names."""
    return read_rows(
        connection,
        f"WHERE ROWID > :after AND NOT ({_INSIDE}) ORDER BY ROWID LIMIT :count",
        {"after": after, "lower": lower, "upper": upper, "count": count},
    )


def all_rows(connection: sqlite3.Connection, after: int, count: int) -> list[tuple[int, ObjectRow]]:
    """Rows of any name."""
    return rows_inside(connection, "", "", after, count)


def counts_inside(connection: sqlite3.Connection, lower: str, upper: str) -> tuple[int, int, int]:
    """Objects, their bytes, and other rows (tombstones) of these names, whatever their policy."""
    row = connection.execute(
        "SELECT COALESCE(SUM(deleted = 0), 0), COALESCE(SUM(size * (deleted = 0)), 0), "
        f"COALESCE(SUM(deleted != 0), 0) FROM object WHERE {_INSIDE}",
        {"lower": lower, "upper": upper},
    ).fetchone()
    return int(row[0]), int(row[1]), int(row[2])


def remove_rows(connection: sqlite3.Connection, row_ids: Sequence[int]) -> int:
    """Remove rows by their ROWIDs, which a changed row does not keep; how many went."""
    gone = 0
    for start in range(0, len(row_ids), _TOGETHER):
        some = row_ids[start : start + _TOGETHER]
        marks = ", ".join("?" * len(some))
        gone += connection.execute(f"DELETE FROM object WHERE ROWID IN ({marks})", tuple(some)).rowcount
    return gone
