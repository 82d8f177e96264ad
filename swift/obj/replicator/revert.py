"""Bringing a handoff partition home, and removing here what is home (spec: replication.md §2.2).

What is here is listed first, object by object, and exactly that is removed in the end: what arrives meanwhile
stays for the next pass. An object goes once so many primaries are known to have it as ``handoff_delete``
demands, all of them if it says nothing; what they have is durable by then, if they can do that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from swift.base.errors import LockTimeout
from swift.obj.compare.partners import Partners
from swift.obj.compare.survey import SurveyVerdict
from swift.obj.compare.task import PartitionUnit
from swift.obj.replicator.delivery import Delivered, Delivery, DeliveryFailed, Parcel
from swift.ring.device import Node
from swift.runtime.report import Counters
from swift.store.api import DELETED, LIVE, HandedOver, Location, ObjectStore, Viewpoint
from swift.store.calls import Effort
from swift.store.handle import StoreHandle
from swift.store.layout import suffix_of
from swift.telemetry.log import Log

#: How long another one who replicates into the partition is waited for, seconds.
LOCK_S = 0.2
#: Objects that are removed in one call of a disk thread.
BATCH = 100
#: Objects of a partition that are brought home in one pass; the others wait for the next.
OBJECTS_MAX = 200_000


@dataclass(frozen=True)
class RevertContext:
    """What reverts of one device are handed."""

    device: str
    device_path: str
    store: StoreHandle
    partners: Partners
    delivery: Delivery
    #: Copies that must be known; 0: all.
    handoff_delete: int
    now_s: Callable[[], float]
    counters: Counters
    log: Log
    #: Counts something that could not be done with a node.
    fail: Callable[[Node], None]


class Revert:
    """One handoff partition."""

    def __init__(self, home: RevertContext, unit: PartitionUnit):
        self._home = home
        self._unit = unit
        self._part = str(unit.local.part)
        self._policy = unit.local.policy

    def work(self) -> bool:
        """Bring everything home; whether the partition is gone from here."""
        home = self._home
        with ExitStack() as held:
            try:
                held.enter_context(
                    home.store.replication_lock(self._part, self._policy, LOCK_S, incoming=False)
                )
            except LockTimeout:
                home.counters.add("partition.lock-failure.count")
                return False
            self._work_locked()
        return home.store.upkeep.remove_partition(home.device, self._part, self._policy)

    def _work_locked(self) -> None:
        here: dict[str, HandedOver] = {}
        store = self._home.store
        for names in store.inventory(self._part, self._policy):
            here.update(store.place(Effort.SSYNC, self._some, names))
            if len(here) >= OBJECTS_MAX:
                break
        if here:
            self._remove(here, self._bring(here))

    def _some(self, engine: ObjectStore, names: Sequence[str]) -> dict[str, HandedOver]:
        """Return what some objects of the partition are."""
        found: dict[str, HandedOver] = {}
        view = Viewpoint(self._home.now_s(), open_expired=True)
        for name in names:
            state = engine.upkeep.find(self._location(name), view).state
            if state.kind == DELETED:
                found[name] = HandedOver(state.timestamp)
            elif state.kind == LIVE:
                found[name] = HandedOver(state.data_timestamp, meta_timestamp=state.timestamp)
        return found

    def _location(self, name: str) -> Location:
        return Location(self._home.device, self._part, self._policy, name)

    # --- bringing ------------------------------------------------------------------------------------

    def _bring(self, here: dict[str, HandedOver]) -> list[Delivered]:
        """What each primary has afterwards; those that could not be reached are not in the list."""
        suffixes = sorted({suffix_of(name) for name in here})
        parcel = Parcel(
            self._home.device,
            self._home.device_path,
            self._policy,
            self._unit.local.part,
            suffixes,
            durable=True,
        )
        own_region = self._own_region()
        arrived: list[Delivered] = []
        by_region: dict[int, frozenset[str]] = {}
        for node in self._unit.local.others:
            confirms = by_region.get(node.region)
            asked = parcel if confirms is None else replace(parcel, confirms=confirms)
            delivered = self._bring_one(asked, node, other_region=node.region != own_region)
            if delivered is None:
                continue
            arrived.append(delivered)
            if node.region != own_region and delivered.hashes is not None:
                by_region.setdefault(node.region, delivered.hashes)
        return arrived

    def _own_region(self) -> int | None:
        view, name = self._unit.local.view, self._home.device
        regions = [d.region for d in view.devices if d is not None and d.device == name]
        return regions[0] if regions else None

    def _bring_one(self, parcel: Parcel, node: Node, *, other_region: bool) -> Delivered | None:
        home = self._home
        if home.partners.is_absent(node):
            # That was said when it was noticed.
            home.fail(node)
            return None
        try:
            if self._unit.standing.says(node) is SurveyVerdict.EQUAL:
                home.counters.add("hashmatches")
                heard = home.partners.invalidate(
                    node, self._policy, parcel.part, list(parcel.suffixes), durable=True
                )
                if not heard:
                    raise DeliveryFailed(f"{node.replication_key} did not make durable what it has")
                delivered = Delivered()
            else:
                delivered = home.delivery.bring(parcel, node, other_region=other_region)
                home.counters.add("rsyncs")
                home.counters.add("suffix.syncs", len(parcel.suffixes))
        except DeliveryFailed as error:
            home.log.error(f"ERROR {self._unit}: {error}")
            home.fail(node)
            return None
        if delivered.failed:
            home.fail(node)
        else:
            home.counters.add("successes")
        return delivered

    # --- removing ------------------------------------------------------------------------------------

    def _remove(self, here: dict[str, HandedOver], arrived: list[Delivered]) -> None:
        """Remove what enough primaries are known to have."""
        copies = len(self._unit.local.others)
        needed = min(self._home.handoff_delete or copies, copies)
        if len(arrived) < max(1, needed):
            return
        going = [name for name in here if _count(arrived, name) >= needed]
        for start in range(0, len(going), BATCH):
            some = {name: here[name] for name in going[start : start + BATCH]}
            self._home.store.place(Effort.SSYNC, self._purge, some)

    def _purge(self, engine: ObjectStore, some: dict[str, HandedOver]) -> None:
        for name, handed in some.items():
            engine.upkeep.purge(self._location(name), handed)


def _count(arrived: list[Delivered], name: str) -> int:
    return sum(1 for each in arrived if each.hashes is None or name in each.hashes)
