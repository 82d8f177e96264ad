"""Revert of a handoff partition: push it to its primaries, then remove it here (spec: replication.md §2.2).

What is here is listed first, object by object, and exactly that is removed in the end: what arrives meanwhile
stays for the next pass. An object goes once so many primaries are known to have it as ``handoff_delete``
demands, all of them if it says nothing; what they have is durable by then, if they can do that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from swift.base.errors import LockTimeout
from swift.obj.replication.digests import digest_of
from swift.obj.replication.remotenodes import RemoteNodes
from swift.obj.replication.replicastatus import CopyState
from swift.obj.replication.task import PartitionUnit
from swift.obj.replicator.delivery import Delivery, DeliveryFailed, DeliveryResult, ReplicationJob
from swift.obj.ssync.sender import UNREADABLE_MAX
from swift.ring.device import Node
from swift.runtime.report import Counters
from swift.store.api import ABSENT, DELETED, LIVE, Location, ObjectStore, ReadOptions, SyncedVersion
from swift.store.calls import Effort
from swift.store.errors import FilesChanged
from swift.store.handle import StoreHandle
from swift.store.layout import suffix_of
from swift.telemetry.log import Log

#: Timeout for the partition's replication lock, seconds.
LOCK_S = 0.2
#: Objects that are removed in one call of a disk thread.
BATCH = 100
#: Objects of a partition that are brought home in one pass; the others wait for the next.
OBJECTS_MAX = 200_000


@dataclass(frozen=True)
class RevertContext:
    """Dependencies of the reverts of one device."""

    device: str
    device_path: str
    store: StoreHandle
    remote_nodes: RemoteNodes
    delivery: Delivery
    #: Copies that must be known; 0: all.
    handoff_delete: int
    now_s: Callable[[], float]
    counters: Counters
    log: Log
    #: Counts something that could not be done with a node.
    count_failure: Callable[[Node], None]


class Revert:
    """One handoff partition."""

    def __init__(self, context: RevertContext, unit: PartitionUnit):
        self._context = context
        self._unit = unit
        self._part = str(unit.local.part)
        self._policy = unit.local.policy
        #: Objects that are neither there nor deleted; metadata may be left of them.
        self._without_data: list[Location] = []
        self._is_unchanged = False
        #: Number of unreadable objects.
        self._unreadable = 0

    def run(self) -> bool:
        """Push everything to the primaries; return True if the local partition is removed."""
        context = self._context
        with ExitStack() as held:
            try:
                held.enter_context(
                    context.store.replication_lock(self._part, self._policy, LOCK_S, incoming=False)
                )
            except LockTimeout:
                context.counters.add("partition.lock-failure.count")
                return False
            self._run_locked()
        return context.store.maintenance.remove_partition(context.device, self._part, self._policy)

    def _run_locked(self) -> None:
        local_versions: dict[str, SyncedVersion] = {}
        store = self._context.store
        self._without_data.clear()
        for names in store.inventory(self._part, self._policy):
            local_versions.update(store.call(Effort.SSYNC, self._local_versions, names))
            if len(local_versions) >= OBJECTS_MAX:
                break
        if local_versions:
            self._remove(local_versions, self._push_all(local_versions))
        if self._without_data:
            store.maintenance.remove_lone_metadata(self._without_data)

    def _local_versions(self, engine: ObjectStore, names: Sequence[str]) -> dict[str, SyncedVersion]:
        """Return what some objects of the partition are."""
        found: dict[str, SyncedVersion] = {}
        view = ReadOptions(self._context.now_s(), open_expired=True)
        for name in names:
            try:
                state = engine.maintenance.find(self._location(name), view).state
            except (FilesChanged, OSError) as error:
                self._skip_unreadable(name, error)
                continue
            if state.kind == DELETED:
                found[name] = SyncedVersion(state.timestamp)
            elif state.kind == LIVE:
                found[name] = SyncedVersion(state.data_timestamp, meta_timestamp=state.timestamp)
            elif state.kind == ABSENT:
                self._without_data.append(self._location(name))
        return found

    def _skip_unreadable(self, name: str, error: Exception) -> None:
        """Keep an unreadable object here; raise its error if there are more than ``UNREADABLE_MAX``."""
        self._unreadable += 1
        if self._unreadable > UNREADABLE_MAX:
            raise error
        self._context.log.error(f"ERROR cannot read object {name} of {self._unit}: {error}")

    def _location(self, name: str) -> Location:
        return Location(self._context.device, self._part, self._policy, name)

    # --- pushing ------------------------------------------------------------------------------------

    def _push_all(self, local_versions: dict[str, SyncedVersion]) -> list[DeliveryResult]:
        """Push to each primary; return the results of those that responded."""
        suffixes = sorted({suffix_of(name) for name in local_versions})
        job = ReplicationJob(
            self._context.device,
            self._context.device_path,
            self._policy,
            self._unit.local.part,
            suffixes,
            durable=True,
        )
        self._is_unchanged = self._has_compared_digest(suffixes)
        own_region = self._own_region()
        results: list[DeliveryResult] = []
        by_region: dict[int, frozenset[str]] = {}
        for node in self._unit.local.others:
            confirms = by_region.get(node.region)
            asked = job if confirms is None else replace(job, confirms=confirms)
            result = self._push_to(asked, node, other_region=node.region != own_region)
            if result is None:
                continue
            results.append(result)
            if node.region != own_region and result.hashes is not None:
                by_region.setdefault(node.region, result.hashes)
        return results

    def _has_compared_digest(self, suffixes: Sequence[str]) -> bool:
        """Return True if the partition is still what the primaries were compared with.

        A change that came here since then is among the local versions, but perhaps on no primary.
        """
        if CopyState.EQUAL not in self._unit.replica_status.states.values():
            return False
        # Files that another node copies here are announced after they have come.
        hashes = self._context.store.hashes(
            self._context.device, self._part, self._policy, recalculate=suffixes, list_suffixes=True
        )
        return digest_of(hashes, None) == self._unit.local.entry.digest

    def _own_region(self) -> int | None:
        view, name = self._unit.local.view, self._context.device
        regions = [d.region for d in view.devices if d is not None and d.device == name]
        return regions[0] if regions else None

    def _push_to(self, job: ReplicationJob, node: Node, *, other_region: bool) -> DeliveryResult | None:
        context = self._context
        if context.remote_nodes.is_absent(node):
            # The node was logged when it became unresponsive.
            context.count_failure(node)
            return None
        try:
            if self._is_unchanged and self._unit.replica_status.state_of(node) is CopyState.EQUAL:
                context.counters.add("hashmatches")
                acknowledged = context.remote_nodes.invalidate(
                    node, self._policy, job.part, list(job.suffixes), durable=True
                )
                if not acknowledged:
                    raise DeliveryFailed(f"{node.replication_key} did not sync its copy to disk")
                result = DeliveryResult()
            else:
                result = context.delivery.push(job, node, other_region=other_region)
                context.counters.add("rsyncs")
                context.counters.add("suffix.syncs", len(job.suffixes))
        except DeliveryFailed as error:
            context.log.error(f"ERROR cannot revert {self._unit}: {error}")
            context.count_failure(node)
            return None
        if result.failed:
            context.count_failure(node)
        else:
            context.counters.add("successes")
        return result

    # --- removing ------------------------------------------------------------------------------------

    def _remove(self, local_versions: dict[str, SyncedVersion], results: list[DeliveryResult]) -> None:
        """Remove objects that enough primaries are known to have."""
        copies = len(self._unit.local.others)
        needed = min(self._context.handoff_delete or copies, copies)
        if len(results) < max(1, needed):
            return
        removable = [name for name in local_versions if _count(results, name) >= needed]
        for start in range(0, len(removable), BATCH):
            some = {name: local_versions[name] for name in removable[start : start + BATCH]}
            self._context.store.call(Effort.SSYNC, self._purge, some)

    def _purge(self, engine: ObjectStore, some: dict[str, SyncedVersion]) -> None:
        engine.maintenance.purge_all([(self._location(name), synced) for name, synced in some.items()])


def _count(results: list[DeliveryResult], name: str) -> int:
    return sum(1 for each in results if each.hashes is None or name in each.hashes)
