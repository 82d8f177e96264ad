"""Object servers on green threads that speak over real sockets, with rings, and contexts for daemons."""

import logging
import os
import subprocess
import time
from array import array
from types import SimpleNamespace

from swift import green
from swift.aio.supervisor import answers
from swift.base.hashing import PathHasher
from swift.cluster.client import HttpTransport
from swift.cluster.rings import Rings
from swift.cluster.transport import TransportError
from swift.http.request import Request
from swift.obj.server import ObjectServer
from swift.obj.settings import ObjectSettings
from swift.obj.stores import make_stores
from swift.platform import sockets
from swift.platform.mounts import Devices
from swift.policy.policies import Policies
from swift.policy.policy import ErasureCode, Policy
from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Runner, Schedule
from swift.runtime.httpd import HttpServer
from swift.runtime.selection import Selection
from swift.telemetry.log import Log
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.ports import free_ports
from test.support.tiers import EVERYWHERE, tier_settings

GOLD = Policy(0, "gold", is_default=True)
EC = Policy(1, "ec21", ec=ErasureCode("liberasurecode_rs_vand", 2, 1, 1000))
PARTITIONS = 16
HASHER = PathHasher(b"p", b"s")


class SkewedClock:
    """The machine's clock, which a test sets forward."""

    def __init__(self):
        self.ahead_s = 0.0

    def time(self):
        return time.time() + self.ahead_s

    def monotonic(self):
        return time.monotonic() + self.ahead_s


def log_to(lines):
    """A log whose warnings and errors are lines of a list."""
    logger = logging.Logger("lines", logging.WARNING)
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger.addHandler(handler)
    return Log(logger)


class Ways:
    """The ways from one node to the others, of which some are ``cut`` (their ports)."""

    def __init__(self, transport):
        self._transport = transport
        self.cut = set()

    def _check(self, port):
        if port in self.cut:
            raise TransportError(f"nothing comes to port {port}")

    def request(self, ip, port, *words, **named):
        self._check(port)
        return self._transport.request(ip, port, *words, **named)

    def open(self, ip, port, *words, **named):
        self._check(port)
        return self._transport.open(ip, port, *words, **named)


class ObjectNode:
    """One object server with one device ``d<number>``, and short ways to ask it."""

    def __init__(self, root, number, clock, server=ObjectServer, *, ec=EC, tier=EVERYWHERE, **options):
        self.number = number
        self.device = f"d{number}"
        self.root = root / f"node{number}"
        self.path = self.root / self.device
        self.path.mkdir(parents=True)
        (self.root / "recon").mkdir()
        self.clock = clock
        self.listener = sockets.listen("127.0.0.1", 0, 64)
        self.port = self.listener.getsockname()[1]
        self.lines = []
        self.telemetry = Telemetry(log_to(self.lines))
        self.ways = Ways(HttpTransport(self.telemetry.metrics))
        self.context = BackendContext(
            devices=Devices(str(self.root), mount_check=False),
            hasher=HASHER,
            policies=Policies([GOLD, ec]),
            telemetry=self.telemetry,
            clock=clock,
            transport=self.ways,
            ring_ip="127.0.0.1",
            ring_port=self.port,
        )
        self.settings = ObjectSettings(replication_lock_timeout=5, **options)
        self.tier = tier_settings(self.root / "tier") if tier else None
        self.stores = make_stores(self.context, self.settings, tier=self.tier)
        self.app = server(self.context, self.settings, self.stores)
        #: (method, path) of every request that came over the network.
        self.heard = []
        self.start()

    def handle(self, request):
        self.heard.append((request.method, request.raw_path))
        return self.app.handle(request)

    def start(self):
        if self.listener.fileno() < 0:
            self.listener = sockets.listen("127.0.0.1", self.port, 64)
        self.server = HttpServer(self.handle, self.telemetry, client_timeout_s=5.0)
        self.task = green.spawn(self.server.serve, self.listener)

    def stop(self):
        self.server.stop(grace_s=0.0)
        self.task.kill()
        self.listener.close()

    def ask(self, method, path, at=None, body=b"", **headers):
        """``path`` is below the device, e.g. ``/3/a/c/o``; ``at`` the time of a change."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if at is not None:
            named.setdefault("x-timestamp", f"{at:.5f}")
        if method == "PUT":
            named.setdefault("content-type", "text/plain")
            named["content-length"] = str(len(body))
        answer = self.app.handle(Request(method, f"/{self.device}{path}", named, body))
        return SimpleNamespace(status=answer.status, headers=answer.headers, content=answer.read_body())

    def files(self, policy="objects"):
        """The names in all hash directories, with their partition."""
        found = self.path.glob(f"{policy}/*/*/*/*")
        return sorted(f"{path.relative_to(self.path).parts[1]}/{path.name}" for path in found)

    def hashes(self, partition, policy=GOLD):
        """The partition's suffix hashes, found out anew."""
        store = self.stores.of(policy)
        return dict(store.hashes(self.device, str(partition), policy, list_suffixes=True))

    def wipe(self):
        """An empty disk in place of the old one."""
        for base, folders, files in os.walk(self.path, topdown=False):
            for name in files:
                os.unlink(os.path.join(base, name))
            for name in folders:
                os.rmdir(os.path.join(base, name))


class ObjectNodes:
    """Some of them; partition p lies on nodes p, p+1, … (modulo their number), as many as it has replicas."""

    def __init__(self, root, count, replicas=3, ec_replicas=3, regions=None, **options):
        self.root = root
        self.clock = SkewedClock()
        self.count = count
        self.regions = regions or [1] * count
        self.nodes = [ObjectNode(root, number, self.clock, **options) for number in range(count)]
        self.etc = root / "etc"
        self.etc.mkdir()
        self.write_ring("object", replicas)
        self.write_ring("object-1", ec_replicas)

    def __getitem__(self, number):
        return self.nodes[number]

    def write_ring(self, name, replicas, *, shift=0, next_part_power=None):
        records = tuple(
            {
                "id": node.number,
                "region": self.regions[node.number],
                "zone": node.number,
                "ip": "127.0.0.1",
                "port": node.port,
                "replication_ip": "127.0.0.1",
                "replication_port": node.port,
                "device": node.device,
                "weight": 1.0,
                "meta": f"node{node.number}",
            }
            for node in self.nodes
        )
        rows = tuple(
            array("H", [(part + row + shift) % self.count for part in range(PARTITIONS)])
            for row in range(replicas)
        )
        table = RingTable(records=records, rows=rows, part_shift=28, next_part_power=next_part_power)
        save_table(table, str(self.etc / f"{name}.ring.gz"))

    def rings(self):
        """Fresh from their files."""
        return Rings(str(self.etc), self.nodes[0].context.policies)

    def runner(self, number, make, settings, **selection):
        """The daemon ``make`` of a node, ready to run."""
        node = self.nodes[number]
        chosen = Selection.parse(**selection)
        task = make(node.context, self.rings(), settings, node.stores, selection=chosen)
        recon = ReconFile(str(node.root / "recon"), "object", node.telemetry.log)
        runner = Runner(
            task, Schedule(interval_s=30), telemetry=node.telemetry, recon=recon, is_limited=bool(chosen)
        )
        runner.task = task
        return runner

    def once(self, number, make, settings, **selection):
        """One pass of a daemon on a node; its counts."""
        runner = self.runner(number, make, settings, **selection)
        assert runner.once()
        return runner.task

    def stop(self):
        for node in self.nodes:
            node.stop()


def partition_of(name):
    """The partition of ``/a/c/<name>`` in rings of 16."""
    return int.from_bytes(HASHER.digest("a", "c", name)[:4], "big") >> 28


class Rsyncd:
    """An rsync daemon with a module ``node<n>`` for each node; ``module`` is the option of replicators."""

    def __init__(self, root, count):
        self.port = free_ports(1)[0]
        conf = root / "rsyncd.conf"
        modules = "".join(
            f"[node{n}]\npath = {root}/node{n}\nread only = no\nmax connections = 8\n"
            f"lock file = {root}/node{n}.lock\n"
            for n in range(count)
        )
        user = f"uid = {os.getuid()}\ngid = {os.getgid()}\nuse chroot = no\n"
        conf.write_text(f"{user}pid file = {root}/rsyncd.pid\nlog file = {root}/rsyncd.log\n{modules}")
        words = ["rsync", "--daemon", "--no-detach", f"--config={conf}", f"--port={self.port}"]
        words.append("--address=127.0.0.1")
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while not answers("127.0.0.1", self.port):
            assert time.monotonic() < deadline
            green.sleep(0.02)

    @property
    def module(self):
        return f"rsync://127.0.0.1:{self.port}/{{meta}}"

    def stop(self):
        self._process.terminate()
        self._process.wait(10)
