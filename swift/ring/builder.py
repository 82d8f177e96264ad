"""The ring builder: the device list, the settings, and the assignment that follows from them.

A builder is edited (devices, replicas, overload), then rebalanced: a plan is made and the rows are brought
towards it, from scratch (``spread``) or with as few moves as possible (``reassign``). What is rebalanced can
be written as a ring. Everything that changes what a ring says raises ``version``. Asking the operator,
backups and exit codes belong to the commands. spec: ring.md §9, §10
"""

from __future__ import annotations

import os
import random
import uuid
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Unpack

from swift.base.clock import Clock, SystemClock
from swift.platform.regularfiles import read_through_links
from swift.ring import builderfile, dispersion
from swift.ring.device import DeviceRecord, describe, normalized, published
from swift.ring.errors import DeviceError, DuplicateDevice, NoSuchDevice, PartPowerError, RingValidationError
from swift.ring.plan import Plan, make_plan, row_lengths
from swift.ring.reassign import Progress, Reassignment
from swift.ring.ringfile import replace_file, save_table
from swift.ring.spread import spread
from swift.ring.table import PART_POWER_MAX, TYPECODE_OF_WIDTH, RingTable, id_width_for, none_id, repeats

BALANCE_OF_WEIGHTLESS = 999.99
HOURS_MAX = 255
_HOUR_S = 3600
_NEW_FILE_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """Result of a rebalance: partition-replicas moved, balance and dispersion (percent), devices gone."""

    changed: int
    balance: float
    dispersion: float
    removed: int


class RingBuilder:
    """A builder in memory; the attributes are the fields of the builder file (spec: ring.md §9)."""

    def __init__(
        self, part_power: int, replicas: float, min_part_hours: float, *, clock: Clock | None = None
    ):
        if part_power > PART_POWER_MAX:
            raise DeviceError(f"part_power must be at most {PART_POWER_MAX} (was {part_power})")
        if part_power < 0:
            raise DeviceError(f"part_power must be at least 0 (was {part_power})")
        _check_replicas(replicas)
        if min_part_hours < 0:
            raise DeviceError(f"min_part_hours must be non-negative (was {min_part_hours})")
        self._clock = clock or SystemClock()
        self.part_power = part_power
        self.next_part_power: int | None = None
        self.replicas = float(replicas)
        self.min_part_hours = min_part_hours
        self.devs: list[DeviceRecord | None] = []
        self.devs_changed = False
        self.version = 0
        self.overload = 0.0
        self.rows: list[array[int]] | None = None
        self.moves_epoch_s = 0
        self.hours_since_move: array[int] = array("B", bytes(self.parts))
        self.gather_start = 0
        self.dispersion_graph: dispersion.Graph = {}
        self.dispersion: float | None = 0.0
        self.removed_ids: set[int] = set()
        self.id: str | None = None

    def __repr__(self) -> str:
        return f"<RingBuilder id={self.id} version={self.version} devices={len(self.live_devs)}>"

    # -- files -----------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str, *, clock: Clock | None = None) -> RingBuilder:
        """Read a builder file. Raises BuilderFileError for what is no builder, OSError otherwise."""
        return cls.from_bytes(read_through_links(path), path, clock=clock)

    @classmethod
    def from_bytes(cls, data: bytes, path: str, *, clock: Clock | None = None) -> RingBuilder:
        """Return the builder of a file's content; ``path`` is for errors. Raises BuilderFileError."""
        fields = builderfile.loads(data, path)
        builder = cls(fields["part_power"], 1, 0, clock=clock)
        builder.replicas = fields["replicas"]
        builder.min_part_hours = fields["min_part_hours"]
        builder.next_part_power = fields["next_part_power"]
        builder.devs = fields["devs"]
        builder.devs_changed = fields["devs_changed"]
        builder.version = fields["version"]
        builder.overload = fields["overload"]
        builder.rows = fields["_replica2part2dev"]
        builder.moves_epoch_s = fields["_last_part_moves_epoch"]
        if fields["_last_part_moves"] is not None:
            builder.hours_since_move = fields["_last_part_moves"]
        builder.gather_start = fields["_last_part_gather_start"]
        builder.dispersion_graph = fields["_dispersion_graph"]
        builder.dispersion = fields["dispersion"]
        builder.removed_ids = {dev["id"] for dev in fields["_remove_devs"] if dev is not None}
        builder.id = fields["id"]
        return builder

    @classmethod
    def from_table(cls, table: RingTable, *, min_part_hours: int, clock: Clock | None = None) -> RingBuilder:
        """Return a builder for a ring whose own is lost; overload and times of moves start afresh."""
        builder = cls(table.part_power, max(1.0, table.replica_count), min_part_hours, clock=clock)
        builder.next_part_power = table.next_part_power
        builder.devs = [
            None if record is None else {**record, "parts": 0, "parts_wanted": 0} for record in table.records
        ]
        builder.version = table.build_version or 0
        builder.rows = [row[:] for row in table.rows] or None
        builder.pretend_min_part_hours_passed()
        builder._recount()
        return builder

    def save(self, path: str) -> None:
        """Write the builder file so that the old or the whole new one is there; gives it an id."""
        try:
            mode = os.stat(path).st_mode & 0o7777
        except FileNotFoundError:
            mode = _NEW_FILE_MODE
        replace_file(path, self.to_bytes(), mode=mode)

    def to_bytes(self) -> bytes:
        """Return the content of the builder file; gives the builder an id."""
        if self.id is None:
            self.id = uuid.uuid4().hex
        return builderfile.dumps(self._fields())

    def copy(self) -> RingBuilder:
        """Return an independent builder with the same content."""
        return self.from_bytes(self.to_bytes(), "", clock=self._clock)

    def _fields(self) -> builderfile.BuilderFields:
        return {
            "part_power": self.part_power,
            "next_part_power": self.next_part_power,
            "replicas": self.replicas,
            "min_part_hours": self.min_part_hours,
            "parts": self.parts,
            "devs": self.devs,
            "devs_changed": self.devs_changed,
            "dev_id_bytes": self.dev_id_bytes,
            "version": self.version,
            "overload": self.overload,
            "_replica2part2dev": self.rows,
            "_last_part_moves_epoch": self.moves_epoch_s,
            "_last_part_moves": self.hours_since_move,
            "_last_part_gather_start": self.gather_start,
            "_dispersion_graph": self.dispersion_graph,
            "dispersion": self.dispersion,
            "_remove_devs": [self.devs[dev_id] for dev_id in sorted(self.removed_ids)],
            "id": self.id,
        }

    def table(self, *, dev_id_bytes: int | None = None) -> RingTable:
        """Return the ring that this builder describes now, in ids of the given width (2 or 4)."""
        rows = self.rows or []
        typecode = TYPECODE_OF_WIDTH[dev_id_bytes or self.dev_id_bytes]
        records = [None if dev is None else published(dev) for dev in self.devs]
        return RingTable(
            part_shift=32 - self.part_power,
            rows=tuple(row if row.typecode == typecode else array(typecode, row) for row in rows),
            records=tuple(records),
            build_version=self.version,
            next_part_power=self.next_part_power,
        )

    def write_ring(self, path: str, *, format_version: int = 1, dev_id_bytes: int | None = None) -> None:
        """Write the ring file. Raises RingFileError when the format cannot hold it, OSError."""
        save_table(self.table(dev_id_bytes=dev_id_bytes), path, format_version=format_version)

    # -- facts -----------------------------------------------------------------------------------------

    @property
    def parts(self) -> int:
        """The number of partitions."""
        return 1 << self.part_power

    @property
    def dev_id_bytes(self) -> int:
        """Bytes per device id in the rows, or that the device list needs before there are rows."""
        return self.rows[0].itemsize if self.rows else id_width_for(len(self.devs))

    @property
    def live_devs(self) -> list[DeviceRecord]:
        """The device records without the holes, in id order; includes those marked for removal."""
        return [dev for dev in self.devs if dev is not None]

    @property
    def weight_of_one_part(self) -> float:
        """Desired partition-replicas per unit of weight; 0 without weight (spec: ring.md §10.1)."""
        weight = sum(dev["weight"] for dev in self.live_devs)
        return self.parts * self.replicas / weight if weight else 0.0

    @property
    def balance(self) -> float:
        """The largest absolute balance of any device, in percent."""
        wop = self.weight_of_one_part
        worst = 0.0
        for dev in self.live_devs:
            desired = dev["weight"] * wop
            if desired:
                worst = max(worst, abs(100.0 * dev.get("parts", 0) / desired - 100.0))
            elif dev.get("parts"):
                worst = max(worst, BALANCE_OF_WEIGHTLESS)
        return worst

    @property
    def min_part_seconds_left(self) -> int:
        """Seconds until partitions moved by the last rebalance may move again."""
        passed_s = int(self._clock.time()) - self.moves_epoch_s
        return max(0, int(self.min_part_hours * _HOUR_S) - passed_s)

    def plan(self) -> Plan:
        """Return the target assignment of a rebalance. Raises EmptyRing or RingValidationError."""
        return make_plan(
            [dev if dev and dev["id"] not in self.removed_ids else None for dev in self.devs],
            parts=self.parts,
            replicas=self.replicas,
            overload=self.overload,
            held={dev["id"]: dev.get("parts", 0) for dev in self.live_devs},
        )

    # -- devices ---------------------------------------------------------------------------------------

    def add_device(self, **record: Unpack[DeviceRecord]) -> int:
        """Add a device (fields of spec: ring.md §6; id optional); returns its id.

        Raises DeviceError for a bad record, DuplicateDevice when id or address are taken.
        """
        if record.get("id") is None:
            record["id"] = next((i for i, dev in enumerate(self.devs) if dev is None), len(self.devs))
        missing = [
            name for name in ("region", "zone", "ip", "port", "device", "weight") if name not in record
        ]
        if missing:
            raise DeviceError(f"a device needs {', '.join(missing)}")
        dev = normalized(record)
        dev["weight"] = float(dev["weight"])
        dev_id = dev["id"]
        if dev_id >= none_id(4):
            raise DeviceError(f"device id {dev_id} is too large")
        if dev_id < len(self.devs) and self.devs[dev_id] is not None:
            raise DuplicateDevice(f"Device id {dev_id} is already in use")
        self._check_unused(dev)
        dev["parts"] = 0
        dev.setdefault("parts_wanted", 0)
        self.devs.extend([None] * (dev_id + 1 - len(self.devs)))
        self.devs[dev_id] = dev
        self._changed_devices()
        return int(dev_id)

    def _check_unused(self, dev: DeviceRecord) -> None:
        """Refuse (DuplicateDevice) an address that another device has: same ip, port and device name."""
        for other in self.live_devs:
            if other["id"] != dev["id"] and all(other[key] == dev[key] for key in ("ip", "port", "device")):
                place = f"{dev['ip']}:{dev['port']}/{dev['device']}"
                raise DuplicateDevice(f"Device {other['id']} already uses {place}.")

    def change_device(self, dev_id: int, **changes: Unpack[DeviceRecord]) -> DeviceRecord:
        """Set weight, region or zone; takes effect at the next rebalance. Returns the record.

        Raises NoSuchDevice, or DeviceError for a bad value or a device that is marked for removal.
        """
        dev = self._device(dev_id)
        if dev_id in self.removed_ids:
            names = " and ".join(changes)
            raise DeviceError(f"Can not set {names} of dev_id {dev_id} because it is marked for removal")
        dev.update(normalized({**dev, **changes}))
        self._changed_devices()
        return dev

    def set_info(self, dev_id: int, **info: Unpack[DeviceRecord]) -> DeviceRecord:
        """Set addresses, device name or meta, which do not matter for placement. Returns the record.

        Raises NoSuchDevice, DeviceError, or DuplicateDevice when another device has that address.
        """
        dev = self._device(dev_id)
        changed = normalized({**dev, **info})
        self._check_unused(changed)
        dev.update(changed)
        return dev

    def remove_device(self, dev_id: int) -> None:
        """Mark a device; it goes at the next rebalance, whatever its partitions' minimum time."""
        dev = self._device(dev_id)
        dev["weight"] = 0
        self.removed_ids.add(dev_id)
        self._changed_devices()

    def _device(self, dev_id: int) -> DeviceRecord:
        dev = self.devs[dev_id] if 0 <= dev_id < len(self.devs) else None
        if dev is None:
            raise NoSuchDevice(f"There is no device with id {dev_id}")
        return dev

    def _changed_devices(self) -> None:
        self.devs_changed = True
        self.version += 1

    def set_replicas(self, replicas: float) -> None:
        """Change the replica count (at least 1) from the next rebalance on."""
        _check_replicas(replicas)
        if int(self.parts * self.replicas) != int(self.parts * replicas):
            self.devs_changed = True
        self.replicas = float(replicas)

    def pretend_min_part_hours_passed(self) -> None:
        """Let every partition be moved again."""
        self.moves_epoch_s = 0
        self.hours_since_move = array("B", bytes([HOURS_MAX]) * self.parts)

    # -- the assignment --------------------------------------------------------------------------------

    def adopt(
        self, devs: list[DeviceRecord | None], rows: list[array[int]], moved_parts: Iterable[int]
    ) -> None:
        """Take devices and rows that were made elsewhere; ``moved_parts`` may not move again for a time."""
        hours = self._aged_hours()
        for part in moved_parts:
            hours[part] = 0
        self.hours_since_move, self.moves_epoch_s = hours, int(self._clock.time())
        self.devs, self.rows = devs, rows
        self.replicas = sum(map(len, rows)) / self.parts
        self.removed_ids = set()
        self.devs_changed = False
        self.version += 1
        self._recount()
        self.measure_dispersion()

    @property
    def movable_parts(self) -> bytearray:
        """For each partition 1 when its minimum time has passed, else 0."""
        free = bytes(int(passed >= self.min_part_hours) for passed in range(256))
        return bytearray(self._aged_hours().tobytes().translate(free))

    def rebalance(
        self, seed: object = None, *, progress: Progress | None = None, movable: bytearray | None = None
    ) -> Rebalanced:
        """Bring the assignment in line with devices and settings; nothing changes when it raises.

        The same ``seed`` gives the same result. ``movable`` replaces ``movable_parts`` and is cleared for
        partitions that move, so that several builders can share it. Raises EmptyRing, RingValidationError
        (too few devices) or PartPowerError (while a part power increase is under way).
        """
        if self.next_part_power is not None:
            raise PartPowerError("Partition power increase in progress")
        plan = self.plan()
        rng = random.Random(None if seed is None else str(seed))
        typecode = TYPECODE_OF_WIDTH[self._row_width()]
        lengths = row_lengths(self.parts, self.replicas)
        hours = self._aged_hours()
        if not self.rows:
            if movable is not None:
                movable[:] = bytes(len(movable))
            rows = spread(plan, lengths, typecode=typecode, rng=rng, progress=_stage(progress, "assigning"))
            changed = len(rows) * min(lengths)
            hours = array("B", bytes(self.parts))
        else:
            movable = self.movable_parts if movable is None else movable
            rows, placed = self._reassigned(plan, lengths, typecode, movable, rng, progress)
            changed = self._note_moves(rows, placed, hours)
        self.rows = rows
        removed = self._drop_removed()
        self.hours_since_move = hours
        self.moves_epoch_s = int(self._clock.time())
        self.gather_start = rng.randrange(self.parts)
        self.devs_changed = False
        self.version += 1
        self._count_parts(plan)
        self.measure_dispersion()
        return Rebalanced(changed, self.balance, self.dispersion or 0.0, removed)

    def _row_width(self) -> int:
        """Widen ids when one does not fit, narrow them only when there is plenty of space (§10.16)."""
        needed = id_width_for(len(self.devs))
        if self.rows and self.dev_id_bytes > needed and len(self.devs) >= none_id(needed) // 2:
            return self.dev_id_bytes
        return needed

    def _aged_hours(self) -> array[int]:
        """Hours since each partition moved, as of now (spec: ring.md §10.12)."""
        passed = (int(self._clock.time()) - self.moves_epoch_s) // _HOUR_S
        if passed <= 0:
            return self.hours_since_move[:]
        older = bytes(min(hours + passed, HOURS_MAX) for hours in range(256))
        return array("B", self.hours_since_move.tobytes().translate(older))

    def _reassigned(
        self,
        plan: Plan,
        lengths: list[int],
        typecode: str,
        movable: bytearray,
        rng: random.Random,
        progress: Progress | None,
    ) -> tuple[list[array[int]], set[tuple[int, int]]]:
        """Return new rows, and (partition, row) of everything that was given a device."""
        assert self.rows is not None, "a ring without rows is spread, not reassigned"
        hole = none_id(array(typecode).itemsize)
        rows = []
        for number, length in enumerate(lengths):
            old = self.rows[number][:length] if number < len(self.rows) else array(typecode)
            row = array(typecode, old) if old.typecode != typecode else old[:]
            row.extend(array(typecode, [hole]) * (length - len(row)))
            rows.append(row)
        for row in rows:
            for dev_id in self.removed_ids:
                _replace(row, dev_id, hole)
        reassignment = Reassignment(
            plan,
            [dev if dev and dev["id"] not in self.removed_ids else None for dev in self.devs],
            rows,
            hole=hole,
            movable=movable,
            rng=rng,
            progress=progress,
        )
        reassignment.run()
        return rows, reassignment.placed

    def _note_moves(self, rows: list[array[int]], placed: set[tuple[int, int]], hours: array[int]) -> int:
        """Reset the hours of moved partitions; returns moves among partitions present in all rows."""
        shared = min(len(row) for row in rows)
        before = self.rows or []
        changed = 0
        for part, number in placed:
            old = before[number] if number < len(before) else ()
            if part >= len(old) or old[part] != rows[number][part]:
                hours[part] = 0
                changed += part < shared
        return changed

    def _drop_removed(self) -> int:
        removed = len(self.removed_ids)
        for dev_id in self.removed_ids:
            self.devs[dev_id] = None
        self.removed_ids = set()
        while self.devs and self.devs[-1] is None:
            self.devs.pop()
        return removed

    def _count_parts(self, plan: Plan) -> None:
        """Note on every device what it holds and what it still wants (spec: ring.md §9)."""
        self._recount()
        quota = plan.device_quota()
        for dev in self.live_devs:
            if dev["id"] in quota:
                dev["parts_wanted"] = quota[dev["id"]] - dev["parts"]
            else:
                dev["parts_wanted"] = -self.parts * self.replicas

    def _recount(self) -> None:
        """Set every device's ``parts`` from the rows."""
        held: Counter[int] = Counter()
        for row in self.rows or []:
            held.update(row)
        for dev in self.live_devs:
            dev["parts"] = held[dev["id"]]

    def measure_dispersion(self) -> None:
        """Recalculate the dispersion graph and the dispersion."""
        self.dispersion_graph, self.dispersion = dispersion.measure(
            self.rows or [], self.devs, parts=self.parts, replicas=self.replicas
        )

    def validate(self) -> None:
        """Raise RingValidationError unless the assignment keeps its promises (spec: ring.md §10.15)."""
        if self.rows is None:
            raise RingValidationError("_replica2part2dev empty; did you forget to rebalance?")
        _validate(self.rows, self.devs, self.parts)


def _check_replicas(replicas: float) -> None:
    # Not below 1, no NaN, and finite.
    if not 1 <= replicas < builderfile.REPLICAS_MAX:
        limit = "at least 1" if not replicas >= 1 else f"less than {builderfile.REPLICAS_MAX}"
        raise DeviceError(f"replicas must be {limit} (was {replicas:.6f})")


def _stage(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(name, done, total)


def _replace(row: array[int], old: int, new: int) -> None:
    """Every ``old`` in the row becomes ``new``."""
    place = -1
    try:
        while True:
            place = row.index(old, place + 1)
            row[place] = new
    except ValueError:
        return


def _validate(rows: list[array[int]], devs: list[DeviceRecord | None], parts: int) -> None:
    live = [dev for dev in devs if dev is not None]
    if sum(dev.get("parts", 0) for dev in live) != sum(len(row) for row in rows):
        raise RingValidationError(
            "All partitions are not double accounted for: the devices' counts are wrong"
        )
    for dev in live:
        if not isinstance(dev["port"], int):
            raise RingValidationError(f"Device {describe(dev)} has port {dev['port']!r}, not a number")
    for row in rows[:-1]:
        if len(row) != parts:
            raise RingValidationError(f"An assignment row has {len(row)} of {parts} partitions")
    known = {dev["id"] for dev in live}
    unknown = set().union(*rows) - known
    if unknown:
        raise RingValidationError(f"Partitions are assigned to device {min(unknown)}, which does not exist")
    whole = [row for row in rows if len(row) == parts]
    short = [row for row in rows if len(row) < parts]
    for group in (whole, [row[: len(short[0])] for row in whole] + short if short else []):
        for part in repeats(group) if len(group) > 1 else []:
            raise RingValidationError(f"Partition {part} has been assigned to duplicate devices")
