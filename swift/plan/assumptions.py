"""Assumptions of the capacity plan: each number with its unit and reason.

Nothing is computed here.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace

from swift.plan.errors import PlanError

Number = int | float


def _number(default: Number, doc: str, low: float = 0.0, *, zero: bool = False) -> Number:
    value: Number = field(default=default, metadata={"doc": doc, "low": low, "zero": zero})
    return value


@dataclass(frozen=True)
class Assumptions:
    """The inputs of ``capacity``; ``assumption_doc`` returns the meaning of each."""

    object_bytes: Number = _number(512 * 1024, "mean size of an object in bytes")
    objects_per_container: Number = _number(1_000_000, "mean number of objects in a container")
    containers_per_account: Number = _number(1000, "mean number of containers in an account")
    drive_bytes: Number = _number(16e12, "size of a drive in bytes")
    fill: Number = _number(0.75, "share of a drive that may be used, because placement is uneven")
    drives_per_node: Number = _number(24, "drives in a storage node", 1)
    nodes_min: Number = _number(5, "fewest storage nodes: one in each of five zones", 1)
    growth: Number = _number(4, "the largest size that the cluster will have, in times of this one", 1)
    partitions_per_drive: Number = _number(100, "partitions of a drive at the largest size, at least", 1)
    inode_bytes: Number = _number(512, "an inode of XFS, with the metadata of an object in it")
    entry_bytes: Number = _number(64, "a directory entry with its share of the block")
    memory_bytes: Number = _number(256 * 2**30, "memory of a storage node in bytes")
    cache_share: Number = _number(0.5, "share of the memory that keeps inodes and directories")
    ssd_bytes: Number = _number(3.2e12, "SSD of a storage node for metadata and databases", zero=True)
    row_bytes: Number = _number(400, "a row of a container's database with its index entry")
    shard_rows: Number = _number(1_000_000, "rows above which a container is sharded", 1)
    database_copies: Number = _number(3, "copies of a container's database", 1)
    pass_partition_s: Number = _number(
        0.12, "a replicator's time for a partition in seconds, its metadata cached (2017 study)"
    )
    pass_partition_cold_s: Number = _number(
        0.55, "a replicator's time for a partition in seconds, nothing cached (2017 study)"
    )
    replicator_workers: Number = _number(1, "partitions that a node's replicator looks at at once", 1)
    scrub_bytes_s: Number = _number(20e6, "bytes that the auditor reads from a drive in a second")
    rebuild_bytes_s: Number = _number(20e6, "bytes a second that a drive gives to rebuilding")
    network_bytes_s: Number = _number(1.25e9, "network of a node in bytes a second (10 Gb/s)")
    rebuild_network_share: Number = _number(0.3, "share of the network that rebuilding may take")
    notice_hours: Number = _number(24, "hours until a dead drive is taken out of the ring", zero=True)
    drive_failures_a_year: Number = _number(0.02, "share of the drives that fail in a year")


SHARES = ("fill", "cache_share", "rebuild_network_share")


def assumption_doc(name: str) -> str:
    """Return the sentence of an assumption."""
    return next(str(entry.metadata["doc"]) for entry in fields(Assumptions) if entry.name == name)


def with_values(base: Assumptions, values: Mapping[str, object], where: str) -> Assumptions:
    """Return the assumptions with some of them changed. Raises PlanError, which begins with ``where``."""
    known = {entry.name: entry for entry in fields(Assumptions)}
    checked: dict[str, Number] = {}
    for name, value in values.items():
        if name not in known:
            raise PlanError(f"{where}: there is no assumption {name!r}; swift-plan capacity lists them")
        checked[name] = parse_number(value, f"{where}: {name}", float(known[name].metadata["low"]))
        if checked[name] == 0 and not known[name].metadata["zero"]:
            raise PlanError(f"{where}: {name} is 0")
        if name in SHARES and checked[name] > 1:
            raise PlanError(f"{where}: {name} is {value}, more than the whole")
    return replace(base, **checked)


def parse_number(value: object, where: str, low: float = 0.0) -> Number:
    """Return a finite number of at least ``low``, from a file or an option. Raises PlanError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(f"{where} is {value!r}, not a number")
    if not math.isfinite(value) or value < low:
        raise PlanError(f"{where} is {value}, not a number of at least {low:g}")
    return value


def read_toml(path: str) -> dict[str, object]:
    """Return the tables of a TOML file. Raises PlanError with file and reason, OSError."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: {error}")


def parse_options(pairs: Iterable[str]) -> dict[str, object]:
    """Parse ``NAME=NUMBER`` options of the command line. Raises PlanError."""
    values: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            values[name.strip().replace("-", "_")] = float(text) if "." in text or "e" in text else int(text)
        except ValueError:
            raise PlanError(f"--set {pair}: {'not a number' if equals else 'write NAME=NUMBER'}")
    return values
