"""A layout moves copies to a node whose objects a server and a replicator of the peer keep, and away from it.

Needs root, because the peer must see an /etc/swift of its own.
"""

import json
import shutil

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from test.probe.test_peer_ec import Mixed
from test.support.peer import can_hide_etc, needs_peer, run

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]

PEERS, DRAINED = 4, 2
RINGS = ("account", "container", "object")
#: The ring of the policy that keeps the layout: it has no device of the peer.
OWN, POLICY = "object-1", "ec"
CONTROLLER = "[layout-controller]\n"
WAIT_S = 240


class MixedLayout(Mixed):
    """Four nodes with a layout; no daemon of ours works on the one that is the peer's."""

    def begin(self):
        for name in (*RINGS, OWN):
            path = str(self.plan.etc / f"{name}.builder")
            builder = RingBuilder.load(path)
            builder.min_part_hours = 0
            if name == OWN:
                for device in builder.live_devs:
                    if device["port"] == self.plan.port("object", PEERS):
                        builder.remove_device(device["id"])
                builder.rebalance(seed=1)
                builder.write_ring(str(self.plan.etc / f"{name}.ring.gz"))
            builder.save(path)
        self.kill(f"daemons-{PEERS}")
        self.give_to_peer(PEERS)
        shutil.rmtree(self.plan.recon(PEERS))
        self.plan.recon(PEERS).mkdir()
        self._start_replicator()
        conf = self.plan.etc / "object-server" / "1.conf"
        conf.write_text(conf.read_text().replace(CONTROLLER, f"{CONTROLLER}step_percent = 100\n"))
        self.kill("daemons-1")
        self.restart("daemons-1")
        self.layout("init", "--policy", POLICY)

    def _start_replicator(self):
        conf = self.plan.etc / "object-server" / f"{PEERS}.conf"
        self._run_peer("swift-object-replicator", conf, self.plan.port("object", PEERS))

    def layout(self, *words):
        done = run("swift-layout", "-d", self.plan.etc, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def await_rest(self):
        def is_at_rest():
            rings = json.loads(self.layout("--format", "json", "show"))["rings"].values()
            return not any(ring["moving"] for ring in rings)

        self.await_true(is_at_rest, "the change has ended", WAIT_S)

    def drain(self, node, weight="0"):
        for kind in RINGS:
            address = f"{self.plan.ip}:{self.plan.port(kind, node)}"
            self.layout("weight", address, weight, "--rings", kind)

    def held(self, node):
        """Return the partitions of objects that the ring assigns to a node."""
        view = RingView(load_table(str(self.plan.etc / "object.ring.gz")))
        port = self.plan.port("object", node)
        return set().union(*(view.parts_of(dev.id) for dev in view.devices if dev and dev.port == port))

    def parts_with_data(self, node):
        return {each.partition for each in self.stored(0, node=node)}


@pytest.fixture
def mixed(tmp_path):
    live = MixedLayout(
        tmp_path / "data",
        nodes=4,
        proxy_workers=0,
        packed=False,
        tier=False,
        rest_s=2,
        ec="2+1",
        server_auth="accept",
    )
    live.start()
    try:
        assert live.request("PUT", "c").status == 201
        live.begin()
        yield live
    finally:
        live.stop()


def test_copies_move_to_a_node_of_the_peer_and_away_from_it(mixed):
    bodies = {f"o{number}": f"body {number}".encode() for number in range(40)}
    for name, body in bodies.items():
        assert mixed.request("PUT", f"c/{name}", {}, body).status == 201

    def check():
        for name, body in bodies.items():
            response = mixed.request("GET", f"c/{name}", {"X-Newest": "true"})
            assert (response.status, response.body) == (200, body), name

    used = set().union(*map(mixed.parts_with_data, mixed.plan.node_numbers()))
    mixed.drain(DRAINED)
    mixed.layout("apply", "--force")
    mixed.await_rest()
    assert not mixed.held(DRAINED)
    assert used <= mixed.held(PEERS) == mixed.held(1)
    assert used <= mixed.parts_with_data(PEERS)
    check()
    mixed.drain(DRAINED, "100")
    mixed.drain(PEERS)
    mixed.layout("apply", "--force")
    mixed.await_rest()
    assert not mixed.held(PEERS)
    for node in (1, DRAINED, 3):
        assert used <= mixed.parts_with_data(node)
    check()
