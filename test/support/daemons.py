"""Fakes for daemons, and runners of daemons in a simulated cluster."""

import json
import sqlite3
from dataclasses import replace
from urllib.parse import quote

from swift import green
from swift.account.reaper import AccountReaper, AccountReaperSettings
from swift.account.replicator import KIND as ACCOUNT
from swift.base.clock import ManualClock, SystemClock
from swift.base.hashing import PathHasher
from swift.cluster.transport import BackendResponse, TransportError
from swift.container.replicator import KIND as CONTAINER
from swift.container.sharding.settings import ContainerSharderSettings
from swift.container.sharding.task import ContainerSharder
from swift.dbsync.daemon import DatabaseReplicator
from swift.dbsync.settings import ReplicatorSettings
from swift.gateway.internal_client import InternalClient
from swift.platform.devices import Devices
from swift.policy.policy import Policies, Policy
from swift.ring.device import Node
from swift.runtime.backendapp import BackendContext
from swift.runtime.cursor import Cursor
from swift.runtime.daemon import PassContext, Runner, Schedule
from swift.runtime.report import Counters, Progress
from swift.runtime.selection import Selection
from swift.runtime.stop import StopRequest
from swift.runtime.throttle import Throttle
from swift.telemetry.log import silent_log
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.sim import NODES, node_port

# --- errorlog ---------------------------------------------------------------------------------------

# A log for tests of what operators are told.


class ErrorLog:
    """A log that records errors and, separately, debug lines."""

    def __init__(self):
        #: (sentence, transaction)
        self.errors = []
        self.debugged = []

    @property
    def sentences(self):
        return [text for text, _txid in self.errors]

    def error(self, text, *, txid=None):
        self.errors.append((text, txid))

    def debug(self, text, *, txid=None):
        self.debugged.append((text, txid))

    def warning(self, text):
        """Ignore the line."""

    def info(self, text, *, txid=None):
        """Ignore the line."""


# --- daemons ----------------------------------------------------------------------------------------

# Fakes for daemons: a ring of a few nodes, nodes that answer by script, time that only sleeping moves.


def make_node(number, port=6200):
    """Node ``number`` with device ``d<number>`` at replication port ``port + number``."""
    return Node(
        id=number,
        region=1,
        zone=1,
        ip="10.0.0.1",
        port=1,
        replication_ip="127.0.0.1",
        replication_port=port + number,
        device=f"d{number}",
        weight=1.0,
        meta="",
        index=number,
    )


class FakeRing:
    """A ring with one partition, 7, and the same nodes for every object."""

    def __init__(self, count=3, error=None):
        self.members = tuple(make_node(number) for number in range(count))
        self.error = error

    def view(self):
        if self.error is not None:
            raise self.error
        return self

    def nodes(self, digest):
        assert len(digest) == 16
        return 7, self.members


class ScriptedNodes:
    """A transport with scripted responses by node number; all other requests get 202."""

    def __init__(self):
        self.answers = {}
        self.requests = []

    def request(self, request):
        port, method, path, headers = request.node.port, request.method, request.path, request.headers
        number = port - 6200
        self.requests.append((number, method, path, dict(headers)))
        response = self.answers.get(number, 202)
        if callable(response):
            response = response(method, path)
        if isinstance(response, TransportError):
            raise response
        return response if isinstance(response, BackendResponse) else BackendResponse(response)

    @property
    def asked(self):
        return sorted(number for number, *_ in self.requests)


class VirtualTime(ManualClock):
    """A clock that advances by sleeping; other green threads run meanwhile."""

    def __init__(self, now_s=5_000_000_000.0):
        super().__init__(now_s)
        self.slept = 0.0

    def sleep(self, seconds):
        self.advance(seconds)
        self.slept += seconds
        green.sleep()


class DaemonFixture:
    """A daemon context on a temporary folder, with fake clock, ring, log and recon."""

    def __init__(self, root, devices=("sda",), log=None):
        for name in devices:
            (root / "srv" / name).mkdir(parents=True)
        (root / "recon").mkdir()
        self.root = root / "srv"
        self.clock = VirtualTime()
        self.nodes = ScriptedNodes()
        self.telemetry = Telemetry(log or silent_log())
        self.context = BackendContext(
            devices=Devices(str(self.root), mount_check=False),
            hasher=PathHasher(b"p", b"s"),
            policies=Policies([Policy(0, "gold", is_default=True), Policy(1, "silver")]),
            telemetry=self.telemetry,
            clock=self.clock,
            transport=self.nodes,
        )
        self.stop = StopRequest(self.clock, self.clock.sleep)

    def recon(self, server_type):
        return ReconFile(str(self.root.parent / "recon"), server_type, self.telemetry.log)

    def runner(self, task, schedule=None, *, server_type="object", **more):
        return Runner(
            task,
            schedule or Schedule(interval_s=30),
            telemetry=self.telemetry,
            recon=self.recon(server_type),
            stop=self.stop,
            clock=self.clock,
            **more,
        )

    def pass_context(self, name="test", interval_s=30.0):
        return PassContext(
            Counters(self.telemetry, name),
            self.clock,
            self.stop,
            self.clock.monotonic() + interval_s,
            Cursor("", self.clock, self.telemetry.log),
            Progress(self.telemetry, self.clock, title=name, interval_s=interval_s),
            Throttle(0, self.clock, self.stop.wait),
        )


class CountingPass:
    """A pass over numbers; the test defines the work on each."""

    def __init__(self, task, share, pass_context):
        self.task, self.share, self.pass_context = task, share, pass_context

    def plan(self):
        yield from self.task.units(self)

    def do(self, unit):
        self.pass_context.counters.add("successes")
        self.task.act(self, unit)

    def facts(self):
        return {"share": self.share}

    def end(self):
        self.task.ended.append(self.share)


class CountingTask:
    """A task whose units are numbers."""

    name = "counter"

    def __init__(self, units=3, shares=("sda",), act=lambda turn, unit: None):
        self.units = units if callable(units) else lambda _turn: iter(range(units))
        self._shares = list(shares)
        self.act = act
        self.starts = []
        self.reports = []
        self.ended = []
        self.told = []

    def shares(self):
        return self._shares

    def begin(self, share, pass_context):
        self.starts.append((share, pass_context.clock.monotonic()))
        return CountingPass(self, share, pass_context)

    def progress(self, passed):
        self.told.append(passed)
        return {}

    def report(self, passed):
        self.reports.append(passed)
        return {"counter_sweep": passed.seconds, "counter_last": passed.ended_s}


class DeviceRing:
    """Partition 7 is all there is: on the first three of some devices, of which the others are handoffs.

    This node has the device ``sda``, number ``own``.
    """

    partition_count = 16
    next_part_power = None
    replica_count = 3.0
    digest = "d1"

    def __init__(self, own=0, count=5):
        self.own = make_node(own)
        named = (
            replace(make_node(number), device="sda" if number == own else f"d{number}")
            for number in range(count)
        )
        self.devices = tuple(named)

    def view(self):
        return self

    def partition_of(self, _digest):
        return 7

    def nodes(self, _digest):
        return 7, self.devices[:3]

    def primaries(self, _part):
        return self.devices[:3]

    def primary_ids(self, _part):
        return [device.id for device in self.devices[:3]]

    def parts_of(self, dev_id):
        return frozenset((7,) if dev_id < 3 else ())

    def handoffs(self, _part):
        return iter(self.devices[3:])

    def context(self, rig, **changes):
        """Return the context of a daemon of this node."""
        port = self.own.replication_port
        return replace(rig.context, ring_ip="127.0.0.1", ring_port=port, **changes)


# --- reapers ----------------------------------------------------------------------------------------

# Account reapers of a simulated cluster, run by hand.


class LogLines:
    """A log that records its lines."""

    def __init__(self):
        self.lines = []
        self._log = silent_log()

    def exception(self, message, error, txid=None):
        raise AssertionError(f"unforeseen: {message}") from error

    def __getattr__(self, level):
        if level in ("info", "warning", "error", "notice"):
            return lambda message, txid=None: self.lines.append(f"{level.upper()} {message}")
        return getattr(self._log, level)


class Reapers:
    """Account reapers; ``run(*numbers)`` runs one pass on nodes."""

    def __init__(self, sim, root):
        self.sim = sim
        self.root = root
        self.log = LogLines()
        #: Long after the times that clients of the simulated cluster write.
        self.clock = VirtualTime()

    def run(self, *numbers, stop=None, **settings):
        """Run one pass on each node; return the statistics of all."""
        total = {}
        for number in numbers:
            for event, count in self._run(number, stop, settings).items():
                total[event] = total.get(event, 0) + count
        return {event: count for event, count in total.items() if count}

    def _run(self, number, stop, settings):
        telemetry = Telemetry(self.log)
        context = BackendContext(
            devices=Devices(str(self.sim.root / f"node{number}"), mount_check=False),
            hasher=self.sim.hasher,
            policies=self.sim.policies,
            telemetry=telemetry,
            clock=self.clock,
            transport=self.sim.transport,
            ring_ip="10.0.0.1",
            ring_port=node_port("account", number),
        )
        chosen = AccountReaperSettings(**{"node_timeout": 30.0, **settings})
        folder = self.root / f"recon{number}"
        folder.mkdir(exist_ok=True)
        recon = ReconFile(str(folder), "account", telemetry.log)
        task = AccountReaper(context, self.sim.context.rings, chosen)
        runner = Runner(
            task,
            chosen.schedule,
            telemetry=telemetry,
            recon=recon,
            clock=self.clock,
            stop=stop or StopRequest(self.clock, self.clock.sleep),
        )
        runner.run_once()
        return recon.read().get("account_reaper_stats", {})


# --- replicators ------------------------------------------------------------------------------------

# Database replicators of a simulated cluster, run by hand, over a transport that may lose messages.


KINDS = {"account": ACCOUNT, "container": CONTAINER}


class LossyTransport:
    """Forwards messages; ``lose(port, path, body)`` returns the lost one: None, "request" or "answer"."""

    def __init__(self, transport):
        self._transport = transport
        self.lose = lambda port, path, body: None

    def _maybe(self, port, path, body, send):
        fate = self.lose(port, path, body)
        if fate == "request":
            raise TransportError("lost")
        response = send()
        if fate == "answer":
            raise TransportError("the answer was lost")
        return response

    def request(self, request):
        port, path, body = request.node.port, request.path, request.body
        return self._maybe(
            port,
            path,
            body,
            lambda: self._transport.request(request),
        )

    def stream(self, request):
        port, path = request.node.port, request.path
        if self.lose(port, path, b"upload"):
            raise TransportError("lost")
        return self._transport.stream(request)


class Replicators:
    """Database replicators; ``run(kind, *numbers)`` runs one pass on nodes."""

    def __init__(self, sim, root):
        self.sim = sim
        self.root = root
        self.transport = LossyTransport(sim.transport)
        #: Shortly after the times that tests write.
        self.clock = ManualClock(1_700_100_000.0)

    def task(self, kind, number, *, selection=None, **settings):
        context = BackendContext(
            devices=Devices(str(self.sim.root / f"node{number}"), mount_check=False),
            hasher=self.sim.hasher,
            policies=self.sim.policies,
            telemetry=Telemetry(silent_log()),
            clock=self.clock,
            transport=self.transport,
            ring_ip="10.0.0.1",
            ring_port=node_port(kind, number),
        )
        ring = getattr(self.sim.context.rings, kind)
        chosen = ReplicatorSettings(**{"node_timeout": 30.0, **settings})
        return DatabaseReplicator(context, ring, KINDS[kind], chosen, selection=selection or Selection())

    def run(self, kind, *numbers, selection=None, **settings):
        """Run one pass on each node; return the recon data of the last."""
        facts = {}
        for number in numbers:
            task = self.task(kind, number, selection=selection, **settings)
            folder = self.root / f"recon{number}"
            folder.mkdir(exist_ok=True)
            recon = ReconFile(str(folder), kind, task.context.telemetry.log)
            runner = Runner(
                task,
                Schedule(30, concurrency=4),
                telemetry=task.context.telemetry,
                recon=recon,
                clock=self.clock,
                is_limited=bool(selection),
            )
            assert runner.run_once()
            facts = recon.read()
        return facts

    # what is on disk

    def folder(self, kind, number, *names, partition=None):
        """Return the hash directory of an account or container on a node."""
        view = getattr(self.sim.context.rings, kind).view()
        name_hash = self.sim.hasher.hexdigest(*names)
        part = view.partition_of(bytes.fromhex(name_hash)) if partition is None else partition
        device = self.sim.root / f"node{number}" / f"sdb{number}"
        return device / f"{kind}s" / str(part) / name_hash[-3:] / name_hash

    def files(self, kind, number, *names):
        """Return the database files of a node, oldest first."""
        return sorted(self.folder(kind, number, *names).glob("*.db"))

    def holders(self, kind, *names):
        """Return the numbers of the nodes that have the database."""
        return sorted(int(path.parts[-6][4:]) for path in self._all(kind, *names))

    def _all(self, kind, *names):
        name_hash = self.sim.hasher.hexdigest(*names)
        return {path.parent for path in self.sim.root.glob(f"node*/*/{kind}s/*/*/{name_hash}/*.db")}

    def rows(self, number, *names):
        """Return the object (or container) rows of a node, read from its file."""
        table = "object" if len(names) > 1 else "container"
        kind = "container" if len(names) > 1 else "account"
        query = f"SELECT * FROM {table} ORDER BY name"
        connection = sqlite3.connect(self.files(kind, number, *names)[-1])
        try:
            return [row[1:] for row in connection.execute(query)]
        finally:
            connection.close()


# --- sharders ---------------------------------------------------------------------------------------

# Sharders of a simulated cluster, run by hand, and what clients see of ``/a/c`` meanwhile.


RECON_LISTS = ("sharding_candidates", "shrinking_candidates", "sharding_in_progress")

#: Containers of 20 objects are split into shards of 8.
SMALL = {
    "auto_shard": True,
    "shard_container_threshold": 20,
    "rows_per_shard": 8,
    "minimum_shard_size": 3,
    "shrink_threshold": 2,
    "expansion_limit": 15,
    "databases_per_second": 0,
    "conn_timeout": 5.0,
}


class Sharders:
    """Sharders; ``run(*numbers)`` runs one pass on nodes, on all of them by default.

    Each is a new process, unless ``keeps`` lets them go on from pass to pass.
    """

    def __init__(self, sim, root, *, keeps=False):
        self._kept = {} if keeps else None
        self.sim = sim
        self.transport = sim.transport
        self.root = root
        self.log = LogLines()
        #: What recon listed after the last ``run``, of all its nodes.
        self.lists = {}

    def run(self, *numbers, **options):
        total = {}
        self.lists = {}
        for number in numbers or range(1, NODES + 1):
            stats = self._run(number, {**SMALL, **options})
            lists = {name: stats["sharding"].pop(name) for name in RECON_LISTS}
            for name, what in lists.items():
                self.lists.setdefault(name, []).extend(what.get("top", what.get("all")))
            for category, counts in stats["sharding"].items():
                for event, count in counts.items():
                    name = f"{category}_{event}"
                    total[name] = total.get(name, 0) + count
        return {name: count for name, count in total.items() if count and not name.startswith("audit_")}

    def _run(self, number, options):
        telemetry = Telemetry(self.log)
        clock = SystemClock()
        context = BackendContext(
            devices=Devices(str(self.sim.root / f"node{number}"), mount_check=False),
            hasher=self.sim.hasher,
            policies=self.sim.policies,
            telemetry=telemetry,
            clock=clock,
            transport=self.transport,
            ring_ip="10.0.0.1",
            ring_port=node_port("container", number),
        )
        settings = ContainerSharderSettings(**options)
        client = InternalClient(self.sim.app.handle, "sharder", backoff_s=0.0)
        task = ContainerSharder(context, self.sim.context.rings.container, settings, client)
        if self._kept is not None:
            task = self._kept.setdefault(number, task)
        folder = self.root / f"sharder{number}"
        folder.mkdir(exist_ok=True)
        recon = ReconFile(str(folder), "container", telemetry.log)
        runner = Runner(
            task, settings.schedule, telemetry=telemetry, recon=recon, clock=clock, stop=StopRequest(clock)
        )
        assert runner.run_once()
        return recon.read()["sharding_stats"]


def put(sim, *names):
    for name in names:
        assert sim("PUT", f"/a/c/{quote(name)}", {"content-type": "t/p"}, b"x").status == 201


def rows(sim, **params):
    query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in params.items())
    response = sim("GET", f"/a/c?format=json&{query}")
    assert response.status == 200, response
    return [row.get("name") or row["subdir"] for row in json.loads(response.body)]


def state(sim):
    return sim("HEAD", "/a/c", {"x-newest": "true"}).headers["x-backend-sharding-state"]


def shards(sim):
    """Return the shards that a root lists."""
    headers = {"x-backend-record-type": "shard", "x-newest": "true"}
    return json.loads(sim("GET", "/a/c?format=json&states=listing", headers).body)


def settle(sim, sharders, passes=12, **options):
    """Run passes until no container is being split."""
    for _ in range(passes):
        counters = sharders.run(**options)
        sim.cache.values.clear()
        busy = {"completed_completed", "cleaved_success", "cleaved_failure", "misplaced_attempted"}
        if not busy & counters.keys() and "reported" not in "".join(counters):
            return
    raise AssertionError(f"not settled after {passes} passes: {counters}")
