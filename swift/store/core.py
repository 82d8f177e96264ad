"""What the parts of the filesystem engine share: the ground they stand on and the steps they have in common.

``engine`` answers the interface, ``edit`` changes one object, ``upkeep`` is for daemons; all three are handed
the ``EngineCore`` and none of them knows another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swift.base.checksum import CHUNK_BYTES
from swift.base.clock import Clock
from swift.base.hashing import PathHasher
from swift.base.misplaced import MisplacedGuard
from swift.platform.disk import UNSUPPORTED, Disk
from swift.platform.durable import UnnamedFile, make_directories, open_temporary
from swift.platform.faults import UnreadableFile, is_in_the_way
from swift.platform.mounts import Devices
from swift.platform.quarantine import move_to_quarantine
from swift.platform.space import SpaceGuard
from swift.platform.syncing import SingleSyncs, Syncs
from swift.policy.policy import Policy
from swift.store.api import ObjectKey, Viewpoint
from swift.store.calls import InlinePools, Pools
from swift.store.changes import Changes, Unwatched
from swift.store.draft import FileDraft
from swift.store.errors import Damaged, FilesChanged
from swift.store.hashes import mark_dirty
from swift.store.layout import quarantine_kind, suffix_of, temporary_dir
from swift.store.place import Place
from swift.store.reader import Loaded, load, names_in
from swift.store.reclaim import ReclaimRules

#: How often an object is looked at whose files or directory others change at the same time.
TRIES = 5

#: Told about damage and other things an operator wants to know.
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EngineRules:
    """The numbers an operator may change."""

    reclaim: ReclaimRules = ReclaimRules()
    sync_every_bytes: int = 512 << 20
    #: What bodies without checksums of ours are read in.
    read_bytes: int = CHUNK_BYTES
    #: Who may replicate into a device at the same time; 0: any number.
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
        self.pools = pools or InlinePools()
        self.misplaced = MisplacedGuard()
        #: Told of every change; set before the engine is used.
        self.changes: Changes = Unwatched()
        #: Partitions whose own ancestors are known to be durable.
        self.durable_partitions: set[str] = set()
        self._unnamed_unsupported: set[str] = set()
        self._new_syncs = new_syncs
        self._syncs: dict[str, Syncs] = {}

    def place(self, key: ObjectKey) -> Place:
        """The directories of an object; raises ``DeviceUnavailable``."""
        return Place(key, self.devices.path(key.device))

    def syncs(self, device_path: str) -> Syncs:
        """How changes of a device are made durable."""
        syncs = self._syncs.get(device_path)
        if syncs is None:
            syncs = self._syncs[device_path] = self._new_syncs(self.disk)
        return syncs

    def loaded(
        self, key: ObjectKey, view: Viewpoint, *, open_data: bool, quarantines: bool = True
    ) -> tuple[Place, Loaded]:
        """The files behind a key as a viewer sees them; raises ``Damaged`` only when not to quarantine.

        Raises OSError when the device fails, ``UnreadableFile`` when files are there. The state says why
        files were put away on the way to it.
        """
        place = self.place(key)
        failure: FilesChanged | None = None
        put_away = ""
        for _ in range(TRIES):
            try:
                names = names_in(self.disk, place.directory)
                try:
                    loaded = load(self.disk, place.directory, names, key, view, open_data=open_data)
                except OSError as error:
                    raise UnreadableFile(error.errno, error.strerror, error.filename) from error
                loaded.state.put_away = put_away
                return place, loaded
            except FilesChanged as error:
                failure = error
            except Damaged as error:
                if not quarantines:
                    raise
                put_away = str(error)
                self.quarantine(place, put_away)
        raise failure or FilesChanged(f"{place.directory} is damaged again and again")

    def mark_dirty(self, place: Place) -> None:
        """Journal the suffix of an object as changed; see ``hashes.mark_dirty``."""
        mark_dirty(self.disk, place.partition, (suffix_of(place.key.hash),), device_path=place.device)

    # --- damage --------------------------------------------------------------------------------------

    def quarantine(self, place: Place, reason: str) -> None:
        """Move the hash directory away, or what is in the place of a directory above it. Raises OSError.

        ``reason`` stays with what was moved, for ``swift-quarantine``.
        """
        if self.clear_way(place):
            return
        policy = place.key.policy
        with self.changes.change(place.device, place.directory):
            self.mark_dirty(place)
            path = move_to_quarantine(
                self.disk, place.device, quarantine_kind(policy), place.directory, reason=reason
            )
        self.notice(f"Quarantined {place.directory} to {path}: {reason}")

    def clear_way(self, place: Place) -> bool:
        """Quarantine a file or dangling link in the place of the partition or suffix; True if there was one.

        Raises OSError.
        """
        return self.clear_directory(place.device, place.key.policy, place.partition) or self.clear_directory(
            place.device, place.key.policy, place.suffix
        )

    def clear_directory(self, device_path: str, policy: Policy, path: str) -> bool:
        """Quarantine what is at ``path`` unless it is a directory; True if something was. Raises OSError."""
        if not is_in_the_way(self.disk, path):
            return False
        reason = "it is in the place of a directory"
        with self.changes.change(device_path, path):
            moved = move_to_quarantine(self.disk, device_path, quarantine_kind(policy), path, reason=reason)
        self.notice(f"Quarantined {path} to {moved}: {reason}")
        return moved is not None

    def quarantine_body(self, place: Place, loaded: Loaded, reason: str) -> None:
        """Quarantine after a bad read, unless the file was replaced since it was opened."""
        assert loaded.fd is not None
        try:
            current = self.disk.stat(loaded.data_path)
        except FileNotFoundError:
            return
        if current.st_ino == self.disk.fstat(loaded.fd).st_ino:
            self.quarantine(place, reason)

    # --- making things -------------------------------------------------------------------------------

    def make_place(self, place: Place) -> list[str]:
        """Make the hash directory; the directories that got a new entry, see ``make_directories``."""
        try:
            made = make_directories(self.disk, place.directory, below=place.device)
        except (FileNotFoundError, NotADirectoryError):
            if not self.clear_way(place):
                raise
            made = make_directories(self.disk, place.directory, below=place.device)
        if len(made) > 2:
            # The partition is new as well: another process had removed it.
            self.durable_partitions.discard(place.partition)
        return made

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
        self.space.check(place.device, size)
        file = self.unnamed_file(place)
        try:
            self.space.preallocate(file.fd, size)
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

    def __repr__(self) -> str:
        return f"EngineCore({self.devices!r})"
