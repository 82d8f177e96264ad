"""One device of the packed engine: its volumes, its index, and the way of a change into both.

A change is durable when its record is synced, and visible when the index has it; only then its caller goes
on. All changes that wait at the same moment are written, synced and indexed together. The volumes are the
truth: an index that is missing, torn or of another time is made again from them (``recovery``).
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from swift.base.errors import ConfigError, LockTimeout, NoSpace
from swift.green import ThreadPool, in_green_thread
from swift.platform.batches import GreenBatches, ThreadBatches
from swift.platform.disk import Disk
from swift.platform.durable import make_directories
from swift.platform.locks import LOCK_TIMEOUT_S, Patience, lock_file
from swift.platform.syncing import sync_directory
from swift.store.lmdbindex import Index, IndexBusy, IndexFailed, IndexFull
from swift.store.packed import rows
from swift.store.packed.agreement import Agreement
from swift.store.packed.changes import Change, apply, gone
from swift.store.packed.confirmation import Confirmation
from swift.store.packed.conversion import Conversion
from swift.store.packed.entry import BadEntry, Entry, decode_entries
from swift.store.packed.locks import ObjectLocks
from swift.store.packed.record import ALIGNMENT, Kind, Position
from swift.store.packed.recovery import IndexOutdated, KnownEnds, Recovery, Unwanted, has_tail
from swift.store.packed.rows import Spaces
from swift.store.packed.volumes import Appender, OpenVolume, StoredRecord, Volumes

DIRECTORY = "packed"
_LOCK = "lock"
#: Held while a device is opened.
_OPENING = "opening"
#: Attempts to use an index that others replace.
_TRIES = 3
#: For so long an index is used without asking whether its device still takes writes, seconds.
CHECK_EVERY_S = 1.0
#: A process keeps the volume that it appends to for so long after the last change, seconds.
APPENDER_IDLE_S = 60.0
#: Bytes of volumes, unless told otherwise.
VOLUME_BYTES = 1 << 30

IndexOpener = Callable[[str], Index]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PackedRules:
    """The numbers an operator may change."""

    #: Bodies of at most so many bytes are packed.
    object_bytes_max: int = 1 << 20
    volume_bytes: int = VOLUME_BYTES
    #: A process that writes a batch indexes it within this time, unless it is stopped, seconds.
    publish_timeout_s: float = 2.0


class PackedDevice:
    """The volumes and the index of a device, as this process uses them.

    Raises OSError, ``LockTimeout``. ``open_index`` gets the directory of the engine.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        *,
        open_index: IndexOpener,
        rules: PackedRules,
        notice: Callable[[str], None],
        patience: Patience | None = None,
    ):
        self.path = path
        self.directory = f"{path}/{DIRECTORY}"
        self.disk = disk
        self._open_index = open_index
        self.rules = rules
        self._notice = notice
        #: With other processes that open the device: they are stopped perhaps, or make the index again.
        self._patience = patience or Patience()
        for parent in make_directories(disk, self.directory, below=path):
            sync_directory(disk, parent)
        self.volumes = Volumes(disk, self.directory, device_path=path, notice=notice)
        self.locks = ObjectLocks(disk, f"{self.directory}/{_LOCK}")
        #: True if records of this process are durable and could not be indexed.
        self._is_behind = False
        #: True if what killed processes left is not indexed: there is no room, or another process changes it.
        self._lacks_tails = False
        self._appender: Appender | None = None
        #: Records that were not acknowledged but may be durable; the next batch says that they are gone.
        self._unwanted: list[Unwanted] = []
        #: Volumes with such records; no other process may append to them until then.
        self._given_up: list[OpenVolume] = []
        self.writing = threading.RLock()
        self._checked_s = 0.0
        threads = ThreadPool(1, "commit")

        def process(changes: list[Change]) -> None:
            threads.call(self._process, changes)

        self._green = GreenBatches[Change](process, finishes=True)
        self._threads = ThreadBatches[Change](self._process)
        #: True when the directory of the engine is another one now: the device was wiped or replaced.
        self.is_stale = False
        self._identity = self._directory_identity()
        self.conversion = Conversion(self)
        self.confirmation = Confirmation(self)
        self.agreement = Agreement(self, rules.publish_timeout_s)
        try:
            self.index, self.spaces = self._opened()
            # A full device can be read; the next change disowns them.
            with self.writing, suppress(NoSpace):
                self._disown()
            self.conversion.learn()
            self.confirmation.learn()
        except IndexBusy as error:
            self.locks.close()
            raise self._locked(error)
        except (IndexFailed, ConfigError) as error:
            self.locks.close()
            raise _unusable(path, error)
        except BaseException:
            self.locks.close()
            raise

    def _directory_identity(self) -> tuple[int, int] | None:
        try:
            status = self.disk.stat(self.directory)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def object_bytes_max(self, policy: int) -> int:
        """Return the largest size of a packed body; -1 while everything is kept as files. Raises OSError."""
        # Before this engine makes a directory of the policy itself.
        self.conversion.is_unindexed(policy)
        return -1 if self.conversion.keeps_as_files(policy) else self.rules.object_bytes_max

    def look(self) -> None:
        """Notice what other processes did to the device; to be called now and then. Raises OSError."""
        self.is_stale = self.is_stale or self._directory_identity() != self._identity
        self.volumes.forget_removed()

    def check_not_replaced(self) -> None:
        """Raise FileNotFoundError if the directory of the engine is another one now."""
        self.look()
        if self.is_stale:
            raise FileNotFoundError(errno.ENOENT, "the directory was replaced", self.directory)

    def refresh(self) -> None:
        """``look``, and learn what was converted. Raises OSError."""
        self.look()
        if not self.is_stale:
            self.conversion.learn()
            self.confirmation.learn()
        self.let_go_of_idle_volume()

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

    def let_go_of_idle_volume(self, idle_s: float = APPENDER_IDLE_S) -> None:
        """Give up the volume that this process appends to if that was long ago: it can be compacted then.

        The index is compared with it before.
        """
        if self._appender is None or not self.writing.acquire(blocking=False):
            return
        try:
            appender = self._appender
            if appender is not None and appender.published == appender.end:
                self.read_index(lambda index, _spaces: self._check_appender(index, index, appender))
                if time.monotonic() - appender.used_s >= idle_s:
                    self._appender = None
        finally:
            self.writing.release()

    # --- index ---------------------------------------------------------------------------------------

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
                    self._complete(index, spaces, identity, known)
                except IndexFailed as error:
                    if isinstance(error, IndexOutdated):
                        index.discard()
                    if index.is_current():
                        raise
                    self._notice(f"the index of {self.path} is made again: {error}")
                    index.close(is_last=False)
                    index, spaces = self._open_index(self.directory), Spaces()
                    self._complete(index, spaces, identity, known)
            except BaseException:
                with suppress(IndexFailed):
                    index.close(is_last=False)
                raise
        return index, spaces

    def _complete(self, index: Index, spaces: Spaces, identity: bytes, known: KnownEnds) -> None:
        """Index what is in the volumes and not in the index; ``known`` is of the index before."""
        never = [each.position for each in self._unwanted]
        recovery = Recovery(self.disk, self.volumes, index, spaces, self._notice, never)
        if not rows.is_complete(index):
            recovery.rebuild(identity, self.conversion.marks(), known)
        appender = self._appender
        if appender is not None and not recovery.replay_own(appender):
            self._appender = None
        try:
            self._replay_tails(recovery)
        except (IndexFull, IndexBusy) as error:
            # These records were never acknowledged: others can be read. The next change indexes them first.
            self._lacks_tails = self._is_behind = True
            self._notice(f"ERROR the index of {self.path} can be read and not changed: {error}")

    def _replay_tails(self, recovery: Recovery) -> None:
        """Index what processes that ended had written. Raises ``IndexFailed``, OSError."""
        mine = None if self._appender is None else self._appender.volume.number
        self._unwanted.extend(recovery.replay_tails(mine))
        self._lacks_tails = False

    def _reopen(self, failed: Index) -> None:
        """Open the index that took the place of a failed one. Raises ``IndexFailed``, OSError."""
        # One at a time waits for a process that does not let go of the device.
        if not self.writing.acquire(blocking=not self._patience.is_exhausted):
            raise IndexBusy(self._patience.timeout_s)
        try:
            self.check_not_replaced()
            if self.index is failed:
                self.index, self.spaces = self._opened(failed)
                with suppress(IndexFailed):
                    failed.close(is_last=False)
                self.confirmation.learn()
        finally:
            self.writing.release()

    @property
    def is_index_current(self) -> bool:
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
                raise self._locked(busy)
            except IndexFull as full:
                raise OSError(errno.ENOSPC, f"the index cannot be changed: {full}", self.path)
            except IndexFailed as error:
                if failure is None:
                    self._notice(f"the index of {self.path} cannot be used: {error}; it is opened again")
                failure = error
                try:
                    self._reopen(index)
                except IndexBusy as busy:
                    raise self._locked(busy)
                except IndexFailed as again:
                    failure = again
        raise _unusable(self.path, failure)

    def _locked(self, error: IndexBusy) -> LockTimeout:
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

    def change_index(self, work: Callable[[rows.Writing], T]) -> T:
        """Change rows of the index that no record is about; return what ``work`` returns. Raises OSError."""

        def change(index: Index, _spaces: Spaces) -> T:
            with index.writing() as writing:
                return work(writing)

        with self.writing:
            return self.read_index(change)

    # --- changes -------------------------------------------------------------------------------------

    def commit(self, change: Change) -> None:
        """Return when a change is durable and visible. Raises ``NoSpace``, OSError."""
        change.error = OSError("the change was not finished")
        if in_green_thread():
            self._green.wait(change)
        else:
            self._threads.wait(change)
        if change.error is not None:
            raise change.error

    def commit_all(self, changes: list[Change]) -> None:
        """Return when changes are durable and visible, all together; for threads. Raises like ``commit``."""
        if not changes:
            # Not even what was unwanted is said: a device that is full has no room, and this may make some.
            return
        for change in changes:
            change.error = OSError("the change was not finished")
        self._process(changes)
        for change in changes:
            if change.error is not None:
                raise change.error

    def _process(self, changes: list[Change]) -> bool:
        """Write, sync and index a batch; failures are told through its members."""
        with self.writing:
            try:
                self._take_up()
                self._disown()
                while changes:
                    appender = self._appender_for(changes[0].record.total_bytes)
                    fitting = _fitting(appender, changes)
                    self._append(appender, fitting)
                    changes = changes[len(fitting) :]
            except Exception as error:  # noqa: BLE001 - every caller gets it
                for change in changes:
                    change.error = error
        return True

    @property
    def is_caught_up(self) -> bool:
        """True unless a failure prevented something that comes before the next change."""
        return not (self._is_behind or self._unwanted)

    def hold(self, lock: int, timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """Lock an object to look at it and change it. Raises ``LockTimeout``, ``NoSpace``, OSError."""
        self.locks.acquire(lock, timeout_s)
        try:
            if not self.is_caught_up:
                with self.writing:
                    self._take_up()
                    self._disown()
        except BaseException:
            self.locks.release(lock)
            raise

    @contextmanager
    def holding(self, lock: int, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Hold an object; raises like ``hold``."""
        self.hold(lock, timeout_s)
        try:
            yield
        finally:
            self.locks.release(lock)

    def _take_up(self) -> None:
        appender = self._appender
        if appender is not None and appender.published < appender.end:

            def replay(index: Index, spaces: Spaces) -> bool:
                return Recovery(self.disk, self.volumes, index, spaces, self._notice).replay_own(appender)

            if not self.read_index(replay):
                self._appender = None
        if self._lacks_tails:
            self.read_index(
                lambda index, spaces: self._replay_tails(
                    Recovery(self.disk, self.volumes, index, spaces, self._notice)
                )
            )
        self._is_behind = False

    def _append(self, appender: Appender, changes: list[Change]) -> None:
        nonce, batch_unit = appender.volume.nonce, appender.end // ALIGNMENT
        pieces, end = [], appender.end
        for change in changes:
            change.position = Position(appender.volume.number, end // ALIGNMENT)
            piece = change.record.encode(nonce, batch_unit)
            pieces.append(piece)
            end += len(piece)
        try:
            appender.append(b"".join(pieces))
        except BaseException:
            if appender.has_failed:
                self._drop(appender, changes)
            raise
        self._publish(appender, changes)
        for change in changes:
            change.error = None

    def _publish(self, appender: Appender, changes: list[Change]) -> None:
        number, end = appender.volume.number, appender.end

        def publish(index: Index, spaces: Spaces) -> None:
            if index is not first:
                # It was opened again, and this volume with it.
                if rows.read_volume(index, number).end < end:
                    raise OSError(errno.EIO, "records that were just written are not there", self.path)
                return
            with index.writing() as writing:
                self._check_appender(index, writing, appender)
                is_right = apply(writing, spaces, changes, {number: end}, self.disk.now_ns())
                if not appender.is_noted:
                    rows.set_nonce(writing, number, appender.volume.nonce)
            if not is_right:
                # Another process made it in between.
                index.discard()
            # Another process may have begun to make it again before these records were written.
            if not index.is_current():
                raise IndexFailed("the index was replaced")
            self._check_now_and_then(index)

        first = self.index
        try:
            self.read_index(publish)
        except BaseException:
            self._is_behind = True
            raise
        appender.published, appender.is_noted = end, True

    def _check_appender(self, index: Index, reading: rows.ReadsIndex, appender: Appender) -> None:
        """Discard an index that ends elsewhere in this process's volume than this process left it.

        Raises ``IndexFailed`` then: others changed another index, or an older one took its place.
        """
        number = appender.volume.number
        end = max(rows.read_volume(reading, number).end, ALIGNMENT)
        if end != appender.published or rows.is_foreign(reading, number, appender.volume.nonce):
            index.discard()
            raise IndexOutdated(f"it ends at {end} of volume {number}, not at {appender.published}")

    def _check_now_and_then(self, index: Index) -> None:
        """Let an index be used on only if its device took what was written. Raises ``IndexFailed``."""
        now_s = time.monotonic()
        if now_s - self._checked_s >= CHECK_EVERY_S:
            self._checked_s = now_s
            index.check()

    def _drop(self, appender: Appender, changes: list[Change]) -> None:
        """Give up a volume after a failure; what was written to it must never become visible."""
        wanted = [each for each in changes if each.header.kind is not Kind.UNWANTED]
        self._unwanted.extend(Unwanted(each.header, each.position) for each in wanted)
        self._appender = None
        self._given_up.append(appender.volume)
        number = appender.volume.number
        try:
            with self.index.writing() as writing:
                self._check_appender(self.index, writing, appender)
                row = rows.read_volume(writing, number)
                # The next process disowns the records behind the end if this one cannot.
                rows.write_volume(
                    writing, number, row._replace(end=max(appender.end, row.end), is_closed=True)
                )
        except IndexFailed as error:
            # The records that say so are still to be written.
            self._notice(f"cannot close volume {number} of {self.path}: {error}")
        if wanted:
            with suppress(OSError, NoSpace, LockTimeout):
                self._disown()

    def _disown(self) -> None:
        """Write down that unwanted records are gone, before anything else is written."""
        unwanted = self._unwanted
        if not unwanted:
            self._given_up.clear()
            return
        changes = [Change(gone(each.header, [each.position], Kind.UNWANTED), []) for each in unwanted]
        for change in changes:
            self._append(self._appender_for(change.record.total_bytes), [change])
        # Records that were found meanwhile are for the next time.
        self._unwanted = [each for each in self._unwanted if each not in unwanted]
        self._given_up.clear()

    def _appender_for(self, length: int) -> Appender:
        """Return an appender with room for a record."""
        appender = self._appender
        if appender is not None and appender.has_room(length):
            number = appender.volume.number
            if appender.is_at(self.volumes.path(number)):
                return appender
            self.check_not_replaced()
            self._notice(f"volume {number} of {self.path} was removed or replaced; what was in it is lost")
            self.volumes.forget(number)
        self._appender = None
        appender = self._free_volume(length) or self._new_volume()
        self._appender = appender
        return appender

    def _free_volume(self, length: int) -> Appender | None:
        """Return a volume that another process left with room."""
        known = self.read_index(lambda index, _spaces: rows.volumes(index))
        for number, row in known.items():
            is_full = row.end + max(length, self.rules.volume_bytes >> 4) > self.rules.volume_bytes
            if is_full or row.is_closed:
                continue
            try:
                volume = self.volumes.take(number)
                # Its owner may have gone on after that look.
                now = self.read_index(partial(_volume_row, number))
                # The next process that opens the device indexes the records that a killed one left there.
                if volume is None or now.is_closed or now.end < ALIGNMENT or has_tail(volume, now.end):
                    continue
                if self.is_foreign(volume):
                    continue
                appender = Appender(self.disk, volume, end=now.end, volume_bytes=self.rules.volume_bytes)
            except OSError as error:
                self._notice(f"cannot append to volume {number} of {self.path}: {error}")
                continue
            if appender.has_room(length):
                return appender
        return None

    def is_foreign(self, volume: OpenVolume) -> bool:
        """Return True if another volume of this number was indexed. Raises OSError."""
        return self.read_index(lambda index, _: rows.is_foreign(index, volume.number, volume.nonce))

    def _new_volume(self) -> Appender:
        # Numbers of volumes that an operator removed must not come again either.
        known = self.read_index(lambda index, _spaces: rows.volumes(index))
        volume = self.volumes.create(above=max(known, default=0))
        return Appender(self.disk, volume, end=ALIGNMENT, volume_bytes=self.rules.volume_bytes)

    def begin_volume_above(self, number: int) -> None:
        """Begin a volume with a higher number unless there is one. Raises ``NoSpace``, OSError."""
        with self.writing:
            self._take_up()
            if max(self.volumes.numbers(), default=0) > number:
                return
            appender = self._new_volume()
            begun, row = appender.volume.number, rows.VolumeRow(appender.end)
            # Without a row no other process would append to it.
            self.change_index(lambda writing: rows.write_volume(writing, begun, row))
            self._appender = appender

    def read(self, entry: Entry, length: int) -> StoredRecord:
        """Return the record of an entry; at least ``length`` bytes of it are read at once.

        Raises ``BadRecord``, FileNotFoundError, OSError.
        """
        return self.volumes.read(entry.position, length)

    def close(self) -> None:
        """Close everything."""
        try:
            with self.writing:
                self._settle()
            self.index.close(is_last=False)
        except (OSError, NoSpace, LockTimeout, IndexFailed) as error:
            self._notice(f"the index of {self.path} is not complete and will be made again: {error}")
        self._appender = None
        self._given_up.clear()
        self.volumes.close()
        self.locks.close()

    def _settle(self) -> None:
        """Index what killed processes left: an index that is believed after a boot must have it.

        A power cut would tear it otherwise, in a way that could not be told from zeros.
        """
        self.look()
        if self.is_stale:
            return
        self._take_up()
        self._disown()
        recovery = Recovery(self.disk, self.volumes, self.index, self.spaces, self._notice)
        self._unwanted.extend(recovery.replay_tails(self._appender.volume.number if self._appender else None))
        self._disown()

    def __repr__(self) -> str:
        return f"PackedDevice({self.path!r})"


def _unusable(path: str, failure: Exception | None) -> OSError:
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


def _volume_row(number: int, index: Index, _spaces: Spaces) -> rows.VolumeRow:
    return rows.read_volume(index, number)


def _fitting(appender: Appender, changes: list[Change]) -> list[Change]:
    """Return the first changes that fit into a volume together, at least one."""
    length = 0
    for count, change in enumerate(changes):
        length += change.record.total_bytes
        if count and not appender.has_room(length):
            return changes[:count]
    return changes
