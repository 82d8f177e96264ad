"""Partitions of a device that lost records, until they were compared with another replica.

A lost record may have been newer than what is left of its object: an older state would be served as current,
and a deleted object be there again. The device cannot tell which objects these are. So all objects of a
partition are *unconfirmed* until it was found equal to another replica; until then others are read first
(doc/formats/packed.md, "Lost records").

A mark beside the volumes outlives the index: 8 random bytes. The index has them too, and once more for each
partition that was confirmed since.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

from swift.platform.devices import NO_SPACE_ERRORS
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.syncing import sync_directory
from swift.store.lmdbindex import Index
from swift.store.packed import rows
from swift.store.packed.rows import Spaces

_MARK = "unconfirmed"
_MARK_BYTES = 8

T = TypeVar("T")


def begin(disk: Disk, directory: str) -> bytes:
    """Mark all partitions of a device as unconfirmed, durably; return the mark. Raises OSError."""
    mark = os.urandom(_MARK_BYTES)
    try:
        replace_file(disk, f"{directory}/{_MARK}", mark)
    except OSError as error:
        # A full device can be read; its index has the mark.
        if error.errno not in NO_SPACE_ERRORS:
            raise
    return mark


def marked(disk: Disk, directory: str) -> bytes:
    """Return the mark of a device, empty if it has none. Raises OSError."""
    try:
        fd = disk.open(f"{directory}/{_MARK}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return disk.pread(fd, _MARK_BYTES, 0)
    finally:
        disk.close(fd)


class ConfirmedDevice(Protocol):
    """The device, as its confirmation needs it; see ``PackedDevice``."""

    path: str
    directory: str
    disk: Disk

    def read_index(self, work: Callable[[Index, Spaces], T]) -> T:
        """Return what ``work`` returns."""

    def change_index(self, work: Callable[[rows.Writing], T]) -> T:
        """Change rows of the index that no record is about; return what ``work`` returns."""


class Confirmation:
    """Partitions of one device that are unconfirmed; policies are given by their index. Raises OSError."""

    def __init__(self, device: ConfirmedDevice):
        self._device = device
        #: The mark of the device, empty if nothing is unconfirmed.
        self.mark = b""

    def learn(self) -> None:
        """Notice what other processes did; to be called now and then."""
        self.mark = self._device.read_index(lambda index, _spaces: rows.unconfirmed(index))

    def lose(self) -> None:
        """Begin to ask for confirmation of all partitions: records were lost."""
        mark = begin(self._device.disk, self._device.directory)
        self._device.change_index(lambda writing: rows.set_unconfirmed(writing, mark))
        self.mark = mark

    def is_unconfirmed(self, policy: int, partition: int) -> bool:
        """Return True if other replicas of a partition have to be read first."""
        if not self.mark:
            return False
        key = partial(_confirmed, policy, partition)
        return self._device.read_index(key) != self.mark

    def confirm(self, policy: int, partitions: Iterable[int]) -> bool:
        """Note partitions that equal another replica; return True if nothing is unconfirmed any more."""
        if not self.mark:
            return False
        mark = self.mark
        new = [each for each in partitions if self.is_unconfirmed(policy, each)]
        # The last one may have gone since: a handoff's, or that of another ring.
        if not new and not self._device.read_index(lambda index, _spaces: rows.is_all_confirmed(index)):
            return False

        def change(writing: rows.Writing) -> bool:
            for partition in new:
                rows.set_confirmed(writing, policy, partition, mark)
            if rows.unconfirmed(writing) != mark or not rows.is_all_confirmed(writing):
                return False
            rows.delete_unconfirmed(writing)
            return True

        if not self._device.change_index(change):
            return False
        with suppress(FileNotFoundError):
            self._device.disk.unlink(f"{self._device.directory}/{_MARK}")
        sync_directory(self._device.disk, self._device.directory)
        self.mark = b""
        return True

    def __repr__(self) -> str:
        return f"Confirmation({self._device!r})"


def _confirmed(policy: int, partition: int, index: Index, _spaces: Spaces) -> bytes:
    return rows.confirmed(index, policy, partition)
