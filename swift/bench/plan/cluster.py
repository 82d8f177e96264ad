"""A cluster, simulated: clients, proxies, storage nodes, drives, databases and networks with their queues.

The costs below are assumptions (doc/planning.md), for a core of speed 1. A PUT sends a copy or fragment to
each node of its policy and waits for all; a GET reads as many as the policy needs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean

import simpy

from swift.bench.plan.catalogue import Choice, Machine, Workload
from swift.bench.plan.engine import Disk, Station, Steps, Tally, closed_loop
from swift.bench.plan.errors import PlanError

PROXY_CPU_S = 0.002
PROXY_CPU_S_A_BYTE = 3e-9
STORE_CPU_S = {"GET": 0.002, "PUT": 0.004, "DELETE": 0.003}
STORE_CPU_S_A_BYTE = 2e-9
ROW_CPU_S = 0.002
WRITE_ACCESSES = 3
METADATA_READS = 6
METADATA_BYTES = 1152
CACHE_SHARE = 0.5
SSD_S = 100e-6
ROWS_A_COMMIT = 10
DATABASE_COPIES = 3
BLOCK = 4096
REQUESTS_MIN = 500


@dataclass(frozen=True, slots=True)
class Prediction:
    """Requests a second, latencies in seconds, and the share of the time that each kind of part is busy."""

    rate: float
    mean_s: float
    p50_s: float
    p99_s: float
    busy: dict[str, float]

    @property
    def bottleneck(self) -> str:
        """The part that is busiest."""
        return max(self.busy, key=lambda name: self.busy[name])


def cores_used(machine: Machine, workers: int) -> int:
    """Cores that so many workers keep busy."""
    return min(machine.cores, workers)


def memory_hits(choice: Choice, objects: float) -> float:
    """Share of metadata reads that a node's memory answers."""
    metadata = objects * choice.policy.total * METADATA_BYTES / choice.nodes
    return min(1.0, choice.storage.memory_bytes * CACHE_SHARE / metadata)


class SimulatedCluster:
    """The stations of one choice and the requests that visit them."""

    def __init__(self, choice: Choice, workload: Workload, objects: float, seed: str):
        disk = choice.storage.disk
        if disk is None or choice.nodes * choice.storage.drives < choice.policy.total:
            raise PlanError(f"{choice.name}: too few drives for {choice.policy.name}")
        self.env = env = simpy.Environment()
        self.rng = rng = random.Random(seed)
        self.choice, self.workload = choice, workload
        self.hits = memory_hits(choice, objects)
        proxy, storage = choice.proxy, choice.storage
        self.proxy_cpus = [
            Station(env, "proxy cpu", cores_used(proxy, choice.workers)) for _ in range(choice.proxies)
        ]
        self.proxy_wires = [Station(env, "proxy network") for _ in range(choice.proxies)]
        self.cpus = [
            Station(env, "storage cpu", cores_used(storage, choice.workers)) for _ in range(choice.nodes)
        ]
        self.wires = [Station(env, "storage network") for _ in range(choice.nodes)]
        self.drives = [
            [Disk(env, "disk", disk, rng) for _ in range(storage.drives)] for _ in range(choice.nodes)
        ]
        self.databases = [Station(env, "database") for _ in range(workload.containers)]
        on_disk = disk.mean_s(BLOCK)
        self.row_s = (on_disk if choice.databases == "disk" else SSD_S) / ROWS_A_COMMIT

    def request(self) -> Steps:
        """One request of the workload."""
        rng, workload, policy = self.rng, self.workload, self.choice.policy
        drawn = rng.random()
        verb = "GET" if drawn < workload.get else "PUT" if drawn < workload.get + workload.put else "DELETE"
        size = rng.uniform(workload.size_min, workload.size_max) if verb != "DELETE" else 0.0
        number = rng.randrange(len(self.proxy_cpus))
        piece = size / policy.needed
        count = policy.needed if verb == "GET" else policy.total
        speed = self.choice.proxy.speed
        yield self.proxy_cpus[number].visit((PROXY_CPU_S + PROXY_CPU_S_A_BYTE * size) / speed)
        # The wire is full duplex: what is larger of coming in and going out takes the time.
        wire_bytes = max(size, piece * count)
        yield self.proxy_wires[number].visit(wire_bytes / self.choice.proxy.network_bytes_s)
        first = rng.randrange(self.choice.nodes)
        visits = [
            self.env.process(self._at_node((first + n) % self.choice.nodes, verb, piece))
            for n in range(count)
        ]
        yield self.env.all_of(visits)

    def _at_node(self, number: int, verb: str, size: float) -> Steps:
        storage = self.choice.storage
        drive = self.drives[number][self.rng.randrange(storage.drives)]
        cpu = STORE_CPU_S[verb] + STORE_CPU_S_A_BYTE * size
        if verb != "GET":
            cpu += ROW_CPU_S * DATABASE_COPIES / self.choice.policy.total
        yield self.wires[number].visit(size / storage.network_bytes_s)
        yield self.cpus[number].visit(cpu / storage.speed)
        if verb == "GET":
            for _ in range(METADATA_READS):
                if self.rng.random() >= self.hits:
                    yield drive.access(BLOCK)
            yield drive.access(size)
            return
        yield drive.access(size)
        for _ in range(WRITE_ACCESSES - 1):
            yield drive.access(BLOCK)
        if self.rng.random() * self.choice.policy.total < 1:
            yield self.databases[self.rng.randrange(len(self.databases))].visit(self.row_s)

    def run(self, seconds: float) -> Prediction:
        """The workload's clients in a closed loop, a fifth of the time to warm up."""
        tally = Tally([])
        warm_up = seconds / 5
        closed_loop(self.env, self.workload.clients, self.request, tally, warm_up)
        self.env.run(until=seconds)
        pools = [self.proxy_cpus, self.proxy_wires, self.cpus, self.wires]
        drives: list[Station] = [drive for node in self.drives for drive in node]
        busy = {pool[0].name: fmean(each.utilisation() for each in pool) for pool in [*pools, drives]}
        busy["database"] = max(each.utilisation() for each in self.databases)
        rate = tally.ended / (seconds - warm_up)
        return Prediction(rate, tally.mean_s, tally.percentile_s(0.5), tally.percentile_s(0.99), busy)


def predict(
    choice: Choice, workload: Workload, objects: float, *, seconds: float, seed: int = 0
) -> Prediction:
    """What the cluster does in so long, or as long as many requests take. Raises PlanError."""
    cluster = SimulatedCluster(choice, workload, objects, f"{seed} {choice.name}")
    many = REQUESTS_MIN + 4 * workload.clients
    return cluster.run(max(seconds, many / bound(choice, workload, objects)))


def bound(choice: Choice, workload: Workload, objects: float) -> float:
    """Requests a second that it cannot exceed: its most wanted part, busy all the time."""
    policy, storage, disk = choice.policy, choice.storage, choice.storage.disk
    assert disk is not None, "a storage node has drives"
    get, put = workload.get, workload.put
    delete = 1 - get - put
    size = workload.mean_size
    piece = size / policy.needed
    changes, rows = put + delete, DATABASE_COPIES * (put + delete)
    at_proxy = (PROXY_CPU_S + PROXY_CPU_S_A_BYTE * size * (get + put)) / choice.proxy.speed
    wire = size * (get + put * max(1.0, policy.overhead)) / choice.proxy.network_bytes_s
    pieces = get * policy.needed + put * policy.total
    cpu = (
        get * policy.needed * STORE_CPU_S["GET"]
        + policy.total * (put * STORE_CPU_S["PUT"] + delete * STORE_CPU_S["DELETE"])
        + STORE_CPU_S_A_BYTE * piece * pieces
        + ROW_CPU_S * rows
    ) / storage.speed
    misses = METADATA_READS * (1 - memory_hits(choice, objects))
    writes = policy.total * (changes * (WRITE_ACCESSES - 1) * disk.mean_s(BLOCK))
    drive = (
        get * policy.needed * (disk.mean_s(piece) + misses * disk.mean_s(BLOCK))
        + policy.total * (put * disk.mean_s(piece) + delete * disk.mean_s(0))
        + writes
    )
    row_s = (disk.mean_s(BLOCK) if choice.databases == "disk" else SSD_S) / ROWS_A_COMMIT
    limits = [
        choice.proxies * cores_used(choice.proxy, choice.workers) / at_proxy,
        choice.proxies / wire,
        choice.nodes * cores_used(storage, choice.workers) / cpu,
        choice.nodes * storage.network_bytes_s / (piece * pieces),
        choice.nodes * storage.drives / drive,
    ]
    if changes:
        limits.append(workload.containers / (changes * row_s))
    return min(limits)
