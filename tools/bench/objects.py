"""Our object server beside the peer's, in one run: work per second of CPU.

    python -m tools.bench.objects --peer /var/tmp/compare/peer --json objects.json

Each side is one object server process on a directory of its own, without containers to tell. Rows are
measured in turn, the order swapped every round; the figure is work per second of CPU of the server, which
another load on the machine disturbs less than time on the clock. PUTs are synced to disk on both sides; reads
are of bodies that are in the page cache, as far as each side leaves them there; suffix hashes are computed
from nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import platform
import pwd
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from swift.aio.supervisor import accepts_connections
from swift.base.documents import JsonObject
from swift.base.errors import ConfigError, SwiftError
from swift.runtime.workers import die_with_parent
from tools.bench.compare import KIB, MIB, say
from tools.bench.contestants import family_of, install_peer, usage_of
from tools.bench.emulated import working_folder
from tools.bench.options import parser
from tools.bench.wrk import Load, check_wrk, run_wrk

SUFFIXES = 10_000
#: A partition has at most 4096.
PARTITIONS = 4
STOCK = 500
CLIENTS = 8
_STAMP = (("X-Timestamp", "1700000000.00000"),)


class MeasuredServer:
    """One object server of either side."""

    def __init__(self, name: str, root: Path, port: int, program: Sequence[str]):
        self.name = name
        self.root = root
        self.port = port
        self.device = root / "dev" / "sda"
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        """``ip:port``."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Create its files again, start it and wait until it responds; raises ``ConfigError``."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.device.mkdir(parents=True)
        (self.root / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = bench\n")
        conf = self.root / "object-server.conf"
        user = pwd.getpwuid(os.geteuid()).pw_name
        conf.write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {self.port}\nworkers = 0\nuser = {user}\n"
            f"swift_dir = {self.root}\ndevices = {self.root}/dev\nmount_check = false\n\n"
            "[pipeline:main]\npipeline = object-server\n\n[app:object-server]\nuse = egg:swift#object\n"
        )
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with open(self.root / "log", "wb") as log:
            self._process = subprocess.Popen(
                [*self._program, str(conf), "-v"],
                stdout=log,
                stderr=log,
                env={**environment, "PYTHONWARNINGS": "ignore"},
                preexec_fn=die_with_parent,
            )
        deadline = time.monotonic() + 60
        while not accepts_connections("127.0.0.1", self.port):
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise ConfigError(f"{self.name} did not start; see {self.root / 'log'}")
            time.sleep(0.05)

    def cpu_s(self) -> float:
        """Return the CPU seconds used so far."""
        assert self._process is not None
        return sum(usage_of(pid)[0] for pid in family_of(self._process.pid))

    def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request, read the response, and return its status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            headers = {**dict(_STAMP), "Content-Type": "application/octet-stream"}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def stop(self) -> None:
        """Stop the server."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self._process.kill()
            self._process.wait()


@dataclass(frozen=True)
class ObjectWork:
    """A measured kind of work: ``work`` runs it for some seconds and returns its amount."""

    name: str
    unit: str
    goal: float
    work: Callable[[MeasuredServer, int, int], float]
    prepare: Callable[[MeasuredServer], None] = field(default=lambda _server: None)


def put_small(server: MeasuredServer, number: int, seconds: int) -> float:
    """Put new objects of 10 KiB, each synced before it is acknowledged."""
    base = f"/sda/1/AUTH_bench/c/put-{number}-"
    load = Load("PUT", base, CLIENTS, seconds, body_bytes=10 * KIB, order="counting", headers=_STAMP)
    return _good(server, load)


def stock_small(server: MeasuredServer) -> None:
    """Store the objects for small reads."""
    for number in range(STOCK):
        server.ask("PUT", f"/sda/1/AUTH_bench/c/stock-{number}", b"x" * 10 * KIB)


def get_small(server: MeasuredServer, _number: int, seconds: int) -> float:
    """Read objects of 10 KiB that were read before."""
    return _good(server, Load("GET", "/sda/1/AUTH_bench/c/stock-", CLIENTS, seconds, count=STOCK))


def stock_large(server: MeasuredServer) -> None:
    """Store one large object."""
    server.ask("PUT", "/sda/1/AUTH_bench/c/large", b"x" * 100 * MIB)


def get_large(server: MeasuredServer, _number: int, seconds: int) -> float:
    """Read a large object; return the megabytes."""
    load = Load("GET", "/sda/1/AUTH_bench/c/large", 1, max(seconds, 4), order="fixed")
    return _good(server, load) * 100 * MIB / 1e6


def _good(server: MeasuredServer, load: Load) -> float:
    """Return the number of requests; raises ``ConfigError`` when some failed."""
    measured = run_wrk(server.host, "", load)
    if measured.bad:
        raise ConfigError(f"{server.name}: {measured.bad} bad answers to {load.method} {load.base}")
    return measured.requests


def stock_suffixes(server: MeasuredServer) -> None:
    """Create partitions full of suffixes, each with one object's name: hashing reads names only."""
    for number in range(SUFFIXES):
        suffix = f"{number // PARTITIONS:03x}"
        directory = server.device / f"objects/{100 + number % PARTITIONS}/{suffix}/{'0' * 29}{suffix}"
        directory.mkdir(parents=True)
        (directory / "1700000000.00000.data").touch()


def hash_suffixes(server: MeasuredServer, _number: int, seconds: int) -> float:
    """Hash suffixes without cached hashes, repeatedly."""
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for partition in range(100, 100 + PARTITIONS):
            (server.device / f"objects/{partition}/hashes.pkl").unlink(missing_ok=True)
            if server.ask("REPLICATE", f"/sda/{partition}") != 200:
                raise ConfigError(f"{server.name} refused REPLICATE")
        done += SUFFIXES
    return done


ROWS = (
    ObjectWork("PUT 10 KiB", "requests", 4.0, put_small),
    ObjectWork("GET 10 KiB", "requests", 4.0, get_small, stock_small),
    ObjectWork("GET 100 MiB", "MB", 3.0, get_large, stock_large),
    ObjectWork("hash 10,000 suffixes", "suffixes", 3.0, hash_suffixes, stock_suffixes),
)


def measure(
    row: ObjectWork, servers: Sequence[MeasuredServer], rounds: int, seconds: int
) -> dict[str, object]:
    """Return work per CPU second and per elapsed second of each side, medians and single rounds."""
    runs: dict[str, list[dict[str, float]]] = {server.name: [] for server in servers}
    for server in servers:
        say(f"{row.name}: preparing {server.name}")
        row.prepare(server)
        # Once unmeasured, so that both find what they read in the page cache.
        row.work(server, rounds, 1)
    for number in range(rounds):
        for server in servers if number % 2 == 0 else list(reversed(servers)):
            cpu_s, began = server.cpu_s(), time.monotonic()
            done = row.work(server, number, seconds)
            took_s, used_s = time.monotonic() - began, max(server.cpu_s() - cpu_s, 0.01)
            runs[server.name].append({"per_cpu_s": done / used_s, "per_s": done / took_s, "cpu_s": used_s})
            text = f"{done / used_s:.0f} {row.unit} per CPU s"
            say(f"{row.name} round {number + 1}/{rounds} {server.name}: {text}")
    return {
        name: {
            **{key: statistics.median(run[key] for run in results) for key in ("per_cpu_s", "per_s")},
            "rounds": results,
        }
        for name, results in runs.items()
    }


def table(results: dict[str, JsonObject]) -> str:
    """Return the comparison as Markdown."""
    lines = [
        "| work | unit | ours per CPU s | theirs per CPU s | ratio | goal | per s o/t |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in ROWS:
        if row.name not in results:
            continue
        ours, theirs = results[row.name]["ours"], results[row.name]["theirs"]
        ratio = ours["per_cpu_s"] / theirs["per_cpu_s"] if theirs["per_cpu_s"] else float("inf")
        lines.append(
            f"| {row.name} | {row.unit} | {ours['per_cpu_s']:.0f} | {theirs['per_cpu_s']:.0f} "
            f"| **{ratio:.1f}x** | {row.goal:g}x | {ours['per_s']:.0f} / {theirs['per_s']:.0f} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; return 0, or 1 after an error message."""
    args = parser("objects", __doc__, seconds=8).parse_args(argv)
    try:
        check_wrk()
        args.root.mkdir(parents=True, exist_ok=True)
        commands = install_peer(args.peer or args.root / "peer", say)
        with working_folder(args.root, xfs=args.xfs) as folder:
            program = [sys.executable, "-m", "swift.cli.object_server"]
            ours = MeasuredServer("ours", folder / "ours", 18600, program)
            theirs = MeasuredServer(
                "theirs", folder / "theirs", 18700, [str(commands / "swift-object-server")]
            )
            return _compare(args, (ours, theirs))
    except (SwiftError, OSError) as error:
        print(f"objects: {error}", file=sys.stderr)
        return 1


def _compare(args: argparse.Namespace, servers: Sequence[MeasuredServer]) -> int:
    results: dict[str, JsonObject] = {}
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.callback(server.stop)
            say(f"starting {server.name}")
            server.start()
        for row in ROWS:
            if re.search(args.only, row.name):
                results[row.name] = measure(row, servers, args.rounds, args.seconds)
    print(table(results))
    machine = {"machine": platform.platform(), "python": platform.python_version()}
    args.json.write_text(json.dumps({**machine, "seconds": args.seconds, "rows": results}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
