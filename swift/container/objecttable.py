"""The ``object`` table: merging rows into it and reading changes out of it (account-container.md §7, §13)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter

from swift.container.rows import ObjectRow, merge
from swift.container.schema import COUNTING, COUNTING_TRIGGERS, INSERT_TRIGGER
from swift.db.connection import chexor_all
from swift.db.rowtable import RowTable
from swift.db.triggers import without_triggers
from swift.db.unknown import add_columns, column_list, named, values_of

TABLE = RowTable(
    "object",
    ("name", "created_at", "size", "content_type", "etag", "deleted", "storage_policy_index"),
    "created_at",
)
#: Rows looked up by one statement, and written together.
_CHUNK = 1000
#: Rows inserted by one statement, which reads and writes the sequence of ROWIDs once.
_TOGETHER = 50
#: Columns of a row in a table.
_STORED = itemgetter(*range(7))
_INSERT = f"INSERT INTO object ({TABLE.column_list}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_INSERT_MANY = _INSERT + ", (?, ?, ?, ?, ?, ?, ?)" * (_TOGETHER - 1)
#: From so many rows on it pays to do without triggers.
BULK = 64


def merge_rows(connection: sqlite3.Connection, rows: Sequence[ObjectRow]) -> None:
    """Merge rows by §7 inside the caller's transaction, in their order."""
    if any(row[9] for row in rows):
        columns = TABLE.unknown_columns(connection)
        rows = [row._replace(unknown=named(row.unknown, columns)) if row[9] else row for row in rows]
    for start in range(0, len(rows), _CHUNK):
        _merge_chunk(connection, rows[start : start + _CHUNK])


def _merge_chunk(connection: sqlite3.Connection, rows: Sequence[ObjectRow]) -> None:
    names = {row[0] for row in rows}
    have = _existing(connection, names)
    if not have and len(names) == len(rows):
        _replace_rows(connection, (), [row if row[7] is row[8] is None else row.packed() for row in rows])
        return
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
    gone = [have[key] for key in merged if key in have]
    _replace_rows(connection, gone, list(merged.values()))


def _replace_rows(
    connection: sqlite3.Connection, gone: Sequence[tuple[int, ObjectRow]], new: Sequence[ObjectRow]
) -> None:
    if any(row[5] > 1 for row in new) or any(row[5] > 1 for _, row in gone):
        COUNTING.renew(connection)
    add_columns(connection, TABLE.name, (row[9] for row in new if row[9]))
    if len(new) < BULK or not COUNTING.are_known(connection):
        _write_rows(connection, gone, new)
        return
    # Each trigger that is taken out and put back is a change of the schema, which costs as much as many rows.
    with without_triggers(connection, COUNTING_TRIGGERS if gone else (INSERT_TRIGGER,)):
        _write_rows(connection, gone, new)
    _count(connection, [row for _, row in gone], new)


def _write_rows(
    connection: sqlite3.Connection, gone: Sequence[tuple[int, ObjectRow]], new: Sequence[ObjectRow]
) -> None:
    if gone:
        connection.executemany("DELETE FROM object WHERE ROWID = ?", [(row_id,) for row_id, _ in gone])
    if any(row[9] for row in new):
        # In their order, which is that of the changes.
        for names, rows in groupby(new, key=_unknown_names):
            marks = ", ?" * len(names)
            connection.executemany(
                f"INSERT INTO object ({TABLE.column_list}{column_list(names)}) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?{marks})",
                [(*row[:7], *(value for _, value in row[9])) for row in rows],
            )
        return
    whole = len(new) - len(new) % _TOGETHER
    for start in range(0, whole, _TOGETHER):
        rows = map(_STORED, new[start : start + _TOGETHER])
        connection.execute(_INSERT_MANY, list(chain.from_iterable(rows)))
    connection.executemany(_INSERT, map(_STORED, new[whole:]))


def _unknown_names(row: ObjectRow) -> tuple[str, ...]:
    return tuple(name for name, _ in row.unknown)


def _count(connection: sqlite3.Connection, gone: Sequence[ObjectRow], new: Sequence[ObjectRow]) -> None:
    """Update the totals of every policy and the hash, in place of the row triggers."""
    totals: dict[int, list[int]] = {}
    for sign, rows in ((-1, gone), (1, new)):
        for row in rows:
            total = totals.get(row[6])
            if total is None:
                total = totals[row[6]] = [0, 0]
            total[0] += sign * (not row[5])
            total[1] += sign * (row[2] or 0) * (row[5] <= 1)
    for policy_index, (count, size) in totals.items():
        connection.execute(
            "INSERT INTO policy_stat (storage_policy_index, object_count, bytes_used) VALUES (?, ?, ?) "
            "ON CONFLICT (storage_policy_index) DO UPDATE SET "
            "object_count = object_count + excluded.object_count, "
            "bytes_used = bytes_used + excluded.bytes_used",
            (policy_index, count, size),
        )
    (old,) = connection.execute("SELECT hash FROM container_info").fetchone()
    texts = [f"{row[0]}-{row[1]}" for rows in (gone, new) for row in rows]
    connection.execute("UPDATE container_info SET hash = ?", (chexor_all(old, texts),))


def _existing(
    connection: sqlite3.Connection, names: Iterable[str]
) -> dict[tuple[str, int], tuple[int, ObjectRow]]:
    """Return the rows of these names in every policy, with their ROWIDs."""
    wanted = sorted(names)
    if not _any_between(connection, wanted[0], wanted[-1]):
        return {}
    marks = ", ".join("?" * len(wanted))
    states = TABLE.state_list(connection)
    found = read_rows(connection, f"WHERE deleted IN ({states}) AND name IN ({marks})", wanted)
    return {(row[0], row[6]): (row_id, row) for row_id, row in found}


def _any_between(connection: sqlite3.Connection, first: str, last: str) -> bool:
    """Return True if a name lies in the range; in ordered batches, usually none does."""
    states = TABLE.state_list(connection)
    found = connection.execute(
        f"SELECT 1 FROM object WHERE deleted IN ({states}) AND name BETWEEN ? AND ? LIMIT 1", (first, last)
    )
    return found.fetchone() is not None


def read_rows(
    connection: sqlite3.Connection, clause: str, parameters: Sequence[object] | Mapping[str, object]
) -> list[tuple[int, ObjectRow]]:
    """Return the rows that an SQL clause selects, with their ROWIDs and what unknown columns hold."""
    unknown = TABLE.unknown_columns(connection)
    found = connection.execute(
        f"SELECT ROWID, {TABLE.column_list}{column_list(unknown)} FROM object {clause}", parameters
    )
    if not unknown:
        return [(row[0], ObjectRow(*row[1:])) for row in found]
    return [(row[0], ObjectRow(*row[1:8])._replace(unknown=values_of(unknown, row[8:]))) for row in found]


_INSIDE = "name > :lower AND (:upper = '' OR name <= :upper)"
#: Rows removed by one statement.
_REMOVED_TOGETHER = 500


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
    """Return the rows of all other names."""
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
    for start in range(0, len(row_ids), _REMOVED_TOGETHER):
        some = row_ids[start : start + _REMOVED_TOGETHER]
        marks = ", ".join("?" * len(some))
        gone += connection.execute(f"DELETE FROM object WHERE ROWID IN ({marks})", tuple(some)).rowcount
    return gone
