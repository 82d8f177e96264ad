"""The writer of a device: batches of changes on their way into a volume and the index.

A change is durable when its record is synced, and visible when the index has it; only then its caller goes
on. All changes that wait at the same moment are written, synced and indexed together. ``states`` has the
table of what may happen to the volume that a writer holds.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from swift.base.errors import LockTimeout, NoSpace
from swift.green import ThreadPool, in_green_thread
from swift.platform.batches import GreenBatches, ThreadBatches
from swift.platform.disk import Disk
from swift.store.lmdbindex import Index, IndexBusy, IndexFailed, IndexFull
from swift.store.packed import rows
from swift.store.packed.appender import Appender
from swift.store.packed.changes import Change, apply, gone
from swift.store.packed.record import ALIGNMENT, Kind, Position
from swift.store.packed.recovery import IndexOutdated, Recovery, Unwanted, has_tail
from swift.store.packed.rows import Spaces
from swift.store.packed.session import IndexSession
from swift.store.packed.states import Completeness, Event, Volume, after
from swift.store.packed.volumes import OpenVolume

#: For so long an index is used without asking whether its device still takes writes, seconds.
CHECK_EVERY_S = 1.0
#: A process keeps the volume that it appends to for so long after the last change, seconds.
APPENDER_IDLE_S = 60.0
#: Bytes of volumes, unless told otherwise.
VOLUME_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class PackedRules:
    """The numbers an operator may change."""

    #: Bodies of at most so many bytes are packed.
    object_bytes_max: int = 1 << 20
    volume_bytes: int = VOLUME_BYTES
    #: A process that writes a batch indexes it within this time, unless it is stopped, seconds.
    publish_timeout_s: float = 2.0


class Writer:
    """Appends batches to a volume of this process. Raises ``NoSpace``, OSError, ``LockTimeout``.

    ``check_not_replaced`` raises OSError if the device was replaced.
    """

    def __init__(
        self,
        session: IndexSession,
        rules: PackedRules,
        *,
        notice: Callable[[str], None],
        check_not_replaced: Callable[[], None],
    ):
        self.rules = rules
        self.state = Volume.NONE
        self.appender: Appender | None = None
        self._session = session
        self._disk: Disk = session.disk
        self._volumes = session.volumes
        self._notice = notice
        self._check_not_replaced = check_not_replaced
        #: Records that were not acknowledged but may be durable; the next batch says that they are gone.
        self._unwanted: list[Unwanted] = []
        #: Volumes with such records; no other process may append to them until then.
        self._given_up: list[OpenVolume] = []
        self._checked_s = 0.0
        threads = ThreadPool(1, "commit")

        def process(changes: list[Change]) -> None:
            threads.call(self.process, changes)

        self._green = GreenBatches[Change](process, finishes=True)
        self.threads = ThreadBatches[Change](self.process)

    @property
    def path(self) -> str:
        """Path of the device."""
        return self._session.path

    def _on(self, event: Event) -> None:
        """Note what happened to the volume that is held. Raises ``InvalidTransition``."""
        self.state = after(self.state, event)
        if self.state is Volume.NONE:
            self.appender = None

    @property
    def unwanted_positions(self) -> list[Position]:
        """Positions of records that do not count although no record says so yet."""
        return [each.position for each in self._unwanted]

    # --- the index -----------------------------------------------------------------------------------

    def complete(self, recovery: Recovery) -> bool:
        """Index what an index that was opened just now lacks of the volumes; see ``SessionOwner``."""
        if self.appender is not None:
            self._replay_own(recovery, self.appender)
        try:
            self._replay_tails(recovery)
        except (IndexFull, IndexBusy) as error:
            # These records were never acknowledged: others can be read. The next change indexes them first.
            self._notice(f"ERROR the index of {self.path} can be read and not changed: {error}")
            return False
        return True

    def _replay_own(self, recovery: Recovery, appender: Appender) -> None:
        self._on(Event.REPLAY if recovery.replay_own(appender) else Event.LOSE)

    def _replay_tails(self, recovery: Recovery) -> None:
        """Index what processes that ended had written. Raises ``IndexFailed``, OSError."""
        mine = None if self.appender is None else self.appender.volume.number
        self._unwanted.extend(recovery.replay_tails(mine))

    @property
    def is_caught_up(self) -> bool:
        """True unless a failure prevented something that comes before the next change."""
        is_whole = self._session.state is Completeness.WHOLE
        return is_whole and self.state is not Volume.BEHIND and not self._unwanted

    def catch_up(self) -> None:
        """Do what a failure prevented, before an object is looked at to be changed."""
        with self._session.writing:
            self._take_up()
            self.disown()

    def _take_up(self) -> None:
        appender = self.appender
        if appender is not None and self.state is Volume.BEHIND:

            def replay(index: Index, spaces: Spaces) -> None:
                # An index that was opened meanwhile has done it.
                if self.appender is appender:
                    self._replay_own(self._recovery(index, spaces), appender)

            self._session.read_index(replay)
        if self._session.state is Completeness.PARTIAL:
            self._session.read_index(lambda index, spaces: self._replay_tails(self._recovery(index, spaces)))
            self._session.caught_up()

    def _recovery(self, index: Index, spaces: Spaces) -> Recovery:
        return Recovery(self._disk, self._volumes, index, spaces, self._notice)

    # --- batches -------------------------------------------------------------------------------------

    def commit(self, change: Change) -> None:
        """Return when a change is durable and visible. Raises ``NoSpace``, OSError."""
        change.error = OSError("the change was not finished")
        if in_green_thread():
            self._green.wait(change)
        else:
            self.threads.wait(change)
        if change.error is not None:
            raise change.error

    def commit_all(self, changes: list[Change]) -> None:
        """Return when changes are durable and visible, all together; for threads. Raises like ``commit``."""
        if not changes:
            # Not even what was unwanted is said: a device that is full has no room, and this may make some.
            return
        for change in changes:
            change.error = OSError("the change was not finished")
        self.process(changes)
        for change in changes:
            if change.error is not None:
                raise change.error

    def process(self, changes: list[Change]) -> bool:
        """Write, sync and index a batch; failures are told through its members."""
        with self._session.writing:
            try:
                self._take_up()
                self.disown()
                while changes:
                    appender = self._appender_for(changes[0].record.total_bytes)
                    fitting = _fitting(appender, changes)
                    self._append(appender, fitting)
                    changes = changes[len(fitting) :]
            except Exception as error:  # noqa: BLE001 - every caller gets it
                for change in changes:
                    change.error = error
        return True

    def _append(self, appender: Appender, changes: list[Change]) -> None:
        nonce, batch_unit = appender.volume.nonce, appender.end // ALIGNMENT
        pieces: list[bytes | memoryview] = []
        end = appender.end
        for change in changes:
            change.position = Position(appender.volume.number, end // ALIGNMENT)
            pieces += change.record.encode(nonce, batch_unit)
            end += change.record.total_bytes
        written = after(self.state, Event.WRITE)
        try:
            appender.append(pieces)
        except BaseException:
            if appender.has_failed:
                self._drop(appender, changes)
            else:
                self._on(Event.REFUSE)
            raise
        self.state = written
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
                is_right = apply(writing, spaces, changes, {number: end}, self._disk.now_ns())
                if not appender.is_noted:
                    rows.set_nonce(writing, number, appender.volume.nonce)
            if not is_right:
                # Another process made it in between.
                index.discard()
            # Another process may have begun to make it again before these records were written.
            if not index.is_current():
                raise IndexFailed("the index was replaced")
            self._check_now_and_then(index)

        first = self._session.index
        try:
            self._session.read_index(publish)
        except BaseException:
            # Unless an index that was opened meanwhile took the batch from the volume.
            if self.state is Volume.WRITTEN:
                self._on(Event.MISS)
            raise
        if self.state is Volume.WRITTEN:
            self._on(Event.PUBLISH)
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
        self._on(Event.FAIL)
        self._given_up.append(appender.volume)
        number = appender.volume.number
        try:
            with self._session.index.writing() as writing:
                self._check_appender(self._session.index, writing, appender)
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
                self.disown()

    def disown(self) -> None:
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

    # --- volumes -------------------------------------------------------------------------------------

    def let_go_of_idle_volume(self, idle_s: float = APPENDER_IDLE_S) -> None:
        """Give up the volume that this process appends to if that was long ago: it can be compacted then.

        The index is compared with it before.
        """
        if self.state is not Volume.READY or not self._session.writing.acquire(blocking=False):
            return
        try:
            appender = self.appender
            if appender is not None and self.state is Volume.READY:
                self._session.read_index(lambda index, _spaces: self._check_appender(index, index, appender))
                if self.appender is appender and time.monotonic() - appender.used_s >= idle_s:
                    self._on(Event.LET_GO)
        finally:
            self._session.writing.release()

    def _appender_for(self, length: int) -> Appender:
        """Return an appender with room for a record."""
        appender = self.appender
        if appender is not None and appender.has_room(length):
            number = appender.volume.number
            if appender.is_at(self._volumes.path(number)):
                return appender
            self._check_not_replaced()
            self._notice(f"volume {number} of {self.path} was removed or replaced; what was in it is lost")
            self._volumes.forget(number)
        return self._take(self._free_volume(length) or self._new_volume())

    def _take(self, appender: Appender) -> Appender:
        """Hold a volume in the place of the one before."""
        if self.appender is not None:
            self._on(Event.LET_GO)
        self._on(Event.TAKE)
        self.appender = appender
        return appender

    def _free_volume(self, length: int) -> Appender | None:
        """Return a volume that another process left with room."""
        known = self._session.read_index(lambda index, _spaces: rows.volumes(index))
        for number, row in known.items():
            is_full = row.end + max(length, self.rules.volume_bytes >> 4) > self.rules.volume_bytes
            if is_full or row.is_closed:
                continue
            try:
                volume = self._volumes.take(number)
                # Its owner may have gone on after that look.
                now = self._session.read_index(partial(_volume_row, number))
                # The next process that opens the device indexes the records that a killed one left there.
                if volume is None or now.is_closed or now.end < ALIGNMENT or has_tail(volume, now.end):
                    continue
                if self._session.is_foreign(volume):
                    continue
                appender = Appender(self._disk, volume, end=now.end, volume_bytes=self.rules.volume_bytes)
            except OSError as error:
                self._notice(f"cannot append to volume {number} of {self.path}: {error}")
                continue
            if appender.has_room(length):
                return appender
        return None

    def _new_volume(self) -> Appender:
        # Numbers of volumes that an operator removed must not come again either.
        known = self._session.read_index(lambda index, _spaces: rows.volumes(index))
        volume = self._volumes.create(above=max(known, default=0))
        return Appender(self._disk, volume, end=ALIGNMENT, volume_bytes=self.rules.volume_bytes)

    def begin_volume_above(self, number: int) -> None:
        """Begin a volume with a higher number unless there is one. Raises ``NoSpace``, OSError."""
        with self._session.writing:
            self._take_up()
            if max(self._volumes.numbers(), default=0) > number:
                return
            appender = self._new_volume()
            begun, row = appender.volume.number, rows.VolumeRow(appender.end)
            # Without a row no other process would append to it.
            self._session.change_index(lambda writing: rows.write_volume(writing, begun, row))
            self._take(appender)

    def settle(self) -> None:
        """Index what killed processes left: an index that is believed after a boot must have it.

        A power cut would tear it otherwise, in a way that could not be told from zeros.
        """
        with self._session.writing:
            self._take_up()
            self.disown()
            self._replay_tails(self._recovery(self._session.index, self._session.spaces))
            self.disown()

    def close(self) -> None:
        """Give everything up."""
        self.state, self.appender = Volume.NONE, None
        self._given_up.clear()

    def __repr__(self) -> str:
        return f"<Writer of {self.path}: {self.state.value}>"


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
