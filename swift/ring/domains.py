"""Tracks the free places of the tier tree while partitions are being moved.

Every failure domain knows how many partition-replicas it may still take (its quota less what it holds) and
keeps its children in a heap, roomiest first. ``Domains.receiver`` walks down from the cluster to the device
that should take one replica. A change of room enters a domain anew with a new ticket; an entry with an older
ticket is void and dropped when it comes up. Which replica is moved, and why, is decided in ``reassign``.
spec: ring.md §10.8, §10.10
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Mapping, Sequence

from swift.ring.device import DeviceRecord
from swift.ring.plan import Plan
from swift.ring.tiers import Key, tier_keys


class Domain:
    """A failure domain; ``maximum`` is replicas per partition, ``room`` partition-replicas (may be < 0)."""

    __slots__ = ("dev_id", "maximum", "room", "heap", "siblings", "ticket", "path")

    def __init__(self, parent: Domain | None, *, maximum: int, quota: int, dev_id: int | None):
        self.dev_id = dev_id
        self.maximum = maximum
        self.room = quota
        self.heap: list[tuple[int, float, Domain]] = []
        self.siblings = parent.heap if parent is not None else []
        self.ticket = 0.0
        self.path: tuple[Domain, ...] = ()

    def __repr__(self) -> str:
        return f"<Domain dev={self.dev_id} maximum={self.maximum} room={self.room}>"


class Domains:
    """The live tree; ``by_device`` maps a device id to its leaf, whose ``path`` starts at the region."""

    def __init__(
        self, plan: Plan, records: Iterable[DeviceRecord | None], held: Mapping[int, int], rng: random.Random
    ):
        self._random = rng.random
        self._root = Domain(None, maximum=plan.root.maximum, quota=plan.quota[()], dev_id=None)
        self.by_device: dict[int, Domain] = {}
        maximum = {tier.key: tier.maximum for tier in plan.root.walk()}
        known: dict[Key, Domain] = {}
        everyone: list[Domain] = [self._root]
        for record in records:
            if record is None:
                continue
            parent = self._root
            path = []
            for key in tier_keys(record):
                domain = known.get(key)
                if domain is None:
                    domain = known[key] = Domain(
                        parent,
                        maximum=maximum.get(key, 0),
                        quota=plan.quota.get(key, 0),
                        dev_id=record["id"] if len(key) == 4 else None,
                    )
                    everyone.append(domain)
                path.append(domain)
                parent = domain
            parent.path = tuple(path)
            self.by_device[record["id"]] = parent
        for dev_id, count in held.items():
            for domain in self.by_device[dev_id].path:
                domain.room -= count
        for domain in everyone[1:]:
            self._enter(domain)

    def take(self, leaf: Domain) -> None:
        """Count one more replica on the device."""
        for domain in leaf.path:
            domain.room -= 1
            self._enter(domain)

    def move(self, source: Domain, target: Domain) -> None:
        """Count one replica less on ``source`` and one more on ``target``; shared tiers stay as they are."""
        for old, new in zip(source.path, target.path, strict=True):
            if old is not new:
                old.room += 1
                self._enter(old)
                new.room -= 1
                self._enter(new)

    def _enter(self, domain: Domain) -> None:
        """Put the domain where it now belongs among its siblings; its older entry becomes void."""
        domain.ticket = self._random()
        heapq.heappush(domain.siblings, (-domain.room, domain.ticket, domain))

    def counts(self, dev_ids: Sequence[int]) -> dict[Domain, int]:
        """Return the number of replicas of one partition in each failure domain."""
        counts: dict[Domain, int] = {}
        for dev_id in dev_ids:
            for domain in self.by_device[dev_id].path:
                counts[domain] = counts.get(domain, 0) + 1
        return counts

    def receiver(
        self,
        counts: Mapping[Domain, int],
        *,
        leaving: Sequence[Domain] = (),
        need_room: bool = True,
        disperse: bool = True,
    ) -> Domain | None:
        """Return the roomiest device for one more replica, or None.

        ``counts`` are the partition's other replicas; ``leaving`` is the path of the device that the
        replica comes from, whose tiers have one more place than they seem. ``need_room`` refuses domains
        at their quota, ``disperse`` those at their maximum; no device gets a second replica.
        """
        if need_room and disperse:
            straight = self._straight_down(counts)
            if straight is not None:
                return straight
        return self._descend(self._root.heap, counts, leaving, need_room, disperse)

    def _straight_down(self, counts: Mapping[Domain, int]) -> Domain | None:
        """Return the roomiest child of the roomiest child …, if nothing speaks against any of them."""
        heap = self._root.heap
        while heap:
            _, ticket, child = heap[0]
            if ticket != child.ticket:
                heapq.heappop(heap)
                continue
            if child.room <= 0 or counts.get(child, 0) >= child.maximum:
                return None
            if child.dev_id is not None:
                return child
            heap = child.heap
        return None

    def _descend(
        self,
        heap: list[tuple[int, float, Domain]],
        counts: Mapping[Domain, int],
        leaving: Sequence[Domain],
        need_room: bool,
        disperse: bool,
    ) -> Domain | None:
        passed = []
        found = None
        own = leaving[0] if leaving else None
        while heap:
            entry = heap[0]
            child = entry[2]
            if entry[1] != child.ticket:
                heapq.heappop(heap)
                continue
            if need_room and child.room <= 0:
                break
            present = counts.get(child, 0)
            if child.dev_id is not None:
                if present < 1 and (child.maximum or not disperse):
                    found = child
            elif present < child.maximum or not disperse:
                below = leaving[1:] if child is own else ()
                found = self._descend(child.heap, counts, below, need_room, disperse)
            if found is not None:
                break
            passed.append(heapq.heappop(heap))
        for entry in passed:
            heapq.heappush(heap, entry)
        if found is None and own is not None and need_room and own.room == 0 and own.dev_id is None:
            found = self._descend(own.heap, counts, leaving[1:], need_room, disperse)
        return found
