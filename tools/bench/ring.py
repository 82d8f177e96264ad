"""Rings beside the peer in one run: building, moving, loading, looking up.

    python -m tools.bench.ring --peer-bin /usr/local/bin --json result.json

Both builders start from the same builder file (made by the peer's command) and rebalance it in turn; then
both add 5 % of capacity to the ring that the peer built. Processes are timed whole, as an operator waits for
them; loading and looking up are timed inside a fresh interpreter. Only the peer's commands and its public
ring loader are used.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from swift.base.documents import JsonObject

_SEED = "1"
_PROJECT_ROOT = str(Path(__file__).resolve().parents[2])
_REASSIGNED = re.compile(r"Reassigned (\d+) ")
_STATE = re.compile(r"Dispersion is ([\d.]+), Balance is ([\d.]+)")
_OUR_LOAD = (
    "from swift.ring.ring import Ring\n"
    "def load(path): return Ring(path).load()\n"
    "def lookups(ring, digests):\n"
    "    for digest in digests: ring.nodes(digest)\n"
)
# The peer refuses to load a ring without swift.conf; giving it a hash suffix is all it wants.
_PEER_LOAD = (
    "from swift.common import utils\n"
    "utils.HASH_PATH_SUFFIX = b'benchmark'\n"
    "from swift.common.ring import Ring\n"
    "def load(path):\n"
    "    ring = Ring(path)\n"
    "    ring.get_part_nodes(0)\n"
    "    return ring\n"
    "def lookups(ring, digests):\n"
    "    import struct\n"
    "    unpack = struct.Struct('>I').unpack_from\n"
    "    shift = 32 - ring.partition_count.bit_length() + 1\n"
    "    for digest in digests: ring.get_part_nodes(unpack(digest)[0] >> shift)\n"
)
_MEASURE = """
import json, os, resource, sys, time
def resident_kib():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024
before = resident_kib()
start = time.perf_counter()
ring = load(sys.argv[1])
result = {'load_s': time.perf_counter() - start, 'ring_kib': resident_kib() - before}
if lookups:
    digests = [os.urandom(16) for _ in range(200000)]
    start = time.perf_counter()
    lookups(ring, digests)
    result['lookup_us'] = (time.perf_counter() - start) / len(digests) * 1e6
print(json.dumps(result))
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of the cluster whose ring is built."""

    part_power: int = 18
    replicas: int = 3
    devices: int = 1000
    zones: int = 5
    per_server: int = 10
    growth: float = 0.05

    def add_values(self) -> list[str]:
        """Return the arguments of the add command for the first devices."""
        rng = random.Random(5)
        words = []
        for number in range(self.devices):
            words += [self._place(number), str(rng.choice([100, 100, 100, 200]))]
        return words

    def growth_values(self) -> list[str]:
        """Return the arguments of the add command for the new servers."""
        words = []
        first = -(-self.devices // (self.zones * self.per_server)) * self.zones * self.per_server
        for number in range(first, first + int(self.devices * self.growth)):
            words += [self._place(number), "125"]
        return words

    def _place(self, number: int) -> str:
        zone, rank = number % self.zones, number // self.zones
        return f"r1z{zone + 1}-10.{zone}.{rank // self.per_server // 256}.{rank // self.per_server % 256}" + (
            f":6200/d{number}"
        )


@dataclass
class Side:
    """One of the two builders: its commands, and its measurements."""

    name: str
    builder: list[str]
    python: str
    loader: str
    env: dict[str, str]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)

    def run(self, folder: Path, *words: str) -> str:
        """Run a builder command and return its output; exit codes 0 and 1 are success."""
        done = subprocess.run(
            [*self.builder, *words], cwd=folder, env=self.env, capture_output=True, text=True
        )
        if done.returncode > 1:
            raise SystemExit(f"{self.name}: {' '.join(words[:2])} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def rebalance(self, step: str, builder: Path) -> None:
        """Time one rebalance of a copy of ``builder`` and record its report."""
        with tempfile.TemporaryDirectory(dir=builder.parent) as name:
            folder = Path(name)
            shutil.copyfile(builder, folder / "x.builder")
            start = time.perf_counter()
            out = self.run(folder, "x.builder", "rebalance", "--seed", _SEED, "--format-version", "1")
            self.seconds.setdefault(step, []).append(time.perf_counter() - start)
            moved = _REASSIGNED.search(out)
            state = _STATE.search(self.run(folder, "x.builder", "dispersion"))
            assert moved is not None and state is not None, "both commands print these lines"
            self.facts[step] = {
                "moved": int(moved[1]),
                "dispersion": float(state[1]),
                "balance": float(state[2]),
            }
            for suffix in ("builder", "ring.gz"):
                shutil.copyfile(folder / f"x.{suffix}", builder.parent / f"{self.name}-{step}.{suffix}")

    def measure_loading(self, ring: Path, rounds: int) -> None:
        """Load the ring in new interpreters; return medians."""
        results: list[dict[str, float]] = []
        for _ in range(rounds):
            done = subprocess.run(
                [self.python, "-c", self.loader + _MEASURE, str(ring)],
                env=self.env,
                cwd=ring.parent,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                self.facts["loading"] = {"not measured": done.stderr.strip().rpartition("\n")[2]}
                return
            results.append(json.loads(done.stdout))
        self.facts["loading"] = {
            name: statistics.median(result[name] for result in results) for name in results[0]
        }


def compare(peer_bin: str, shape: Shape, rounds: int) -> dict[str, object]:
    """Run all steps; return the results as plain data."""
    ours = Side(
        "ours",
        [sys.executable, "-m", "swift.cli.ring_builder"],
        sys.executable,
        _OUR_LOAD,
        {**os.environ, "PYTHONPATH": _PROJECT_ROOT},
    )
    peer = Side(
        "peer",
        [os.path.join(peer_bin, "swift-ring-builder")],
        os.path.join(peer_bin, "python"),
        _PEER_LOAD,
        {name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = ("start.builder", "create", str(shape.part_power), str(shape.replicas), "1")
        peer.run(folder, *start)
        peer.run(folder, "start.builder", "add", *shape.add_values())
        for _ in range(rounds):
            for side in (peer, ours):
                side.rebalance("first", folder / "start.builder")
        grown = folder / "grown.builder"
        shutil.copyfile(folder / "peer-first.builder", grown)
        peer.run(folder, grown.name, "pretend_min_part_hours_passed")
        peer.run(folder, grown.name, "add", *shape.growth_values())
        for _ in range(rounds):
            for side in (peer, ours):
                side.rebalance("grow", grown)
        for side in (peer, ours):
            side.measure_loading(folder / "peer-grow.ring.gz", rounds)
    return {"shape": asdict(shape), "rounds": rounds, "sides": {s.name: _result(s) for s in (ours, peer)}}


def _result(side: Side) -> dict[str, object]:
    medians = {step: statistics.median(times) for step, times in side.seconds.items()}
    return {"seconds": medians, **side.facts}


def table(result: JsonObject) -> str:
    """Return the comparison as text, with ratios ours / peer."""
    ours, peer = result["sides"]["ours"], result["sides"]["peer"]
    rows = []
    for step in ("first", "grow"):
        rows.append((f"{step}: seconds", ours["seconds"][step], peer["seconds"][step]))
        for fact in ("balance", "dispersion", "moved"):
            rows.append((f"{step}: {fact}", ours[step][fact], peer[step][fact]))
    for fact in ("load_s", "ring_kib", "lookup_us"):
        rows.append((fact, ours["loading"].get(fact), peer["loading"].get(fact)))
    lines = [f"{'':20}{'ours':>14}{'peer':>14}{'ratio':>9}"]
    for name, mine, theirs in rows:
        ratio = f"{mine / theirs:9.3f}" if mine is not None and theirs else f"{'-':>9}"
        cells = "".join(f"{'-':>14}" if value is None else f"{value:14.4f}" for value in (mine, theirs))
        lines.append(f"{name:20}{cells}{ratio}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and print; ``--json`` writes the numbers."""
    parser = argparse.ArgumentParser(
        description="Builds, grows, loads and queries one ring with both implementations.",
        epilog="Example: python -m tools.bench.ring --peer-bin /usr/local/bin --rounds 3",
    )
    parser.add_argument("--peer-bin", required=True, help="directory with the peer's commands and python")
    parser.add_argument("--rounds", type=int, default=3, help="how often each step is measured (median)")
    parser.add_argument("--part-power", type=int, default=18)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--json", metavar="FILE", help="write the numbers there")
    options = parser.parse_args(argv)
    shape = Shape(part_power=options.part_power, devices=options.devices)
    result = compare(options.peer_bin, shape, options.rounds)
    print(table(result))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
