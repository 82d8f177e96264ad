"""Converting a device between the file engine and the packed engine while it serves.

Each object is held while it is converted, and its former records or files are removed only after the new ones
are durable and in the index; so it is readable at every moment, and a conversion that was interrupted goes on
where it was. Objects in partitions that were not reached yet are read where they are (``place``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from hashlib import md5

from swift.base.digits import is_digits
from swift.base.errors import LockTimeout, SwiftError
from swift.green import pause
from swift.platform.disk import Disk, names_in
from swift.platform.locks import file_lock
from swift.platform.regularfiles import open_with_status
from swift.platform.waiting import yielding
from swift.policy.policy import Policy
from swift.store.api import ObjectKey
from swift.store.core import EngineCore, FileDraft
from swift.store.errors import Damaged
from swift.store.hashes import HASHES_FILE, JOURNAL_FILE
from swift.store.layout import is_suffix, objects_dir, partition_dir
from swift.store.maintenance import FileMaintenance
from swift.store.metadata import decode_metadata, read_metadata_blob
from swift.store.packed import rows
from swift.store.packed.changes import Change, Update
from swift.store.packed.device import PackedDevice
from swift.store.packed.devices import LOOK_EVERY_S, PackedDevices
from swift.store.packed.entry import Entry
from swift.store.packed.files import publish_file, remove, unlink
from swift.store.packed.place import NOWHERE, Place
from swift.store.packed.quarantine import quarantine
from swift.store.packed.record import BadRecord, Kind, Record, Reference
from swift.store.reader import ANY_NAME

#: Called after each object with the bytes that were converted, to slow a conversion down.
Pace = Callable[[int], None]
_LOCK = "repacking"
#: Files of a partition that only the file engine writes.
_HASHES = (HASHES_FILE, JOURNAL_FILE)


class BeingConverted(SwiftError):
    """Another process converts the objects."""


@dataclass(slots=True)
class RepackReport:
    """Progress of a conversion."""

    partitions: int = 0
    partitions_done: int = 0
    objects: int = 0
    converted: int = 0
    converted_bytes: int = 0
    quarantined: int = 0

    def as_dict(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)


@dataclass(slots=True)
class EngineUse:
    """Objects of a policy on a device, by the way in which they are kept."""

    packed: int = 0
    files: int = 0
    #: Partitions with files that the index does not have yet; their objects are not counted.
    partitions_unindexed: int = 0
    #: True if new objects are files, for the file engine.
    keeps_as_files: bool = False

    @property
    def state(self) -> str:
        """``packed``, ``packing``, ``unpacking`` or ``files``."""
        if self.keeps_as_files:
            return "unpacking" if self.packed else "files"
        return "packing" if self.partitions_unindexed else "packed"


def engine_use(devices: PackedDevices, name: str, policy: Policy) -> EngineUse:
    """Count the objects of a policy on a device. Raises OSError."""
    device, partitions = devices.device(name), devices.partitions(name)
    use = EngineUse(keeps_as_files=device.conversion.keeps_as_files(policy.index))
    if not device.conversion.is_indexed(policy.index) and not use.keeps_as_files:
        unindexed = (
            device.conversion.may_have_unindexed(policy.index, each) for each in partitions.numbers(policy)
        )
        use.partitions_unindexed = sum(unindexed)
    for entries in partitions.all_indexed(policy):
        if all(entry.external for entry in entries):
            use.files += 1
        else:
            use.packed += 1
    return use


class Repacker:
    """Converts the objects of one policy on one device; ``stopped`` tells that it is to end early."""

    def __init__(
        self,
        devices: PackedDevices,
        device: str,
        policy: Policy,
        *,
        pace: Pace = lambda _count: None,
        stopped: Callable[[], bool] = lambda: False,
        settle_s: float = 2 * LOOK_EVERY_S,
    ):
        self._devices = devices
        self._name = device
        self._policy = policy
        self._pace = pace
        self._stopped = stopped
        self._settle_s = settle_s
        self._files = FileMaintenance(devices.core)
        self.report = RepackReport()

    @property
    def _core(self) -> EngineCore:
        return self._devices.core

    @property
    def _device(self) -> PackedDevice:
        return self._devices.device(self._name)

    def run(self, *, packs: bool) -> Iterator[RepackReport]:
        """Convert everything; yield the progress after each partition. Raises ``NoSpace``, OSError.

        With ``packs`` small objects become records, else every record becomes a file, for the file engine.
        New objects are kept in the new way from the beginning on.
        """
        policy = self._policy.index
        with ExitStack() as held:
            try:
                held.enter_context(
                    file_lock(self._core.disk, f"{self._device.directory}/{_LOCK}-{policy}", 0.0)
                )
            except LockTimeout:
                raise BeingConverted("another process converts it; wait until it has ended, or stop it")
            if packs:
                self._device.conversion.keep_packed(policy)
                if self._device.conversion.is_indexed(policy) and self._has_changed_as_files():
                    self._device.change_index(lambda writing: rows.set_unindexed(writing, policy, True))
                    self._device.refresh()
            else:
                self._device.conversion.keep_as_files(policy)
            yield from self._passes(packs)

    def _has_changed_as_files(self) -> bool:
        """Return True if the file engine was used although records were there."""
        path = objects_dir(self._device.path, self._policy)
        names = filter(is_digits, names_in(self._core.disk, path))
        return any(has_hashes(self._core.disk, f"{path}/{name}") for name in names)

    def _passes(self, packs: bool) -> Iterator[RepackReport]:
        policy = self._policy.index
        # Until then processes may keep new objects as before.
        settled_s = time.monotonic() + self._settle_s
        is_last = False
        while not is_last and not self._stopped():
            is_settled, before = time.monotonic() >= settled_s, self.report.converted
            for partition in self._begin_pass():
                if self._stopped():
                    break
                self._convert_partition(partition, packs)
                self.report.partitions_done += 1
                yield self.report
            has_changed = self.report.converted > before
            is_last = is_settled and not has_changed
            if not is_last and not has_changed:
                with yielding():
                    pause(max(settled_s - time.monotonic(), 0.0))
        if packs and not self._stopped():
            self._device.conversion.set_indexed(policy)

    def take_arrivals(self, partition: int, suffixes: Iterable[str], since_s: float) -> int:
        """Convert files that came from outside since a moment (Unix seconds); return their number.

        rsync writes files without asking this engine. Older ones may be leftovers of objects whose tombstones
        are gone already, so they do not count. Raises ``NoSpace``, ``LockTimeout``, OSError.
        """
        if self._device.conversion.may_have_unindexed(self._policy.index, partition):
            # Files count as they are.
            return 0
        disk, path = self._core.disk, partition_dir(self._device.path, self._policy, str(partition))
        before = self.report.converted
        for suffix in filter(is_suffix, suffixes):
            for name in names_in(disk, f"{path}/{suffix}"):
                if len(name) == 32 and name.endswith(suffix):
                    place = self._place(partition, bytes.fromhex(name))
                    with place.device.holding(place.lock):
                        self._take_arrivals_of(place, since_s)
        return self.report.converted - before

    def _take_arrivals_of(self, place: Place, since_s: float) -> None:
        """Convert the files of one object that no record is about; the caller holds it."""
        known = {entry._replace(durable=False).name: entry for entry in place.entries()}
        for entry in place.files(place.partition):
            record = known.get(entry._replace(durable=False).name)
            if record is not None:
                if not record.external and record.durable >= entry.durable:
                    unlink(place, entry.name, place.partition)
                continue
            try:
                if self._changed_s(place, entry) >= since_s:
                    self._pack(place, entry)
            except Damaged as error:
                quarantine(place, [entry], str(error))
                self.report.quarantined += 1

    def _changed_s(self, place: Place, entry: Entry) -> float:
        status = self._core.disk.stat(f"{place.path(place.partition).directory}/{entry.name}")
        return max(status.st_mtime, status.st_ctime)

    def _begin_pass(self) -> list[int]:
        """Return all partitions."""
        partitions = self._devices.partitions(self._name).numbers(self._policy)
        self.report.partitions, self.report.partitions_done = len(partitions), 0
        return partitions

    def _convert_partition(self, partition: int, packs: bool) -> None:
        if packs and self._device.conversion.may_have_unindexed(self._policy.index, partition):
            self._forget_missing(partition)
        for object_hash, entries in self._devices.partitions(self._name).objects(partition, self._policy):
            if self._stopped():
                return
            self.report.objects += 1
            place = self._place(partition, object_hash)
            if any(self._must_change(place, entry, packs) for entry in entries):
                self._convert(place, packs)
        self._forget_hashes(partition)
        policy = self._policy.index
        if packs:
            self._files.remove_partition(self._name, str(partition), self._policy)
        if packs and not self._device.conversion.is_indexed(policy):
            self._device.change_index(lambda writing: rows.set_adopted(writing, policy, partition))

    def _place(self, partition: int, object_hash: bytes) -> Place:
        key = ObjectKey(self._name, str(partition), self._policy, ANY_NAME, object_hash.hex())
        return Place(self._core, self._device, key)

    def _forget_missing(self, partition: int) -> None:
        """Remove the entries of files that the file engine removed."""
        for object_hash, entries in self._devices.partitions(self._name).indexed(partition, self._policy):
            place = self._place(partition, object_hash)
            if any(entry.external for entry in entries) and place.missing():
                with place.device.holding(place.lock):
                    remove(place, partition, place.missing())

    def _forget_hashes(self, partition: int) -> None:
        """Remove the file engine's cache of suffix hashes, which no process keeps current now."""
        path = partition_dir(self._device.path, self._policy, str(partition))
        for name in _HASHES:
            with suppress(FileNotFoundError, NotADirectoryError):
                self._core.disk.unlink(f"{path}/{name}")

    def _must_change(self, place: Place, entry: Entry, packs: bool) -> bool:
        if not packs or not entry.external:
            return not packs and not entry.external
        if entry.position == NOWHERE or entry.kind is not Kind.DATA:
            return True
        try:
            status = self._core.disk.stat(f"{place.path(place.partition).directory}/{entry.name}")
        except FileNotFoundError:
            # It was replaced since it was listed, or is missing, which the auditor finds.
            return False
        return status.st_size <= self._device.object_bytes_max(self._policy.index)

    def _convert(self, place: Place, packs: bool) -> None:
        """Convert the entries of one object."""
        with place.device.holding(place.lock):
            try:
                for entry in place.entries():
                    if packs and entry.external:
                        self._pack(place, entry)
                    elif not packs and not entry.external:
                        self._unpack(place, entry)
            except Damaged as error:
                quarantine(place, place.entries(), str(error))
                self.report.quarantined += 1

    def _pack(self, place: Place, entry: Entry) -> None:
        """Make a record of a file; of a large one a record about it."""
        path = f"{place.path(place.partition).directory}/{entry.name}"
        size_max = self._device.object_bytes_max(self._policy.index)
        try:
            blob, size, body = read_file(self._core.disk, path, size_max)
        except FileNotFoundError:
            raise Damaged(f"{path} is gone")
        header = place.header_of(entry)
        if body is None:
            if entry.position == NOWHERE:
                self._commit(place, Record(header), size)
            return
        if entry.kind is Kind.DATA:
            _check(body, decode_metadata(blob).get("ETag"))
        references = () if entry.position == NOWHERE else (Reference(place.partition, entry.position),)
        header = header._replace(external=False, references=references)
        self._commit(place, Record(header, blob, body), size)
        unlink(place, entry.name, place.partition)

    def _unpack(self, place: Place, entry: Entry) -> None:
        """Make a file of a record."""
        try:
            record = place.device.read(entry, entry.read_bytes)
            body = record.body()
        except BadRecord as error:
            raise Damaged(str(error))
        draft = self._draft(place, body)
        try:
            draft.finish(decode_metadata(record.metadata))
            publish_file(place, draft, entry.name)
        finally:
            draft.discard()
        references = (Reference(place.partition, entry.position),)
        header = place.header_of(entry)._replace(external=True, references=references)
        self._commit(place, Record(header), len(body))

    def _draft(self, place: Place, body: bytes) -> FileDraft:
        draft = self._core.draft(place.path(place.partition), len(body))
        try:
            draft.write(body)
        except BaseException:
            draft.discard()
            raise
        return draft

    def _commit(self, place: Place, record: Record, size: int) -> None:
        place.device.commit_all([Change(record, [Update(place.partition, [], merges=True)])])
        self.report.converted += 1
        self.report.converted_bytes += size
        self._pace(size)

    def __repr__(self) -> str:
        return f"Repacker({self._name!r}, {self._policy.name!r})"


def has_hashes(disk: Disk, partition_path: str) -> bool:
    """Return True if the file engine has hashed or changed a partition since it was packed."""
    return not set(_HASHES).isdisjoint(names_in(disk, partition_path))


def read_file(disk: Disk, path: str, size_max: int) -> tuple[bytes, int, bytes | None]:
    """Return the metadata of a file, its size, and its body unless it is too large to be packed.

    Raises ``Damaged``, OSError.
    """
    fd, status = open_with_status(disk, path, os.O_RDONLY)
    try:
        blob, _has_checksum = read_metadata_blob(disk, fd)
        if status.st_size > size_max:
            return blob, status.st_size, None
        body = b""
        while len(body) < status.st_size:
            piece = disk.pread(fd, status.st_size - len(body), len(body))
            if not piece:
                raise Damaged(f"{path} ends early")
            body += piece
        return blob, status.st_size, body
    finally:
        disk.close(fd)


def _check(body: bytes, etag: str | None) -> None:
    digest = md5(body, usedforsecurity=False).hexdigest()
    if digest != etag:
        raise Damaged(f"MD5 of the body is {digest}, not {etag}")
