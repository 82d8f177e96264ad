"""The filesystem engine: objects as files in hash directories (spec: object-disk.md).

It ties the parts together: ``reader`` decides what is there, ``edit`` changes it under the lock of the
hash directory, ``hashes`` keeps the suffix hashes, ``quarantine`` removes damage. Reading takes no lock:
a file that vanishes between listing and opening means that a newer one is there, so reading starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from swift.base.checksum import CHUNK_BYTES
from swift.base.clock import Clock
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.platform.disk import UNSUPPORTED, Disk
from swift.platform.durable import UnnamedFile, make_directories, open_temporary
from swift.platform.mounts import Devices
from swift.platform.space import SpaceGuard
from swift.platform.syncing import SingleSyncs, Syncs
from swift.policy.policy import Policy
from swift.store.api import AsyncUpdate, ObjectKey, ObjectState, Viewpoint
from swift.store.draft import FileDraft
from swift.store.edit import FileEdit, make_place
from swift.store.errors import Damaged, FilesChanged
from swift.store.hashes import SuffixHash, SuffixHasher, mark_dirty
from swift.store.layout import is_suffix, objects_dir, partition_dir, suffix_of, temporary_dir
from swift.store.place import Place
from swift.store.quarantine import quarantine_object
from swift.store.reader import LISTING_DAMAGE, Loaded, load, names_in
from swift.store.recent import RecentChecks
from swift.store.reclaim import ReclaimRules, remove_made
from swift.store.reservation import FileReservation, reserve
from swift.store.updates import write_update
from swift.store.upkeep import FileUpkeep
from swift.store.verified import FileObject

_TRIES = 5

#: Told about damage and other things an operator wants to know.
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EngineRules:
    """The numbers an operator may change."""

    reclaim: ReclaimRules = ReclaimRules()
    sync_every_bytes: int = 512 << 20
    #: What bodies without checksums of ours are read in.
    read_bytes: int = CHUNK_BYTES


class FileStore:
    """``ObjectStore`` on directories, usable by any number of threads and processes at once."""

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
    ):
        self.disk = disk
        self.devices = devices
        self.clock = clock
        self.rules = rules or EngineRules()
        self.notice = notice
        #: Partitions whose own ancestors are known to be durable.
        self.durable_partitions: set[str] = set()
        self.hasher = hasher
        self._space = space
        self._unnamed_unsupported: set[str] = set()
        self._recent_checks = RecentChecks(clock)
        self._new_syncs = new_syncs
        self._syncs: dict[str, Syncs] = {}

    # --- reading -------------------------------------------------------------------------------------

    def look(self, key: ObjectKey, view: Viewpoint) -> ObjectState:
        """See ``ObjectStore``."""
        return self.loaded(key, view, open_data=False)[1].state

    def open(self, key: ObjectKey, view: Viewpoint) -> FileObject:
        """See ``ObjectStore``."""
        place, loaded = self.loaded(key, view, open_data=True)
        return FileObject(
            self.disk,
            loaded.state,
            loaded.fd,
            lambda reason: self._quarantine_body(place, loaded, reason),
            self._recent_checks,
            self.rules.read_bytes,
        )

    def loaded(
        self, key: ObjectKey, view: Viewpoint, *, open_data: bool, quarantines: bool = True
    ) -> tuple[Place, Loaded]:
        """The files behind a key as a viewer sees them; raises ``Damaged`` only when not to quarantine."""
        place = Place(key, self.devices.path(key.device))
        failure: FilesChanged | None = None
        for _ in range(_TRIES):
            try:
                names = names_in(self.disk, place.directory)
                return place, load(self.disk, place.directory, names, key, view, open_data=open_data)
            except FilesChanged as error:
                failure = error
            except Damaged as error:
                if not quarantines:
                    raise
                self.quarantine(place, str(error))
        raise failure or FilesChanged(f"{place.directory} is damaged again and again")

    @property
    def upkeep(self) -> FileUpkeep:
        """See ``ObjectStore``."""
        return FileUpkeep(self)

    def syncs(self, device_path: str) -> Syncs:
        """How changes of a device are made durable."""
        syncs = self._syncs.get(device_path)
        if syncs is None:
            syncs = self._syncs[device_path] = self._new_syncs(self.disk)
        return syncs

    # --- damage --------------------------------------------------------------------------------------

    def quarantine(self, place: Place, reason: str) -> None:
        """Move the hash directory away; if that fails because it is unreadable, the whole suffix."""
        key = place.key
        mark_dirty(self.disk, place.partition, (suffix_of(key.hash),), device_path=place.device)
        try:
            path = quarantine_object(self.disk, place.device, key.policy, place.directory)
        except OSError as error:
            if error.errno not in LISTING_DAMAGE:
                raise
            path = quarantine_object(self.disk, place.device, key.policy, place.suffix)
        self.notice(f"Quarantined {place.directory} to {path}: {reason}")

    def _quarantine_body(self, place: Place, loaded: Loaded, reason: str) -> None:
        """Quarantine after a bad read, unless the file was replaced since it was opened."""
        assert loaded.fd is not None
        try:
            current = self.disk.stat(loaded.data_path)
        except FileNotFoundError:
            return
        if current.st_ino == self.disk.fstat(loaded.fd).st_ino:
            self.quarantine(place, reason)

    # --- changing ------------------------------------------------------------------------------------

    def edit(
        self,
        key: ObjectKey,
        view: Viewpoint,
        *,
        create: bool,
        is_new: bool = False,
        next_part_power: int | None = None,
    ) -> FileEdit:
        """See ``ObjectStore``."""
        place = Place(key, self.devices.path(key.device))
        return FileEdit(self, place, view, create=create, is_new=is_new, next_part_power=next_part_power)

    def reserve(self, key: ObjectKey, writer: Timestamp) -> FileReservation:
        """See ``ObjectStore``."""
        return reserve(self.disk, self.clock, Place(key, self.devices.path(key.device)), writer)

    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> FileDraft:
        """See ``ObjectStore``."""
        place = Place(key, self.devices.path(key.device))
        self._space.check(place.device, size)
        made: list[str] = []
        for _ in range(_TRIES):
            made = make_place(self, place) or made
            try:
                return self.draft_at(place, size, made=made, etag_follows=etag_follows)
            except FileNotFoundError:
                # A hasher removed the empty directory, unless all of the device is gone.
                self.devices.path(key.device)
            except BaseException:
                remove_made(self.disk, place.directory, made, keep=place.partition)
                raise
        raise FilesChanged(f"{place.directory} is removed again and again")

    def draft_at(
        self,
        place: Place,
        size: int | None,
        *,
        made: Sequence[str] = (),
        etag_follows: bool = False,
        etag: str = "",
    ) -> FileDraft:
        """A draft in an existing hash directory; with ``made`` it removes what was made for it."""
        self._space.check(place.device, size)
        file = self.unnamed_file(place)
        try:
            self._space.preallocate(file.fd, size)
        except BaseException:
            file.discard()
            raise
        return FileDraft(
            self.disk,
            file,
            place=place,
            size=size,
            made=made,
            sync_every_bytes=self.rules.sync_every_bytes,
            etag_follows=etag_follows,
            etag=etag,
        )

    def unnamed_file(self, place: Place) -> UnnamedFile:
        """An empty file, named later, near its final place: filesystems put both close. Raises OSError."""
        if place.device not in self._unnamed_unsupported:
            try:
                return UnnamedFile(self.disk, self.disk.open_unnamed(place.directory), None)
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise
                self._unnamed_unsupported.add(place.device)
        temporary = temporary_dir(place.device, place.key.policy)
        try:
            return open_temporary(self.disk, temporary)
        except FileNotFoundError:
            make_directories(self.disk, temporary, below=place.device)
            return open_temporary(self.disk, temporary)

    # --- partitions ----------------------------------------------------------------------------------

    def hashes(
        self,
        device: str,
        partition: str,
        policy: Policy,
        *,
        recalculate: Iterable[str] = (),
        list_suffixes: bool = False,
    ) -> dict[str, SuffixHash]:
        """See ``ObjectStore``."""
        path = partition_dir(self.devices.path(device), policy, partition)
        hasher = SuffixHasher(self.disk, self.clock, path, policy, self.rules.reclaim)
        return hasher.get(recalculate, list_suffixes=list_suffixes)

    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``ObjectStore``."""
        device_path = self.devices.path(device)
        path = partition_dir(device_path, policy, partition)
        mark_dirty(self.disk, path, filter(is_suffix, suffixes), device_path=device_path)

    def partitions(self, device: str, policy: Policy) -> list[str]:
        """See ``ObjectStore``."""
        try:
            names = self.disk.listdir(objects_dir(self.devices.path(device), policy))
        except FileNotFoundError:
            return []
        return [name for name in names if name.isascii() and name.isdigit()]

    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        """See ``ObjectStore``."""
        path = partition_dir(self.devices.path(device), policy, partition)
        for suffix in sorted(filter(is_suffix, self._names(path) if suffixes is None else suffixes)):
            for name in sorted(self._names(f"{path}/{suffix}")):
                if len(name) == 32 and name.endswith(suffix):
                    yield name

    def _names(self, path: str) -> list[str]:
        try:
            return self.disk.listdir(path)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def save_update(self, device: str, policy: Policy, update: AsyncUpdate, timestamp: Timestamp) -> None:
        """See ``ObjectStore``."""
        write_update(self.disk, self.hasher, self.devices.path(device), policy, update, timestamp)

    def __repr__(self) -> str:
        return f"FileStore({self.devices!r})"
