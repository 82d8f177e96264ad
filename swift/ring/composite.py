"""Composite rings: several rings for disjoint regions, laid side by side into one.

Each component keeps its own builder; composing shifts device ids and concatenates rows and devices. The
composite file remembers which builders, in which versions, went in, so that a later composition cannot
silently be built from others. Cooperative rebalancing lets components rebalance without ever moving the same
partition twice. spec: ring.md §12
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from swift.platform.regularfiles import read_through_links
from swift.ring.builder import RingBuilder
from swift.ring.device import DeviceRecord
from swift.ring.errors import BuilderFileError, CompositeError
from swift.ring.ringfile import replace_file
from swift.ring.table import TYPECODE_OF_WIDTH, RingTable, id_width_for

SERIALIZATION_VERSION = 1
_FILE_MODE = 0o644
_BUILDER_ONLY_MISSING = 0


@dataclass(frozen=True, slots=True)
class Component:
    """Record of one component builder."""

    id: str
    replicas: float
    version: int


@dataclass(frozen=True, slots=True)
class Composition:
    """The content of a composite file; ``files`` maps a builder's id to its path."""

    version: int = 0
    components: tuple[Component, ...] = ()
    files: dict[str, str] = field(default_factory=dict)

    def metadata(self) -> dict[str, object]:
        """Return the values that ``show`` prints."""
        return {
            "component_builder_files": dict(self.files),
            "components": [
                {"version": part.version, "replicas": part.replicas, "id": part.id}
                for part in self.components
            ],
            "version": self.version,
        }


def load_composition(path: str) -> Composition:
    """Read a composite file. Raises BuilderFileError for other content, OSError."""
    data = read_through_links(path)
    try:
        content = json.loads(data)
        if content["serialization_version"] != SERIALIZATION_VERSION:
            raise ValueError("unknown serialization version")
        components = tuple(
            Component(str(part["id"]), float(part["replicas"]), int(part["version"]))
            for part in content["components"]
        )
        files = {str(name): str(place) for name, place in content["component_builder_files"].items()}
        return Composition(int(content["version"]), components, files)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BuilderFileError(path, "File does not contain valid composite ring data")


def save_composition(composition: Composition, path: str) -> None:
    """Write a composite file, whole or not at all."""
    content = composition.metadata()
    content["saved_path"] = os.path.abspath(path)
    content["serialization_version"] = SERIALIZATION_VERSION
    replace_file(path, json.dumps(content).encode("ascii"), mode=_FILE_MODE)


def compose(
    previous: Composition, builders: Sequence[tuple[str, RingBuilder]], *, force: bool = False
) -> tuple[Composition, RingTable]:
    """Return the next composition and its ring from (path, builder) pairs in order.

    ``force`` accepts other components than last time. Raises CompositeError with every reason.
    """
    parts = [builder for _, builder in builders]
    check_components(parts)
    components = tuple(Component(builder.id or "", builder.replicas, builder.version) for builder in parts)
    if previous.version and not force:
        _check_same_components(previous.components, components)
    files = {builder.id or "": os.path.abspath(path) for path, builder in builders}
    return Composition(previous.version + 1, components, files), _joined(parts)


def check_components(builders: Sequence[RingBuilder]) -> None:
    """Raise CompositeError unless these builders can form one ring."""
    if len(builders) < 2:
        raise CompositeError("Two or more component builders are required.")
    problems = []
    for place, builder in enumerate(builders):
        if not float(builder.replicas).is_integer():
            problems.append(f"Non integer replica count {builder.replicas} found at index {place}")
        if builder.devs_changed or not builder.rows:
            problems.append(f"Builder needs rebalance to apply changes at index {place}")
        if builder.next_part_power is not None:
            problems.append(f"Partition power increase in progress at index {place}")
    if problems:
        raise CompositeError("\n".join(["Problem with builders.", *problems]))
    _check_ids(builders)
    powers = {builder.part_power for builder in builders}
    if len(powers) > 1:
        found = ", ".join(str(builder.part_power) for builder in builders)
        raise CompositeError(f"All builders must have same value for 'part_power' (found {found}).")
    _check_disjoint(builders)


def _check_ids(builders: Sequence[RingBuilder]) -> None:
    places: dict[str | None, list[int]] = {}
    for place, builder in enumerate(builders):
        places.setdefault(builder.id, []).append(place)
    if None in places:
        raise CompositeError(f"Problem with builder at indexes {places[None]}: id is not set, save it first")
    for name, indexes in places.items():
        if len(indexes) > 1:
            raise CompositeError(f"Builder id {name!r} used at indexes {', '.join(map(str, indexes))}")


def _check_disjoint(builders: Sequence[RingBuilder]) -> None:
    regions: set[int] = set()
    addresses: dict[tuple[str, int, str], int] = {}
    for builder in builders:
        own = {dev["region"] for dev in builder.live_devs}
        if regions & own:
            raise CompositeError("Same region found in different rings")
        regions |= own
    for place, builder in enumerate(builders):
        for dev in builder.live_devs:
            other = addresses.setdefault((dev["ip"], dev["port"], dev["device"]), place)
            if other != place:
                raise CompositeError(
                    f"Duplicate ip/port/device combination {dev['ip']}/{dev['port']}/{dev['device']} "
                    f"found in builders at indexes {other} and {place}"
                )


def _check_same_components(old: Sequence[Component], new: Sequence[Component]) -> None:
    problems = []
    for place, (before, after) in enumerate(zip(old, new, strict=False)):
        for name in ("id", "replicas"):
            if getattr(before, name) != getattr(after, name):
                problems.append(
                    f"Invalid builder change at index {place}: Attribute mismatch for {name}: "
                    f"{getattr(before, name)} != {getattr(after, name)}"
                )
                break
        else:
            if after.version < before.version:
                problems.append(
                    f"Invalid builder change at index {place}: Older builder version: "
                    f"{after.version} < {before.version}"
                )
    if len(old) != len(new):
        problems.append(f"Missing or additional builders: {len(new)} given, {len(old)} before")
    if problems:
        raise CompositeError("\n".join(problems))
    if all(before.version == after.version for before, after in zip(old, new, strict=True)):
        raise CompositeError(
            "None of the component builders has been modified since the existing composite ring was built."
        )


def _joined(builders: Sequence[RingBuilder]) -> RingTable:
    records: list[DeviceRecord | None] = []
    shifts = []
    for builder in builders:
        shifts.append(len(records))
        for dev in builder.devs:
            if dev is not None:
                dev = {"parts": _BUILDER_ONLY_MISSING, "parts_wanted": _BUILDER_ONLY_MISSING, **dev}
                dev["id"] += shifts[-1]
            records.append(dev)
    typecode = TYPECODE_OF_WIDTH[id_width_for(len(records))]
    rows = [
        array(typecode, [dev_id + shift for dev_id in row])
        for builder, shift in zip(builders, shifts, strict=True)
        for row in builder.rows or []
    ]
    return RingTable(part_shift=32 - builders[0].part_power, rows=tuple(rows), records=tuple(records))
