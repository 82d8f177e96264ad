"""The packed engine: small objects as records in volumes, large ones as files beside them.

``device`` keeps volumes and index, ``objects`` reads, ``edit`` changes an object while it is held, ``memory``
answers on the event loop, and ``maintenance`` serves daemons. Reading takes no lock: a record that is not
where the index said was moved by compaction, so reading starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Unpack

from swift.base.calls import Attempt, Run
from swift.base.timestamp import Timestamp
from swift.policy.policy import Policy
from swift.store.api import (
    Capabilities,
    EditOptions,
    HashesOptions,
    ObjectKey,
    ObjectState,
    ReadOptions,
    StoredObject,
)
from swift.store.asyncpending import FileUpdates
from swift.store.calls import Effort
from swift.store.core import EngineCore
from swift.store.hashes import SuffixHash
from swift.store.packed.device import PackedDevice
from swift.store.packed.devices import PackedDevices
from swift.store.packed.drafts import PackedDraft
from swift.store.packed.edit import PackedEdit, new_draft, partitions_of
from swift.store.packed.entry import Entry
from swift.store.packed.files import FiledEdit
from swift.store.packed.maintenance import PackedMaintenance
from swift.store.packed.memory import DeviceMemory
from swift.store.packed.objects import PackedLoaded, PackedObject
from swift.store.packed.place import Place
from swift.store.packed.quarantine import quarantine
from swift.store.packed.repack import Repacker
from swift.store.packed.session import IndexOpener
from swift.store.packed.space import PackedSpace
from swift.store.packed.writer import PackedRules
from swift.store.partitionlock import ReplicationLocks
from swift.store.reservation import FileReservation, reserve
from swift.store.verified import FileObject, RecentChecks

_CAPABILITIES = Capabilities(rsyncable=False, sendfile=True, changes_together=32)
#: Locks of partitions are above those of objects.
PARTITION_LOCKS = 1 << 61


class PackedStore:
    """``ObjectStore`` on volumes, usable by any number of threads and processes at once."""

    def __init__(self, core: EngineCore, *, open_index: IndexOpener, rules: PackedRules | None = None):
        self.core = core
        self.devices = PackedDevices(core, open_index=open_index, rules=rules or PackedRules())
        self._recent_checks = RecentChecks(core.clock)
        self._locks = ReplicationLocks(core.disk, core.devices, per_device=core.rules.replications_per_device)
        self._runs: dict[tuple[str, Effort], Run] = {}

    def close(self) -> None:
        """Close all devices."""
        self.devices.close()

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    @property
    def updates(self) -> FileUpdates:
        """See ``ObjectStore``: files, as in the file engine."""
        return FileUpdates(self.core.disk, self.core.devices, self.core.hasher)

    @property
    def maintenance(self) -> PackedMaintenance:
        return PackedMaintenance(self.devices)

    @property
    def space(self) -> PackedSpace:
        """The space of its devices."""
        return PackedSpace(self.devices)

    def run(self, device: str, effort: Effort) -> Run:
        """Return an executor: what memory does not answer runs in threads."""
        run = self._runs.get((device, effort))
        if run is None:
            self.core.devices.path(device)
            pools = self.core.pools
            run = pools.run(device)
            if effort in (Effort.LOOK, Effort.CHANGE):
                run = pools.threads(device)
            elif effort is not Effort.SHORT:
                run = pools.threads(device, effort.value)
            self._runs[device, effort] = run
        return run

    def attempt(self, device: str) -> Attempt:
        """Return the executor of calls that memory answers. Raises ``DeviceUnavailable``."""
        self.core.devices.path(device)
        return self.core.pools.attempt(device)

    # --- in memory -----------------------------------------------------------------------------------

    def try_stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState | None:
        """Return the state of an object if its records are in memory."""
        found = self._recalled(key, options, open_data=False)
        return None if found is None else found[1].state

    def try_open(self, key: ObjectKey, options: ReadOptions) -> PackedObject | None:
        """Open an object whose records are in memory."""
        found = self._recalled(key, options, open_data=True)
        if found is None:
            return None
        place, loaded = found
        return PackedObject(loaded.state, loaded.record, self._quarantiner(place, loaded))

    def try_edit(
        self,
        key: ObjectKey,
        options: ReadOptions,
        *,
        create: bool,
        next_part_power: int | None = None,
        size_bytes: int = 0,
    ) -> PackedEdit | None:
        """Lock an object of which everything is a record in memory."""
        place = self._fresh_place(key)
        if place is None or not self._packs(place, size_bytes):
            return None
        device, edit = place.device, None
        device.locks.acquire(place.lock)
        try:
            if device.writer.is_caught_up and (memory := _memory_of(device)):
                edit = memory.edit(place, options, partitions_of(place, next_part_power))
        finally:
            if edit is None:
                device.locks.release(place.lock)
        return edit

    def try_draft(
        self, key: ObjectKey, size: int | None, *, etag_follows: bool = False
    ) -> PackedDraft | None:
        """Return a new body that begins in memory. Raises ``NoSpace``."""
        place = self._fresh_place(key)
        if place is None or not self._packs(place, size or 0):
            return None
        return new_draft(place, size, etag_follows=etag_follows)

    def _fresh_place(self, key: ObjectKey) -> Place | None:
        """Return the place of an object on a device that need not be looked at now."""
        device = self.devices.fresh(key.device)
        return None if device is None else Place(self.core, device, key)

    def _packs(self, place: Place, size_bytes: int) -> bool:
        """Return True if it is known that a body of a size becomes a record."""
        is_small = size_bytes <= self.devices.rules.object_bytes_max
        return is_small and place.device.conversion.packs(place.key.policy.index)

    def _recalled(
        self, key: ObjectKey, options: ReadOptions, *, open_data: bool
    ) -> tuple[Place, PackedLoaded] | None:
        place = self._fresh_place(key)
        memory = None if place is None else _memory_of(place.device)
        if place is None or memory is None:
            return None
        loaded = memory.load(place, options, open_data=open_data)
        return None if loaded is None else (place, loaded)

    # --- reading -------------------------------------------------------------------------------------

    def stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState:
        return self.devices.load(self.devices.place(key), options, open_data=False).state

    def open(self, key: ObjectKey, options: ReadOptions) -> StoredObject:
        place = self.devices.place(key)
        loaded = self.devices.load(place, options, open_data=True)
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
            with place.device.holding(place.lock):
                entries = place.entries()
                if {entry.name for entry in loaded.entries} <= {entry.name for entry in entries}:
                    quarantine(place, entries, reason)

        return give_up

    # --- changing ------------------------------------------------------------------------------------

    def edit(self, key: ObjectKey, options: ReadOptions, **how: Unpack[EditOptions]) -> FiledEdit:
        """Lock an object; a look costs so little that nothing is guessed."""
        place = self.devices.place(key)

        def load(entries: list[Entry]) -> PackedLoaded:
            return self.devices.load(place, options, entries, open_data=False, is_held=True)

        return FiledEdit(place, load, partitions_of(place, how.get("next_part_power")))

    def relink(self, key: ObjectKey, partition: str) -> None:
        place = self.devices.place(key)
        self.devices.partitions(key.device).link(place, int(partition))

    def reserve(self, key: ObjectKey, writer: Timestamp) -> FileReservation:
        return reserve(self.core.disk, self.core.clock, self.core.object_path(key), writer)

    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> PackedDraft:
        return new_draft(self.devices.place(key), size, etag_follows=etag_follows)

    # --- partitions ----------------------------------------------------------------------------------

    def hashes(
        self, device: str, partition: str, policy: Policy, **_how: Unpack[HashesOptions]
    ) -> dict[str, SuffixHash]:
        """See ``ObjectStore``: always computed from the index, so nothing is dirty."""
        return self.devices.partitions(device).hashes(int(partition), policy)

    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """See ``ObjectStore``: called after rsync wrote files, which are converted."""
        self.devices.partitions(device).touch(int(partition), policy)
        since_s = self.core.clock.time() - self.core.rules.reclaim.reclaim_age_s
        taken = Repacker(self.devices, device, policy).take_arrivals(int(partition), suffixes, since_s)
        if taken:
            self.core.notice(
                f"took files that rsync wrote into partition {partition} of {device}, policy {policy.name}: "
                f"{taken}; set sync_method = ssync in [object-replicator] of all other nodes"
            )

    def partitions(self, device: str, policy: Policy) -> list[str]:
        return [str(number) for number in self.devices.partitions(device).numbers(policy)]

    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        return iter(self.devices.partitions(device).inventory(int(partition), policy, suffixes))

    @contextmanager
    def replication_lock(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> Iterator[None]:
        opened, number = self.devices.device(device), PARTITION_LOCKS + (policy.index << 32) + int(partition)
        if self.devices.partitions(device).row(int(partition), policy) is None:
            self.invalidate(device, partition, policy, ())
        with (
            opened.holding(number, timeout_s),
            self._locks.device_place(opened.path, timeout_s) if incoming else nullcontext(),
        ):
            yield

    def __repr__(self) -> str:
        return f"PackedStore({self.core.devices!r})"


def _memory_of(device: PackedDevice) -> DeviceMemory | None:
    """Return the memory of a device; None if a disk has to be asked before anything else."""
    # Which partitions are unconfirmed is asked for seldom.
    session = device.session
    if device.confirmation.mark or not session.is_current:
        return None
    return DeviceMemory(session.index, session.spaces, device.volumes, device.conversion)
