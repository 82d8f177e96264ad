"""Computes the size of a cluster for a number of objects; every figure names its source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from swift.plan.assumptions import Assumptions
from swift.plan.durability import HOURS_A_YEAR, PolicyShape, loss_probability
from swift.plan.errors import PlanError

PART_POWER_MAX = 32
SUFFIXES_MAX = 4096
OBJECTS_MAX = 10**15


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a plan, its unit, and what it follows from."""

    name: str
    value: float
    unit: str
    because: str


@dataclass(frozen=True, slots=True)
class Sizing:
    """The numbers that the others follow from."""

    stored_bytes: float
    drives: int
    nodes: int
    part_power: int
    copies_per_drive: float
    rebuild_hours: float


def size_cluster(objects: int, shape: PolicyShape, given: Assumptions) -> Sizing:
    """Return drives, nodes and partitions for so many objects of one policy. Raises PlanError."""
    if not 1 <= objects <= OBJECTS_MAX:
        raise PlanError(f"a plan is for 1 to {OBJECTS_MAX:.0e} objects, not {objects}")
    stored = objects * given.object_bytes * shape.overhead
    wanted = max(shape.total, math.ceil(stored / (given.drive_bytes * given.fill)))
    per_node = int(given.drives_per_node)
    nodes = max(int(given.nodes_min), math.ceil(wanted / per_node))
    drives = max(wanted, nodes)
    parts = given.partitions_per_drive * drives * given.growth / shape.total
    part_power = max(1, math.ceil(math.log2(parts)))
    copies = 2**part_power * shape.total / drives
    on_drive = stored / drives
    # Each drive that takes part may give so much, and so may the network of its node.
    per_other = min(
        given.rebuild_bytes_s,
        given.network_bytes_s * given.rebuild_network_share / max(1.0, drives / nodes),
    )
    # A copy is made by those that are read and the one that is written.
    taking_part = min(drives - 1, copies * (shape.needed + 1))
    rate = per_other * max(1.0, taking_part) / (shape.needed + 1)
    hours = given.notice_hours + on_drive / rate / 3600
    return Sizing(stored, drives, nodes, part_power, copies, hours)


def capacity_figures(objects: int, shape: PolicyShape, given: Assumptions) -> list[Figure]:
    """Return all figures of a cluster with so many objects. Raises PlanError."""
    size = size_cluster(objects, shape, given)
    return [
        *_hardware(size, shape, given),
        *_metadata(objects, size, shape, given),
        *_databases(objects, given),
        *_maintenance(objects, size, shape, given),
    ]


def _hardware(size: Sizing, shape: PolicyShape, given: Assumptions) -> list[Figure]:
    fits = size.part_power <= PART_POWER_MAX
    note = "" if fits else f"; more than {PART_POWER_MAX}, so several policies or clusters are needed"
    return [
        Figure("bytes stored", size.stored_bytes, "B", "objects x object_bytes x overhead of the policy"),
        Figure(
            "drives", size.drives, "", f"bytes / (drive_bytes x fill), at least {shape.total} and one a node"
        ),
        Figure("storage nodes", size.nodes, "", "drives / drives_per_node, at least nodes_min"),
        Figure(
            "part power",
            size.part_power,
            "",
            f"partitions_per_drive x drives x growth / {shape.total}, rounded up to a power of two{note}",
        ),
        Figure("partitions on a drive", size.copies_per_drive, "", "2^part power x copies / drives"),
        Figure(
            "partitions on a drive at the largest size",
            size.copies_per_drive / given.growth,
            "",
            "the same with growth times the drives",
        ),
    ]


def _metadata(objects: int, size: Sizing, shape: PolicyShape, given: Assumptions) -> list[Figure]:
    files = objects * shape.total / size.drives
    # Balls into urns: so many of a partition's suffixes have an object.
    per_partition = files / size.copies_per_drive
    suffixes = size.copies_per_drive * SUFFIXES_MAX * -math.expm1(-per_partition / SUFFIXES_MAX)
    inodes = 2 * files + suffixes + 3 * size.copies_per_drive
    bytes_ = inodes * (given.inode_bytes + given.entry_bytes)
    per_node = bytes_ * size.drives / size.nodes
    memory = given.memory_bytes * given.cache_share
    databases = _database_bytes(objects, given) * given.database_copies / size.nodes
    return [
        Figure(
            "inodes on a drive",
            inodes,
            "",
            "a file and a directory for an object, its suffix, three for a partition",
        ),
        Figure("metadata of a drive", bytes_, "B", "inodes x (inode_bytes + entry_bytes)"),
        Figure(
            "metadata of a node in memory", min(1.0, memory / per_node), "share", "memory_bytes x cache_share"
        ),
        Figure(
            "metadata and databases of a node on SSD",
            min(1.0, given.ssd_bytes / (per_node + databases)),
            "share",
            "ssd_bytes / (metadata + databases of a node)",
        ),
    ]


def _database_bytes(objects: int, given: Assumptions) -> float:
    return objects * given.row_bytes


def _databases(objects: int, given: Assumptions) -> list[Figure]:
    containers = max(1, math.ceil(objects / given.objects_per_container))
    rows = min(float(objects), float(given.objects_per_container))
    shards = max(1, math.ceil(rows / given.shard_rows))
    accounts = max(1, math.ceil(containers / given.containers_per_account))
    return [
        Figure("accounts", accounts, "", "containers / containers_per_account"),
        Figure("containers", containers, "", "objects / objects_per_container"),
        Figure("database of a container or shard", rows / shards * given.row_bytes, "B", "rows x row_bytes"),
        Figure(
            "shards of a container", shards, "", "rows / shard_rows; 1 is a container that is not sharded"
        ),
        Figure(
            "all container databases",
            _database_bytes(objects, given) * given.database_copies,
            "B",
            "objects x row_bytes x database_copies",
        ),
    ]


def _maintenance(objects: int, size: Sizing, shape: PolicyShape, given: Assumptions) -> list[Figure]:
    looked_at = size.copies_per_drive * size.drives / size.nodes / given.replicator_workers
    on_drive = size.stored_bytes / size.drives
    failure = given.drive_failures_a_year / HOURS_A_YEAR
    group = loss_probability(shape, failure, 1 / max(size.rebuild_hours, 1e-6), HOURS_A_YEAR)
    groups = min(2.0**size.part_power, float(objects))
    return [
        Figure(
            "replication pass, metadata cached",
            looked_at * given.pass_partition_s,
            "s",
            "partitions of a node x pass_partition_s / replicator_workers",
        ),
        Figure(
            "replication pass, nothing cached",
            looked_at * given.pass_partition_cold_s,
            "s",
            "the same with pass_partition_cold_s",
        ),
        Figure("scrub of all data", on_drive / given.scrub_bytes_s, "s", "bytes of a drive / scrub_bytes_s"),
        Figure(
            "rebuild of a drive",
            size.rebuild_hours * 3600,
            "s",
            f"notice_hours, then the others at rebuild_bytes_s, {shape.needed} read and 1 written for each; "
            "within rebuild_network_share",
        ),
        Figure(
            "loss of a given object in a year",
            group,
            "probability",
            "Markov chain of its drives: drive_failures_a_year, rebuild of a drive; independent failures",
        ),
        Figure(
            "loss of any object in a year",
            -math.expm1(groups * math.log1p(-min(group, 1 - 1e-16))),
            "probability",
            "the same for every partition; an upper bound, because partitions share drives",
        ),
    ]


def plan_sizes(
    sizes: Sequence[int], shapes: Sequence[PolicyShape], given: Assumptions
) -> dict[str, dict[int, list[Figure]]]:
    """Return the figures by policy and number of objects. Raises PlanError."""
    return {
        shape.name: {objects: capacity_figures(objects, shape, given) for objects in sizes}
        for shape in shapes
    }
