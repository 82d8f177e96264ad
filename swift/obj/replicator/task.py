"""The object replicator: syncs primaries with each other and reverts handoffs.

A partition of which this device is a primary is compared with the other primaries; what they lack is brought
to them (``_update``). What they have and we lack is theirs to bring. A partition that does not belong here is
brought to all primaries, and an object of it is removed here once enough of them are known to have it
durably (``revert``). spec: replication.md §2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from swift.obj.replication.remotenodes import differing_suffixes
from swift.obj.replication.replicastatus import CopyState, DigestQuery
from swift.obj.replication.task import (
    DeviceSyncPass,
    LocalPartition,
    PartitionUnit,
    SyncTask,
    failures_by_node,
    make_sync_task,
)
from swift.obj.replicator.delivery import Delivery, DeliveryFailed, ReplicationJob, make_delivery
from swift.obj.replicator.revert import Revert, RevertContext
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.runtime.daemon import PassContext, PassReport
from swift.runtime.declaration import Daemon
from swift.runtime.sharerun import ShareResult
from swift.store.calls import Effort

NAME = "object-replicator"
#: Events as they are counted → as the recon file names them.
RECON_NAMES = {
    "attempts": "attempted",
    "failures": "failure",
    "hashmatches": "hashmatch",
    "removes": "remove",
    "rsyncs": "rsync",
    "successes": "success",
    "suffix.counts": "suffix_count",
    "suffix.hashes": "suffix_hash",
    "suffix.syncs": "suffix_sync",
}
#: Seconds between checks for the end of the last handoffs.
_HANDOFFS_POLL_S = 0.05


class ObjectReplicator(SyncTask[ObjectReplicatorSettings]):
    """The task."""

    name = NAME
    agent = NAME

    def handles(self, policy: Policy) -> bool:
        """Replicated ones."""
        return not policy.is_ec

    def begin(self, share: str, pass_context: PassContext) -> ReplicatorPass:
        """Return a pass over the device ``share``."""
        return ReplicatorPass(self, share, pass_context)

    def delivery(self, policy: Policy) -> Delivery:
        """Return the delivery for objects of a policy."""
        rsyncable = self.stores.capabilities(policy).rsyncable
        log = self.context.telemetry.log
        return make_delivery(self.settings, self.remote_nodes, self.sender(policy), log, rsyncable=rsyncable)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass; times are minutes."""
        minutes = passed.seconds / 60
        facts: dict[str, object] = {
            "replication_stats": _stats(passed.results.values(), passed.ended_s - passed.seconds),
            "replication_time": minutes,
            "replication_last": passed.ended_s,
            "object_replication_time": minutes,
            "object_replication_last": passed.ended_s,
            **self.copies(passed),
        }
        if self.settings.replicator_workers:
            facts["object_replication_per_disk"] = {
                device: {
                    "replication_stats": _stats([result], result.begun_s),
                    "object_replication_time": result.seconds / 60,
                    "object_replication_last": result.begun_s + result.seconds,
                }
                for device, result in passed.results.items()
            }
        return facts


def _stats(results: Iterable[ShareResult], began_s: float) -> Mapping[str, object]:
    each = list(results)
    stats: dict[str, object] = {"start": began_s}
    for event, name in RECON_NAMES.items():
        stats[name] = sum(result.counts.get(event, 0) for result in each)
    stats["failure_nodes"] = failures_by_node(result.facts for result in each)
    return stats


class ReplicatorPass(DeviceSyncPass[ObjectReplicator]):
    """One pass over the partitions of a device."""

    def __init__(self, task: ObjectReplicator, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._settings = task.settings
        self._deliveries: dict[int, Delivery] = {}
        #: Handoff partitions that were begun and not ended, and those that are still here.
        self._reverting = 0
        self._handoffs_left = 0

    # --- planning ------------------------------------------------------------------------------------

    def digest_queries(self, local: LocalPartition) -> Iterable[tuple[Node, DigestQuery]]:
        """Return a query for each other primary: its digest must equal the local one."""
        return [(node, DigestQuery(local.part, local.entry.digest)) for node in local.others]

    @property
    def is_partial(self) -> bool:
        """See ``DeviceSyncPass``."""
        return self._settings.handoffs_only

    def is_skipped(self, own: Node | None) -> bool:
        """See ``DeviceSyncPass``."""
        return self._settings.handoffs_only and own is not None

    def note_in_sync(self, units: Sequence[PartitionUnit]) -> None:
        """See ``DeviceSyncPass``."""
        if units:
            nodes = sum(len(unit.local.others) for unit in units)
            self._counters.add("attempts", len(units))
            self._counters.add("hashmatches", nodes)
            self._counters.add("successes", nodes)

    def in_work_order(self, units: list[PartitionUnit]) -> Iterator[PartitionUnit]:
        """See ``DeviceSyncPass``; with ``handoffs_first`` nothing else is done while one is left."""
        if not self._settings.handoffs_first:
            yield from units
            return
        handoffs = [unit for unit in units if unit.local.own is None]
        self._handoffs_left += len(handoffs)
        yield from handoffs
        while self._reverting and not self._stop.wait(_HANDOFFS_POLL_S):
            continue
        if self._handoffs_left:
            left = self._handoffs_left
            self._log.warning(f"handoffs_first is on: {left} handoff partitions are left; others wait")
            return
        yield from (unit for unit in units if unit.local.own is not None)

    # --- doing ---------------------------------------------------------------------------------------

    def do(self, unit: PartitionUnit) -> None:
        """Work on one partition."""
        if not self.is_due(unit):
            return
        kind = "update" if unit.local.own is not None else "delete"
        self._counters.add("attempts")
        self._counters.add(f"partition.{kind}.count.{self._device}")
        clock = self._pass_context.clock
        started_s, failures, is_left = clock.monotonic(), self.failures, False
        if unit.local.own is not None:
            with self.working_on(unit):
                self._update(unit, unit.local.own)
        else:
            is_left = not self._revert(unit)
        self.note_result(unit, failures, is_left=is_left)
        self._counters.timing(f"partition.{kind}.timing", clock.monotonic() - started_s)

    def _delivery(self, policy: Policy) -> Delivery:
        if policy.index not in self._deliveries:
            self._deliveries[policy.index] = self._task.delivery(policy)
        return self._deliveries[policy.index]

    def _revert(self, unit: PartitionUnit) -> bool:
        """Return True if the partition is gone from here."""
        self._reverting += 1
        try:
            is_gone = Revert(self._revert_context(unit.local.policy), unit).run()
            if is_gone:
                self._handoffs_left -= 1
                self._counters.add("removes")
            return is_gone
        finally:
            self._reverting -= 1

    def _revert_context(self, policy: Policy) -> RevertContext:
        task = self._task
        return RevertContext(
            self._device,
            self._path(),
            task.stores.at(policy, self._device).for_purpose(Effort.SSYNC),
            task.remote_nodes,
            self._delivery(policy),
            self._settings.handoff_delete,
            task.context.clock.time,
            self._counters,
            self._log,
            self.count_failure,
        )

    # --- updates -------------------------------------------------------------------------------------

    def _update(self, unit: PartitionUnit, own: Node) -> None:
        """Push missing objects to the other primaries; handoffs replace unmounted devices."""
        local = unit.local
        nodes = local.others
        self._task.rng.shuffle(nodes)
        attempts, gone = len(nodes), 0
        regions: set[int] = set()
        for node in chain(nodes, local.view.handoffs(local.part)):
            if attempts <= 0 or self._stop.requested:
                return
            attempts -= 1
            if unit.replica_status.state_of(node) is CopyState.EQUAL:
                self._count_equal()
            elif node.region != own.region and node.region in regions:
                # A node in that region passes it on: data crosses regions once.
                continue
            elif not self._is_mounted(unit, node):
                gone += 1
                attempts += self._needs_handoff(len(local.primaries), gone)
            elif self._sync(local, node, other_region=node.region != own.region):
                regions.add(node.region)

    def _is_mounted(self, unit: PartitionUnit, node: Node) -> bool:
        if node.id not in self.unmounted:
            return True
        self.count_failure(node)
        return False

    def _needs_handoff(self, copies: int, gone: int) -> int:
        """Return 1 if a handoff must replace an unmounted device."""
        least = self._settings.handoff_delete
        return 0 if least and copies - gone >= least else 1

    def _count_equal(self) -> None:
        self._counters.add("hashmatches")
        self._counters.add("successes")

    def _sync(self, local: LocalPartition, node: Node, *, other_region: bool) -> bool:
        """Compare suffixes with one node and push those that it lacks; return True if it pushed any."""
        policy, part = local.policy, local.part
        status, theirs = self._task.remote_nodes.hashes(node, policy, part)
        if status != 200:
            self.note_refusal(node, status, local)
            return False
        here: dict[str, object] = {}

        def compare(mine: Mapping[str, object]) -> list[str]:
            here.update(mine)
            return differing_suffixes(mine, theirs)

        suffixes = self.differing_suffixes(local, compare)
        if not suffixes:
            self._count_equal()
            if here.keys() >= theirs.keys():
                self.confirm(policy, [part])
            return False
        job = ReplicationJob(self._device, self._path(), policy, part, suffixes)
        try:
            result = self._delivery(policy).push(job, node, other_region=other_region)
        except DeliveryFailed as error:
            self._log.error(f"ERROR cannot replicate {local}: {error}")
            self.count_failure(node)
            return False
        self._counters.add("suffix.syncs", len(suffixes))
        self._counters.add("rsyncs")
        if result.failed:
            self.count_failure(node)
        else:
            self._counters.add("successes")
        return True

    def _path(self) -> str:
        return self._task.context.devices.path(self._device)


DAEMON = Daemon(
    NAME,
    "object",
    "Replicate objects to all of their nodes.",
    ObjectReplicatorSettings,
    lambda parts: make_sync_task(parts, ObjectReplicator),
)
