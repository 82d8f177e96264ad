"""The object replicator: what primaries have in common is made equal, handoffs are brought home.

A partition of which this device is a primary is compared with the other primaries; what they lack is brought
to them (``_update``). What they have and we lack is theirs to bring. A partition that does not belong here is
brought to all primaries, and an object of it is removed here once enough of them are known to have it
durably (``revert``). spec: replication.md §2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from swift.obj.compare.partners import differing
from swift.obj.compare.survey import Asked, SurveyVerdict
from swift.obj.compare.task import (
    ComparePass,
    CompareTask,
    Local,
    PartitionUnit,
    failure_nodes,
    make_compare_task,
)
from swift.obj.replicator.delivery import Delivery, DeliveryFailed, Parcel, delivery_of
from swift.obj.replicator.revert import Revert, RevertContext
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.runtime.daemon import PassContext, PassReport
from swift.runtime.declaration import Daemon
from swift.runtime.share import ShareResult
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
#: How often it is looked whether the last handoffs are done, seconds.
_HANDOFFS_POLL_S = 0.05


class ObjectReplicator(CompareTask[ObjectReplicatorSettings]):
    """The task."""

    name = NAME
    agent = NAME

    def takes(self, policy: Policy) -> bool:
        """Replicated ones."""
        return not policy.is_ec

    def begin(self, share: str, pass_context: PassContext) -> ReplicatorPass:
        """A pass over the device ``share``."""
        return ReplicatorPass(self, share, pass_context)

    def delivery(self, policy: Policy) -> Delivery:
        """What brings objects of a policy to nodes."""
        rsyncable = self.stores.capabilities(policy).rsyncable
        log = self.context.telemetry.log
        return delivery_of(self.settings, self.partners, self.sender(policy), log, rsyncable=rsyncable)

    def report(self, passed: PassReport) -> dict[str, object]:
        """The recon facts of the pass; times are minutes."""
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
    stats["failure_nodes"] = failure_nodes(result.facts for result in each)
    return stats


class ReplicatorPass(ComparePass[ObjectReplicator]):
    """One pass over the partitions of a device."""

    def __init__(self, task: ObjectReplicator, device: str, pass_context: PassContext):
        super().__init__(task, device, pass_context)
        self._settings = task.settings
        self._deliveries: dict[int, Delivery] = {}
        #: Handoff partitions that were begun and not ended, and those that are still here.
        self._reverting = 0
        self._not_home = 0

    # --- planning ------------------------------------------------------------------------------------

    def questions(self, local: Local) -> Iterable[tuple[Node, Asked]]:
        """All other primaries are to have the same."""
        return [(node, Asked(local.part, local.entry.digest)) for node in local.others]

    @property
    def is_partial(self) -> bool:
        """See ``ComparePass``."""
        return self._settings.handoffs_only

    def is_left_out(self, own: Node | None) -> bool:
        """See ``ComparePass``."""
        return self._settings.handoffs_only and own is not None

    def settled(self, units: Sequence[PartitionUnit]) -> None:
        """See ``ComparePass``."""
        if units:
            nodes = sum(len(unit.local.others) for unit in units)
            self._counters.add("attempts", len(units))
            self._counters.add("hashmatches", nodes)
            self._counters.add("successes", nodes)

    def ordered(self, units: list[PartitionUnit]) -> Iterator[PartitionUnit]:
        """See ``ComparePass``; with ``handoffs_first`` nothing else is done while one is left."""
        if not self._settings.handoffs_first:
            yield from units
            return
        handoffs = [unit for unit in units if unit.local.own is None]
        self._not_home += len(handoffs)
        yield from handoffs
        while self._reverting and not self._stop.wait(_HANDOFFS_POLL_S):
            continue
        if self._not_home:
            self._log.warning(f"handoffs_first is on, and {self._not_home} handoff partitions are left")
            return
        yield from (unit for unit in units if unit.local.own is not None)

    # --- doing ---------------------------------------------------------------------------------------

    def do(self, unit: PartitionUnit) -> None:
        """Work on one partition."""
        if not self.may_do(unit):
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
            is_left = not self._bring_home(unit)
        self.note_result(unit, failures, is_left=is_left)
        self._counters.timing(f"partition.{kind}.timing", clock.monotonic() - started_s)

    def _delivery(self, policy: Policy) -> Delivery:
        if policy.index not in self._deliveries:
            self._deliveries[policy.index] = self._task.delivery(policy)
        return self._deliveries[policy.index]

    def _bring_home(self, unit: PartitionUnit) -> bool:
        """Return True if the partition is gone from here."""
        self._reverting += 1
        try:
            is_gone = Revert(self._home(unit.local.policy), unit).work()
            if is_gone:
                self._not_home -= 1
                self._counters.add("removes")
            return is_gone
        finally:
            self._reverting -= 1

    def _home(self, policy: Policy) -> RevertContext:
        task = self._task
        return RevertContext(
            self._device,
            self._path(),
            task.stores.at(policy, self._device).for_purpose(Effort.SSYNC),
            task.partners,
            self._delivery(policy),
            self._settings.handoff_delete,
            task.context.clock.time,
            self._counters,
            self._log,
            self.fail,
        )

    # --- updates -------------------------------------------------------------------------------------

    def _update(self, unit: PartitionUnit, own: Node) -> None:
        """Bring the other primaries what they lack; handoffs stand in for devices that are not there."""
        local = unit.local
        nodes = local.others
        self._task.rng.shuffle(nodes)
        attempts, gone = len(nodes), 0
        regions: set[int] = set()
        for node in chain(nodes, local.view.handoffs(local.part)):
            if attempts <= 0 or self._stop.requested:
                return
            attempts -= 1
            if unit.standing.says(node) is SurveyVerdict.EQUAL:
                self._count_equal()
            elif node.region != own.region and node.region in regions:
                # Its neighbours bring it there; the way between regions is taken once.
                continue
            elif not self._is_there(unit, node):
                gone += 1
                attempts += self._wants_stand_in(len(local.primaries), gone)
            elif self._sync(local, node, other_region=node.region != own.region):
                regions.add(node.region)

    def _is_there(self, unit: PartitionUnit, node: Node) -> bool:
        if node.id not in self.unmounted:
            return True
        self.fail(node)
        return False

    def _wants_stand_in(self, copies: int, gone: int) -> int:
        """1 when a handoff is to take what a device that is gone should have."""
        least = self._settings.handoff_delete
        return 0 if least and copies - gone >= least else 1

    def _count_equal(self) -> None:
        self._counters.add("hashmatches")
        self._counters.add("successes")

    def _sync(self, local: Local, node: Node, *, other_region: bool) -> bool:
        """Compare suffix by suffix with one node, and bring what it lacks; whether something was brought."""
        policy, part = local.policy, local.part
        status, theirs = self._task.partners.hashes(node, policy, part)
        if status != 200:
            self.refused(node, status, local)
            return False
        suffixes = self.differing(local, lambda mine: differing(mine, theirs))
        if not suffixes:
            self._count_equal()
            return False
        parcel = Parcel(self._device, self._path(), policy, part, suffixes)
        try:
            delivered = self._delivery(policy).bring(parcel, node, other_region=other_region)
        except DeliveryFailed as error:
            self._log.error(f"ERROR {local}: {error}")
            self.fail(node)
            return False
        self._counters.add("suffix.syncs", len(suffixes))
        self._counters.add("rsyncs")
        if delivered.failed:
            self.fail(node)
        else:
            self._counters.add("successes")
        return True

    def _path(self) -> str:
        return self._task.context.devices.path(self._device)


DAEMON = Daemon(
    NAME,
    "object",
    "Bring objects of replicated policies to all nodes that should have them.",
    ObjectReplicatorSettings,
    lambda parts: make_compare_task(parts, ObjectReplicator),
)
