"""One device of a ring, as an immutable value, and the node that a lookup hands out.

A ``Device`` is the record of the ring file (spec: ring.md §6) with its address key worked out once. A
``Node`` is the same device seen from one partition: it also says which replica (``index``) or which handoff
(``handoff_index``) it is. This file knows nothing about partitions, weights in a plan or disks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict, cast

from swift.ring.errors import DeviceError

REQUIRED_FIELDS = ("id", "zone", "ip", "port", "device", "weight")
RECORD_FIELDS = (
    *("device", "id", "ip", "meta", "port", "region", "replication_ip", "replication_port"),
    *("weight", "zone"),
)
_INTEGERS = ("id", "region", "zone", "port", "replication_port")
_STRINGS = ("ip", "replication_ip", "device", "meta")
#: Characters of a wrong value in an error.
_SHOWN_MAX = 64


class DeviceRecord(TypedDict, total=False):
    """A device as ring and builder files have it (spec: ring.md §6); other keys are kept."""

    device: str
    id: int
    ip: str
    meta: str
    port: int
    region: int
    replication_ip: str
    replication_port: int
    weight: float
    zone: int
    #: Only in builder files: partitions that it has, and that it is to get.
    parts: int
    parts_wanted: float


#: Weights of real devices are far below; sums of them stay finite.
WEIGHT_MAX = 1e300
_BUILDER_ONLY = ("parts", "parts_wanted")


def address(ip: str, port: int) -> str:
    """``ip:port``, with an IPv6 literal in brackets."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


@dataclass(frozen=True, slots=True)
class Device:
    """A disk of the cluster; ``weight`` is relative, ``key`` is ``ip:port/device``."""

    id: int
    region: int
    zone: int
    ip: str
    port: int
    replication_ip: str
    replication_port: int
    device: str
    weight: float
    meta: str
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{address(self.ip, self.port)}/{self.device}")

    @property
    def replication_key(self) -> str:
        """``replication_ip:replication_port/device``."""
        return f"{address(self.replication_ip, self.replication_port)}/{self.device}"

    def record(self) -> DeviceRecord:
        """Return the record as it stands in a ring file (spec: ring.md §6)."""
        return cast(DeviceRecord, {name: getattr(self, name) for name in RECORD_FIELDS})

    def __str__(self) -> str:
        return describe(self.record())


@dataclass(frozen=True, slots=True)
class Node(Device):
    """A device as the answer to a lookup: a primary has ``index``, a handoff ``handoff_index``."""

    index: int | None = None
    handoff_index: int | None = None

    @classmethod
    def of(cls, device: Device, *, index: int | None = None, handoff_index: int | None = None) -> Node:
        """Return the node that ``device`` is for one partition."""
        return cls(
            device.id,
            device.region,
            device.zone,
            device.ip,
            device.port,
            device.replication_ip,
            device.replication_port,
            device.device,
            device.weight,
            device.meta,
            index=index,
            handoff_index=handoff_index,
        )


def normalized(record: Mapping[str, object], *, position: int | None = None) -> DeviceRecord:
    """Return a checked copy of a record with the defaults of old files filled in; extra keys are kept.

    ``position`` is the place in the device list, which the id must equal. Raises DeviceError.
    spec: ring.md §6, §9.
    """
    if not isinstance(record, Mapping):
        raise DeviceError(f"a device record is a {type(record).__name__}, not an object")
    full = dict(record)
    missing = [name for name in REQUIRED_FIELDS if full.get(name) is None]
    if missing:
        raise DeviceError(f"device {shown(full.get('id', position))} lacks {', '.join(missing)}")
    for name, default in (("region", 1), ("meta", "")):
        if full.get(name) is None:
            full[name] = default
    for name, origin in (("replication_ip", "ip"), ("replication_port", "port")):
        if full.get(name) is None:
            full[name] = full[origin]
    _check_types(full)
    if position is not None and full["id"] != position:
        raise DeviceError(f"device {shown(full['id'])} stands at place {position} of the device list")
    # The checks above are what makes it one.
    return cast(DeviceRecord, full)


def published(record: DeviceRecord) -> DeviceRecord:
    """Return a copy of a builder's record as ring files have it."""
    kept = {name: value for name, value in record.items() if name not in _BUILDER_ONLY}
    return cast(DeviceRecord, kept)


def shown(value: object) -> str:
    """Return a value that is none as it should be, for a sentence; of one that may be very long its type."""
    if isinstance(value, str):
        return repr(value[:_SHOWN_MAX])
    if value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 64):
        return repr(value)
    return f"of type {type(value).__name__}"


def _check_types(record: Mapping[str, object]) -> None:
    for name in _INTEGERS:
        value = record[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise DeviceError(f"device {shown(record['id'])} has {name} {shown(value)}, not a whole number")
    for name in _STRINGS:
        if not isinstance(record[name], str):
            raise DeviceError(f"device {shown(record['id'])} has {name} {shown(record[name])}, not a text")
    weight = record["weight"]
    if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not 0 <= weight < WEIGHT_MAX:
        raise DeviceError(
            f"device {shown(record['id'])} has weight {shown(weight)}, not a number of at least 0"
        )


def device_of(record: DeviceRecord) -> Device:
    """Return the value of a normalized record."""
    return Device(
        record["id"],
        record["region"],
        record["zone"],
        record["ip"],
        record["port"],
        record["replication_ip"],
        record["replication_port"],
        record["device"],
        record["weight"],
        record["meta"],
    )


def describe(record: DeviceRecord) -> str:
    """Return ``d<id>r<r>z<z>-<ip>:<port>R<rip>:<rport>/<device>_"<meta>"`` (spec: ring.md §11)."""
    here = address(record["ip"], record["port"])
    there = address(record["replication_ip"], record["replication_port"])
    place = f"d{record['id']}r{record['region']}z{record['zone']}"
    return f'{place}-{here}R{there}/{record["device"]}_"{record["meta"]}"'
