"""The packed engine: small objects as records in volumes, large ones as files beside them.

``device`` keeps volumes and index, ``objects`` reads, ``edit`` changes an object while it is held, and
``maintenance`` serves daemons. Reading takes no lock: a record that is not where the index said was moved by
compaction, so reading starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext

from swift.base.calls import Run
from swift.base.timestamp import Timestamp
from swift.policy.policy import Policy
from swift.store.api import Capabilities, ObjectKey, ObjectState, ReadOptions, StoredObject
from swift.store.asyncpending import FileUpdates
from swift.store.calls import Effort
from swift.store.core import EngineCore
from swift.store.hashes import SuffixHash
from swift.store.packed.device import IndexOpener, PackedRules
from swift.store.packed.devices import PackedDevices
from swift.store.packed.drafts import PackedDraft
from swift.store.packed.edit import PackedEdit, new_draft
from swift.store.packed.entry import Entry
from swift.store.packed.maintenance import PackedMaintenance
from swift.store.packed.objects import PackedLoaded, PackedObject, Reader
from swift.store.packed.place import Place
from swift.store.packed.quarantine import quarantine
from swift.store.packed.repack import Repacker
from swift.store.packed.space import PackedSpace
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
        """See ``ObjectStore``."""
        return _CAPABILITIES

    @property
    def updates(self) -> FileUpdates:
        """See ``ObjectStore``: files, as in the file engine."""
        return FileUpdates(self.core.disk, self.core.devices, self.core.hasher)

    @property
    def maintenance(self) -> PackedMaintenance:
        """See ``ObjectStore``."""
        return PackedMaintenance(self.devices)

    @property
    def space(self) -> PackedSpace:
        """The space of its devices."""
        return PackedSpace(self.devices)

    def run(self, device: str, effort: Effort) -> Run:
        """See ``ObjectStore``: changes are committed in a thread, and looks are served from memory."""
        run = self._runs.get((device, effort))
        if run is None:
            self.core.devices.path(device)
            pools = self.core.pools
            run = pools.run(device)
            if effort in (Effort.LOOK, Effort.CHANGE):
                run = pools.nonblocking(device)
            elif effort is not Effort.SHORT:
                run = pools.threads(device, effort.value)
            self._runs[device, effort] = run
        return run

    # --- reading -------------------------------------------------------------------------------------

    def stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState:
        """See ``ObjectStore``."""
        return self.devices.load(self.devices.place(key), options, open_data=False).state

    def open(self, key: ObjectKey, options: ReadOptions) -> StoredObject:
        """See ``ObjectStore``."""
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
        place = self.devices.place(key)

        def load(entries: list[Entry]) -> PackedLoaded:
            return self.devices.load(place, options, entries, open_data=False, is_held=True)

        return PackedEdit(place, Reader(self.core, place.device), load, next_part_power)

    def relink(self, key: ObjectKey, partition: str) -> None:
        """See ``ObjectStore``."""
        place = self.devices.place(key)
        self.devices.partitions(key.device).link(place, int(partition))

    def reserve(self, key: ObjectKey, writer: Timestamp) -> FileReservation:
        """See ``ObjectStore``."""
        return reserve(self.core.disk, self.core.clock, self.core.object_path(key), writer)

    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> PackedDraft:
        """See ``ObjectStore``."""
        return new_draft(self.devices.place(key), size, etag_follows=etag_follows)

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
        """See ``ObjectStore``."""
        return [str(number) for number in self.devices.partitions(device).numbers(policy)]

    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        """See ``ObjectStore``."""
        return iter(self.devices.partitions(device).inventory(int(partition), policy, suffixes))

    @contextmanager
    def replication_lock(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> Iterator[None]:
        """See ``ObjectStore``."""
        opened, number = self.devices.device(device), PARTITION_LOCKS + (policy.index << 32) + int(partition)
        if self.devices.partitions(device).row(int(partition), policy) is None:
            self.invalidate(device, partition, policy, ())
        with (
            opened.locks.hold(number, timeout_s),
            self._locks.device_place(opened.path, timeout_s) if incoming else nullcontext(),
        ):
            yield

    def __repr__(self) -> str:
        return f"PackedStore({self.core.devices!r})"
