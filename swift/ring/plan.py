"""Computes the number of partition-replicas of every tier and device: whole numbers, before any is moved.

A plan is pure: it is made from device records, the replica count, the overload and what is held now, and it
can be printed. Each tier gets the floor of its target or one more, so sums are exact. The ones
more go to the devices whose balance suffers least, among equals to those that hold them already; a tier only
limits that where its own minimum or maximum per partition would be broken. spec: ring.md §10.7, §10.8
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swift.ring.device import DeviceRecord
from swift.ring.errors import RingValidationError
from swift.ring.tiers import EPSILON, Key, Tier, build_tree, plan_replicanths

_FLOOR_SLACK = 1e-7


@dataclass(frozen=True, slots=True)
class Plan:
    """``quota`` counts partition-replicas by tier key; tiers without weight are absent and get nothing."""

    root: Tier
    parts: int
    required_overload: float
    quota: Mapping[Key, int]

    def device_quota(self) -> dict[int, int]:
        """Device id → partition-replicas it should hold."""
        return {leaf.key[3]: self.quota[leaf.key] for leaf in self.root.leaves()}

    def __str__(self) -> str:
        lines = [f"required overload {self.required_overload:.6f}"]
        for tier in sorted(self.root.walk(), key=lambda tier: tuple(map(str, tier.key))):
            name = "/".join(map(str, tier.key)) or "cluster"
            lines.append(
                f"{name}: weighted {tier.weighted:.4f} wanted {tier.wanted:.4f} target {tier.target:.4f} "
                f"quota {self.quota[tier.key]} per partition {tier.minimum}..{tier.maximum}"
            )
        return "\n".join(lines)


def row_lengths(parts: int, replicas: float) -> list[int]:
    """Entries of each row: ``parts`` for whole replicas, int(parts x fraction) for the last (§10.9)."""
    whole = int(replicas)
    lengths = [parts] * whole
    rest = int(parts * (replicas - whole))
    if rest:
        lengths.append(rest)
    return lengths


def make_plan(
    records: Sequence[DeviceRecord | None],
    *,
    parts: int,
    replicas: float,
    overload: float,
    held: Mapping[int, int],
) -> Plan:
    """Return the plan for these devices; ``held`` is device id → partition-replicas now.

    Raises EmptyRing without weighted devices, RingValidationError with fewer than replicas.
    """
    root = build_tree(records)
    if root.device_count < replicas:
        raise RingValidationError(
            f"Replica count of {replicas} requires more than {root.device_count} devices"
        )
    required = plan_replicanths(root, replicas, overload)
    quota: dict[Key, int] = {}
    _fill_quota(root, sum(row_lengths(parts, replicas)), parts, held, quota)
    return Plan(root, parts, required, quota)


def _fill_quota(root: Tier, total: int, parts: int, held: Mapping[int, int], quota: dict[Key, int]) -> None:
    """Floors for all devices first; then every tier is filled up to what it must hold, the root to all."""
    ranked: list[tuple[tuple[float, int, float], Tier]] = []
    for leaf in root.leaves():
        ideal = leaf.target * parts
        quota[leaf.key] = math.floor(ideal + _FLOOR_SLACK)
        # How much worse the balance gets without one more, then who holds it already (it need not move).
        gain = (2 * (ideal - quota[leaf.key]) - 1) / max(ideal, EPSILON)
        surplus = held.get(leaf.key[3], 0) - quota[leaf.key]
        ranked.append(((-round(gain, 9), -surplus, ideal), leaf))
    ranked.sort(key=lambda entry: entry[0])
    for tier in reversed(list(root.walk())):
        if tier.children:
            quota[tier.key] = sum(quota[child.key] for child in tier.children)
            if tier.minimum * parts > quota[tier.key] or tier is root:
                least = tier.minimum * parts if tier is not root else total
                _fill_up(tier, least, [leaf for _, leaf in ranked], parts, quota)


def _fill_up(tier: Tier, least: int, leaves: list[Tier], parts: int, quota: dict[Key, int]) -> None:
    """Raise the best ranked devices of a tier by one until it holds ``least``; no tier passes its most."""
    depth = len(tier.key)
    leaves = [leaf for leaf in leaves if leaf.key[:depth] == tier.key]
    while quota[tier.key] < least and leaves:
        raised = []
        for leaf in leaves:
            if quota[tier.key] >= least:
                break
            path = _path(leaf, tier)
            if all(quota[step.key] < step.maximum * parts for step in path):
                for step in path:
                    quota[step.key] += 1
                quota[tier.key] += 1
                raised.append(leaf)
        leaves = raised


def _path(leaf: Tier, top: Tier) -> list[Tier]:
    """Return the tiers from a device up to below ``top``."""
    path = []
    tier: Tier | None = leaf
    while tier is not None and tier is not top:
        path.append(tier)
        tier = tier.parent
    return path
