"""SQLite connections as account and container databases need them (spec: account-container.md §3).

A connection knows ``chexor``, which the triggers of every database call, and keeps a rollback journal with
full syncs (doc/decisions/0001-sqlite-journal-mode.md): a commit that returned is on the device, and between
commits the database file alone is the whole truth. A statement that finds the database locked is repeated
until a deadline; between attempts a green thread lets others run, which SQLite's own busy handler would
not. SQLite's errors become the types below by their codes;
texts are never matched.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from urllib.parse import quote

from swift.base.errors import LockTimeout, NoSpace, SwiftError
from swift.base.hashing import short_md5
from swift.green import pause
from swift.platform.regularfiles import IrregularFile, check_regular, is_device_error
from swift.platform.waiting import yielding

#: Seconds that a statement waits for another process's lock.
BUSY_TIMEOUT_S = 25.0
#: Page caches of the two connections of a database; the kernel's cache holds the rest. With half as much,
#: merging rows whose names are in no order costs a tenth more, a listing nothing.
WRITER_CACHE_KIB = 1024
READER_CACHE_KIB = 256

_FIRST_PAUSE_S = 0.001
_PAUSE_MAX_S = 0.05

Trace = Callable[[str], None]


class DatabaseError(SwiftError):
    """A database could not be used; ``path`` names it."""

    def __init__(self, path: str, reason: str):
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class DatabaseMissing(DatabaseError):
    """There is no database file, or not any more."""


class DatabaseBroken(DatabaseError):
    """The file is not a (whole) database; it belongs into quarantine.

    With ``is_proven`` False it must be read again first: ``db.verify.quarantine_broken`` does both.
    """

    def __init__(self, path: str, reason: str, *, is_proven: bool = True):
        super().__init__(path, reason)
        self.is_proven = is_proven


class DatabaseFailing(DatabaseError):
    """The device or this process failed; that says nothing about the content of the file.

    With ``is_device_error`` it counts against the device.
    """

    def __init__(self, path: str, reason: str, *, is_device_error: bool = False):
        super().__init__(path, reason)
        self.is_device_error = is_device_error


class DatabaseUnwritable(DatabaseError):
    """The filesystem refuses writes (read-only, permissions)."""


_BROKEN = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
_FAILING = frozenset((sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM))
_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
#: The file was emptied or replaced under an open connection: nothing else takes a table away.
_TABLE_GONE = "no such table: "
_UNWRITABLE = frozenset((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM))


def translate(error: sqlite3.Error, path: str) -> Exception:
    """Our error for one of SQLite's, by its primary code."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in _BROKEN or str(error).startswith(_TABLE_GONE):
        return DatabaseBroken(path, str(error), is_proven=False)
    if primary in _FAILING:
        return DatabaseFailing(path, str(error), is_device_error=primary == sqlite3.SQLITE_IOERR)
    if primary in _BUSY:
        return LockTimeout(path, BUSY_TIMEOUT_S)
    if primary == sqlite3.SQLITE_FULL:
        return NoSpace(f"{path}: {error}")
    if primary in _UNWRITABLE:
        return DatabaseUnwritable(path, str(error))
    return DatabaseError(path, str(error))


class Translating:
    """``with Translating(path):`` turns SQLite's errors in the block into ours."""

    __slots__ = ("path",)

    def __init__(self, path: str):
        self.path = path

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, sqlite3.Error):
            raise translate(error, self.path) from error


def chexor(old: str, name: str, text: str) -> str:
    """``old`` XOR MD5 of ``name-text``, as 32 hex digits: an order-free checksum of all rows (§3)."""
    if name is None:
        raise ValueError("a row without name has no checksum")
    digest = short_md5(f"{name}-{text}".encode("utf-8", "surrogateescape")).digest()
    return f"{int(old, 16) ^ int.from_bytes(digest):032x}"


def chexor_all(old: str, texts: Iterable[str]) -> str:
    """``chexor`` over many texts ``name-text``, of rows that come or go alike."""
    number, total = int.from_bytes, int(old, 16)
    for text in texts:
        total ^= number(short_md5(text.encode("utf-8", "surrogateescape")).digest())
    return f"{total:032x}"


class DatabaseConnection(sqlite3.Connection):
    """A connection whose statements wait ``wait_s`` for others' locks without blocking the event loop."""

    wait_s = 0.0

    def execute(  # type: ignore[override]
        self, sql: str, parameters: Sequence[object] | Mapping[str, object] = (), /
    ) -> sqlite3.Cursor:
        """Execute one statement; raises ``sqlite3.OperationalError`` (BUSY) after ``wait_s``."""
        try:
            return super().execute(sql, parameters)
        except sqlite3.OperationalError as error:
            if not self.wait_s or not _is_busy(error):
                raise
        deadline, rest_s = time.monotonic() + self.wait_s, _FIRST_PAUSE_S
        while True:
            with yielding():
                pause(rest_s)
            rest_s = min(2 * rest_s, _PAUSE_MAX_S)
            try:
                return super().execute(sql, parameters)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def connect(
    path: str, *, trace: Trace | None = None, create: bool = False, wait_s: float = BUSY_TIMEOUT_S
) -> DatabaseConnection:
    """Open a database file; raises ``DatabaseMissing``, ``DatabaseBroken`` and the others above.

    What is no regular file is broken; SQLite would wait for a FIFO.

    The connection is in autocommit mode: transactions are begun by name. It may be used by any thread,
    one at a time for writing. ``wait_s`` is how long a statement waits for others' locks.
    """
    if not create:
        _check_file(path)
    mode = "rwc" if create else "rw"
    uri = f"file:{quote(path)}?mode={mode}"
    try:
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=0.0,
            factory=DatabaseConnection,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
    except sqlite3.Error as error:
        if not create:
            # Only its absence proves that it is missing: a process without descriptors cannot open it either.
            _check_file(path)
        raise translate(error, path)
    connection.wait_s = wait_s
    connection.create_function("chexor", 3, chexor, deterministic=True)
    if trace is not None:
        connection.set_trace_callback(trace)
    return connection


def _check_file(path: str) -> None:
    """Raise ``DatabaseMissing``, ``DatabaseBroken`` or ``DatabaseFailing`` unless a regular file is there."""
    try:
        check_regular(os.lstat(path).st_mode, path)
    except (FileNotFoundError, NotADirectoryError):
        raise DatabaseMissing(path, "is not there")
    except IrregularFile as odd:
        raise DatabaseBroken(path, odd.strerror or "is no file")
    except OSError as error:
        raise DatabaseFailing(path, str(error), is_device_error=is_device_error(error))


def prepare(connection: sqlite3.Connection, path: str, cache_kib: int = WRITER_CACHE_KIB) -> None:
    """Set the pragmas of a working connection.

    The journal is truncated, not deleted, to end a transaction: then SQLite syncs that end (FULL), which it
    does not do for the removal of a file, and the commit is durable without syncing the directory.
    """
    with Translating(path):
        connection.execute("PRAGMA journal_mode=TRUNCATE")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA cache_size=-{cache_kib}")


class Transaction:
    """``with Transaction(connection, path):`` begins at once for writing, commits or rolls back.

    Raises the errors of ``translate``; a failed commit is rolled back and raised.
    """

    __slots__ = ("_connection", "_path")

    def __init__(self, connection: sqlite3.Connection, path: str):
        self._connection = connection
        self._path = path

    def __enter__(self) -> sqlite3.Connection:
        with Translating(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self._connection.execute("COMMIT")
                return
            except sqlite3.Error as failed:
                self._roll_back()
                raise translate(failed, self._path) from failed
        self._roll_back()
        if isinstance(error, sqlite3.Error):
            raise translate(error, self._path) from error

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                # SQLite rolled back by itself, or the connection is useless; the first error tells why.
                return
