"""Changing one object while holding it: each change is a record, and the entries that it leaves.

``chooser`` decides over the names of the entries what a change makes obsolete, as in the file engine. The
record references what goes, so that an index made from the volumes has the same entries.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from swift.base.timestamp import ZERO, Timestamp
from swift.platform.devices import LeastRoom
from swift.platform.durable import make_directories, publish, rename_durably
from swift.platform.locks import lock_directory
from swift.platform.syncing import moments, sync_directory
from swift.platform.waiting import before_blocking
from swift.store.api import Draft, ObjectState
from swift.store.chooser import choose, remove_if_empty
from swift.store.core import TRIES, FileDraft
from swift.store.errors import BadFragmentIndex, FilesChanged
from swift.store.layout import ObjectPath, data_name
from swift.store.metadata import Metadata, encode_metadata
from swift.store.packed.changes import Change, Update
from swift.store.packed.device import gone
from swift.store.packed.drafts import PackedDraft
from swift.store.packed.entry import Entry
from swift.store.packed.objects import PackedLoaded, Reader
from swift.store.packed.place import NOWHERE, Place
from swift.store.packed.record import Header, Kind, Record, Reference

#: Room that bodies leave to deletions, metadata, the index and updates of containers that wait.
KEPT_FREE = LeastRoom(size_bytes=64 << 20, inodes=1000, parts=64)


class PackedEdit:
    """``Edit`` of the packed engine; a context manager. ``load`` merges the entries of the place."""

    __slots__ = ("state", "_entries", "_is_held", "_load", "_next_partition", "_place", "_reader")

    def __init__(
        self,
        place: Place,
        reader: Reader,
        load: Callable[[list[Entry]], PackedLoaded],
        next_part_power: int | None,
    ):
        self.state = ObjectState()
        self._place = place
        self._reader = reader
        self._load = load
        self._is_held = False
        #: Partition → entries of the object, which only this edit changes.
        self._entries: dict[int, list[Entry]] = {}
        self._next_partition: int | None = None
        if next_part_power is not None:
            target = int(place.key.hash[:8], 16) >> (32 - next_part_power)
            if target != place.partition:
                self._next_partition = target

    def __enter__(self) -> PackedEdit:
        self._place.device.locks.acquire(self._place.lock)
        self._is_held = True
        try:
            for partition in self._partitions():
                self._entries[partition] = adopt(self._place, partition)
            loaded = self._load(self._entries[self._place.partition])
            self.state = loaded.state
            self._entries[self._place.partition] = loaded.entries
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_args: object) -> None:
        if self._is_held:
            self._is_held = False
            self._place.device.locks.release(self._place.lock)

    # --- changes -------------------------------------------------------------------------------------

    def draft(self, size: int | None, *, etag: str = "") -> PackedDraft:
        """See ``Edit``."""
        return new_draft(self._place, size, etag=etag)

    def put(
        self, draft: Draft, timestamp: Timestamp, metadata: Metadata, *, fragment: int | None = None
    ) -> None:
        """See ``Edit``."""
        assert isinstance(draft, PackedDraft)
        ec = self._place.key.policy.ec
        if ec is not None and (fragment is None or not 0 <= fragment < ec.fragments):
            raise BadFragmentIndex(f"fragment index {fragment} is not below {ec.fragments}")
        at = fragment if ec is not None else None
        if draft.may_block(0):
            before_blocking()
        header = self._place.header(Kind.DATA, timestamp)._replace(fragment=at)
        if draft.file is None and self._place.device.conversion.keeps_as_files(self._place.key.policy.index):
            # It began when objects were packed.
            before_blocking()
            draft.become_file()
        file = draft.file
        if file is None:
            self._change(Record(header, encode_metadata(metadata), draft.body), cleans=ec is None)
            return
        file.finish(metadata)
        publish_file(self._place, file, data_name(timestamp, at))
        if self._next_partition is not None:
            link_file(self._place, data_name(timestamp, at), self._next_partition)
        # The record comes after the file: what a power cut leaves of both is an orphan at worst.
        self._change(Record(header._replace(external=True)), cleans=ec is None)
        file.drop()
        file.discard()

    def commit(self, timestamp: Timestamp, fragment: int) -> None:
        """See ``Edit``."""
        place = self._place
        entries = self._known(place.partition)
        meant = [each for each in entries if _is_archive(each, timestamp, fragment)]
        if not meant:
            if not _is_superseded(place, entries, timestamp):
                raise FileNotFoundError(data_name(timestamp, fragment))
            self._clean(place.header(Kind.GONE, ZERO))
            return
        if meant[0].external and not meant[0].durable:
            before_blocking()
            for partition in self._partitions():
                rename_file(place, partition, meant[0].name, data_name(timestamp, fragment, durable=True))
        header = place.header(Kind.COMMIT, timestamp)._replace(fragment=fragment)
        self._change(Record(header), commits=True)

    def abort(self, timestamp: Timestamp, fragment: int) -> None:
        """See ``Edit``."""
        meant = [
            each
            for each in self._known(self._place.partition)
            if _is_archive(each, timestamp, fragment) and not each.durable
        ]
        if meant:
            self._remove(self._place.partition, meant)

    def post(self, timestamp: Timestamp, ctype_timestamp: Timestamp | None, metadata: Metadata) -> None:
        """See ``Edit``."""
        header = self._place.header(Kind.META, timestamp)._replace(ctype_timestamp=ctype_timestamp)
        self._store_metadata(header, metadata)

    def delete(self, timestamp: Timestamp) -> None:
        """See ``Edit``."""
        path = self._place.key.path
        name = f"/{path.account}/{path.container}/{path.obj}"
        metadata = {"X-Timestamp": timestamp.internal, "name": name}
        self._store_metadata(self._place.header(Kind.TOMBSTONE, timestamp), metadata)

    def _store_metadata(self, header: Header, metadata: Metadata) -> None:
        place = self._place
        if place.device.object_bytes_max(place.key.policy.index) < 0:
            before_blocking()
            write_file(place, self._partitions(), header.name, metadata)
            self._change(Record(header._replace(external=True)))
        else:
            self._change(Record(header, encode_metadata(metadata)))

    # --- steps ---------------------------------------------------------------------------------------

    def _partitions(self) -> list[int]:
        """Return the partitions in which the object is changed."""
        also = self._next_partition
        return [self._place.partition] if also is None else [self._place.partition, also]

    def _known(self, partition: int) -> list[Entry]:
        """Return the entries of the object, read once for each change."""
        entries = self._entries.get(partition)
        if entries is None:
            entries = self._entries[partition] = self._place.entries(partition)
        return entries

    def _remove(self, partition: int, entries: list[Entry]) -> None:
        self._entries.pop(partition, None)
        remove(self._place, partition, entries)

    def _change(self, record: Record, *, cleans: bool = True, commits: bool = False) -> None:
        """Commit a record with what it makes obsolete, here and in the partition after an increase."""
        place, header = self._place, record.header
        updates = [
            self._update(partition, header, cleans=cleans, commits=commits)
            for partition in self._partitions()
        ]
        if header.external:
            for update in updates:
                if not update.adds:
                    unlink(place, header.name, update.partition)
        if not commits and not any(update.adds for update in updates):
            # It is obsolete already, but what it makes obsolete goes.
            for update in updates:
                if update.removed:
                    self._remove(update.partition, update.removed)
            return
        references = tuple(
            Reference(update.partition, entry.position) for update in updates for entry in update.removed
        )
        header = header._replace(references=references, also_partition=self._next_partition)
        if any(entry.external for update in updates for entry in update.removed):
            before_blocking()
        self._entries.clear()
        place.device.commit(Change(record._replace(header=header), updates))
        for update in updates:
            # A file of the same name was replaced by this one.
            unlink_removed(place, update, stays=header.name if header.external and update.adds else "")

    def _update(self, partition: int, header: Header, *, cleans: bool, commits: bool) -> Update:
        place = self._place
        entries = self._known(partition)
        if commits:
            entries = [
                each._replace(durable=True) if _is_archive(each, header.timestamp, header.fragment) else each
                for each in entries
            ]
            new = None
        else:
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
        # A record of the same name takes the place of the one before.
        kept = [each for each in entries if new is None or each.name != new.name]
        removed = [each for each in entries if new is not None and each.name == new.name]
        if cleans:
            everything = kept if new is None else [*kept, new]
            obsolete = place.obsolete(everything, self._reader)
            removed += [each for each in obsolete if each is not new]
            kept = [each for each in kept if each not in obsolete]
            if new is not None and new in obsolete:
                return Update(partition, kept, removed, adds=False)
        return Update(partition, kept, removed, adds=new is not None)

    def _clean(self, header: Header) -> None:
        """Remove what is obsolete without a new record of the object."""
        place = self._place
        obsolete = place.obsolete(self._known(place.partition), self._reader)
        if obsolete:
            self._remove(place.partition, obsolete)

    def __repr__(self) -> str:
        return f"<PackedEdit {self._place.key.hash} {self.state.kind}>"


def _is_archive(entry: Entry, timestamp: Timestamp, fragment: int | None) -> bool:
    return entry.kind is Kind.DATA and entry.timestamp == timestamp and entry.fragment == fragment


def _is_superseded(place: Place, entries: list[Entry], timestamp: Timestamp) -> bool:
    choice = choose([entry.name for entry in entries], place.key.policy.ec)
    if choice.tombstone is not None and choice.tombstone.timestamp > timestamp:
        return True
    return choice.durable_timestamp is not None and choice.durable_timestamp >= timestamp


def new_draft(place: Place, size: int | None, *, etag_follows: bool = False, etag: str = "") -> PackedDraft:
    """Return a draft for an object. Raises ``NoSpace``, OSError."""
    core = place.core
    core.space.check(place.device.path, size, least=KEPT_FREE)

    def make_file() -> FileDraft:
        return core.draft(core.object_path(place.key), size, etag_follows=etag_follows, etag=etag)

    size_max = place.device.object_bytes_max(place.key.policy.index)
    return PackedDraft(size, size_max, make_file, etag_follows=etag_follows, etag=etag)


def adopt(place: Place, partition: int) -> list[Entry]:
    """Return the entries of an object, after records about the files that the index does not have.

    The caller holds the object. Raises ``NoSpace``, OSError.
    """
    entries = place.entries(partition)
    unknown = [entry for entry in entries if entry.position == NOWHERE]
    for entry in unknown:
        header = place.header_of(entry)._replace(partition=partition)
        place.device.commit(Change(Record(header), [Update(partition, [], merges=True)]))
    return place.entries(partition) if unknown else entries


def write_file(place: Place, partitions: list[int], name: str, metadata: Metadata) -> None:
    """Keep metadata or a tombstone as a file in some partitions, durably. Raises OSError."""
    draft = place.core.draft(place.path(place.partition), 0)
    try:
        draft.finish(metadata)
        publish_file(place, draft, name)
        for partition in partitions:
            if partition != place.partition:
                link_file(place, name, partition)
    finally:
        draft.discard()


def remove(place: Place, partition: int, entries: list[Entry]) -> None:
    """Remove entries of an object durably; the caller holds it. Raises ``NoSpace``, OSError."""
    if any(entry.external for entry in entries):
        before_blocking()
    change = removal(place, partition, entries)
    place.device.commit(change)
    unlink_removed(place, change.updates[0])


def removal(place: Place, partition: int, entries: list[Entry]) -> Change:
    """Return the change that removes entries of an object; their files are left to ``unlink_removed``."""
    left = [entry for entry in place.entries(partition) if entry not in entries]
    header = place.header(Kind.GONE, ZERO)._replace(partition=partition)
    return Change(gone(header, [entry.position for entry in entries]), [Update(partition, left, entries)])


def unlink_removed(place: Place, update: Update, *, stays: str = "") -> None:
    """Remove the files of entries that are gone, but for one that ``stays``."""
    names = {stays, *(entry.name for entry in update.kept)}
    for entry in update.removed:
        if entry.external and entry.name not in names:
            unlink(place, entry.name, update.partition)


def unlink(place: Place, name: str, partition: int) -> None:
    """Remove a file of an object, and directories that are empty then. Raises OSError."""
    object_path, disk = place.path(partition), place.core.disk
    try:
        disk.unlink(f"{object_path.directory}/{name}")
    except FileNotFoundError:
        return
    if not place.device.conversion.is_indexed(place.key.policy.index):
        # Came it back after a power cut, it would be taken for one that has no record yet.
        sync_directory(disk, object_path.directory)
    if remove_if_empty(disk, object_path.directory):
        remove_if_empty(disk, object_path.suffix)
        remove_if_empty(disk, object_path.partition)


def publish_file(place: Place, draft: FileDraft, name: str) -> None:
    """Give the file of a large body its name, durably. Raises ``FilesChanged``, OSError."""
    for _ in range(TRIES):
        # Directories that are empty go when other objects or orphans do.
        with suppress(FileNotFoundError):
            _publish_file(place, draft, name)
            return
    raise FilesChanged(f"{place.core.object_path(place.key).directory} is repeatedly removed")


def _publish_file(place: Place, draft: FileDraft, name: str) -> None:
    """``publish_file``; raises FileNotFoundError if the directory was removed meanwhile."""
    core, object_path = place.core, place.core.object_path(place.key)
    make_directories(core.disk, object_path.directory, below=object_path.device)
    fd = lock_directory(core.disk, object_path.directory)
    opened = next(moments)
    try:
        publish(
            core.disk,
            core.syncs(object_path.device),
            draft.file,
            name,
            directory=object_path.directory,
            dir_fd=fd,
            dir_opened=opened,
            # Any of them may have been made by a draft or just now, and may not be durable yet.
            unsynced=_ancestors(object_path),
            announce=lambda: None,
            replace=name in core.disk.listdir(fd),
        )
    except FileExistsError:
        raise FilesChanged(f"{object_path.directory} got the same name meanwhile")
    finally:
        core.disk.close(fd)


def _ancestors(object_path: ObjectPath) -> list[str]:
    objects = object_path.partition.rpartition("/")[0]
    return [object_path.suffix, object_path.partition, objects, object_path.device]


def link_file(place: Place, name: str, partition: int, *, source: int | None = None) -> None:
    """Give a file of an object in ``source`` (its own partition) the same name in another one, durably.

    Another file of this name there is replaced: no record names it. Raises ``FilesChanged``,
    OSError.
    """
    core, origin = place.core, place.path(place.partition if source is None else source)
    target = place.path(partition)
    path, linked = f"{origin.directory}/{name}", f"{target.directory}/{name}"
    for _ in range(TRIES):
        make_directories(core.disk, target.directory, below=target.device)
        try:
            core.disk.link(path, linked)
        except FileExistsError:
            if core.disk.stat(path).st_ino != core.disk.stat(linked).st_ino:
                core.disk.unlink(linked)
                continue
        except FileNotFoundError:
            # Empty directories go when other objects or orphans do, unless the file itself is gone.
            core.disk.stat(path)
            continue
        break
    else:
        raise FilesChanged(f"{target.directory} keeps changing")
    for directory in (target.directory, *_ancestors(target)):
        sync_directory(core.disk, directory)


def rename_file(place: Place, partition: int, old: str, new: str) -> None:
    """Rename a file of an object durably. Raises ``FilesChanged``, OSError."""
    core, object_path = place.core, place.path(partition)
    fd = lock_directory(core.disk, object_path.directory)
    try:
        rename_durably(core.disk, core.syncs(object_path.device), old, new, dir_fd=fd)
    except FileNotFoundError:
        if new not in core.disk.listdir(fd):
            raise FilesChanged(f"{object_path.directory}/{old} is gone")
    finally:
        core.disk.close(fd)
