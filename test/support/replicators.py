"""Database replicators of a simulated cluster, run by hand, over a transport that may lose messages."""

import sqlite3

from swift.account.replicator import KIND as ACCOUNT
from swift.base.clock import ManualClock
from swift.cluster.transport import TransportError
from swift.container.replicator import KIND as CONTAINER
from swift.dbsync.daemon import DatabaseReplicator
from swift.dbsync.settings import ReplicatorSettings
from swift.platform.mounts import Devices
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Runner, Schedule
from swift.runtime.selection import Selection
from swift.telemetry.log import silent_log
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.sim import node_port

KINDS = {"account": ACCOUNT, "container": CONTAINER}


class LossyTransport:
    """Hands messages on; ``lose(port, path, body)`` says which get lost: None, "request" or "answer"."""

    def __init__(self, transport):
        self._transport = transport
        self.lose = lambda port, path, body: None

    def _maybe(self, port, path, body, send):
        fate = self.lose(port, path, body)
        if fate == "request":
            raise TransportError("lost")
        answer = send()
        if fate == "answer":
            raise TransportError("the answer was lost")
        return answer

    def request(self, ip, port, method, path, headers, body=b"", **timeouts):
        return self._maybe(
            port,
            path,
            body,
            lambda: self._transport.request(ip, port, method, path, headers, body, **timeouts),
        )

    def open(self, ip, port, method, path, headers, body=b"", **timeouts):
        if self.lose(port, path, b"upload"):
            raise TransportError("lost")
        return self._transport.open(ip, port, method, path, headers, body, **timeouts)


class Replicators:
    """``run(kind, *numbers)`` makes one pass on nodes."""

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
        chosen = ReplicatorSettings(**{"node_timeout": 2.0, **settings})
        return DatabaseReplicator(context, ring, KINDS[kind], chosen, selection=selection or Selection())

    def run(self, kind, *numbers, selection=None, **settings):
        """One pass on each node; the recon facts of the last."""
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
            assert runner.once()
            facts = recon.read()
        return facts

    # what is on disk

    def folder(self, kind, number, *names, partition=None):
        """The hash directory of an account or container on a node."""
        view = getattr(self.sim.context.rings, kind).view()
        name_hash = self.sim.hasher.hexdigest(*names)
        part = view.partition_of(bytes.fromhex(name_hash)) if partition is None else partition
        device = self.sim.root / f"node{number}" / f"sdb{number}"
        return device / f"{kind}s" / str(part) / name_hash[-3:] / name_hash

    def files(self, kind, number, *names):
        """The database files of a node, oldest first."""
        return sorted(self.folder(kind, number, *names).glob("*.db"))

    def holders(self, kind, *names):
        """The numbers of the nodes that have the database."""
        return sorted(int(path.parts[-6][4:]) for path in self._all(kind, *names))

    def _all(self, kind, *names):
        name_hash = self.sim.hasher.hexdigest(*names)
        return {path.parent for path in self.sim.root.glob(f"node*/*/{kind}s/*/*/{name_hash}/*.db")}

    def rows(self, number, *names):
        """The object (or container) rows of a node, read from its file."""
        table = "object" if len(names) > 1 else "container"
        kind = "container" if len(names) > 1 else "account"
        query = f"SELECT * FROM {table} ORDER BY name"
        connection = sqlite3.connect(self.files(kind, number, *names)[-1])
        try:
            return [row[1:] for row in connection.execute(query)]
        finally:
            connection.close()
