"""The study of metadata caching of 2017, simulated: random GETs of a rising working set, a replication pass.

A GET asks one of three nodes that has the object: queue at the object server, locate on disk (a directory
and an inode at each of the levels, from memory, SSD or disk), then read in windows. From the study's text:
nodes, drives, SSD, requests outstanding, sizes, objects, partitions. Assumed: what ``ASSUMED`` lists.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import simpy

from swift.plan.engine import DiskModel, LatencyTally, ModelDisk, Station, Steps, closed_loop
from swift.plan.report import PlanProgress
from tools.studies.comparison import ComparedFigure

KIB = 1024
DRIVES_A_NODE = 8
OUTSTANDING = 100
REPLICAS = 3
SIZES = (64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB)

#: What the study's text leaves open, and what is taken for it.
DRIVE = DiskModel(seek_s=0.0085, rotation_s=0.00417, bytes_s=140e6)
SSD_READ_S = 100e-6
METADATA_READS = 6
READ_AHEAD = 128 * KIB
METADATA_SHARE = 0.04
MEMORY_FOR_METADATA = 2 * 2**30
NODE_CORES = 8
SERVER_CPU_S = 0.0015
PROXY_CPU_S = 0.0015
NETWORK_BYTES_S = 1.25e9
HASH_READS = 1
PASS_METADATA_READS = 11
PASS_OWN_S = 0.09
WORKING_SET = (1_000_000, 2_500_000, 5_000_000, 10_000_000)
ASSUMED = (
    "a 7,200 rpm drive: 8.5 ms seek, 4.17 ms rotational delay, 140 MB/s; the SSD answers in 0.1 ms",
    "six metadata reads to locate an object that nothing caches: inode and block of the partition's and the "
    "suffix's directory, inode of the object's directory, inode of its file",
    "a body is read in windows of 128 KB (the kernel's read-ahead); another request in between costs a seek",
    "4 % of the data is metadata (the study says 3-5 %); 2 GB of a node's memory keep it",
    "1.5 ms of CPU for a request at the proxy and at the object server, 8 cores a node, 10 Gb/s",
    "a replication pass reads 11 metadata blocks and one hash file of a partition on each of its 3 nodes and "
    "needs 90 ms of its own (two exchanges with other nodes, hashes of 360 suffixes, no concurrency)",
)


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """Client results: mean latency in seconds, requests per second, and the busiest SSD's utilization."""

    mean_s: float
    rate: float
    ssd: float


class Cluster2017:
    """Nodes with drives, an SSD and a proxy; ``cached`` puts the metadata class on the SSD."""

    def __init__(self, nodes: int, size: int, objects: int, cached: bool, seed: str):
        self.env = simpy.Environment()
        self.rng = random.Random(seed)
        self.size = size
        self.cached = cached
        self.cpus = [Station(self.env, f"cpu {n}", NODE_CORES) for n in range(nodes)]
        self.wires = [Station(self.env, f"network {n}") for n in range(nodes)]
        self.ssds = [Station(self.env, f"ssd {n}") for n in range(nodes)]
        self.drives = [
            [ModelDisk(self.env, f"drive {n}.{d}", DRIVE, self.rng) for d in range(DRIVES_A_NODE)]
            for n in range(nodes)
        ]
        metadata = objects * REPLICAS * size * METADATA_SHARE / nodes
        self.memory_hits = min(1.0, MEMORY_FOR_METADATA / metadata)
        self._request = 0

    def get(self) -> Steps:
        """Simulate one GET of a random object."""
        rng = self.rng
        proxy, node = rng.randrange(len(self.cpus)), rng.randrange(len(self.cpus))
        drive = self.drives[node][rng.randrange(DRIVES_A_NODE)]
        self._request += 1
        body = self._request
        yield self.cpus[proxy].serve(PROXY_CPU_S)
        yield self.cpus[node].serve(SERVER_CPU_S)
        for _ in range(METADATA_READS):
            if rng.random() < self.memory_hits:
                continue
            yield self.ssds[node].serve(SSD_READ_S) if self.cached else drive.access(4 * KIB)
        for begin in range(0, self.size, READ_AHEAD):
            yield drive.access(min(READ_AHEAD, self.size - begin), stream=body)
        yield self.wires[node].serve(self.size / NETWORK_BYTES_S)
        yield self.wires[proxy].serve(self.size / NETWORK_BYTES_S)

    def run(self, seconds: float) -> StudyOutcome:
        """Simulate random GETs for ``seconds``, a tenth of it as warm-up."""
        tally = LatencyTally([])
        warm_up = seconds / 10
        closed_loop(self.env, OUTSTANDING, self.get, tally, warm_up)
        self.env.run(until=seconds)
        ssd = max(station.utilisation() for station in self.ssds)
        return StudyOutcome(tally.mean_s, len(tally.latencies) / (seconds - warm_up), ssd)


@dataclass(frozen=True, slots=True)
class Gain:
    """Results without and with the metadata class on the SSD."""

    size: int
    objects: int
    without: StudyOutcome
    cached: StudyOutcome

    @property
    def latency_change(self) -> float:
        """Return the relative change of the mean latency; negative is faster."""
        return self.cached.mean_s / self.without.mean_s - 1

    @property
    def throughput(self) -> float:
        """Return the requests per second with the class, divided by those without."""
        return self.cached.rate / self.without.rate


def gain(nodes: int, size: int, objects: int, *, seconds: float, seed: int) -> Gain:
    """Simulate both variants for one object size."""
    name = f"{seed} {nodes} {size} {objects}"
    without = Cluster2017(nodes, size, objects, False, name).run(seconds)
    return Gain(size, objects, without, Cluster2017(nodes, size, objects, True, name).run(seconds))


def pass_s(metadata_cached: bool, hashes_cached: bool, *, partitions: int, seed: int) -> float:
    """Return the time of a node's replication pass, from the mean of simulated partitions."""
    env = simpy.Environment()
    drive = ModelDisk(env, "drive", DRIVE, random.Random(f"{seed} pass"))
    ssd = Station(env, "ssd")
    all_partitions = 2**16 * REPLICAS / 5

    def look() -> Steps:
        for _ in range(partitions):
            for _node in range(REPLICAS):
                for _ in range(PASS_METADATA_READS):
                    yield ssd.serve(SSD_READ_S) if metadata_cached else drive.access(4 * KIB)
                for _ in range(HASH_READS):
                    yield ssd.serve(SSD_READ_S) if hashes_cached else drive.access(8 * KIB)
            yield env.timeout(PASS_OWN_S)

    env.process(look())
    env.run()
    return env.now / partitions * all_partitions


def rising(*, seconds: float, seed: int, sets: Sequence[int] = WORKING_SET) -> list[Gain]:
    """Return the gain at 64 KB for growing working sets."""
    return [gain(5, SIZES[0], objects, seconds=seconds, seed=seed) for objects in sets]


def reproduce(
    *, seconds: float = 20.0, seed: int = 2017, progress: PlanProgress | None = None
) -> list[ComparedFigure]:
    """Return all figures beside the published ones."""
    said = progress or PlanProgress()
    gains = []
    for place, size in enumerate(SIZES):
        gains.append(gain(5, size, WORKING_SET[-1], seconds=seconds, seed=seed))
        said(place + 1, len(SIZES) + 6, "study of 2017")
    mean = 100 * fmean(each.latency_change for each in gains)
    found = [
        ComparedFigure("GET latency, 64 KB", 100 * gains[0].latency_change, -86, -86, "%", 0.2),
        ComparedFigure("GET latency, 1 MB", 100 * gains[-1].latency_change, -53, -53, "%", 0.2),
        ComparedFigure("GET latency, mean of 64 KB to 1 MB", mean, -67, -67, "%", 0.2),
        ComparedFigure("throughput, mean of sizes", _mean_gain(gains), 3, 3.1, "x", 0.2),
        ComparedFigure(
            "busiest SSD, 8 drives", 100 * max(each.cached.ssd for each in gains), 0, 100, "%", 0.0
        ),
    ]
    for nodes, published in ((10, -65), (15, -64)):
        wider = [gain(nodes, size, WORKING_SET[-1], seconds=seconds, seed=seed) for size in SIZES]
        change = 100 * fmean(each.latency_change for each in wider)
        found.append(ComparedFigure(f"the same mean, {nodes} nodes", change, published, published, "%", 0.2))
        said(len(SIZES) + nodes // 5, len(SIZES) + 6, "study of 2017")
    growing = rising(seconds=seconds, seed=seed)
    found += [
        ComparedFigure(
            f"GET latency, 64 KB, {each.objects:,} objects", 100 * each.latency_change, None, None, "%", 0
        )
        for each in growing
    ]
    return [*found, *replication(seed=seed)]


def _mean_gain(gains: Sequence[Gain]) -> float:
    """Return the gain in requests per second when all sizes are equally frequent."""
    return fmean(each.without.mean_s for each in gains) / fmean(each.cached.mean_s for each in gains)


def replication(*, seed: int, partitions: int = 2000) -> list[ComparedFigure]:
    """Return the replication pass in minutes."""
    cases = (
        ("nothing cached", False, False, 360),
        ("metadata cached", True, False, 80),
        ("metadata and hashes cached", True, True, 65),
    )
    return [
        ComparedFigure(
            f"replication pass, {name}",
            pass_s(metadata, hashes, partitions=partitions, seed=seed) / 60,
            published,
            published,
            "min",
            0.2,
        )
        for name, metadata, hashes, published in cases
    ]
