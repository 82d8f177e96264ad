"""Changing one object while holding it: each change is a record, and the entries that it leaves.

``chooser`` decides over the names of the entries what a change makes obsolete, as in the file engine. The
record references what goes, so that an index made from the volumes has the same entries.

A ``PackedEdit`` has all that it decides by in memory, and touches no disk: a committer writes its records. So
it is fit for the event loop. Objects of which a part is a file are changed by ``files.FiledEdit``.
"""

from __future__ import annotations

from swift.base.timestamp import ZERO, Timestamp
from swift.platform.devices import LeastRoom
from swift.store.api import Draft, ObjectState
from swift.store.chooser import choose
from swift.store.core import FileDraft
from swift.store.errors import BadFragmentIndex
from swift.store.layout import data_name
from swift.store.metadata import Metadata, encode_metadata
from swift.store.packed.changes import Change, Update, gone
from swift.store.packed.drafts import PackedDraft
from swift.store.packed.entry import Entry
from swift.store.packed.objects import RecordReader
from swift.store.packed.place import NOWHERE, Place
from swift.store.packed.record import Header, Kind, Record, Reference

#: Room that bodies leave to deletions, metadata, the index and updates of containers that wait.
KEPT_FREE = LeastRoom(size_bytes=64 << 20, inodes=1000, parts=64)


class PackedEdit:
    """``Edit`` of records, of an object that is locked already; a context manager."""

    __slots__ = ("state", "_entries", "_place", "_reader")

    def __init__(
        self, place: Place, reader: RecordReader, entries: dict[int, list[Entry]], state: ObjectState
    ):
        self.state = state
        self._place = place
        self._reader = reader
        #: Entries by partition, which only this edit changes: the object's own, then that after an increase.
        self._entries = entries

    def __enter__(self) -> PackedEdit:
        return self

    def __exit__(self, *_args: object) -> None:
        self._place.device.locks.release(self._place.lock)

    # --- changes -------------------------------------------------------------------------------------

    def draft(self, size: int | None, *, etag: str = "") -> PackedDraft:
        """Return a new body in memory, if there is room for it. Raises ``NoSpace``."""
        return new_draft(self._place, size, etag=etag)

    def put(
        self, draft: Draft, timestamp: Timestamp, metadata: Metadata, *, fragment: int | None = None
    ) -> None:
        """Store a body that is in memory."""
        assert isinstance(draft, PackedDraft)
        if draft.file is not None:
            raise ValueError("a body in a file takes the edit of a call that may block")
        header = self._data_header(timestamp, fragment)
        self._change(Record(header, encode_metadata(metadata), draft.body), cleans=self._cleans_at_put)
        draft.release()

    @property
    def _cleans_at_put(self) -> bool:
        """True if a body makes others obsolete before it is committed."""
        return self._place.key.policy.ec is None

    def _data_header(self, timestamp: Timestamp, fragment: int | None) -> Header:
        ec = self._place.key.policy.ec
        if ec is not None and (fragment is None or not 0 <= fragment < ec.fragments):
            raise BadFragmentIndex(f"fragment index {fragment} is not below {ec.fragments}")
        header = self._place.header(Kind.DATA, timestamp)
        return header if ec is None else header._replace(fragment=fragment)

    def commit(self, timestamp: Timestamp, fragment: int) -> None:
        """Make a fragment archive durable."""
        place = self._place
        if self._archives(timestamp, fragment):
            header = place.header(Kind.COMMIT, timestamp)._replace(fragment=fragment)
            self._change(Record(header), commits=True)
            return
        entries = self._entries[place.partition]
        if not _is_superseded(place, entries, timestamp):
            raise FileNotFoundError(data_name(timestamp, fragment))
        obsolete = place.obsolete(entries, self._reader)
        if obsolete:
            self._remove(place.partition, obsolete)

    def _archives(self, timestamp: Timestamp, fragment: int) -> list[Entry]:
        known = self._entries[self._place.partition]
        return [each for each in known if each.is_archive(timestamp, fragment)]

    def abort(self, timestamp: Timestamp, fragment: int) -> None:
        """Remove an archive that is not durable."""
        meant = [each for each in self._archives(timestamp, fragment) if not each.durable]
        if meant:
            self._remove(self._place.partition, meant)

    def post(self, timestamp: Timestamp, ctype_timestamp: Timestamp | None, metadata: Metadata) -> None:
        """Store metadata beside the body."""
        header = self._place.header(Kind.META, timestamp)._replace(ctype_timestamp=ctype_timestamp)
        self._store_metadata(header, metadata)

    def delete(self, timestamp: Timestamp) -> None:
        """Store a tombstone."""
        path = self._place.key.path
        name = f"/{path.account}/{path.container}/{path.obj}"
        metadata = {"X-Timestamp": timestamp.internal, "name": name}
        self._store_metadata(self._place.header(Kind.TOMBSTONE, timestamp), metadata)

    def _store_metadata(self, header: Header, metadata: Metadata) -> None:
        self._change(Record(header, encode_metadata(metadata)))

    # --- steps ---------------------------------------------------------------------------------------

    def _remove(self, partition: int, entries: list[Entry]) -> Update:
        """Commit the removal of entries."""
        change = removal(self._place, partition, entries, self._entries[partition])
        self._place.device.commit(change)
        self._entries[partition] = change.updates[0].kept
        return change.updates[0]

    def _change(self, record: Record, *, cleans: bool = True, commits: bool = False) -> None:
        """Commit a record with what it makes obsolete, here and in the partition after an increase."""
        self._commit_updates(record, self._updates(record.header, cleans=cleans, commits=commits), commits)

    def _updates(self, header: Header, *, cleans: bool, commits: bool) -> list[Update]:
        return [self._update(each, header, cleans=cleans, commits=commits) for each in self._entries]

    def _commit_updates(self, record: Record, updates: list[Update], commits: bool) -> bool:
        """Commit a record; return False if it is obsolete already, but what it makes obsolete goes."""
        if not commits and not any(update.adds for update in updates):
            for update in updates:
                if update.removed:
                    self._remove(update.partition, update.removed)
            return False
        references = [Reference(each.partition, entry.position) for each in updates for entry in each.removed]
        also = updates[1].partition if len(updates) > 1 else None
        header = record.header._replace(references=tuple(references), also_partition=also)
        change = Change(record._replace(header=header), updates)
        self._place.device.commit(change)
        for update in updates:
            self._entries[update.partition] = [*update.kept, change.entry()] if update.adds else update.kept
        return True

    def _update(self, partition: int, header: Header, *, cleans: bool, commits: bool) -> Update:
        entries = self._entries[partition]
        if commits:
            kept = [
                each._replace(durable=True) if each.is_archive(header.timestamp, header.fragment) else each
                for each in entries
            ]
            obsolete = self._place.obsolete(kept, self._reader) if cleans else []
            return Update(partition, [each for each in kept if each not in obsolete], obsolete)
        new = Entry(
            header.kind,
            header.timestamp,
            NOWHERE,
            0,
            header.fragment,
            header.durable,
            header.external,
            header.ctype_timestamp,
        )
        if not entries and header.kind is Kind.DATA:
            return Update(partition, [], adds=True)
        # A record of the same name takes the place of the one before.
        kept = [each for each in entries if each.name != new.name]
        removed = [each for each in entries if each.name == new.name]
        if not cleans:
            return Update(partition, kept, removed, adds=True)
        obsolete = self._place.obsolete([*kept, new], self._reader)
        removed += [each for each in obsolete if each is not new]
        kept = [each for each in kept if each not in obsolete]
        return Update(partition, kept, removed, adds=new not in obsolete)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._place.key.hash} {self.state.kind}>"


def _is_superseded(place: Place, entries: list[Entry], timestamp: Timestamp) -> bool:
    choice = choose([entry.name for entry in entries], place.key.policy.ec)
    if choice.tombstone is not None and choice.tombstone.timestamp > timestamp:
        return True
    return choice.durable_timestamp is not None and choice.durable_timestamp >= timestamp


def partitions_of(place: Place, next_part_power: int | None) -> list[int]:
    """Return the partitions in which an object is changed: its own, and that after an increase."""
    if next_part_power is None:
        return [place.partition]
    target = int(place.key.hash[:8], 16) >> (32 - next_part_power)
    return [place.partition] if target == place.partition else [place.partition, target]


def new_draft(place: Place, size: int | None, *, etag_follows: bool = False, etag: str = "") -> PackedDraft:
    """Return a draft for an object. Raises ``NoSpace``, OSError."""
    core = place.core
    core.space.check(place.device.path, size, least=KEPT_FREE)

    def make_file() -> FileDraft:
        return core.draft(core.object_path(place.key), size, etag_follows=etag_follows, etag=etag)

    size_max = place.device.object_bytes_max(place.key.policy.index)
    return PackedDraft(size, size_max, make_file, etag_follows=etag_follows, etag=etag)


def removal(place: Place, partition: int, entries: list[Entry], known: list[Entry]) -> Change:
    """Return the change that removes some of the ``known`` entries of an object; their files stay."""
    left = [entry for entry in known if entry not in entries]
    header = place.header(Kind.GONE, ZERO)._replace(partition=partition)
    return Change(gone(header, [entry.position for entry in entries]), [Update(partition, left, entries)])
