"""Columns and tables of databases that a newer release wrote: kept in rows, messages and copies of files.

A row carries the values of columns that this release does not know as pairs of name and value (``Unknown``).
Values of NULL are left out. Nothing here knows what the values mean.
doc/formats/database-replication.md, "Databases of newer releases".
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from swift.base.errors import InvalidValue

Scalar = str | int | float
#: Values of unknown columns: lower-case names and what is not NULL.
Unknown = tuple[tuple[str, Scalar], ...]

_COLUMN_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
#: SQLite's own names of a row's number.
_RESERVED = frozenset(("rowid", "oid", "_rowid_"))
_INTEGER_MAX = (1 << 63) - 1
_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL"}
#: The one column that pending entries are known to have behind those of this release.
PENDING_COLUMN = "systags"
#: The prefix of the position of a pending field without a name.
_POSITION = "pending_field_"


def unknown_values(values: Mapping[str, object], known: frozenset[str]) -> Unknown:
    """Return the values of a message's row that are in no known column; raises ``InvalidValue``."""
    if values.keys() <= known:
        return ()
    pairs = {name.lower(): value for name, value in values.items() if name not in known}
    return tuple(
        (_checked_name(name), _checked_value(name, value))
        for name, value in pairs.items()
        if value is not None and name not in known and name not in _RESERVED
    )


def pending_values(fields: Sequence[object]) -> Unknown:
    """Return what a pending entry has behind the fields of this release, for ``named``."""
    return tuple(
        (f"{_POSITION}{number}", _checked_value("a pending field", value))
        for number, value in enumerate(fields)
        if value is not None
    )


def named(values: Unknown, columns: Sequence[str]) -> Unknown:
    """Give values of a pending entry the names of the table's unknown ``columns``, which are in its order.

    Where the table has fewer, the first is ``systags`` and others keep the name of their position.
    """
    names = columns or (PENDING_COLUMN,)
    by_position = {f"{_POSITION}{number}": name for number, name in enumerate(names)}
    return tuple((by_position.get(name, name), value) for name, value in values)


def _checked_name(name: str) -> str:
    if not _COLUMN_NAME.fullmatch(name):
        raise InvalidValue(f"not the name of a column: {name!r}")
    return name


def _checked_value(name: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidValue(f"{name} is not UTF-8")
        return value
    if isinstance(value, float) or (isinstance(value, int) and -_INTEGER_MAX <= value <= _INTEGER_MAX):
        return value
    raise InvalidValue(f"{name} must be text or a number")


def completed(have: Unknown, other: Unknown) -> Unknown:
    """Return the values of ``have``, and those of ``other`` that it lacks; ``have`` if it lacks none."""
    names = {name for name, _ in have}
    missing = tuple(pair for pair in other if pair[0] not in names)
    return have + missing if missing else have


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """Return the names of a table's columns in their order, lower-case."""
    found = connection.execute("SELECT lower(name) FROM pragma_table_info(?)", (table,))
    return [name for (name,) in found]


def unknown_columns(connection: sqlite3.Connection, table: str, known: Iterable[str]) -> list[str]:
    """Return the columns that a table has beside ``known`` ones and its ROWID."""
    skipped = {*known, *_RESERVED}
    return [name for name in columns_of(connection, table) if name not in skipped]


def add_columns(connection: sqlite3.Connection, table: str, rows: Iterable[Unknown]) -> None:
    """Make the columns that values of rows need and the table lacks, with the types of the values."""
    wanted = {name: value for values in rows for name, value in values}
    for name in wanted.keys() - set(columns_of(connection, table)) if wanted else ():
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(name)} {_TYPES[type(wanted[name])]}")


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def column_list(names: Iterable[str]) -> str:
    """Return names as SQL, each behind a comma; empty for none."""
    return "".join(f", {quoted(name)}" for name in names)


def values_of(names: Sequence[str], values: Sequence[Scalar | None]) -> Unknown:
    """Return what the unknown columns of a stored row hold."""
    return tuple((name, value) for name, value in zip(names, values, strict=True) if value is not None)


# --- tables -------------------------------------------------------------------------------------------


def table_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of all tables but SQLite's own."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in found if not name.startswith("sqlite_")}


def has_unknown(connection: sqlite3.Connection, known: Mapping[str, frozenset[str]]) -> bool:
    """Return True if a database has tables, or columns of tables, that ``known`` does not name."""
    return any(
        name not in known or not known[name].issuperset(columns_of(connection, name))
        for name in table_names(connection)
    )


def schema_of(connection: sqlite3.Connection) -> list[str]:
    """Return the statements that make the tables, indexes, views and triggers of a database."""
    order = "CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END"
    found = connection.execute(
        f"SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!' "
        f"ORDER BY {order}, ROWID"
    )
    return [sql for (sql,) in found]


def rows_of(connection: sqlite3.Connection, table: str) -> list[tuple[Scalar | None, ...]]:
    """Return all rows of an unknown table."""
    return connection.execute(f"SELECT * FROM {quoted(table)}").fetchall()


def insert_rows(
    connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[Scalar | bytes | None]]
) -> None:
    """Add whole rows to a table of the same columns."""
    width = len(columns_of(connection, table))
    marks = ", ".join("?" * width)
    connection.executemany(f"INSERT OR IGNORE INTO {quoted(table)} VALUES ({marks})", rows)


def merge_tables(
    connection: sqlite3.Connection, source: sqlite3.Connection, known: Mapping[str, frozenset[str]]
) -> None:
    """Add the rows of the unknown tables of another file of the same database.

    A table that is missing is made. Rows are equal when all columns but an integer primary key are; where
    a constraint lets only one of two rows stay, that of ``connection`` stays.
    """
    have = table_names(connection)
    for table in sorted(table_names(source) - known.keys()):
        if table not in have:
            _make_like(connection, source, table)
        _merge_table(connection, source, table)


def _make_like(connection: sqlite3.Connection, source: sqlite3.Connection, table: str) -> None:
    order = "CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 ELSE 2 END"
    found = source.execute(
        f"SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY {order}, ROWID",
        (table,),
    )
    for (sql,) in found.fetchall():
        connection.execute(sql)


def _merge_table(connection: sqlite3.Connection, source: sqlite3.Connection, table: str) -> None:
    columns = [
        name
        for name, kind, key in source.execute(
            "SELECT name, upper(type), pk FROM pragma_table_info(?)", (table,)
        )
        if not (key and kind == "INTEGER")
    ]
    have = set(columns_of(connection, table))
    for name in (name for name in columns if name.lower() not in have):
        connection.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(name)}")
    if not columns:
        insert_rows(connection, table, rows_of(source, table))
        return
    names = ", ".join(map(quoted, columns))
    marks = ", ".join("?" * len(columns))
    same = " AND ".join(f"{quoted(name)} IS ?" for name in columns)
    connection.executemany(
        f"INSERT OR IGNORE INTO {quoted(table)} ({names}) SELECT {marks} "
        f"WHERE NOT EXISTS (SELECT 1 FROM {quoted(table)} WHERE {same})",
        [(*row, *row) for row in source.execute(f"SELECT {names} FROM {quoted(table)}")],
    )


def merge_single_row(
    connection: sqlite3.Connection, source: sqlite3.Connection, table: str, known: Iterable[str]
) -> None:
    """Take over the unknown columns of a table of one row where they are missing or NULL."""
    names = unknown_columns(source, table, known)
    if not names:
        return
    row = source.execute(f"SELECT {', '.join(map(quoted, names))} FROM {table}").fetchone()
    values = values_of(names, row or (None,) * len(names))
    add_columns(connection, table, [values])
    for name, value in values:
        connection.execute(f"UPDATE {table} SET {quoted(name)} = COALESCE({quoted(name)}, ?)", (value,))
