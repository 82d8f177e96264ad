"""One loaded ring, immutable: which devices hold a partition, and where to go when they do not answer.

A lookup costs one array access per replica and one dict access per node; ``Node`` values are made on first
use and shared by every later lookup, so nothing is copied. Reloading, files and formats are not known here.
spec: ring.md §7
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from typing import TypeAlias

from swift.base.memo import Memo
from swift.ring.device import Device, Node, device_of
from swift.ring.errors import RingError
from swift.ring.table import RingTable

_HANDOFF_STRIDE_PARTITIONS = 65536


def _nodes(devices: tuple[Device | None, ...], **place: int) -> Memo[int, Node]:
    """Device id → the node at one place (``index`` or ``handoff_index``), made when first asked for."""

    def make(dev_id: int) -> Node:
        device = devices[dev_id] if dev_id < len(devices) else None
        if device is None:
            raise RingError(f"the ring assigns partitions to device {dev_id}, which does not exist")
        return Node.of(device, **place)

    return Memo(make, len(devices))


_Row: TypeAlias = "array[int]"
_Nodes = Memo[int, Node]
#: Rows and nodes of a ring with three whole rows.
_Three: TypeAlias = "tuple[_Row, _Row, _Row, _Nodes, _Nodes, _Nodes]"


class RingView:
    """Lookups in one state of a ring. Safe to keep across a reload of the ``Ring`` that handed it out."""

    def __init__(self, table: RingTable):
        self.format_version = table.format_version
        self.build_version = table.build_version
        self.next_part_power = table.next_part_power
        self.part_shift = table.part_shift
        self.part_power = table.part_power
        self.partition_count = table.partition_count
        self.replica_count = table.replica_count
        self.dev_id_bytes = table.dev_id_bytes
        self.size = table.size
        self.raw_size = table.raw_size
        self.digest = table.digest
        self.devices: tuple[Device | None, ...] = tuple(
            None if record is None else device_of(record) for record in table.records
        )
        self.rows = table.rows
        self._full_rows = tuple(row for row in table.rows if len(row) == self.partition_count)
        self._short_row = next((row for row in table.rows if len(row) < self.partition_count), array("H"))
        self._nodes_at = tuple(_nodes(self.devices, index=place) for place in range(len(table.rows)))
        self._three: _Three | None = None
        if len(self._full_rows) == len(table.rows) == 3:
            row_0, row_1, row_2 = table.rows
            nodes_0, nodes_1, nodes_2 = self._nodes_at
            self._three = (row_0, row_1, row_2, nodes_0, nodes_1, nodes_2)
        self._assigned: _Assigned | None = None

    def __repr__(self) -> str:
        return (
            f"<RingView part_power={self.part_power} replicas={self.replica_count:g} "
            f"devices={sum(device is not None for device in self.devices)} build={self.build_version}>"
        )

    def partition_of(self, digest: bytes) -> int:
        """Return the partition of a path digest (spec: ring.md §1)."""
        return int.from_bytes(digest[:4], "big") >> self.part_shift

    def primary_ids(self, part: int) -> list[int]:
        """Device ids of ``part`` in row order; a short row and a repeated device are skipped.

        IndexError for a partition that the ring does not have.
        """
        if part < 0:
            raise IndexError(f"there is no partition {part}")
        ids = [row[part] for row in self._full_rows]
        if part < len(self._short_row):
            ids.append(self._short_row[part])
        if len(set(ids)) != len(ids):
            return list(dict.fromkeys(ids))
        return ids

    def primaries(self, part: int) -> tuple[Node, ...]:
        """Return the nodes that should hold ``part``, ``index`` counting from 0; IndexError for none of the
        ring.

        Raises RingError when the ring names a device that does not exist.
        """
        if self._three is not None and part >= 0:
            # Nearly all rings have three whole rows; without loops this is twice as quick.
            row_0, row_1, row_2, nodes_0, nodes_1, nodes_2 = self._three
            id_0, id_1, id_2 = row_0[part], row_1[part], row_2[part]
            if id_0 != id_1 != id_2 != id_0:
                return nodes_0[id_0], nodes_1[id_1], nodes_2[id_2]
        ids = self.primary_ids(part)
        return tuple([nodes[dev_id] for nodes, dev_id in zip(self._nodes_at, ids, strict=False)])

    def parts_of(self, dev_id: int) -> frozenset[int]:
        """Return the partitions of which a device is a primary; one walk over the whole ring."""
        found: set[int] = set()
        for row in self.rows:
            try:
                part = row.index(dev_id)
                while True:
                    found.add(part)
                    part = row.index(dev_id, part + 1)
            except ValueError:
                continue
        return frozenset(found)

    def handoffs(self, part: int) -> Iterator[Node]:
        """Every other device that holds partitions, the most distant first, made as they are asked for."""
        for handoff_index, dev_id in enumerate(self.handoff_ids(part)):
            device = self.devices[dev_id]
            assert device is not None, "handoffs are existing devices"
            yield Node.of(device, handoff_index=handoff_index)

    def handoff_ids(self, part: int) -> Iterator[int]:
        """Device ids of ``handoffs``; four walks over the partitions (spec: ring.md §7)."""
        if self._assigned is None:
            self._assigned = _Assigned(self)
        levels = self._assigned.levels
        used = set(self.primary_ids(part)) | self._assigned.unknown_ids
        seen = [{keys[dev_id] for dev_id in used - self._assigned.unknown_ids} for keys, _ in levels]
        for depth, (keys, total) in enumerate(levels):
            represented = seen[depth]
            if len(represented) == total:
                continue
            for candidate in self._scan_order(part):
                for dev_id in self._row_ids(candidate):
                    if dev_id in used or keys[dev_id] in represented:
                        continue
                    used.add(dev_id)
                    for marks, (level_keys, _) in zip(seen, levels, strict=True):
                        marks.add(level_keys[dev_id])
                    yield dev_id
                if len(represented) == total:
                    break

    def _row_ids(self, part: int) -> list[int]:
        ids = [row[part] for row in self._full_rows]
        if part < len(self._short_row):
            ids.append(self._short_row[part])
        return ids

    def _scan_order(self, part: int) -> Iterator[int]:
        count = self.partition_count
        digest = hashlib.md5(b"%d" % part, usedforsecurity=False).digest()
        start = int.from_bytes(digest[:4], "big") >> self.part_shift
        stride = count // _HANDOFF_STRIDE_PARTITIONS or 1
        yield from range(start, count, stride)
        # Upstream's second leg never visits partition 0 for stride 1; the order is part of the format.
        yield from range(stride - (count - start) % stride, start, stride)


class _Assigned:
    """Assignment facts for handoff walks about the devices that hold partitions; made on the first walk."""

    def __init__(self, view: RingView):
        assigned: frozenset[int] = frozenset().union(*view.rows)
        self.dev_ids = frozenset(
            device.id for device in view.devices if device is not None and device.id in assigned
        )
        self.unknown_ids = assigned - self.dev_ids
        regions: list[object] = [None] * len(view.devices)
        zones: list[object] = list(regions)
        addresses: list[object] = list(regions)
        for dev_id in self.dev_ids:
            device = view.devices[dev_id]
            assert device is not None, "dev_ids are existing devices"
            regions[dev_id] = device.region
            zones[dev_id] = (device.region, device.zone)
            addresses[dev_id] = (device.region, device.zone, device.ip)
        self.levels = [
            (keys, len({keys[dev_id] for dev_id in self.dev_ids}))
            for keys in (regions, zones, addresses, list(range(len(view.devices))))
        ]
