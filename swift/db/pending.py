"""``.pending`` files: rows that are stored but not yet merged into the tables (account-container.md §6).

Appending and syncing one small file is how a row becomes durable: it costs one flush however many rows of
one moment share it, and the tables are updated by the next reader, or when much has
gathered. The format is the peer's, so each side merges what the other left. An entry is ``:`` and the
base64 of a pickled tuple; an entry torn by a crash was never acknowledged, cannot be decoded and is skipped.

Callers hold the lock of the hash directory.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
from binascii import b2a_base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pickle import dumps

from swift.base.pickles import PickleRefused, restricted_loads
from swift.db.files import DatabasePath
from swift.platform.disk import Disk
from swift.platform.durable import write_all
from swift.platform.locks import lock_descriptor
from swift.platform.regularfiles import (
    IrregularFile,
    move_irregular_file_aside,
    open_or_replace,
    open_regular,
    read_regular,
)
from swift.platform.syncing import sync_directory

#: Beyond this size the rows are merged by the write that finds it, bytes; the peer waits for twice as many.
MERGE_AT_BYTES = 65536

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC


def entries(data: bytes, refuse: Callable[[str], None]) -> Iterator[tuple[object, ...]]:
    """Yield the tuples of a pending file, in order; ``refuse`` is told about every bad entry."""
    for piece in data.split(b":"):
        if not piece:
            continue
        try:
            value = restricted_loads(base64.b64decode(piece))
        except (PickleRefused, binascii.Error, ValueError) as error:
            refuse(f"invalid pending entry {piece[:60]!r}: {error}")
            continue
        if isinstance(value, tuple):
            yield value
        else:
            refuse(f"invalid pending entry {piece[:60]!r}: not a tuple")


def encode(entry: tuple[object, ...]) -> bytes:
    """Return an entry as it stands in the file; a row is a tuple with names, which the pickle leaves out."""
    return b":" + b2a_base64(dumps(tuple(entry), 2), newline=False)


def append(disk: Disk, path: str, data: bytes) -> int:
    """Add encoded entries durably; the size of the file before.

    Raises OSError: then none may count as stored. What a failed write left behind is cut off again, so that
    it cannot spoil the next entry.
    """
    is_new = False
    try:
        fd = open_or_replace(disk, path, _APPEND)
    except FileNotFoundError:
        fd = open_or_replace(disk, path, _APPEND | os.O_CREAT)
        is_new = True
    try:
        size = _append(disk, fd, data)
    finally:
        disk.close(fd)
    if is_new:
        sync_directory(disk, os.path.dirname(path))
    return size


def _append(disk: Disk, fd: int, data: bytes) -> int:
    size = disk.fstat(fd).st_size
    try:
        write_all(disk, fd, data)
        disk.fdatasync(fd)
    except OSError:
        disk.truncate(fd, size)
        raise
    return size


class KeptFiles:
    """The lock and the pending file of a hash directory, kept open for the next batch.

    They are those of the directory while no name in it has changed since ``names`` were found. Raises
    OSError.
    """

    __slots__ = ("names", "_disk", "_file", "_lock", "_path")

    def __init__(self, disk: Disk, place: DatabasePath, names: tuple[str, ...]):
        self.names = names
        self._disk = disk
        self._path = place.lock
        self._lock = self._file = -1
        self._lock = open_regular(disk, place.lock, os.O_WRONLY)
        self._file = open_regular(disk, place.pending, _APPEND)

    @contextmanager
    def locked(self, timeout_s: float) -> Iterator[None]:
        """Hold the directory's lock; raises ``LockTimeout``."""
        lock_descriptor(self._disk, self._lock, self._path, timeout_s)
        try:
            yield
        finally:
            self._disk.flock(self._lock, fcntl.LOCK_UN)

    def append(self, data: bytes) -> int:
        """See ``append``."""
        return _append(self._disk, self._file, data)

    def close(self) -> None:
        """Close both."""
        fds, self._lock, self._file = (self._lock, self._file), -1, -1
        for fd in fds:
            if fd >= 0:
                self._disk.close(fd)

    def __del__(self) -> None:
        self.close()


class Recent:
    """Rows that this process put into a pending file since it was empty, to avoid decoding them again.

    It tells the rows of a file only by comparing every byte, so other processes may do as they like.
    """

    __slots__ = ("_data", "_rows")

    def __init__(self) -> None:
        self._data = bytearray()
        self._rows: list[object] = []

    def add(self, start: int, data: bytes, rows: Sequence[object]) -> None:
        """Note that ``data``, which encodes ``rows``, was appended to a file of ``start`` bytes."""
        if start != len(self._data):
            self.forget()
        if start == len(self._data):
            self._data += data
            self._rows += rows

    def split(self, data: bytes) -> tuple[list[object], bytes]:
        """Return the rows at the start of a file that are known, and the rest of its content."""
        size = len(self._data)
        return (self._rows, data[size:]) if data[:size] == self._data else ([], data)

    @property
    def weight(self) -> int:
        """The memory that this takes, bytes; a row as it is takes some five times what it takes encoded."""
        return 6 * len(self._data)

    def forget(self) -> None:
        """Begin anew with the next entry that is the first one."""
        self._data = bytearray()
        self._rows = []


def read(disk: Disk, path: str) -> bytes:
    """Return the whole file; empty when there is none."""
    try:
        return read_regular(disk, path)
    except FileNotFoundError:
        return b""
    except IrregularFile:
        # It holds no rows, and the way is free for the next.
        move_irregular_file_aside(disk, path)
        return b""


def clear(disk: Disk, path: str) -> None:
    """Empty the file once its rows are committed.

    Not synced: should the rows appear again after a power cut, merging them again changes nothing.
    """
    fd = open_regular(disk, path, os.O_WRONLY)
    try:
        disk.truncate(fd, 0)
    finally:
        disk.close(fd)
