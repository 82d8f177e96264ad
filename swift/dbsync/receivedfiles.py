"""Whole databases that arrive from another node (spec: account-container.md §13).

A file arrives as ``<device>/tmp/<id of the sender's database>``, by rsync or by an upload. It is checked,
brought up to our schema, given an identity of its own, synced, and only then given its name: what has a name
in a hash directory is whole.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing

from swift.base.errors import InvalidValue
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.db import files
from swift.db.connection import DatabaseBroken, DatabaseMissing, Transaction, Translating, connect
from swift.db.files import DatabasePath
from swift.db.schema import facts_of, migrate
from swift.dbsync.replica import Replica
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.platform.durable import UnnamedFile, make_directories, open_temporary, write_all
from swift.platform.syncing import sync_directory

#: Rows merged per transaction.
BATCH = 1000

#: The name hash of the account or container that a file says it is of.
HashOf = Callable[[tuple[str, ...]], str]


class ReceivedFiles:
    """Received files on the device of one database."""

    def __init__(self, disk: DiskHandle, place: DatabasePath):
        self._disk = disk
        self._place = place
        self.directory = f"{place.device_path}/tmp"

    def prepare(self) -> None:
        """Make the directory, into which rsync writes; raises OSError."""
        self._disk.call(self._prepare)

    def _prepare(self, disk: Disk) -> None:
        make_directories(disk, self.directory, below=self._place.device_path)

    def path(self, remote_id: str) -> str:
        """Return the path of a sender's received file."""
        return f"{self.directory}/{remote_id}"

    def has(self, remote_id: str) -> bool:
        """Return True if a file of that sender has arrived."""
        try:
            self._disk.stat(self.path(remote_id))
        except FileNotFoundError:
            return False
        return True

    def upload(self, remote_id: str) -> DatabaseUpload:
        """Return a file that becomes the arrival of that sender when it is finished; raises OSError."""
        self.prepare()
        return DatabaseUpload(
            self._disk, self._disk.call(open_temporary, self.directory), self.path(remote_id)
        )

    def open(self, replica: Replica, remote_id: str, hash_of: HashOf) -> ReceivedDatabase:
        """Open what arrived; see ``ReceivedDatabase``."""
        return self._disk.call(ReceivedDatabase, self.path(remote_id), replica, self._place, hash_of)

    def catch_up(self, received: ReceivedDatabase, path: str) -> None:
        """Bring an open arrival nearer to the database at ``path``, which others may go on changing."""
        self._disk.call(received.catch_up, path)

    def install(self, replica: Replica, remote_id: str, file_name: str | None, hash_of: HashOf) -> bool:
        """Make the arrived file the database of this place; False when there is one, or nothing arrived.

        A file that comes too late is removed: the sender merges its rows.

        Raises ``InvalidValue`` for a bad name, the errors of ``db.connection`` and OSError.
        """
        epoch = epoch_in(self._place, file_name)
        if not self.has(remote_id):
            return False
        return self._disk.call(self._install, replica, remote_id, epoch, hash_of)

    def _install(
        self, disk: Disk, replica: Replica, remote_id: str, epoch: str | None, hash_of: HashOf
    ) -> bool:
        place = self._place
        if files.database_files(disk, place):
            files.remove_if_there(disk, self.path(remote_id))
            return False
        received = ReceivedDatabase(disk, self.path(remote_id), replica, place, hash_of)
        try:
            received.renew(remote_id)
        finally:
            received.close()
        files.sync_file(disk, received.path)
        unsynced = files.make_place(disk, place)
        installed = files.install(disk, place, received.path, epoch=epoch)
        for parent in unsynced:
            sync_directory(disk, parent)
        return installed


class DatabaseUpload:
    """A database file on its way; only a whole one gets its name."""

    def __init__(self, disk: DiskHandle, file: UnnamedFile, path: str):
        self._disk = disk
        self._path = path
        self._file = file

    def write(self, piece: bytes) -> None:
        """Add bytes; raises OSError."""
        self._disk.call(write_all, self._file.fd, piece)

    def finish(self) -> None:
        """Name the file without a sync: the code that adopts it syncs it. Raises OSError."""
        assert self._file.temporary is not None
        self._disk.rename(self._file.temporary, self._path)
        self._file.temporary = None

    def discard(self) -> None:
        """Close, and leave nothing behind unless it was finished."""
        self._file.discard()


class ReceivedDatabase:
    """An arrived file, open, checked and migrated; one that is no such database is removed. Its calls block.

    Raises ``DatabaseBroken`` and the other errors of ``db.connection``.
    """

    def __init__(self, disk: Disk, path: str, replica: Replica, place: DatabasePath, hash_of: HashOf):
        self.path = path
        self._disk = disk
        self._replica = replica
        self._place = place
        self._point = -1
        self._connection = connect(path)
        try:
            self._prepare(hash_of)
        except BaseException as error:
            self._connection.close()
            if isinstance(error, DatabaseBroken):
                files.remove_if_there(disk, path)
            raise

    def _prepare(self, hash_of: HashOf) -> None:
        connection, dialect = self._connection, self._replica.broker.dialect
        with Translating(self.path):
            connection.execute("PRAGMA journal_mode=MEMORY")
            # The whole file is synced at the end.
            connection.execute("PRAGMA synchronous=OFF")
            tables = facts_of(connection).tables
            if not all(names & tables.keys() for names in dialect.required):
                raise DatabaseBroken(self.path, f"is not a database of {dialect.kind}s")
            # A truncated file, or one copied during a write, must not get a name.
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise DatabaseBroken(self.path, problem)
            migrate(connection, self.path, dialect.migrations)
            dialect.check_names(connection, self.path)
            if hash_of(self._replica.names(connection)) != self._place.name_hash:
                raise DatabaseBroken(self.path, f"is of another {dialect.kind}")

    def renew(self, remote_id: str) -> None:
        """Give the database an identity of its own."""
        with Transaction(self._connection, self.path) as connection:
            self._replica.renew_identity(connection, remote_id, self._place.device)

    def catch_up(self, _disk: Disk, path: str) -> None:
        """Merge the rows that the database at ``path`` has by now, while others may go on changing it."""
        with closing(connect(path)) as have, Translating(path):
            self._merge_rows(have)

    def _merge_rows(self, have: sqlite3.Connection) -> None:
        while items := self._replica.rows.items_since(have, self._point, BATCH):
            with Transaction(self._connection, self.path) as connection:
                self._replica.merge_items(connection, items, None)
            self._point = items[-1]["ROWID"]

    def replace(self, have: sqlite3.Connection, target: str, remote_id: str, now: Timestamp) -> None:
        """Merge all that ``have`` still knows better and take its place; the directory is locked.

        Raises ``DatabaseMissing`` when ``target`` is not the only database there any more.
        """
        if files.database_files(self._disk, self._place) != (target,):
            raise DatabaseMissing(target, "has several database files")
        self._merge_rows(have)
        with Transaction(self._connection, self.path) as connection:
            self._replica.absorb(connection, have, now)
            self._replica.renew_identity(connection, remote_id, self._place.device)
        self._connection.close()
        files.sync_file(self._disk, self.path)
        self._disk.rename(self.path, target)
        sync_directory(self._disk, self._place.directory)

    def close(self) -> None:
        """Close the connection; the file stays."""
        self._connection.close()


def epoch_in(place: DatabasePath, file_name: str | None) -> str | None:
    """Return the epoch of a database file name; raises ``InvalidValue`` for one that does not belong here."""
    if file_name is None or file_name == f"{place.name_hash}.db":
        return None
    epoch = place.epoch_of(file_name) if isinstance(file_name, str) else None
    try:
        if epoch and file_name == f"{place.name_hash}_{epoch}.db" and Timestamp(epoch):
            return epoch
    except InvalidTimestamp:
        pass
    raise InvalidValue("not the name of a database file of this place")


def snapshot(disk: Disk, place: DatabasePath, path: str) -> str:
    """Return a consistent copy of the database at ``path`` in the device's temporary directory; its path.

    Writers wait while it is made, at the pace of the device. Raises OSError and ``db.connection``'s errors.
    """
    arrivals = ReceivedFiles(DiskHandle(disk), place)
    arrivals.prepare()
    copy = arrivals.path(f"{secrets.token_hex(8)}.tmp")
    try:
        with (
            closing(connect(path)) as source,
            closing(connect(copy, create=True)) as target,
            Translating(path),
        ):
            target.execute("PRAGMA journal_mode=OFF")
            target.execute("PRAGMA synchronous=OFF")
            source.backup(target)
    except BaseException:
        files.remove_if_there(disk, copy)
        raise
    return copy
