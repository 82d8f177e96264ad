"""Compares rings with those that an operator wants: moves, time, and what speaks against it; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from swift.base.documents import JsonObject
from swift.layout.steps import Domains, Rows, moves_of
from swift.ring.builder import RingBuilder
from swift.ring.device import DeviceRecord
from swift.ring.errors import RingError

#: Levels of failure domains, as ``Domains.crowding`` counts them.
LEVELS = ("region", "zone", "server", "device")
#: A device is not planned to be fuller.
FULL_SHARE = 0.9
#: Bytes a second into each device, where nothing was measured.
RATE_ASSUMED = 50e6
_HOUR_S = 3600.0


@dataclass(frozen=True)
class Usage:
    """Space of devices: ``ip/device`` → bytes used and size; devices that did not answer are absent."""

    devices: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def per_copy(self, builders: Mapping[str, RingBuilder]) -> float:
        """Return the average bytes of a partition's copy in the rings of objects."""
        copies, used = 0, 0.0
        seen: set[str] = set()
        for name, builder in builders.items():
            if not is_object_ring(name):
                continue
            for dev in builder.live_devs:
                label = label_of(dev)
                if label in self.devices:
                    copies += dev.get("parts", 0)
                    used += 0.0 if label in seen else self.devices[label][0]
                    seen.add(label)
        return used / copies if copies else 0.0


def label_of(dev: DeviceRecord) -> str:
    """Return ``ip/device``."""
    return f"{dev['ip']}/{dev['device']}"


def is_object_ring(name: str) -> bool:
    """Return True for a ring of objects."""
    return name.partition("-")[0] == "object"


@dataclass(frozen=True)
class RingPlan:
    """The difference of a ring; bytes are estimates."""

    name: str
    copies: int
    #: Copies that move or are added, and partitions with such.
    moves: int
    partitions: int
    bytes: float
    #: Device → copies that it gets, and gives away.
    gains: Mapping[str, int]
    losses: Mapping[str, int]
    #: Most moves of one partition: as many steps are needed at least, ``min_part_hours`` apart.
    rounds: int
    wait_s: float
    balance: float
    #: Sentences about what speaks against it.
    objections: tuple[str, ...] = ()

    def as_json(self) -> JsonObject:
        """Return the plan for programs."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class LayoutPlan:
    """The difference of all rings that change."""

    rings: tuple[RingPlan, ...]
    #: Bytes a second: of the cluster, if they were measured, else those into each device.
    rate: float
    is_measured: bool
    #: Sentences about devices that would be too full.
    space: tuple[str, ...] = ()
    #: Sentences about devices that would get copies, and that their hosts do not have.
    absent: tuple[str, ...] = ()

    @property
    def moves(self) -> dict[str, int]:
        """Copies that move, by ring."""
        return {ring.name: ring.moves for ring in self.rings}

    @property
    def objections(self) -> tuple[str, ...]:
        """All that speaks against the plan."""
        return (*(text for ring in self.rings for text in ring.objections), *self.space, *self.absent)

    @property
    def duration_s(self) -> float:
        """Seconds until all copies have arrived, and ``min_part_hours`` were kept."""
        wait_s = max((ring.wait_s for ring in self.rings), default=0.0)
        if self.is_measured:
            moving_s = sum(ring.bytes for ring in self.rings) / self.rate
        else:
            busiest = (
                max(ring.gains.values()) * ring.bytes / ring.moves for ring in self.rings if ring.moves
            )
            moving_s = max(busiest, default=0.0) / self.rate
        return max(moving_s, wait_s)

    def as_json(self) -> JsonObject:
        """Return the plan for programs."""
        return {
            "rings": [ring.as_json() for ring in self.rings],
            "moves": sum(self.moves.values()),
            "bytes": sum(ring.bytes for ring in self.rings),
            "duration_s": self.duration_s,
            "rate_bytes_s": self.rate,
            "rate_is_measured": self.is_measured,
            "objections": list(self.objections),
        }


def make_plan(
    now: Mapping[str, RingBuilder],
    wanted: Mapping[str, RingBuilder],
    usage: Usage,
    *,
    rate: float = 0.0,
) -> LayoutPlan:
    """Return the plan from the rings of now to those that are wanted; ``rate`` is 0 if none was measured."""
    each = usage.per_copy(now)
    rings = []
    for name, target in sorted(wanted.items()):
        plan = _plan_ring(name, now.get(name), target, each if is_object_ring(name) else 0.0)
        if plan is not None:
            rings.append(plan)
    space = tuple(_too_full(now, wanted, usage, each))
    return LayoutPlan(tuple(rings), rate or RATE_ASSUMED, rate > 0, space, tuple(_absent(now, wanted, usage)))


def _plan_ring(name: str, now: RingBuilder | None, target: RingBuilder, each: float) -> RingPlan | None:
    after = target.rows or []
    before = (now.rows if now is not None else None) or []
    gains: Counter[str] = Counter()
    losses: Counter[str] = Counter()
    devs = united_devices(now, target) if now is not None else target.devs
    changes = 0
    rounds = 0
    partitions = 0
    if now is None or not before:
        gains.update(_label(devs, device) for row in after for device in row)
    elif [len(row) for row in before] == [len(row) for row in after]:
        moves = moves_of(before, after, Domains(devs), any_order=True)
        partitions, rounds = len(moves), max(map(len, moves), default=0)
        gains.update(_label(devs, move.target) for each_part in moves for move in each_part)
        losses.update(_label(devs, move.source) for each_part in moves for move in each_part)
    else:
        partitions, rounds = _reshaped(before, after, devs, gains, losses)
    changes = sum(gains.values())
    same = now is not None and now.devs == target.devs and now.next_part_power == target.next_part_power
    if not changes and not losses and same:
        return None
    hours = now.min_part_hours if now is not None else 0.0
    return RingPlan(
        name=name,
        copies=sum(map(len, after)),
        moves=changes,
        partitions=partitions,
        bytes=0.0 if now is None else changes * each,
        gains=dict(gains),
        losses=dict(losses),
        rounds=rounds,
        wait_s=max(0, rounds - 1) * hours * _HOUR_S,
        balance=target.balance,
        objections=tuple(_objections(name, before, devs, target)),
    )


def _reshaped(
    before: Rows,
    after: Rows,
    devs: Sequence[DeviceRecord | None],
    gains: Counter[str],
    losses: Counter[str],
) -> tuple[int, int]:
    """Count the changes between rows with different numbers of copies; return partitions and rounds."""
    partitions, rounds = 0, 0
    for part in range(len(after[0])):
        had = {row[part] for row in before if part < len(row)}
        has = {row[part] for row in after if part < len(row)}
        gains.update(_label(devs, device) for device in has - had)
        losses.update(_label(devs, device) for device in had - has)
        partitions += had != has
        rounds = max(rounds, len(has - had))
    return partitions, rounds


def _label(devs: Sequence[DeviceRecord | None], device: int) -> str:
    dev = devs[device]
    assert dev is not None, "rows name existing devices"
    return label_of(dev)


def united_devices(now: RingBuilder, target: RingBuilder) -> list[DeviceRecord | None]:
    """Return the devices of both, those of the target first; one that is not in it has weight 0.

    Raises RingError if an id stands for different devices.
    """
    devs: list[DeviceRecord | None] = [None if dev is None else dev.copy() for dev in target.devs]
    devs.extend([None] * (len(now.devs) - len(devs)))
    for dev in now.live_devs:
        other = devs[dev["id"]]
        if other is None:
            kept = dev.copy()
            kept["weight"] = 0.0
            devs[dev["id"]] = kept
        elif (other["ip"], other["port"], other["device"]) != (dev["ip"], dev["port"], dev["device"]):
            raise RingError(f"device {dev['id']} was {label_of(dev)} and would be {label_of(other)}")
    return devs


def _objections(
    name: str, before: Rows, devs: Sequence[DeviceRecord | None], target: RingBuilder
) -> Iterator[str]:
    after = target.rows or []
    domains = Domains(devs)
    old, new = _crowded(before, domains), _crowded(after, domains)
    for level, was, now in zip(LEVELS, old, new, strict=True):
        if now > was and level != "region":
            yield (
                f"ring {name}: {now:,} partitions would have two copies in one {level} ({was:,} have now); "
                f"devices elsewhere, or an overload, keep them apart"
            )
    held = {(dev["region"], dev["zone"]) for dev in _holders(before, devs)}
    left = held - {(dev["region"], dev["zone"]) for dev in _holders(after, devs)}
    for region, zone in sorted(left):
        yield f"ring {name}: zone {zone} of region {region} would have no copy left"


def _holders(rows: Rows, devs: Sequence[DeviceRecord | None]) -> Iterator[DeviceRecord]:
    for device in set().union(*rows):
        dev = devs[device]
        if dev is not None:
            yield dev


def _crowded(rows: Rows, domains: Domains) -> list[int]:
    """Return for each level the partitions with two copies in one domain."""
    counts = [0] * len(LEVELS)
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    shared = min(map(len, rows), default=0)
    for devices in zip(*(row[:shared] for row in rows), strict=True):
        crowding = known.get(devices)
        if crowding is None:
            crowding = known[devices] = domains.crowding(devices)
        for level, most in enumerate(crowding):
            counts[level] += most > 1
    return counts


def _absent(now: Mapping[str, RingBuilder], wanted: Mapping[str, RingBuilder], usage: Usage) -> Iterator[str]:
    """Yield a sentence for each new device that its host does not report; a new host reports none."""
    hosts = {label.partition("/")[0] for label in usage.devices}
    known = {label_of(dev) for builder in now.values() for dev in builder.live_devs}
    new = {label_of(dev) for builder in wanted.values() for dev in builder.live_devs if dev.get("parts")}
    for label in sorted(new - known - usage.devices.keys()):
        if label.partition("/")[0] in hosts:
            yield f"device {label} is not there: its host reports others, so mount it first, or mend the name"


def _too_full(
    now: Mapping[str, RingBuilder], wanted: Mapping[str, RingBuilder], usage: Usage, each: float
) -> Iterator[str]:
    """Yield a sentence for each device that would get more than it has space for."""
    have: Counter[str] = Counter()
    get: Counter[str] = Counter()
    for found, builders in ((have, now), (get, wanted)):
        for name, builder in builders.items():
            if is_object_ring(name):
                for dev in builder.live_devs:
                    found[label_of(dev)] += dev.get("parts", 0)
    for label, copies in sorted(get.items()):
        if copies <= have[label] or label not in usage.devices:
            continue
        used, size = usage.devices[label]
        expected = used + (copies - have[label]) * each
        if expected > FULL_SHARE * size:
            yield (
                f"device {label} would hold {expected / 1e9:,.1f} GB of {size / 1e9:,.1f} GB "
                f"({100 * expected / max(size, 1):.0f} %)"
            )
