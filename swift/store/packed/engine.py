"""The packed engine: small objects as records in volumes, large ones as files beside them.

``device`` keeps volumes and index, ``objects`` reads, ``edit`` changes an object while it is held, ``upkeep``
serves daemons. Reading takes no lock: a record that is not where the index said was moved by compaction, so
reading starts over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from swift.base.calls import Run, run_inline
from swift.base.timestamp import Timestamp
from swift.policy.policy import Policy
from swift.store.api import Capabilities, ObjectKey, ObjectState, ReadOptions, StoredObject
from swift.store.asyncpending import FileUpdates
from swift.store.calls import Effort
from swift.store.core import TRIES, EngineCore
from swift.store.errors import Damaged, FilesChanged
from swift.store.hashes import SuffixHash
from swift.store.packed.device import IndexOpener, PackedDevice, PackedRules
from swift.store.packed.drafts import PackedDraft
from swift.store.packed.edit import PackedEdit, Place, new_draft
from swift.store.packed.objects import PackedLoaded, PackedObject, Reader
from swift.store.packed.partitions import Partitions
from swift.store.packed.quarantine import quarantine
from swift.store.packed.upkeep import PackedMaintenance
from swift.store.partitionlock import ReplicationLocks
from swift.store.reservation import FileReservation, reserve
from swift.store.verified import FileObject, RecentChecks

_CAPABILITIES = Capabilities(rsyncable=False, sendfile=True)
#: For so long a device is not looked at again, seconds.
LOOK_EVERY_S = 1.0
#: Locks of partitions are above those of objects.
PARTITION_LOCKS = 1 << 61


class PackedStore:
    """``ObjectStore`` on volumes, usable by any number of threads and processes at once."""

    def __init__(self, core: EngineCore, *, open_index: IndexOpener, rules: PackedRules | None = None):
        self.core = core
        self.rules = rules or PackedRules()
        self._open_index = open_index
        self._devices: dict[str, tuple[tuple[int, int, int], PackedDevice]] = {}
        self._looked: dict[str, float] = {}
        self._recent_checks = RecentChecks(core.clock)
        self._locks = ReplicationLocks(core.disk, core.devices, per_device=core.rules.replications_per_device)
        self._runs: dict[tuple[str, Effort], Run] = {}

    def device(self, name: str) -> PackedDevice:
        """Return a device, opened at first use by this process. Raises ``DeviceUnavailable``, OSError."""
        try:
            path = self.core.devices.path(name)
        except BaseException:
            self._close(name)
            raise
        now = time.monotonic()
        known = self._devices.get(name)
        is_fresh = known is not None and not known[1].is_stale and known[0][0] == os.getpid()
        if known is not None and is_fresh and now - self._looked[name] < LOOK_EVERY_S:
            return known[1]
        status = self.core.disk.stat(path)
        identity = os.getpid(), status.st_dev, status.st_ino
        if known is not None and is_fresh:
            known[1].look()
            is_fresh = not known[1].is_stale
        if known is None or not is_fresh or known[0] != identity:
            self._close(name)
            opened = PackedDevice(
                self.core.disk,
                path,
                open_index=self._open_index,
                rules=self.rules,
                notice=self.core.notice,
            )
            known = self._devices[name] = identity, opened
        self._looked[name] = now
        return known[1]

    def _close(self, name: str) -> None:
        """Close a device that is gone, or was opened by the parent of this process."""
        known = self._devices.pop(name, None)
        if known is not None and known[0][0] == os.getpid():
            known[1].close()

    def close(self) -> None:
        """Close all devices."""
        for name in list(self._devices):
            self._close(name)

    @property
    def capabilities(self) -> Capabilities:
        """See ``ObjectStore``."""
        return _CAPABILITIES

    @property
    def updates(self) -> FileUpdates:
        """See ``ObjectStore``: files, as in the file engine."""
        return FileUpdates(self.core.disk, self.core.devices, self.core.hasher)

    @property
    def maintenance(self) -> PackedMaintenance:
        """See ``ObjectStore``."""
        return PackedMaintenance(self)

    def run(self, device: str, effort: Effort) -> Run:
        """See ``ObjectStore``: changes wait for a commit in any case, and block nothing."""
        run = self._runs.get((device, effort))
        if run is None:
            self.core.devices.path(device)
            pools = self.core.pools
            run = pools.run(device)
            if effort not in (Effort.SHORT, Effort.CHANGE):
                run = pools.threads(device, effort.value)
            elif effort is Effort.CHANGE:
                run = run_inline
            self._runs[device, effort] = run
        return run

    # --- reading -------------------------------------------------------------------------------------

    def load(
        self,
        place: Place,
        options: ReadOptions,
        *,
        open_data: bool,
        quarantines: bool = True,
        is_held: bool = False,
    ) -> PackedLoaded:
        """Return what is stored of an object; damage is quarantined on the way.

        Raises ``FilesChanged``, ``HashCollision``, OSError, and ``Damaged`` only when not to quarantine.
        """
        reader, reason = Reader(self.core, place.device), ""
        failure: FilesChanged | None = None
        for _ in range(TRIES):
            entries = place.entries()
            try:
                loaded = reader.load(place.key, place.hash, entries, options, open_data=open_data)
            except FilesChanged as error:
                failure = error
                continue
            except Damaged as error:
                if place.entries() != entries:
                    # It was compacted while it was read.
                    continue
                if not quarantines:
                    raise
                reason = str(error)
                with nullcontext() if is_held else place.device.locks.hold(place.lock):
                    if place.entries() == entries:
                        quarantine(place, entries, reason)
                continue
            loaded.state.quarantine_reason = reason
            return loaded
        raise failure or FilesChanged(f"{place.key.hash} on {place.device.path} keeps changing")

    def place(self, key: ObjectKey) -> Place:
        """Return the place of an object. Raises ``DeviceUnavailable``, OSError."""
        return Place(self.core, self.device(key.device), key)

    def stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState:
        """See ``ObjectStore``."""
        return self.load(self.place(key), options, open_data=False).state

    def open(self, key: ObjectKey, options: ReadOptions) -> StoredObject:
        """See ``ObjectStore``."""
        place = self.place(key)
        loaded = self.load(place, options, open_data=True)
        give_up = self._quarantiner(place, loaded)
        if loaded.file is None:
            return PackedObject(loaded.state, loaded.record, give_up)
        return FileObject(
            self.core.disk,
            loaded.state,
            loaded.file.fd,
            give_up,
            self._recent_checks,
            self.core.rules.read_bytes,
        )

    def _quarantiner(self, place: Place, loaded: PackedLoaded) -> Callable[[str], None]:
        """Return the function that quarantines after a bad read, unless the object changed meanwhile."""

        def give_up(reason: str) -> None:
            with place.device.locks.hold(place.lock):
                entries = place.entries()
                if {entry.name for entry in loaded.entries} <= {entry.name for entry in entries}:
                    quarantine(place, entries, reason)

        return give_up

    # --- changing ------------------------------------------------------------------------------------

    def edit(
        self,
        key: ObjectKey,
        options: ReadOptions,
        *,
        create: bool,
        is_new: bool = False,
        next_part_power: int | None = None,
    ) -> PackedEdit:
        """See ``ObjectStore``; a look costs so little that nothing is guessed."""
        place = self.place(key)

        def load() -> ObjectState:
            return self.load(place, options, open_data=False, is_held=True).state

        return PackedEdit(place, Reader(self.core, place.device), load, next_part_power)

    def relink(self, key: ObjectKey, partition: str) -> None:
        """See ``ObjectStore``."""
        place = self.place(key)
        Partitions(self.core, place.device).link(place, int(partition))

    def reserve(self, key: ObjectKey, writer: Timestamp) -> FileReservation:
        """See ``ObjectStore``."""
        return reserve(self.core.disk, self.core.clock, self.core.object_path(key), writer)

    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> PackedDraft:
        """See ``ObjectStore``."""
        return new_draft(self.place(key), size, etag_follows=etag_follows)

    # --- partitions ----------------------------------------------------------------------------------

    def partitions_of(self, device: str) -> Partitions:
        """Return the partitions of a device. Raises ``DeviceUnavailable``, OSError."""
        return Partitions(self.core, self.device(device))

    def hashes(
        self,
        device: str,
        partition: str,
        policy: Policy,
        *,
        recalculate: Iterable[str] = (),
        list_suffixes: bool = False,
    ) -> dict[str, SuffixHash]:
        """See ``ObjectStore``: always computed from the index, so nothing is dirty."""
        return self.partitions_of(device).hashes(device, int(partition), policy)

    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``ObjectStore``."""
        self.partitions_of(device).touch(int(partition), policy)

    def partitions(self, device: str, policy: Policy) -> list[str]:
        """See ``ObjectStore``."""
        return [str(number) for number in self.partitions_of(device).numbers(policy)]

    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        """See ``ObjectStore``."""
        return iter(self.partitions_of(device).inventory(int(partition), policy, suffixes))

    @contextmanager
    def _hold(self, device: PackedDevice, number: int, timeout_s: float, incoming: bool) -> Iterator[None]:
        with (
            device.locks.hold(number, timeout_s),
            self._locks.device_place(device.path, timeout_s) if incoming else nullcontext(),
        ):
            yield

    def replication_lock(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> AbstractContextManager[None]:
        """See ``ObjectStore``."""
        opened, number = self.device(device), PARTITION_LOCKS + (policy.index << 32) + int(partition)
        if self.partitions_of(device).row(int(partition), policy) is None:
            self.invalidate(device, partition, policy, ())
        return self._hold(opened, number, timeout_s, incoming)

    def __repr__(self) -> str:
        return f"PackedStore({self.core.devices!r})"
