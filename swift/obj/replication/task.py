"""The passes of object replicator and reconstructor over the partitions of a device, most in need first.

A pass checks every partition of a device (a stat if it is unchanged), requests digests of the shared
partitions once from each remote node (``request_status``), and plans a unit for each partition that is not in
sync. Partitions that do not belong on this device always become units. The daemon defines the work on a unit.

A changed ring ends the pass over its policy, because the old ring assigned the partitions.

``UnchangedPartitions`` selects partitions that a pass skips because they are being written. Hashing one
 while objects come in says little about it in a moment, costs a durable write of its hashes, and
takes the device from those who write. A partition that was in order when it was last looked at is therefore
left alone until it comes to rest; one that never does is looked at now and then. What could not be brought
in order is never left alone. A new ring makes every partition worth a look, and so does a partner that
turns out to have lost something.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from swift.base.documents import JsonObject
from swift.base.errors import DeviceUnavailable, LockTimeout
from swift.cluster.direct import DirectClient
from swift.cluster.owndevices import OwnDevices
from swift.cluster.rings import Rings
from swift.config.common import PortSettings
from swift.obj.replication.digests import DigestCache, PartitionState
from swift.obj.replication.remotenodes import NO_RESPONSE, UNMOUNTED, RemoteNodes
from swift.obj.replication.replicastatus import CopyState, DigestQuery, ReplicaStatus, request_status
from swift.obj.replication.settings import SyncSettings
from swift.obj.ssync.sender import Sender, SenderTimes
from swift.obj.stores import daemon_stores
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.ring.errors import RingError
from swift.ring.view import RingView
from swift.runtime.backendapp import BackendContext
from swift.runtime.copystate import (
    DeviceCopies,
    completed_pass_facts,
    device_copies_facts,
    other_replicas_after,
    running_pass_facts,
)
from swift.runtime.daemon import DaemonTask, PassContext, PassReport
from swift.runtime.declaration import DaemonParts
from swift.runtime.devicetask import DevicePassBase, DeviceTask
from swift.runtime.selection import Selection
from swift.store.api import ObjectStore
from swift.store.calls import Effort
from swift.store.handle import StoreHandle
from swift.store.registry import StoreRegistry

#: A partition that is being written is looked at after so long, seconds, although it did not come to rest.
RECHECK_S = 600.0


class UnchangedPartitions:
    """Partitions that were unchanged and in sync, kept from pass to pass; some 100 bytes a partition.

    A partition is at rest when it was not written for ``idle_after_s`` seconds.
    """

    def __init__(self, monotonic: Callable[[], float], idle_after_s: float, recheck_s: float = RECHECK_S):
        self._monotonic = monotonic
        self._calm_s = idle_after_s
        self._busy_s = recheck_s
        #: Device and policy → the ring they go by, and when partitions were found settled.
        self._in_sync: dict[tuple[str, int], tuple[RingView, dict[int, float]]] = {}

    def may_skip(self, device: str, policy: int, view: RingView, part: int, idle_s: float) -> bool:
        """Return True if a partition that was written ``idle_s`` seconds ago may be skipped for now."""
        settled_s = self._of(device, policy, view).get(part)
        if settled_s is None or idle_s >= self._calm_s:
            return False
        return self._monotonic() - settled_s < self._busy_s

    def note_in_sync(self, device: str, policy: int, view: RingView, parts: Iterable[int]) -> None:
        """Record partitions whose copies are equal, or were just synced."""
        self._of(device, policy, view).update(dict.fromkeys(parts, self._monotonic()))

    def forget(self, device: str, policy: int) -> None:
        """Forget all partitions of a device: a remote node may have lost its copies."""
        self._in_sync.pop((device, policy), None)

    def _of(self, device: str, policy: int, view: RingView) -> dict[int, float]:
        ring, known = self._in_sync.get((device, policy), (None, {}))
        if ring is not view:
            known = {}
            self._in_sync[device, policy] = view, known
        return known

    def __repr__(self) -> str:

        count = sum(len(known) for _, known in self._in_sync.values())
        return f"<UnchangedPartitions {count} in sync>"


#: Partitions that are looked at before work begins: those with fewest copies of them go first.
BATCH_PARTITIONS = 16384
#: Partitions that are hashed in one call of a disk thread.
_HASHED_PER_CALL = 50
#: Files that were left half-written are removed after so long, whatever the reclaim age, seconds.
_TEMPORARY_S = 86400.0

S = TypeVar("S", bound=SyncSettings)


@dataclass(frozen=True)
class LocalPartition:
    """A partition of this device, with its assignment in the policy's ring."""

    policy: Policy
    view: RingView
    part: int
    primaries: tuple[Node, ...]
    #: This device among the primaries; None when the partition does not belong here.
    own: Node | None
    entry: PartitionState

    @property
    def others(self) -> list[Node]:
        """Primaries on other devices."""
        return [node for node in self.primaries if self.own is None or node.id != self.own.id]

    def __str__(self) -> str:
        return f"partition {self.part} of policy {self.policy.index}"


@dataclass(frozen=True)
class PartitionUnit:
    """A partition to work on."""

    local: LocalPartition
    replica_status: ReplicaStatus

    @property
    def is_confirmed(self) -> bool:
        """Return True if a primary has nothing that another one has not, or is the only one."""
        is_equal = CopyState.EQUAL in self.replica_status.states.values()
        return self.local.own is not None and (is_equal or not self.local.others)

    def __str__(self) -> str:
        return str(self.local)


class SyncTask(DeviceTask, Generic[S]):
    """Base of replicator and reconstructor tasks; every device of this node is a share."""

    name = ""
    #: User-Agent of requests to other nodes.
    agent = ""

    def __init__(
        self,
        context: BackendContext,
        rings: Rings,
        settings: S,
        stores: StoreRegistry,
        *,
        disk: Disk | None = None,
        rng: random.Random | None = None,
        selection: Selection | None = None,
    ):
        super().__init__(context, disk=disk, rng=rng, selection=selection)
        self.rings = rings
        self.settings = settings
        self.stores = stores
        self.own = OwnDevices(context.ring_ip, context.ring_port)
        log = context.telemetry.log
        self.direct = DirectClient(context.transport, self.agent, settings)
        more_s = max(0.0, settings.http_timeout - settings.node_timeout)
        self.remote_nodes = RemoteNodes(self.direct, response_s=more_s, clock=context.clock, log=log)
        self.digest_cache = DigestCache(context.clock.monotonic, settings.recheck_interval)
        self.unchanged_partitions = UnchangedPartitions(context.clock.monotonic, settings.interval)

    def policies(self) -> list[Policy]:
        """Return the selected policies that the daemon handles."""
        mine = [policy for policy in self.context.policies if self.handles(policy)]
        return self.selection.filter_policies(mine)

    def handles(self, policy: Policy) -> bool:
        """Return True if the daemon handles the policy."""
        raise AssertionError("subclasses override this")

    def shares(self) -> list[str]:
        """Return the selected devices of this node that any of the rings has, in random order."""
        names: set[str] = set()
        for policy in self.policies():
            try:
                names.update(self.own.names(self.rings.object(policy).view()))
            except (RingError, OSError) as error:
                self.context.telemetry.log.error(
                    f"ERROR cannot load the ring of policy {policy.index}: {error}"
                )
        if not names and self.policies():
            self.context.telemetry.log.error(
                "Can't find itself in any ring, not replicating: no device has an address of this node"
            )
        chosen = self.selection.filter_devices(sorted(names))
        self.rng.shuffle(chosen)
        return chosen

    def progress(self, passed: PassReport) -> dict[str, object]:
        """Return the counts of misplaced and missing copies in the midst of a pass."""
        return running_pass_facts(passed, self.context.telemetry)

    def copies(self, passed: PassReport) -> dict[str, object]:
        """Return the counts of misplaced and missing copies at the end of a pass."""
        return completed_pass_facts(passed, self.context.telemetry)

    @property
    def times(self) -> SenderTimes:
        """Timeouts for other nodes."""
        settings = self.settings
        return SenderTimes(settings.conn_timeout, settings.node_timeout, settings.http_timeout)

    def sender(self, policy: Policy) -> Sender:
        """Return the sender of a policy's objects."""
        return Sender(
            self.context.transport,
            partial(self.stores.at, policy),
            self.times,
            agent=self.direct.agent,
            now_s=self.context.clock.time,
            log=self.context.telemetry.log,
        )


T = TypeVar("T", bound=SyncTask[Any])


class DeviceSyncPass(DevicePassBase, Generic[T]):
    """Base of a pass over one device: compares partitions and plans the work."""

    unavailable_event = "failures"

    def __init__(self, task: T, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._task = task
        self._stop = pass_context.stop
        #: Failures by address and device of the node.
        self.failed: dict[str, dict[str, int]] = {}
        #: Devices whose nodes have said in this pass that they are not there.
        self.unmounted: set[int] = set()
        self._failures = 0
        #: Ring name → what is not as the ring says.
        self._copies: dict[str, DeviceCopies] = {}

    # --- overridden by daemons --------------------------------------------------------------------------

    def digest_queries(self, local: LocalPartition) -> Iterable[tuple[Node, DigestQuery]]:
        """Yield the remote nodes to compare a partition with, and the expected digests."""
        raise AssertionError("subclasses override this")

    def fragment_index(self, own: Node | None, policy: Policy) -> int | None:
        """Return the fragment index that belongs on this device; None for replicated policies."""
        return None

    def in_work_order(self, units: list[PartitionUnit]) -> Iterator[PartitionUnit]:
        """Yield the units in the order of work; may wait between them."""
        yield from units

    def needs_work(self, unit: PartitionUnit) -> bool:
        """Return True if a partition needs work; others count as in sync."""
        return unit.local.own is None or not unit.replica_status.is_in_sync

    def is_misplaced(self, unit: PartitionUnit) -> bool:
        """Return True if part of a partition belongs on another node."""
        return unit.local.own is None

    def note_in_sync(self, units: Sequence[PartitionUnit]) -> None:
        """Handle partitions whose copies are all equal."""

    @property
    def is_partial(self) -> bool:
        """Return True if the pass covers only partitions that do not belong on this device."""
        return False

    def is_skipped(self, own: Node | None) -> bool:
        """Return True if the pass skips partitions with primary ``own``."""
        return False

    # --- planning ------------------------------------------------------------------------------------

    def plan(self) -> Iterator[PartitionUnit]:
        """Units of all policies, most in need first within some thousand partitions."""
        if self._device_path() is None:
            return
        self._task.remote_nodes.start_pass()
        for policy in self._task.policies():
            try:
                view = self._task.rings.object(policy).view()
            except (RingError, OSError) as error:
                self._log.error(f"ERROR cannot load the ring of policy {policy.index}: {error}")
                continue
            if view.next_part_power is not None:
                self._log.warning(f"policy {policy.index} is skipped: its part power is being increased")
                continue
            yield from self._plan_policy(policy, view)

    def _plan_policy(self, policy: Policy, view: RingView) -> Iterator[PartitionUnit]:
        store = self._task.stores.at(policy, self._device)
        before_s = self._task.context.clock.time() - max(_TEMPORARY_S, self._task.settings.reclaim_age)
        try:
            for name in store.maintenance.prepare(self._device, policy, before_s):
                self._counters.add("failures")
                self._log.warning(f"{name!r} on {self._device} is not a partition; remove it")
            names = store.partitions(self._device, policy)
        except (DeviceUnavailable, OSError) as error:
            self._counters.add("failures")
            self._log.error(f"ERROR cannot list {self._device}: {error}")
            return
        parts = [int(name) for name in names if self._is_selected(name, view)]
        copies = DeviceCopies(view.digest, is_partial=self.is_partial)
        copies.partitions = len(parts)
        self._copies[policy.ring_name] = copies
        self._task.rng.shuffle(parts)
        for start in range(0, len(parts), BATCH_PARTITIONS):
            partitions = self._local_partitions(policy, view, parts[start : start + BATCH_PARTITIONS], store)
            for unit in self.in_work_order(self._needing_work(policy, view, partitions)):
                if self._must_end(policy, view):
                    return
                yield unit

    def _is_selected(self, name: str, view: RingView) -> bool:
        if not self._task.selection.includes_partition(name):
            return False
        if str(int(name)) != name or int(name) >= view.partition_count:
            self._counters.add("failures")
            self._log.warning(f"partition {name} of {self._device} does not exist in its ring")
            return False
        return True

    def _must_end(self, policy: Policy, view: RingView) -> bool:
        """Return True if the pass must end or its ring has changed."""
        if self._stop.requested:
            return True
        try:
            if self._task.rings.object(policy).view() is view:
                return False
        except (RingError, OSError):
            return False
        self._log.info(f"the ring of policy {policy.index} has changed; this pass ends, the next one uses it")
        return True

    def _local_partitions(
        self, policy: Policy, view: RingView, parts: Sequence[int], store: StoreHandle
    ) -> list[LocalPartition]:
        """Return this device's state of the partitions."""
        ids = {
            device.id
            for device in view.devices
            if device is not None and device.device == self._device and device.id in self._task.own.ids(view)
        }
        chosen: list[tuple[int, tuple[Node, ...], Node | None]] = []
        for part in parts:
            primaries = view.primaries(part)
            own = next((node for node in primaries if node.id in ids), None)
            if not self.is_skipped(own):
                chosen.append((part, primaries, own))
        found: list[LocalPartition] = []
        for start in range(0, len(chosen), _HASHED_PER_CALL):
            if self._stop.requested:
                return found
            some = chosen[start : start + _HASHED_PER_CALL]
            entries = store.call(Effort.HASHES, self._partition_states, policy, view, some)
            found += [
                LocalPartition(policy, view, part, primaries, own, entry)
                for (part, primaries, own), entry in zip(some, entries, strict=True)
                if entry is not None
            ]
        return found

    def _partition_states(
        self,
        engine: ObjectStore,
        policy: Policy,
        view: RingView,
        some: Sequence[tuple[int, tuple[Node, ...], Node | None]],
    ) -> list[PartitionState | None]:
        """Return the partitions' states; None for those that cannot be hashed or are skipped for now."""
        entries: list[PartitionState | None] = []
        for part, _primaries, own in some:
            try:
                idle_s = engine.maintenance.idle_s(self._device, str(part), policy)
                if self._task.unchanged_partitions.may_skip(self._device, policy.index, view, part, idle_s):
                    entries.append(None)
                    continue
                index = self.fragment_index(own, policy)
                entries.append(self._task.digest_cache.entry(engine, self._device, part, policy, index))
            except (OSError, LockTimeout) as error:
                self._task.context.telemetry.faults.note(self._device, error)
                self._log.error(f"ERROR cannot hash partition {part} of {self._device}: {error}")
                self._counters.add("failures")
                self._copies[policy.ring_name].mark_failed(part)
                entries.append(None)
            # A long first look is no standstill.
            self._counters.activity += 1
        return entries

    def _needing_work(
        self, policy: Policy, view: RingView, partitions: Sequence[LocalPartition]
    ) -> list[PartitionUnit]:
        """Return the partitions that need work, fewest copies first."""
        queries: dict[int, tuple[Node, list[DigestQuery]]] = {}
        for local in partitions:
            for node, query in self.digest_queries(local):
                queries.setdefault(node.id, (node, []))[1].append(query)
        statuses = request_status(self._task.remote_nodes, policy, queries, self._note_no_digests)
        no_status = ReplicaStatus({})
        units = [PartitionUnit(local, statuses.get(local.part, no_status)) for local in partitions]
        self.confirm(policy, [unit.local.part for unit in units if unit.is_confirmed])
        left = [unit for unit in units if self.needs_work(unit)]
        rest = [unit for unit in units if not self.needs_work(unit)]
        if any(CopyState.MISSING in unit.replica_status.states.values() for unit in left):
            self._task.unchanged_partitions.forget(self._device, policy.index)
        self._task.unchanged_partitions.note_in_sync(
            self._device, policy.index, view, (unit.local.part for unit in rest)
        )
        self.note_in_sync(rest)
        copies = self._copies[policy.ring_name]
        for unit in left:
            copies.add_unit(
                unit.local.part, is_misplaced=self.is_misplaced(unit), lacking=list(_devices_to_report(unit))
            )
        return sorted(left, key=lambda unit: unit.replica_status.copies)

    def confirm(self, policy: Policy, parts: Sequence[int]) -> None:
        """Note partitions of this device that equal another replica."""
        try:
            store = self._task.stores.at(policy, self._device)
            store.maintenance.confirm(self._device, list(map(str, parts)), policy)
        except (DeviceUnavailable, OSError, LockTimeout) as error:
            self._log.error(f"ERROR cannot note replicated partitions of {self._device}: {error}")

    def _note_no_digests(self, node: Node, status: int) -> None:
        """Note that a node returned no digests; its partitions are then requested one by one."""
        if status == UNMOUNTED:
            self.unmounted.add(node.id)
        self._log.debug(f"{node.replication_key} responded {status} to a request for digests")

    # --- working and reporting ---------------------------------------------------------------------------

    def is_due(self, unit: PartitionUnit) -> bool:
        """Return True if a planned unit is still due: its ring is current and the pass goes on."""
        return not self._must_end(unit.local.policy, unit.local.view)

    def note_result(self, unit: PartitionUnit, failures_before: int, *, is_left: bool = False) -> None:
        """Record if a unit is in sync: no node failed, and nothing misplaced ``is_left``."""
        if self._stop.requested:
            return
        copies = self._copies[unit.local.policy.ring_name]
        if self._failures != failures_before:
            copies.mark_failed(unit.local.part)
        elif not is_left:
            copies.mark_done(unit.local.part)
            if unit.local.own is None:
                copies.partitions -= 1

    @property
    def failures(self) -> int:
        """Failures of other nodes in this pass."""
        return self._failures

    @contextmanager
    def working_on(self, unit: PartitionUnit) -> Iterator[None]:
        """Mark the unit's partition as in sync if no node fails during the block."""
        failures = self._failures
        yield
        if self._failures == failures and not self._stop.requested:
            local = unit.local
            self._task.unchanged_partitions.note_in_sync(
                self._device, local.policy.index, local.view, [local.part]
            )

    def differing_suffixes(
        self, local: LocalPartition, compare: Callable[[Mapping[str, object]], list[str]]
    ) -> list[str]:
        """Return the suffixes that a node lacks; rehashes them first because local hashes may be stale."""
        store, name = self._task.stores.at(local.policy, self._device), str(local.part)
        here = store.hashes(self._device, name, local.policy)
        if not local.policy.is_ec:
            self._counters.add("suffix.counts", len(here))
        suspects = compare(here)
        if not suspects:
            return []
        self._counters.add("suffix.hashes", len(suspects))
        return compare(store.hashes(self._device, name, local.policy, recalculate=suspects))

    def count_failure(self, node: Node) -> None:
        """Count a failure of a node."""
        self._failures += 1
        self._counters.add("failures")
        devices = self.failed.setdefault(node.replication_ip, {})
        devices[node.device] = devices.get(node.device, 0) + 1

    def note_refusal(self, node: Node, status: int, local: LocalPartition) -> None:
        """Count and log a node's refusal of suffix hashes; an unresponsive node was logged before."""
        self.count_failure(node)
        if status == UNMOUNTED:
            self.unmounted.add(node.id)
        if status != NO_RESPONSE:
            self._log.warning(f"{node.replication_key} responded {status} to a request for hashes of {local}")

    def facts(self) -> dict[str, object]:
        """Return the failures by address and device, and the counts of misplaced and missing copies."""
        return {"failure_nodes": self.failed, **device_copies_facts(self._copies)}


def _devices_to_report(unit: PartitionUnit) -> Iterator[str]:
    """Yield the devices that lack a partition and that this device must report.

    The holder of a replica reports those that come after it, up to the next holder; one whose copy is
    unknown may not report, as those of OpenStack Swift. The holder of an archive knows those next to it.
    """
    local = unit.local
    if local.own is None:
        return
    may_skip = local.policy.ec is None
    places = [node.id for node in local.primaries]
    for index in other_replicas_after(places.index(local.own.id), len(places)):
        node = local.primaries[index]
        state = unit.replica_status.state_of(node)
        if state is CopyState.MISSING:
            yield f"{node.ip}/{node.device}"
        elif state is not CopyState.UNKNOWN or not may_skip:
            return


def failures_by_node(facts: Iterable[JsonObject]) -> dict[str, dict[str, int]]:
    """Merge the failures by node of all shares."""
    failed: dict[str, dict[str, int]] = {}
    for each in facts:
        for ip, devices in each.get("failure_nodes", {}).items():
            counts = failed.setdefault(ip, {})
            for device, amount in devices.items():
                counts[device] = counts.get(device, 0) + amount
    return failed


def make_sync_task(parts: DaemonParts, task: type[SyncTask[Any]]) -> DaemonTask:
    """Return the task of a replicator or reconstructor."""
    context = parts.context
    if PortSettings.parse(parts.conf).servers_per_port:
        # Every device has a port of its own.
        context = dataclasses.replace(context, ring_port=0)
    made: Any = task(
        context,
        parts.rings,
        parts.settings,
        daemon_stores(parts, context),
        selection=parts.selection,
    )
    result: DaemonTask = made
    return result
