"""The rings of an inventory: builders are made and changed so that their devices are those of its hosts.

A device is known by its host's name (the device's ``meta``) and its own name, so that a host may change its
address; one that was added by hand is known by its address. A device that left the inventory gets weight 0.
It is removed when told and when it is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, cast

from swift.base.clock import Clock, SystemClock
from swift.operations.deploy.inventory import Host, Inventory, ring_replicas
from swift.ring.builder import BALANCE_OF_WEIGHTLESS, Rebalanced, RingBuilder
from swift.ring.device import DeviceRecord
from swift.ring.errors import RingError
from swift.ring.ringfile import encode

#: A rebalance that changes balance and dispersion by less, in percent, is not worth a new ring.
_CHANGE_WORTH_SAVING = 1.0
#: Fields that do not change the assignment.
_INFO: Final = ("ip", "port", "replication_ip", "replication_port")


class DeployRingError(RingError):
    """A ring cannot follow the inventory; the text names the ring."""


@dataclass(frozen=True)
class RingUpdate:
    """A ring as the inventory wants it: its builder, the ring file, and how they differ from before."""

    name: str
    builder: RingBuilder
    #: Content of the ring file.
    content: bytes
    #: Sentences about what changed; empty if builder and ring stay as they were.
    changes: tuple[str, ...]
    #: Sentences about what has to wait.
    notes: tuple[str, ...]
    #: Ids of the devices that were removed.
    removed: frozenset[int] = frozenset()

    @property
    def file_name(self) -> str:
        """The name of the ring file."""
        return f"{self.name}.ring.gz"


@dataclass(frozen=True)
class RingSource:
    """Source of builders: ``load`` returns that of a ring, or None; ``clock`` times the moves."""

    load: Callable[[str], RingBuilder | None]
    clock: Clock = SystemClock()


def update_rings(
    inventory: Inventory, source: RingSource, *, remove: bool, go_on: bool
) -> tuple[RingUpdate, ...]:
    """Return all rings of an inventory; nothing is written.

    ``remove`` takes devices out that left the inventory and are empty; ``go_on`` moves partitions that had to
    wait for min_part_hours. Raises ``RingError`` and OSError.
    """
    updates = []
    for name, replicas, disk_class in ring_replicas(inventory):
        try:
            update = _update_ring(inventory, source, name, replicas, disk_class, remove=remove, go_on=go_on)
        except RingError as error:
            raise DeployRingError(f"ring {name}: {error}")
        updates.append(update)
    return tuple(updates)


def _update_ring(
    inventory: Inventory,
    source: RingSource,
    name: str,
    replicas: float,
    disk_class: str,
    *,
    remove: bool,
    go_on: bool,
) -> RingUpdate:
    options = inventory.cluster
    builder = source.load(name)
    changes: list[str] = []
    if builder is None:
        builder = RingBuilder(options.part_power, replicas, options.min_part_hours, clock=source.clock)
        builder.overload = options.overload
        changes.append(f"create with 2^{options.part_power} partitions and {replicas:g} replicas")
    elif builder.part_power != options.part_power or builder.next_part_power is not None:
        raise DeployRingError(
            f"its part power is {builder.part_power}, and [cluster] part_power is {options.part_power}; "
            "change it with swift-ring-builder only"
        )
    before = {dev["id"] for dev in builder.live_devs}
    changes += _set_options(builder, inventory, replicas)
    changes += _set_devices(builder, inventory, name, disk_class)
    if remove:
        changes += _remove_devices(builder, inventory, name, disk_class)
    if builder.devs_changed or builder.rows is None:
        changes.append(_sentence(_rebalance(builder, name)))
    elif go_on and not changes and _has_waiting_moves(builder) and not builder.min_part_seconds_left:
        builder, further = _continue_moves(builder, name, source)
        changes += further
    content = encode(builder.table(), f"{name}.ring.gz")
    removed = frozenset(before - {dev["id"] for dev in builder.live_devs})
    return RingUpdate(name, builder, content, tuple(changes), tuple(_notes(builder)), removed)


def _rebalance(builder: RingBuilder, name: str) -> Rebalanced:
    # The seed makes plan and apply come to the same ring.
    result = builder.rebalance(seed=f"{name} {builder.version}")
    builder.validate()
    return result


def _sentence(result: Rebalanced) -> str:
    return f"move {result.changed} partition replicas; balance {result.balance:.2f} %"


def _has_waiting_moves(builder: RingBuilder) -> bool:
    return builder.balance >= _CHANGE_WORTH_SAVING or (builder.dispersion or 0.0) >= _CHANGE_WORTH_SAVING


def _continue_moves(builder: RingBuilder, name: str, source: RingSource) -> tuple[RingBuilder, list[str]]:
    """Move what had to wait; the builder stays as it was if that changes next to nothing."""
    before = builder.balance, builder.dispersion or 0.0
    result = _rebalance(builder, name)
    is_better = (
        abs(result.balance - before[0]) >= _CHANGE_WORTH_SAVING
        or abs(result.dispersion - before[1]) >= _CHANGE_WORTH_SAVING
        or before[0] == result.balance == BALANCE_OF_WEIGHTLESS
    )
    if result.changed and is_better:
        return builder, [_sentence(result)]
    former = source.load(name)
    assert former is not None, "a builder that was loaded can be loaded again"
    return former, []


def _set_options(builder: RingBuilder, inventory: Inventory, replicas: float) -> Iterator[str]:
    options = inventory.cluster
    if builder.replicas != replicas:
        yield f"change replicas from {builder.replicas:g} to {replicas:g}"
        builder.set_replicas(replicas)
        builder.devs_changed = True
    if builder.min_part_hours != options.min_part_hours:
        yield f"change min_part_hours from {builder.min_part_hours:g} to {options.min_part_hours}"
        builder.min_part_hours = options.min_part_hours
    if builder.overload != options.overload:
        yield f"change overload from {builder.overload:g} to {options.overload:g}"
        builder.overload = options.overload
        builder.devs_changed = True


def _records(inventory: Inventory, name: str, disk_class: str) -> Iterator[tuple[Host, DeviceRecord]]:
    """Yield the device records that the inventory wants in a ring."""
    port = inventory.storage.ports[name.partition("-")[0]]
    for host in inventory.hosts:
        for disk in host.disks:
            weight = disk.weight_in(name, disk_class)
            if weight is not None:
                yield (
                    host,
                    {
                        "region": disk.region,
                        "zone": disk.zone,
                        "ip": host.address,
                        "port": port,
                        "replication_ip": host.replication_address,
                        "replication_port": port,
                        "device": disk.device,
                        "weight": weight,
                        "meta": host.name,
                    },
                )


def _find(
    builder: RingBuilder, inventory: Inventory, host: Host, record: DeviceRecord
) -> DeviceRecord | None:
    """Return the builder's device for a disk of a host, or None.

    A device whose ``meta`` is no host's name was added by hand: its address counts.
    """
    same_name = [dev for dev in builder.live_devs if dev["device"] == record["device"]]
    for dev in same_name:
        if dev.get("meta") == host.name:
            return dev
    names = [each.name for each in inventory.hosts]
    return next(
        (dev for dev in same_name if dev.get("meta") not in names and dev["ip"] == record["ip"]), None
    )


def has_devices(ring: RingUpdate, host: Host) -> bool:
    """Return True if a ring has devices of a host, also such of weight 0."""
    return any(host.name == dev.get("meta") or host.address == dev["ip"] for dev in ring.builder.live_devs)


def _label(dev: DeviceRecord) -> str:
    return f"{dev.get('meta') or dev['ip']}/{dev['device']}"


def _set_devices(builder: RingBuilder, inventory: Inventory, name: str, disk_class: str) -> Iterator[str]:
    """Add and change the devices of the inventory; yield what was done."""
    known: set[int] = set()
    for host, record in _records(inventory, name, disk_class):
        dev = _find(builder, inventory, host, record)
        if dev is None:
            known.add(builder.add_device(**record))
            yield f"add {host.name}/{record['device']} with weight {record['weight']:g}"
            continue
        known.add(dev["id"])
        info = {key: record[key] for key in _INFO if dev[key] != record[key]}
        if info:
            yield f"change {_label(dev)} to {', '.join(f'{key} {value}' for key, value in info.items())}"
            builder.set_info(dev["id"], **cast(DeviceRecord, info))
        for key in ("region", "zone", "weight"):
            if dev[key] != record[key]:
                yield f"change {key} of {_label(dev)} from {dev[key]:g} to {record[key]:g}"
                builder.change_device(dev["id"], **cast(DeviceRecord, {key: record[key]}))
    for dev in builder.live_devs:
        if dev["id"] not in known and dev["weight"]:
            yield f"change weight of {_label(dev)} from {dev['weight']:g} to 0: it left the inventory"
            builder.change_device(dev["id"], weight=0.0)


def _remove_devices(builder: RingBuilder, inventory: Inventory, name: str, disk_class: str) -> Iterator[str]:
    """Remove the empty devices that left the inventory; yield what was done."""
    kept = {
        dev["id"]
        for host, record in _records(inventory, name, disk_class)
        if (dev := _find(builder, inventory, host, record)) is not None
    }
    for dev in builder.live_devs:
        if dev["id"] not in kept and not dev.get("parts"):
            yield f"remove {_label(dev)}"
            builder.remove_device(dev["id"])


def _notes(builder: RingBuilder) -> Iterator[str]:
    """Yield what has to wait."""
    minutes = -(-builder.min_part_seconds_left // 60)
    if minutes and builder.balance >= _CHANGE_WORTH_SAVING:
        yield f"balance is {builder.balance:.2f} %; apply again in {minutes} minutes to move more partitions"
    for dev in builder.live_devs:
        if not dev["weight"]:
            state = f"holds {dev['parts']} partitions" if dev.get("parts") else "is empty"
            yield f"{_label(dev)} has weight 0 and {state}"
