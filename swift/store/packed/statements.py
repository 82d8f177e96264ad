"""Statements of records, gathered until all of them can be put into the index.

Records are indexed in any order: which of them are dead is said by the references of others, and which of the
living count by their times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from swift.platform.disk import Disk
from swift.store.errors import Damaged
from swift.store.lmdbindex import Index, Writing
from swift.store.packed import rows
from swift.store.packed.changes import LiveBytes
from swift.store.packed.confirmation import begin as begin_unconfirmed
from swift.store.packed.entry import Entry, decode_entries, encode_entries, entry_of
from swift.store.packed.record import ALIGNMENT, BadRecord, Header, Kind, Position, padded
from swift.store.packed.rows import Spaces
from swift.store.packed.volumes import Volumes, only_unreadable

#: Records that are put into the index at a time.
BATCH = 20_000
_WITH_ENTRY = (Kind.DATA, Kind.META, Kind.TOMBSTONE)


class _Place(NamedTuple):
    """An object in a partition; sorted as in the index, nearly."""

    hash: bytes
    partition: int
    policy: int


class Statements:
    """Statements of the records of a device. Raises ``IndexFailed``, OSError."""

    def __init__(
        self, disk: Disk, volumes: Volumes, index: Index, spaces: Spaces, never: Iterable[Position] = ()
    ):
        """Take positions of records that do not count although no record says so yet."""
        self._disk = disk
        self._volumes = volumes
        self._index = index
        self._spaces = spaces
        self._entries: list[tuple[_Place, Entry]] = []
        #: Statements about others, each with the position of the record that makes it.
        self._gone: list[tuple[Position, _Place, Position]] = []
        self._commits: list[tuple[Position, _Place, Header]] = []
        self._links: list[tuple[Position, _Place, Header]] = []
        #: Records that do not count, nor what they say; of objects, because another device's volume that was
        #: copied to this one speaks of other records.
        self._never: set[tuple[Position, bytes]] = set()
        self._never_mine = set(never)
        #: Those of them of which a record says so.
        self._refused: set[tuple[Position, bytes]] = set()
        #: Ends of the indexed records of volumes, bytes.
        self.ends: dict[int, int] = {}
        #: Volumes with something that does not count.
        self.closed: set[int] = set()
        #: Ranges whose records are not indexed: volume, begin and end.
        self.lost: list[tuple[int, int, int]] = []
        #: The highest number of a volume that a record speaks of.
        self.referenced = 0

    def may_count(self, position: Position, object_hash: bytes) -> bool:
        """Return True unless a record of this object at a position never counted."""
        return position not in self._never_mine and (position, object_hash) not in self._never

    def _is_of_another(self, position: Position, object_hash: bytes) -> bool:
        """Return True if there is a sound record of another object."""
        header = self._header_at(position)
        return header is not None and header.hash != object_hash

    def _header_at(self, position: Position) -> Header | None:
        """Return the header of a record, None if it is gone, damaged or unreadable."""
        try:
            return self._volumes.read(position, 0).header
        except (BadRecord, FileNotFoundError, Damaged):
            return None
        except OSError as error:
            # The scan of its volume noted it.
            only_unreadable(error)
            return None

    def take_all(self, records: Iterable[tuple[Position, Header]]) -> None:
        """Take what some records say."""
        for position, header in records:
            self._take(position, header)

    def _take(self, position: Position, header: Header) -> None:
        if not self.may_count(position, header.hash):
            return
        places = [_Place(header.hash, partition, header.policy) for partition in header.partitions]
        for reference in header.references:
            self.referenced = max(self.referenced, reference.position.volume)
            if header.kind is not Kind.LINK:
                place = _Place(header.hash, reference.partition, header.policy)
                self._gone.append((position, place, reference.position))
            if header.kind is Kind.UNWANTED:
                self._never.add((reference.position, header.hash))
                self._refused.add((reference.position, header.hash))
                self.closed.add(reference.position.volume)
        if header.kind in _WITH_ENTRY:
            entry = entry_of(header, position, padded(header.total_bytes))
            self._entries.extend((place, entry) for place in places)
        elif header.kind is Kind.COMMIT:
            self._commits.extend((position, place, header) for place in places)
        elif header.kind is Kind.LINK:
            self._links.append((position, places[0], header))
        if len(self._entries) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Put the entries that were found into the index."""
        entries, self._entries = sorted(self._entries, key=_place_of), []
        if not entries:
            return
        live_bytes, now_ns = LiveBytes(), self._disk.now_ns()
        with self._index.writing() as writing:
            for place, entry in entries:
                self._add(writing, place, entry, live_bytes)
            for policy, partition in {(place.policy, place.partition) for place, _entry in entries}:
                rows.touch_partition(writing, policy, partition, now_ns)
            live_bytes.write(writing, {})

    def _add(self, writing: Writing, place: _Place, entry: Entry, live_bytes: LiveBytes) -> None:
        key = self._spaces.make(writing, place.policy, place.partition, place.hash)
        value = writing.get(key)
        entries = decode_entries(value) if value else []
        if all(each.position != entry.position for each in entries):
            writing.put(key, encode_entries([*entries, entry]))
            live_bytes.add(entry)

    def finish(self) -> None:
        """Apply what records say about others, now that all of those are in the index."""
        live_bytes, mark = LiveBytes(), b""
        if any(end > ALIGNMENT for _number, _begin, end in self.lost):
            mark = begin_unconfirmed(self._disk, self._volumes.directory)
        with self._index.writing() as writing:
            for source, place, header in self._links:
                if self.may_count(source, place.hash):
                    self._link(writing, place, header, live_bytes)
            # Before others are gone: an archive that was purged may have come again without its commit.
            for source, place, header in self._commits:
                if self.may_count(source, place.hash):
                    meant = self._committed_by(writing, place, header)
                    self._change(writing, place, partial(_durable_at, meant), live_bytes)
            for source, place, position in self._gone:
                if self.may_count(source, place.hash):
                    self._change(writing, place, partial(_unless_at, position), live_bytes)
            numbers = self._volumes.numbers()
            for number in self.closed.intersection(numbers):
                live_bytes.close(number)
            for position, object_hash in self._refused:
                if position.volume in numbers and not self._is_of_another(position, object_hash):
                    rows.set_unwanted(writing, position)
            live_bytes.write(writing, self.ends)
            if mark:
                rows.set_unconfirmed(writing, mark)
            for number, begin, end in self.lost:
                if number in numbers:
                    rows.set_lost(writing, number, begin, end)
        self.lost = []
        self._gone, self._commits, self._links, self.ends = [], [], [], {}
        self.closed.clear()
        self._refused.clear()

    def _link(self, writing: Writing, place: _Place, header: Header, live_bytes: LiveBytes) -> None:
        for reference in header.references:
            if not self.may_count(reference.position, header.hash):
                continue
            linked = self._header_at(reference.position)
            if linked is None:
                # It was superseded and compacted, or cannot be read.
                continue
            entry = entry_of(linked, reference.position, padded(linked.total_bytes))
            self._add(writing, place, entry._replace(durable=linked.durable or header.durable), live_bytes)

    def _committed_by(self, writing: Writing, place: _Place, header: Header) -> set[Position]:
        """Return the positions of the archives that a commit is about.

        Of several of the same time and index, a commit is about those that were written before it.
        """
        key = self._spaces.find(writing, place.policy, place.partition, place.hash)
        entries = decode_entries((writing.get(key) if key else None) or b"")
        meant = [entry for entry in entries if entry.is_archive(header.timestamp, header.fragment)]
        if len(meant) > 1:
            before = [each for each in meant if self._written_ns(each) <= header.written_ns]
            meant = before or meant
        return {entry.position for entry in meant}

    def _written_ns(self, entry: Entry) -> int:
        header = self._header_at(entry.position)
        return 0 if header is None else header.written_ns

    def _change(
        self, writing: Writing, place: _Place, change: Callable[[Entry], Entry | None], live_bytes: LiveBytes
    ) -> None:
        key = self._spaces.find(writing, place.policy, place.partition, place.hash)
        value = None if key is None else writing.get(key)
        if key is None or not value:
            return
        entries, kept = decode_entries(value), []
        for entry in entries:
            changed = change(entry)
            if changed is None:
                live_bytes.remove(entry)
            else:
                kept.append(changed)
        if not kept:
            writing.delete(key)
        elif kept != entries:
            writing.put(key, encode_entries(kept))

    def __repr__(self) -> str:
        return f"Statements({self._volumes!r})"


def _place_of(found: tuple[_Place, Entry]) -> _Place:
    return found[0]


def _unless_at(position: Position, entry: Entry) -> Entry | None:
    return None if entry.position == position else entry


def _durable_at(positions: set[Position], entry: Entry) -> Entry:
    return entry._replace(durable=True) if entry.position in positions else entry
