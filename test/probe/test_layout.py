"""Running nodes come to each published layout, after an absence and beside a node that serves garbage."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request

import pytest

from swift.aio.make import make_cluster
from swift.cluster.transport import NodeAddress, NodeTimeouts
from swift.compose import connections_to_nodes
from swift.layout.fetching import LayoutClient
from swift.ring import builderfile
from swift.ring.builder import RingBuilder
from swift.ring.layoutfiles import LayoutFolder, create_keys, publish, read_private_key
from swift.ring.manifest import is_layout_file, is_ring
from swift.ring.ringfile import encode
from swift.telemetry.telemetry import Telemetry
from test.support.cluster import LiveCluster

NODES = 3
KINDS = ("account", "container", "object")
pytestmark = pytest.mark.process


class LayoutCluster:
    """A cluster whose nodes have a folder of ring files each; the controller is node 1."""

    def __init__(self, root):
        self.live = LiveCluster(root, nodes=NODES, proxy_workers=0, rest_s=60)
        self.plan = self.live.plan
        make_cluster(self.plan)
        for node in self.plan.node_numbers():
            self.folder(node).mkdir()
            for path in self.plan.etc.iterdir():
                if path.name in ("swift.conf", "server.secret") or is_layout_file(path.name):
                    shutil.copy(path, self.folder(node))
            for kind in (*KINDS, "layout"):
                conf = self.plan.etc / f"{kind}-server" / f"{node}.conf"
                text = conf.read_text().replace(
                    f"swift_dir = {self.plan.etc}\n", f"swift_dir = {self.folder(node)}\n"
                )
                conf.write_text(text.replace("interval = 30", "interval = 0.5") if kind == "layout" else text)
        create_keys(str(self.folder(1)))
        for node in (2, 3):
            shutil.copy(self.folder(1) / "layout.pub", self.folder(node))
        self.live.start()

    def folder(self, node):
        """The folder of a node's ring files."""
        return self.plan.root / "etc" / f"node{node}"

    def publish(self):
        """Publish other rings on node 1; return all files."""
        files = {}
        for name in ("account", "container", "object"):
            builder = RingBuilder.load(str(self.folder(1) / f"{name}.builder"))
            device = builder.live_devs[0]
            builder.change_device(device["id"], weight=device["weight"] * 1.5)
            builder.pretend_min_part_hours_passed()
            builder.rebalance(seed=builder.version)
            files[f"{name}.builder"] = builderfile.dumps(builder._fields())
            files[f"{name}.ring.gz"] = encode(builder.table(), f"{name}.ring.gz")
        publish(str(self.folder(1)), read_private_key(str(self.folder(1))), files)
        return files

    def version(self, node):
        """The version that a node has."""
        installed = LayoutFolder(str(self.folder(node))).installed()
        return installed.manifest.version if installed else 0

    def has(self, node, files):
        """Return True if a node has exactly these files."""
        return all((self.folder(node) / name).read_bytes() == data for name, data in files.items())

    def get(self, node, path, kind="object"):
        """The body of a page of a node's server."""
        url = f"http://{self.plan.storage_ip}:{self.plan.port(kind, node)}{path}"
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.read()

    def manifest_of(self, node):
        """The manifest of a node's server, as node 1 reads it."""
        transport = connections_to_nodes({"swift_dir": str(self.folder(1))}, Telemetry())
        client = LayoutClient(transport, "test", NodeTimeouts(5, 5))
        return client.manifest(NodeAddress(self.plan.storage_ip, self.plan.port("object", node)))

    def page(self, node):
        """The recon page of a node's agent."""
        return json.loads(self.get(node, "/recon/layout"))["layout"]


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    made = LayoutCluster(tmp_path_factory.mktemp("layout") / "data")
    yield made
    made.live.stop()


@pytest.mark.long
def test_published_layouts_reach_running_nodes(layout):
    live = layout.live
    files = layout.publish()
    live.await_true(lambda: [layout.version(node) for node in (2, 3)] == [1, 1], "all nodes have version 1")
    assert layout.has(2, files) and layout.has(3, files)
    # Servers know each other: a manifest is for them alone.
    with pytest.raises(urllib.error.HTTPError, match="403"):
        layout.get(3, "/.layout/manifest")
    assert layout.manifest_of(3) == (layout.folder(1) / "layout.manifest").read_bytes()

    # A node that is away during two versions, and comes back beside one that serves garbage.
    live.kill("daemons-3")
    layout.publish()
    third = layout.publish()
    live.await_true(lambda: layout.version(2) == 3, "node 2 has version 3")
    live.kill("daemons-2")
    for name, data in third.items():
        if is_ring(name):
            (layout.folder(2) / name).write_bytes(bytes(len(data)))
    live.restart("daemons-3")
    live.await_true(lambda: layout.version(3) == 3, "node 3 has version 3")
    assert layout.has(3, third)

    # The garbage is mended by the node's own agent.
    live.restart("daemons-2")
    live.await_true(lambda: layout.has(2, third), "node 2 is mended")

    # A ring that is changed by hand is reported, and replaced by the next version.
    (layout.folder(2) / "object.ring.gz").write_bytes(files["object.ring.gz"])
    live.await_true(lambda: layout.page(2)["changed"] == ["object.ring.gz"], "the change is reported")
    fourth = layout.publish()
    live.await_true(lambda: layout.has(2, fourth) and layout.has(3, fourth), "all nodes have version 4")
    live.await_true(lambda: layout.page(2)["version"] == 4, "the page has version 4")
    assert (layout.page(2)["changed"], layout.page(2)["error"]) == ([], "")
    assert live.request("PUT", "c").status == 201
