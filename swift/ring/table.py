"""The content of a ring file as one value, whatever version it was written in.

``RingTable`` is what the formats decode to and encode from: assignment rows (one array of device ids per
replica, indexed by partition), device records and a few numbers. It checks that all of it fits together, so
that a lookup never has to. It knows nothing about files and nothing about lookups.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq

from swift.ring.device import DeviceRecord, normalized
from swift.ring.errors import DeviceError, RingFormatError

TYPECODE_OF_WIDTH = {2: "H", 4: "I"}
PART_POWER_MAX = 32
# Up to here comparing all pairs of rows is quicker than making a set of every partition's replicas.
_PAIRWISE_ROWS_MAX = 8
assert array("H").itemsize == 2 and array("I").itemsize == 4, "rows are stored as 16 or 32 bit ids"


def none_id(dev_id_bytes: int) -> int:
    """Return the all-ones id that means "unassigned" and so is never a device (spec: ring.md §6)."""
    return (1 << (8 * dev_id_bytes)) - 1


def id_width_for(device_count: int) -> int:
    """Bytes per device id so that the ids 0 … device_count - 1 fit: 2 or 4 (spec: ring.md §6)."""
    return 2 if device_count - 1 < none_id(2) else 4


@dataclass(frozen=True, slots=True)
class RingTable:
    """An assignment of partitions to devices.

    ``size``, ``raw_size`` (bytes) and ``digest`` are of its file and only reported.
    """

    part_shift: int
    rows: tuple[array[int], ...]
    records: tuple[DeviceRecord | None, ...]
    build_version: int | None = None
    next_part_power: int | None = None
    format_version: int = 1
    size: int = 0
    raw_size: int = 0
    #: MD5 of the file, as recon tells it.
    digest: str = ""

    @property
    def part_power(self) -> int:
        """The number of digest bits that choose the partition."""
        return 32 - self.part_shift

    @property
    def partition_count(self) -> int:
        """Partitions, 2 to the power of ``part_power``."""
        return 1 << self.part_power

    @property
    def replica_count(self) -> float:
        """Rows, the last one counted by its share (spec: ring.md §4)."""
        if not self.rows or not len(self.rows[0]):
            return 0.0
        return len(self.rows) - 1 + len(self.rows[-1]) / len(self.rows[0])

    @property
    def dev_id_bytes(self) -> int:
        """Width of a row element in bytes."""
        return self.rows[0].itemsize if self.rows else id_width_for(len(self.records))


def checked_part_shift(value: object) -> int:
    """Return a part_shift from a file, or RingFormatError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= PART_POWER_MAX:
        raise RingFormatError(f"part_shift is {value!r}, not a number between 0 and {PART_POWER_MAX}")
    return value


def checked_next_part_power(value: object) -> int | None:
    """Return a next_part_power from a file, or RingFormatError."""
    if value is not None and (not isinstance(value, int) or not 0 <= value <= PART_POWER_MAX):
        raise RingFormatError(f"next_part_power is {value!r}, not a part power")
    return value


def checked_build_version(value: object) -> int | None:
    """Return a builder version from a file, or RingFormatError."""
    if value is not None and not isinstance(value, int):
        raise RingFormatError(f"version is {value!r}, not a whole number")
    return value


def checked_records(devs: object) -> tuple[DeviceRecord | None, ...]:
    """Device records from a file, holes kept, or RingFormatError."""
    if not isinstance(devs, list):
        raise RingFormatError("the device list is missing")
    try:
        return tuple(
            None if record is None else normalized(record, position=place)
            for place, record in enumerate(devs)
        )
    except DeviceError as error:
        raise RingFormatError(str(error))


def check_rows(rows: Sequence[array[int]], partition_count: int) -> None:
    """Refuse rows that are short (other than the last) or too long."""
    for row in rows[:-1]:
        if len(row) != partition_count:
            raise RingFormatError(f"an assignment row has {len(row)} of {partition_count} partitions")
    if rows and len(rows[-1]) > partition_count:
        raise RingFormatError(f"the last assignment row has more than {partition_count} partitions")


def check_usable(table: RingTable) -> None:
    """Refuse a table without devices or without assigned partitions."""
    if not any(table.records):
        raise RingFormatError("it has no devices")
    if not table.rows or not len(table.rows[0]):
        raise RingFormatError("it assigns no partitions")


def check_assigned(table: RingTable) -> None:
    """Refuse rows that name a device that does not exist; looks at every entry."""
    devices = {place for place, record in enumerate(table.records) if record is not None}
    unknown = set().union(*table.rows) - devices
    if unknown:
        raise RingFormatError(f"partitions are assigned to device {min(unknown)}, which does not exist")


def repeats(rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the places at which two of these equally long rows hold the same number."""
    if len(rows) <= _PAIRWISE_ROWS_MAX:
        places = range(len(rows[0]))
        pairs = itertools.combinations(rows, 2)
        return sorted(set().union(*(itertools.compress(places, map(eq, *pair)) for pair in pairs)))
    sizes = map(len, map(set, zip(*rows, strict=True)))
    return [place for place, size in enumerate(sizes) if size < len(rows)]
