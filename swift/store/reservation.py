"""Reservation of an object for one writer, across all processes of a node, without blocking others.

While a conditional write reserves the object on other nodes, this node must not reserve it for another;
unconditional writes, reads and daemons go on. The reservation is the ``flock`` of a file in the
device's temporary directory, so it ends with the process. A writer may still rely on a reservation that ended
so: it may be committing on other nodes. So the file holds the lease's end, and an unlocked file blocks other
writers until then. The time after a boot blocks them as well, because the file may be lost. The file also
holds the writer's version: it may be stored on another node, so only newer versions may follow, which
supersede it.
"""

from __future__ import annotations

import fcntl
import os

from swift.base.clock import Clock
from swift.base.timestamp import ZERO, Timestamp
from swift.platform.disk import Disk
from swift.platform.durable import make_directories
from swift.platform.regularfiles import open_or_replace
from swift.store.errors import AlreadyReserved
from swift.store.layout import ObjectPath, temporary_dir
from swift.wire.reservation import FORGOTTEN_AFTER_S, LEASE_S

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class FileReservation:
    """``Reservation`` of the filesystem engine."""

    __slots__ = ("_disk", "_clock", "_path", "_fd", "_writer", "_vanished", "_until_s")

    def __init__(self, disk: Disk, clock: Clock, path: str, fd: int, writer: Timestamp, vanished: Timestamp):
        self._writer = writer
        #: The newest writer before that went away, zero when there is none.
        self._vanished = vanished
        self._disk = disk
        self._clock = clock
        self._path = path
        self._fd: int | None = fd
        self._until_s = clock.monotonic() + LEASE_S

    def holds(self) -> bool:
        return self._fd is not None and self._clock.monotonic() < self._until_s

    def release(self) -> None:
        if self._vanished:
            self._leave(self._vanished)
        else:
            self.complete()

    def complete(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                self._disk.unlink(self._path)
            finally:
                self._disk.close(fd)

    def abandon(self) -> None:
        self._leave(self._writer)

    def _leave(self, vanished: Timestamp) -> None:
        """End the reservation; later ones must be newer than the writer that vanished."""
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                _write(self._disk, fd, 0.0, vanished)
            finally:
                self._disk.close(fd)

    def __repr__(self) -> str:
        return f"<FileReservation {self._path} {'holds' if self.holds() else 'gone'}>"


def reserve(disk: Disk, clock: Clock, object_path: ObjectPath, writer: Timestamp) -> FileReservation:
    """Promise an object; raises ``AlreadyReserved`` and OSError."""
    if clock.monotonic() < FORGOTTEN_AFTER_S:
        raise AlreadyReserved(ZERO)
    directory = temporary_dir(object_path.device, object_path.key.policy)
    path = f"{directory}/reserved-{object_path.key.hash}"
    while True:
        try:
            fd = open_or_replace(disk, path, _FLAGS, 0o600)
        except FileNotFoundError:
            make_directories(disk, directory, below=object_path.device)
            continue
        try:
            _lock(disk, fd)
            if disk.fstat(fd).st_nlink:
                vanished = _promise(disk, clock, fd, writer)
                return FileReservation(disk, clock, path, fd, writer, vanished)
        except BaseException:
            disk.close(fd)
            raise
        # The former holder removed the file; there may be a new one.
        disk.close(fd)


def _lock(disk: Disk, fd: int) -> None:
    try:
        disk.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise AlreadyReserved(_written(disk, fd)[1])


def _promise(disk: Disk, clock: Clock, fd: int, writer: Timestamp) -> Timestamp:
    """Write a promise down; the writer that vanished before, zero when there is none."""
    now_s = clock.monotonic()
    until_s, former = _written(disk, fd)
    # A time that lies further ahead than any promise was written before the last boot.
    if now_s < until_s <= now_s + FORGOTTEN_AFTER_S:
        raise AlreadyReserved(former)
    if former >= writer:
        raise AlreadyReserved(former, is_over=True)
    _write(disk, fd, now_s + FORGOTTEN_AFTER_S, writer)
    return former


def _write(disk: Disk, fd: int, until_s: float, writer: Timestamp) -> None:
    disk.truncate(fd, 0)
    disk.pwrite(fd, f"{until_s:.6f} {writer.internal}".encode(), 0)


def _written(disk: Disk, fd: int) -> tuple[float, Timestamp]:
    """Return the last holder's deadline (monotonic clock) and its version; zeros if unknown."""
    until, _, writer = disk.pread(fd, 128, 0).decode("latin-1").partition(" ")
    try:
        return float(until), Timestamp(writer)
    except ValueError:
        return 0.0, ZERO
