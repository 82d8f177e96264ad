"""Changes of objects on their way into a volume and the index."""

from __future__ import annotations

from dataclasses import dataclass, field

from swift.base.timestamp import ZERO
from swift.store.lmdbindex import Writing
from swift.store.packed import rows
from swift.store.packed.entry import Entry, decode_entries, encode_entries, entry_of
from swift.store.packed.record import ALIGNMENT, Header, Kind, Position, Record, Reference
from swift.store.packed.rows import Spaces


@dataclass(slots=True)
class Update:
    """New entries of an object in one partition."""

    partition: int
    #: Those that stay.
    kept: list[Entry]
    #: Those that go.
    removed: list[Entry] = field(default_factory=list)
    #: True if the record of the change is one more.
    adds: bool = False
    #: Position of the record whose place the record of the change takes; all other entries stay.
    replaces: Position | None = None
    #: True if the record of the change takes the place of those with its name; all other entries stay.
    merges: bool = False


@dataclass(slots=True)
class Change:
    """A record, and what it means for the index."""

    record: Record
    updates: list[Update]
    position: Position = Position(0, 0)
    #: None only once the change is durable and in the index.
    error: Exception | None = None

    @property
    def header(self) -> Header:
        """Header of the record, without lengths and checksums."""
        return self.record.header

    def entry(self) -> Entry:
        """Return the entry of the record, once it has a position."""
        return entry_of(self.record.header, self.position, self.record.total_bytes)


def gone(header: Header, positions: list[Position], kind: Kind = Kind.GONE) -> Record:
    """Return the record that says that records of an object are no longer there, or never were."""
    references = tuple(
        Reference(partition, position)
        for position in positions
        for partition in (header.partition, header.also_partition)
        if partition is not None
    )
    return Record(
        header._replace(
            kind=kind,
            timestamp=ZERO,
            ctype_timestamp=None,
            references=references,
            durable=False,
            external=False,
        )
    )


class LiveBytes:
    """Bytes by which the live records of volumes become more or fewer, and volumes that are closed."""

    def __init__(self) -> None:
        self._bytes: dict[int, int] = {}
        self._closed: dict[int, int] = {}

    def add(self, entry: Entry) -> None:
        """Count a record that became live."""
        volume = entry.position.volume
        self._bytes[volume] = self._bytes.get(volume, 0) + entry.read_bytes

    def remove(self, entry: Entry) -> None:
        """Count a record that died."""
        volume = entry.position.volume
        self._bytes[volume] = self._bytes.get(volume, 0) - entry.read_bytes

    def close(self, volume: int, end: int = 0) -> None:
        """Let nothing more be appended to a volume, nor anything be read of it before an end."""
        self._closed[volume] = max(end, self._closed.get(volume, 0))

    def write(self, writing: Writing, ends: dict[int, int]) -> None:
        """Add it to the rows of the volumes; ``ends`` has new ends of some, bytes."""
        # Files that no record is about yet are in volume 0.
        self._bytes.pop(0, None)
        for volume in self._bytes.keys() | ends.keys() | self._closed.keys():
            row = rows.read_volume(writing, volume)
            live = max(row.live_bytes + self._bytes.get(volume, 0), 0)
            end = max(row.end, ends.get(volume, 0), self._closed.get(volume, 0))
            is_closed = row.is_closed or volume in self._closed
            rows.write_volume(writing, volume, rows.VolumeRow(end, live, is_closed))


def apply(writing: Writing, spaces: Spaces, changes: list[Change], ends: dict[int, int], now_ns: int) -> bool:
    """Put changes whose records are durable into the index.

    Return False if the index believed in a record that does not count: what that made obsolete lacks.
    """
    live_bytes, is_right = LiveBytes(), True
    for change in changes:
        header = change.header
        for update in change.updates:
            if update.replaces is not None or update.merges:
                _replace(writing, spaces, change, update, live_bytes)
                rows.touch_partition(writing, header.policy, update.partition, now_ns)
                continue
            entries = list(update.kept)
            if update.adds:
                entry = change.entry()
                entries.append(entry)
                live_bytes.add(entry)
            for dead in update.removed:
                live_bytes.remove(dead)
            if header.kind is Kind.LINK:
                linked = [each for each in entries if each.position == header.references[0].position]
                for each in linked:
                    live_bytes.add(each)
            key = spaces.make(writing, header.policy, update.partition, header.hash)
            if entries:
                writing.put(key, encode_entries(entries))
            else:
                writing.delete(key)
            rows.touch_partition(writing, header.policy, update.partition, now_ns)
        if header.kind is Kind.UNWANTED:
            is_right = not _remove_references(writing, spaces, header, live_bytes) and is_right
    live_bytes.write(writing, ends)
    return is_right


def _replace(writing: Writing, spaces: Spaces, change: Change, update: Update, live_bytes: LiveBytes) -> None:
    """Put the entry of a copy in the place of that of its original, or of those of its name."""
    header = change.header
    key = spaces.make(writing, header.policy, update.partition, header.hash)
    found = decode_entries(writing.get(key) or b"")
    copy = change.entry()
    dead = [
        entry
        for entry in found
        if (entry.name == copy.name if update.merges else entry.position == update.replaces)
    ]
    if dead or update.merges:
        for entry in dead:
            live_bytes.remove(entry)
        live_bytes.add(copy)
        writing.put(key, encode_entries([*(entry for entry in found if entry not in dead), copy]))


def _remove_references(writing: Writing, spaces: Spaces, header: Header, live_bytes: LiveBytes) -> bool:
    """Take what a record references out of the index; return True if any was there."""
    was_there = False
    for partition, position in header.references:
        # An index made again must not have another record at a position that does not count.
        live_bytes.close(position.volume, (position.unit + 1) * ALIGNMENT)
        rows.set_unwanted(writing, position)
        key = spaces.find(writing, header.policy, partition, header.hash)
        value = None if key is None else writing.get(key)
        if key is None or not value:
            continue
        entries = decode_entries(value)
        kept = [entry for entry in entries if entry.position != position]
        for entry in entries:
            if entry.position == position:
                live_bytes.remove(entry)
        if not kept:
            writing.delete(key)
        elif kept != entries:
            writing.put(key, encode_entries(kept))
        was_there = was_there or kept != entries
    return was_there
