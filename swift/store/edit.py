"""Changing one object while holding it: the steps of PUT, POST, DELETE and commit on disk.

The lock is the ``flock`` of the hash directory itself, so it leaves no file, works between threads and
processes, and ends with the process. Every change is published by ``platform.durable.publish`` and then
cleans up what it made obsolete (spec: object-disk.md §7, §9, §10). Files appear through the descriptor of the
locked directory: were the directory removed by a server that does not lock, the change fails instead of
getting lost.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

from swift.base.timestamp import Timestamp
from swift.platform.devices import PREALLOCATE_FROM_BYTES
from swift.platform.disk import SoleFile
from swift.platform.durable import UnnamedFile, make_directories, publish, rename_durably
from swift.platform.locks import lock_directory
from swift.platform.regularfiles import is_blocking
from swift.platform.syncing import moments, sync_directory
from swift.store.api import Draft, ObjectState, ReadOptions
from swift.store.chooser import choose, clean_up, remove_if_empty, remove_made
from swift.store.core import TRIES, EngineCore, FileDraft, SmallDraft
from swift.store.errors import BadFragmentIndex, Damaged, FilesChanged
from swift.store.hashes import journal_lines, mark_dirty
from swift.store.layout import (
    ObjectPath,
    data_name,
    meta_name,
    objects_dir,
    partition_dir,
    suffix_of,
    tombstone_name,
)
from swift.store.metadata import Metadata
from swift.store.reader import list_names, load


class FileEdit:
    """``Edit`` of the filesystem engine; a context manager."""

    __slots__ = (
        "state",
        "_core",
        "_object_path",
        "_options",
        "_create",
        "_is_new",
        "_next_power",
        "_fd",
        "_opened",
        "_names",
        "_sole",
        "_made",
        "_changed",
    )

    def __init__(
        self,
        core: EngineCore,
        object_path: ObjectPath,
        options: ReadOptions,
        *,
        create: bool,
        is_new: bool = False,
        next_part_power: int | None = None,
    ):
        self.state = ObjectState()
        self._core = core
        self._object_path = object_path
        self._options = options
        self._create = create
        self._is_new = is_new
        self._next_power = next_part_power
        self._fd: int | None = None
        #: The moment at which the directory was open, see ``Syncs``.
        self._opened = 0
        self._names: list[str] = []
        #: The only file of the directory if it was read with the names.
        self._sole: SoleFile | None = None
        self._made: list[str] = []
        self._changed = False

    # --- holding -------------------------------------------------------------------------------------

    def __enter__(self) -> FileEdit:
        core, object_path = self._core, self._object_path
        quarantine_reason = ""
        for _ in range(TRIES):
            try:
                if not self._hold():
                    self.state.quarantine_reason = quarantine_reason
                    return self
                assert self._fd is not None
                if self._names:
                    loaded = load(
                        core.disk,
                        object_path.directory,
                        self._names,
                        object_path.key,
                        self._options,
                        open_data=False,
                        sole=self._sole,
                    )
                    self.state = loaded.state
                self.state.quarantine_reason = quarantine_reason
                return self
            except Damaged as error:
                self._release()
                quarantine_reason = str(error)
                core.quarantine(object_path, quarantine_reason)
            except FilesChanged:
                self._release()
            except BaseException:
                self._leave()
                raise
        raise FilesChanged(f"{object_path.directory} keeps changing")

    def __exit__(self, *_args: object) -> None:
        self._leave()

    def _hold(self) -> bool:
        """Lock and list the hash directory, making it if wanted; False when there is none and none is
        wanted.
        """
        disk, directory = self._core.disk, self._object_path.directory
        below = self._object_path.device if self._is_new else None
        held = disk.try_hold(directory, below, self._made)
        if held is not None:
            self._fd, self._names, self._sole = held
            self._opened = next(moments)
            return True
        is_fresh = False
        if self._is_new:
            made = self._core.make_directories_of(self._object_path)
            self._made.extend(made)
            is_fresh = bool(made)
        for _ in range(TRIES):
            try:
                self._fd = lock_directory(disk, directory)
                self._opened = next(moments)
                # One made a moment ago is empty, or others put something there in the same moment.
                self._names, self._sole = [] if is_fresh else list_names(disk, self._fd), None
                return True
            except FileNotFoundError:
                is_fresh = False
                if not self._create:
                    return False
                self._made.extend(self._core.make_directories_of(self._object_path))
            except NotADirectoryError:
                raise Damaged("a file is in place of the hash directory")
        if is_blocking(disk, directory):
            raise Damaged("a dangling symbolic link is in place of the hash directory")
        raise FilesChanged(f"{directory} is repeatedly removed")

    def _release(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None and self._names:
            self._core.disk.close_read(fd)
        elif fd is not None:
            # It may be removed by now, and then this frees what it had on the device.
            self._core.disk.close(fd)

    def _leave(self) -> None:
        """Give the object back; directories made for a change that did not happen are removed again."""
        if not self._changed and self._made:
            remove_made(
                self._core.disk,
                self._object_path.directory,
                self._made,
                keep=self._object_path.partition,
                is_held=self._fd is not None,
            )
        self._release()

    # --- changes -------------------------------------------------------------------------------------

    def draft(self, size: int | None, *, etag: str = "") -> FileDraft | SmallDraft:
        try:
            if etag and size is not None and size < PREALLOCATE_FROM_BYTES:
                self._core.check_room(self._object_path, size)
                return SmallDraft(self._core, self._object_path, etag)
            return self._core.draft_at(self._object_path, size, etag=etag)
        except FileNotFoundError:
            raise self._removed()

    def _removed(self) -> FilesChanged:
        """Return the error for an empty directory that a hasher removed.

        Raises ``DeviceUnavailable`` if all of the device is gone.
        """
        self._core.devices.path(self._object_path.key.device)
        return FilesChanged(f"{self._object_path.directory} was removed meanwhile")

    def put(
        self, draft: Draft, timestamp: Timestamp, metadata: Metadata, *, fragment: int | None = None
    ) -> None:
        assert isinstance(draft, FileDraft | SmallDraft)
        ec = self._object_path.key.policy.ec
        if ec is not None and (fragment is None or not 0 <= fragment < ec.fragments):
            raise BadFragmentIndex(f"fragment index {fragment} is not below {ec.fragments}")
        try:
            draft.finish(metadata)
        except FileNotFoundError:
            raise self._removed()
        assert draft.file is not None
        name = data_name(timestamp, fragment if ec is not None else None)
        with self._changing():
            self._publish(draft.file, name)
            if ec is None:
                self._clean_up()
        draft.drop()
        draft.discard()

    def commit(self, timestamp: Timestamp, fragment: int) -> None:
        with self._changing():
            self._commit(timestamp, fragment)

    def _commit(self, timestamp: Timestamp, fragment: int) -> None:
        assert self._fd is not None
        core = self._core
        old, new = data_name(timestamp, fragment), data_name(timestamp, fragment, durable=True)
        try:
            core.mark_dirty(self._object_path)
            rename_durably(core.disk, core.syncs(self._object_path.device), old, new, dir_fd=self._fd)
        except FileNotFoundError:
            if not self._is_superseded(timestamp):
                raise
        else:
            self._names = [*(name for name in self._names if name not in (old, new)), new]
            if self._next_power is not None:
                self._link_for_next_power(new, self._next_power, instead_of=old)
        self._clean_up()

    def abort(self, timestamp: Timestamp, fragment: int) -> None:
        """See ``Edit``. Nothing is synced: what a power cut brings back is as good as never committed."""
        name, object_path = data_name(timestamp, fragment), self._object_path
        if name not in self._names:
            return
        with self._changing():
            self._core.mark_dirty(object_path)
            self._core.disk.unlink(f"{object_path.directory}/{name}")
            self._names = [left for left in self._names if left != name]
            if not self._names and remove_if_empty(self._core.disk, object_path.directory):
                remove_if_empty(self._core.disk, object_path.suffix)

    def _is_superseded(self, timestamp: Timestamp) -> bool:
        choice = choose(
            list_names(self._core.disk, self._object_path.directory), self._object_path.key.policy.ec
        )
        if choice.tombstone is not None and choice.tombstone.timestamp > timestamp:
            return True
        return choice.durable_timestamp is not None and choice.durable_timestamp >= timestamp

    def post(self, timestamp: Timestamp, ctype_timestamp: Timestamp | None, metadata: Metadata) -> None:
        self._core.check_room_of_post(self._object_path)
        self._publish_metadata(meta_name(timestamp, ctype_timestamp), metadata)

    def delete(self, timestamp: Timestamp) -> None:
        path = self._object_path.key.path
        name = f"/{path.account}/{path.container}/{path.obj}"
        metadata = {"X-Timestamp": timestamp.internal, "name": name}
        self._publish_metadata(tombstone_name(timestamp), metadata)

    def _publish_metadata(self, name: str, metadata: Metadata) -> None:
        file = self._core.new_file(self._object_path, metadata)
        try:
            with self._changing():
                self._publish(file, name)
                self._clean_up()
        finally:
            file.discard()

    # --- steps ---------------------------------------------------------------------------------------

    def _changing(self) -> AbstractContextManager[object]:
        return self._core.changes.change(self._object_path.device, self._object_path.directory)

    def _publish(self, file: UnnamedFile, name: str) -> None:
        assert self._fd is not None
        object_path = self._object_path
        try:
            publish(
                self._core.disk,
                self._core.syncs(object_path.device),
                file,
                name,
                directory=object_path.directory,
                dir_fd=self._fd,
                dir_opened=self._opened,
                unsynced=self._unsynced(),
                announce=lambda: self._core.mark_dirty(object_path),
                replace=name in self._names,
                lines=journal_lines(object_path.partition, (suffix_of(object_path.key.hash),)),
            )
        except FileNotFoundError:
            raise FilesChanged(f"{object_path.directory} was removed meanwhile")
        except FileExistsError:
            raise FilesChanged(f"{object_path.directory} got the same name meanwhile")
        self._changed = True
        self._core.durable_partitions.add(object_path.partition)
        if name not in self._names:
            self._names = [*self._names, name]
        if self._next_power is not None:
            self._link_for_next_power(name, self._next_power)

    def _unsynced(self) -> list[str]:
        """Return the ancestors that may not be durable yet, from the leaf up.

        A directory that holds a file was synced before that file got its name. An empty one may have
        been made by this process or, a moment ago, by another one that has not synced it yet.
        """
        if self._names:
            return []
        object_path = self._object_path
        parents = [object_path.suffix, object_path.partition]
        if object_path.partition not in self._core.durable_partitions:
            parents += [objects_dir(object_path.device, object_path.key.policy), object_path.device]
        return parents

    def _clean_up(self) -> None:
        """Remove what is obsolete now. The change itself is durable, so failing here fails nothing."""
        core, object_path = self._core, self._object_path
        if len(self._names) == 1 and self._names[0].endswith(".data"):
            return
        choice = choose(self._names, object_path.key.policy.ec)
        try:
            self._names = clean_up(
                core.disk, object_path.directory, self._names, choice, core.rules.reclaim, core.clock.time()
            )
        except OSError as error:
            core.notice(f"cannot clean up {object_path.directory}: {error}")

    def _link_for_next_power(self, name: str, next_part_power: int, *, instead_of: str | None = None) -> None:
        """Also name the file in the partition it will have after a part power increase (spec §9.7, §10)."""
        core, object_path = self._core, self._object_path
        target = str(int(object_path.key.hash[:8], 16) >> (32 - next_part_power))
        if target == object_path.key.partition:
            return
        partition = partition_dir(object_path.device, object_path.key.policy, target)
        directory = f"{partition}/{suffix_of(object_path.key.hash)}/{object_path.key.hash}"
        try:
            with core.changes.change(object_path.device, directory):
                touched = make_directories(core.disk, directory, below=object_path.device)
                mark_dirty(
                    core.disk, partition, (suffix_of(object_path.key.hash),), device_path=object_path.device
                )
                with suppress(FileExistsError):
                    core.disk.link(f"{object_path.directory}/{name}", f"{directory}/{name}")
                if instead_of is not None:
                    with suppress(FileNotFoundError):
                        core.disk.unlink(f"{directory}/{instead_of}")
                for parent in (directory, *touched):
                    sync_directory(core.disk, parent)
                names = core.disk.listdir(directory)
                choice = choose(names, object_path.key.policy.ec)
                clean_up(core.disk, directory, names, choice, core.rules.reclaim, core.clock.time())
        except OSError as error:
            core.notice(f"cannot link {object_path.directory}/{name} into partition {target}: {error}")

    def __repr__(self) -> str:
        return f"<FileEdit {self._object_path.directory} {self.state.kind}>"
