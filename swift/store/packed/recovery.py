"""Making the index again from the volumes, and taking up what a killed process had not indexed.

``statements`` gathers what records say. The records that a process syncs together are a batch, and it writes
none before the last one is durable. So only the last batch of a volume can be torn, and only its bodies are
read.

A device may have ranges that it cannot read, or that are damaged. The records around them are indexed, and
the index notes the ranges: what was there is missing until replication restores it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from swift.platform.disk import Disk
from swift.store.errors import Damaged
from swift.store.lmdbindex import Index, IndexFailed, Writing
from swift.store.packed import rows
from swift.store.packed.appender import Appender
from swift.store.packed.confirmation import marked
from swift.store.packed.lost import LostRanges
from swift.store.packed.record import ALIGNMENT, BadRecord, Header, Kind, Position, padded
from swift.store.packed.rows import Spaces
from swift.store.packed.statements import Statements
from swift.store.packed.volumes import OpenVolume, StoredRecord, Volumes, only_unreadable

#: Written as a whole or not at all, bytes.
_SECTOR = 512
#: A device with more that it cannot read, bytes, is failing, and not opened.
UNREADABLE_BYTES_MAX = 1 << 20
_NONE: Mapping[int, bool] = MappingProxyType({})
#: By number of a volume: its nonce, and where its records end by an index before, bytes.
KnownEnds = Mapping[int, tuple[bytes, int]]
_UNKNOWN: KnownEnds = MappingProxyType({})


class IndexOutdated(IndexFailed):
    """The volumes have something that no killed process leaves out of an index: it is of another time."""


class Unwanted(NamedTuple):
    """A record that was never acknowledged and is not sound."""

    header: Header
    position: Position


class Recovery:
    """Brings the index of a device up to its volumes. Raises ``IndexFailed``, OSError."""

    def __init__(
        self,
        disk: Disk,
        volumes: Volumes,
        index: Index,
        spaces: Spaces,
        notice: Callable[[str], None],
        never: Iterable[Position] = (),
    ):
        """Take positions of records that do not count although no record says so yet."""
        self._disk = disk
        self._volumes = volumes
        self._index = index
        self._notice = notice
        self._said = Statements(disk, volumes, index, spaces, never)
        self._unwanted: list[Unwanted] = []
        self._unreadable_bytes = 0
        #: True when all of the index was made by this recovery.
        self._is_new = False
        self._known = _UNKNOWN

    def rebuild(
        self, identity: bytes, unindexed: Mapping[int, bool] = _NONE, known: KnownEnds = _UNKNOWN
    ) -> None:
        """Index every record of every volume; ``identity`` is that of the volumes.

        ``unindexed`` tells of policies if there may be files without records.
        """
        self._is_new, self._known = True, known
        with self._index.writing() as writing:
            rows.set_owner(writing, identity)
        numbers = self._volumes.numbers()
        if numbers:
            self._notice(f"making the index of {len(numbers)} volumes in {self._volumes.directory} again")
        #: Locked until all of them are indexed.
        opened: list[OpenVolume] = []
        for number in numbers:
            try:
                # An error of the device proves no damage: without all of a volume's records it would show
                # old states of its objects.
                locked = self._volumes.lock(number)
                volume = locked or self._volumes.open_anew(number)
            except FileNotFoundError:
                continue
            except Damaged as error:
                self._lose_volume(number, error)
                continue
            opened.append(volume)
            self._scan(volume, 0, is_owned=locked is not None)
        for number, (_nonce, end) in known.items():
            if number not in numbers:
                self._note_lost(number, 0, end)
        self._said.flush()
        self._said.finish()
        mark = marked(self._disk, self._volumes.directory)
        with self._index.writing() as writing:
            for policy, is_unindexed in unindexed.items():
                rows.set_unindexed(writing, policy, is_unindexed)
            if mark:
                rows.set_unconfirmed(writing, mark)
            self._reserve_number(writing)
            rows.set_complete(writing)

    def _reserve_number(self, writing: Writing) -> None:
        """Let the number of a removed volume not come again: what records say of it is not of a new one."""
        number = self._said.referenced
        if number > max(self._volumes.numbers(), default=0):
            rows.write_volume(writing, number, rows.VolumeRow(is_closed=True))

    def replay_tails(self, mine: int | None = None) -> list[Unwanted]:
        """Index what processes that ended had written and not indexed; ``mine`` is this process's volume.

        Returns the records among it that are not sound. Raises ``IndexOutdated``.
        """
        known, nonces = rows.volumes(self._index), rows.nonces(self._index)
        unknown: dict[int, bytes] = {}
        tails: list[OpenVolume] = []
        for number in self._volumes.numbers():
            row = known.get(number, rows.VolumeRow())
            nonce = self._nonce(number)
            if nonce is not None and number not in nonces:
                unknown[number] = nonce
            elif nonce is not None and nonce != nonces[number]:
                self._notice(
                    f"ERROR {self._volumes.path(number)} is not the volume that was indexed; is it of "
                    "another device? Its records are not used: put the right file in its place, or remove it"
                )
                continue
            if number == mine:
                continue
            if nonce is not None:
                self._lose_what_was_cut_off(number, row.end)
            if not self._has_tail(number, row.end):
                continue
            if number not in known and number < max(known, default=0):
                self._notice(
                    f"the index did not know {self._volumes.path(number)}, which may be a copy or have been "
                    "away: its records are indexed now"
                )
            # A volume whose owner lives is none of our business.
            try:
                self._check_not_outdated(number)
                volume = self._volumes.lock(number)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._notice(str(only_unreadable(error)))
                continue
            if volume is not None:
                tails.append(volume)
        # All of them before anything is applied: a record may say that one in another volume is gone.
        for volume in tails:
            self._scan_tail(volume)
        if tails or self._said.lost:
            self._said.flush()
            self._said.finish()
        if unknown:
            with self._index.writing() as writing:
                for number, nonce in unknown.items():
                    rows.set_nonce(writing, number, nonce)
        unwanted, self._unwanted = self._unwanted, []
        return unwanted

    def _nonce(self, number: int) -> bytes | None:
        """Return the nonce of a volume, None if it cannot be opened."""
        try:
            return self._volumes.open(number).nonce
        except (Damaged, FileNotFoundError):
            return None
        except OSError as error:
            only_unreadable(error)
            return None

    def _has_tail(self, number: int, end: int) -> bool:
        """Return True if anything but zeros may follow the end of the indexed records."""
        try:
            volume = self._volumes.open(number)
            return has_tail(volume, end)
        except (Damaged, FileNotFoundError):
            return False
        except OSError as error:
            only_unreadable(error)
            return True

    def _check_not_outdated(self, number: int) -> None:
        """Raise ``IndexOutdated`` if the index lacks more than the last batch of a volume.

        A process indexes each batch before it writes the next one.
        """
        volume = self._volumes.open(number)
        end = rows.read_volume(self._index, number).end
        first: tuple[Position, Header] | None = None
        for position, header in self._volumes.scan(volume, end // ALIGNMENT, LostRanges().add):
            if first is None:
                first = position, header
            elif header.batch_unit != first[1].batch_unit:
                # Its owner may have gone on meanwhile.
                row = rows.read_volume(self._index, number)
                if row.end <= first[0].unit * ALIGNMENT and not row.is_closed:
                    raise IndexOutdated(
                        f"it ends at {row.end} of {self._volumes.path(number)}, before the last batch"
                    )
                return

    def _scan_tail(self, volume: OpenVolume) -> None:
        """Read the records behind the end of the indexed ones, in a volume that no other process writes."""
        row = rows.read_volume(self._index, volume.number)
        if not row.is_closed:
            self._scan(volume, row.end // ALIGNMENT, is_owned=True)
            return
        # Its writing failed, and the process ended before it could disown them.
        for position, header in self._volumes.scan(volume, row.end // ALIGNMENT, LostRanges().add):
            if header.kind is not Kind.UNWANTED:
                self._unwanted.append(Unwanted(header, position))

    def replay_own(self, appender: Appender) -> bool:
        """Index what this process wrote and has not indexed. Raises ``IndexOutdated``.

        Nothing else of its volume: what was indexed once may be obsolete since. Return False if it is not all
        there, so that nothing more may be appended.
        """
        volume, begin = appender.volume, appender.published
        # Another process that made the index again may have read a part of it, or all.
        known = self._end_of(volume)
        if rows.is_foreign(self._index, volume.number, volume.nonce) or known > appender.end:
            raise IndexOutdated(f"it ends at {known} of {self._volumes.path(volume.number)}")
        if known < begin and not self._is_new:
            raise IndexOutdated(f"it ends at {known} of {self._volumes.path(volume.number)}, not at {begin}")
        if begin <= known < appender.end:
            self._scan(volume, begin // ALIGNMENT, is_owned=True)
            self._said.flush()
            self._said.finish()
            known = self._end_of(volume)
        appender.published = appender.end
        row = rows.read_volume(self._index, volume.number)
        if known == appender.end and not row.is_closed:
            return True
        if known < appender.end:
            self._note_lost(volume.number, known, appender.end)
        self._said.closed.add(volume.number)
        self._said.finish()
        return False

    def _end_of(self, volume: OpenVolume) -> int:
        return max(rows.read_volume(self._index, volume.number).end, ALIGNMENT)

    # --- scanning ------------------------------------------------------------------------------------

    def _scan(self, volume: OpenVolume, start_unit: int, *, is_owned: bool) -> None:
        last: list[tuple[Position, Header]] = []
        end = max(start_unit, 1) * ALIGNMENT
        lost = LostRanges()
        for position, header in self._volumes.scan(volume, start_unit, lost.add):
            lost.pass_record(position, header)
            if self._unreadable_bytes + lost.unreadable_bytes > UNREADABLE_BYTES_MAX:
                break
            if last and header.batch_unit != last[0][1].batch_unit:
                self._said.take_all(last)
                last = []
            last.append((position, header))
            end = position.unit * ALIGNMENT + padded(header.total_bytes)
        self._lose(volume, lost, last, is_owned=is_owned)
        self._lose_tail(volume, lost, last, end, is_owned=is_owned)
        torn = [
            (position, header)
            for position, header in last
            if self._said.may_count(position, header.hash) and not self._is_sound(volume, position, header)
        ]
        if is_owned:
            # Readers of the others find out that they are damaged.
            torn = [each for each in torn if self._may_be_torn(volume, *each)]
        if torn and is_owned:
            self._unwanted.extend(Unwanted(header, position) for position, header in torn)
            # Bodies are read of the last batch only: this one has to stay that.
            self._said.closed.add(volume.number)
        elif torn:
            # Its owner is writing this batch, and indexes it itself; if it is killed, others begin here.
            last = last[: last.index(torn[0])]
            end = torn[0][0].unit * ALIGNMENT
        self._said.take_all(each for each in last if each not in torn)
        # Records of a killed process may be in memory only, and others would build on them.
        self._disk.fdatasync(volume.fd)
        self._said.ends[volume.number] = end

    def _lose(
        self, volume: OpenVolume, lost: LostRanges, last: list[tuple[Position, Header]], *, is_owned: bool
    ) -> None:
        """Note what a scan could not use; ``last`` is the last batch. Raises OSError if it is too much."""
        torn_from = last[0][1].batch_unit * ALIGNMENT if last else 0
        ranges = lost.merged(torn_from)
        if not is_owned:
            # Its owner has gone on meanwhile.
            ranges = [each for each in ranges if not self._has_record(volume, each[0])]
        if is_owned and len(lost.merged(torn_from=1 << 62)) > len(ranges):
            # What is torn stays at the end.
            self._said.closed.add(volume.number)
        if volume.damage and last:
            self._notice(volume.damage)
            ranges.insert(0, (0, ALIGNMENT))
        self._unreadable_bytes += lost.unreadable_bytes
        if self._unreadable_bytes > UNREADABLE_BYTES_MAX:
            raise OSError(
                errno.EIO,
                f"more than {UNREADABLE_BYTES_MAX} bytes cannot be read: the device is failing; replace it",
                self._volumes.directory,
            )
        for begin, end in ranges:
            if end > ALIGNMENT:
                self._note_lost(volume.number, begin, end)
            else:
                self._said.lost.append((volume.number, begin, end))

    def _lose_tail(
        self,
        volume: OpenVolume,
        lost: LostRanges,
        last: list[tuple[Position, Header]],
        end: int,
        *,
        is_owned: bool,
    ) -> None:
        """Note what is lost behind the last sound record, at ``end``.

        A power cut may tear one batch: the last one that is sound in part, or the one that follows.
        """
        nonce, known = self._known.get(volume.number, (b"", 0))
        until = known if nonce == volume.nonce else 0
        if is_owned:
            broken = lost.broken_from(end)
            batches = {unit for _at, unit in broken if unit}
            torn = {last[0][1].batch_unit} if last else set()
            if not (batches <= torn or batches <= {end // ALIGNMENT}):
                until = max(until, broken[-1][0] + ALIGNMENT)
            if broken:
                # Nothing may be written over it in part.
                self._said.closed.add(volume.number)
        if until > end:
            self._note_lost(volume.number, end, until)

    def _lose_what_was_cut_off(self, number: int, end: int) -> None:
        """Note what the index has behind the end of the file of a volume."""
        try:
            size = max(self._volumes.size(number), ALIGNMENT)
        except FileNotFoundError:
            return
        noted = max((until for _begin, until in rows.lost_ranges(self._index, number)), default=0)
        if size < end and noted < end:
            self._note_lost(number, size, end)

    def _may_be_torn(self, volume: OpenVolume, position: Position, header: Header) -> bool:
        """Return True if a power cut, or a kill during the write, may have left a record like this.

        Both leave zeros at the end of a sector, or of what the record has of it.
        """
        nonce, known = self._known.get(volume.number, (b"", 0))
        begin = position.unit * ALIGNMENT
        if nonce == volume.nonce and begin < known:
            return False
        data = volume.read(begin, header.total_bytes)
        ends = range(begin // _SECTOR * _SECTOR + _SECTOR - begin, len(data), _SECTOR)
        return len(data) < header.total_bytes or not all(data[end - 1] for end in (*ends, len(data)))

    def _lose_volume(self, number: int, error: Exception) -> None:
        """Note a volume of which nothing can be read."""
        try:
            if not self._volumes.is_file(number):
                self._notice(str(error))
                return
            if self._volumes.is_blank(number):
                return
            size = self._volumes.size(number)
        except FileNotFoundError:
            return
        self._notice(str(error))
        self._note_lost(number, 0, size)

    def _note_lost(self, number: int, begin: int, end: int) -> None:
        """Note that a range of a volume is lost, so that nothing is appended to it."""
        self._said.lost.append((number, begin, end))
        self._said.closed.add(number)
        self._notice(
            f"ERROR records of volume {number} in {self._volumes.directory} are lost, {end - begin} bytes at "
            f"{begin}: objects may be missing or old on this device until replication restores them; see "
            "swift-object-volumes verify"
        )

    def _has_record(self, volume: OpenVolume, offset: int) -> bool:
        found = next(self._volumes.scan(volume, offset // ALIGNMENT, LostRanges().add), None)
        return found is not None and found[0].unit * ALIGNMENT == offset

    def _is_sound(self, volume: OpenVolume, position: Position, header: Header) -> bool:
        offset = position.unit * ALIGNMENT
        try:
            record = StoredRecord(volume, offset, volume.read(offset, header.total_bytes))
            record.body()
        except BadRecord:
            return False
        except OSError as error:
            # It proves nothing; readers of the object get the error.
            only_unreadable(error)
        return True

    def __repr__(self) -> str:
        return f"Recovery({self._volumes!r})"


def has_tail(volume: OpenVolume, end: int) -> bool:
    """Return True if anything but zeros follows the end of the indexed records of a volume."""
    # Each process writes behind the end of the one before, so a tail begins there.
    return any(volume.read(max(end, ALIGNMENT), 4))
