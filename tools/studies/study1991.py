"""The striping study of 1991, simulated: one object on many disks, and the prototype on an Ethernet.

From the study's text: the disk, the protocol's cost, units, 1.12 MB/s of usable wire. Assumed: what
``ASSUMED`` lists. ``doc/explanation/planning.md`` tells the two apart.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean

import simpy

from swift.plan.engine import DiskModel, LatencyTally, ModelDisk, Station, Steps, open_loop
from swift.plan.report import PlanProgress
from tools.studies.comparison import ComparedFigure

DISK = DiskModel(seek_s=0.016, rotation_s=0.0083, bytes_s=2.5e6)
KIB = 1024
PROTOCOL_INSTRUCTIONS = 1500
INSTRUCTIONS_A_BYTE = 1
WIRE_BYTES_S = 1.12e6

#: What the published figures leave open, and what is taken for it.
CLIENT_INSTRUCTIONS_S = 100e6
NETWORK_BYTES_S = 125e6
PACKET = 8 * KIB
ASK_BYTES = 64
CLIENT_1991_INSTRUCTIONS_S = 28.5e6
AGENT_1991_INSTRUCTIONS_S = 12.5e6
LOCAL_READ_BYTES_S = 0.67e6
LOCAL_WRITE_BYTES_S = 0.315e6
NFS_READ_BYTES_S = 0.47e6
NFS_WRITE_BYTES_S = 0.11e6
ASSUMED = (
    "a host executes 100 million instructions a second; the network carries 1 Gb/s",
    "a client's request takes one unit of each disk (32 KB units on 32 disks: 1 MB)",
    "sustained: the mean time of a request is no longer than the mean time between two of them",
    "22 requests/s at 50 % of 32 disks: requests of 640 KB, which the three published numbers imply",
    "the prototype's client (28.5 MIPS) handles one packet of 8 KB at a time; agents have 12.5 MIPS",
    "baselines, not modelled: local disk 0.67 MB/s read, 0.315 MB/s written in step; NFS 0.47 and 0.11 MB/s",
)


def instructions(size: float) -> float:
    """Return the CPU instructions of the protocol for a message of ``size`` bytes."""
    return PROTOCOL_INSTRUCTIONS + INSTRUCTIONS_A_BYTE * size


@dataclass(frozen=True, slots=True)
class StudiedLoad:
    """Results of a run at a given request rate."""

    rate: float
    mean_s: float
    utilisation: float

    @property
    def is_sustained(self) -> bool:
        """Return True if a request takes no longer than the interval between requests."""
        return self.mean_s * self.rate <= 1


class Striped:
    """Disks behind a network and one client's host; a request reads ``units`` of them in parallel."""

    def __init__(self, disks: int, unit: int, units: int, seed: str):
        self.env = simpy.Environment()
        self.rng = random.Random(seed)
        self.unit = unit
        self.units = units
        self.disks = [ModelDisk(self.env, f"disk {n}", DISK, self.rng) for n in range(disks)]
        self.network = Station(self.env, "network")
        self.host = Station(self.env, "host")

    def _one_unit(self, disk: ModelDisk) -> Steps:
        yield disk.access(self.unit)
        yield self.network.serve(self.unit / NETWORK_BYTES_S)
        yield self.host.serve(instructions(self.unit) / CLIENT_INSTRUCTIONS_S)

    def request(self) -> Steps:
        """Transfer all units of one request in parallel."""
        first = self.rng.randrange(len(self.disks))
        chosen = [self.disks[(first + n) % len(self.disks)] for n in range(self.units)]
        yield self.env.all_of([self.env.process(self._one_unit(disk)) for disk in chosen])

    def run(self, rate: float, seconds: float) -> StudiedLoad:
        """Simulate random requests for ``seconds``, a tenth of it as warm-up."""
        tally = LatencyTally([])
        open_loop(self.env, rate, self.request, tally, seconds / 10, self.rng)
        self.env.run(until=seconds)
        return StudiedLoad(rate, tally.mean_s, fmean(disk.utilisation() for disk in self.disks))


def sustained(disks: int, unit: int, *, seconds: float, seed: int, rounds: int = 9) -> StudiedLoad:
    """Return the largest sustained rate, by bisection."""
    low, high = 0.0, 1 / DISK.mean_s(unit)
    best = StudiedLoad(0.0, 0.0, 0.0)
    for _ in range(rounds):
        rate = (low + high) / 2
        load = Striped(disks, unit, disks, f"{seed} {disks} {unit}").run(rate, seconds)
        if load.is_sustained:
            low, best = rate, load
        else:
            high = rate
    return best


def mean_transfer_s(unit: int, count: int, seed: int) -> float:
    """Return the mean time of one unit on an idle disk."""
    env = simpy.Environment()
    disk = ModelDisk(env, "disk", DISK, random.Random(seed))

    def accesses() -> Steps:
        for _ in range(count):
            yield disk.access(unit)

    env.process(accesses())
    env.run()
    return env.now / count


def prototype_bytes_s(agents: int, wires: int, *, writes: bool = False, packets: int = 2000) -> float:
    """Return the prototype's rate: the client handles one packet of each network at a time."""
    env = simpy.Environment()
    cpu = Station(env, "client")
    wire = [Station(env, f"wire {n}") for n in range(wires)]
    hosts = [Station(env, f"agent {n}") for n in range(agents * wires)]
    sending, asking = (ASK_BYTES, PACKET) if writes else (PACKET, ASK_BYTES)

    def transfer(number: int) -> Steps:
        for packet in range(packets):
            agent = hosts[number * agents + packet % agents]
            yield cpu.serve(instructions(asking) / CLIENT_1991_INSTRUCTIONS_S)
            yield wire[number].serve(asking / WIRE_BYTES_S)
            yield agent.serve((instructions(asking) + instructions(sending)) / AGENT_1991_INSTRUCTIONS_S)
            yield wire[number].serve(sending / WIRE_BYTES_S)
            yield cpu.serve(instructions(sending) / CLIENT_1991_INSTRUCTIONS_S)

    for number in range(wires):
        env.process(transfer(number))
    env.run()
    rate = packets * wires * PACKET / env.now
    return min(rate, agents * wires * LOCAL_READ_BYTES_S) if not writes else rate


def reproduce(
    *, seconds: float = 100.0, seed: int = 1991, progress: PlanProgress | None = None
) -> list[ComparedFigure]:
    """Return all figures beside the published ones."""
    said = progress or PlanProgress()
    total = 6
    found = [
        ComparedFigure("32 KB transfer", mean_transfer_s(32 * KIB, 20_000, seed) * 1000, 37, 37, "ms", 0.1)
    ]
    said(1, total, "study of 1991")
    busy = Striped(32, 32 * KIB, 20, f"{seed} busy").run(22, seconds)
    found.append(
        ComparedFigure(
            "disk utilisation at 22 requests/s, 32 disks", 100 * busy.utilisation, 50, 50, "%", 0.1
        )
    )
    idle = Striped(32, 32 * KIB, 20, f"{seed} idle").run(0.5, max(seconds, 300)).mean_s
    found.append(
        ComparedFigure(
            "22 requests/s sustained: completion by that of an idle system",
            busy.mean_s / idle,
            1,
            2,
            "x",
            0.0,
        )
    )
    said(2, total, "study of 1991")
    small = sustained(32, 4 * KIB, seconds=seconds, seed=seed)
    found.append(ComparedFigure("client rate, 4 KB units, 32 disks", _mb_s(small, 32, 4), 2, 2, "MB/s", 0.1))
    said(3, total, "study of 1991")
    rates = {
        disks: _mb_s(sustained(disks, 32 * KIB, seconds=seconds, seed=seed), disks, 32)
        for disks in (4, 8, 16, 32)
    }
    found.append(ComparedFigure("client rate, 32 KB units, 32 disks", rates[32], 12, 12, "MB/s", 0.1))
    said(5, total, "study of 1991")
    found += [
        ComparedFigure(f"client rate, 32 KB units, {disks} disks", rates[disks], None, None, "MB/s", 0.0)
        for disks in (4, 8, 16)
    ]
    found.append(ComparedFigure("almost linear: 32 disks by 8", rates[32] / rates[8], 4, 4, "x", 0.1))
    return [*found, *prototype()]


def _mb_s(load: StudiedLoad, disks: int, unit_kib: int) -> float:
    return load.rate * disks * unit_kib * KIB / 1e6


def prototype() -> list[ComparedFigure]:
    """Return the Ethernet prototype's figures."""
    read, write = prototype_bytes_s(3, 1), prototype_bytes_s(3, 1, writes=True)
    two = prototype_bytes_s(3, 2, writes=True)
    return [
        ComparedFigure("prototype: share of the wire, 3 agents", 100 * read / WIRE_BYTES_S, 77, 80, "%", 0.1),
        ComparedFigure(
            "prototype: read by the local disk's", read / LOCAL_READ_BYTES_S, 1.29, 1.36, "x", 0.1
        ),
        ComparedFigure("prototype: read by NFS", read / NFS_READ_BYTES_S, 1.80, 1.97, "x", 0.1),
        ComparedFigure(
            "prototype: write by the local disk's", write / LOCAL_WRITE_BYTES_S, 2.74, 2.80, "x", 0.1
        ),
        ComparedFigure("prototype: write by NFS", write / NFS_WRITE_BYTES_S, 7.67, 8.09, "x", 0.1),
        ComparedFigure("prototype: write with a second wire", two / write, 2, 2, "x", 0.1),
    ]
