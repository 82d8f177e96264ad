"""The tree of failure domains and how many replicas of a partition each part of it should get.

Regions hold zones, zones hold servers (by ip), servers hold devices; the root is the cluster. Every number
here is in *replicanths*: replicas per partition as a fraction. ``plan_replicanths`` fills the tree in three
readings: what the weights ask for, what the best dispersion asks for, and the blend the overload allows.
Nothing here knows about partitions that are already assigned. spec: ring.md §10.1-10.6
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from swift.ring.device import DeviceRecord
from swift.ring.errors import EmptyRing

EPSILON = 1e-10
#: Region, zone, ip and device id, as many as the tier is deep.
Key = tuple[Any, ...]


def tier_keys(record: DeviceRecord) -> tuple[Key, Key, Key, Key]:
    """Return the region, zone, server and device tier that a device belongs to."""
    region, zone, ip, dev_id = record["region"], record["zone"], record["ip"], record["id"]
    return (region,), (region, zone), (region, zone, ip), (region, zone, ip, dev_id)


class Tier:
    """One failure domain; only devices with weight count. Replicanths unless another unit is named."""

    __slots__ = (
        *("key", "parent", "children", "weight", "device_count", "weighted", "even", "most"),
        *("wanted", "target"),
    )

    def __init__(self, key: Key, parent: Tier | None):
        self.key = key
        self.parent = parent
        self.children: list[Tier] = []
        self.weight = 0.0
        self.device_count = 0
        self.weighted = 0.0
        self.even = 0.0
        self.most = 0
        self.wanted = 0.0
        self.target = 0.0

    def __repr__(self) -> str:
        return f"<Tier {self.key} weighted={self.weighted:.4f} target={self.target:.4f}>"

    @property
    def minimum(self) -> int:
        """Replicas of each partition that belong here at least (spec: ring.md §10.7)."""
        return math.floor(self.target + EPSILON)

    @property
    def maximum(self) -> int:
        """Replicas of each partition that may be here at most (spec: ring.md §10.7)."""
        return math.ceil(self.target - EPSILON)

    def walk(self) -> Iterator[Tier]:
        """Yield this tier and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Tier]:
        """Return the device tiers below."""
        return (tier for tier in self.walk() if len(tier.key) == 4)


def build_tree(records: Iterable[DeviceRecord | None]) -> Tier:
    """Return the tree of all devices that have weight. Raises EmptyRing when there are none."""
    root = Tier((), None)
    known: dict[Key, Tier] = {(): root}
    for record in records:
        if record is None or not record["weight"] > 0:
            continue
        parent = root
        path = [root]
        for key in tier_keys(record):
            tier = known.get(key)
            if tier is None:
                tier = known[key] = Tier(key, parent)
                parent.children.append(tier)
            path.append(tier)
            parent = tier
        for tier in path:
            tier.weight += record["weight"]
            tier.device_count += 1
    if not root.device_count:
        raise EmptyRing
    return root


def share(
    total: float, weights: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> list[float]:
    """Divide ``total`` in proportion to ``weights`` with every share within its bounds.

    What a bound cuts off (or fills up) is spread over the others in the same proportion. When the bounds
    leave no way to reach ``total``, every share stands at the nearer bound.
    """
    shares = [0.0] * len(weights)
    free = list(range(len(weights)))
    rest = total
    while free:
        weight = sum(weights[place] for place in free)
        factor = rest / weight if weight > 0 else 0.0
        over = [place for place in free if weights[place] * factor > highs[place]]
        under = [place for place in free if weights[place] * factor < lows[place]]
        excess = sum(weights[place] * factor - highs[place] for place in over)
        shortfall = sum(lows[place] - weights[place] * factor for place in under)
        if not over and not under:
            for place in free:
                shares[place] = weights[place] * factor
            break
        if not under or (over and excess >= shortfall):
            fixed, bounds = over, highs
        else:
            fixed, bounds = under, lows
        for place in fixed:
            shares[place] = bounds[place]
            rest -= bounds[place]
        gone = set(fixed)
        free = [place for place in free if place not in gone]
    return shares


def plan_replicanths(root: Tier, replicas: float, overload: float) -> float:
    """Fill ``weighted``, ``most``, ``wanted`` and ``target`` of every tier; returns the required overload."""
    _fill_weighted(root, replicas)
    fill_most(root, replicas)
    root.wanted = root.weighted
    for tier in root.walk():
        _fill_wanted_below(tier)
    required = max((leaf.wanted - leaf.weighted) / leaf.weighted for leaf in root.leaves())
    required = max(0.0, required)
    blend = 1.0 if required <= EPSILON else min(overload, required) / required
    for tier in root.walk():
        tier.target = tier.weighted + (tier.wanted - tier.weighted) * blend
    return required


def _fill_weighted(root: Tier, replicas: float) -> None:
    leaves = list(root.leaves())
    shares = share(replicas, [leaf.weight for leaf in leaves], [0.0] * len(leaves), [1.0] * len(leaves))
    for tier in root.walk():
        tier.weighted = 0.0
    for leaf, value in zip(leaves, shares, strict=True):
        above: Tier | None = leaf
        while above is not None:
            above.weighted += value
            above = above.parent


def fill_most(root: Tier, replicas: float) -> None:
    """Fill ``even`` (the even split) and ``most`` (rounded up at each level) (spec: ring.md §10.3)."""
    root.even = replicas
    root.most = math.ceil(replicas - EPSILON)
    for tier in root.walk():
        for child in tier.children:
            child.even = tier.even / len(tier.children)
            child.most = math.ceil(tier.most / len(tier.children))
            if len(child.key) == 4:
                child.even = min(child.even, 1.0)
                child.most = min(child.most, 1)


def _fill_wanted_below(tier: Tier) -> None:
    children = tier.children
    if not children:
        return
    lows = [float(min(math.floor(child.even + EPSILON), child.device_count)) for child in children]
    highs = [float(min(math.ceil(child.even - EPSILON), child.device_count)) for child in children]
    if sum(highs) < tier.wanted - EPSILON:
        highs = [float(child.device_count) for child in children]
    weights = [child.weighted for child in children]
    for child, value in zip(children, share(tier.wanted, weights, lows, highs), strict=True):
        child.wanted = value
