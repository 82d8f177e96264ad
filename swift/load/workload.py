"""Workload files: what is to be done, in TOML (doc/reference/benchmarking.md).

A workload has objects, which phases prepare, use and remove. Everything is checked when it is loaded; an
error names file, line and field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from swift.base.errors import SwiftError
from swift.load.samples import BadSample, Constant, Sizes, Uniform, Weighted, parse_size

T = TypeVar("T")
KINDS = ("init", "prepare", "main", "cleanup")
#: Operations of a main phase. "multipart" is a large object in parts: SLO, or an S3 multipart upload.
OPERATIONS = ("get", "put", "head", "delete", "list", "post", "multipart")
NAMES = ("uniform", "zipf", "sequential", "fresh")
BUILT_IN = Path(__file__).parent / "workloads"
Table = Mapping[str, object]


class BadWorkload(SwiftError):
    """A workload that means nothing; the text names file, line and field."""


@dataclass(frozen=True)
class ObjectSet:
    """Set of objects of a phase: ``containers`` times ``per_container`` objects."""

    containers: int = 8
    per_container: int = 128
    sizes: Sizes = Constant(1024)
    part_size: int = 5 << 20
    policy: str = ""

    @property
    def count(self) -> int:
        """All of them."""
        return self.containers * self.per_container


@dataclass(frozen=True)
class Phase:
    """One phase. A main one ends after ``seconds`` or ``operations``, whichever comes first."""

    kind: str
    name: str
    clients: int = 16
    seconds: float | None = None
    operations: int | None = None
    mix: tuple[tuple[str, float], ...] = ()
    names: str = "uniform"
    zipf: float = 1.1
    #: Only the first part of the objects is used, 0 to 1: a working set.
    working_set: float = 1.0
    #: Operations begun a second by all clients together (open loop); None: each client waits for its answer.
    rate: float | None = None
    think_s: float = 0.0
    verify: bool = False
    #: At the beginning so many seconds are not counted.
    rampup: float = 0.0
    #: Of what this phase writes; None: those of the workload's objects.
    sizes: Sizes | None = None


@dataclass(frozen=True)
class Workload:
    """A whole workload."""

    name: str
    objects: ObjectSet
    phases: tuple[Phase, ...]
    description: str = ""
    seed: int = 1
    source: str = ""

    def with_options(self, **options: float | int | None) -> Workload:
        """Return the workload with other options of main phases; None keeps a value."""
        given = {name: value for name, value in options.items() if value is not None}
        phases = [
            replace(phase, **given) if phase.kind == "main" else _with_clients(phase, given)  # type: ignore[arg-type]
            for phase in self.phases
        ]
        return replace(self, phases=tuple(phases))


def _with_clients(phase: Phase, given: Mapping[str, float | int]) -> Phase:
    clients = given.get("clients")
    return phase if clients is None else replace(phase, clients=int(clients))


@dataclass
class _FieldReader:
    """Takes fields out of the tables of one file, and knows where they stand."""

    source: str
    text: str
    taken: set[tuple[str, str]] = field(default_factory=set)

    def fail(self, where: str, name: str, reason: str) -> BadWorkload:
        return BadWorkload(f"{self.source}:{self.line(where, name)}: {where}.{name}: {reason}")

    def line(self, where: str, name: str) -> int:
        """Return the line of a field of a table; that of the table when it is not there."""
        table, _, number = where.partition("#")
        want, seen, begin = int(number or 1), 0, 0
        for at, line in enumerate(self.text.splitlines(), 1):
            stripped = line.strip()
            head = re.match(r"\[+\s*([\w.-]+)\s*\]+", stripped)
            if head:
                if begin and seen == want:
                    break
                if head[1] == table:
                    seen += 1
                    begin = at if seen == want else begin
            elif re.match(rf"{re.escape(name)}\s*=", stripped) and (
                (seen == want and begin) or (table == "workload" and not begin)
            ):
                return at
        return begin or 1

    def take(self, table: Table, where: str, name: str, parse: Callable[[object], T], default: T) -> T:
        self.taken.add((where, name))
        if name not in table:
            return default
        try:
            return parse(table[name])
        except (BadSample, ValueError, TypeError) as error:
            raise self.fail(where, name, str(error))

    def check_all_known(self, table: Table, where: str) -> None:
        for name in table:
            if (where, name) not in self.taken:
                known = sorted(known for place, known in self.taken if place == where)
                raise self.fail(where, name, f"no such field; there are {', '.join(known)}")


def load(path: Path) -> Workload:
    """Return the workload of a file; raises ``BadWorkload``."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadWorkload(f"{path}: cannot be read: {error}")
    return parse(text, str(path))


def built_in_names() -> list[str]:
    """Return the names of all of them."""
    return sorted(path.stem for path in BUILT_IN.glob("*.toml"))


def parse(text: str, source: str) -> Workload:
    """Return the workload that a text describes; raises ``BadWorkload``."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise BadWorkload(f"{source}:{found[1] if found else 1}: {error}")
    reader = _FieldReader(source, text)
    name = reader.take(table, "workload", "name", _text, Path(source).stem)
    description = reader.take(table, "workload", "description", _text, "")
    seed = reader.take(table, "workload", "seed", _count, 1)
    objects = _objects(reader, reader.take(table, "workload", "objects", _table, {}))
    no_phases: Sequence[Table] = ()
    tables = reader.take(table, "workload", "phase", _tables, no_phases)
    reader.check_all_known(table, "workload")
    if not tables:
        raise reader.fail("workload", "phase", "a workload needs at least one [[phase]]")
    phases = tuple(_phase(reader, phase, f"phase#{number}") for number, phase in enumerate(tables, 1))
    return Workload(name, objects, phases, description, seed, source)


def _objects(reader: _FieldReader, table: Table) -> ObjectSet:
    where, base = "objects", ObjectSet()
    made = ObjectSet(
        containers=reader.take(table, where, "containers", _positive, base.containers),
        per_container=reader.take(table, where, "per_container", _positive, base.per_container),
        sizes=reader.take(table, where, "size", parse_sizes, base.sizes),
        part_size=reader.take(table, where, "part_size", parse_size, base.part_size),
        policy=reader.take(table, where, "policy", _text, base.policy),
    )
    reader.check_all_known(table, where)
    return made


def _phase(reader: _FieldReader, table: Table, where: str) -> Phase:
    kind = reader.take(table, where, "kind", _one_of(KINDS), "main")
    base = Phase(kind, kind)
    made = Phase(
        kind,
        name=reader.take(table, where, "name", _text, kind),
        clients=reader.take(table, where, "clients", _positive, base.clients),
        seconds=reader.take(table, where, "seconds", _optional(_above_zero), None),
        operations=reader.take(table, where, "operations", _optional(_positive), None),
        mix=reader.take(table, where, "mix", _mix, ()),
        names=reader.take(table, where, "names", _one_of(NAMES), base.names),
        zipf=reader.take(table, where, "zipf", _above_zero, base.zipf),
        working_set=reader.take(table, where, "working_set", _share, base.working_set),
        rate=reader.take(table, where, "rate", _optional(_above_zero), None),
        think_s=reader.take(table, where, "think_s", _at_least_zero, base.think_s),
        verify=reader.take(table, where, "verify", _flag, base.verify),
        rampup=reader.take(table, where, "rampup", _at_least_zero, base.rampup),
        sizes=reader.take(table, where, "size", _optional(parse_sizes), None),
    )
    reader.check_all_known(table, where)
    if kind == "main":
        if not made.mix:
            raise reader.fail(where, "mix", "a main phase needs a mix, e.g. {get = 90, put = 10}")
        if made.seconds is None and made.operations is None:
            raise reader.fail(where, "seconds", "a main phase ends after seconds or operations")
    elif made.mix:
        raise reader.fail(where, "mix", f"only main phases mix operations, not {kind}")
    return made


def parse_sizes(value: object) -> Sizes:
    """Parse the sizes of a workload file; raises ``BadSample``.

    A size; ``{min, max}``; ``[{size or min and max, weight}, ...]``, which also writes a histogram.
    """
    if isinstance(value, list):
        return Weighted(tuple((parse_sizes(_without_weight(part)), _weight_of(part)) for part in value))
    if isinstance(value, dict):
        if set(value) == {"size"}:
            return Constant(parse_size(value["size"]))
        if set(value) == {"min", "max"}:
            return Uniform(parse_size(value["min"]), parse_size(value["max"]))
        raise BadSample("sizes are a size, {min, max}, or a list of these with a weight")
    return Constant(parse_size(value))


def _without_weight(part: object) -> dict[str, object]:
    if not isinstance(part, dict) or "weight" not in part:
        raise BadSample("each of several sizes has a weight")
    return {name: value for name, value in part.items() if name != "weight"}


def _weight_of(part: object) -> float:
    return _at_least_zero(part["weight"]) if isinstance(part, dict) else 0.0


# kinds of values


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {value!r}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise ValueError(f"must be a number, not {value!r}")
    return float(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"must be a whole number from 0 on, not {value!r}")
    return value


def _positive(value: object) -> int:
    if not (found := _count(value)):
        raise ValueError("must be at least 1")
    return found


def _at_least_zero(value: object) -> float:
    if not 0 <= (found := _number(value)) < float("inf"):
        raise ValueError(f"must not be below 0, not {value!r}")
    return found


def _above_zero(value: object) -> float:
    if not _at_least_zero(value):
        raise ValueError("must be above 0")
    return _number(value)


def _share(value: object) -> float:
    if not 0 < (found := _number(value)) <= 1:
        raise ValueError(f"must lie above 0 and be at most 1, not {value!r}")
    return found


def _optional(parse_value: Callable[[object], T]) -> Callable[[object], T | None]:
    """Return the parser of a field that may be absent."""
    return parse_value


def _table(value: object) -> Table:
    if not isinstance(value, dict):
        raise ValueError("must be a table")
    return value


def _tables(value: object) -> Sequence[Table]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("must be written as [[phase]]")
    return value


def _one_of(known: tuple[str, ...]) -> Callable[[object], str]:
    def parse_choice(value: object) -> str:
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}, not {value!r}")
        return str(value)

    return parse_choice


def _mix(value: object) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, dict) or not value:
        raise ValueError("must be a table of operations and weights")
    for name in value:
        if name not in OPERATIONS:
            raise ValueError(f"no operation {name!r}; there are {', '.join(OPERATIONS)}")
    found = tuple((name, _at_least_zero(weight)) for name, weight in value.items())
    if not sum(weight for _, weight in found):
        raise ValueError("one of the weights is above 0")
    return found
