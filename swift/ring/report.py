"""Facts about builders and rings as plain data, for tables and for JSON alike.

Nothing here prints. spec: ring.md §10.13, §10.14, §11
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypedDict

from swift.ring.builder import BALANCE_OF_WEIGHTLESS, RingBuilder
from swift.ring.device import DeviceRecord, describe, published
from swift.ring.dispersion import most_replicas
from swift.ring.errors import RingError
from swift.ring.ringfile import load_table
from swift.ring.table import RingTable
from swift.ring.tiers import Key, build_tree, plan_replicanths


class RingState(Enum):
    """State of a ring file relative to its builder."""

    MISSING = "missing"
    INVALID = "invalid"
    UNREADABLE = "unreadable"
    CURRENT = "up-to-date"
    OBSOLETE = "obsolete"


def ring_state(builder: RingBuilder, ring_path: str) -> tuple[RingState, str]:
    """Return the state of the ring file, and the reason when it is invalid or cannot be read."""
    try:
        table = load_table(ring_path)
    except FileNotFoundError:
        return RingState.MISSING, ""
    except RingError as error:
        return RingState.INVALID, str(error)
    except OSError as error:
        return RingState.UNREADABLE, error.strerror or str(error)
    return (RingState.CURRENT if same_ring(table, builder.table()) else RingState.OBSOLETE), ""


def same_ring(one: RingTable, other: RingTable) -> bool:
    """Return True if two rings say the same: devices, rows, shift, next power and version."""
    return (
        one.part_shift == other.part_shift
        and one.next_part_power == other.next_part_power
        and one.build_version == other.build_version
        and list(map(_public, one.records)) == list(map(_public, other.records))
        and list(one.rows) == list(other.rows)
    )


def _public(record: DeviceRecord | None) -> DeviceRecord | None:
    return None if record is None else published(record)


def balance_of(builder: RingBuilder, dev: DeviceRecord) -> float:
    """Percent by which a device is over (or under, negative) its share (spec: ring.md §10.13)."""
    desired = dev["weight"] * builder.weight_of_one_part
    if not desired:
        return BALANCE_OF_WEIGHTLESS if dev.get("parts") else 0.0
    return 100.0 * dev.get("parts", 0) / desired - 100.0


class DeviceFacts(DeviceRecord, total=False):
    """Fields that ``device_facts`` adds to a device."""

    partitions: int
    balance: float
    removing: bool
    name: str


class RingFacts(TypedDict):
    """The ring file of a builder."""

    file: str
    state: str
    reason: str


class Summary(TypedDict):
    """Everything that a builder is asked for first."""

    builder: str
    version: int
    id: str | None
    partitions: int
    part_power: int
    next_part_power: int | None
    replicas: float
    regions: int
    zones: int
    device_count: int
    dev_id_bytes: int
    balance: float
    dispersion: float | None
    min_part_hours: float
    min_part_seconds_left: int
    overload: float
    ring: RingFacts
    devices: list[DeviceFacts]


def device_facts(builder: RingBuilder, dev: DeviceRecord) -> DeviceFacts:
    """One device with its balance (percent) and whether it is marked for removal."""
    return {
        **published(dev),
        "partitions": dev.get("parts", 0),
        "balance": balance_of(builder, dev),
        "removing": dev["id"] in builder.removed_ids,
        "name": describe(dev),
    }


def summary(builder: RingBuilder, builder_path: str, ring_path: str) -> Summary:
    """Everything the default command shows."""
    state, reason = ring_state(builder, ring_path)
    devs = sorted(
        builder.live_devs, key=lambda dev: (dev["region"], dev["zone"], dev["ip"], str(dev["device"]))
    )
    return {
        "builder": builder_path,
        "version": builder.version,
        "id": builder.id,
        "partitions": builder.parts,
        "part_power": builder.part_power,
        "next_part_power": builder.next_part_power,
        "replicas": builder.replicas,
        "regions": len({dev["region"] for dev in devs}),
        "zones": len({(dev["region"], dev["zone"]) for dev in devs}),
        "device_count": len(devs),
        "dev_id_bytes": builder.dev_id_bytes,
        "balance": builder.balance,
        "dispersion": builder.dispersion,
        "min_part_hours": builder.min_part_hours,
        "min_part_seconds_left": builder.min_part_seconds_left,
        "overload": builder.overload,
        "ring": {"file": ring_path, "state": state.value, "reason": reason},
        "devices": [device_facts(builder, dev) for dev in devs],
    }


@dataclass(frozen=True, slots=True)
class TierReport:
    """One line of the dispersion report; ``over_percent`` is the share of replicas beyond ``most``."""

    name: str
    parts: int
    over_percent: float
    most: int
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DispersionReport:
    """Dispersion of a builder; ``worst`` is the tier that is furthest over, if any is."""

    dispersion: float
    balance: float
    overload: float
    required_overload: float
    worst: TierReport | None
    tiers: tuple[TierReport, ...]


def required_overload(builder: RingBuilder) -> float:
    """Return the overload that full dispersion needs; 0 when there are not enough devices to plan at all."""
    if not any(dev["weight"] > 0 for dev in builder.live_devs):
        return 0.0
    return plan_replicanths(build_tree(builder.devs), builder.replicas, builder.overload)


def dispersion_report(builder: RingBuilder, pattern: str | None = None) -> DispersionReport:
    """Return the report over all tiers whose name matches ``pattern`` from the start. Raises re.error."""
    matches = re.compile(pattern).match if pattern else lambda name: True
    most = most_replicas(builder.devs, builder.replicas)
    tiers = []
    for key in sorted(builder.dispersion_graph, key=lambda key: (*key[:2], *map(str, key[2:3]), *key[3:])):
        name = tier_name(builder, key)
        if matches(name):
            tiers.append(_tier_report(name, builder.dispersion_graph[key], most.get(key, 0)))
    over = [tier for tier in tiers if tier.over_percent > 0]
    return DispersionReport(
        dispersion=builder.dispersion or 0.0,
        balance=builder.balance,
        overload=builder.overload,
        required_overload=required_overload(builder),
        worst=max(over, key=lambda tier: tier.over_percent, default=None),
        tiers=tuple(tiers),
    )


def _tier_report(name: str, counts: list[int], most: int) -> TierReport:
    parts = sum(present * times for present, times in enumerate(counts))
    beyond = sum((present - most) * times for present, times in enumerate(counts) if present > most)
    return TierReport(name, parts, 100.0 * beyond / parts if parts else 0.0, most, tuple(counts))


def tier_name(builder: RingBuilder, key: Key) -> str:
    """``r1``, ``r1z2``, ``r1z2-ip`` or ``r1z2-ip/device``."""
    name = f"r{key[0]}"
    if len(key) > 1:
        name += f"z{key[1]}"
    if len(key) > 2:
        name += f"-{key[2]}"
    if len(key) > 3:
        dev = builder.devs[key[3]] if key[3] < len(builder.devs) else None
        name += f"/{dev['device'] if dev else key[3]}"
    return name


def partition_matches(builder: RingBuilder, dev_ids: set[int]) -> list[tuple[int, int]]:
    """(partition, matches) of all partitions on these devices: most matches first, then scan order."""
    matches: dict[int, int] = {}
    for row in builder.rows or []:
        for part, dev_id in enumerate(row):
            if dev_id in dev_ids:
                matches[part] = matches.get(part, 0) + 1
    return sorted(matches.items(), key=lambda entry: -entry[1])
