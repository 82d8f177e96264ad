"""Builder files: a pickle of plain data, read without being able to run anything.

Reading accepts what upstream has ever written (dict, or a pickled instance in very old files), fills in
what old files lack and refuses everything else with one sentence. Writing produces the dict that upstream
reads. What the fields mean is known to ``builder``. spec: ring.md §9
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, TypeVar

from swift.base.pickles import PickleRefused, restricted_loads
from swift.ring.device import DeviceRecord, normalized, shown
from swift.ring.errors import BuilderFileError, DeviceError
from swift.ring.table import PART_POWER_MAX
from swift.ring.tiers import Key

_PICKLE_PROTOCOL = 2
_TYPECODES = "BHILQ"
REPLICAS_MAX = 1 << 16
_NUMBER_MAX = 1 << 63
_ROW_TYPECODE = {1: "B", 2: "H", 4: "I", 8: "L"}


_N = TypeVar("_N", int, float)
_D = TypeVar("_D")


class BuilderFields(TypedDict):
    """Content of a builder file; arrays have one entry per partition."""

    part_power: int
    next_part_power: int | None
    replicas: float
    min_part_hours: float
    parts: int
    devs: list[DeviceRecord | None]
    devs_changed: bool
    dev_id_bytes: NotRequired[int]
    version: int
    overload: float
    _replica2part2dev: list[array[int]] | None
    _last_part_moves_epoch: int
    _last_part_moves: array[int] | None
    _last_part_gather_start: int
    _dispersion_graph: dict[Key, list[int]]
    dispersion: float | None
    _remove_devs: Sequence[DeviceRecord | None]
    id: str | None


class _OldInstance:
    """Stands in for the builder class that very old files name; only its attributes are wanted."""


def _plain_array(typecode: str, items: object = ()) -> array[int]:
    """``array.array`` limited to what builders hold."""
    if typecode not in _TYPECODES or not isinstance(items, (list, tuple, bytes)):
        raise PickleRefused(f"pickle holds an array of type {typecode!r}")
    return array(typecode, items)


def _machine_array(cls: object, typecode: str, machine_format: int, data: bytes) -> array[int]:
    """``array._array_reconstructor`` limited to unsigned integers (formats 0, 2, 3, 6, 7, 10, 11)."""
    widths = {0: 1, 2: 2, 3: 2, 6: 4, 7: 4, 10: 8, 11: 8}
    if typecode not in _TYPECODES or machine_format not in widths or not isinstance(data, bytes):
        raise PickleRefused(f"pickle holds an array of type {typecode!r}, format {machine_format!r}")
    width = widths[machine_format]
    order: Literal["big", "little"] = "big" if machine_format in (3, 7, 11) else "little"
    return array(
        typecode, [int.from_bytes(data[start : start + width], order) for start in range(0, len(data), width)]
    )


def _old_reconstructor(cls: object, base: object, state: object) -> object:
    if cls is not _OldInstance:
        raise PickleRefused("pickle reconstructs an unexpected class")
    return _OldInstance()


_GLOBALS = {
    ("array", "array"): _plain_array,
    ("array", "_array_reconstructor"): _machine_array,
    ("swift.common.ring.builder", "RingBuilder"): _OldInstance,
    ("swift.common.ring", "RingBuilder"): _OldInstance,
    ("copy_reg", "_reconstructor"): _old_reconstructor,
    ("copyreg", "_reconstructor"): _old_reconstructor,
    ("__builtin__", "object"): object,
    ("builtins", "object"): object,
}


def loads(data: bytes, path: str) -> BuilderFields:
    """Return the checked fields of a builder file. Raises BuilderFileError naming ``path``."""
    try:
        fields = restricted_loads(data, frozenset(), extra=_GLOBALS)
    except PickleRefused as error:
        raise BuilderFileError(path, str(error))
    if isinstance(fields, _OldInstance):
        fields = vars(fields)
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise BuilderFileError(path, "the pickle does not hold a builder")
    try:
        return _checked(fields)
    except (DeviceError, _BadField) as error:
        raise BuilderFileError(path, str(error))


def dumps(fields: BuilderFields) -> bytes:
    """Return the bytes of a builder file."""
    return pickle.dumps(dict(fields), protocol=_PICKLE_PROTOCOL)


class _BadField(Exception):
    """A field of a builder file is missing or of a wrong kind."""


def _checked(fields: Mapping[str, Any]) -> BuilderFields:
    part_power = _number(fields, "part_power", int)
    if not 0 <= part_power <= PART_POWER_MAX:
        raise _BadField(f"part_power is {part_power}")
    parts = 1 << part_power
    replicas = float(_number(fields, "replicas", (int, float)))
    if not 1 <= replicas < REPLICAS_MAX:
        raise _BadField(f"replicas is {replicas}")
    return {
        "part_power": part_power,
        "parts": parts,
        "replicas": replicas,
        "min_part_hours": _number(fields, "min_part_hours", (int, float)),
        "version": _number(fields, "version", int),
        "overload": float(_number_or(fields, "overload", (int, float), 0.0)),
        "_last_part_moves_epoch": int(_number_or(fields, "_last_part_moves_epoch", (int, float), 0)),
        "_last_part_gather_start": _number_or(fields, "_last_part_gather_start", int, 0),
        "next_part_power": _number_or(fields, "next_part_power", int, None),
        "dispersion": _number_or(fields, "dispersion", (int, float), None),
        "devs_changed": bool(fields.get("devs_changed", False)),
        "id": _checked_id(fields.get("id")),
        "devs": (devs := _checked_devs(fields.get("devs"))),
        "_replica2part2dev": _checked_rows(fields.get("_replica2part2dev"), parts, devs),
        "_last_part_moves": _checked_moves(fields.get("_last_part_moves"), parts),
        "_remove_devs": _checked_removals(fields.get("_remove_devs"), devs),
        "_dispersion_graph": graph if isinstance(graph := fields.get("_dispersion_graph"), dict) else {},
    }


def _checked_id(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _BadField("id is not a text")
    return value


def _number(fields: Mapping[str, object], name: str, kinds: type[_N] | tuple[type[_N], ...]) -> _N:
    value = _number_or(fields, name, kinds, None)
    if value is None:
        raise _BadField(f"the pickle does not hold a builder ({name} is missing)")
    return value


def _number_or(
    fields: Mapping[str, object], name: str, kinds: type[_N] | tuple[type[_N], ...], default: _D
) -> _N | _D:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise _BadField(f"{name} is {shown(value)}, not a number")
    if not abs(value) < _NUMBER_MAX:
        raise _BadField(f"{name} is no finite number below 2^63")
    return value


def _checked_devs(devs: object) -> list[DeviceRecord | None]:
    if not isinstance(devs, list):
        raise _BadField("the device list is missing")
    records = [None if dev is None else normalized(dev, position=place) for place, dev in enumerate(devs)]
    for record in records:
        if record is not None:
            for name in ("parts", "parts_wanted"):
                record.setdefault(name, 0)  # type: ignore[misc]
                _number(record, name, (int, float))
    return records


def _checked_rows(rows: object, parts: int, devs: list[DeviceRecord | None]) -> list[array[int]] | None:
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, array) for row in rows):
        raise _BadField("the assignment is not a list of arrays")
    for row in rows:
        if len(row) > parts:
            raise _BadField(f"an assignment row has {len(row)} entries for {parts} partitions")
    width = 2 if all(row.itemsize <= 2 for row in rows) else 4
    try:
        return [row if row.itemsize == width else array(_ROW_TYPECODE[width], row) for row in rows]
    except OverflowError:
        raise _BadField("the assignment holds a number that is no device id")


def _checked_moves(moves: Iterable[int] | None, parts: int) -> array[int] | None:
    if moves is None:
        return None
    try:
        hours = array("B", moves)
    except (TypeError, ValueError, OverflowError):
        raise _BadField("the times of the last moves are not numbers of hours")
    if len(hours) != parts:
        raise _BadField(f"there are {len(hours)} times of last moves for {parts} partitions")
    return hours


def _checked_removals(removals: object, devs: list[DeviceRecord | None]) -> list[DeviceRecord]:
    if not isinstance(removals, list | None):
        raise _BadField("the devices marked for removal are not a list")
    marked = []
    for dev in removals or []:
        dev_id = dev.get("id") if isinstance(dev, Mapping) else None
        if not isinstance(dev_id, int) or not 0 <= dev_id < len(devs):
            raise _BadField("a device marked for removal does not exist")
        record = devs[dev_id]
        if record is not None:
            marked.append(record)
    return marked
