"""One node of a live cluster switches to the packed engine and back, under load and with kills."""

import json
import os
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest

from swift.base.hashing import PathHasher
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from test.support.cluster import LiveCluster
from test.support.peer import run

pytestmark = pytest.mark.process

#: Sizes of bodies that are packed, and of one that is not.
SIZES = (0, 10, 3000, 70_000, 1_200_000)
COUNT = 40


def body_of(name, version=0):
    size = SIZES[int(name[1:]) % len(SIZES)]
    return f"{name} {version} ".encode().ljust(size, b".")[:size] if size else b""


class Load(threading.Thread):
    """Changes its own objects until it is stopped; records the expected state of each."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.bodies = {}
        self.ended = threading.Event()
        self.failure = None

    def run(self):
        try:
            version = 0
            while not self.ended.is_set():
                version += 1
                name = f"w{version % 15}"
                if version % 4 == 3 and name in self.bodies:
                    assert self.cluster.request("DELETE", f"c/{name}").status == 204
                    del self.bodies[name]
                else:
                    body = body_of(name, version)
                    assert self.cluster.request("PUT", f"c/{name}", body=body).status == 201
                    self.bodies[name] = body
        except AssertionError as error:
            self.failure = error


class Node:
    """Node 1 of a cluster, with its own swift.conf."""

    def __init__(self, cluster):
        self.cluster = cluster
        etc = cluster.plan.etc
        self.swift_dir = etc / "node1"
        self.swift_dir.mkdir()
        for path in etc.glob("*.ring.gz"):
            (self.swift_dir / path.name).symlink_to(path)
        self.conf = etc / "object-server" / "1.conf"
        text = self.conf.read_text().replace(f"swift_dir = {etc}", f"swift_dir = {self.swift_dir}")
        self.conf.write_text(text)
        self.use("fs", restarts=False)
        self.view = RingView(load_table(str(etc / "object.ring.gz"), thorough=False))

    def use(self, engine, *, restarts=True):
        """Set the engine of the policy, and restart servers and daemons of the node."""
        text = (self.cluster.plan.etc / "swift.conf").read_text()
        option = f"diskfile_module = egg:swift#replication.{engine}\n"
        text = text.replace("[storage-policy:0]\n", f"[storage-policy:0]\n{option}")
        (self.swift_dir / "swift.conf").write_text(text)
        for name in ("daemons-1", "object-1") if restarts else ():
            self.cluster.kill(name, signal.SIGTERM)
            self.cluster.restart(name)

    def begin(self, *words):
        command = [sys.executable, "-m", "swift.cli.object_repack", "--conf", str(self.conf), *words]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
        )

    def repack(self, *words, code=0):
        done = run("swift-object-repack", "--conf", self.conf, "--format", "json", *words)
        assert done.returncode == code, done
        return json.loads(done.stdout) if done.stdout else done.stderr

    def state(self):
        (row,) = self.repack("--status")
        return row

    def has_changed(self, state, before):
        """Return True if a device in ``state`` has another number of packed objects than ``before``."""
        row = self.state()
        return row["state"] == state and row["packed"] != before

    def get(self, name):
        """Return the object as this node's server has it."""
        hasher = PathHasher(b"", b"test")
        partition = self.view.partition_of(hasher.digest("AUTH_test", "c", name))
        path = f"/{self.cluster.plan.device(1)}/{partition}/AUTH_test/c/{name}"
        return self.cluster.raw("GET", path, port=self.cluster.plan.port("object", 1))


@pytest.fixture
def cluster(tmp_path):
    made = LiveCluster(tmp_path / "c", nodes=3, replicas=3, packed=False, tier=False)
    try:
        made.start()
        node = Node(made)
        node.cluster.kill("object-1", signal.SIGTERM)
        made.restart("object-1")
        yield made, node
    finally:
        made.stop()


@pytest.mark.long
def test_a_node_switches_to_the_packed_engine_and_back_under_load_and_kills(cluster):
    cluster, node = cluster
    assert cluster.request("PUT", "c").status == 201
    names = [f"s{number}" for number in range(COUNT)]
    for name in names:
        assert cluster.request("PUT", f"c/{name}", body=body_of(name)).status == 201
    refused = node.repack("--to", "packed", code=1)
    assert "diskfile_module = egg:swift#replication.packed in [storage-policy:0]" in refused
    load = Load(cluster)
    load.start()
    node.use("packed")
    cluster.await_true(lambda: node.state()["state"] == "packing", "the device is used")
    for to, state in (("packed", "packing"), ("files", "unpacking")):
        process = node.begin("--to", to, "--rate", "4")
        before = node.state()["packed"]
        cluster.await_true(partial(node.has_changed, state, before), "some objects are converted")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert node.state()["state"] == state
        compare(node, names)
        assert node.repack("--to", to)["is_done"]
        assert node.state()["state"] == to
        compare(node, names)
    node.use("fs")
    load.ended.set()
    load.join()
    assert load.failure is None
    compare(node, names)
    assert node.repack("--to", "files")["removed"] == [cluster.plan.device(1)]
    assert not (cluster.device_path(1) / "packed").exists()
    for name, body in load.bodies.items():
        # This node may have missed the last change during its restart.
        assert cluster.request("GET", f"c/{name}", {"X-Newest": "true"}).body == body


def compare(node, names):
    for name in names:
        response = node.get(name)
        assert (response.status, response.body) == (200, body_of(name)), (name, response)
