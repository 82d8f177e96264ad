"""What rows cost: replicating them, putting them, listing them, at container servers alone; and what a
replicator's pass costs over databases to which nothing happened.

    python -m tools.bench.databases --databases 100000 --peer /var/tmp/compare/peer/bin --json databases.json

Counted are CPU seconds of the processes at work (server, replicator), so that a busy machine or a slow disk
changes little. Two nodes with one device each are made below ``--root``; with ``--peer`` the same is measured
with the peer's programs, whose replicator needs an /etc/swift of its own and therefore root.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swift.aio.supervisor import accepts_connections
from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.container import objecttable
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.entry import module_words
from swift.ring.builder import RingBuilder
from swift.runtime.workers import die_with_parent
from tools.bench.options import bare_parser
from tools.bench.peer import OwnEtc
from tools.bench.sides import print_figures

SUFFIX = b"bench"
ACCOUNT = "AUTH_bench"
LISTED_ROWS = 10_000
CONNECTIONS = 16
#: Rows per second and CPU second of ours to the peer's that are aimed at.
GOALS = {"replicate": 3.0, "put": 4.0, "list": 5.0, "unchanged": 10.0}
#: Passes of a replicator that are measured, and the pause between them.
PASSES, INTERVAL_S = 3, 5
#: As many databases tell what one costs where each is visited.
PEER_DATABASES = 3000
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class DatabaseFigure:
    """One measurement: the number of units (rows, listings) and their CPU seconds."""

    work: str
    units: int
    cpu_s: float
    wall_s: float

    @property
    def per_cpu_s(self) -> float:
        """Return the units per CPU second."""
        return self.units / self.cpu_s if self.cpu_s else float("inf")


class Pair:
    """Two container servers with a device each; ``peer`` is the directory of the peer's commands, or None."""

    def __init__(self, root: Path, peer: Path | None):
        self.root = root
        self._peer = peer
        self.etc = root / "etc"
        self.etc.mkdir(parents=True)
        (self.etc / "swift.conf").write_text(f"[swift-hash]\nswift_hash_path_suffix = {SUFFIX.decode()}\n")
        self._hasher = PathHasher(b"", SUFFIX)
        self.ports = [_free_port() for _ in range(2)]
        self._servers: list[subprocess.Popen[bytes]] = []
        builder = RingBuilder(0, 2, 1)
        for node in (0, 1):
            (root / f"n{node}" / f"sd{node}").mkdir(parents=True)
            builder.add_device(
                region=1, zone=node, ip="127.0.0.1", port=self.ports[node], device=f"sd{node}", weight=1.0
            )
            self._write_conf(node)
        builder.rebalance(seed=1)
        builder.write_ring(str(self.etc / "container.ring.gz"))

    def _conf(self, node: int) -> Path:
        return self.etc / f"{node}.conf"

    def _write_conf(self, node: int) -> None:
        user = pwd.getpwuid(os.geteuid()).pw_name
        self._conf(node).write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {self.ports[node]}\nworkers = 0\nuser = {user}\n"
            f"swift_dir = {self.etc}\ndevices = {self.root}/n{node}\nmount_check = false\n"
            f"recon_cache_path = {self.root}\nlog_level = ERROR\n"
            "[pipeline:main]\npipeline = container-server\n"
            "[app:container-server]\nuse = egg:swift#container\n"
            f"[container-replicator]\nmax_diffs = 100000\ninterval = {INTERVAL_S}\ndatabases_per_second = 0\n"
        )

    def _command(self, name: str, *words: str) -> list[str]:
        if self._peer is None:
            return [sys.executable, *module_words(name), *words]
        return OwnEtc(self.root, self.etc).command(self._peer / f"swift-{name}", *words)

    def _environment(self) -> dict[str, str]:
        # Both sides are called swift: our path must not shadow the peer's package.
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" or self._peer is None}
        return {**kept, "PYTHONWARNINGS": "ignore"}

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Serve; raises ``ConfigError`` when a server does not come up."""
        try:
            for node in (0, 1):
                self._servers.append(self._spawn(node))
            deadline = time.monotonic() + 30
            for port in self.ports:
                while not accepts_connections("127.0.0.1", port):
                    if time.monotonic() > deadline:
                        raise ConfigError(f"a server did not come up; see the logs in {self.root}")
                    time.sleep(0.05)
            yield
        finally:
            for server in self._servers:
                server.kill()
                server.wait()
            self._servers.clear()

    def _spawn(self, node: int) -> subprocess.Popen[bytes]:
        with open(self.root / f"{node}.log", "ab") as log:
            return subprocess.Popen(
                self._command("container-server", str(self._conf(node))),
                stdout=log,
                stderr=log,
                env=self._environment(),
                preexec_fn=die_with_parent,
            )

    def server_cpu_s(self, node: int) -> float:
        """Return the CPU seconds of a server so far."""
        return cpu_s_of(self._servers[node].pid)

    def replicate(self, node: int) -> float:
        """Run one pass of a node's replicator; return its CPU seconds without the start of Python."""
        command = self._command("container-replicator", str(self._conf(node)), "once")
        used = []
        # The second pass finds nothing to do: what it costs is the start.
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(command, capture_output=True, env=self._environment(), check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode:
                raise ConfigError(f"the replicator ended with {done.returncode}; see {self.root}")
            used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return max(0.0, used[0] - used[1])

    def passes(self, node: int, count: int) -> float:
        """Return the median CPU seconds of ``count`` passes, replicator and servers, after the first ones."""
        command = self._command("container-replicator", str(self._conf(node)))
        replicator = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment(),
            preexec_fn=die_with_parent,
        )
        try:
            used, before = [], 0.0
            ended = 0.0
            # Two passes to get to know everything, and the beginning of the next one.
            for number in range(count + 2):
                ended = self._next_pass(replicator, ended)
                now = sum(map(cpu_s_of, (replicator.pid, *(server.pid for server in self._servers))))
                if number >= 2:
                    used.append(now - before)
                before = now
        finally:
            replicator.kill()
            replicator.wait()
        return statistics.median(used)

    def _next_pass(self, replicator: subprocess.Popen[bytes], last: float) -> float:
        """Wait until recon reports a pass that ended after ``last``; return its end."""
        while True:
            if replicator.poll() is not None:
                raise ConfigError(f"the replicator ended with {replicator.returncode}; see {self.root}")
            with contextlib.suppress(OSError, ValueError):
                told = json.loads((self.root / "container.recon").read_text())
                ended = float(told.get("replication_last", 0))
                if ended > last:
                    return ended
            time.sleep(0.2)

    def copy_databases(self) -> None:
        """Copy all databases of node 0 to node 1."""
        shutil.copytree(f"{self.root}/n0/sd0/containers", f"{self.root}/n1/sd1/containers")

    # --- content ---------------------------------------------------------------------------------

    def make_container(self, node: int, container: str, names: Sequence[str]) -> None:
        """Create a database with these rows, without a server."""
        place = DatabasePath(
            f"{self.root}/n{node}/sd{node}", "containers", "0", self._hasher.hexdigest(ACCOUNT, container)
        )
        broker = ContainerBroker(place, Engine(), ACCOUNT, container)
        time_put = Timestamp(1_700_000_000)
        broker.create(time_put, 0, created_at=time_put)
        rows = [_row(name) for name in names]
        broker.write(lambda connection: objecttable.merge_rows(connection, rows))
        broker.close()

    def path(self, container: str, name: str = "") -> str:
        """Return the URL path on node 0."""
        return f"/sd0/0/{ACCOUNT}/{container}" + (f"/{name}" if name else "")

    def count(self, node: int, container: str) -> int:
        """Return the number of rows that a server reports."""
        path = self.path(container).replace("/sd0/", f"/sd{node}/")
        with _Client(self.ports[node]) as client:
            return int(client.ask("HEAD", path).get("x-container-object-count", "0"))


def cpu_s_of(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def _row(name: str) -> ObjectRow:
    return ObjectRow(name, "1700000001.00000", 1024, "text/plain", "d41d8cd98f00b204e9800998ecf8427e")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class _Client:
    """A keep-alive connection that reads whole responses, with minimal cost."""

    def __init__(self, port: int):
        self._sock = socket.create_connection(("127.0.0.1", port))
        self._file = self._sock.makefile("rb")

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()
        self._sock.close()

    def ask(self, method: str, path: str, headers: str = "") -> dict[str, str]:
        """Return the headers of a successful response; raise ``ConfigError`` for others."""
        self._sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
        status = self._file.readline()
        found = {}
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            found[name.lower()] = value.strip()
        if method != "HEAD" and b" 204 " not in status:
            self._file.read(int(found.get("content-length", "0")))
        if not status.startswith(b"HTTP/1.1 2"):
            raise ConfigError(f"{method} {path} was answered with {status.decode('latin-1').strip()}")
        return found


# --- measurements -----------------------------------------------------------------------------------


def measure_replication(pair: Pair, rows: int) -> DatabaseFigure:
    """Measure a pass that sends node 0's rows to node 1; both nodes have as many different rows."""
    for node, letter in ((0, "a"), (1, "b")):
        pair.make_container(node, "replicated", [f"{letter}{n:08}" for n in range(rows)])
    with pair.running():
        pair.count(1, "replicated")
        before, started = pair.server_cpu_s(1), time.monotonic()
        cpu_s = pair.replicate(0)
        cpu_s += pair.server_cpu_s(1) - before
        wall_s = time.monotonic() - started
        found = pair.count(1, "replicated")
    if found != 2 * rows:
        raise ConfigError(f"node 1 has {found} rows after replication, not {2 * rows}")
    return DatabaseFigure("replicate", rows, cpu_s, wall_s)


def measure_puts(pair: Pair, rows: int) -> DatabaseFigure:
    """Measure PUTs of single rows over a few connections, and their merge by a listing."""
    pair.make_container(0, "put", [])
    headers = (
        "X-Timestamp: 1700000001.00000\r\nX-Size: 1024\r\nX-Content-Type: text/plain\r\n"
        "X-Etag: d41d8cd98f00b204e9800998ecf8427e\r\nX-Backend-Storage-Policy-Index: 0\r\n"
        "Content-Length: 0\r\n"
    )
    failures: list[BaseException] = []

    def put(first: int) -> None:
        try:
            with _Client(pair.ports[0]) as client:
                for n in range(first, rows, CONNECTIONS):
                    client.ask("PUT", pair.path("put", f"o{n:08}"), headers)
        except BaseException as error:
            failures.append(error)

    with pair.running():
        pair.count(0, "put")
        before, started = pair.server_cpu_s(0), time.monotonic()
        threads = [threading.Thread(target=put, args=(n,)) for n in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = pair.count(0, "put")
        figure = DatabaseFigure("put", rows, pair.server_cpu_s(0) - before, time.monotonic() - started)
    if failures or found != rows:
        raise ConfigError(f"{found} of {rows} rows were put; {failures[0] if failures else ''}")
    return figure


def measure_listings(pair: Pair, listings: int) -> DatabaseFigure:
    """Measure JSON listings of 10,000 rows."""
    pair.make_container(0, "listed", [f"o{n:08}" for n in range(LISTED_ROWS)])
    path = f"{pair.path('listed')}?format=json&limit={LISTED_ROWS}"
    with pair.running(), _Client(pair.ports[0]) as client:
        client.ask("GET", path)
        before, started = pair.server_cpu_s(0), time.monotonic()
        for _ in range(listings):
            client.ask("GET", path)
        return DatabaseFigure("list", listings, pair.server_cpu_s(0) - before, time.monotonic() - started)


def measure_unchanged(pair: Pair, databases: int) -> DatabaseFigure:
    """Measure a pass that finds nothing to do: both nodes have the same databases."""
    for number in range(databases):
        pair.make_container(0, f"unchanged{number}", [])
    pair.copy_databases()
    started = time.monotonic()
    with pair.running():
        cpu_s = pair.passes(0, PASSES)
    return DatabaseFigure("unchanged", databases, cpu_s, time.monotonic() - started)


def measure(root: Path, peer: Path | None, args: argparse.Namespace) -> dict[str, DatabaseFigure]:
    """Return all figures of one side."""
    found = {}
    databases = min(args.databases, PEER_DATABASES) if peer else args.databases
    for name, run, amount in (
        ("replicate", measure_replication, args.rows),
        ("put", measure_puts, args.rows),
        ("list", measure_listings, args.listings),
        ("unchanged", measure_unchanged, databases),
    ):
        if args.only not in name:
            continue
        figure = run(Pair(root / name, peer), amount)
        found[name] = figure
        side = "theirs" if peer else "ours"
        print(f"{side} {name}: {figure.per_cpu_s:.1f} per CPU second, {figure.wall_s:.1f} s", file=sys.stderr)
    return found


def table(ours: Mapping[str, DatabaseFigure], theirs: Mapping[str, DatabaseFigure] | None) -> str:
    """Return the figures as Markdown."""
    units = {
        "replicate": "rows replicated",
        "put": "rows put",
        "list": f"listings of {LISTED_ROWS:,} rows",
        "unchanged": "unchanged databases passed",
    }
    lines = ["| per CPU second | ours | theirs | ratio | goal |", "|---|---:|---:|---:|---:|"]
    for name, figure in ours.items():
        other = theirs[name] if theirs else None
        cells = [
            units[name],
            f"{figure.per_cpu_s:,.1f}",
            f"{other.per_cpu_s:,.1f}" if other else "-",
            f"**{figure.per_cpu_s / other.per_cpu_s:.1f}x**" if other else "-",
            f"{GOALS[name]:g}x",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = bare_parser("databases", __doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows replicated and put")
    parser.add_argument("--listings", type=int, default=50, help="listings made")
    parser.add_argument("--databases", type=int, default=20_000, help="databases that a replicator passes")
    parser.add_argument("--only", default="", help="only what has this text in its name")
    parser.add_argument("--peer", type=Path, help="directory of the peer's commands, to measure it too")
    parser.add_argument("--root", type=Path, help="where databases are put; a temporary directory")
    parser.add_argument("--json", type=Path, default=Path("databases.json"), help="write the figures here")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 0, or 1 after an error message."""
    args = _parser().parse_args(argv)
    return print_figures("databases", args, measure, table, rows=args.rows)


if __name__ == "__main__":
    raise SystemExit(main())
