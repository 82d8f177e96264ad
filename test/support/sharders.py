"""Sharders of a simulated cluster, run by hand, and what clients see of ``/a/c`` meanwhile."""

import json
from urllib.parse import quote

from swift.base.clock import SystemClock
from swift.container.sharding.settings import ContainerSharderSettings
from swift.container.sharding.task import ContainerSharder
from swift.gateway.internal_client import InternalClient
from swift.platform.mounts import Devices
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Runner
from swift.runtime.stop import Stop
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.reapers import Words
from test.support.sim import NODES, node_port

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
    """``run(*numbers)`` makes one pass on nodes, on all of them by default.

    Each is a new process, unless ``keeps`` lets them go on from pass to pass.
    """

    def __init__(self, sim, root, *, keeps=False):
        self._kept = {} if keeps else None
        self.sim = sim
        self.transport = sim.transport
        self.root = root
        self.log = Words()
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
            task, settings.schedule, telemetry=telemetry, recon=recon, clock=clock, stop=Stop(clock)
        )
        assert runner.once()
        return recon.read()["sharding_stats"]


def put(sim, *names):
    for name in names:
        assert sim("PUT", f"/a/c/{quote(name)}", {"content-type": "t/p"}, b"x").status == 201


def rows(sim, **params):
    query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in params.items())
    answer = sim("GET", f"/a/c?format=json&{query}")
    assert answer.status == 200, answer
    return [row.get("name") or row["subdir"] for row in json.loads(answer.body)]


def state(sim):
    return sim("HEAD", "/a/c", {"x-newest": "true"}).headers["x-backend-sharding-state"]


def shards(sim):
    """The shards that a root lists."""
    headers = {"x-backend-record-type": "shard", "x-newest": "true"}
    return json.loads(sim("GET", "/a/c?format=json&states=listing", headers).body)


def settle(sim, sharders, passes=12, **options):
    """Pass after pass until nothing is being split."""
    for _ in range(passes):
        told = sharders.run(**options)
        sim.cache.values.clear()
        busy = {"completed_completed", "cleaved_success", "cleaved_failure", "misplaced_attempted"}
        if not busy & told.keys() and "reported" not in "".join(told):
            return
    raise AssertionError(f"not settled after {passes} passes: {told}")
