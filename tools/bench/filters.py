"""The cost of the public API's filters, and the speed of their long work; ours and the peer's in one run.

    python -m tools.bench.filters --root /var/tmp/filters --json filters.json

Four clusters of the same plan: each side with the pipeline of ``swift-aio`` and with a bare one. Small GETs
are measured on all of them; large objects, deletions and archives on those with all filters.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import re
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

from swift.aio.make import make_cluster
from swift.base.errors import ConfigError
from tools.bench.compare import ACCOUNT, STOCK, say, stock
from tools.bench.contestants import Contestant, make_contestants
from tools.bench.options import parser
from tools.bench.sides import TableRow, medians, print_rows
from tools.bench.wrk import Load, run_wrk

BARE = "catch_errors gatekeeper healthcheck proxy-logging cache tempauth proxy-logging proxy-server"
MIB = 1 << 20
#: Names of one request to delete: the limit of both sides.
PER_REQUEST = 10_000


def bare(contestant: Contestant) -> None:
    """Remove all filters that a cluster does not need; call this before its start."""
    make_cluster(contestant.plan)
    conf = contestant.plan.etc / "proxy-server.conf"
    lines = conf.read_text().split("\n")
    conf.write_text("\n".join(f"pipeline = {BARE}" if x.startswith("pipeline =") else x for x in lines))


def cpu_ms_of_a_get(contestant: Contestant, seconds: float) -> float:
    """Return the CPU milliseconds of all servers for a GET of 1 KiB with 16 clients."""
    before = sum(cpu for cpu, _peak in contestant.usage().values())
    load = Load("GET", f"{ACCOUNT}/stock-gold-1024/", 16, seconds, count=STOCK)
    measured = run_wrk(contestant.host, contestant.token, load)
    after = sum(cpu for cpu, _peak in contestant.usage().values())
    return 1000 * (after - before) / max(1, measured.requests)


def ask(
    contestant: Contestant, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[float, bytes]:
    """Return seconds and body of one request; raises ``ConfigError`` when it fails."""
    connection = http.client.HTTPConnection(contestant.host, timeout=600)
    sent = {"X-Auth-Token": contestant.token, **{n.replace("_", "-"): v for n, v in headers.items()}}
    started = time.monotonic()
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise ConfigError(f"{contestant.name}: {method} {path} answered {answer.status}: {content[:200]!r}")
    return time.monotonic() - started, content


def make_large(contestant: Contestant, segments: int) -> None:
    """Create a static large object with segments of 1 MiB, and a plain object of the same size."""
    ask(contestant, "PUT", f"{ACCOUNT}/large")
    piece = b"x" * MIB
    for number in range(segments):
        ask(contestant, "PUT", f"{ACCOUNT}/large/s{number:04d}", piece)
    manifest = [{"path": f"/large/s{number:04d}"} for number in range(segments)]
    ask(contestant, "PUT", f"{ACCOUNT}/large/slo?multipart-manifest=put", json.dumps(manifest).encode())
    ask(contestant, "PUT", f"{ACCOUNT}/large/plain", piece * segments)


def rate_of(contestant: Contestant, name: str, size: int) -> float:
    """Return the MB/s of reading one object completely; raises ``ConfigError`` when it ends early."""
    connection = http.client.HTTPConnection(contestant.host, timeout=600)
    room, received = bytearray(MIB), 0
    try:
        connection.request("GET", f"{ACCOUNT}/large/{name}", headers={"X-Auth-Token": contestant.token})
        answer = connection.getresponse()
        started = time.monotonic()
        while count := answer.readinto(room):
            received += count
        seconds = time.monotonic() - started
    finally:
        connection.close()
    if answer.status != 200 or received != size:
        raise ConfigError(f"{contestant.name}: {name} gave {received} of {size} bytes with {answer.status}")
    return size / seconds / 1e6


def archive_of(count: int) -> bytes:
    """Return a tar archive of small files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for number in range(count):
            member = tarfile.TarInfo(f"d{number % 50}/f{number}")
            member.size = 1000
            archive.addfile(member, io.BytesIO(b"y" * 1000))
    return made.getvalue()


def extraction(contestant: Contestant, archive: bytes, count: int) -> float:
    """Return the extracted files per second of an archive."""
    seconds, report = ask(
        contestant, "PUT", f"{ACCOUNT}/unpacked?extract-archive=tar", archive, Accept="application/json"
    )
    made = json.loads(report)["Number Files Created"]
    if made != count:
        raise ConfigError(f"{contestant.name} made {made} of {count} files: {report[:300]!r}")
    return count / seconds


def deletion(contestant: Contestant, count: int) -> float:
    """Return the deleted objects per second of the extracted files."""
    names = [f"/unpacked/d{number % 50}/f{number}" for number in range(count)]
    spent, gone = 0.0, 0
    for start in range(0, count, PER_REQUEST):
        body = "\n".join(names[start : start + PER_REQUEST]).encode()
        seconds, report = ask(
            contestant,
            "POST",
            f"{ACCOUNT}?bulk-delete",
            body,
            Accept="application/json",
            Content_Type="text/plain",
        )
        spent += seconds
        gone += json.loads(report)["Number Deleted"]
    if gone != count:
        raise ConfigError(f"{contestant.name} deleted {gone} of {count} objects")
    return count / spent


def small_gets(root: Path, peer: Path, args: argparse.Namespace) -> list[TableRow]:
    """Measure a GET with all filters and with few; the clusters run one pair after the other."""
    costs: dict[str, list[float]] = {}
    for kind in ("all", "bare"):
        pair = make_contestants(root / kind, peer, "per-device")
        try:
            for contestant in pair:
                if kind == "bare":
                    bare(contestant)
                say(f"starting {contestant.name} with {kind} filters")
                contestant.start()
                stock(contestant, 1024)
            costs[kind] = medians(pair, args.rounds, lambda c: cpu_ms_of_a_get(c, args.seconds))
        finally:
            for contestant in pair:
                contestant.stop()
    (ours, theirs), (ours_bare, theirs_bare) = costs["all"], costs["bare"]
    return [
        TableRow(
            "small GET, all filters", "GETs per CPU s", 1000 / ours, 1000 / theirs, "no lower than bare"
        ),
        TableRow("small GET, bare", "GETs per CPU s", 1000 / ours_bare, 1000 / theirs_bare, ""),
        TableRow("all filters to bare, CPU", "times", ours / ours_bare, theirs / theirs_bare, "ours <= 1.25"),
    ]


def long_work(root: Path, peer: Path, args: argparse.Namespace) -> list[TableRow]:
    """Measure large objects, archives and deletions."""
    pair = make_contestants(root / "long", peer, "per-device")
    archive = archive_of(args.files)
    try:
        for contestant in pair:
            contestant.start()
            say(f"{contestant.name}: a large object of {args.segments} MiB")
            make_large(contestant, args.segments)
            ask(contestant, "PUT", f"{ACCOUNT}/unpacked")
        size = args.segments * MIB
        slo = medians(pair, args.rounds, lambda c: rate_of(c, "slo", size))
        plain = medians(pair, args.rounds, lambda c: rate_of(c, "plain", size))
        created, deleted = [], []
        for contestant in pair:
            say(f"{contestant.name}: an archive of {args.files} files")
            created.append(extraction(contestant, archive, args.files))
            deleted.append(deletion(contestant, args.files))
    finally:
        for contestant in pair:
            contestant.stop()
    return [
        TableRow(f"large object of {args.segments} segments", "MB/s", slo[0], slo[1], ""),
        TableRow("plain object of that size", "MB/s", plain[0], plain[1], ""),
        TableRow("large to plain", "times", slo[0] / plain[0], slo[1] / plain[1], "ours >= 0.8"),
        TableRow(f"extraction of {args.files} files", "files/s", created[0], created[1], ">= 4x"),
        TableRow(f"deletion of {args.files} objects", "objects/s", deleted[0], deleted[1], ">= 4x"),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 0, or 1 after an error message."""
    options = parser("filters", __doc__, seconds=6.0)
    options.add_argument("--segments", type=int, default=1000, help="segments of 1 MiB of the large object")
    options.add_argument("--files", type=int, default=5000, help="files of the archive")
    args = options.parse_args(argv)

    def measure(folder: Path, peer: Path, args: argparse.Namespace) -> list[TableRow]:
        groups = (("small", small_gets), ("long", long_work))
        return [
            row for name, rows in groups if re.search(args.only, name) for row in rows(folder, peer, args)
        ]

    return print_rows("filters", args, measure)


if __name__ == "__main__":
    raise SystemExit(main())
