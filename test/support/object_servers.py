"""Object servers over real sockets, and stub nodes with archives or uploads."""

import errno
import gc
import http.client
import json
import logging
import os
import subprocess
import threading
import time
from array import array
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

from swift import green
from swift.aio.supervisor import accepts_connections
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cluster.exchange import HttpTransport
from swift.cluster.pool import ConnectionPool
from swift.cluster.rings import Rings
from swift.cluster.transport import BackendResponse, NodeTimeouts, TransportError
from swift.http import fields
from swift.http.body import InMemoryBody
from swift.http.request import Request
from swift.obj.server import ObjectServer
from swift.obj.settings import ObjectSettings
from swift.obj.stores import EngineSettings, make_stores
from swift.platform import sockets
from swift.platform.devices import Devices
from swift.policy.policy import ErasureCode, Policy
from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Runner, Schedule
from swift.runtime.httpd import HttpServer
from swift.runtime.selection import Selection
from swift.store.packed.settings import PackedSettings
from swift.store.tier.settings import TierSettings
from swift.telemetry.log import Log
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import make_node
from test.support.processes import free_ports
from test.support.tiers import EVERYWHERE, engine, on_node, packed_names, packs, tier_settings

# --- objectnodes ------------------------------------------------------------------------------------

# Object servers on green threads that speak over real sockets, with rings, and contexts for daemons.


GOLD = Policy(0, "gold", is_default=True, diskfile_module=engine("replication"))
EC = Policy(
    1,
    "ec21",
    ec=ErasureCode("liberasurecode_rs_vand", 2, 1, 1000),
    diskfile_module=engine("erasure_coding"),
)
PARTITIONS = 16
HASHER = PathHasher(b"p", b"s")


class SkewedClock:
    """The machine's clock with an offset that the test sets."""

    def __init__(self):
        self.ahead_s = 0.0

    def time(self):
        return time.time() + self.ahead_s

    def monotonic(self):
        return time.monotonic() + self.ahead_s


def log_to(lines):
    """Return a log that appends warnings and errors to a list."""
    logger = logging.Logger("lines", logging.WARNING)
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger.addHandler(handler)
    return Log(logger)


class BadSector:
    """A handle, or an engine, that cannot read one object: not even look at it, or only not its body."""

    def __init__(self, inner, object_hash, *, looks):
        self._inner = inner
        self._hash = object_hash
        self._looks = looks

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def for_purpose(self, _effort):
        return self

    def call(self, effort, function, *args):
        def on_engine(engine, *args):
            return function(BadSector(engine, self._hash, looks=self._looks), *args)

        return self._inner.call(effort, on_engine, *args)

    @property
    def maintenance(self):
        return BadSector(self._inner.maintenance, self._hash, looks=self._looks)

    def find(self, location, options):
        if self._looks and location.hash == self._hash:
            raise OSError(errno.EIO, "bad sector")
        return self._inner.find(location, options)

    def open(self, key, options):
        stored = self._inner.open(key, options)
        return _BadBody(stored) if key.hash == self._hash else stored


class _BadBody:
    def __init__(self, stored):
        self._stored = stored

    def __getattr__(self, name):
        return getattr(self._stored, name)

    def blocks(self, *_range):
        yield b"begin"
        raise OSError(errno.EIO, "bad sector")


class NodeLinks:
    """The network links from one node to the others; ``cut`` has the unreachable ports."""

    def __init__(self, transport):
        self._transport = transport
        self.cut = set()

    def _check(self, port):
        if port in self.cut:
            raise TransportError(f"nothing comes to port {port}")

    def request(self, request):
        port = request.node.port
        self._check(port)
        return self._transport.request(request)

    def stream(self, request):
        port = request.node.port
        self._check(port)
        return self._transport.stream(request)


class ObjectNode:
    """One object server with one device ``d<number>``, and helpers for requests to it."""

    def __init__(
        self, root, number, clock, server=ObjectServer, *, ec=EC, tier=EVERYWHERE, packed=None, **options
    ):
        self.number = number
        self.is_packed = packs(number) if packed is None else packed
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
        self.ways = NodeLinks(HttpTransport(ConnectionPool(self.telemetry.metrics)))
        self.context = BackendContext(
            devices=Devices(str(self.root), mount_check=False),
            hasher=HASHER,
            policies=on_node([GOLD, ec], self.is_packed),
            telemetry=self.telemetry,
            clock=clock,
            transport=self.ways,
            ring_ip="127.0.0.1",
            ring_port=self.port,
        )
        self.settings = ObjectSettings(replication_lock_timeout=5, **options)
        self.tier = tier_settings(self.root / "tier") if tier else TierSettings()
        self._server = server
        self._begin()
        #: (method, path) of every request that came over the network.
        self.heard = []
        self.start()

    def _begin(self):
        packed = PackedSettings(state_path=str(self.root / "packed-locks"))
        self.stores = make_stores(
            self.context,
            self.settings,
            engines=EngineSettings(self.tier, packed),
            at_exit=lambda _close: None,
        )
        self.app = self._server(self.context, self.settings, self.stores)

    def crash(self, *, loses_index=False):
        """Restart the server as after a kill, optionally without the index."""
        self.stores = self.app = None
        gc.collect()
        for path in self.path.rglob("packed/index/*.mdb") if loses_index else ():
            path.unlink()
        self._begin()

    def engine(self, policy=GOLD):
        """Return the engine of a policy on this node."""
        return self.stores.engine(self.context.policies.get(policy.index))

    def own(self, policy):
        """Return a policy as this node has it."""
        return self.context.policies.get(policy.index)

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
        """Send a request; ``path`` is below the device, e.g. ``/3/a/c/o``; ``at`` is its timestamp."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if at is not None:
            named.setdefault("x-timestamp", f"{at:.5f}")
        if method == "PUT":
            named.setdefault("content-type", "text/plain")
            named["content-length"] = str(len(body))
        answer = self.app.handle(Request(method, f"/{self.device}{path}", named, body))
        return SimpleNamespace(status=answer.status, headers=answer.headers, content=answer.read_body())

    def files(self, policy="objects"):
        """Return the names in all hash directories, with their partition."""
        found = self.path.glob(f"{policy}/*/*/*/*")
        return sorted(f"{path.relative_to(self.path).parts[1]}/{path.name}" for path in found)

    def hashes(self, partition, policy=GOLD):
        """Return the partition's suffix hashes, recalculated."""
        store, own = self.engine(policy), self.own(policy)
        return dict(store.hashes(self.device, str(partition), own, list_suffixes=True))

    def names(self, policy=GOLD):
        """Return partition → hash → names of files or of packed records."""
        if self.is_packed:
            return packed_names(self.engine(policy), self.device, self.own(policy))
        found = {}
        for path in self.path.glob(f"objects-{policy.index}/*/*/*/*" if policy.index else "objects/*/*/*/*"):
            _objects, partition, _suffix, name, file = path.relative_to(self.path).parts
            found.setdefault(partition, {}).setdefault(name, []).append(file)
        return found

    def has_partition(self, partition, policy=GOLD):
        """Return True if the node stores any object of a partition."""
        folder = f"objects-{policy.index}" if policy.index else "objects"
        if (self.path / folder / str(partition)).exists():
            return True
        return self.is_packed and str(partition) in self.engine(policy).partitions(
            self.device, self.own(policy)
        )

    def wipe(self):
        """Replace the disk by an empty one and restart its processes."""
        for base, folders, files in os.walk(self.path, topdown=False):
            for name in files:
                os.unlink(os.path.join(base, name))
            for name in folders:
                os.rmdir(os.path.join(base, name))
        if self.is_packed:
            self.crash()


class ObjectNodes:
    """Several object nodes; partition p is on nodes p, p+1, … modulo their number, one per replica."""

    def __init__(self, root, count, replicas=3, ec_replicas=3, regions=None, packed=None, **options):
        self.root = root
        self.clock = SkewedClock()
        self.count = count
        self.regions = regions or [1] * count
        is_packed = packs if packed is None else packed.__contains__
        self.nodes = [
            ObjectNode(root, number, self.clock, packed=is_packed(number), **options)
            for number in range(count)
        ]
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
        """Return the rings, reloaded from their files."""
        return Rings(str(self.etc), self.nodes[0].context.policies)

    def runner(self, number, make, settings, **selection):
        """Return the daemon ``make`` of a node, ready to run."""
        node = self.nodes[number]
        chosen = Selection.parse(**selection)
        task = make(node.context, self.rings(), settings, node.stores, selection=chosen)
        recon = ReconFile(str(node.root / "recon"), "object", node.telemetry.log)
        runner = Runner(
            task, Schedule(interval_s=30), telemetry=node.telemetry, recon=recon, is_limited=bool(chosen)
        )
        runner.task = task
        return runner

    def run_once(self, number, make, settings, **selection):
        """Run one pass of a daemon on a node; return its counters."""
        runner = self.runner(number, make, settings, **selection)
        assert runner.run_once()
        return runner.task

    def stop(self):
        for node in self.nodes:
            node.stop()


def partition_of(name):
    """Return the partition of ``/a/c/<name>`` in rings of 16."""
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
        while not accepts_connections("127.0.0.1", self.port):
            assert time.monotonic() < deadline
            green.sleep(0.02)

    @property
    def module(self):
        return f"rsync://127.0.0.1:{self.port}/{{meta}}"

    def stop(self):
        self._process.terminate()
        self._process.wait(10)


# --- fragments --------------------------------------------------------------------------------------

# Nodes that have fragment archives, or something else, as a test says.


OLD, NEW = Timestamp(5), Timestamp(6)


class Body(InMemoryBody):
    """A body that records whether it was closed."""

    is_closed = False

    def close(self):
        self.is_closed = True


def archive(index, at=OLD, *, durable=True, etag="e", listed=None, data=b"data", **more):
    """Return the response of a node with this archive of the upload ``at``."""
    headers = {
        fields.SYSMETA_EC_FRAG_INDEX: str(index),
        fields.SYSMETA_EC_ETAG: etag,
        fields.BACKEND_DATA_TIMESTAMP: at.internal,
        "content-length": str(len(data)),
    }
    if durable:
        headers[fields.BACKEND_DURABLE_TIMESTAMP] = at.internal
    if listed is not None:
        headers[fields.BACKEND_FRAGMENTS] = listed if isinstance(listed, str) else json.dumps(listed)
    return BackendResponse(200, {**headers, **more}, stream=Body(data))


def missing(at=None, status=404):
    """Return the response of a node without an archive, optionally with a deletion time."""
    known = {} if at is None else {fields.BACKEND_TIMESTAMP: at if isinstance(at, str) else at.internal}
    return BackendResponse(status, known, stream=Body(b"text"), reason="Reason")


class Nodes:
    """An iterator over the primaries in order, then the handoffs."""

    def __init__(self, primaries, handoffs):
        self.primary_count = primaries
        self.uses_slow = True
        members = [make_node(n) for n in range(primaries)]
        members += [replace(make_node(n), index=None) for n in range(primaries, primaries + handoffs)]
        self._left = iter(members)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._left)


class FragmentCluster:
    """Nodes with scripted responses in order; None: the request fails."""

    def __init__(self, accepts_connections):
        self.responses = [
            list(answer) if isinstance(answer, tuple) else [answer] for answer in accepts_connections
        ]
        self.every = [reply for answer in self.responses for reply in answer if reply is not None]
        self.asked = []
        self.preferences = []
        self.unresponsive = set()
        self.suspected = set()

    def is_unresponsive(self, to):
        return to.id in self.unresponsive

    def suspect(self, to, *, is_first=False):
        self.suspected.add(to.id)

    def stream_response(self, request):
        self.asked.append(request.node.id)
        self.preferences.append(json.loads(request.headers[fields.BACKEND_FRAGMENT_PREFERENCES]))
        return self.response(request.node)

    def response(self, to):
        return self.responses[to.id].pop(0)


# --- talks ------------------------------------------------------------------------------------------

# Nodes that take uploads and say what a test wants, for sinks and what stands on them.


class StubNode:
    """An exchange with scripted responses: ``says`` has the results of waiting, in turn."""

    def __init__(self, *says, fails=(), final=201):
        self.continue_headers = {}
        self.sent = []
        self.trailers = "none"
        self.is_aborted = False
        self._says = list(says)
        self._fails = fails
        self._final = final

    def _may(self, what):
        if what in self._fails:
            raise TransportError(f"{what} failed")

    def send(self, data):
        self._may("send")
        self.sent.append(bytes(data))

    def finish(self, trailers=None):
        self._may("finish")
        self.trailers = trailers

    def wait_continue(self):
        self._may("wait")
        said = self._says.pop(0) if self._says else {}
        if isinstance(said, int):
            return BackendResponse(said, {}, stream=InMemoryBody(b"text"))
        self.continue_headers = said
        return None

    def wait_response_start(self, within_s):
        return True

    def response(self):
        self._may("reply")
        return BackendResponse(self._final, {}, stream=InMemoryBody(b"done"))

    def abort(self):
        self.is_aborted = True


class StubCluster:
    """A fake of ``Backends``: nodes by number, and the recorded reports about them."""

    def __init__(self, **talks):
        self.talks = {int(name[1:]): talk for name, talk in talks.items()}
        self.failures = []
        self.judged = []
        self.asked = []
        self.unresponsive = set()

    write_timeouts = NodeTimeouts(1.0, 1.0)

    def stream(self, request):
        self.asked.append((request.node.id, dict(request.headers)))
        return self.talks.get(request.node.id)

    def record_failure(self, to, error, headers):
        self.failures.append((to.id, str(error)))

    def record_status(self, to, status):
        self.judged.append((to.id, status))

    def fails_over(self, to, exchange, nodes):
        return to.id in self.unresponsive and nodes.defer(to)

    def is_clock_behind(self, to, answer, nodes):
        return False

    def record_ready(self, to):
        return

    def set_reserving(self, to, reserves):
        return

    def response(self, to, exchange, headers):
        try:
            return exchange.response()
        except TransportError as error:
            self.record_failure(to, error, headers)
            return None


# --- loadclient -------------------------------------------------------------------------------------

# A client of an object server that goes on and on, and counts what it is answered.


class LoadClient(threading.Thread):
    """Writes and reads at one port, on one or many connections, until ``stop`` is set.

    ``partition_of`` gives the partition of a name, where the server has a ring.
    """

    def __init__(self, port, stop, *, device="sda", name="", keeps=True, partition_of=lambda name: 1):
        super().__init__()
        self.partition_of = partition_of
        self.port, self.device, self.stopping, self.keeps = port, device, stop, keeps
        self.prefix = name or f"{keeps:d}"
        #: Statuses, and errors as they read, with how often they came.
        self.seen = Counter()

    def run(self):
        connection, turn = None, 0
        while not self.stopping.is_set():
            turn += 1
            obj = f"{self.prefix}-{turn % 50}"
            path = f"/{self.device}/{self.partition_of(obj)}/a/c/{obj}"
            if connection is None or not self.keeps:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                headers = {"X-Timestamp": f"{time.time():.5f}", "Content-Type": "text/plain"}
                for method, body, sent in (("PUT", b"x" * 2000, headers), ("GET", None, {})):
                    connection.request(method, path, body, sent)
                    answer = connection.getresponse()
                    answer.read()
                    self.seen[answer.status] += 1
            except (OSError, http.client.HTTPException) as error:
                self.seen[repr(error)] += 1
                connection = None
