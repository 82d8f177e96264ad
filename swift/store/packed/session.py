"""The index of a device, as this process uses it: opened, compared with the volumes, and opened again.

The volumes are the truth: an index that is missing, torn or of another time is made again from them.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TypeVar

from swift.base.errors import LockTimeout
from swift.platform.disk import Disk
from swift.platform.locks import Patience, lock_file
from swift.store.lmdbindex import Index, IndexBusy, IndexFailed, IndexFull
from swift.store.packed import rows
from swift.store.packed.entry import BadEntry, Entry, decode_entries
from swift.store.packed.recovery import IndexOutdated, KnownEnds
from swift.store.packed.rows import Spaces
from swift.store.packed.states import Completeness, IndexEvent, index_after
from swift.store.packed.volumes import OpenVolume, Volumes

#: Held while a device is opened.
_OPENING = "opening"
#: Attempts to use an index that others replace.
_TRIES = 3

IndexOpener = Callable[[str], Index]
T = TypeVar("T")


class SessionOwner(Protocol):
    """The device of a session."""

    def complete(self, index: Index, spaces: Spaces, identity: bytes, known: KnownEnds) -> bool:
        """Index what is in the volumes and not in the index; return False if not all that others left."""

    def reopened(self) -> None:
        """Learn what an index that took the place of another one says."""

    def check_not_replaced(self) -> None:
        """Raise FileNotFoundError if the directory of the engine is another one now."""


class IndexSession:
    """The index of a device while this process has it open. Raises OSError, ``LockTimeout``.

    ``open_index`` gets the directory of the engine. ``patience`` is that with other processes that open the
    device: they are stopped perhaps, or make the index again.
    """

    index: Index
    spaces: Spaces

    def __init__(
        self,
        disk: Disk,
        volumes: Volumes,
        path: str,
        owner: SessionOwner,
        *,
        open_index: IndexOpener,
        notice: Callable[[str], None],
        patience: Patience,
    ):
        self.disk = disk
        self.volumes = volumes
        self.path = path
        self.directory = volumes.directory
        self.state = Completeness.CLOSED
        #: Held by the one thread that writes records or changes the index.
        self.writing = threading.RLock()
        self._owner = owner
        self._open_index = open_index
        self._notice = notice
        self._patience = patience

    def open(self) -> None:
        """Open the index, complete. Raises ``IndexFailed``, ``ConfigError``."""
        self.index, self.spaces = self._opened()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Hold the lock of processes that open the device. Raises ``LockTimeout``, OSError."""
        path, patience = f"{self.directory}/{_OPENING}", self._patience
        seconds = patience.timeout_s
        try:
            fd = lock_file(self.disk, path, seconds)
        except LockTimeout:
            patience.is_exhausted = True
            raise LockTimeout(f"{path}, which another process that opens the device holds,", seconds)
        patience.is_exhausted = False
        try:
            yield
        finally:
            self.disk.close(fd)

    def _opened(self, failed: Index | None = None) -> tuple[Index, Spaces]:
        """Return the index, complete, in place of one that failed."""
        known = _ends_in(failed, self.volumes.numbers())
        with self.opening():
            index, spaces = self._open_index(self.directory), Spaces()
            try:
                identity = self.volumes.identity()
                try:
                    if rows.owner(index) not in (None, identity):
                        raise IndexOutdated("it is of other volumes")
                    is_whole = self._owner.complete(index, spaces, identity, known)
                except IndexFailed as error:
                    if isinstance(error, IndexOutdated):
                        index.discard()
                    if index.is_current():
                        raise
                    self._notice(f"the index of {self.path} is made again: {error}")
                    index.close(is_last=False)
                    index, spaces = self._open_index(self.directory), Spaces()
                    is_whole = self._owner.complete(index, spaces, identity, known)
            except BaseException:
                with suppress(IndexFailed):
                    index.close(is_last=False)
                raise
        event = IndexEvent.OPEN if is_whole else IndexEvent.OPEN_PARTLY
        self.state = index_after(self.state, event)
        return index, spaces

    def caught_up(self) -> None:
        """Note that an index took what it lacked."""
        self.state = index_after(self.state, IndexEvent.CATCH_UP)

    def _reopen(self, failed: Index) -> None:
        """Open the index that took the place of a failed one. Raises ``IndexFailed``, OSError."""
        # One at a time waits for a process that does not let go of the device.
        if not self.writing.acquire(blocking=not self._patience.is_exhausted):
            raise IndexBusy(self._patience.timeout_s)
        try:
            self._owner.check_not_replaced()
            if self.index is failed:
                self.index, self.spaces = self._opened(failed)
                with suppress(IndexFailed):
                    failed.close(is_last=False)
                self._owner.reopened()
        finally:
            self.writing.release()

    @property
    def is_current(self) -> bool:
        """True unless the index was replaced or cannot be used."""
        try:
            return self.index.is_current()
        except IndexFailed:
            return False

    def read_index(self, work: Callable[[Index, Spaces], T]) -> T:
        """Return what ``work`` returns, with another index if this one cannot be used.

        Raises OSError, and ``LockTimeout`` when it is changed and another process does not let go of it.
        """
        failure: IndexFailed | None = None
        for _ in range(_TRIES):
            index = self.index
            try:
                if not index.is_current():
                    raise IndexFailed("the index was replaced")
                return work(index, self.spaces)
            except IndexBusy as busy:
                raise self.locked(busy)
            except IndexFull as full:
                raise OSError(errno.ENOSPC, f"the index cannot be changed: {full}", self.path)
            except IndexFailed as error:
                if failure is None:
                    self._notice(f"the index of {self.path} cannot be used: {error}; it is opened again")
                failure = error
                try:
                    self._reopen(index)
                except IndexBusy as busy:
                    raise self.locked(busy)
                except IndexFailed as again:
                    failure = again
        raise unusable(self.path, failure)

    def locked(self, error: IndexBusy) -> LockTimeout:
        """Return the error of a request that another process kept waiting."""
        return LockTimeout(f"the index of {self.path}, which another process is changing,", error.seconds)

    def entries(self, policy: int, partition: int, object_hash: bytes) -> list[Entry]:
        """Return the entries of an object. Raises OSError."""

        def read(index: Index, spaces: Spaces) -> list[Entry]:
            key = spaces.find(index, policy, partition, object_hash)
            value = None if key is None else index.get(key)
            try:
                return decode_entries(value) if value else []
            except BadEntry as error:
                index.discard()
                raise IndexFailed(str(error))

        return self.read_index(read)

    def is_foreign(self, volume: OpenVolume) -> bool:
        """Return True if another volume of this number was indexed. Raises OSError."""
        return self.read_index(lambda index, _: rows.is_foreign(index, volume.number, volume.nonce))

    def change_index(self, work: Callable[[rows.Writing], T]) -> T:
        """Change rows of the index that no record is about; return what ``work`` returns. Raises OSError."""

        def change(index: Index, _spaces: Spaces) -> T:
            with index.writing() as writing:
                return work(writing)

        with self.writing:
            return self.read_index(change)

    def close(self) -> None:
        """Give the index up. Raises ``IndexFailed``."""
        self.state = index_after(self.state, IndexEvent.CLOSE)
        self.index.close(is_last=False)

    def __repr__(self) -> str:
        return f"IndexSession({self.path!r})"


def unusable(path: str, failure: Exception | None) -> OSError:
    """Return the error of a device whose index cannot be used: it counts as a failing device."""
    return OSError(errno.EIO, f"the index cannot be used: {failure}", path)


def _ends_in(index: Index | None, numbers: list[int]) -> KnownEnds:
    """Return where records of volumes end by an index that failed, as far as it can be read.

    Volumes that are not among ``numbers`` are left out if nothing lived in them: they were compacted.
    """
    if index is None:
        return {}
    try:
        nonces = rows.nonces(index)
        found = rows.volumes(index).items()
    except IndexFailed:
        return {}
    there = set(numbers)
    return {
        number: (nonces[number], row.end)
        for number, row in found
        if number in nonces and (not row.is_closed if number in there else row.live_bytes)
    }
