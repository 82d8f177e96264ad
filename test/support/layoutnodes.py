"""Nodes with a layout: folders on a disk, a controller that publishes, and a network between them."""

from __future__ import annotations

import os
import random
import shutil
from types import SimpleNamespace

from swift.base.clock import ManualClock
from swift.cluster.rings import Rings
from swift.cluster.transport import BackendResponse, TransportError
from swift.http.body import InMemoryBody
from swift.http.request import Request
from swift.layout.agent import NAME, LayoutAgent, LayoutAgentSettings
from swift.layout.fetching import LayoutClient
from swift.platform.disk import Disk
from swift.policy.policy import Policies, Policy
from swift.ring import builderfile
from swift.ring.builder import RingBuilder
from swift.ring.layoutfiles import LayoutFolder, create_keys, install, publish, read_private_key
from swift.ring.ringfile import encode
from swift.runtime.daemon import PassReport
from swift.runtime.layoutpages import LayoutPages
from swift.runtime.report import Counters
from swift.runtime.sharerun import ShareResult
from swift.telemetry.telemetry import Telemetry


class Crash(BaseException):
    """The process ended."""


class FailingDisk(Disk):
    """Ends the process before the change number ``at``, or fails there with an error number."""

    def __init__(self, at=10**9, code=None):
        self.at, self.code, self.count, self.changes = at, code, 0, []

    def _step(self, name):
        self.count += 1
        self.changes.append(name)
        if self.code is None and self.count > self.at:
            raise Crash
        if self.code is not None and self.count == self.at + 1:
            raise OSError(self.code, os.strerror(self.code))


def _failing(name):
    def call(self, *args, **options):
        self._step(name)
        return getattr(Disk(), name)(*args, **options)

    return call


for _name in ("open", "write", "fsync", "rename", "unlink", "mkdir", "fchmod"):
    setattr(FailingDisk, _name, _failing(_name))


PORT = 6202
KINDS = ("account", "container", "object")


class Words:
    """A log that keeps its lines."""

    def __init__(self):
        self.lines = []

    def _keep(self, message, *_args, **_options):
        self.lines.append(message)

    notice = warning = error = exception = _keep

    def debug(self, _message, **_options):
        """Drop it."""

    info = debug


class Network:
    """A transport between nodes by number; node n has the address 10.0.<n // 250>.<n % 250>."""

    def __init__(self):
        self.pages = {}
        #: Pairs of numbers between which nothing passes, and numbers of nodes that are away.
        self.cut, self.away = set(), set()
        #: Number of a node → a function that makes the bytes that it sends instead.
        self.liars = {}
        self.requests = []

    def of(self, number):
        """Return the transport of a node."""
        return SimpleNamespace(stream=lambda request: self._stream(number, request))

    def _stream(self, source, request):
        target = number_of(request.node.ip)
        self.requests.append((source, target, request.path))
        if {source, target} & self.away or frozenset((source, target)) in self.cut:
            raise TransportError("no connection")
        response = self.pages[target].handle(Request("GET", request.path))
        body = response.read_body()
        if target in self.liars and response.status == 200:
            body = self.liars[target](request.path, body)
        answer = BackendResponse(response.status, response.headers, stream=InMemoryBody(body))
        return SimpleNamespace(response=lambda: answer)


def ip_of(number):
    """Return the address of a node."""
    return f"10.0.{number // 250}.{number % 250}"


def number_of(ip):
    """Return the node of an address."""
    _ten, _zero, high, low = map(int, ip.split("."))
    return high * 250 + low


class LayoutNodes:
    """Nodes 0 to ``count`` - 1 with one layout each; the controller runs on node 0."""

    def __init__(self, root, count, *, seed=1, **options):
        self.root, self.network, self.clock = root, Network(), ManualClock(1.7e9)
        self.rng = random.Random(seed)
        self.builders = {kind: RingBuilder(3, 1, 0) for kind in KINDS}
        self.policies = Policies([Policy(0, "gold", is_default=True)])
        self.options = options
        self.folders, self.agents = {}, {}
        for number in range(count):
            for builder in self.builders.values():
                builder.add_device(region=1, zone=1, ip=ip_of(number), port=PORT, device="sda", weight=1)
        self._rebalance()
        controller = root / "0"
        controller.mkdir()
        create_keys(str(controller), "c1")
        self.key = read_private_key(str(controller))
        for number in range(count):
            self.add_node(number)

    def _rebalance(self):
        for kind, builder in self.builders.items():
            builder.id = kind
            builder.rebalance(seed=f"{kind} {builder.version}")

    def add_node(self, number, *, rings=True):
        """Make the folder and the agent of a node, with the rings of now."""
        folder = self.folders[number] = self.root / str(number)
        folder.mkdir(exist_ok=True)
        if number:
            shutil.copy(self.folders[0] / "layout.pub", folder)
        for name, data in self.files().items() if rings else ():
            (folder / name).write_bytes(data)
        self.network.pages[number] = LayoutPages(str(folder))
        self.restart(number)

    def restart(self, number, *, folder=None):
        """Begin with a new process of the agent."""
        self.log = Words()
        telemetry = Telemetry(self.log)
        settings = LayoutAgentSettings(**self.options)
        path = str(self.folders[number])
        self.agents[number] = LayoutAgent(
            folder or LayoutFolder(path),
            Rings(path, self.policies, clock=self.clock),
            LayoutClient(self.network.of(number), NAME, settings),
            settings,
            telemetry=telemetry,
            rng=random.Random(self.rng.random()),
        )
        return self.agents[number]

    def files(self):
        """Return the content of the ring and builder files of the builders."""
        found = {}
        for kind, builder in self.builders.items():
            found[f"{kind}.ring.gz"] = encode(builder.table(), f"{kind}.ring.gz")
            found[f"{kind}.builder"] = builderfile.dumps(builder._fields())
        return found

    def publish(self):
        """Change every ring, and publish that on node 0; return the files."""
        for builder in self.builders.values():
            device = self.rng.choice(builder.live_devs)
            builder.change_device(device["id"], weight=device["weight"] + 1)
        self._rebalance()
        files = self.files()
        publish(str(self.folders[0]), self.key, files, clock=self.clock)
        return files

    def manifest(self, number=0):
        """Return the manifest file of a node."""
        return (self.folders[number] / "layout.manifest").read_bytes()

    def install(self, number, data, files):
        """Install a manifest on a node without its agent."""
        return install(str(self.folders[number]), data, files)

    def run(self, number):
        """Run a pass of a node's agent; return the counts and the recon page."""
        agent = self.agents[number]
        counters = Counters(Telemetry(Words()), NAME)
        run = agent.begin("layout", SimpleNamespace(counters=counters, clock=self.clock))
        for unit in run.plan():
            run.do(unit)
        result = ShareResult(run.facts(), counters.counts)
        run.end()
        report = agent.report(PassReport({"layout": result}, 0.1, self.clock.time()))
        return counters.counts, report["layout"]

    def run_all(self, numbers=None):
        """Run a pass of each node in random order."""
        chosen = list(self.folders if numbers is None else numbers)
        self.rng.shuffle(chosen)
        for number in chosen:
            self.run(number)

    def versions(self):
        """Return the version of each node."""
        found = {}
        for number, folder in self.folders.items():
            installed = LayoutFolder(str(folder)).installed()
            found[number] = installed.manifest.version if installed else 0
        return found

    def has(self, number, files):
        """Return True if a node has exactly these files."""
        return all((self.folders[number] / name).read_bytes() == data for name, data in files.items())
