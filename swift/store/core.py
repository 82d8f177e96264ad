"""Shared core of the filesystem engine.

``engine`` implements the interface, ``edit`` changes one object, ``maintenance`` serves daemons. All get
the ``EngineCore`` and do not know each other.

Every part that changes what a hash directory holds does so within ``Changes.change``, on which caches of it
stand. What the watcher does before is done before the disk is touched; what it does afterwards is done before
the caller hears that the change happened.

Nothing of a ``FileDraft`` is visible; closing the process removes it. ``finish`` puts the attributes in
place, after which ``platform.durable.publish`` names it (object-disk.md §9.1-4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import md5
from typing import Protocol

from swift.base.checksum import CHUNK_BYTES, ChunkSums, chunk_size_for
from swift.base.clock import Clock
from swift.base.hashing import PathHasher
from swift.base.misplaced import MisplacedGuard
from swift.platform.devices import NO_SPACE_ERRORS, Devices, LeastRoom, SpaceGuard
from swift.platform.disk import UNSUPPORTED, Disk
from swift.platform.durable import UnnamedFile, make_directories, open_temporary, write_all
from swift.platform.fastcrc import crc32
from swift.platform.quarantine import move_to_quarantine
from swift.platform.regularfiles import UnreadableFile, is_blocking
from swift.platform.syncing import SingleSyncs, Syncs
from swift.policy.policy import Policy
from swift.store.api import ObjectKey, ReadOptions
from swift.store.calls import InlinePools, Pools
from swift.store.chooser import ReclaimRules, remove_made
from swift.store.errors import Damaged, FilesChanged
from swift.store.hashes import mark_dirty
from swift.store.layout import ObjectPath, quarantine_kind, suffix_of, temporary_dir
from swift.store.metadata import (
    AttributesTooLarge,
    Metadata,
    encode_metadata,
    metadata_attributes,
    write_attribute,
    write_metadata,
)
from swift.store.reader import Loaded, list_names, load
from swift.store.remembered import KnownDirectories
from swift.store.verified import SIDECAR_ATTRIBUTE, SMALL_BYTES, encode_sums


class Changes(Protocol):
    """Told of every change; entering never raises, so that no change fails for want of a cache."""

    def change(self, device_path: str, directory: str) -> AbstractContextManager[object]:
        """Return a block in which a hash directory, or a suffix or partition with all below it, changes."""


class UntrackedChanges:
    """Tracks nothing."""

    def change(self, device_path: str, directory: str) -> AbstractContextManager[object]:
        return _NOTHING


_NOTHING: AbstractContextManager[object] = nullcontext()


#: Bytes of a large body that gather in memory before writeback is started.
WRITEBACK_BYTES = 4 << 20
#: Bodies up to this size stay in the page cache when they are written.
KEPT_BYTES = 16 << 20


class FileDraft:
    """The draft of the filesystem engine."""

    __slots__ = (
        "file",
        "size",
        "_disk",
        "_object_path",
        "_made",
        "_md5",
        "_etag",
        "_sums",
        "_sync_every",
        "_synced",
        "_begun",
        "_dropped",
    )

    def __init__(
        self,
        disk: Disk,
        file: UnnamedFile,
        *,
        object_path: ObjectPath,
        size: int | None,
        made: Sequence[str],
        sync_every_bytes: int,
        etag_follows: bool = False,
        etag: str = "",
    ):
        self._disk = disk
        self.file = file
        self._object_path = object_path
        self._made = made
        self.size = 0
        self._md5 = None if etag_follows or etag else md5(usedforsecurity=False)
        self._etag = etag
        needs_sums = etag_follows or size is None or size > SMALL_BYTES
        self._sums = ChunkSums(chunk_size_for(size), crc32()) if needs_sums else None
        self._sync_every = sync_every_bytes
        self._synced = 0
        #: Up to where the kernel was told to write.
        self._begun = 0
        #: Up to where the page cache was given back.
        self._dropped = 0

    def may_block(self, size_bytes: int) -> bool:
        return True

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes; raises OSError."""
        write_all(self._disk, self.file.fd, data)
        if self._md5 is not None:
            self._md5.update(data)
        if self._sums is not None:
            self._sums.update(data)
        self.size += len(data)
        if self.size - self._begun >= WRITEBACK_BYTES:
            # The device works while the rest is still on its way, and the final sync finds little to do.
            self._disk.start_writeback(self.file.fd, self._begun, self.size - self._begun)
            if self.size > KEPT_BYTES:
                self._drop(self._begun - WRITEBACK_BYTES)
            self._begun = self.size
        if self.size - self._synced >= self._sync_every:
            # Spreads the flushing of huge bodies, so that the final sync does not stall the device.
            self._disk.fdatasync(self.file.fd)
            self._disk.drop_cache(self.file.fd, self._synced, self.size - self._synced)
            self._synced = self.size

    def _drop(self, end: int) -> None:
        """Let the kernel use the memory of what is on the device already."""
        if end > self._dropped:
            self._disk.drop_cache(self.file.fd, self._dropped, end - self._dropped)
            # Pages still under writeback are dropped the next time.
            self._dropped = max(self._dropped, end - WRITEBACK_BYTES)

    def drop(self) -> None:
        """Drop a large body from the page cache after its sync."""
        if self.size > KEPT_BYTES:
            self._drop(self.size)

    @property
    def etag(self) -> str:
        """MD5 hex of the bytes so far, or what the draft was made with or ``accept_etag`` took."""
        return self._etag if self._md5 is None else self._md5.hexdigest()

    def accept_etag(self, etag: str, sums: str) -> bool:
        assert self._md5 is None and self._sums is not None
        if self._sums.digest() != sums:
            return False
        self._etag = etag
        return True

    def finish(self, metadata: Metadata) -> None:
        """Store metadata and checksums with the file; raises ``AttributesTooLarge`` or OSError."""
        write_metadata(self._disk, self.file.fd, metadata)
        value = encode_sums(self._sums) if self._sums is not None and self.size > SMALL_BYTES else None
        if value is None:
            return
        try:
            write_attribute(self._disk, self.file.fd, SIDECAR_ATTRIBUTE, value)
        except AttributesTooLarge:
            # The sidecar is a convenience: where attributes are full, the body goes without.
            return
        except OSError as error:
            if error.errno not in NO_SPACE_ERRORS:
                raise

    def discard(self) -> None:
        """Leave nothing behind, not even the directories made for it."""
        self.file.discard()
        made, self._made = self._made, ()
        if made:
            remove_made(self._disk, self._object_path.directory, made, keep=self._object_path.partition)

    def __repr__(self) -> str:
        return f"<FileDraft {self.size} bytes for {self._object_path.directory}>"


class SmallDraft:
    """A small body with a known MD5; its file is made when its metadata is known."""

    __slots__ = ("file", "size", "_core", "_object_path", "_etag", "_pieces")

    def __init__(self, core: EngineCore, object_path: ObjectPath, etag: str):
        #: None until ``finish``.
        self.file: UnnamedFile | None = None
        self.size = 0
        self._core = core
        self._object_path = object_path
        self._etag = etag
        self._pieces: list[bytes] = []

    def may_block(self, size_bytes: int) -> bool:
        return False

    def write(self, data: bytes | memoryview) -> None:
        # The caller may change its buffer as soon as this returns.
        self._pieces.append(bytes(data))
        self.size += len(data)

    @property
    def etag(self) -> str:
        return self._etag

    def accept_etag(self, etag: str, sums: str) -> bool:
        raise ValueError("the MD5 is known")

    def finish(self, metadata: Metadata) -> None:
        """Make the file; raises like ``EngineCore.new_file``."""
        self.file = self._core.new_file(self._object_path, metadata, b"".join(self._pieces))

    def drop(self) -> None:
        """Leave a small body in the page cache."""

    def discard(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            file.discard()

    def __repr__(self) -> str:
        return f"<SmallDraft {self.size} bytes for {self._object_path.directory}>"


#: Uploads leave these inodes free for tombstones, metadata and pending container updates.
KEPT_FREE = LeastRoom(size_bytes=0, inodes=1000, parts=64)
#: POSTs leave these inodes free for tombstones.
KEPT_FREE_BY_POSTS = LeastRoom(size_bytes=0, inodes=500, parts=128)
#: Attempts to read an object whose files others change at the same time.
TRIES = 5

#: Told about damage and other things an operator wants to know.
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EngineRules:
    """The numbers an operator may change."""

    reclaim: ReclaimRules = ReclaimRules()
    sync_every_bytes: int = 512 << 20
    #: Bytes of a read of bodies without checksums of ours.
    read_bytes: int = CHUNK_BYTES
    #: Nodes that may replicate into a device at the same time; 0: any number.
    replications_per_device: int = 1


class EngineCore:
    """The devices, the seams and the rules of one engine, and what it remembers of them."""

    def __init__(
        self,
        disk: Disk,
        devices: Devices,
        *,
        hasher: PathHasher,
        clock: Clock,
        space: SpaceGuard,
        rules: EngineRules | None = None,
        new_syncs: Callable[[Disk], Syncs] = SingleSyncs,
        notice: Notice = lambda _text: None,
        pools: Pools | None = None,
    ):
        self.disk = disk
        self.devices = devices
        self.clock = clock
        self.rules = rules or EngineRules()
        self.notice = notice
        self.hasher = hasher
        self.space = space
        self._space_of_posts = SpaceGuard(disk, None)
        self.pools = pools or InlinePools()
        self.misplaced = MisplacedGuard()
        #: Told of every change; set before the engine is used.
        self.changes: Changes = UntrackedChanges()
        #: Partitions whose own ancestors are known to be durable.
        self.durable_partitions: set[str] = set()
        self._unnamed_unsupported: set[str] = set()
        self._new_syncs = new_syncs
        self._syncs: dict[str, Syncs] = {}

    def object_path(self, key: ObjectKey) -> ObjectPath:
        """Return the directories of an object; raises ``DeviceUnavailable``."""
        return ObjectPath(key, self.devices.path(key.device))

    def syncs(self, device_path: str) -> Syncs:
        """Return the sync strategy of a device."""
        syncs = self._syncs.get(device_path)
        if syncs is None:
            syncs = self._syncs[device_path] = self._new_syncs(self.disk)
        return syncs

    def loaded(
        self,
        key: ObjectKey,
        options: ReadOptions,
        *,
        open_data: bool,
        quarantines: bool = True,
        known: KnownDirectories | None = None,
    ) -> tuple[ObjectPath, Loaded]:
        """Return the files behind a key as a viewer sees them; raises ``Damaged`` only when not to
        quarantine. ``known`` keeps what is read again.

        Raises OSError when the device fails, ``UnreadableFile`` when files are there. The state says why
        files were put away on the way to it.
        """
        object_path = self.object_path(key)
        failure: FilesChanged | None = None
        quarantine_reason = ""
        for _ in range(TRIES):
            try:
                seen = None if known is None else known.watch(object_path.directory)
                looked = self.disk.try_look(
                    object_path.directory, opens=open_data, body_bytes_max=SMALL_BYTES
                )
                names, sole = looked or (list_names(self.disk, object_path.directory), None)
                try:
                    loaded = load(
                        self.disk,
                        object_path.directory,
                        names,
                        key,
                        options,
                        open_data=open_data,
                        keep=None if seen is None else seen.metadata,
                        sole=sole,
                    )
                except OSError as error:
                    raise UnreadableFile(error.errno, error.strerror, error.filename) from error
                if seen is not None:
                    seen.end(names, loaded)
                loaded.state.quarantine_reason = quarantine_reason
                return object_path, loaded
            except FilesChanged as error:
                failure = error
            except Damaged as error:
                if not quarantines:
                    raise
                quarantine_reason = str(error)
                self.quarantine(object_path, quarantine_reason)
        raise failure or FilesChanged(f"{object_path.directory} is repeatedly damaged")

    def mark_dirty(self, object_path: ObjectPath) -> None:
        """Journal the suffix of an object as changed; see ``hashes.mark_dirty``."""
        mark_dirty(
            self.disk,
            object_path.partition,
            (suffix_of(object_path.key.hash),),
            device_path=object_path.device,
        )

    # --- damage --------------------------------------------------------------------------------------

    def quarantine(self, object_path: ObjectPath, reason: str) -> None:
        """Move the hash directory away, or what is in the place of a directory above it. Raises OSError.

        ``reason`` stays with what was moved, for ``swift-quarantine``.
        """
        if self.clear_obstacle(object_path):
            return
        policy = object_path.key.policy
        with self.changes.change(object_path.device, object_path.directory):
            self.mark_dirty(object_path)
            path = move_to_quarantine(
                self.disk, object_path.device, quarantine_kind(policy), object_path.directory, reason=reason
            )
        self.notice(f"Quarantined {object_path.directory} to {path}: {reason}")

    def clear_obstacle(self, object_path: ObjectPath) -> bool:
        """Quarantine a file or dangling link in the place of the partition or suffix; True if there was one.

        Raises OSError.
        """
        return self.clear_directory(
            object_path.device, object_path.key.policy, object_path.partition
        ) or self.clear_directory(object_path.device, object_path.key.policy, object_path.suffix)

    def clear_directory(self, device_path: str, policy: Policy, path: str) -> bool:
        """Quarantine what is at ``path`` unless it is a directory; True if something was. Raises OSError."""
        if not is_blocking(self.disk, path):
            return False
        reason = "it is in the place of a directory"
        with self.changes.change(device_path, path):
            moved = move_to_quarantine(self.disk, device_path, quarantine_kind(policy), path, reason=reason)
        self.notice(f"Quarantined {path} to {moved}: {reason}")
        return moved is not None

    def quarantine_body(self, object_path: ObjectPath, loaded: Loaded, reason: str) -> None:
        """Quarantine after a bad read, unless the file was replaced since it was opened."""
        assert loaded.fd is not None
        try:
            current = self.disk.stat(loaded.data_path)
        except FileNotFoundError:
            return
        if current.st_ino == self.disk.fstat(loaded.fd).st_ino:
            self.quarantine(object_path, reason)

    # --- making things -------------------------------------------------------------------------------

    def make_directories_of(self, object_path: ObjectPath) -> list[str]:
        """Make the hash directory; the directories that got a new entry, see ``make_directories``."""
        try:
            made = make_directories(self.disk, object_path.directory, below=object_path.device)
        except (FileNotFoundError, NotADirectoryError):
            if not self.clear_obstacle(object_path):
                raise
            made = make_directories(self.disk, object_path.directory, below=object_path.device)
        if len(made) > 2:
            # The partition is new as well: another process had removed it.
            self.durable_partitions.discard(object_path.partition)
        return made

    def check_room(self, object_path: ObjectPath, size: int | None) -> None:
        """Raise ``NoSpace`` if there is not enough space for an upload."""
        self.space.check(object_path.device, size, least=KEPT_FREE if self.space.enabled else None)

    def check_room_of_post(self, object_path: ObjectPath) -> None:
        """Raise ``NoSpace`` if too few inodes are free for a POST. A POST may use ``fallocate_reserve``."""
        if self.space.enabled:
            self._space_of_posts.check(object_path.device, None, least=KEPT_FREE_BY_POSTS)

    def draft(
        self, object_path: ObjectPath, size: int | None, *, etag_follows: bool = False, etag: str = ""
    ) -> FileDraft:
        """Return a draft, after making its hash directory. Raises ``FilesChanged``, ``NoSpace``, OSError."""
        self.check_room(object_path, size)
        made: list[str] = []
        for _ in range(TRIES):
            made = self.make_directories_of(object_path) or made
            try:
                return self.draft_at(object_path, size, made=made, etag_follows=etag_follows, etag=etag)
            except FileNotFoundError:
                # A hasher removed the empty directory, unless all of the device is gone.
                self.devices.path(object_path.device.rpartition("/")[2])
            except BaseException:
                remove_made(self.disk, object_path.directory, made, keep=object_path.partition)
                raise
        raise FilesChanged(f"{object_path.directory} is repeatedly removed")

    def draft_at(
        self,
        object_path: ObjectPath,
        size: int | None,
        *,
        made: Sequence[str] = (),
        etag_follows: bool = False,
        etag: str = "",
    ) -> FileDraft:
        """Return a draft in an existing hash directory; with ``made`` it removes what was made for it."""
        self.check_room(object_path, size)
        file = self.unnamed_file(object_path)
        try:
            self.space.preallocate(file.fd, size)
        except BaseException:
            file.discard()
            raise
        return FileDraft(
            self.disk,
            file,
            object_path=object_path,
            size=size,
            made=made,
            sync_every_bytes=self.rules.sync_every_bytes,
            etag_follows=etag_follows,
            etag=etag,
        )

    def new_file(self, object_path: ObjectPath, metadata: Metadata, body: bytes = b"") -> UnnamedFile:
        """Return a file with metadata and a body, named later. Raises ``AttributesTooLarge``, OSError."""
        attributes = metadata_attributes(encode_metadata(metadata))
        if object_path.device not in self._unnamed_unsupported:
            fd = self.disk.try_create(object_path.directory, body, attributes)
            if fd is not None:
                return UnnamedFile(self.disk, fd, is_written=True)
        file = self.unnamed_file(object_path)
        try:
            if body:
                write_all(self.disk, file.fd, body)
            for name, value in attributes:
                write_attribute(self.disk, file.fd, name, value)
        except BaseException:
            file.discard()
            raise
        return file

    def unnamed_file(self, object_path: ObjectPath) -> UnnamedFile:
        """Return an empty file, named later, near its final place: filesystems put both close.

        Raises OSError.
        """
        if object_path.device not in self._unnamed_unsupported:
            try:
                return UnnamedFile(self.disk, self.disk.open_unnamed(object_path.directory))
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise
                self._unnamed_unsupported.add(object_path.device)
        temporary = temporary_dir(object_path.device, object_path.key.policy)
        try:
            return open_temporary(self.disk, temporary)
        except FileNotFoundError:
            make_directories(self.disk, temporary, below=object_path.device)
            return open_temporary(self.disk, temporary)

    def __repr__(self) -> str:
        return f"EngineCore({self.devices!r})"
