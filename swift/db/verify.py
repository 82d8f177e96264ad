"""Verification of a database file: its pages are readable, and its totals match its rows.

A small file is checked in one go. A large one would keep writers waiting for too long, since a reader of a
rollback-journal database locks them out: its table and index are read to the end in pieces, between which
any process can write. What the tables mean is the caller's; it names the main table and asks for totals
itself.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Any

from swift.base.errors import SwiftError
from swift.db import files
from swift.db.broker import Broker
from swift.db.connection import DatabaseBroken, Translating, connect
from swift.db.files import DatabasePath
from swift.db.transaction import Run
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle

#: Files up to this size are checked in one go: about a tenth of a second.
WHOLE_BYTES_MAX = 32 << 20
#: Rows (or index entries) read at once of larger ones.
PIECE_ROWS = 5000

#: Asks for sentences about totals that are not what the rows say, in one transaction for reading.
Totals = Callable[[sqlite3.Connection], list[str]]


def verify_files(
    broker: Broker, table: str, totals: Totals, *, whole_bytes_max: int = WHOLE_BYTES_MAX
) -> list[str]:
    """Read the files of a refreshed broker to their ends; see ``verify``."""
    found = []
    for database in broker.databases:
        found += verify(database.path, table, totals, broker.engine.run, whole_bytes_max=whole_bytes_max)
    return found


def verify(
    path: str, table: str, totals: Totals, run: Run, *, whole_bytes_max: int = WHOLE_BYTES_MAX
) -> list[str]:
    """Read a database file to the end through ``run``; the sentences of ``totals`` about a small one.

    Raises ``DatabaseBroken`` when it is damaged, and the other errors of ``db.connection``.
    """
    connection = run(connect, path)
    try:
        if os.path.getsize(path) <= whole_bytes_max:
            return run(_whole, connection, path, totals)
        _in_pieces(connection, path, table, run)
        return []
    except FileNotFoundError:
        # Removed meanwhile: nothing is left that could be damaged.
        return []
    finally:
        connection.close()


def quarantine_broken(disk: Disk, place: DatabasePath, error: DatabaseBroken) -> str | None:
    """Move a broken database to the quarantine; its new path, None when it is sound on a second reading.

    Raises ``LockTimeout``, ``DatabaseError`` when it cannot be read again, and
    OSError: then nothing was moved.
    """
    if not error.is_proven and not is_broken(error.path):
        return None
    return files.quarantine(disk, place, error.reason)


def quarantine_and_log(
    disk: DiskHandle,
    place: DatabasePath,
    error: DatabaseBroken,
    *,
    tell: Callable[[str], object],
    note: Callable[[Exception], object],
) -> bool:
    """Quarantine a broken database and tell what became of it; True if it was moved.

    ``note`` counts an error of the device that prevents it.
    """
    try:
        moved = disk.call(quarantine_broken, place, error)
    except (SwiftError, OSError) as failure:
        note(failure)
        tell(f"{error}; cannot be quarantined: {failure}")
        return False
    tell(
        f"{error}; valid when read again, so it was not quarantined"
        if moved is None
        else f"{error}; quarantined to {moved}"
    )
    return moved is not None


def is_broken(path: str) -> bool:
    """Read a whole database through a new connection; return True if SQLite finds it damaged.

    Raises ``DatabaseMissing``, ``DatabaseFailing`` and ``LockTimeout``.
    """
    try:
        connection = connect(path)
        try:
            with Translating(path):
                return connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",)
        finally:
            connection.close()
    except DatabaseBroken:
        return True


def _whole(connection: sqlite3.Connection, path: str, totals: Totals) -> list[str]:
    with Translating(path):
        connection.execute("BEGIN")
        verdict = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
        if verdict != ["ok"]:
            raise DatabaseBroken(path, "; ".join(verdict), is_proven=False)
        found = totals(connection)
        connection.execute("COMMIT")
        return found


def _in_pieces(connection: sqlite3.Connection, path: str, table: str, run: Run) -> None:
    """Visit every row and every index entry; SQLite notices damaged pages on the way."""
    last_row, key = 0, (-1, "")
    # Every column is asked for, so that pages that only hold the end of a long row are read too.
    rows = (
        f"SELECT max(ROWID), total(length(name) + ifnull(storage_policy_index, 0)) FROM "
        f"(SELECT ROWID, * FROM {table} WHERE ROWID > ? ORDER BY ROWID LIMIT {PIECE_ROWS})"
    )
    while last_row is not None:
        last_row = run(_ask, connection, path, rows, (last_row,))[0]
    entries = (
        f"SELECT deleted, name FROM {table} WHERE (deleted, name) > (?, ?) "
        f"ORDER BY deleted, name LIMIT 1 OFFSET {PIECE_ROWS - 1}"
    )
    while key is not None:
        key = run(_ask, connection, path, entries, key)


def _ask(connection: sqlite3.Connection, path: str, sql: str, parameters: tuple[object, ...]) -> Any:
    with Translating(path):
        return connection.execute(sql, parameters).fetchone()


def differences(
    what: str, stored: dict[object, tuple[object, ...]], counted: dict[object, tuple[object, ...]]
) -> list[str]:
    """Return a sentence for every key whose stored totals are not the counted ones; absent is all zero."""
    found = []
    for key in sorted({*stored, *counted}, key=str):
        width = len(stored.get(key) or counted[key])
        have, true = stored.get(key, (0,) * width), counted.get(key, (0,) * width)
        if tuple(value or 0 for value in have) != tuple(value or 0 for value in true):
            found.append(f"{what} {key} counts {have}, its rows say {true}")
    return found
