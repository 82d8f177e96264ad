"""Files of packed objects: large bodies, and whatever is kept for the file engine.

A file is written before its record, and removed after it: a power cut leaves an orphan at worst.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from swift.base.timestamp import Timestamp
from swift.platform.durable import make_directories, publish, rename_durably
from swift.platform.locks import lock_directory
from swift.platform.syncing import moments, sync_directory
from swift.store.api import Draft, ObjectState
from swift.store.chooser import remove_if_empty
from swift.store.core import TRIES, FileDraft
from swift.store.errors import FilesChanged
from swift.store.layout import ObjectPath, data_name
from swift.store.metadata import Metadata
from swift.store.packed.changes import Change, Update
from swift.store.packed.drafts import PackedDraft
from swift.store.packed.edit import PackedEdit, removal
from swift.store.packed.entry import Entry
from swift.store.packed.objects import PackedLoaded
from swift.store.packed.place import NOWHERE, Place
from swift.store.packed.record import Header, Record


class FiledEdit(PackedEdit):
    """``Edit`` of an object any part of which may be a file; it blocks. ``load`` merges its entries."""

    __slots__ = ("_load", "_partitions")

    def __init__(self, place: Place, load: Callable[[list[Entry]], PackedLoaded], partitions: list[int]):
        super().__init__(place, place.reader(), {}, ObjectState())
        self._load = load
        self._partitions = partitions

    def __enter__(self) -> FiledEdit:
        self._place.device.hold(self._place.lock)
        try:
            for partition in self._partitions:
                self._entries[partition] = adopt(self._place, partition)
            loaded = self._load(self._entries[self._place.partition])
            self.state = loaded.state
            self._entries[self._place.partition] = loaded.entries
        except BaseException:
            self.__exit__()
            raise
        return self

    def put(
        self, draft: Draft, timestamp: Timestamp, metadata: Metadata, *, fragment: int | None = None
    ) -> None:
        """Store a body, in a file if it is one."""
        assert isinstance(draft, PackedDraft)
        place, header = self._place, self._data_header(timestamp, fragment)
        if draft.file is None and place.device.conversion.keeps_as_files(place.key.policy.index):
            # It began when objects were packed.
            draft.become_file()
        file = draft.file
        if file is None:
            super().put(draft, timestamp, metadata, fragment=fragment)
            return
        file.finish(metadata)
        publish_file(place, file, header.name)
        for partition in self._partitions[1:]:
            link_file(place, header.name, partition)
        self._change(Record(header._replace(external=True)), cleans=self._cleans_at_put)
        file.drop()
        file.discard()

    def commit(self, timestamp: Timestamp, fragment: int) -> None:
        """Make a fragment archive durable; the name of a file says so."""
        for entry in self._archives(timestamp, fragment)[:1]:
            if entry.external and not entry.durable:
                for partition in self._partitions:
                    durable = data_name(timestamp, fragment, durable=True)
                    rename_file(self._place, partition, entry.name, durable)
        super().commit(timestamp, fragment)

    def _store_metadata(self, header: Header, metadata: Metadata) -> None:
        if self._place.device.object_bytes_max(self._place.key.policy.index) >= 0:
            super()._store_metadata(header, metadata)
            return
        write_file(self._place, self._partitions, header.name, metadata)
        self._change(Record(header._replace(external=True)))

    def _remove(self, partition: int, entries: list[Entry]) -> Update:
        update = super()._remove(partition, entries)
        unlink_removed(self._place, update)
        return update

    def _change(self, record: Record, *, cleans: bool = True, commits: bool = False) -> None:
        header, updates = record.header, self._updates(record.header, cleans=cleans, commits=commits)
        for update in updates:
            if header.external and not update.adds:
                unlink(self._place, header.name, update.partition)
        if self._commit_updates(record, updates, commits):
            for update in updates:
                # A file of the same name was replaced by this one.
                unlink_removed(
                    self._place, update, stays=header.name if header.external and update.adds else ""
                )


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
    change = removal(place, partition, entries, place.entries(partition))
    place.device.commit(change)
    unlink_removed(place, change.updates[0])


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
