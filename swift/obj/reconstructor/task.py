"""The reconstructor: neighbours rebuild archives that primaries lack; misplaced archives are reverted.

A primary compares the archives of its own index with those of three neighbours and rebuilds the archives that
they lack (``_sync``). Archives of other indexes, and everything on a handoff, are pushed to the primaries of
their index and purged here once all of those have them (``_revert``). Uncommitted archives are pushed as
uncommitted; the engine reclaims those that are too old for a commit. spec: replication.md §5

What is to be done about a partition is decided from suffix hashes alone. Tombstones belong to no index:
they go along with the first job, and where there is none to enough primaries that a majority meets one of
them. spec: replication.md §5
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from swift.base.errors import LockTimeout
from swift.cluster.rings import Rings
from swift.ec.codec import Codec
from swift.obj.reconstructor.rebuild import ArchiveNodes, ArchiveReader, LoneFragmentRule, Rebuilder
from swift.obj.reconstructor.settings import ObjectReconstructorSettings
from swift.obj.replication.remotenodes import differing_archive_suffixes
from swift.obj.replication.replicastatus import CopyState, DigestQuery
from swift.obj.replication.task import DeviceSyncPass, LocalPartition, PartitionUnit, SyncTask, make_sync_task
from swift.obj.ssync.sender import PushFailed, Sender, SsyncJob, SsyncResult
from swift.platform.disk import Disk
from swift.policy.policy import ErasureCode, Policy
from swift.ring.device import Node
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport
from swift.runtime.declaration import Daemon
from swift.runtime.selection import Selection
from swift.store.api import DELETED, Location, ObjectStore, ReadOptions, SyncedVersion
from swift.store.calls import Effort
from swift.store.registry import StoreRegistry
from swift.wire.ssync import Offer


@dataclass(frozen=True)
class ArchiveRevert:
    """Archives of one index (None: tombstones only) that go to these nodes, and leave here."""

    index: int | None
    suffixes: tuple[str, ...]
    nodes: tuple[Node, ...]


def fragment_of(node: Node, ec: ErasureCode) -> int:
    """Return the index of the archives that belong to a primary."""
    return (node.index or 0) % ec.fragments


def sync_partners(own: Node, primaries: Sequence[Node]) -> list[Node]:
    """Return the neighbours that a primary rebuilds for: left, right and far."""
    count, at = len(primaries), own.index or 0
    places = dict.fromkeys(((at - 1) % count, (at + 1) % count, (at + count // 2) % count))
    return [primaries[place] for place in places if primaries[place].id != own.id]


def plan_reverts(
    hashes: Mapping[str, object],
    own: Node | None,
    primaries: Sequence[Node],
    ec: ErasureCode,
    rng: random.Random,
) -> list[ArchiveRevert]:
    """Return the archives to revert.

    Archives of an index without a primary stay. Archives of an index that no primary has stay.
    """
    by_index: dict[int, list[str]] = {}
    bare: list[str] = []
    for suffix, value in sorted(hashes.items()):
        indexes = [key for key in value if key is not None] if isinstance(value, Mapping) else []
        for index in indexes:
            if own is None or index != fragment_of(own, ec):
                by_index.setdefault(index, []).append(suffix)
        if not indexes and isinstance(value, Mapping):
            bare.append(suffix)
    reverts = []
    for index, suffixes in sorted(by_index.items()):
        nodes = tuple(node for node in primaries if fragment_of(node, ec) == index)
        if nodes:
            reverts.append(ArchiveRevert(index, tuple(suffixes), nodes))
    if own is None and bare:
        if reverts:
            first = reverts[0]
            reverts[0] = ArchiveRevert(first.index, tuple(sorted({*first.suffixes, *bare})), first.nodes)
        else:
            enough = min(len(primaries), ec.fragments * ec.duplication - ec.data + 1)
            reverts.append(ArchiveRevert(None, tuple(bare), tuple(rng.sample(list(primaries), enough))))
    return reverts


NAME = "object-reconstructor"
#: Timeout for the partition's replication lock, seconds.
LOCK_S = 0.2
#: Objects that are purged in one call of a disk thread.
_BATCH = 100


class ObjectReconstructor(SyncTask[ObjectReconstructorSettings]):
    """The task."""

    name = NAME
    agent = "obj-reconstructor"

    def __init__(
        self,
        context: BackendContext,
        rings: Rings,
        settings: ObjectReconstructorSettings,
        stores: StoreRegistry,
        *,
        disk: Disk | None = None,
        rng: random.Random | None = None,
        selection: Selection | None = None,
    ):
        super().__init__(context, rings, settings, stores, disk=disk, rng=rng, selection=selection)
        self._codecs: dict[int, Codec] = {}

    def handles(self, policy: Policy) -> bool:
        """Return True for erasure coded policies."""
        return policy.is_ec

    def begin(self, share: str, pass_context: PassContext) -> ReconstructorPass:
        """Return a pass over the device ``share``."""
        return ReconstructorPass(self, share, pass_context)

    def rebuilder(self, local: LocalPartition) -> Rebuilder:
        """Return the rebuilder of a partition's archives; raises ``CodecError``."""
        policy, settings = local.policy, self.settings
        ec = _ec(policy)
        if policy.index not in self._codecs:
            self._codecs[policy.index] = Codec(ec.ec_type, ec.data, ec.parity)
        rule = LoneFragmentRule(
            settings.quarantine_threshold, settings.quarantine_age_s, settings.nodes_asked(ec.replicas)
        )
        return Rebuilder(
            ArchiveReader(self.context.transport, policy, self.times, self.direct.agent),
            self._codecs[policy.index],
            partial(self.stores.at, policy),
            ArchiveNodes(local.part, local.others, partial(local.view.handoffs, local.part)),
            rule,
            self.context.clock.time,
        )

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass; times are minutes."""
        facts: dict[str, object] = {
            "object_reconstruction_time": passed.seconds / 60,
            "object_reconstruction_last": passed.ended_s,
            **self.copies(passed),
        }
        if self.settings.reconstructor_workers:
            facts["object_reconstruction_per_disk"] = {
                device: {
                    "object_reconstruction_time": result.seconds / 60,
                    "object_reconstruction_last": result.begun_s + result.seconds,
                }
                for device, result in passed.results.items()
            }
        return facts


def _ec(policy: Policy) -> ErasureCode:
    assert policy.ec is not None
    return policy.ec


class ReconstructorPass(DeviceSyncPass[ObjectReconstructor]):
    """One pass over the partitions of a device."""

    def __init__(self, task: ObjectReconstructor, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._settings = task.settings
        self._senders: dict[int, Sender] = {}

    # --- planning ------------------------------------------------------------------------------------

    def fragment_index(self, own: Node | None, policy: Policy) -> int | None:
        """See ``DeviceSyncPass``."""
        return None if own is None else fragment_of(own, _ec(policy))

    def digest_queries(self, local: LocalPartition) -> Iterable[tuple[Node, DigestQuery]]:
        """Return a query for each neighbour, for its own fragment index."""
        if local.own is None:
            return []
        ec = _ec(local.policy)
        return [
            (node, DigestQuery(local.part, local.entry.digest, fragment_of(node, ec)))
            for node in sync_partners(local.own, local.primaries)
        ]

    @property
    def is_partial(self) -> bool:
        """See ``DeviceSyncPass``."""
        return self._settings.handoffs_only

    def is_skipped(self, own: Node | None) -> bool:
        """See ``DeviceSyncPass``."""
        return self._settings.handoffs_only and own is not None

    def needs_work(self, unit: PartitionUnit) -> bool:
        """See ``DeviceSyncPass``; what does not belong here is work as well."""
        return super().needs_work(unit) or self.is_misplaced(unit)

    def is_misplaced(self, unit: PartitionUnit) -> bool:
        """See ``DeviceSyncPass``; archives of others are misplaced too."""
        own = self.fragment_index(unit.local.own, unit.local.policy)
        return unit.local.own is None or bool(unit.local.entry.indexes - {own, None})

    def note_in_sync(self, units: Sequence[PartitionUnit]) -> None:
        """See ``DeviceSyncPass``."""
        if units:
            self._counters.add("attempts", len(units))
            self._counters.add("hashmatches", sum(len(unit.replica_status.states) for unit in units))

    # --- doing ---------------------------------------------------------------------------------------

    def do(self, unit: PartitionUnit) -> None:
        """Work on one partition."""
        if not self.is_due(unit):
            return
        local = unit.local
        name = str(local.part)
        self._counters.add("attempts")
        store = self._task.stores.at(local.policy, self._device)
        hashes = store.hashes(self._device, name, local.policy)
        failures = self.failures
        if local.own is not None:
            with self._timed("update"), self.working_on(unit):
                self._sync(unit, local.own, hashes)
        reverts = plan_reverts(hashes, local.own, local.primaries, _ec(local.policy), self._task.rng)
        for revert in reverts:
            with self._timed("delete"):
                self._revert(local, revert)
        is_left = False
        if local.own is None:
            is_left = not self._remove_partition(local)
            if not is_left:
                self._counters.add("removes")
        elif reverts:
            again = store.hashes(self._device, name, local.policy)
            is_left = bool(plan_reverts(again, local.own, local.primaries, _ec(local.policy), self._task.rng))
        self.note_result(unit, failures, is_left=is_left)

    def _remove_partition(self, local: LocalPartition) -> bool:
        """Remove a handoff partition from which everything was handed over; return True if it is gone."""
        store, name = self._task.stores.at(local.policy, self._device), str(local.part)
        if store.maintenance.remove_partition(self._device, name, local.policy):
            return True
        hashes = store.hashes(self._device, name, local.policy)
        without_archives = [
            suffix
            for suffix, value in hashes.items()
            if isinstance(value, Mapping) and all(key is None for key in value)
        ]
        if not without_archives:
            return False
        for names in store.inventory(name, local.policy, without_archives):
            locations = [Location(self._device, name, local.policy, each) for each in names]
            store.maintenance.remove_lone_metadata(locations)
        return store.maintenance.remove_partition(self._device, name, local.policy)

    @contextmanager
    def _timed(self, kind: str) -> Iterator[None]:
        clock = self._pass_context.clock
        started_s = clock.monotonic()
        self._counters.add(f"partition.{kind}.count.{self._device}")
        yield
        self._counters.timing(f"partition.{kind}.timing", clock.monotonic() - started_s)

    def _push(self, job: SsyncJob, rebuild: Rebuilder | None = None) -> SsyncResult | None:
        """Return the archives that a node has after the push; None, counted and logged, if unknown."""
        policy = job.policy
        if policy.index not in self._senders:
            self._senders[policy.index] = self._task.sender(policy)
        try:
            pushed = self._senders[policy.index].push(job, rebuild)
        except PushFailed as error:
            self._log.error(f"ERROR cannot push partition {job.partition} of policy {policy.index}: {error}")
            self.count_failure(job.node)
            return None
        self._counters.add("suffix.syncs", len(job.suffixes))
        if pushed.failed:
            self.count_failure(job.node)
        else:
            self._counters.add("successes")
        return pushed

    # --- syncing neighbours ------------------------------------------------------------------------

    def _sync(self, unit: PartitionUnit, own: Node, hashes: Mapping[str, object]) -> None:
        """Rebuild missing archives of three neighbours; handoffs replace unmounted devices."""
        local = unit.local
        rebuild = self._task.rebuilder(local)
        for node in sync_partners(own, local.primaries):
            if self._stop.requested:
                return
            if unit.replica_status.state_of(node) is CopyState.EQUAL:
                self._counters.add("hashmatches")
                continue
            for place in self._push_targets(local, node):
                if self._sync_with(local, own, place, fragment_of(node, _ec(local.policy)), rebuild):
                    break

    def _push_targets(self, local: LocalPartition, node: Node) -> Iterator[Node]:
        """Yield the neighbour, or the handoffs that hold its archives while its device is unmounted."""
        if node.id not in self.unmounted:
            yield node
        else:
            self.count_failure(node)
        if node.id not in self.unmounted:
            return
        index, fragments = fragment_of(node, _ec(local.policy)), _ec(local.policy).fragments
        left = self._settings.rebuild_handoff_node_count
        for handoff in local.view.handoffs(local.part):
            if left == 0:
                return
            if (handoff.handoff_index or 0) % fragments == index:
                left -= 1
                yield handoff

    def _sync_with(
        self, local: LocalPartition, own: Node, node: Node, index: int, rebuild: Rebuilder
    ) -> bool:
        """Push the archives of ``index`` that a node lacks; return False if the node did not respond."""
        status, theirs = self._task.remote_nodes.hashes(node, local.policy, local.part)
        if status != 200:
            self.note_refusal(node, status, local)
            return False
        mine = fragment_of(own, _ec(local.policy))
        suffixes = self.differing_suffixes(
            local, lambda here: differing_archive_suffixes(here, mine, theirs, index)
        )
        if suffixes:
            job = SsyncJob(
                self._device, str(local.part), local.policy, node, suffixes, fragment=mine, target=index
            )
            self._push(job, rebuild)
        else:
            self._counters.add("hashmatches")
        return True

    # --- reverting -------------------------------------------------------------------

    def _revert(self, local: LocalPartition, revert: ArchiveRevert) -> None:
        """Push archives to their primaries and remove those that all of the primaries have."""
        store = self._task.stores.at(local.policy, self._device)
        with ExitStack() as held:
            try:
                held.enter_context(
                    store.replication_lock(str(local.part), local.policy, LOCK_S, incoming=False)
                )
            except LockTimeout:
                self._counters.add("partition.lock-failure.count")
                return
            offers = self._push_to_all(local, revert)
            names = list(offers)
            for start in range(0, len(names), _BATCH):
                some = {name: offers[name] for name in names[start : start + _BATCH]}
                store.call(Effort.SSYNC, self._purge, local, revert, some)

    def _push_to_all(self, local: LocalPartition, revert: ArchiveRevert) -> dict[str, Offer]:
        """Return the objects that every target node is known to have."""
        common: dict[str, Offer] | None = None
        for node in revert.nodes:
            job = SsyncJob(
                self._device,
                str(local.part),
                local.policy,
                node,
                revert.suffixes,
                fragment=revert.index,
                target=revert.index,
                uncommitted=True,
                objects_max=self._settings.max_objects_per_revert,
            )
            pushed = self._push(job)
            if pushed is None:
                return {}
            if common is None:
                common = pushed.in_sync
            else:
                common = {name: offer for name, offer in common.items() if pushed.in_sync.get(name) == offer}
        return common or {}

    def _purge(
        self, engine: ObjectStore, local: LocalPartition, revert: ArchiveRevert, offers: Mapping[str, Offer]
    ) -> None:
        """Remove exactly the pushed versions. A primary keeps its tombstones and metadata."""
        view = ReadOptions(self._task.context.clock.time(), True, [], revert.index)
        purges: list[tuple[Location, SyncedVersion]] = []
        for name, offer in offers.items():
            location = Location(self._device, str(local.part), local.policy, name)
            if local.own is not None and engine.maintenance.find(location, view).state.kind == DELETED:
                continue
            synced = SyncedVersion(
                offer.data, revert.index, offer.durable, offer.meta, keeps_metadata=local.own is not None
            )
            purges.append((location, synced))
        engine.maintenance.purge_all(purges)


DAEMON = Daemon(
    NAME,
    "object",
    "Rebuild lost fragment archives and revert misplaced ones.",
    ObjectReconstructorSettings,
    lambda parts: make_sync_task(parts, ObjectReconstructor),
)
