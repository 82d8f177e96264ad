"""One database file open in this process.

A ``Database`` keeps one connection for reading, used where the caller runs and never waiting, and one for
writing, made when first needed and used only in a disk thread under the lock of the hash directory. The
file may be replaced or removed by another process at any time: ``is_current`` compares the inode, and a
write checks it again under the lock. It refuses to know what the tables mean; the ``Dialect`` does.

Files are preallocated, so that they grow in few pieces (account-container.md §3). That descriptor stays
open as long as the database does: closing it would drop SQLite's locks on the file.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from swift.base.errors import NoSpace
from swift.db.connection import (
    BUSY_TIMEOUT_S,
    READER_CACHE_KIB,
    WRITER_CACHE_KIB,
    DatabaseBroken,
    DatabaseConnection,
    DatabaseError,
    DatabaseMissing,
    Trace,
    Transaction,
    Translating,
    connect,
    prepare,
)
from swift.db.files import DatabasePath, locked
from swift.db.schema import Migration, facts_of, migrate
from swift.platform.devices import NO_SPACE_ERRORS
from swift.platform.disk import UNSUPPORTED, Disk
from swift.platform.regularfiles import IrregularFile, check_regular, open_regular

_MB = 1_000_000
_STEPS = (1 * _MB, 2 * _MB, 5 * _MB, 10 * _MB, 25 * _MB, 50 * _MB)
#: So close to the end of what is allocated the next step is taken, bytes.
_MARGIN = _MB // 2


def target_size(size_bytes: int) -> int:
    """Return the size to allocate for a file of this size: the next of 1, 2, 5, 10, 25, 50, 100, 150...

    MB. MB.
    """
    for step in _STEPS:
        if size_bytes < step - _MARGIN:
            return step
    whole = _STEPS[-1]
    return ((size_bytes + _MARGIN) // whole + 1) * whole


class Preallocator:
    """Keeps one file allocated ahead of its size."""

    def __init__(self, disk: Disk, path: str):
        self._disk = disk
        self._fd = open_regular(disk, path, os.O_RDWR)
        self._allocated = 0

    def grow(self) -> None:
        """Allocate the next step when the file comes near; raises ``NoSpace`` or OSError."""
        wanted = target_size(self._disk.fstat(self._fd).st_size)
        if wanted <= self._allocated:
            return
        try:
            self._disk.preallocate(self._fd, wanted)
        except OSError as error:
            if error.errno in NO_SPACE_ERRORS:
                raise NoSpace(f"no room for a database of {wanted} bytes")
            if error.errno not in UNSUPPORTED:
                raise
        self._allocated = wanted

    def close(self) -> None:
        """Only when every connection of this process to the file is closed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._disk.close(fd)


_Result = TypeVar("_Result")


class Replaced(DatabaseError):
    """The file at this path is not the one that was opened; open it again and repeat."""

    def __init__(self, path: str):
        super().__init__(path, "was replaced by another process")


#: Memory of a connection's schema and the smallest page cache (20 pages), bytes.
SCHEMA_BYTES = 64 << 10
_CACHE_MIN_BYTES = 88 << 10


def _cache_weight(size_bytes: int, cache_kib: int) -> int:
    """Return the largest page cache of ``cache_kib`` for a file of this size, bytes."""
    return max(_CACHE_MIN_BYTES, min(size_bytes, cache_kib << 10))


@dataclass(frozen=True)
class Dialect:
    """Differences between account and container databases."""

    kind: str
    #: Each of these names a table (or what an older schema called it) that a database cannot lack.
    required: tuple[frozenset[str], ...]
    migrations: tuple[Migration, ...]
    #: Reads the names of a database.
    names: str
    #: Merges rows into the main table inside the caller's transaction.
    merge_rows: Callable[[sqlite3.Connection, Sequence[Any]], None]
    #: A row, which is a tuple with names, from a pending tuple; raises InvalidValue.
    row_of_pending: Callable[[tuple[object, ...]], object]
    #: The number of fields in a pending tuple; OpenStack Swift reads no other number.
    pending_fields: int

    def check_names(self, connection: sqlite3.Connection, path: str) -> None:
        """Raise ``DatabaseBroken`` unless a database holds its names."""
        row = connection.execute(self.names).fetchone()
        if row is None or not all(isinstance(name, str) and name for name in row):
            raise DatabaseBroken(path, "has no account or container name")


class Database:
    """Call ``open`` first; every method may raise the errors of ``db.connection``."""

    def __init__(
        self,
        path: str,
        place: DatabasePath,
        disk: Disk,
        dialect: Dialect,
        *,
        trace: Trace | None = None,
        preallocate: bool = False,
        wait_s: float = BUSY_TIMEOUT_S,
    ):
        self._wait_s = wait_s
        self.path = path
        self.place = place
        self.dialect = dialect
        self._disk = disk
        self._trace = trace
        self._preallocate = preallocate
        self._preallocator: Preallocator | None = None
        self._reader: DatabaseConnection | None = None
        #: One thread at a time reads: Python looks up the error of a statement in its connection, so another
        #: thread's success would turn "locked" into "no rows".
        self._reading = threading.RLock()
        self._writer: DatabaseConnection | None = None
        self._inode: tuple[int, int] = (0, 0)
        self._size_bytes = 0
        #: Bytes that ``relax`` may free: of page caches as much as the file can fill.
        self.weight = 0

    @property
    def reader(self) -> DatabaseConnection:
        """The connection for reading, which answers BUSY at once; ``DatabaseMissing`` when closed."""
        if self._reader is None:
            raise DatabaseMissing(self.path, "is closed")
        return self._reader

    def open(self) -> None:
        """Connect and bring the schema up to date; call in a disk thread."""
        try:
            with locked(self._disk, self.place, self._wait_s):
                inode = self._look()
                # It waits for others while it is opened, and never again.
                reader = connect(self.path, trace=self._trace, wait_s=self._wait_s)
                try:
                    self._check_content(reader)
                    prepare(reader, self.path, READER_CACHE_KIB)
                    migrate(reader, self.path, self.dialect.migrations)
                    with Translating(self.path):
                        self.dialect.check_names(reader, self.path)
                    reader.wait_s = 0.0
                except BaseException:
                    reader.close()
                    raise
        except FileNotFoundError:
            raise DatabaseMissing(self.path, "is not there")
        self._reader, self._inode = reader, inode
        self._weigh()
        if self._preallocate:
            self._preallocator = Preallocator(self._disk, self.path)

    def _check_content(self, connection: sqlite3.Connection) -> None:
        """Refuse what is no database of this kind; an empty file is removed, because it never was one."""
        with Translating(self.path):
            tables = facts_of(connection).tables
        if all(names & tables.keys() for names in self.dialect.required):
            return
        if self._disk.stat(self.path).st_size == 0:
            self._disk.unlink(self.path)
            raise DatabaseMissing(self.path, "was empty")
        raise DatabaseBroken(self.path, f"is not a database of {self.dialect.kind}s")

    @property
    def is_open(self) -> bool:
        """True if ``open`` succeeded and ``close`` was not called."""
        return self._reader is not None

    @property
    def is_current(self) -> bool:
        """True if the path still names the file that was opened."""
        try:
            return self.is_open and self._look() == self._inode
        except (DatabaseMissing, DatabaseBroken):
            return False

    def _look(self) -> tuple[int, int]:
        try:
            status = self._disk.stat(self.path, follow_symlinks=False)
            check_regular(status.st_mode, self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise DatabaseMissing(self.path, "is not there")
        except IrregularFile as odd:
            raise DatabaseBroken(self.path, odd.strerror or "is no file")
        self._size_bytes = status.st_size
        return status.st_dev, status.st_ino

    def write_locked(self, change: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run ``change`` in a durable transaction and return its result.

        The caller holds the directory's lock in a disk thread. Raises ``Replaced`` when the file is
        another one by now: nothing was written then.
        """
        if not self.is_current:
            raise Replaced(self.path)
        writer = self._writer or self._open_writer()
        self._weigh()
        if self._preallocator is not None:
            self._preallocator.grow()
        with Transaction(writer, self.path) as connection:
            return change(connection)

    def ask(self, question: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run a read; raises ``sqlite3.Error``, BUSY at once when others have the file locked."""
        with self._reading:
            return question(self.reader)

    def read_with_retry(self, question: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run a read that found the file locked again, waiting for it; call in a disk thread."""
        with locked(self._disk, self.place, self._wait_s):
            return self.query_locked(question)

    def query_locked(self, question: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run a read in a disk thread whose caller holds the directory's lock; may raise ``Replaced``."""
        if self._writer is None and not self.is_current:
            raise Replaced(self.path)
        writer = self._writer or self._open_writer()
        with Translating(self.path):
            return question(writer)

    def _open_writer(self) -> DatabaseConnection:
        """Connect for writing to what is known to be the current file, under the directory's lock."""
        writer = connect(self.path, trace=self._trace, wait_s=self._wait_s)
        try:
            prepare(writer, self.path)
        except BaseException:
            writer.close()
            raise
        self._writer = writer
        self._weigh()
        return writer

    def _weigh(self) -> None:
        """Anew; after what may change it."""
        weight = 0 if self._reader is None else _cache_weight(self._size_bytes, READER_CACHE_KIB)
        if self._writer is not None:
            weight += SCHEMA_BYTES + _cache_weight(self._size_bytes, WRITER_CACHE_KIB)
        self.weight = weight

    def relax(self) -> None:
        """Give back what only makes it quicker; reading goes on at once."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._reader is not None:
            self._reader.execute("PRAGMA shrink_memory")
        self._weigh()

    def close(self) -> None:
        """Close both connections."""
        connections, self._reader, self._writer = (self._writer, self._reader), None, None
        self._weigh()
        for connection in connections:
            if connection is not None:
                connection.close()
        if self._preallocator is not None:
            self._preallocator.close()
            self._preallocator = None

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        return f"<Database {os.path.basename(self.path)} {self.dialect.kind} {state}>"
