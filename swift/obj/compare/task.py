"""The passes of object replicator and reconstructor over the partitions of a device, most in need first.

A pass looks at every partition of a device (a stat, when nothing has happened to it), asks each partner
once about all that is shared with it (``survey``), and makes units of what is not settled. Partitions that
do not belong here are units in any case. What a unit is worked on with is the daemon's.

A ring that changes ends the pass over its policy: who belongs where was decided by the old one.

``Calm`` says which partitions a pass leaves alone for now, because they are being written. Hashing a
partition while objects come in says little about it in a moment, costs a durable write of its hashes, and
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
from swift.obj.compare.digests import DigestBook, KnownPartition
from swift.obj.compare.partners import NO_ANSWER, UNMOUNTED, Partners
from swift.obj.compare.settings import CompareSettings
from swift.obj.compare.survey import Asked, Standing, SurveyVerdict, survey
from swift.obj.settings import ObjectSettings
from swift.obj.ssync.sender import Sender, SenderTimes
from swift.obj.stores import make_stores
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.ring.errors import RingError
from swift.ring.view import RingView
from swift.runtime.backendapp import BackendContext
from swift.runtime.copystate import DeviceCopies, completed, copies_facts, rotated_after, under_way
from swift.runtime.daemon import DaemonTask, PassContext, PassReport
from swift.runtime.declaration import DaemonParts
from swift.runtime.devicetask import DevicePassBase, DeviceTask
from swift.runtime.selection import Selection
from swift.store.api import ObjectStore
from swift.store.calls import Effort
from swift.store.handle import StoreHandle
from swift.store.registry import StoreRegistry
from swift.store.tier.conf import settings_of

#: A partition that is being written is looked at after so long, seconds, although it did not come to rest.
BUSY_S = 600.0


class Calm:
    """The memory of one daemon, kept from pass to pass; some 100 bytes a partition.

    A partition is at rest when it was not written for ``calm_s`` seconds.
    """

    def __init__(self, monotonic: Callable[[], float], calm_s: float, busy_s: float = BUSY_S):
        self._monotonic = monotonic
        self._calm_s = calm_s
        self._busy_s = busy_s
        #: Device and policy → the ring they go by, and when partitions were found settled.
        self._settled: dict[tuple[str, int], tuple[RingView, dict[int, float]]] = {}

    def may_wait(self, device: str, policy: int, view: RingView, part: int, idle_s: float) -> bool:
        """Whether to leave a partition alone that was written ``idle_s`` seconds ago."""
        settled_s = self._of(device, policy, view).get(part)
        if settled_s is None or idle_s >= self._calm_s:
            return False
        return self._monotonic() - settled_s < self._busy_s

    def settled(self, device: str, policy: int, view: RingView, parts: Iterable[int]) -> None:
        """Everybody has the same of these partitions, or was just brought what was lacking."""
        self._of(device, policy, view).update(dict.fromkeys(parts, self._monotonic()))

    def forget(self, device: str, policy: int) -> None:
        """Everything is worth a look: a partner may have lost all it had."""
        self._settled.pop((device, policy), None)

    def _of(self, device: str, policy: int, view: RingView) -> dict[int, float]:
        ring, known = self._settled.get((device, policy), (None, {}))
        if ring is not view:
            known = {}
            self._settled[device, policy] = view, known
        return known

    def __repr__(self) -> str:
        return f"<Calm {sum(len(known) for _, known in self._settled.values())} settled partitions>"


#: Partitions that are looked at before work begins: those with fewest copies of them go first.
SURVEYED = 16384
#: Partitions that are hashed in one call of a disk thread.
_LOOKED_AT = 50
#: Files that were left half-written are removed after so long, whatever the reclaim age, seconds.
_TEMPORARY_S = 86400.0

S = TypeVar("S", bound=CompareSettings)


@dataclass(frozen=True)
class Local:
    """A partition of this device, by the ring of its policy."""

    policy: Policy
    view: RingView
    part: int
    primaries: tuple[Node, ...]
    #: This device among the primaries; None when the partition does not belong here.
    own: Node | None
    entry: KnownPartition

    @property
    def others(self) -> list[Node]:
        """The primaries that are other devices."""
        return [node for node in self.primaries if self.own is None or node.id != self.own.id]

    def __str__(self) -> str:
        return f"partition {self.part} of policy {self.policy.index}"


@dataclass(frozen=True)
class PartitionUnit:
    """A partition to work on."""

    local: Local
    standing: Standing

    def __str__(self) -> str:
        return str(self.local)


class CompareTask(DeviceTask, Generic[S]):
    """The half of a daemon's task that knows rings and partners; every device of this node is a share."""

    name = ""
    #: How the daemon names itself to other nodes.
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
        self.partners = Partners(self.direct, answer_s=more_s, clock=context.clock, log=log)
        self.book = DigestBook(context.clock.monotonic, settings.recheck_interval)
        self.calm = Calm(context.clock.monotonic, settings.interval)

    def policies(self) -> list[Policy]:
        """The selected policies of the daemon's kind."""
        mine = [policy for policy in self.context.policies if self.takes(policy)]
        return self.selection.of_policies(mine)

    def takes(self, policy: Policy) -> bool:
        """Whether the daemon is for policies like this one."""
        raise AssertionError("every daemon says so")

    def shares(self) -> list[str]:
        """The selected devices of this node that any of the rings has, in random order."""
        names: set[str] = set()
        for policy in self.policies():
            try:
                names.update(self.own.names(self.rings.object(policy).view()))
            except (RingError, OSError) as error:
                self.context.telemetry.log.error(f"ERROR no ring of policy {policy.index}: {error}")
        if not names and self.policies():
            self.context.telemetry.log.error("Can't find itself in any ring; nothing is compared")
        chosen = self.selection.of_devices(sorted(names))
        self.rng.shuffle(chosen)
        return chosen

    def progress(self, passed: PassReport) -> dict[str, object]:
        """Return the counts of misplaced and missing copies in the midst of a pass."""
        return under_way(passed, self.context.telemetry)

    def copies(self, passed: PassReport) -> dict[str, object]:
        """The same at the end of one."""
        return completed(passed, self.context.telemetry)

    @property
    def times(self) -> SenderTimes:
        """How long other nodes are waited for."""
        settings = self.settings
        return SenderTimes(settings.conn_timeout, settings.node_timeout, settings.http_timeout)

    def sender(self, policy: Policy) -> Sender:
        """Who pushes objects of a policy."""
        return Sender(
            self.context.transport,
            partial(self.stores.at, policy),
            self.times,
            agent=self.direct.agent,
            now_s=self.context.clock.time,
            log=self.context.telemetry.log,
        )


T = TypeVar("T", bound=CompareTask[Any])


class ComparePass(DevicePassBase, Generic[T]):
    """The half of a pass over one device that finds out what is to be done."""

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

    # --- what a daemon says --------------------------------------------------------------------------

    def questions(self, local: Local) -> Iterable[tuple[Node, Asked]]:
        """With whom a partition is compared, and what has to be equal."""
        raise AssertionError("every daemon says so")

    def index_of(self, own: Node | None, policy: Policy) -> int | None:
        """Erasure coding: the index of the archives that belong on this device."""
        return None

    def ordered(self, units: list[PartitionUnit]) -> Iterator[PartitionUnit]:
        """The units in the order in which to take them; it may wait between them."""
        yield from units

    def needs_work(self, unit: PartitionUnit) -> bool:
        """Whether a partition is a unit; what is not is settled."""
        return unit.local.own is None or not unit.standing.is_settled

    def is_misplaced(self, unit: PartitionUnit) -> bool:
        """Return True if something of a partition belongs elsewhere."""
        return unit.local.own is None

    def settled(self, units: Sequence[PartitionUnit]) -> None:
        """Everybody has the same of these partitions."""

    @property
    def is_partial(self) -> bool:
        """Return True if only partitions that do not belong here are looked at."""
        return False

    def is_left_out(self, own: Node | None) -> bool:
        """Whether a partition, of which this device is the primary ``own``, is not to be looked at."""
        return False

    # --- planning ------------------------------------------------------------------------------------

    def plan(self) -> Iterator[PartitionUnit]:
        """Units of all policies, most in need first within some thousand partitions."""
        if self._device_path() is None:
            return
        self._task.partners.begin()
        for policy in self._task.policies():
            try:
                view = self._task.rings.object(policy).view()
            except (RingError, OSError) as error:
                self._log.error(f"ERROR no ring of policy {policy.index}: {error}")
                continue
            if view.next_part_power is not None:
                self._log.warning(f"policy {policy.index} is left out: its partitions are being split")
                continue
            yield from self._of_policy(policy, view)

    def _of_policy(self, policy: Policy, view: RingView) -> Iterator[PartitionUnit]:
        store = self._task.stores.at(policy, self._device)
        before_s = self._task.context.clock.time() - max(_TEMPORARY_S, self._task.settings.reclaim_age)
        try:
            for name in store.upkeep.prepare(self._device, policy, before_s):
                self._counters.add("failures")
                self._log.warning(f"{name!r} is no partition, and is in the way on {self._device}")
            names = store.partitions(self._device, policy)
        except (DeviceUnavailable, OSError) as error:
            self._counters.add("failures")
            self._log.error(f"ERROR cannot list {self._device}: {error}")
            return
        parts = [int(name) for name in names if self._is_wanted(name, view)]
        copies = DeviceCopies(view.digest, is_partial=self.is_partial)
        copies.partitions = len(parts)
        self._copies[policy.ring_name] = copies
        self._task.rng.shuffle(parts)
        for start in range(0, len(parts), SURVEYED):
            locals_ = self._look(policy, view, parts[start : start + SURVEYED], store)
            for unit in self.ordered(self._survey(policy, view, locals_)):
                if self._is_over(policy, view):
                    return
                yield unit

    def _is_wanted(self, name: str, view: RingView) -> bool:
        if not self._task.selection.has_partition(name):
            return False
        if str(int(name)) != name or int(name) >= view.partition_count:
            self._counters.add("failures")
            self._log.warning(f"partition {name} of {self._device} is none of its ring")
            return False
        return True

    def _is_over(self, policy: Policy, view: RingView) -> bool:
        """Whether the work is to end, or was planned by a ring that is not any more."""
        if self._stop.requested:
            return True
        try:
            if self._task.rings.object(policy).view() is view:
                return False
        except (RingError, OSError):
            return False
        self._log.info(f"the ring of policy {policy.index} has changed; the next pass goes by the new one")
        return True

    def _look(self, policy: Policy, view: RingView, parts: Sequence[int], store: StoreHandle) -> list[Local]:
        """What this device has of the partitions."""
        ids = {
            device.id
            for device in view.devices
            if device is not None and device.device == self._device and device.id in self._task.own.ids(view)
        }
        chosen: list[tuple[int, tuple[Node, ...], Node | None]] = []
        for part in parts:
            primaries = view.primaries(part)
            own = next((node for node in primaries if node.id in ids), None)
            if not self.is_left_out(own):
                chosen.append((part, primaries, own))
        found: list[Local] = []
        for start in range(0, len(chosen), _LOOKED_AT):
            if self._stop.requested:
                return found
            some = chosen[start : start + _LOOKED_AT]
            entries = store.place(Effort.HASHES, self._entries, policy, view, some)
            found += [
                Local(policy, view, part, primaries, own, entry)
                for (part, primaries, own), entry in zip(some, entries, strict=True)
                if entry is not None
            ]
        return found

    def _entries(
        self,
        engine: ObjectStore,
        policy: Policy,
        view: RingView,
        some: Sequence[tuple[int, tuple[Node, ...], Node | None]],
    ) -> list[KnownPartition | None]:
        """Return what is known; None for what cannot be hashed, or is better left alone now."""
        entries: list[KnownPartition | None] = []
        for part, _primaries, own in some:
            try:
                idle_s = engine.upkeep.idle_s(self._device, str(part), policy)
                if self._task.calm.may_wait(self._device, policy.index, view, part, idle_s):
                    entries.append(None)
                    continue
                index = self.index_of(own, policy)
                entries.append(self._task.book.entry(engine, self._device, part, policy, index))
            except (OSError, LockTimeout) as error:
                self._task.context.telemetry.faults.note(self._device, error)
                self._log.error(f"ERROR cannot hash partition {part} of {self._device}: {error}")
                self._counters.add("failures")
                self._copies[policy.ring_name].failed(part)
                entries.append(None)
            # A long first look is no standstill.
            self._counters.activity += 1
        return entries

    def _survey(self, policy: Policy, view: RingView, locals_: Sequence[Local]) -> list[PartitionUnit]:
        """Those that need work, fewest copies first."""
        questions: dict[int, tuple[Node, list[Asked]]] = {}
        for local in locals_:
            for node, asked in self.questions(local):
                questions.setdefault(node.id, (node, []))[1].append(asked)
        standings = survey(self._task.partners, policy, questions, self._noticed)
        nobody = Standing({})
        units = [PartitionUnit(local, standings.get(local.part, nobody)) for local in locals_]
        left = [unit for unit in units if self.needs_work(unit)]
        rest = [unit for unit in units if not self.needs_work(unit)]
        if any(SurveyVerdict.NOTHING in unit.standing.verdicts.values() for unit in left):
            self._task.calm.forget(self._device, policy.index)
        self._task.calm.settled(self._device, policy.index, view, (unit.local.part for unit in rest))
        self.settled(rest)
        copies = self._copies[policy.ring_name]
        for unit in left:
            copies.found(unit.local.part, is_misplaced=self.is_misplaced(unit), lacking=list(_lacking(unit)))
        return sorted(left, key=lambda unit: unit.standing.copies)

    def _noticed(self, node: Node, status: int) -> None:
        """A partner gave no digests; what is shared with it is asked for partition by partition."""
        if status == UNMOUNTED:
            self.unmounted.add(node.id)
        self._log.debug(f"{node.replication_key} answered {status} to a question for digests")

    # --- doing and telling ---------------------------------------------------------------------------

    def may_do(self, unit: PartitionUnit) -> bool:
        """Whether a planned unit is still to be done: not by an old ring, and not after the end."""
        return not self._is_over(unit.local.policy, unit.local.view)

    def note_result(self, unit: PartitionUnit, failures_before: int, *, is_left: bool = False) -> None:
        """Note whether a unit is in order now: no node failed, and nothing misplaced ``is_left``."""
        if self._stop.requested:
            return
        copies = self._copies[unit.local.policy.ring_name]
        if self._failures != failures_before:
            copies.failed(unit.local.part)
        elif not is_left:
            copies.done(unit.local.part)
            if unit.local.own is None:
                copies.partitions -= 1

    @property
    def failures(self) -> int:
        """Failures with nodes so far."""
        return self._failures

    @contextmanager
    def working_on(self, unit: PartitionUnit) -> Iterator[None]:
        """The work on a unit: when no node fails meanwhile, the partition is in order afterwards."""
        failures = self._failures
        yield
        if self._failures == failures and not self._stop.requested:
            local = unit.local
            self._task.calm.settled(self._device, local.policy.index, local.view, [local.part])

    def differing(self, local: Local, compare: Callable[[Mapping[str, object]], list[str]]) -> list[str]:
        """Return the suffixes that a node lacks, looked at once more: this device may not be up to date."""
        store, name = self._task.stores.at(local.policy, self._device), str(local.part)
        here = store.hashes(self._device, name, local.policy)
        if not local.policy.is_ec:
            self._counters.add("suffix.counts", len(here))
        suspects = compare(here)
        if not suspects:
            return []
        self._counters.add("suffix.hashes", len(suspects))
        return compare(store.hashes(self._device, name, local.policy, recalculate=suspects))

    def fail(self, node: Node) -> None:
        """Something could not be done with a node."""
        self._failures += 1
        self._counters.add("failures")
        devices = self.failed.setdefault(node.replication_ip, {})
        devices[node.device] = devices.get(node.device, 0) + 1

    def refused(self, node: Node, status: int, local: Local) -> None:
        """A node did not tell its hashes of a partition; one that is silent was complained of already."""
        self.fail(node)
        if status == UNMOUNTED:
            self.unmounted.add(node.id)
        if status != NO_ANSWER:
            self._log.warning(f"{node.replication_key} answered {status} about {local}")

    def facts(self) -> dict[str, object]:
        """The nodes that failed, by address and device, and what is not as the rings say."""
        return {"failure_nodes": self.failed, **copies_facts(self._copies)}


def _lacking(unit: PartitionUnit) -> Iterator[str]:
    """The devices without a partition that it is this one's turn to report, so that each is reported once.

    The holder of a replica reports those that come after it, up to the next one that may be a holder.
    """
    local = unit.local
    if local.own is None:
        return
    places = [node.id for node in local.primaries]
    for index in rotated_after(places.index(local.own.id), len(places)):
        node = local.primaries[index]
        if unit.standing.says(node) is not SurveyVerdict.NOTHING:
            return
        yield f"{node.ip}/{node.device}"


def failure_nodes(facts: Iterable[JsonObject]) -> dict[str, dict[str, int]]:
    """The same of all shares."""
    failed: dict[str, dict[str, int]] = {}
    for each in facts:
        for ip, devices in each.get("failure_nodes", {}).items():
            counts = failed.setdefault(ip, {})
            for device, amount in devices.items():
                counts[device] = counts.get(device, 0) + amount
    return failed


def make_compare_task(parts: DaemonParts, task: type[CompareTask[Any]]) -> DaemonTask:
    """Return the task of a daemon that compares devices, replicator or reconstructor."""
    context = parts.context
    if PortSettings.parse(parts.conf).servers_per_port:
        # Every device has a port of its own.
        context = dataclasses.replace(context, ring_port=0)
    made: Any = task(
        context,
        parts.rings,
        parts.settings,
        make_stores(
            context, ObjectSettings.parse(parts.conf), parts.storage, tier=settings_of(parts.conf_path)
        ),
        selection=parts.selection,
    )
    result: DaemonTask = made
    return result
