"""The cost of repair: idle passes, refilling a wiped device, rebuilding one, auditing.

    python -m tools.bench.healing --objects 20000 --peer /var/tmp/compare/peer/bin --json healing.json

Object servers with a device each stand below ``--root``, replicated objects and erasure coded ones are put
to them directly, and the daemons are run as operators run them. Counted are seconds by the clock, and CPU
seconds of the daemon and of all servers. With ``--peer`` the same is done with the programs of the peer,
which need an /etc/swift of their own and therefore root. ``--root`` should be a filesystem of its own, as
devices are.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import os
import pwd
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

from swift.aio.supervisor import accepts_connections
from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.ec.archive import ArchiveEncoder
from swift.ec.codec import Codec
from swift.entry import module_words
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.ring.device import DeviceRecord
from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from swift.runtime.workers import die_with_parent
from tools.bench.databases import cpu_s_of
from tools.bench.options import bare_parser
from tools.bench.peer import OwnEtc
from tools.bench.sides import print_figures

SUFFIX = b"bench"
NODES = 6
REPLICAS = 3
#: Partitions of both rings.
PART_POWER = 8
DATA, PARITY, EC_TYPE = 4, 2, "liberasurecode_rs_vand"
SEGMENT_BYTES = 1 << 20
#: Passes that are measured where nothing is to do, after those in which a daemon gets to know everything.
PASSES, WARM_UP, INTERVAL_S = 3, 2, 5
#: Clients that fill devices, and the share of objects that is looked at after a refill: every such one.
CLIENTS, SAMPLED = 4, 50
#: How many times more than the peer's is aimed at, by the clock (refilling) or by CPU.
GOALS = {
    "unchanged": 5.0,
    "refill by rsync": 3.0,
    "refill by ssync": 3.0,
    "reconstruct": 2.0,
    "audit": 4.0,
}
UNITS = {
    "unchanged": "objects passed with nothing to do",
    "refill by rsync": "objects refilled by rsync",
    "refill by ssync": "objects refilled by SSYNC",
    "reconstruct": "archives rebuilt",
    "audit": "small objects audited",
}


@dataclass(frozen=True)
class HealingFigure:
    """One measurement."""

    units: int
    cpu_s: float
    wall_s: float

    @property
    def per_cpu_s(self) -> float:
        """Return the units per CPU second of all processes."""
        return self.units / self.cpu_s if self.cpu_s else float("inf")

    @property
    def per_s(self) -> float:
        """Return the units per second of elapsed time."""
        return self.units / self.wall_s if self.wall_s else float("inf")


class HealingSite:
    """Object servers with a device each; ``peer`` is the directory of the peer's commands, or None."""

    def __init__(
        self, root: Path, peer: Path | None, ports: Sequence[int], rsync_port: int, *, packed: bool = False
    ):
        self.root = root
        self._peer = peer
        self.is_packed = packed
        self.ports = list(ports)
        self._rsync_port = rsync_port
        self.etc = root / "etc"
        self.etc.mkdir(parents=True)
        self._hasher = PathHasher(b"", SUFFIX)
        self._children: list[subprocess.Popen[bytes]] = []
        (self.etc / "swift.conf").write_text(
            f"[swift-hash]\nswift_hash_path_suffix = {SUFFIX.decode()}\n"
            f"[storage-policy:0]\nname = gold\ndefault = yes\n{self._engine('replication')}"
            f"[storage-policy:1]\nname = ec\npolicy_type = erasure_coding\nec_type = {EC_TYPE}\n"
            f"{self._engine('erasure_coding')}"
            f"ec_num_data_fragments = {DATA}\nec_num_parity_fragments = {PARITY}\n"
            f"ec_object_segment_size = {SEGMENT_BYTES}\n"
        )
        for node in range(NODES):
            self.device(node).mkdir(parents=True)
            for method in ("rsync", "ssync"):
                self._write_conf(node, method)
        self._write_ring("object", REPLICAS)
        self._write_ring("object-1", DATA + PARITY)

    def _engine(self, policy_type: str) -> str:
        return f"diskfile_module = egg:swift#{policy_type}.packed\n" if self.is_packed else ""

    def device(self, node: int) -> Path:
        """Return the only device of a node."""
        return self.root / f"n{node}" / f"sd{node}"

    def _conf(self, node: int, method: str) -> Path:
        return self.etc / f"{node}-{method}.conf"

    def _write_conf(self, node: int, method: str) -> None:
        user = pwd.getpwuid(os.geteuid()).pw_name
        module = f"rsync://127.0.0.1:{self._rsync_port}/{{device}}"
        recon = self.root / f"recon{node}"
        recon.mkdir(exist_ok=True)
        self._conf(node, method).write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {self.ports[node]}\nworkers = 0\nuser = {user}\n"
            f"swift_dir = {self.etc}\ndevices = {self.root}/n{node}\nmount_check = false\n"
            f"recon_cache_path = {recon}\nlog_level = ERROR\n"
            "[pipeline:main]\npipeline = object-server\n"
            "[app:object-server]\nuse = egg:swift#object\nreplication_concurrency_per_device = 0\n"
            f"[object-replicator]\nsync_method = {method}\nrsync_module = {module}\ninterval = {INTERVAL_S}\n"
            f"[object-reconstructor]\ninterval = {INTERVAL_S}\n"
            "[object-auditor]\nfiles_per_second = 0\nbytes_per_second = 0\nzero_byte_files_per_second = 0\n"
            f"[packed]\nstate_path = {self.root}/memory{node}\n"
        )

    def _write_ring(self, name: str, replicas: int) -> None:
        records: tuple[DeviceRecord, ...] = tuple(
            {
                "id": node,
                "region": 1,
                "zone": node,
                "ip": "127.0.0.1",
                "port": self.ports[node],
                "replication_ip": "127.0.0.1",
                "replication_port": self.ports[node],
                "device": f"sd{node}",
                "weight": 1.0,
                "meta": "",
            }
            for node in range(NODES)
        )
        parts = range(1 << PART_POWER)
        rows = tuple(array("H", [(part + row) % NODES for part in parts]) for row in range(replicas))
        table = RingTable(records=records, rows=rows, part_shift=32 - PART_POWER)
        save_table(table, str(self.etc / f"{name}.ring.gz"))

    # --- processes -----------------------------------------------------------------------------------

    def _command(self, name: str, *words: str) -> list[str]:
        if self._peer is None:
            return [sys.executable, *module_words(name), *words]
        return OwnEtc(self.root, self.etc).command(self._peer / f"swift-{name}", *words)

    def _environment(self) -> dict[str, str]:
        # Both sides are called swift: our path must not shadow the peer's package.
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" or self._peer is None}
        return {**kept, "PYTHONWARNINGS": "ignore"}

    def _spawn(self, command: Sequence[str], log: str) -> subprocess.Popen[bytes]:
        with open(self.root / log, "ab") as file:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment(),
                preexec_fn=die_with_parent,
            )

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Serve; raises ``ConfigError`` when a server does not come up."""
        try:
            for node in range(NODES):
                command = self._command("object-server", str(self._conf(node, "rsync")))
                self._children.append(self._spawn(command, f"{node}.log"))
            self._children.append(self._spawn(self._rsyncd(), "rsync.log"))
            deadline = time.monotonic() + 60
            for port in (*self.ports, self._rsync_port):
                while not accepts_connections("127.0.0.1", port):
                    if time.monotonic() > deadline:
                        raise ConfigError(f"a server did not come up; see the logs in {self.root}")
                    time.sleep(0.05)
            yield
        finally:
            for child in self._children:
                child.kill()
                child.wait()
            self._children.clear()

    def _rsyncd(self) -> list[str]:
        conf = self.root / "rsyncd.conf"
        modules = "".join(f"[sd{n}]\npath = {self.root}/n{n}\nread only = no\n" for n in range(NODES))
        conf.write_text(f"uid = {os.getuid()}\ngid = {os.getgid()}\nuse chroot = no\n{modules}")
        return ["rsync", "--daemon", "--no-detach", f"--config={conf}", f"--port={self._rsync_port}"]

    def _servers_cpu_s(self) -> float:
        return sum(cpu_s_of(child.pid) for child in self._children)

    def once(self, daemon: str, nodes: Sequence[int], method: str = "ssync") -> tuple[float, float]:
        """Run one pass of some nodes' daemons in turn; return CPU seconds of all, and elapsed seconds."""
        cpu_s, started_s = -self._servers_cpu_s(), time.monotonic()
        for node in nodes:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = self._command(daemon, str(self._conf(node, method)), "once")
            done = subprocess.run(command, capture_output=True, env=self._environment(), check=False)
            if done.returncode:
                raise ConfigError(f"{daemon} ended with {done.returncode}; see {self.root}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_s += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu_s + self._servers_cpu_s(), time.monotonic() - started_s

    def passes(self, daemon: str, node: int, key: str) -> float:
        """Return the median CPU seconds of passes of a running daemon, including the servers."""
        child = self._spawn(self._command(daemon, str(self._conf(node, "ssync"))), f"{daemon}.log")
        try:
            used, before, ended = [], 0.0, 0.0
            for number in range(WARM_UP + PASSES):
                ended = self._next_pass(child, node, key, ended)
                now = cpu_s_of(child.pid) + self._servers_cpu_s()
                if number >= WARM_UP:
                    used.append(now - before)
                before = now
        finally:
            child.kill()
            child.wait()
        return statistics.median(used)

    def _next_pass(self, child: subprocess.Popen[bytes], node: int, key: str, last: float) -> float:
        """Wait until recon reports a pass that ended after ``last``; return its end."""
        while True:
            if child.poll() is not None:
                raise ConfigError(f"a daemon ended with {child.returncode}; see {self.root}")
            with contextlib.suppress(OSError, ValueError):
                told = json.loads((self.root / f"recon{node}/object.recon").read_text())
                ended = float(told.get(key) or 0)
                if ended > last:
                    return ended
            time.sleep(0.2)

    # --- content -------------------------------------------------------------------------------------

    def fill(self, count: int, size: int) -> int:
        """Put replicated objects; return the number of copies on node 0."""
        body, own = random.Random(1).randbytes(size), 0
        with _clients(self.ports) as ask:
            for number in range(count):
                part, nodes = self._place("r", number, REPLICAS)
                own += 0 in nodes
                for node in nodes:
                    ask(node, f"/sd{node}/{part}/a/r/o{number}", {}, body)
        return own

    def fill_others(self, count: int, size: int) -> Sequence[int]:
        """Put ``count`` replicated objects of node 0 on the other primaries only; return their numbers."""
        body = random.Random(1).randbytes(size)
        own = itertools.islice((n for n in itertools.count() if 0 in self._place("r", n, REPLICAS)[1]), count)
        numbers = list(own)

        def put(some: Sequence[int]) -> None:
            with _clients(self.ports) as ask:
                for number in some:
                    part, nodes = self._place("r", number, REPLICAS)
                    for node in nodes:
                        if node:
                            ask(node, f"/sd{node}/{part}/a/r/o{number}", {}, body)

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(put, [numbers[at::CLIENTS] for at in range(CLIENTS)]))
        return numbers

    def fill_coded(self, count: int, size: int) -> int:
        """Put erasure coded objects; return the number of archives on node 0."""
        body = random.Random(2).randbytes(size)
        codec = Codec(EC_TYPE, DATA, PARITY)
        encoder = ArchiveEncoder(codec)
        cuts = [encoder.encode(body[at : at + SEGMENT_BYTES]) for at in range(0, size, SEGMENT_BYTES)]
        archives = [b"".join(fragments[index] for fragments in cuts) for index in range(codec.fragments)]
        headers = {
            fields.BACKEND_STORAGE_POLICY_INDEX: "1",
            fields.SYSMETA_EC_ETAG: md5(body, usedforsecurity=False).hexdigest(),
            fields.SYSMETA_EC_CONTENT_LENGTH: str(size),
            fields.SYSMETA_EC_SCHEME: codec.scheme,
            fields.SYSMETA_EC_SEGMENT_SIZE: str(SEGMENT_BYTES),
        }
        with _clients(self.ports) as ask:
            for number in range(count):
                part, nodes = self._place("c", number, DATA + PARITY)
                for index, node in enumerate(nodes):
                    own = {**headers, fields.SYSMETA_EC_FRAG_INDEX: str(index)}
                    ask(node, f"/sd{node}/{part}/a/c/o{number}", own, archives[index])
        return count

    def _place(self, container: str, number: int, replicas: int) -> tuple[int, list[int]]:
        digest = self._hasher.digest("a", container, f"o{number}")
        part = int.from_bytes(digest[:4], "big") >> (32 - PART_POWER)
        return part, [(part + row) % NODES for row in range(replicas)]

    def copies(self, numbers: Iterable[int]) -> int:
        """Return the number of these replicated objects that node 0 has."""
        return self._found("r", numbers, REPLICAS, "0")

    def archives(self, count: int) -> int:
        """Return how many of ``count`` erasure coded objects have an archive on node 0."""
        return self._found("c", range(count), DATA + PARITY, "1")

    def _found(self, container: str, numbers: Iterable[int], replicas: int, policy: str) -> int:
        found = 0
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=60)
        with contextlib.closing(connection):
            for number in numbers:
                part, nodes = self._place(container, number, replicas)
                if 0 in nodes:
                    headers = {fields.BACKEND_STORAGE_POLICY_INDEX: policy}
                    connection.request("HEAD", f"/sd0/{part}/a/{container}/o{number}", headers=headers)
                    answer = connection.getresponse()
                    answer.read()
                    found += answer.status == 200
        return found

    def wipe(self) -> None:
        """Remove everything on the device of node 0."""
        for found in self.device(0).iterdir():
            if found.is_dir():
                shutil.rmtree(found)
        (self.device(0) / "objects").mkdir()
        # A server notices within a second that its device is another one.
        time.sleep(2)


Ask = Callable[[int, str, HeaderMap, bytes], None]


@contextlib.contextmanager
def _clients(ports: Sequence[int]) -> Iterator[Ask]:
    """Return clients that PUT over keep-alive connections."""
    connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for port in ports]
    stamp = f"{time.time() - 1000:.5f}"

    def ask(node: int, path: str, headers: HeaderMap, body: bytes) -> None:
        sent = {"X-Timestamp": stamp, "Content-Type": "application/octet-stream", **headers}
        connections[node].request("PUT", path, body=body, headers=sent)
        answer = connections[node].getresponse()
        answer.read()
        if answer.status != 201:
            raise ConfigError(f"PUT {path} was answered {answer.status}")

    try:
        yield ask
    finally:
        for connection in connections:
            connection.close()


def measure(root: Path, peer: Path | None, args: argparse.Namespace) -> dict[str, HealingFigure]:
    """Return all figures of one side; raises ``ConfigError`` when a daemon failed."""
    is_packed = args.packed and peer is None
    field = HealingSite(root, peer, _free_ports(NODES), _free_ports(1)[0], packed=is_packed)
    found: dict[str, HealingFigure] = {}
    others = range(1, NODES)
    with field.running():
        # The packed engine is always refilled by SSYNC.
        methods = ("ssync",) if is_packed else ("rsync", "ssync")
        if args.refill:
            sample = field.fill_others(args.refill, args.size)[::SAMPLED]
            for method in methods:
                field.wipe()
                cpu_s, wall_s = field.once("object-replicator", others, method)
                _check(field.copies(sample), len(sample), f"refilled by {method}")
                found[f"refill by {method}"] = HealingFigure(args.refill, cpu_s, wall_s)
            # The packed engine needs no rsync: it is compared with either method.
            found.setdefault("refill by rsync", found["refill by ssync"])
            return found
        copies = field.fill(args.objects, args.size)
        cpu_s, wall_s = field.once("object-auditor", [0])
        found["audit"] = HealingFigure(copies, cpu_s, wall_s)
        cpu_s = field.passes("object-replicator", 0, "object_replication_last")
        found["unchanged"] = HealingFigure(copies, cpu_s, 0.0)
        for method in methods:
            field.wipe()
            cpu_s, wall_s = field.once("object-replicator", others, method)
            _check(field.copies(range(args.objects)), copies, f"refilled by {method}")
            found[f"refill by {method}"] = HealingFigure(copies, cpu_s, wall_s)
        if args.coded:
            archives = field.fill_coded(args.coded, args.coded_size)
            field.wipe()
            cpu_s, wall_s = field.once("object-reconstructor", others)
            _check(field.archives(args.coded), archives, "rebuilt")
            found["reconstruct"] = HealingFigure(archives, cpu_s, wall_s)
    return found


def _check(got: int, wanted: int, what: str) -> None:
    if got != wanted:
        raise ConfigError(f"{got} of {wanted} were {what}")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in sockets]


def table(ours: Mapping[str, HealingFigure], theirs: Mapping[str, HealingFigure] | None) -> str:
    """Return the figures as Markdown."""
    lines = [
        "| work | ours/s | theirs/s | ratio | ours per CPU s | theirs per CPU s | ratio | goal |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, figure in ours.items():
        other = theirs[name] if theirs else None
        cells = [UNITS[name]]
        for mine, its in (
            (figure.per_s, other and other.per_s),
            (figure.per_cpu_s, other and other.per_cpu_s),
        ):
            is_known = mine != float("inf")
            cells.append(f"{mine:,.0f}" if is_known else "-")
            cells.append(f"{its:,.0f}" if is_known and its else "-")
            cells.append(f"**{mine / its:.1f}x**" if is_known and its else "-")
        lines.append(f"| {' | '.join(cells)} | {GOALS[name]:g}x |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = bare_parser("healing", __doc__)
    parser.add_argument("--objects", type=int, default=20_000, help="replicated objects")
    parser.add_argument("--size", type=int, default=1024, help="their bytes")
    parser.add_argument(
        "--refill", type=int, default=0, help="measure only how a wiped device of so many objects is refilled"
    )
    parser.add_argument("--coded", type=int, default=1000, help="erasure coded objects")
    parser.add_argument("--coded-size", type=int, default=1 << 20, help="their bytes")
    parser.add_argument("--packed", action="store_true", help="measure ours with the packed engine")
    parser.add_argument("--peer", type=Path, help="directory of the peer's commands, to measure it too")
    parser.add_argument("--root", type=Path, help="where devices are put; a temporary directory")
    parser.add_argument("--json", type=Path, default=Path("healing.json"), help="write the figures here")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 0, or 1 after an error message."""
    args = _parser().parse_args(argv)
    return print_figures("healing", args, measure, table, objects=args.objects)


if __name__ == "__main__":
    raise SystemExit(main())
