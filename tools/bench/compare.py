"""Comparison with the peer in one run: the same workloads on both clusters in turn, as a table of ratios.

    python -m tools.bench.compare --root /var/tmp/compare --json result.json

Both clusters run the same plan on this machine: 3 replicas, 2 proxy workers and, with ``--layout node``, one
server with six devices, each an XFS of its own (needs root); with ``--layout per-device`` four servers with a
device each. Each workload is measured ``--rounds`` times in turn and the median is shown. Method and reading:
doc/explanation/performance.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from swift.aio.xfs import exit_on_sigterm
from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from tools.bench import daemons
from tools.bench.contestants import (
    LAYOUTS,
    PACKED,
    Contestant,
    install_peer,
    make_contestants,
    packed_contestant,
)
from tools.bench.counters import EVENTS, check_perf, counting
from tools.bench.emulated import working_folder
from tools.bench.minio import minio_contestant
from tools.bench.options import parser
from tools.bench.s3side import OurS3
from tools.bench.wrk import Load, Measured, check_wrk, run_wrk

KIB, MIB = 1 << 10, 1 << 20
SMALL_SIZES = ((KIB, "1 KiB"), (10 * KIB, "10 KiB"), (64 * KIB, "64 KiB"))
CONCURRENCIES = (16, 64)
#: Size, its name, clients.
LARGE_SIZES = ((MIB, "1 MiB", 16), (100 * MIB, "100 MiB", 1), (100 * MIB, "100 MiB", 4))
#: Objects that GET and HEAD choose from.
STOCK = 1000
#: Names over which objects of 100 MiB are written in turn.
LARGE_NAMES = 4
LISTING_ROWS = 10_000
ACCOUNT = "/v1/AUTH_test"
#: Contestants with a column and its CPU, without a ratio.
OTHERS = ("minio", "s3", f"{PACKED} s3")
#: The policies of ``cli.aio``'s clusters.
GOLD, EC = "gold", "ec"


@dataclass(frozen=True)
class ComparedLoad:
    """A named load; ``prepare`` runs once per contestant before it."""

    name: str
    unit: str
    load: Callable[[int], Load]
    prepare: Callable[[Contestant], None] | None = None
    #: Whether other kinds of object store can do it.
    is_general: bool = True


def say(text: str) -> None:
    """Print progress on standard error."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def stock(contestant: Contestant, size: int, policy: str = GOLD) -> None:
    """Fill the container that GET loads read."""
    container = _container(size, policy)
    contestant.request("PUT", container, more={"X-Storage-Policy": policy})
    count = STOCK if size <= 64 * KIB else 2
    body = b"x" * size
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: contestant.request("PUT", f"{container}/{n}", body), range(count)))


def _container(size: int, policy: str) -> str:
    return f"{ACCOUNT}/stock-{policy}-{size}"


def stock_listing(contestant: Contestant) -> None:
    """Create a container of 10,000 objects by wrk; add the missing ones one by one."""
    container = f"{ACCOUNT}/listing"
    contestant.request("PUT", container)
    written = 0
    while written < LISTING_ROWS:
        load = Load("PUT", f"{container}/{written}-", 32, 10, body_bytes=1, order="counting")
        written += run_wrk(contestant.host, contestant.token, load).requests


def workloads(seconds: float, *, coded: bool, signed: bool = False) -> list[ComparedLoad]:
    """Return the table's rows in order; with ``coded`` also those of erasure coded objects.

    With ``signed`` also one whose requests have a signature where S3 is asked.
    """
    rows: list[ComparedLoad] = []
    for size, label in SMALL_SIZES:
        for clients in CONCURRENCIES:
            rows += _small_rows(size, label, clients, seconds)
        if size == KIB:
            rows += _small_rows(size, label, 1, seconds)
    if signed:
        one = Load("GET", f"{_container(KIB, GOLD)}/0", CONCURRENCIES[0], seconds, order="fixed")
        rows.insert(2, ComparedLoad(f"GET 1 KiB c{CONCURRENCIES[0]}, signed", "ops/s", lambda _number: one))
    rows += [_head_row(clients, seconds) for clients in CONCURRENCIES]
    for size, label, clients in LARGE_SIZES:
        rows += _large_rows(size, label, clients, seconds, prepares=clients != 4)
    rows += _listing_rows(seconds)
    if coded:
        rows += _small_rows(KIB, "1 KiB", CONCURRENCIES[0], seconds, EC)
        for size, label, clients in LARGE_SIZES[:2]:
            rows += _large_rows(size, label, clients, seconds, EC)
    return rows


def _head_row(clients: int, seconds: float) -> ComparedLoad:
    # wrk waits for the announced bytes of a HEAD's answer; empty objects announce none.
    def head(_number: int) -> Load:
        return Load("HEAD", f"{_container(0, GOLD)}/", clients, seconds, count=STOCK)

    return ComparedLoad(
        f"HEAD c{clients}", "ops/s", head, (lambda c: stock(c, 0)) if clients == CONCURRENCIES[0] else None
    )


def _prefix(policy: str) -> str:
    return "" if policy == GOLD else f"{policy.upper()} "


def _large_rows(
    size: int, label: str, clients: int, seconds: float, policy: str = GOLD, *, prepares: bool = True
) -> list[ComparedLoad]:
    path = f"{_container(size, policy)}/"

    def put(number: int) -> Load:
        return Load(
            "PUT",
            f"{path}put-{clients}-{number}-",
            clients,
            max(seconds, 6),
            body_bytes=size,
            order="counting" if size == MIB else "cycling",
            count=1 if size == MIB else LARGE_NAMES,
        )

    def get(_number: int) -> Load:
        return Load("GET", path, clients, max(seconds, 6), count=2)

    prefix, general, name = _prefix(policy), policy == GOLD, f"{label} c{clients}"
    prepare = (lambda c: stock(c, size, policy)) if prepares else None
    return [
        ComparedLoad(f"{prefix}PUT {name}", "MB/s", put, prepare, general),
        ComparedLoad(f"{prefix}GET {name}", "MB/s", get, None, general),
    ]


def _listing_rows(seconds: float) -> list[ComparedLoad]:
    def listing(shape: str) -> Callable[[int], Load]:
        path = f"{ACCOUNT}/listing?limit={LISTING_ROWS}&format={shape}"
        return lambda _number: Load("GET", path, 4, seconds, order="fixed")

    return [
        ComparedLoad(
            f"list 10,000 rows, {shape}",
            "ops/s",
            listing(shape),
            stock_listing if shape == "plain" else None,
            is_general=False,
        )
        for shape in ("plain", "json")
    ]


def _small_rows(
    size: int, label: str, clients: int, seconds: float, policy: str = GOLD
) -> list[ComparedLoad]:
    path = f"{_container(size, policy)}/"
    written = f"{path}w{clients}-"

    def counting(method: str, body: int) -> Callable[[int], Load]:
        return lambda r: Load(method, f"{written}{r}-", clients, seconds, body_bytes=body, order="counting")

    def get(_number: int) -> Load:
        return Load("GET", path, clients, seconds, count=STOCK)

    first, name = clients == CONCURRENCIES[0], f"{label} c{clients}"
    prefix, general = _prefix(policy), policy == GOLD
    return [
        ComparedLoad(
            f"{prefix}PUT {name}",
            "ops/s",
            counting("PUT", size),
            (lambda c: stock(c, size, policy)) if first else None,
            general,
        ),
        ComparedLoad(f"{prefix}GET {name}", "ops/s", get, None, general),
        # What the PUT of the same round wrote is deleted in the same order.
        ComparedLoad(f"{prefix}DELETE {name}", "ops/s", counting("DELETE", 0), None, general),
    ]


def _speed(workload: ComparedLoad, measured: Measured) -> float:
    if workload.unit == "MB/s":
        load = workload.load(0)
        size = load.body_bytes * measured.requests if load.body_bytes else measured.bytes
        return size / measured.seconds / 1e6
    return measured.per_second


def measure(
    workload: ComparedLoad, contestants: Sequence[Contestant], rounds: int, *, counts: bool = False
) -> dict[str, dict[str, object]]:
    """Return the medians of one workload for every contestant, measured in turn.

    With ``counts`` a round more counts the events of ``counters`` by kind of server.
    """
    runs: dict[str, list[tuple[Measured, dict[str, float]]]] = {c.name: [] for c in contestants}
    if workload.prepare is not None:
        for contestant in contestants:
            say(f"{workload.name}: preparing {contestant.name}")
            workload.prepare(contestant)
    for number in range(rounds):
        for contestant in contestants if number % 2 == 0 else list(reversed(contestants)):
            before = contestant.usage()
            load = contestant.bounded(workload.load(number))
            measured = run_wrk(contestant.host, contestant.token, load)
            contestant.note(load, measured.requests)
            after = contestant.usage()
            cpu = {kind: after[kind][0] - before.get(kind, (0.0, 0))[0] for kind in after}
            runs[contestant.name].append((measured, cpu))
            say(
                f"{workload.name} round {number + 1}/{rounds} {contestant.name}: "
                f"{_speed(workload, measured):.1f} {workload.unit}, p50 {measured.p50_ms:.1f} ms, "
                f"p99 {measured.p99_ms:.1f} ms, {measured.bad} bad"
            )
    medians = {name: _median(workload, results) for name, results in runs.items()}
    for contestant in contestants if counts else ():
        load = contestant.bounded(workload.load(rounds))
        with counting(contestant.pids()) as counted:
            measured = run_wrk(contestant.host, contestant.token, load)
        contestant.note(load, measured.requests)
        medians[contestant.name]["events"] = counted.per_request(measured.requests)
    return medians


def _median(workload: ComparedLoad, results: list[tuple[Measured, dict[str, float]]]) -> dict[str, object]:
    speeds = [_speed(workload, measured) for measured, _ in results]
    requests = sum(measured.requests for measured, _ in results) or 1
    cpu: dict[str, float] = {}
    for _, used in results:
        for kind, seconds in used.items():
            cpu[kind] = cpu.get(kind, 0.0) + seconds
    return {
        "speed": statistics.median(speeds),
        "p50_ms": statistics.median(m.p50_ms for m, _ in results),
        "p99_ms": statistics.median(m.p99_ms for m, _ in results),
        "bad": sum(m.bad for m, _ in results),
        "cpu_ms_per_request": {kind: 1000 * seconds / requests for kind, seconds in cpu.items()},
        "rounds": [asdict(measured) for measured, _ in results],
    }


def table(results: dict[str, dict[str, JsonObject]], units: dict[str, str]) -> str:
    """Return the comparison as Markdown."""
    others = [name for name in OTHERS if any(name in sides for sides in results.values())]
    with_packed = any(PACKED in sides for sides in results.values())
    lines = [
        "| workload | unit | ours | theirs | ratio | p50 ms o/t | p99 ms o/t | CPU ms each o/t | bad o/t |"
        + "".join(f" {name} | its CPU ms |" for name in others)
        + (" packed | ratio | its CPU ms |" if with_packed else ""),
        "|---|---|---:|---:|---:|---:|---:|---:|---:|"
        + "---:|---:|" * len(others)
        + ("---:|---:|---:|" if with_packed else ""),
    ]
    for name, sides in results.items():
        ours, theirs = sides["ours"], sides["theirs"]
        ratio = ours["speed"] / theirs["speed"] if theirs["speed"] else float("inf")
        cpu = [sum(side["cpu_ms_per_request"].values()) for side in (ours, theirs)]
        cells = [
            name,
            units[name],
            f"{ours['speed']:.1f}",
            f"{theirs['speed']:.1f}",
            f"**{ratio:.1f}x**",
            *(f"{ours[key]:.1f} / {theirs[key]:.1f}" for key in ("p50_ms", "p99_ms")),
            f"{cpu[0]:.2f} / {cpu[1]:.2f}",
            f"{ours['bad']} / {theirs['bad']}",
        ]
        for other in others:
            cells += _other_cells(sides.get(other))
        if with_packed:
            cells += _packed_cells(sides[PACKED], theirs)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _other_cells(measured: JsonObject | None) -> list[str]:
    if measured is None:
        return ["", ""]
    return [f"{measured['speed']:.1f}", f"{sum(measured['cpu_ms_per_request'].values()):.2f}"]


def _packed_cells(measured: JsonObject, theirs: JsonObject) -> list[str]:
    ratio = measured["speed"] / theirs["speed"] if theirs["speed"] else float("inf")
    return [f"{measured['speed']:.1f}", f"**{ratio:.1f}x**", _other_cells(measured)[1]]


def events_table(results: dict[str, dict[str, JsonObject]]) -> str:
    """Return what a request costs inside, by kind of server."""
    lines = [
        f"| workload | side | server | {' | '.join(EVENTS)} |",
        f"|---|---|---|{'---:|' * len(EVENTS)}",
    ]
    for workload, sides in results.items():
        for side, figures in sides.items():
            for kind, events in figures["events"].items():
                cells = " | ".join(f"{events.get(event, 0.0):.1f}" for event in EVENTS)
                lines.append(f"| {workload} | {side} | {kind} | {cells} |")
    return "\n".join(lines)


def usage_table(contestants: Sequence[Contestant]) -> tuple[str, JsonObject]:
    """Return CPU seconds and peak memory per server kind over the whole run."""
    figures = {c.name: c.usage() for c in contestants}
    lines = ["| server | CPU s o/t | peak RSS of a process, MiB o/t |", "|---|---:|---:|"]
    for kind in figures["ours"]:
        ours, theirs = figures["ours"][kind], figures["theirs"].get(kind, (0.0, 0))
        lines.append(
            f"| {kind} | {ours[0]:.1f} / {theirs[0]:.1f} | {ours[1] / MIB:.0f} / {theirs[1] / MIB:.0f} |"
        )
    return "\n".join(lines), figures


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; return 0, or 1 after an error message."""
    options = parser("compare", __doc__, seconds=8.0)
    options.add_argument(
        "--daemons", action="store_true", help="measure instead what daemons cost, at rest and beside a load"
    )
    options.add_argument("--minio", type=Path, help="also measure this minio program (--layout node only)")
    options.add_argument(
        "--s3", action="store_true", help="also measure ours, and the packed engine, through the S3 API"
    )
    options.add_argument("--packed", action="store_true", help="also measure ours with the packed engine")
    options.add_argument(
        "--counters", action="store_true", help="count system calls, futexes and switches too (needs perf)"
    )
    options.add_argument(
        "--layout", choices=tuple(LAYOUTS), default="node", help="how devices are served (node: needs root)"
    )
    args = options.parse_args(argv)
    try:
        check_wrk()
        if args.counters:
            check_perf()
        args.root.mkdir(parents=True, exist_ok=True)
        commands = install_peer(args.peer or args.root / "peer", say)
        with working_folder(args.root, xfs=args.xfs and args.layout != "node") as folder:
            contestants: list[Contestant] = list(make_contestants(folder, commands, args.layout))
            if args.daemons:
                return daemons.compare(args, contestants, say)
            if args.minio is not None and args.layout == "node":
                contestants.append(minio_contestant(folder, args.minio, LAYOUTS[args.layout]))
            if args.packed:
                contestants.append(packed_contestant(folder, args.layout))
            if args.s3:
                contestants += [OurS3(each) for each in contestants if each.name in ("ours", PACKED)]
            return _compare(args, contestants)
    except (SwiftError, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1


def _compare(args: argparse.Namespace, contestants: Sequence[Contestant]) -> int:
    results: dict[str, dict[str, dict[str, object]]] = {}
    units: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(exit_on_sigterm())
        for contestant in contestants:
            stack.callback(contestant.stop)
            say(f"starting {contestant.name}")
            contestant.start()
        prepare = None
        signed = not all(each.speaks_swift for each in contestants)
        for workload in workloads(args.seconds, coded=bool(contestants[0].plan.ec), signed=signed):
            prepare = workload.prepare or prepare
            if not re.search(args.only, workload.name):
                continue
            units[workload.name] = workload.unit
            able = [c for c in contestants if c.speaks_swift or workload.is_general]
            if workload.prepare is None and prepare is not None:
                # That of a row which was left out.
                for contestant in able:
                    prepare(contestant)
            prepare = None
            results[workload.name] = measure(workload, able, args.rounds, counts=args.counters)
        usage, figures = usage_table(contestants)
    print(table(results, units))
    print()
    if args.counters:
        print(events_table(results))
        print()
    print(usage)
    machine = {"machine": platform.platform(), "python": platform.python_version()}
    args.json.write_text(
        json.dumps({**machine, "seconds": args.seconds, "workloads": results, "usage": figures}, indent=1)
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
