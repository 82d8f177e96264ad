"""Simulates a change of devices in a real ring: moved partitions, duration and risk.

The change is made to a copy in memory and rebalanced until nothing moves any more; no file is written.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from swift.plan.durability import HOURS_A_YEAR, PolicyShape
from swift.plan.errors import PlanError
from swift.ring.builder import RingBuilder
from swift.ring.device import DeviceRecord
from swift.ring.errors import BuilderFileError
from swift.ring.ringfile import load_table
from swift.ring.table import none_id

ROUNDS_MAX = 20
Change = Callable[[RingBuilder], None]


def load_builder(path: str) -> RingBuilder:
    """Return the builder of a builder file, or one made from a ring file. Raises RingError, OSError."""
    try:
        return RingBuilder.load(path)
    except BuilderFileError:
        if not path.endswith(".ring.gz"):
            raise
    return RingBuilder.from_table(load_table(path), min_part_hours=1)


def devices_of_zone(builder: RingBuilder, zone: str) -> list[int]:
    """Return the ids of a zone, given as ``2`` (region 1) or ``r1z2``. Raises PlanError."""
    text = zone.removeprefix("r") if zone.startswith("r") else f"1z{zone.removeprefix('z')}"
    region, middle, number = text.partition("z")
    if not (middle and region.isdecimal() and number.isdecimal()):
        raise PlanError(f"zone {zone!r} is not written as 2 or r1z2")
    ids = [
        dev["id"] for dev in builder.live_devs if (dev["region"], dev["zone"]) == (int(region), int(number))
    ]
    if not ids:
        raise PlanError(f"the ring has no devices in zone {number} of region {region}")
    return ids


def lose_zone(zone: str) -> Change:
    """Return the change that removes all devices of a zone."""

    def change(builder: RingBuilder) -> None:
        for dev_id in devices_of_zone(builder, zone):
            builder.remove_device(dev_id)

    return change


def lose_device(dev_id: int) -> Change:
    """Return the change that removes one device."""
    return lambda builder: builder.remove_device(dev_id)


def set_weight(dev_id: int, weight: float) -> Change:
    """Return the change that gives one device another weight."""

    def change(builder: RingBuilder) -> None:
        builder.change_device(dev_id, weight=weight)

    return change


def add_zone_like(zone: str) -> Change:
    """Return a new zone with the devices of an existing one, under addresses of their own."""

    def change(builder: RingBuilder) -> None:
        ids = devices_of_zone(builder, zone)
        models = [dev for dev in builder.live_devs if dev["id"] in ids]
        region = models[0]["region"]
        number = 1 + max(dev["zone"] for dev in builder.live_devs if dev["region"] == region)
        for place, ip in enumerate(sorted({dev["ip"] for dev in models})):
            # Addresses for documentation (RFC 3849), which no device of a real ring has.
            new_ip = f"2001:db8::{number:x}:{place + 1:x}"
            for dev in (dev for dev in models if dev["ip"] == ip):
                builder.add_device(
                    region=region,
                    zone=number,
                    ip=new_ip,
                    port=dev["port"],
                    device=dev["device"],
                    weight=dev["weight"],
                )

    return change


def add_device(fields: DeviceRecord, weight: float) -> Change:
    """Return the change that adds one device; ``fields`` are those of an add value."""

    def change(builder: RingBuilder) -> None:
        record: DeviceRecord = {"region": 1, **fields, "weight": weight}
        builder.add_device(**record)

    return change


@dataclass(frozen=True, slots=True)
class Moves:
    """Effect of a ring change; bytes and seconds, and partitions by the number of lost replicas."""

    partitions: int
    copies: int
    moved: int
    rounds: int
    moved_bytes: float
    busiest_device: str
    busiest_bytes: float
    copy_s: float
    wait_s: float
    missing: dict[int, int]
    already_lost: int
    risk: float
    balance: float
    dispersion: float

    @property
    def share(self) -> float:
        """Moved copies by all copies."""
        return self.moved / self.copies if self.copies else 0.0


@dataclass(frozen=True, slots=True)
class MoveAssumptions:
    """At which rate data moves, how much there is, and how drives fail."""

    bytes_stored: float
    device_bytes_s: float
    failures_a_year: float
    shape: PolicyShape


def simulate_moves(builder: RingBuilder, change: Change, terms: MoveAssumptions, *, seed: int = 0) -> Moves:
    """Make the change to the builder and rebalance it until it rests. Raises RingError, PlanError."""
    if not builder.rows:
        raise PlanError("the builder has never been rebalanced, so nothing can move")
    before = [row[:] for row in builder.rows]
    width = before[0].itemsize
    gone = {dev["id"] for dev in builder.live_devs}
    change(builder)
    gone &= builder.removed_ids
    rounds = _rebalance_until_stable(builder, seed)
    assert builder.rows is not None
    arrivals = _new_partitions(before, builder.rows)
    moved = sum(arrivals.values())
    copies = sum(map(len, builder.rows))
    each = terms.bytes_stored / max(1, copies)
    busiest, most = max(arrivals.items(), key=lambda item: (item[1], -item[0]), default=(none_id(width), 0))
    copy_s = most * each / terms.device_bytes_s
    wait_s = max(0, rounds - 1) * builder.min_part_hours * 3600
    missing = _lost_replica_counts(before, gone)
    tolerated = terms.shape.tolerated
    record = builder.devs[busiest] if most and busiest < len(builder.devs) else None
    return Moves(
        partitions=builder.parts,
        copies=copies,
        moved=moved,
        rounds=rounds,
        moved_bytes=moved * each,
        busiest_device=f"{record['ip']}:{record['port']}/{record['device']}" if record else "-",
        busiest_bytes=most * each,
        copy_s=copy_s,
        wait_s=wait_s,
        missing=missing,
        already_lost=sum(count for lost, count in missing.items() if lost > tolerated),
        risk=loss_risk(missing, terms, (copy_s + wait_s) / 3600),
        balance=builder.balance,
        dispersion=builder.dispersion or 0.0,
    )


def _rebalance_until_stable(builder: RingBuilder, seed: int) -> int:
    """Rebalance until nothing moves; return the number of rebalances that moved something."""
    for number in range(ROUNDS_MAX):
        builder.pretend_min_part_hours_passed()
        if not builder.rebalance(seed=seed + number).changed and number:
            return number
    return ROUNDS_MAX


def _new_partitions(before: Sequence[array[int]], after: Sequence[array[int]]) -> Counter[int]:
    """Return by device the number of partitions that it has now and did not have before."""
    found: Counter[int] = Counter()
    for part in range(len(after[0])):
        had = {row[part] for row in before if part < len(row)}
        found.update(row[part] for row in after if part < len(row) and row[part] not in had)
    return found


def _lost_replica_counts(before: Sequence[array[int]], gone: set[int]) -> dict[int, int]:
    """Return number of copies that went with the devices → partitions of which so many did."""
    counts: Counter[int] = Counter()
    if gone:
        for part in range(len(before[0])):
            counts[sum(row[part] in gone for row in before if part < len(row))] += 1
    counts.pop(0, None)
    return dict(sorted(counts.items()))


def loss_risk(missing: Mapping[int, int], terms: MoveAssumptions, hours: float) -> float:
    """Return the probability that a degraded partition loses too many other copies within this time."""
    died = -math.expm1(-terms.failures_a_year / HOURS_A_YEAR * hours)
    safe = 0.0
    for lost, partitions in missing.items():
        left, bears = terms.shape.total - lost, terms.shape.tolerated - lost
        if bears < 0:
            return 1.0
        loss = sum(
            math.comb(left, dead) * died**dead * (1 - died) ** (left - dead)
            for dead in range(bears + 1, left + 1)
        )
        safe += partitions * math.log1p(-min(loss, 1 - 1e-16))
    return abs(math.expm1(safe))
