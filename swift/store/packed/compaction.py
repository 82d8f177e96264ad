"""Returning the space of dead records: holes in large ones, and volumes that are written anew.

Compaction copies the live records of a volume to others and removes it. A copy references the record that it
is of, so an index made in between has one of them. References of dead records have to outlive them for as
long as the volumes they point into: until then only they say that something there is dead.

Before the volume of the highest number is removed another one is begun: numbers must not come again while
references exist.

The index tells what is dead. Holes are made and volumes removed only if all volumes agree with it
(``agreement``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from swift.base.timestamp import ZERO
from swift.platform.devices import LeastRoom, SpaceGuard
from swift.platform.disk import Disk
from swift.platform.syncing import sync_directory
from swift.store.errors import Damaged
from swift.store.lmdbindex import Index, Writing
from swift.store.packed import rows
from swift.store.packed.changes import Change, Update
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import EXPLICIT, Entry
from swift.store.packed.lost import LostRanges
from swift.store.packed.record import ALIGNMENT, BadRecord, Header, Kind, Position, Record, Reference, padded
from swift.store.packed.rows import Spaces
from swift.store.packed.volumes import OpenVolume, StoredRecord, only_unreadable

#: Called with the number of bytes that were just read or written, to slow a compaction down.
Pace = Callable[[int], None]
#: Records that are copied together, and bytes of them.
BATCH_RECORDS = 64
BATCH_BYTES = 8 << 20
#: Dead bodies from this size on become holes, bytes.
HOLE_BYTES_MIN = 32 << 10
#: Room that copies leave to deletions: less than what bodies leave, so that some volumes can be copied.
KEPT_FREE = LeastRoom(size_bytes=16 << 20, inodes=0, parts=256)
_BLOCK = 4096
_WITH_ENTRY = (Kind.DATA, Kind.META, Kind.TOMBSTONE)


class Spot(NamedTuple):
    """A partition in which the index has a record, with all entries of the object there."""

    partition: int
    entries: list[Entry]


@dataclass(slots=True)
class VolumeUse:
    """Space of one volume, bytes."""

    number: int
    end: int
    live: int
    #: Of ranges whose records could not be indexed.
    lost: int = 0

    @property
    def dead(self) -> int:
        """Bytes that compaction would return, roughly: sizes of live records are rounded up."""
        return max(self.end - ALIGNMENT - self.live, 0)


@dataclass(slots=True)
class CompactionReport:
    """Result of a compaction."""

    copied: int = 0
    copied_bytes: int = 0
    #: True if the volume is gone.
    is_removed: bool = False
    #: Reason why it is not.
    reason: str = ""


def volume_uses(device: PackedDevice) -> list[VolumeUse]:
    """Return the use of all volumes by number. Raises OSError."""
    known = device.read_index(lambda index, _spaces: rows.volumes(index))
    lost = device.read_index(lambda index, _spaces: rows.lost_bytes(index))
    return [
        VolumeUse(number, row.end, row.live_bytes, lost.get(number, 0))
        for number, row in sorted(known.items())
    ]


class Compactor:
    """Compacts the volumes of one device. Raises OSError."""

    def __init__(self, disk: Disk, device: PackedDevice, pace: Pace = lambda _count: None):
        self._disk = disk
        self._device = device
        self._pace = pace
        self._explicit: dict[tuple[int, bytes], set[int]] = {}
        self.look()

    def compact(self, number: int, *, accepts_loss: bool = False) -> CompactionReport:
        """Copy what lives in a volume to others and remove it.

        A volume that a process appends to stays; so does one with lost ranges, unless ``accepts_loss``.
        Raises ``NoSpace``, OSError.
        """
        report = CompactionReport()
        known = self._device.read_index(lambda index, _spaces: rows.lost_ranges(index, number))
        if not accepts_loss and any(end > ALIGNMENT for _begin, end in known):
            report.reason = _loss(known)
            return report
        report.reason = self._why_unopened(number)
        if report.reason:
            if accepts_loss:
                self._remove_empty(number, report, self._device.index, accepts_loss=True)
            return report
        report.reason, index = self._device.agreement.objection(), self._device.index
        if report.reason:
            # By another index all of it would be copied for nothing.
            return report
        volume = self._lock(number, report)
        if volume is None:
            return report
        # Records that never count: what they say of others is wrong.
        refused = self._device.read_index(lambda index, _spaces: rows.unwanted_units(index, number))
        row = self._device.read_index(lambda index, _spaces: rows.read_volume(index, number))
        tail = self._device.volumes.scan(volume, row.end // ALIGNMENT, LostRanges().add)
        if any(at.unit not in refused and header.kind is not Kind.UNWANTED for at, header in tail):
            report.reason = "the index does not have all of its records"
            return report
        # Copied in part it would return nothing, and leave no room to deletions.
        SpaceGuard(self._disk, None).check(self._device.path, row.live_bytes, least=KEPT_FREE)
        self.look()
        ranges = self._copy_all(volume, refused, report)
        if ranges and not accepts_loss:
            # Else each pass would read all of it and write its references again; now the health report tells.
            self._device.change_index(partial(_set_lost, number, ranges))
            report.reason = report.reason or _loss(ranges)
        if not report.reason:
            self._remove_empty(number, report, index, accepts_loss=accepts_loss)
        return report

    def _why_unopened(self, number: int) -> str:
        """Return the reason for which a volume cannot be opened; empty if it can."""
        try:
            self._device.volumes.open_anew(number)
        except FileNotFoundError:
            return "it is gone"
        except Damaged as error:
            return str(error)
        return ""

    def _lock(self, number: int, report: CompactionReport) -> OpenVolume | None:
        """Return a locked volume; None with a reason if it must stay as it is, whatever loss is accepted."""
        volume = self._device.volumes.lock(number)
        if volume is None:
            report.reason = "a process appends to it; compact it when the process has filled or closed it"
        elif self._device.session.is_foreign(volume):
            report.reason = "it is not the volume that was indexed"
            return None
        return volume

    def _copy_all(
        self, volume: OpenVolume, refused: set[int], report: CompactionReport
    ) -> list[tuple[int, int]]:
        """Write what has to stay of a volume to others; return the ranges in which there may be more."""
        batch: list[tuple[Position, Header]] = []
        size, torn_from = 0, 0
        lost = LostRanges()
        for position, header in self._device.volumes.scan(volume, 0, lost.add):
            lost.pass_record(position, header)
            torn_from = header.batch_unit * ALIGNMENT
            self._pace(header.total_bytes)
            if position.unit in refused:
                continue
            batch.append((position, header))
            size += header.total_bytes
            if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
                self._copy(volume, batch, report)
                batch, size = [], 0
        self._copy(volume, batch, report)
        return lost.merged(torn_from)

    def _remove_empty(
        self, number: int, report: CompactionReport, index: Index, *, accepts_loss: bool
    ) -> None:
        """Remove a volume in which nothing lives any more by an index; set the reason if something does."""
        row = self._device.read_index(lambda index, _spaces: rows.read_volume(index, number))
        if row.live_bytes:
            report.reason = (
                f"the index has {row.live_bytes} bytes there that were not found; see "
                "swift-object-volumes verify"
            )
            return
        self._device.writer.begin_volume_above(number)
        besides = number if accepts_loss else None
        report.reason = self._device.agreement.objection(index, besides=besides)
        if report.reason:
            return
        self._remove(number)
        report.is_removed = True

    def punch(self, number: int) -> int:
        """Make holes of the bodies of large dead records; return their bytes. Raises OSError."""
        self.look()
        try:
            volume = self._device.volumes.open(number)
        except Damaged:
            # Its creation was cut short, or nothing is known of what is in it.
            return 0
        last_batch, index = -1, self._device.index
        large: list[tuple[Position, Header]] = []
        for position, header in self._device.volumes.scan(volume, 0, LostRanges().add):
            self._pace(header.total_bytes)
            last_batch = header.batch_unit
            if header.body_bytes >= HOLE_BYTES_MIN and header.kind is Kind.DATA:
                large.append((position, header))
        # The last batch may not be indexed yet, and is believed only with its bodies.
        dead = [
            (position, header)
            for position, header in large
            if header.batch_unit != last_batch and not any(self.spots(position, header))
        ]
        if not dead or self._device.agreement.objection(index) or self._device.session.is_foreign(volume):
            return 0
        punched = 0
        for position, header in dead:
            begin = position.unit * ALIGNMENT + header.prefix_bytes
            first = -(-begin // _BLOCK) * _BLOCK
            length = (begin + header.body_bytes) // _BLOCK * _BLOCK - first
            if length > 0:
                self._disk.punch_hole(volume.fd, first, length)
                punched += length
        return punched

    # --- copying -------------------------------------------------------------------------------------

    def _copy(
        self, volume: OpenVolume, records: list[tuple[Position, Header]], report: CompactionReport
    ) -> None:
        """Write what has to stay of records to other volumes, in one batch."""
        locks = sorted({int.from_bytes(header.hash[:7], "big") for _position, header in records})
        with ExitStack() as held:
            for lock in locks:
                held.enter_context(self._device.holding(lock))
            changes: list[Change] = []
            for position, header in records:
                change = self._successor(volume, position, header, report)
                if change is not None:
                    changes.append(change)
            self._device.commit_all(changes)
        for change in changes:
            report.copied += 1
            report.copied_bytes += change.record.total_bytes
            self._pace(change.record.total_bytes)

    def _successor(
        self, volume: OpenVolume, position: Position, header: Header, report: CompactionReport
    ) -> Change | None:
        """Return the change that takes the place of a record; None if nothing has to stay of it."""
        kept = self._needed(header.references, position.volume)
        if header.kind in _WITH_ENTRY:
            spots = list(self.spots(position, header))
            if spots:
                return self._moved(volume, position, header, spots, kept, report)
        elif (
            header.kind is Kind.COMMIT
            and self._is_commit_needed(header, position.volume)
            or header.kind is Kind.LINK
            and kept
            and self._is_link_needed(header)
        ):
            return Change(Record(header._replace(references=kept)), [])
        if not kept or header.kind is Kind.LINK:
            return None
        kind = Kind.UNWANTED if header.kind is Kind.UNWANTED else Kind.GONE
        plain = header._replace(
            kind=kind, timestamp=ZERO, ctype_timestamp=None, references=kept, durable=False, external=False
        )
        return Change(Record(plain), [])

    def _moved(
        self,
        volume: OpenVolume,
        position: Position,
        header: Header,
        spots: list[Spot],
        kept: tuple[Reference, ...],
        report: CompactionReport,
    ) -> Change | None:
        offset = position.unit * ALIGNMENT
        try:
            record = StoredRecord(volume, offset, volume.read(offset, padded(header.total_bytes)))
            body = record.body()
        except BadRecord as error:
            # The auditor quarantines it; until then the volume stays.
            report.reason = f"the record at {position.unit} is damaged: {error}"
            return None
        except OSError as error:
            report.reason = f"the record at {position.unit} cannot be read: {only_unreadable(error)}"
            return None
        old = [Reference(spot.partition, position) for spot in spots]
        durable = any(each.durable for spot in spots for each in spot.entries if each.position == position)
        first, *others = spots
        moved = header._replace(
            partition=first.partition,
            also_partition=others[0].partition if others else None,
            durable=durable,
            references=(*old, *kept),
        )
        updates = [Update(spot.partition, [], replaces=position) for spot in spots]
        if len(spots) > 2:
            report.reason = f"the record at {position.unit} is in {len(spots)} partitions"
            return None
        return Change(Record(moved, record.metadata, body), updates)

    def _needed(self, references: tuple[Reference, ...], own: int) -> tuple[Reference, ...]:
        """Return the references to volumes that are there and stay there."""
        numbers = self._numbers()
        return tuple(
            each for each in references if each.position.volume != own and each.position.volume in numbers
        )

    def _numbers(self) -> set[int]:
        return set(self._device.volumes.numbers())

    def _is_commit_needed(self, header: Header, own: int) -> bool:
        """Return True if an archive is durable only because of this record."""
        # One that came again without its commit is another archive.
        return any(
            entry.is_archive(header.timestamp, header.fragment)
            and entry.durable
            and entry.position.volume != own
            for partition in header.partitions
            for entry in self._device.entries(header.policy, partition, header.hash)
        )

    def _is_link_needed(self, header: Header) -> bool:
        """Return True if the index has what a record links."""
        entries = self._device.entries(header.policy, header.partition, header.hash)
        return any(entry.position == header.references[0].position for entry in entries)

    # --- places --------------------------------------------------------------------------------------

    def look(self) -> None:
        """Learn which objects are in partitions that their hashes do not begin with. Raises OSError."""
        self._explicit = self._explicit_places()

    def spots(self, position: Position, header: Header) -> Iterator[Spot]:
        """Yield the partitions in which the index has a record."""
        for partition in self._partitions(header):
            entries = self._device.entries(header.policy, partition, header.hash)
            if any(entry.position == position for entry in entries):
                yield Spot(partition, entries)

    def _partitions(self, header: Header) -> list[int]:
        """Return the partitions in which an object may be."""
        number = int.from_bytes(header.hash, "big")
        found = set(header.partitions)
        for _prefix, bits in self._device.read_index(
            lambda index, spaces: spaces.of_policy(index, header.policy)
        ):
            if bits == 0:
                found.add(0)
            elif bits != EXPLICIT:
                found.add(number >> (128 - bits))
        found |= self._explicit.get((header.policy, header.hash), set())
        return sorted(found)

    def _explicit_places(self) -> dict[tuple[int, bytes], set[int]]:
        """Return the objects that are in partitions which their hashes do not begin with; normally none."""
        found: dict[tuple[int, bytes], set[int]] = {}
        for policy, prefix in self._device.read_index(lambda index, _spaces: rows.explicit_spaces(index)):
            begin, end = bytes((prefix,)), bytes((prefix + 1,))
            while some := self._device.read_index(partial(_items, begin, end)):
                for key, _value in some:
                    partition = int.from_bytes(key[1:5], "big")
                    found.setdefault((policy, key[5:]), set()).add(partition)
                begin = some[-1][0] + b"\0"
        return found

    def _remove(self, number: int) -> None:
        """Remove a volume from which everything was copied. Raises OSError."""
        device = self._device
        # A volume without a row would be taken for one that was never indexed.
        self._disk.unlink(device.volumes.path(number))
        sync_directory(self._disk, device.volumes.directory)
        device.change_index(lambda writing: rows.delete_volume(writing, number))
        device.volumes.forget(number)

    def __repr__(self) -> str:
        return f"Compactor({self._device!r})"


def _loss(ranges: list[tuple[int, int]]) -> str:
    """Return the reason for which a volume with lost ranges stays."""
    count = sum(end - begin for begin, end in ranges)
    return (
        f"{count} bytes at {ranges[0][0]} have no record that can be read; when the objects are whole "
        "elsewhere, remove it with swift-object-volumes compact --accept-loss"
    )


def _set_lost(number: int, ranges: list[tuple[int, int]], writing: Writing) -> None:
    for begin, end in ranges:
        rows.set_lost(writing, number, begin, end)


def _items(begin: bytes, end: bytes, index: Index, _spaces: Spaces) -> list[tuple[bytes, bytes]]:
    return index.items(begin, end, rows.SOME)
