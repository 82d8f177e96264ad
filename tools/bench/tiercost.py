"""The cost of the cache tier without possible savings: a fast disk with everything in memory.

    python -m tools.bench.tier --cost --rounds 20

An object server without tier and one with each set of classes stand side by side, each with a folder of its
own below ``--root``. In every round each of them gets the same requests, on one connection, in an order
that changes from round to round; what counts is the processor time of the server's processes for a request,
as the scheduler counts it. The median of the rounds is told, and the median of what a round
says of a tier beside none.
"""

from __future__ import annotations

import http.client
import os
import random
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from tools.bench.contestants import family_of
from tools.bench.tiersite import AROUND, PART_POWER, SUFFIX, TIERS, TierSite, serving, write_etc

KIB = 1 << 10
SIZES = (4 * KIB, 64 * KIB)
#: Requests of a kind in a round.
REQUESTS = 200
BASE = "untiered"


@dataclass
class TierContestant:
    """One server, and its figures by method and size for each round."""

    name: str
    node: int
    port: int
    pid: int
    cpu_us: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    wall_us: dict[tuple[str, int], list[float]] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """Return the path of an object."""
        digest = PathHasher(b"", SUFFIX).digest("a", "c", name)
        return f"/sd{self.node}/{int.from_bytes(digest[:4], 'big') >> (32 - PART_POWER)}/a/c/{name}"

    def round(self, method: str, size: int, second: int) -> None:
        """Send the requests of a round."""
        body = random.Random(size).randbytes(size) if method == "PUT" else None
        headers = {"X-Timestamp": f"{1_700_000_000 + second}.00000", "Content-Type": "text/plain"}
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            self._ask(link, "HEAD", 0, size, None, headers)
            # Only now: a server's socket answers before its worker is there.
            pids = family_of(self.pid)
            cpu_ns, began = processor_ns(pids), time.monotonic()
            for number in range(REQUESTS):
                self._ask(link, method, number, size, body, headers)
            wall, spent_ns = time.monotonic() - began, processor_ns(pids) - cpu_ns
        finally:
            link.close()
        self.cpu_us.setdefault((method, size), []).append(spent_ns / 1e3 / REQUESTS)
        self.wall_us.setdefault((method, size), []).append(wall * 1e6 / REQUESTS)

    def _ask(
        self,
        link: http.client.HTTPConnection,
        method: str,
        number: int,
        size: int,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> None:
        link.request(method, self.path(f"{size}-{number}"), body, dict(headers))
        answer = link.getresponse()
        answer.read()
        if answer.status not in (200, 201) and not (method == "HEAD" and answer.status == 404):
            raise ConfigError(f"{method} of {self.name} was answered {answer.status}")


def processor_ns(pids: Sequence[int]) -> int:
    """Return the CPU nanoseconds of processes with all their threads so far."""
    tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def measure_cost(root: Path, port: int, rounds: int) -> Iterator[str]:
    """Measure; return the figures as Markdown. Raises ``ConfigError``."""
    root.mkdir(parents=True, exist_ok=True)
    site = TierSite(root, port, None, lambda: None)
    nodes = {name: node for node, name in enumerate((*TIERS, f"metadata+hashes{AROUND}"))}
    made = [root / f"n{node}" for node in nodes.values()] + [root / "ssd"]
    try:
        for node in nodes.values():
            (root / f"n{node}" / f"sd{node}").mkdir(parents=True, exist_ok=True)
        write_etc(site, nodes)
        with ExitStack() as stack:
            contestants = [
                TierContestant(
                    name,
                    node,
                    port + node,
                    stack.enter_context(serving(site, name, port + node, is_limited=False)),
                )
                for name, node in nodes.items()
            ]
            _all_rounds(contestants, rounds)
        yield from _table(contestants)
    finally:
        for folder in (*made, site.state):
            shutil.rmtree(folder, ignore_errors=True)


def _all_rounds(contestants: Sequence[TierContestant], rounds: int) -> None:
    chance = random.Random(rounds)
    # The first one finds nothing and warms all up.
    for number in range(rounds + 1):
        for method in ("PUT", "GET", "HEAD"):
            for size in SIZES:
                for each in chance.sample(contestants, len(contestants)):
                    each.round(method, size, number)
    for each in contestants:
        for figures in (*each.cpu_us.values(), *each.wall_us.values()):
            del figures[0]


def _table(contestants: Sequence[TierContestant]) -> Iterator[str]:
    base = next(each for each in contestants if each.name == BASE)
    yield "| request | contestant | processor us | vs untiered | wall us | vs untiered |"
    yield "|---|---|---:|---:|---:|---:|"
    for work in base.cpu_us:
        for each in contestants:
            cpu, wall = each.cpu_us[work], each.wall_us[work]
            yield (
                f"| {work[0]} {work[1] // KIB} KiB | {each.name} | {statistics.median(cpu):.0f} | "
                f"{_ratio(cpu, base.cpu_us[work]):+.1%} | {statistics.median(wall):.0f} | "
                f"{_ratio(wall, base.wall_us[work]):+.1%} |"
            )
    rounds = len(next(iter(base.cpu_us.values())))
    yield f"{os.cpu_count()} processors, {rounds} rounds of {REQUESTS} requests"


def _ratio(mine: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(mine, theirs, strict=True)) - 1
