"""The base of account and container brokers: files, pending rows, reads and writes of one hash directory.

A broker belongs to one process and one ``DatabasePath``. ``refresh`` looks at the directory, which every
request does first, because another process may have created, replaced or removed a file; only rows for a
broker that is ``fresh`` are put without, because putting them looks again. Rows become durable in the
pending file (one sync for all that arrive together) and are merged before anything is read. All writing of
one broker goes through one lane, so that its threads never wait for each other; other processes are kept out
by the directory's lock. Everything that touches the disk, looking and reading included, runs as the device's
``run`` says: where it is called while a process serves one quick device, else in threads (decision 0004).
A database that others have locked is waited for between such calls, not in them, so that it keeps neither the
event loop nor the threads of its device from other databases.

``Freshness`` is what a broker knows of its hash directory, and how sure it is of that.

===========  ====================================================  =========================================
state        what it means                                         what may be done
===========  ====================================================  =========================================
UNKNOWN      not checked yet, or the file disappeared               check before anything else
ABSENT       there was no database when last looked at             the same
OPENED       the files are open, but names came or went so lately  read and write; look before each request
             that another change might not show
FRESH        the directory has been at rest since the files were   rows may be put without looking, because
             opened                                                putting them looks again
===========  ====================================================  =========================================

Each check notes what it ``saw``, and opening notes which files; the state follows. ``has_pending`` is beside
it: None when there was no check since the last ``refresh``.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Self, TypeVar, Unpack

from swift.base.calls import Ts, run_inline
from swift.base.errors import InvalidValue, LockTimeout
from swift.db import files, pending
from swift.db.connection import BUSY_TIMEOUT_S, DatabaseMissing, Trace, translate
from swift.db.database import Database, Dialect, Replaced
from swift.db.files import DatabasePath
from swift.db.transaction import GroupCommit, Run
from swift.db.watch import Watch
from swift.green import Semaphore, pause
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.platform.waiting import yielding


class FileState(Enum):
    """See above."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    OPENED = "opened"
    FRESH = "fresh"


class Freshness:
    """Of one broker; decides without I/O. Names are the tuples of ``db.watch``, told apart as objects."""

    __slots__ = ("state", "has_pending", "opened")

    def __init__(self) -> None:
        self.state = FileState.UNKNOWN
        #: True if rows wait to be merged; None if unknown.
        self.has_pending: bool | None = None
        #: The names whose files are open; empty where some are not.
        self.opened: tuple[str, ...] = ()

    @property
    def is_fresh(self) -> bool:
        """True if rows may be put without a new check of the files."""
        return self.state is FileState.FRESH

    def saw(self, names: tuple[str, ...]) -> None:
        """Record the database files found; the identical tuple means an unchanged directory.

        The same object as before comes from a directory at rest.
        """
        if not names:
            self.state = FileState.ABSENT
        else:
            self.state = FileState.FRESH if names is self.opened else FileState.OPENED

    def learn_pending(self, has_pending: bool) -> None:
        """Record if rows are pending, unless this process put or merged rows since."""
        if self.has_pending is None:
            self.has_pending = has_pending

    def lost(self) -> None:
        """Record that the file to write to is missing."""
        self.state = FileState.UNKNOWN

    def closed(self) -> None:
        """Record that no file is open."""
        self.state, self.opened = FileState.UNKNOWN, ()

    def __repr__(self) -> str:
        pending = {None: "pending rows unknown", True: "rows pending", False: "nothing pending"}
        return f"<Freshness {self.state.value}, {pending[self.has_pending]}>"


T = TypeVar("T")
#: Rows of the main table.
_Rows = list[Any]

#: Attempts of an operation while other processes replace the file.
ATTEMPTS = 3
#: Seconds that one call waits for the locks of a database, and of the pause before it is made again.
CALL_WAIT_S = 0.1
RETRY_PAUSE_S = 0.05


#: The broker whose turn the running green thread has.
_turn_of: ContextVar[Broker | None] = ContextVar("turn_of", default=None)


def _silent(_message: str) -> None:
    """Ignore the message."""


@dataclass(frozen=True)
class Engine:
    """Dependencies of the brokers of one device."""

    disk: Disk = field(default_factory=Disk)
    run: Run = run_inline
    warn: Callable[[str], None] = _silent
    trace: Trace | None = None
    preallocate: bool = False
    #: Seconds to wait, in calls and between them, for others that write to a database.
    wait_s: float = BUSY_TIMEOUT_S

    @classmethod
    def at(
        cls,
        handle: DiskHandle,
        warn: Callable[[str], None],
        *,
        trace: Trace | None = None,
        preallocate: bool = False,
        wait_s: float = BUSY_TIMEOUT_S,
    ) -> Engine:
        """Return the engine of a device."""
        return cls(handle.disk, handle.run, warn, trace, preallocate, wait_s)


class _Change:
    """A transaction on its way through the lane."""

    __slots__ = ("work", "alone", "result", "error")

    def __init__(self, work: Callable[[sqlite3.Connection], object] | None, *, alone: bool = False):
        #: None: only merge what is pending.
        self.work = work
        #: Not in a transaction, but with the directory to itself.
        self.alone = alone
        self.result: object = None
        self.error: Exception | None = None


class Broker:
    """Subclasses set ``dialect`` and add what their tables mean."""

    dialect: Dialect

    def __init__(self, place: DatabasePath, engine: Engine, *names: str):
        self.place = place
        self.engine = engine
        #: Account, or account and container; none while they are not known.
        self.names = names
        self.databases: list[Database] = []
        self._pending = place.pending
        self._watch = Watch(engine.disk, place)
        self.freshness = Freshness()
        self._recent = pending.Recent()
        #: Of a directory at rest to which rows were put.
        self._kept: pending.KeptFiles | None = None
        #: Requests that are using it.
        self.holders = 0
        self._in_flight = 0
        self._lane = GroupCommit(self._commit, engine.run)
        #: Held by the one call, beside that of the lane, that may wait for the locks of others.
        self._turn = Semaphore(1)

    @classmethod
    def open_found(cls, place: DatabasePath, engine: Engine) -> Self | None:
        """Return the refreshed broker of a database on disk, None when there is none; close it.

        For daemons that do not know whose a database is. Raises OSError and the errors of ``db.connection``.
        """
        broker = cls(place, engine)
        if not broker.refresh():
            return None
        try:
            broker.names = broker.read(
                lambda connection: tuple(connection.execute(cls.dialect.names).fetchone()), merged=False
            )
        except BaseException:
            broker.close()
            raise
        return broker

    # --- files ------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Adopt the files in the directory; return True if there is a database.

        Raises OSError and, from opening a new file, the errors of ``db.connection``.
        """
        known, have = self.freshness, self.databases
        known.has_pending = None
        found, unchanged, has_pending = self._run(self._look, have, known.opened)
        known.learn_pending(has_pending)
        if have is not self.databases:
            # Another task adopted the new files; the next refresh checks for newer ones.
            return bool(self.databases)
        known.saw(found)
        if unchanged:
            known.opened = found
            return bool(have)
        if not found:
            self.databases = []
            return False
        self.databases = self._repeat(lambda: self._run_in_turn(self._adopt, found))
        # One that was gone before it could be opened is looked for again next time.
        known.opened = found if len(self.databases) == len(found) else ()
        return bool(self.databases)

    def _look(self, have: list[Database], opened: tuple[str, ...]) -> tuple[tuple[str, ...], bool, bool]:
        """Return the files found, if they are the open ones, and if rows are pending; changes nothing."""
        found = self._watch.databases()
        unchanged = (bool(found) and found is opened) or (
            len(found) == len(have)
            and all(
                database.path == path and database.is_current
                for database, path in zip(have, found, strict=True)
            )
        )
        return found, unchanged, bool(found) and files.has_pending(self.engine.disk, self.place)

    @property
    def exists(self) -> bool:
        """True if the last ``refresh`` found a database."""
        return bool(self.databases)

    @property
    def newest(self) -> Database:
        """The file that takes writes; raises ``DatabaseMissing``."""
        if not self.databases:
            raise DatabaseMissing(self.place.file(), "is not there")
        return self.databases[-1]

    @property
    def oldest(self) -> Database:
        """The file that is being split up, or the only one; raises ``DatabaseMissing``."""
        if not self.databases:
            raise DatabaseMissing(self.place.file(), "is not there")
        return self.databases[0]

    def _adopt(self, paths: Sequence[str]) -> list[Database]:
        """Open what is new; in a disk thread."""
        have = {database.path: database for database in self.databases if database.is_current}
        adopted = []
        for path in paths:
            database = have.get(path)
            if database is None:
                database = self._database(path)
                try:
                    database.open()
                except DatabaseMissing:
                    continue
            adopted.append(database)
        return adopted

    def _database(self, path: str) -> Database:
        engine = self.engine
        return Database(
            path,
            self.place,
            engine.disk,
            self.dialect,
            trace=engine.trace,
            preallocate=engine.preallocate,
            wait_s=self._call_wait_s,
        )

    @property
    def _call_wait_s(self) -> float:
        return min(CALL_WAIT_S, self.engine.wait_s)

    @property
    def is_busy(self) -> bool:
        """True if a request or a disk thread uses the broker, so that it must not be closed."""
        return self.holders > 0 or self._in_flight > 0 or not self._lane.is_idle

    @property
    def weight(self) -> int:
        """Bytes of memory that ``relax`` frees at most."""
        weight = self._recent.weight
        for database in self.databases:
            weight += database.weight
        return weight

    def relax(self) -> None:
        """Give back the memory of an idle broker that stays open."""
        self._close_kept()
        self._recent.forget()
        for database in self.databases:
            database.relax()

    def close(self) -> None:
        """Let go of the files of an idle broker."""
        databases, self.databases = self.databases, []
        self._close_kept()
        self.freshness.closed()
        self._recent.forget()
        for database in databases:
            database.close()

    def _run(self, function: Callable[..., T], *args: object) -> T:
        self._in_flight += 1
        try:
            return self.engine.run(function, *args)
        finally:
            self._in_flight -= 1

    def _run_in_turn(self, function: Callable[..., T], *args: object) -> T:
        if _turn_of.get() is self:
            # A question that asks another one.
            return self._run(function, *args)
        with self._used(), self._turn:
            token = _turn_of.set(self)
            try:
                return self._run(function, *args)
            finally:
                _turn_of.reset(token)

    def make_file(self, build: Callable[[sqlite3.Connection], None], *, epoch: str | None = None) -> bool:
        """Make a database file and ``refresh``; False when one of that epoch was there already."""
        create = partial(files.create, epoch=epoch, trace=self.engine.trace)
        made = self.call(create, self.place, build)
        self.refresh()
        return made

    def call(self, work: Callable[[Disk, Unpack[Ts]], T], *args: *Ts) -> T:
        """Run a function of the disk where this broker's own calls run."""
        return self._run(work, self.engine.disk, *args)

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Keep the broker from being closed in the block."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    # --- rows -------------------------------------------------------------------------------------

    def put_rows(self, rows: Sequence[object]) -> None:
        """Store rows of the main table; they are durable when this returns.

        Values of unknown columns have no place in pending entries: ``merge_rows`` keeps those.
        """
        self._repeat(lambda: self._lane.submit(rows))
        self.freshness.has_pending = True

    def _commit(self, items: list[object]) -> None:
        """Store a batch of rows and run the changes that came with them; in a disk thread."""
        disk = self.engine.disk
        rows = [item for item in items if not isinstance(item, _Change)]
        try:
            if len(rows) == len(items) and self._append_to_kept(rows):
                return
            lock = files.lock(disk, self.place, self._call_wait_s)
            try:
                if rows:
                    self._append(rows)
                if len(rows) < len(items):
                    for item in items:
                        if isinstance(item, _Change):
                            self._run_change(item)
            finally:
                disk.close(lock)
        except (FileNotFoundError, DatabaseMissing):
            self.freshness.lost()
            raise DatabaseMissing(self.place.file(), "is not there")

    def _append_to_kept(self, rows: _Rows) -> bool:
        """Add a batch through the open files; return False unless they are those of the directory."""
        # Only this call has them meanwhile: the broker may be closed under a commit that was abandoned.
        kept, self._kept = self._kept, None
        if kept is None:
            return False
        try:
            with kept.locked(self._call_wait_s):
                is_current = self._watch.databases() is kept.names
                if is_current:
                    self.freshness.saw(kept.names)
                    self._append_by(kept.append, rows)
        except BaseException:
            kept.close()
            raise
        if is_current:
            self._kept = kept
        else:
            kept.close()
        return is_current

    def _close_kept(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _append(self, rows: _Rows) -> None:
        """Add a batch to the pending file, which must not outlive the database."""
        disk = self.engine.disk
        found = self._watch.databases()
        if not found:
            raise DatabaseMissing(self.place.file(), "is not there")
        self.freshness.saw(found)
        self._append_by(partial(pending.append, disk, self._pending), rows)
        if self._watch.is_at_rest:
            # Rows are stored by now, whatever becomes of this.
            with suppress(OSError):
                self._kept = pending.KeptFiles(disk, self.place, found)

    def _append_by(self, append: Callable[[bytes], int], rows: _Rows) -> None:
        width = self.dialect.pending_fields
        data = b"".join(pending.encode(row[:width]) for row in rows)
        start = append(data)
        self._recent.add(start, data, rows)
        if start + len(data) > pending.MERGE_AT_BYTES:
            self._merge_big(self._pending)

    def _run_change(self, change: _Change) -> None:
        """Run one; its failure is its own."""
        try:
            change.result = self._work_alone(change.work) if change.alone else self._merge_locked(change.work)
        except Exception as error:
            change.error = error

    def _work_alone(self, work: Callable[[sqlite3.Connection], object] | None) -> object:
        database = self.newest
        if not database.is_current:
            raise Replaced(database.path)
        self._merge_locked(None)
        return None if work is None else database.query_locked(work)

    def _merge_big(self, path: str) -> None:
        try:
            self._merge_locked(None)
        except Replaced:
            # The rows are durable; the next opener of the new file merges them.
            self.engine.warn(
                f"{path}: pending rows are left for the next opener, because the database was replaced"
            )
        except LockTimeout:
            # The rows are durable, and the next batch or read merges them.
            return

    def _merge_locked(self, change: Callable[[sqlite3.Connection], T] | None) -> T | None:
        """Merge what is pending and apply ``change`` in one transaction, then empty the file."""
        disk, path = self.engine.disk, self._pending
        rows, data = self._recent.split(pending.read(disk, path))
        rows = rows + self._decoded(data)
        if not rows and change is None:
            return None

        def work(connection: sqlite3.Connection) -> T | None:
            if rows:
                self.dialect.merge_rows(connection, rows)
            return None if change is None else change(connection)

        result = self.newest.write_locked(work)
        if rows:
            pending.clear(disk, path)
            self._recent.forget()
        return result

    def _decoded(self, data: bytes) -> list[object]:
        rows = []
        for entry in pending.entries(data, self._refuse):
            try:
                rows.append(self.dialect.row_of_pending(entry))
            except InvalidValue as error:
                self._refuse(f"invalid pending entry: {error}")
        return rows

    def _refuse(self, reason: str) -> None:
        self.engine.warn(f"{self._pending}: {reason}")

    # --- reading and writing ----------------------------------------------------------------------

    def merge_pending(self) -> None:
        """Bring the tables up to date with the pending file."""
        known = self.freshness
        if known.has_pending is None:
            known.learn_pending(self._run(files.has_pending, self.engine.disk, self.place))
        if known.has_pending:
            self._repeat(lambda: self._change(None))

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``change`` in a durable transaction on the newest file, pending rows merged before it.

        What it raises rolls everything back and is raised here.
        """
        return self._repeat(lambda: self._change(change))

    def alone(self, work: Callable[[sqlite3.Connection, Disk], T]) -> T:
        """Run ``work`` in a disk thread while the hash directory is locked.

        Pending rows are merged before. It is no transaction: ``work`` gets a connection to read the newest
        file and may replace or remove that file; call ``refresh`` afterwards.
        """
        disk = self.engine.disk
        return self._repeat(lambda: self._change(lambda have: work(have, disk), alone=True))

    def _change(self, work: Callable[[sqlite3.Connection], Any] | None, *, alone: bool = False) -> Any:
        change = _Change(work, alone=alone)
        self.freshness.has_pending = False
        try:
            self._lane.submit([change])
        except BaseException:
            self.freshness.has_pending = True
            raise
        if change.error is not None:
            self.freshness.has_pending = True
            raise change.error
        return change.result

    def _repeat(self, attempt: Callable[[], T]) -> T:
        """Make an attempt again when the file was replaced under it, and while others have it locked."""
        replaced, deadline = 0, 0.0
        while True:
            try:
                return attempt()
            except Replaced:
                replaced += 1
                if replaced == ATTEMPTS:
                    raise
                if not self.refresh():
                    raise DatabaseMissing(self.place.file(), "was removed")
            except LockTimeout:
                now = time.monotonic()
                deadline = deadline or now + self.engine.wait_s
                if now >= deadline:
                    raise
                with self._used(), yielding():
                    pause(RETRY_PAUSE_S)

    def read(
        self,
        question: Callable[[sqlite3.Connection], T],
        *,
        database: Database | None = None,
        merged: bool = True,
    ) -> T:
        """Ask the newest file (or another of ``databases``).

        Pending rows are merged before, unless ``merged`` is false: for questions not about rows.
        """
        if merged:
            self.merge_pending()
        asked = database or self.newest
        try:
            return self._run(asked.ask, question)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise translate(error, asked.path) from error
        return self._repeat(lambda: self._run_in_turn((database or self.newest).read_with_retry, question))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.place.name_hash} {self.databases}>"
