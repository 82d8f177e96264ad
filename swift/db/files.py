"""Database files: location, creation and removal (spec: account-container.md §1, §3).

A ``DatabasePath`` is the hash directory of one account or container; it may hold several database files (a
sharding container has one per epoch). Everything that adds, replaces or removes a file does it under the
directory's lock, the same that the peer takes. SQLite files must not be opened here by other means while a
connection may be open: closing such a descriptor would drop the locks of this process.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.db.connection import DatabaseMissing, Trace, Translating, connect
from swift.platform.disk import Disk
from swift.platform.durable import make_directories
from swift.platform.locks import LOCK_TIMEOUT_S, file_lock, lock_file
from swift.platform.quarantine import move_to_quarantine
from swift.platform.regularfiles import is_blocking, open_regular
from swift.platform.syncing import sync_directory

#: Attempts to create a database in a directory that others remove while it is empty.
_CREATE_TRIES = 5
#: Files that SQLite keeps beside a database and that mean nothing without it.
SIDE_FILES = ("-wal", "-shm", "-journal")


class DatabasePath(NamedTuple):
    """The hash directory of a database; ``kind`` is ``accounts`` or ``containers``."""

    device_path: str
    kind: str
    partition: str
    name_hash: str

    @classmethod
    def of_file(cls, path: str) -> DatabasePath:
        """Return the place of a file in a hash directory."""
        directory = os.path.dirname(path)
        head, partition, _suffix, name_hash = directory.rsplit("/", 3)
        device_path, kind = head.rsplit("/", 1)
        return cls(device_path, kind, partition, name_hash)

    @property
    def directory(self) -> str:
        """``<device>/<kind>/<partition>/<suffix>/<hash>``."""
        return f"{self.device_path}/{self.kind}/{self.partition}/{self.name_hash[-3:]}/{self.name_hash}"

    @property
    def device(self) -> str:
        """The device's name."""
        return os.path.basename(self.device_path)

    @property
    def pending(self) -> str:
        """The file of rows that the peer has not merged; one for all epochs."""
        return f"{self.directory}/{self.name_hash}.db.pending"

    @property
    def lock(self) -> str:
        """The file whose lock is that of the hash directory."""
        return f"{self.directory}/.lock"

    def file(self, epoch: str | None = None) -> str:
        """Return the path of the database file of an epoch."""
        name = self.name_hash if epoch is None else f"{self.name_hash}_{epoch}"
        return f"{self.directory}/{name}.db"

    def epoch_of(self, path: str) -> str | None:
        """Return the epoch in a database file's name, None when it has none."""
        stem = os.path.basename(path).removesuffix(".db")
        return stem.partition("_")[2] or None


def database_files(disk: Disk, place: DatabasePath) -> tuple[str, ...]:
    """Return the paths of database files from the oldest epoch on.

    Raises OSError unless there is no directory.
    """
    directory = place.directory
    try:
        names = disk.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    plain = f"{place.name_hash}.db"
    found = [f"{directory}/{plain}"] if plain in names else []
    prefix = f"{place.name_hash}_"
    epochs = []
    for name in names:
        if name.startswith(prefix) and name.endswith(".db"):
            try:
                epochs.append((Timestamp(name[len(prefix) : -3]), f"{directory}/{name}"))
            except InvalidTimestamp:
                continue
    epochs.sort(key=lambda pair: pair[0])
    return (*found, *(path for _, path in epochs))


def has_pending(disk: Disk, place: DatabasePath) -> bool:
    """Return True if rows wait to be merged; raises OSError."""
    try:
        return disk.stat(place.pending).st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


def locked(
    disk: Disk, place: DatabasePath, timeout_s: float = LOCK_TIMEOUT_S
) -> AbstractContextManager[None]:
    """Hold the directory's lock; raises ``LockTimeout``, and FileNotFoundError without directory."""
    return file_lock(disk, place.lock, timeout_s)


def lock(disk: Disk, place: DatabasePath, timeout_s: float = LOCK_TIMEOUT_S) -> int:
    """Return a descriptor that holds the same lock; closing it gives the lock back."""
    return lock_file(disk, place.lock, timeout_s)


def create(
    disk: Disk,
    place: DatabasePath,
    build: Callable[[sqlite3.Connection], None],
    *,
    epoch: str | None = None,
    trace: Trace | None = None,
) -> bool:
    """Make a database file durably; False when one of that epoch was there already.

    ``build`` fills a connection inside a transaction. A file that has its name is complete: it was built
    under another one. Raises the errors of ``db.connection``, OSError and ``LockTimeout``.
    """
    for _ in range(_CREATE_TRIES - 1):
        try:
            return _create(disk, place, build, epoch, trace)
        except (FileNotFoundError, DatabaseMissing):
            # A replicator that gave the partition away removed the directory, which was empty.
            continue
    return _create(disk, place, build, epoch, trace)


def _create(
    disk: Disk,
    place: DatabasePath,
    build: Callable[[sqlite3.Connection], None],
    epoch: str | None,
    trace: Trace | None,
) -> bool:
    unsynced = make_place(disk, place)
    temporary = f"{place.directory}/{secrets.token_hex(8)}.tmp"
    try:
        disk.close(disk.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        _build(temporary, build, trace)
        sync_file(disk, temporary)
        if not install(disk, place, temporary, epoch=epoch):
            return False
        for parent in unsynced:
            sync_directory(disk, parent)
    finally:
        for name in (temporary, *(temporary + suffix for suffix in SIDE_FILES)):
            remove_if_there(disk, name)
    return True


def make_place(disk: Disk, place: DatabasePath) -> list[str]:
    """Make the hash directory; return the directories that got a new entry, see ``make_directories``.

    A file or a dangling link in the place of it or of one above goes to the quarantine. Raises OSError.
    """
    try:
        made = make_directories(disk, place.directory, below=place.device_path)
        if made or not is_blocking(disk, place.directory):
            return made
    except (FileNotFoundError, NotADirectoryError):
        if not _clear_way(disk, place):
            raise
    else:
        _clear_way(disk, place)
    return make_directories(disk, place.directory, below=place.device_path)


def _clear_way(disk: Disk, place: DatabasePath) -> bool:
    """Quarantine what is in the place of a directory; True if something was."""
    suffix = os.path.dirname(place.directory)
    for path in (os.path.dirname(suffix), suffix, place.directory):
        if is_blocking(disk, path):
            reason = "it is in the place of a directory"
            return move_to_quarantine(disk, place.device_path, place.kind, path, reason=reason) is not None
    return False


def install(disk: Disk, place: DatabasePath, temporary: str, *, epoch: str | None) -> bool:
    """Give a synced file the name of a database of that epoch; False when there is one.

    The directory must exist. Raises OSError and ``LockTimeout``.
    """
    path = place.file(epoch)
    with locked(disk, place):
        if _exists(disk, path):
            return False
        _remove_side_files(disk, path)
        disk.rename(temporary, path)
        sync_directory(disk, place.directory)
    return True


def sync_file(disk: Disk, path: str) -> None:
    """Make the content of a file durable that other means have written; raises OSError."""
    fd = open_regular(disk, path, os.O_RDONLY)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)


def _build(temporary: str, build: Callable[[sqlite3.Connection], None], trace: Trace | None) -> None:
    connection = connect(temporary, trace=trace, create=True)
    try:
        with Translating(temporary):
            # Nothing is durable before the sync of the whole file, so SQLite need not sync on the way.
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("PRAGMA journal_mode=MEMORY")
            connection.execute("BEGIN")
            build(connection)
            connection.execute("COMMIT")
    finally:
        connection.close()


def _remove_side_files(disk: Disk, path: str) -> None:
    """Remove journals: one of a removed database must never be replayed into a new one of the same name."""
    for suffix in SIDE_FILES:
        remove_if_there(disk, path + suffix)


def quarantine(disk: Disk, place: DatabasePath, reason: str) -> str:
    """Move the hash directory to the device's quarantine; the new path. Raises OSError."""
    moved = move_to_quarantine(disk, place.device_path, place.kind, place.directory, reason=reason)
    if moved is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place.directory)
    return moved


def restore(disk: Disk, place: DatabasePath, directory: str) -> None:
    """Move a quarantined hash directory to its place, durably.

    Raises FileExistsError when a database is there again, and OSError.
    """
    if database_files(disk, place):
        raise FileExistsError(errno.EEXIST, "a database is there again", place.directory)
    parent = os.path.dirname(place.directory)
    touched = make_directories(disk, parent, below=place.device_path)
    disk.rename(directory, place.directory)
    for each in (parent, *touched):
        sync_directory(disk, each)


def remove_if_there(disk: Disk, path: str) -> None:
    """Unlink a file that may be missing."""
    try:
        disk.unlink(path)
    except FileNotFoundError:
        return


def _exists(disk: Disk, path: str) -> bool:
    try:
        disk.stat(path)
        return True
    except FileNotFoundError:
        return False
