"""Object servers, a container and all repairing daemons, with a model of the clients' knowledge.

Time is simulated: it advances with every change. ``World.step`` makes one random change, ``heal``
repairs all faults and runs daemons until nothing changes, ``check`` compares with acknowledged writes.
"""

import json
import random
import time
from array import array
from dataclasses import dataclass
from hashlib import md5

from swift import green
from swift.container.server import ContainerServer
from swift.ec.codec import Codec
from swift.http.request import Request
from swift.obj.reconstructor.settings import ObjectReconstructorSettings
from swift.obj.reconstructor.task import ObjectReconstructor
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.obj.replicator.task import ObjectReplicator
from swift.obj.updater.task import ObjectUpdater, ObjectUpdaterSettings
from swift.platform import sockets
from swift.platform.devices import Devices
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from swift.runtime.backendapp import BackendContext
from swift.runtime.httpd import HttpServer
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.object_servers import GOLD, HASHER, PARTITIONS, ObjectNodes, partition_of

NODES = 6
#: Any two archives are the object; four are kept.
CODED = Policy(1, "ec22", ec=ErasureCode("liberasurecode_rs_vand", 2, 2, 1000))
POLICIES = Policies([GOLD, CODED])
CODEC = Codec(CODED.ec.ec_type, 2, 2)
DAEMONS = {
    "replicator": (
        ObjectReplicator,
        ObjectReplicatorSettings(
            sync_method="ssync", interval=0.0, conn_timeout=1.0, node_timeout=2.0, recheck_interval=0.0
        ),
    ),
    "reconstructor": (
        ObjectReconstructor,
        ObjectReconstructorSettings(interval=0.0, conn_timeout=1.0, node_timeout=2.0, recheck_interval=0.0),
    ),
    "updater": (
        lambda context, rings, settings, stores, selection: ObjectUpdater(
            context, rings.container, settings, stores, selection=selection
        ),
        ObjectUpdaterSettings(interval=0.0, objects_per_second=0.0, conn_timeout=1.0, node_timeout=2.0),
    ),
}


class Broken(Exception):
    """The process of a daemon was killed."""


@dataclass(frozen=True)
class Version:
    """A possible state of an object: its bytes and its expiry (None: never)."""

    body: bytes
    delete_at: int | None = None
    #: What was posted to it.
    colour: str | None = None


class Listing:
    """A container server with one container, to which object servers and updaters send rows."""

    def __init__(self, root, clock):
        (root / "listing/c0").mkdir(parents=True)
        telemetry = Telemetry(silent_log())
        context = BackendContext(
            devices=Devices(str(root / "listing"), mount_check=False),
            hasher=HASHER,
            policies=POLICIES,
            telemetry=telemetry,
            clock=clock,
        )
        self.part = int.from_bytes(HASHER.digest("a", "c")[:4], "big") >> 28
        self.app = ContainerServer(context)
        self.listener = sockets.listen("127.0.0.1", 0, 64)
        self.port = self.listener.getsockname()[1]
        self.server = HttpServer(self.app.handle, telemetry, client_timeout_s=5.0)
        self.task = green.spawn(self.server.serve, self.listener)

    def ask(self, method, query="", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.app.handle(Request(method, f"/c0/{self.part}/a/c", named, b"", query=query))

    def rows(self, policy):
        """Return name → ETag and size."""
        response = self.ask("GET", "format=json", x_backend_storage_policy_index=str(policy.index))
        return {row["name"]: (row["hash"], row["bytes"]) for row in json.loads(response.read_body() or b"[]")}

    def stop(self):
        self.server.stop(grace_s=0.0)
        self.task.kill()
        self.listener.close()

    def write_ring(self, etc):
        record = {"id": 0, "region": 1, "zone": 1, "device": "c0", "weight": 1.0, "meta": ""}
        record |= {"ip": "127.0.0.1", "port": self.port}
        record |= {"replication_ip": "127.0.0.1", "replication_port": self.port}
        table = RingTable(records=(record,), rows=(array("H", [0] * PARTITIONS),), part_shift=28)
        save_table(table, str(etc / "container.ring.gz"))


def archives(body):
    """Return the archives of an object, by their index."""
    coded = [CODEC.encode(body[start : start + 1000]) for start in range(0, len(body), 1000)]
    return [b"".join(fragments[index] for fragments in coded) for index in range(4)]


class ObjectCluster:
    """The nodes, the clients' view of them, and the possible states of every object."""

    def __init__(self, root, seed, objects=8, packed=None):
        """Create the nodes; ``packed`` has the numbers of packed nodes; None: from the environment."""
        self.rng = random.Random(seed)
        self.nodes = ObjectNodes(root, NODES, ec_replicas=4, ec=CODED, packed=packed)
        self.listing = Listing(root, self.nodes.clock)
        self.listing.write_ring(self.nodes.etc)
        self.began = self.tick = time.time()
        assert self.listing.ask("PUT", x_timestamp=f"{self.tick:.5f}").status == 201
        self.names = [(policy, f"{policy.name}{n}") for policy in (GOLD, CODED) for n in range(objects)]
        self.up = set(range(NODES))
        self.shift = 0
        #: name → versions that may be the last one (None: deleted): the acknowledged one, those after it.
        self.truth = {}
        #: name → when the expirer is to remove it.
        self.queue = {}
        self.was_wiped = False
        self.log = []

    def stop(self):
        self.listing.stop()
        self.nodes.stop()

    # --- clients --------------------------------------------------------------------------------------

    def advance_clock(self, seconds):
        self.tick += seconds
        self.nodes.clock.ahead_s = max(self.nodes.clock.ahead_s, self.tick - self.began)

    def primaries(self, policy, name):
        """Return the partition, and the primaries by their index."""
        part = partition_of(name)
        return part, [(part + self.shift + n) % NODES for n in range(4 if policy.is_ec else 3)]

    def targets(self, policy, name):
        """Return a proxy's targets: handoffs replace primaries that are down; None without a handoff."""
        part, primaries = self.primaries(policy, name)
        others = [n for n in range(NODES) if n not in primaries and n in self.up]
        found = [n if n in self.up else others.pop() if others else None for n in primaries]
        # A client, or the way to a node, may break at any moment.
        return part, [None if self.rng.random() < 0.12 else number for number in found]

    def send(self, method, policy, name, number, part, at, body=b"", **headers):
        told = {
            "x_backend_storage_policy_index": str(policy.index),
            "x_container_host": f"127.0.0.1:{self.listing.port}",
            "x_container_partition": str(self.listing.part),
            "x_container_device": "c0",
        }
        return self.nodes[number].ask(method, f"/{part}/a/c/{name}", at, body, **(told | headers)).status

    def put(self):
        policy, name = self.rng.choice(self.names)
        self.advance_clock(self.rng.random() * 2)
        part, targets = self.targets(policy, name)
        delete_at = int(self.tick) + self.rng.randrange(20, 60) if self.rng.random() < 0.25 else None
        version = Version(f"{name} {self.tick} ".encode() * self.rng.choice((1, 1, 100)), delete_at)
        headers = {} if delete_at is None else {"x_delete_at": str(delete_at)}
        put = self._put_archives if policy.is_ec else self._put_copies
        done, received = put(policy, name, part, targets, version.body, headers)
        self._judge(name, version, done, policy, received)

    def _put_copies(self, policy, name, part, targets, body, headers):
        statuses = [
            self.send("PUT", policy, name, number, part, self.tick, body, **headers)
            for number in targets
            if number is not None
        ]
        return statuses.count(201), bool(statuses)

    def _put_archives(self, policy, name, part, targets, body, headers):
        """Put archives in two phases: commit only if enough nodes have stored theirs."""
        reached = [(number, index) for index, number in enumerate(targets) if number is not None]
        done = 0
        for number, index in reached:
            more = {
                **headers,
                "x_object_sysmeta_ec_frag_index": str(index),
                "x_backend_ssync_frag_index": str(index),
                "x_object_sysmeta_ec_etag": md5(body).hexdigest(),
                "x_object_sysmeta_ec_content_length": str(len(body)),
                "x_object_sysmeta_ec_segment_size": "1000",
                "x_backend_container_update_override_etag": md5(body).hexdigest(),
                "x_backend_container_update_override_size": str(len(body)),
            }
            is_committed = len(reached) > 2 and self.rng.random() < 0.88
            if not is_committed:
                more |= {"x_backend_no_commit": "True", "x_container_host": "", "x_container_device": ""}
            archive = archives(body)[index]
            status = self.send("PUT", policy, name, number, part, self.tick, archive, **more)
            done += is_committed and status == 201
        return done, bool(done)

    def delete(self):
        policy, name = self.rng.choice(self.names)
        self.advance_clock(self.rng.random() * 2)
        part, targets = self.targets(policy, name)
        statuses = [
            self.send("DELETE", policy, name, number, part, self.tick)
            for number in targets
            if number is not None
        ]
        done = sum(status in (204, 404) for status in statuses)
        self._judge(name, None, done, policy, bool(statuses))

    def _judge(self, name, version, done, policy, is_heard):
        if done >= (3 if policy.is_ec else 2):
            self.truth[name] = [version]
        elif done:
            self.truth.setdefault(name, [None]).append(version)
        if is_heard:
            # Whoever takes a version removes the entry of the one before.
            self.queue.pop(name, None)
            if version is not None and version.delete_at is not None:
                self.queue[name] = (policy, version.delete_at)

    def expire(self, *, is_repaired=False):
        """Ask for the objects whose time has come, as the expirer does (spec: replication.md, expirer).

        An object that is not there (404), or not what was meant (412), is asked for again.
        """
        for name, (policy, at) in list(self.queue.items()):
            if at > self.tick:
                continue
            part, targets = self.targets(policy, name)
            statuses = [
                self.send("DELETE", policy, name, number, part, float(at), x_if_delete_at=str(at))
                for number in targets
                if number is not None
            ]
            quorum = 3 if policy.is_ec else 2
            is_done = any(statuses.count(status) >= quorum for status in (204, 409))
            if is_done or (is_repaired and statuses and set(statuses) <= {404, 409, 412}):
                del self.queue[name]

    # --- faults ---------------------------------------------------------------------------------------

    def lose(self):
        if len(self.up) == NODES:
            number = self.rng.randrange(NODES)
            self.up.remove(number)
            self.nodes[number].stop()

    def restore(self):
        for number in set(range(NODES)) - self.up:
            self.nodes[number].start()
        self.up = set(range(NODES))
        for node in self.nodes.nodes:
            node.ways.cut.clear()

    def cut(self):
        """Cut the network between two nodes, or to the container server."""
        if self.rng.random() < 0.5:
            for node in self.nodes.nodes:
                node.ways.cut.add(self.listing.port)
            return
        one, other = self.rng.sample(self.nodes.nodes, 2)
        one.ways.cut.add(other.port)
        other.ways.cut.add(one.port)

    def wipe(self):
        """One disk is lost in a history, while the other nodes are there and before partitions move.

        The first node of a partition that has moved may have been the only one that was told of a change.
        """
        if not self.was_wiped and not self.shift and len(self.up) == NODES:
            self.was_wiped = True
            self.nodes[self.rng.randrange(NODES)].wipe()

    def rebalance(self):
        """Move every partition to the next node."""
        if self.shift < 2:
            self.shift += 1
            self.nodes.write_ring("object", 3, shift=self.shift)
            self.nodes.write_ring("object-1", 4, shift=self.shift)

    def work(self):
        """Run a pass of a daemon of one node, which may be killed half-way."""
        name = self.rng.choice(("replicator", "reconstructor", "reconstructor", "updater"))
        runner = self.nodes.runner(self.rng.choice(sorted(self.up)), *DAEMONS[name])
        begun, left = runner.task.begin, self.rng.choice((0, 1, 3, 1000))

        def begin(share, context):
            turn = begun(share, context)
            do = turn.do

            def do_or_break(unit):
                nonlocal left
                left -= 1
                if left < 0:
                    raise Broken
                do(unit)

            turn.do = do_or_break
            return turn

        runner.task.begin = begin
        runner.run_once()

    def actions(self):
        """Return the possible actions of a step, with their weights."""
        return {
            self.put: 44,
            self.delete: 10,
            self.expire: 6,
            self.lose: 5,
            self.restore: 8,
            self.cut: 7,
            self.wipe: 2,
            self.rebalance: 2,
            self.work: 24,
        }

    def step(self):
        actions = self.actions()
        action = self.rng.choices(list(actions), list(actions.values()))[0]
        self.log.append(action.__name__)
        action()

    def play(self, steps):
        """Make so many steps, heal and check."""
        for _ in range(steps):
            self.step()
        self.heal()
        self.check()

    # --- the end --------------------------------------------------------------------------------------

    def _files(self):
        return [
            [node.names(policy) for policy in (GOLD, CODED)]
            + [sorted(str(path) for path in node.path.glob("async_pending*/*/*"))]
            for node in self.nodes.nodes
        ]

    def run_daemons_until_idle(self):
        """Run passes of all daemons of all nodes until nothing changes."""
        before = None
        for _ in range(10):
            for number in range(NODES):
                for daemon in DAEMONS.values():
                    self.nodes.run_once(number, *daemon)
            now = self._files()
            if now == before:
                return
            before = now
        raise AssertionError("daemons do not become idle")

    def heal(self):
        """Repair all faults, and let all expiring objects expire."""
        self.restore()
        self.run_daemons_until_idle()
        self.advance_clock(100)
        for _ in range(20):
            self.expire(is_repaired=True)
        assert not self.queue
        self.run_daemons_until_idle()

    def check(self):
        listed = {policy: self.listing.rows(policy) for policy in (GOLD, CODED)}
        for policy, name in self.names:
            if name not in self.truth:
                continue
            versions = {None if v is None or v.delete_at else (v.body, v.colour) for v in self.truth[name]}
            stored = self._stored(policy, name)
            assert stored in versions, (name, stored, versions)
            found = None if stored is None else stored[0]
            if self.was_wiped and len(self.truth[name]) > 1:
                # What only a lost disk had heard of may be listed: no client was told that it was stored.
                continue
            row = None if found is None else (md5(found).hexdigest(), len(found))
            in_listing = listed[policy].get(name)
            assert in_listing == row, (name, "listed", in_listing, "stored", found, "accepted", versions)

    def _stored(self, policy, name):
        """Return the object that all primaries have; None when none has it; fail if they differ."""
        part, primaries = self.primaries(policy, name)
        path, index = f"/{part}/a/c/{name}", str(policy.index)
        responses = [self.nodes[n].ask("GET", path, x_backend_storage_policy_index=index) for n in primaries]
        statuses = {response.status for response in responses}
        assert statuses in ({200}, {404}), (name, [response.status for response in responses])
        for number in set(range(NODES)) - set(primaries):
            assert not self.nodes[number].has_partition(part, policy), (name, "is left on", number)
        if statuses == {404}:
            return None
        colours = {response.headers.get("x-object-meta-colour") for response in responses}
        assert len(colours) == 1, (name, colours)
        if not policy.is_ec:
            assert len({response.content for response in responses}) == 1, name
            return responses[0].content, *colours
        body = self._decoded(responses)
        assert [response.content for response in responses] == archives(body), (
            name,
            "has an archive too few",
        )
        return body, *colours

    def _decoded(self, answers):
        size = int(answers[0].headers["x-object-sysmeta-ec-content-length"])
        segments = -(-size // 1000)
        length = len(CODEC.encode(b"x" * 1000)[0])
        body = b""
        for n in range(segments):
            pieces = [response.content[n * length : (n + 1) * length] for response in answers]
            body += CODEC.decode(pieces)
        return body
