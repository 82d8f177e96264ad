"""Changes of devices that an operator wants, and the rings that follow from them.

An ``LayoutEdit`` is a value that is kept until it is applied. ``apply_edits`` makes them in builders, and
``settle`` rebalances one until nothing moves any more: the target to which the controller goes in steps.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, cast

from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.ring.builder import RingBuilder
from swift.ring.commands.select import BadValue, parse_ip
from swift.ring.device import DeviceRecord
from swift.ring.manifest import is_ring_name

ROUNDS_MAX = 20
OVERLOAD_MAX = 10.0
_PORT_MAX = 65535
Action = Literal["add", "remove", "drain", "weight", "zone", "replace", "replicas", "overload", "policy"]
_PLACE = re.compile(r"(?:r(?P<region>\d{1,9}))?(?:z(?P<zone>\d{1,9}))?")
_ADDRESS = re.compile(r"(?P<ip>\[[^\]]*\]|[^:/\[\]]+)(?::(?P<port>\d{1,5}))?(?:/(?P<device>[^/]+))?")


class EditError(SwiftError):
    """A change that cannot be made; the text names it and what to do."""


@dataclass(frozen=True)
class Selector:
    """Devices by their address and place; what is None or empty selects any."""

    region: int | None = None
    zone: int | None = None
    ip: str = ""
    port: int | None = None
    device: str = ""

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Return the selector of ``z2``, ``r1z2``, ``10.0.0.7``, ``10.0.0.7:6200/sdb`` or all of it.

        All of it is ``r1z2-10.0.0.7:6200/sdb``. Raises EditError.
        """
        place, dash, address = text.partition("-")
        match = _PLACE.fullmatch(place)
        if match is None or not place:
            match, address, dash = _PLACE.fullmatch(""), text, "-"
        assert match is not None, "an empty text matches"
        found = match.groupdict()
        region, zone = (None if found[name] is None else int(found[name]) for name in ("region", "zone"))
        if not dash:
            return cls(region, zone)
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            raise EditError(f"{text!r} names no devices: write IP, IP/DEVICE, rNzN or rNzN-IP:PORT/DEVICE")
        try:
            ip = parse_ip(parts["ip"])
        except BadValue as error:
            raise EditError(f"{text!r}: {error}")
        port, device = int(parts["port"]) if parts["port"] else None, parts["device"] or ""
        if port is not None and not 0 < port <= _PORT_MAX:
            raise EditError(f"{text!r}: a port is a number from 1 to {_PORT_MAX}")
        if not device.isprintable() or device in (".", ".."):
            raise EditError(f"{text!r}: {device!a} is no name of a device")
        return cls(region, zone, ip, port, device)

    def matches(self, dev: DeviceRecord) -> bool:
        """Return True for a device that is selected."""
        return (
            self.region in (None, dev["region"])
            and self.zone in (None, dev["zone"])
            and self.ip in ("", dev["ip"])
            and self.port in (None, dev["port"])
            and self.device in ("", dev["device"])
        )

    def __str__(self) -> str:
        region = "" if self.region is None else f"r{self.region}"
        zone = "" if self.zone is None else f"z{self.zone}"
        port = "" if self.port is None else f":{self.port}"
        device = f"/{self.device}" if self.device else ""
        ip = f"[{self.ip}]" if ":" in self.ip and port else self.ip
        return "-".join(each for each in (region + zone, ip + port + device) if each)


@dataclass(frozen=True)
class LayoutEdit:
    """A change: devices by their selector, in the rings that are named, or in all that have such devices."""

    action: Action
    select: Selector
    rings: tuple[str, ...] = ()
    #: Of ``add`` and ``weight``; of ``overload`` the share.
    weight: float = 0.0
    #: Of ``zone``: the new place. Of ``add``: the replication network's address in ``ip``, if any.
    place: Selector = Selector()
    #: Of ``replicas``.
    replicas: float = 0.0
    #: Of ``policy``: the ring whose devices the new one gets.
    model: str = ""

    def as_json(self) -> JsonObject:
        """Return the edit as it is kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, tree: Mapping[str, object]) -> LayoutEdit:
        """Return an edit that was kept. Raises KeyError, TypeError and ValueError."""
        values: JsonObject = dict(tree)
        values["select"] = Selector(**cast(JsonObject, tree["select"]))
        values["place"] = Selector(**cast(JsonObject, tree["place"]))
        values["rings"] = tuple(cast("Sequence[str]", tree["rings"]))
        return cls(**values)

    def __str__(self) -> str:
        where = f" in {', '.join(self.rings)}" if self.rings else ""
        more = {
            "add": f" with weight {self.weight:g}",
            "weight": f" to {self.weight:g}",
            "zone": f" to {self.place}",
            "replace": f" by {self.place}",
            "replicas": f" {self.replicas:g}",
            "overload": f" {self.weight:g}",
            "policy": f" like {self.model}, {self.replicas:g} replicas",
        }.get(self.action, "")
        return " ".join(each for each in (self.action, str(self.select)) if each) + more + where


Builders = dict[str, RingBuilder]


def apply_edits(builders: Mapping[str, RingBuilder], edits: Sequence[LayoutEdit]) -> Builders:
    """Return copies of the builders with the edits made; nothing is rebalanced.

    Devices of weight 0 that were removed are marked for removal. Raises EditError and RingError.
    """
    made = {name: builder.copy() for name, builder in builders.items()}
    for edit in edits:
        unknown = [name for name in edit.rings if name not in made]
        if unknown and edit.action != "policy":
            raise EditError(f"there is no ring {unknown[0]}; there are {', '.join(sorted(made))}")
        _EDITORS[edit.action](made, edit)
    return made


def _chosen(made: Builders, edit: LayoutEdit) -> Iterator[tuple[RingBuilder, DeviceRecord]]:
    """Yield the selected devices with their builders. Raises EditError if there is none."""
    found = False
    for name in edit.rings or sorted(made):
        for dev in made[name].live_devs:
            if edit.select.matches(dev) and dev["id"] not in made[name].removed_ids:
                found = True
                yield made[name], dev
    if not found:
        raise EditError(f"no device is selected by {edit.select}; see: swift-layout show")


def _add(made: Builders, edit: LayoutEdit) -> None:
    select = edit.select
    if not select.ip or not select.device or select.zone is None:
        raise EditError("add needs a zone, an address and a device: r1z2-10.0.0.7/sdb")
    names = edit.rings or sorted(made)
    if select.port is not None and len({name.partition("-")[0] for name in names}) > 1:
        raise EditError("a port belongs to one kind of server: name the rings, as in --rings object")
    for name in names:
        port = select.port or _usual_port(name, made[name], select.ip)
        made[name].add_device(
            region=1 if select.region is None else select.region,
            zone=select.zone,
            ip=select.ip,
            port=port,
            replication_ip=edit.place.ip or select.ip,
            replication_port=edit.place.port or _usual_replication_port(made[name], port),
            device=select.device,
            weight=edit.weight,
            meta="",
        )


def _usual_port(name: str, builder: RingBuilder, ip: str) -> int:
    """Return the port of the host's other devices in a ring, else that of most devices."""
    own = Counter(dev["port"] for dev in builder.live_devs if dev["ip"] == ip)
    ports = own or Counter(dev["port"] for dev in builder.live_devs)
    if not ports:
        raise EditError(f"ring {name} has no device whose port could be taken: write r1z1-IP:PORT/DEVICE")
    return ports.most_common(1)[0][0]


def _usual_replication_port(builder: RingBuilder, port: int) -> int:
    ports = Counter(dev["replication_port"] for dev in builder.live_devs if dev["port"] == port)
    return ports.most_common(1)[0][0] if ports else port


def _remove(made: Builders, edit: LayoutEdit) -> None:
    for builder, dev in list(_chosen(made, edit)):
        builder.remove_device(dev["id"])


def _drain(made: Builders, edit: LayoutEdit) -> None:
    for builder, dev in list(_chosen(made, edit)):
        builder.change_device(dev["id"], weight=0.0)


def _weight(made: Builders, edit: LayoutEdit) -> None:
    for builder, dev in list(_chosen(made, edit)):
        builder.change_device(dev["id"], weight=edit.weight)


def _zone(made: Builders, edit: LayoutEdit) -> None:
    for builder, dev in list(_chosen(made, edit)):
        region = dev["region"] if edit.place.region is None else edit.place.region
        zone = dev["zone"] if edit.place.zone is None else edit.place.zone
        builder.change_device(dev["id"], region=region, zone=zone)


def _replace(made: Builders, edit: LayoutEdit) -> None:
    """Give the partitions of each selected device to a new one in its place; the old one is removed."""
    place = edit.place
    for builder, dev in list(_chosen(made, edit)):
        new = builder.add_device(
            **cast(
                DeviceRecord,
                {
                    **{key: dev[key] for key in ("region", "zone", "weight", "meta", "port")},
                    "replication_port": dev["replication_port"],
                    "ip": place.ip or dev["ip"],
                    "replication_ip": place.ip or dev["replication_ip"],
                    "device": place.device or dev["device"],
                },
            )
        )
        for row in builder.rows or ():
            _substitute(row, dev["id"], new)
        builder.remove_device(dev["id"])


def _substitute(row: array[int], old: int, new: int) -> None:
    place = -1
    while True:
        try:
            place = row.index(old, place + 1)
        except ValueError:
            return
        row[place] = new


def _replicas(made: Builders, edit: LayoutEdit) -> None:
    for name in edit.rings:
        made[name].set_replicas(edit.replicas)
        made[name].devs_changed = True


def _overload(made: Builders, edit: LayoutEdit) -> None:
    if not 0 <= edit.weight <= OVERLOAD_MAX:
        raise EditError(f"overload is a share from 0 to {OVERLOAD_MAX:g}, such as 0.1 for 10 %")
    for name in edit.rings or sorted(made):
        made[name].overload = edit.weight
        made[name].devs_changed = True


def _policy(made: Builders, edit: LayoutEdit) -> None:
    name, model = ",".join(edit.rings), edit.model
    if not is_ring_name(name):
        raise EditError(
            f"{name[:64]!a} is no name of a ring; those of policies are object-1, object-2 and so on"
        )
    if name in made:
        raise EditError(f"ring {name} exists already")
    if model not in made:
        raise EditError(f"there is no ring {model}; there are {', '.join(sorted(made))}")
    pattern = made[model]
    builder = RingBuilder(pattern.part_power, edit.replicas or pattern.replicas, pattern.min_part_hours)
    builder.overload = pattern.overload
    for dev in pattern.live_devs:
        if edit.select.matches(dev) and dev["weight"]:
            builder.add_device(**cast(DeviceRecord, {**dev, "id": None}))
    made[name] = builder


_EDITORS = {
    "add": _add,
    "remove": _remove,
    "drain": _drain,
    "weight": _weight,
    "zone": _zone,
    "replace": _replace,
    "replicas": _replicas,
    "overload": _overload,
    "policy": _policy,
}


def settle(builder: RingBuilder, *, seed: object = 0) -> None:
    """Rebalance until nothing moves any more, whatever ``min_part_hours`` says. Raises RingError."""
    removed = bool(builder.removed_ids)
    for number in range(ROUNDS_MAX):
        builder.pretend_min_part_hours_passed()
        if not builder.rebalance(seed=f"{seed} {number}").changed and (number or not removed):
            break
    builder.validate()
