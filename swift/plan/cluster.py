"""A cluster, simulated: clients, proxies, storage nodes, drives, databases and networks with their queues.

What requests cost is assumed (doc/explanation/planning.md), or measured (``costs``), for a core of speed 1.
A PUT sends a copy or fragment to each node of its policy and waits for all; a GET reads as many as the
policy needs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean

import simpy

from swift.plan.catalogue import ClusterChoice, Machine, PlannedWorkload
from swift.plan.costs import ASSUMED, CHANGES, Costs
from swift.plan.engine import LatencyTally, ModelDisk, Station, Steps, closed_loop
from swift.plan.errors import PlanError

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
    """Return the cores that so many workers keep busy."""
    return min(machine.cores, workers)


def memory_hits(choice: ClusterChoice, objects: float) -> float:
    """Return the share of metadata reads that a node's memory serves."""
    metadata = objects * choice.policy.total * METADATA_BYTES / choice.nodes
    return min(1.0, choice.storage.memory_bytes * CACHE_SHARE / metadata)


class SimulatedCluster:
    """The stations of one choice and the requests that visit them."""

    def __init__(
        self,
        choice: ClusterChoice,
        workload: PlannedWorkload,
        objects: float,
        seed: str,
        costs: Costs = ASSUMED,
    ):
        disk = choice.storage.disk
        if disk is None or choice.nodes * choice.storage.drives < choice.policy.total:
            raise PlanError(f"{choice.name}: too few drives for {choice.policy.name}")
        self.env = env = simpy.Environment()
        self.rng = rng = random.Random(seed)
        self.choice, self.workload, self.costs = choice, workload, costs
        self.is_coded = choice.policy.needed > 1
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
            [ModelDisk(env, "disk", disk, rng) for _ in range(storage.drives)] for _ in range(choice.nodes)
        ]
        self.databases = [Station(env, "database") for _ in range(workload.containers)]
        on_disk = disk.mean_s(BLOCK)
        self.row_s = (on_disk if choice.databases == "disk" else SSD_S) / ROWS_A_COMMIT

    def request(self) -> Steps:
        """Simulate one request of the workload."""
        rng, workload, policy = self.rng, self.workload, self.choice.policy
        drawn = rng.random()
        verb = "GET" if drawn < workload.get else "PUT" if drawn < workload.get + workload.put else "DELETE"
        size = rng.uniform(workload.size_min, workload.size_max) if verb != "DELETE" else 0.0
        number = rng.randrange(len(self.proxy_cpus))
        piece = size / policy.needed
        count = policy.needed if verb == "GET" else policy.total
        speed = self.choice.proxy.speed
        work = self.costs.proxy_s(verb, size, count, is_coded=self.is_coded)
        yield self.proxy_cpus[number].serve(work / speed)
        # The wire is full duplex: what is larger of coming in and going out takes the time.
        wire_bytes = max(size, piece * count)
        yield self.proxy_wires[number].serve(wire_bytes / self.choice.proxy.network_bytes_s)
        first = rng.randrange(self.choice.nodes)
        visits = [
            self.env.process(self._at_node((first + n) % self.choice.nodes, verb, piece))
            for n in range(count)
        ]
        yield self.env.all_of(visits)

    def _at_node(self, number: int, verb: str, size: float) -> Steps:
        storage = self.choice.storage
        drive = self.drives[number][self.rng.randrange(storage.drives)]
        cpu = self.costs.store_s(verb, size, is_coded=self.is_coded)
        if verb in CHANGES:
            cpu += self.costs.row_s * DATABASE_COPIES / self.choice.policy.total
        yield self.wires[number].serve(size / storage.network_bytes_s)
        yield self.cpus[number].serve(cpu / storage.speed)
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
            yield self.databases[self.rng.randrange(len(self.databases))].serve(self.row_s)

    def run(self, seconds: float) -> Prediction:
        """Return the workload's clients in a closed loop, a fifth of the time to warm up."""
        tally = LatencyTally([])
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
    choice: ClusterChoice,
    workload: PlannedWorkload,
    objects: float,
    *,
    seconds: float,
    seed: int = 0,
    costs: Costs = ASSUMED,
) -> Prediction:
    """Predict the cluster's throughput and latency for a duration or a number of requests.

    Raises PlanError.
    """
    cluster = SimulatedCluster(choice, workload, objects, f"{seed} {choice.name}", costs)
    many = REQUESTS_MIN + 4 * workload.clients
    return cluster.run(max(seconds, many / throughput_bound(choice, workload, objects, costs)))


def throughput_bound(
    choice: ClusterChoice, workload: PlannedWorkload, objects: float, costs: Costs = ASSUMED
) -> float:
    """Return the upper bound of requests a second: the busiest part works all the time."""
    policy, storage, disk = choice.policy, choice.storage, choice.storage.disk
    assert disk is not None, "a storage node has drives"
    get, put = workload.get, workload.put
    delete = 1 - get - put
    size = workload.mean_size
    piece = size / policy.needed
    changes, rows = put + delete, DATABASE_COPIES * (put + delete)
    shares = {"GET": get, "PUT": put, "DELETE": delete}
    at_proxy = at_nodes = 0.0
    for verb, share in shares.items():
        count = policy.needed if verb == "GET" else policy.total
        moved, is_coded = 0.0 if verb == "DELETE" else 1.0, policy.needed > 1
        at_proxy += share * costs.proxy_s(verb, moved * size, count, is_coded=is_coded)
        at_nodes += share * count * costs.store_s(verb, moved * piece, is_coded=is_coded)
    at_proxy /= choice.proxy.speed
    wire = size * (get + put * max(1.0, policy.overhead)) / choice.proxy.network_bytes_s
    pieces = get * policy.needed + put * policy.total
    cpu = (at_nodes + costs.row_s * rows) / storage.speed
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
