"""The savings of the cache tier on a seeking disk, compared with our store without it and the peer.

    python -m tools.bench.tier --root /var/tmp/tier --peer /var/tmp/compare/peer/bin --json tier.json

One object server at a time works on the same XFS, an image on a loop device that its cgroup limits to so many
reads a second; its memory is limited as well, and working sets rise past it. The SSD is another image without
a limit. Before each measurement the page cache is dropped. Contestants with a tier have read everything once
(``warm``). What the disk reads is counted by the kernel. It needs root, XFS tools, cgroups and LMDB, and says
what is missing.

``--quick`` has the whole grid with little memory and short loads. ``--cost`` measures the other end: what the
tier costs where everything is in memory; see ``tiercost``.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from swift import DISTRIBUTION
from swift.aio.cgroups import check_cgroups, drop_caches, read_count, write_count
from swift.aio.xfs import (
    check_xfs,
    exit_on_sigterm,
    make_image,
    mount_image,
    mount_seeking_disk,
    unmount_image,
)
from swift.base.errors import ConfigError, SwiftError
from swift.base.hashing import PathHasher
from swift.runtime.workers import die_with_parent
from tools.bench.emulated import MachineLimits, limited_group
from tools.bench.options import bare_parser
from tools.bench.tiercost import measure_cost
from tools.bench.tiersite import (
    PACKED,
    PART_POWER,
    PEER,
    SUFFIX,
    TIERS,
    TierSite,
    command,
    end,
    environment,
    run_limited,
    serving,
    write_etc,
)

KIB, MIB = 1 << 10, 1 << 20
#: A cold GET is one request after the caches were dropped; of so many the reads are counted.
COLD_REQUESTS = 20
#: Requests before each of them, for what all objects share: the heads of XFS's allocation groups, for one.
OTHERS = 24
#: New objects whose writes are counted.
PUTS = 1000
#: Fractions of what the untiered store takes, and factors of what it does.
GOALS = {"GET 64 KiB": 0.14, "GET 1024 KiB": 0.47, "HEAD": 0.05, "replication pass": 1 / 6}


@dataclass
class MeasuredWork:
    """One kind of work of one contestant; times in milliseconds."""

    contestant: str
    work: str
    #: Bytes of all objects that are chosen from.
    set_bytes: int = 0
    requests: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    per_s: float = 0.0
    #: Of a pass.
    seconds: float = 0.0
    disk_reads: int = 0
    disk_writes: int = 0

    @property
    def writes_each(self) -> float:
        """Return the disk writes per request."""
        return self.disk_writes / self.requests if self.requests else 0.0

    @property
    def reads_each(self) -> float:
        """Return the disk reads per request."""
        return self.disk_reads / self.requests if self.requests else 0.0


@dataclass
class LimitedSite(TierSite):
    """A site whose first node is limited."""

    limits: MachineLimits
    clients: int
    seconds: float
    results: list[MeasuredWork] = field(default_factory=list)
    #: Sizes in bytes → paths of requests.
    objects: dict[int, list[str]] = field(default_factory=dict)


# --- work ------------------------------------------------------------------------------------------------


def fill(bench: LimitedSite, sizes: Sequence[int], set_bytes: int, *servers: str) -> None:
    """Put the objects of the largest working set of every size, without a limit.

    ``servers`` are the contestants that store them, the first one on the limited node.
    """
    hasher, chance = PathHasher(b"", SUFFIX), random.Random(1)
    with contextlib.ExitStack() as stack:
        links = []
        for node, contestant in enumerate(servers):
            stack.enter_context(serving(bench, contestant, bench.port + node, is_limited=False))
            links.append(http.client.HTTPConnection("127.0.0.1", bench.port + node, timeout=60))
        for size in sizes:
            paths = bench.objects[size] = []
            body = chance.randbytes(size)
            for number in range(max(COLD_REQUESTS, set_bytes // size)):
                path = _path(hasher, f"{size}-{number}")
                for node, link in enumerate(links):
                    _put(link, f"/sd{node}{path}", body)
                paths.append(f"/sd0{path}")
        for link in links:
            link.close()


def _path(hasher: PathHasher, name: str) -> str:
    """Return the path of an object behind its device."""
    part = int.from_bytes(hasher.digest("a", "c", name)[:4], "big") >> (32 - PART_POWER)
    return f"/{part}/a/c/{name}"


def _put(link: http.client.HTTPConnection, path: str, body: bytes) -> None:
    link.request("PUT", path, body, {"X-Timestamp": "1700000000.00000", "Content-Type": "text/plain"})
    answer = link.getresponse()
    answer.read()
    if answer.status != 201:
        raise ConfigError(f"PUT {path} was answered {answer.status}")


def load(bench: LimitedSite, method: str, paths: Sequence[str], seconds: float) -> tuple[list[float], int]:
    """Send random requests by all clients; return the seconds of each, and the number of failures."""
    times: list[float] = []
    failed: list[int] = []
    until = time.monotonic() + seconds

    def client(number: int) -> None:
        chance = random.Random(number)
        link = http.client.HTTPConnection("127.0.0.1", bench.port, timeout=120)
        while time.monotonic() < until:
            began = time.monotonic()
            link.request(method, chance.choice(paths))
            answer = link.getresponse()
            answer.read()
            times.append(time.monotonic() - began)
            if answer.status != 200:
                failed.append(answer.status)
        link.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(bench.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, len(failed)


def measure_load(
    bench: LimitedSite, contestant: str, work: str, method: str, paths: Sequence[str], set_bytes: int
) -> None:
    """Measure requests from a cold cache."""
    drop_caches()
    reads = read_count(bench.limits.device)
    times, failed = load(bench, method, paths, bench.seconds)
    if failed or not times:
        raise ConfigError(f"{failed} requests of {contestant} failed ({work})")
    times.sort()
    bench.results.append(
        MeasuredWork(
            contestant,
            work,
            set_bytes,
            len(times),
            statistics.median(times) * 1e3,
            times[min(len(times) - 1, len(times) * 99 // 100)] * 1e3,
            len(times) / bench.seconds,
            disk_reads=read_count(bench.limits.device) - reads,
        )
    )


def measure_puts(bench: LimitedSite, contestant: str, size: int) -> None:
    """Measure PUTs of new objects by all clients, and their disk writes."""
    hasher, body = PathHasher(b"", SUFFIX), random.Random(2).randbytes(size)
    times: list[float] = []

    def client(number: int) -> None:
        link = http.client.HTTPConnection("127.0.0.1", bench.port, timeout=120)
        for each in range(number, PUTS, bench.clients):
            began = time.monotonic()
            _put(link, f"/sd0{_path(hasher, f'{contestant}-{size}-{each}')}", body)
            times.append(time.monotonic() - began)
        link.close()

    drop_caches()
    device = bench.limits.device
    reads, writes, began = read_count(device), write_count(device), time.monotonic()
    with ThreadPoolExecutor(bench.clients) as clients:
        list(clients.map(client, range(bench.clients)))
    seconds = time.monotonic() - began
    times.sort()
    bench.results.append(
        MeasuredWork(
            contestant,
            f"PUT {size // KIB} KiB",
            requests=PUTS,
            p50_ms=statistics.median(times) * 1e3,
            p99_ms=times[PUTS * 99 // 100] * 1e3,
            per_s=PUTS / seconds,
            disk_reads=read_count(device) - reads,
            disk_writes=write_count(device) - writes,
        )
    )


def measure_cold(bench: LimitedSite, contestant: str, work: str, method: str, paths: Sequence[str]) -> None:
    """Measure the disk reads of single requests for uncached objects, after warming shared data."""
    result = MeasuredWork(contestant, f"cold {work}", requests=0)
    times = []
    for path in random.Random(7).sample(list(paths), min(COLD_REQUESTS, len(paths))):
        drop_caches()
        for other in random.Random(path).sample(list(paths), min(OTHERS, len(paths))):
            if other != path:
                _ask(bench, "GET", other)
        before, began = read_count(bench.limits.device), time.monotonic()
        _ask(bench, method, path)
        times.append(time.monotonic() - began)
        result.disk_reads += read_count(bench.limits.device) - before
        result.requests += 1
    result.p50_ms = statistics.median(times) * 1e3
    bench.results.append(result)


def _ask(bench: LimitedSite, method: str, path: str) -> None:
    link = http.client.HTTPConnection("127.0.0.1", bench.port, timeout=120)
    link.request(method, path)
    link.getresponse().read()
    link.close()


def measure_pass(bench: LimitedSite, contestant: str, work: str, action: Callable[[], float]) -> None:
    """Measure a pass from a cold cache."""
    drop_caches()
    reads = read_count(bench.limits.device)
    seconds = action()
    bench.results.append(
        MeasuredWork(contestant, work, seconds=seconds, disk_reads=read_count(bench.limits.device) - reads)
    )


def measure_replication(bench: LimitedSite, contestant: str, conf: str) -> None:
    """Measure an idle pass from a cold cache, of a daemon that has made passes before."""

    def begin() -> None:
        die_with_parent()
        bench.enter()

    child = subprocess.Popen(
        command(bench, contestant, "object-replicator", conf),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(contestant),
        preexec_fn=begin,
    )
    try:
        ended = time.time()
        for _ in range(3):
            ended, _ = _next_pass(bench, child, ended)
        drop_caches()
        reads = read_count(bench.limits.device)
        # The next one may have begun before the caches were dropped; the one after it has not.
        ended, _ = _next_pass(bench, child, ended)
        drop_caches()
        reads = read_count(bench.limits.device)
        _, seconds = _next_pass(bench, child, ended)
        done = read_count(bench.limits.device) - reads
        bench.results.append(MeasuredWork(contestant, "replication pass", seconds=seconds, disk_reads=done))
    finally:
        end(child)


def _next_pass(bench: LimitedSite, child: subprocess.Popen[bytes], last: float) -> tuple[float, float]:
    """Wait until recon reports a pass that ended after ``last``; return its end and its seconds."""
    while True:
        if child.poll() is not None:
            raise ConfigError(f"the replicator ended with {child.returncode}")
        with contextlib.suppress(OSError, ValueError):
            told = json.loads((bench.root / "recon0" / "object.recon").read_text())
            ended = float(told.get("object_replication_last") or 0)
            if ended > last:
                return ended, float(told["object_replication_time"]) * 60
        time.sleep(0.1)


def list_partitions(bench: LimitedSite) -> float:
    """Request the suffix hashes of every partition, as replication does."""
    began = time.monotonic()
    for part in range(1 << PART_POWER):
        _ask(bench, "REPLICATE", f"/sd0/{part}")
    return time.monotonic() - began


def measure(bench: LimitedSite, contestant: str, sets: Sequence[int]) -> None:
    """Measure all work of one contestant."""
    conf = str(bench.root / "etc" / f"{contestant}.conf")
    shutil.rmtree(bench.root / "ssd" / "cache0", ignore_errors=True)
    if contestant == PACKED:
        shutil.rmtree(bench.root / "n0" / "sd0" / "objects")
        (bench.root / "ssd" / "packed").mkdir()
        fill(bench, list(bench.objects), sets[-1], PACKED)
    with serving(bench, contestant, bench.port, is_limited=True):
        # The first request opens the tier, so that somebody is there who sees what happens.
        _ask(bench, "HEAD", bench.objects[min(bench.objects)][0])
        if TIERS.get(contestant):
            warm(bench, contestant, conf)
        for size, paths in bench.objects.items():
            name = f"{size // KIB} KiB"
            for set_bytes in sets:
                chosen = paths[: max(1, set_bytes // size)]
                measure_load(bench, contestant, f"GET {name}", "GET", chosen, set_bytes)
            measure_cold(bench, contestant, f"GET {name}", "GET", paths)
        smallest = bench.objects[min(bench.objects)]
        measure_load(bench, contestant, "HEAD", "HEAD", smallest, sets[-1])
        measure_cold(bench, contestant, "HEAD", "HEAD", smallest)
        measure_pass(bench, contestant, "list partitions", lambda: list_partitions(bench))
        with serving(bench, "partner", bench.port + 1, is_limited=False):
            measure_replication(bench, contestant, conf)
        measure_pass(
            bench,
            contestant,
            "zero-byte audit",
            lambda: run_limited(bench, contestant, "object-auditor", conf, "once", "-z", "1000000"),
        )


def warm(bench: LimitedSite, contestant: str, conf: str) -> None:
    """Read everything once outside of the control group; this is not measured."""
    done = subprocess.run(
        [sys.executable, "-m", "swift.cli.cache", "--conf", conf, "warm"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigError(f"warming {contestant} failed: {done.stderr.strip()}")
    for paths in bench.objects.values():
        for path in paths if "small-data" in TIERS[contestant] else ():
            _ask(bench, "GET", path)


# --- telling ---------------------------------------------------------------------------------------------


def table(results: Sequence[MeasuredWork]) -> Iterator[str]:
    """Return the figures as Markdown."""
    yield (
        "| work | set | contestant | p50 ms | p99 ms | per s | pass s | disk reads | each | writes each | "
        "vs untiered |"
    )
    yield "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for each in results:
        base = next(
            (
                r
                for r in results
                if (r.contestant, r.work, r.set_bytes) == ("untiered", each.work, each.set_bytes)
            ),
            None,
        )
        mine, theirs = each.seconds or each.p50_ms, (base.seconds or base.p50_ms) if base else 0.0
        ratio = f"{mine / theirs - 1:+.0%}" if theirs else ""
        yield (
            f"| {each.work} | {each.set_bytes // MIB or ''} | {each.contestant} | {each.p50_ms:.2f} | "
            f"{each.p99_ms:.2f} | {each.per_s:.1f} | {each.seconds:.1f} | {each.disk_reads} | "
            f"{each.reads_each:.2f} | {each.writes_each:.2f} | {ratio} |"
        )


def plot(results: Sequence[MeasuredWork], folder: Path) -> None:
    """Plot latency by working set, a picture for each kind of GET. Raises ``ConfigError``."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ConfigError(f"--plot needs matplotlib (pip install '{DISTRIBUTION}[plan]')")
    folder.mkdir(parents=True, exist_ok=True)
    for work in dict.fromkeys(each.work for each in results if each.work.startswith("GET")):
        figure, axes = pyplot.subplots(figsize=(7, 4))
        for contestant in dict.fromkeys(each.contestant for each in results):
            rows = [each for each in results if (each.work, each.contestant) == (work, contestant)]
            axes.plot([r.set_bytes / MIB for r in rows], [r.p50_ms for r in rows], "o-", label=contestant)
        axes.set(xlabel="working set, MiB", ylabel="p50, ms", title=work, yscale="log")
        axes.legend()
        figure.tight_layout()
        figure.savefig(folder / f"{work.replace(' ', '-')}.svg")
        pyplot.close(figure)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = bare_parser("tier", __doc__)
    add = parser.add_argument
    add("--root", type=Path, default=Path("/var/tmp/swift-bench-tier"), help="where images and logs are")
    add("--peer", type=Path, help="directory of the peer's commands")
    add("--iops", type=int, default=100, help="reads a second of the disk (100)")
    add("--memory-mb", type=int, default=512, help="memory of a contestant (512)")
    add("--sets", default="0.5,1,2,4", help="working sets, in multiples of the memory (0.5,1,2,4)")
    add("--sizes", default="64,256,1024", help="sizes of objects in KiB (64,256,1024)")
    add("--clients", type=int, default=16, help="requests outstanding (16)")
    add("--seconds", type=float, default=60.0, help="of each load (60)")
    add("--port", type=int, default=16200, help="this one and the next are used (16200)")
    add("--only", action="append", choices=(*TIERS, PEER, PACKED), help="only these contestants")
    add("--quick", action="store_true", help="memory 128, working sets 0.5,2,4, 12 seconds each")
    add("--cost", action="store_true", help="CPU of requests that memory serves, with and without a tier")
    add("--rounds", type=int, default=20, help="of --cost (20)")
    add("--json", type=Path, help="write the figures there as well")
    add("--plot", type=Path, help="write plots into this directory")
    return parser


@contextlib.contextmanager
def images(root: Path, disk_bytes: int) -> Iterator[str]:
    """Mount the limited disk, its partner's and the SSD; yield the device to limit."""
    mounts = {root / "n1" / "sd1": disk_bytes, root / "ssd": 6 << 30}
    made: list[tuple[Path, Path]] = []
    try:
        for folder, size in mounts.items():
            image = root / f"{folder.name}.img"
            folder.mkdir(parents=True, exist_ok=True)
            made.append((folder, image))
            make_image(image, size)
            mount_image(image, folder)
        with mount_seeking_disk(root / "sd0.img", disk_bytes, root / "n0" / "sd0") as device:
            yield device
    finally:
        for folder, image in reversed(made):
            unmount_image(folder)
            image.unlink(missing_ok=True)


def run(args: argparse.Namespace) -> list[MeasuredWork]:
    """Run the benchmark; raises ``ConfigError``."""
    wanted = args.only or [*TIERS, *([PEER] if args.peer else []), PACKED]
    # This one stores the objects again in its own way.
    wanted.sort(key=PACKED.__eq__)
    if PEER in wanted and args.peer is None:
        raise ConfigError("the peer needs --peer, the directory of its commands")
    check_cgroups()
    check_xfs()
    try:
        import lmdb  # noqa: F401
    except ImportError:
        raise ConfigError(f"it needs the package lmdb (pip install '{DISTRIBUTION}[tier]')")
    if args.quick:
        args.memory_mb, args.sets, args.seconds = 128, "0.5,2,4", 12.0
    memory = args.memory_mb * MIB
    sets = [int(float(text) * memory) for text in args.sets.split(",")]
    sizes = [int(text) * KIB for text in args.sizes.split(",")]
    args.root.mkdir(parents=True, exist_ok=True)
    disk_bytes = max(1 << 30, 2 * max(sets) * len(sizes))
    with exit_on_sigterm(), images(args.root, disk_bytes) as device:
        limits = MachineLimits(device, args.iops, memory)
        with limited_group(f"swift-bench-tier-{os.getpid()}", limits) as enter:
            bench = LimitedSite(args.root, args.port, args.peer, enter, limits, args.clients, args.seconds)
            try:
                write_etc(bench, {**dict.fromkeys((*TIERS, PEER, PACKED), 0), "partner": 1})
                fill(bench, sizes, max(sets), "untiered", "partner")
                for contestant in wanted:
                    print(f"{contestant} ...", file=sys.stderr, flush=True)
                    measure(bench, contestant, sets)
                for contestant in wanted:
                    # Last, because all contestants with files have the same objects before.
                    with serving(bench, contestant, bench.port, is_limited=True):
                        for size in sizes:
                            measure_puts(bench, contestant, size)
            except (SwiftError, OSError):
                # Others were measured for many minutes.
                print("\n".join(table(bench.results)), flush=True)
                raise
            finally:
                shutil.rmtree(bench.state, ignore_errors=True)
            return bench.results


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures; return the exit code."""
    args = make_parser().parse_args(argv)
    try:
        if args.cost:
            for line in measure_cost(args.root, args.port, args.rounds):
                print(line)
            return 0
        results = run(args)
        for line in table(results):
            print(line)
        if args.json:
            facts = {
                "machine": platform.platform(),
                "goals": GOALS,
                "results": [asdict(each) for each in results],
            }
            args.json.write_text(json.dumps(facts, indent=1) + "\n")
        if args.plot:
            plot(results, args.plot)
    except (SwiftError, OSError) as error:
        print(f"tools.bench.tier: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
