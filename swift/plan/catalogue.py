"""Hardware that can be bought, workloads, and the choices of a search."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from swift.plan.assumptions import parse_number, read_toml
from swift.plan.durability import PolicyShape, parse_policy
from swift.plan.engine import DiskModel
from swift.plan.errors import PlanError

DATABASES = ("disk", "ssd")
NODES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Machine:
    """A proxy or a storage node: cores, the speed of one, network in bytes/s, memory, drives, price."""

    name: str
    cores: int
    speed: float
    network_bytes_s: float
    price: float
    memory_bytes: float = 0.0
    drives: int = 0
    disk: DiskModel | None = None

    def is_dominated_by(self, other: Machine) -> bool:
        """Return True if the other is nowhere worse and costs no more, and differs somewhere."""
        mine, its = self._dominance_values(), other._dominance_values()
        return its != mine and all(b >= a for a, b in zip(mine, its, strict=True))

    def _dominance_values(self) -> tuple[float, ...]:
        disk = self.disk
        access = -disk.mean_s(0) if disk else 0.0
        rate = disk.bytes_s if disk else 0.0
        return (
            *(float(self.cores), self.speed, self.network_bytes_s, self.memory_bytes),
            *(float(self.drives), access, rate, -self.price),
        )


@dataclass(frozen=True, slots=True)
class PlannedWorkload:
    """Shares of GET and PUT (the rest are DELETE), sizes uniform between two ends, clients, containers."""

    name: str
    get: float
    put: float
    size_min: int
    size_max: int
    clients: int = 128
    containers: int = 32

    @property
    def mean_size(self) -> float:
        """Mean size in bytes."""
        return (self.size_min + self.size_max) / 2


KB, MB = 1000, 1_000_000
#: The mixes of the study of 2012.
WORKLOADS = {
    workload.name: workload
    for workload in (
        PlannedWorkload("small-upload", 0.05, 0.90, KB, 100 * KB),
        PlannedWorkload("large-upload", 0.05, 0.90, MB, 10 * MB),
        PlannedWorkload("small-download", 0.90, 0.05, KB, 100 * KB),
        PlannedWorkload("large-download", 0.90, 0.05, MB, 10 * MB),
    )
}


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """One cluster: machines and how many of each, workers of a server, policy, where databases are."""

    proxy: Machine
    proxies: int
    storage: Machine
    nodes: int
    workers: int
    policy: PolicyShape
    databases: str
    cost: float

    @property
    def name(self) -> str:
        """One line."""
        return (
            f"{self.proxies} x {self.proxy.name} + {self.nodes} x {self.storage.name}, "
            f"{self.workers} workers, {self.policy.name}, databases on {self.databases}"
        )


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Machines and disks to choose from."""

    proxies: tuple[Machine, ...]
    storages: tuple[Machine, ...]
    proxy_counts: tuple[int, ...]
    node_counts: tuple[int, ...]
    workers: tuple[int, ...]
    policies: tuple[PolicyShape, ...]
    databases: tuple[str, ...]
    ssd_price: float
    objects: float

    def choice(
        self,
        proxy: Machine,
        proxies: int,
        storage: Machine,
        nodes: int,
        settings: tuple[int, PolicyShape, str],
    ) -> ClusterChoice:
        """Return a cluster with its cost."""
        workers, policy, databases = settings
        ssd = self.ssd_price if databases == "ssd" else 0.0
        cost = proxies * proxy.price + nodes * (storage.price + ssd)
        return ClusterChoice(proxy, proxies, storage, nodes, workers, policy, databases, cost)

    def choices(self) -> list[ClusterChoice]:
        """Return all choices of the catalogue."""
        settings = list(product(self.workers, self.policies, self.databases))
        hardware = product(self.proxies, self.proxy_counts, self.storages, self.node_counts)
        return [self.choice(*each, chosen) for each in hardware for chosen in settings]


#: Machines that were for rent in 2012, price by the hour. Assumed: the study's tables name none.
RENTED_2012 = """
[disks]
local = { seek_ms = 8.5, rotation_ms = 4.17, mb_s = 100 }
[proxies]
"c1.xlarge" = { cores = 8, speed = 0.5, network_gb = 1, price = 0.66 }
"cc1.4xlarge" = { cores = 8, speed = 1.0, network_gb = 10, price = 1.30 }
[storages."m1.large"]
cores = 2
speed = 0.4
drives = 2
disk = "local"
memory_gib = 7.5
network_gb = 0.5
price = 0.32
[storages."m1.xlarge"]
cores = 4
speed = 0.4
drives = 4
disk = "local"
memory_gib = 15
network_gb = 1
price = 0.64
[storages."c1.xlarge"]
cores = 8
speed = 0.5
drives = 4
disk = "local"
memory_gib = 7
network_gb = 1
price = 0.66
[choose]
proxies = [1, 2, 4]
storage_nodes = [5, 10, 15]
workers = [2, 8]
policies = ["3"]
databases = ["disk"]
objects = 1e6
"""


def read_catalogue(path: str | None) -> Catalogue:
    """Return the catalogue of a TOML file, or that of 2012. Raises PlanError with file and field, OSError."""
    return parse_catalogue(read_toml(path) if path else tomllib.loads(RENTED_2012), path or "catalogue")


def parse_catalogue(content: Mapping[str, object], where: str) -> Catalogue:
    """Return a catalogue from its tables. Raises PlanError, which begins with ``where``."""
    disks = {
        name: DiskModel(
            _number(entry, "seek_ms", f"{where}: disks.{name}", low=0) / 1000,
            _number(entry, "rotation_ms", f"{where}: disks.{name}", low=0) / 1000,
            _number(entry, "mb_s", f"{where}: disks.{name}") * 1e6,
        )
        for name, entry in _tables(content, "disks", where).items()
    }
    proxies = [
        _machine(name, entry, f"{where}: proxies.{name}")
        for name, entry in _tables(content, "proxies", where).items()
    ]
    storages = [
        _machine(name, entry, f"{where}: storages.{name}", disks)
        for name, entry in _tables(content, "storages", where).items()
    ]
    choose = content.get("choose")
    if not isinstance(choose, dict):
        raise PlanError(f"{where}: the table [choose] is missing")
    at = f"{where}: choose"
    databases = tuple(str(name) for name in _list(choose, "databases", at, ["disk"]))
    if unknown := [name for name in databases if name not in DATABASES]:
        raise PlanError(f"{at}.databases: {unknown[0]!r} is neither disk nor ssd")
    return Catalogue(
        tuple(proxies),
        tuple(storages),
        _counts(choose, "proxies", at),
        _counts(choose, "storage_nodes", at),
        _counts(choose, "workers", at),
        tuple(parse_policy(str(text)) for text in _list(choose, "policies", at, ["3"])),
        databases,
        float(parse_number(choose.get("ssd_price", 0), f"{at}.ssd_price")),
        float(parse_number(choose.get("objects", 1e6), f"{at}.objects", 1)),
    )


def _tables(content: Mapping[str, object], name: str, where: str) -> dict[str, Mapping[str, object]]:
    tables = content.get(name)
    if not isinstance(tables, dict) or not tables or not all(isinstance(t, dict) for t in tables.values()):
        raise PlanError(f"{where}: there are no tables [{name}.NAME]")
    return tables


def _number(entry: Mapping[str, object], name: str, where: str, *, low: float | None = None) -> float:
    if name not in entry:
        raise PlanError(f"{where}.{name} is missing")
    value = float(parse_number(entry[name], f"{where}.{name}", low or 0.0))
    if low is None and value == 0:
        raise PlanError(f"{where}.{name} is 0")
    return value


def _list(entry: Mapping[str, object], name: str, where: str, default: list[object]) -> list[object]:
    values = entry.get(name, default)
    if not isinstance(values, list) or not values:
        raise PlanError(f"{where}.{name} is {values!r}, not a list with something in it")
    return values


def _counts(entry: Mapping[str, object], name: str, where: str) -> tuple[int, ...]:
    numbers = [parse_number(value, f"{where}.{name}", 1) for value in _list(entry, name, where, [])]
    if any(number > NODES_MAX or number != int(number) for number in numbers):
        raise PlanError(f"{where}.{name}: whole numbers of at most {NODES_MAX}")
    return tuple(int(number) for number in numbers)


def _machine(
    name: str, entry: Mapping[str, object], where: str, disks: Mapping[str, DiskModel] | None = None
) -> Machine:
    disk, drives, memory = None, 0, 0.0
    if disks is not None:
        kind = entry.get("disk")
        if not isinstance(kind, str) or kind not in disks:
            raise PlanError(f"{where}.disk is {kind!r}; known are {', '.join(disks)}")
        disk = disks[kind]
        drives = max(1, int(_number(entry, "drives", where)))
        memory = _number(entry, "memory_gib", where) * 2**30
    return Machine(
        name,
        max(1, int(_number(entry, "cores", where))),
        _number(entry, "speed", where),
        _number(entry, "network_gb", where) * 125e6,
        _number(entry, "price", where),
        memory,
        drives,
        disk,
    )
