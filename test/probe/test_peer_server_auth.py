"""Servers of the peer ignore signatures, and its proxy is refused unless its address is exempt.

Needs root, because the peer must see an /etc/swift of its own.
"""

import os

import pytest

from test.probe.test_peer_ec import Mixed
from test.support.peer import can_hide_etc, needs_peer

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]

NODES = (1, 2, 3)
#: The node whose object server is the peer's.
PEERS = 1


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    live = Mixed(
        tmp_path_factory.mktemp("mixed") / "data",
        nodes=len(NODES),
        server_auth="require",
        proxy_workers=0,
        packed=False,
        tier=False,
        rest_s=Mixed.AT_REST_S,
    )
    live.start()
    try:
        assert live.request("PUT", "c").status == 201
        live.give_to_peer(PEERS)
        yield live
    finally:
        live.stop()


@pytest.mark.parametrize("size", [0, 100, 300_000])
def test_a_server_of_the_peer_serves_signed_requests(mixed, size):
    body, name = b"x" * size, f"o{size}"
    headers = {"Content-Type": "text/plain", "X-Object-Meta-Who": "ours"}
    assert mixed.request("PUT", f"c/{name}", headers, body).status == 201
    mixed.await_true(lambda: len(mixed.stored(node=PEERS)) > 0, "the peer has stored it", 20)
    # Only the peer is left to respond.
    for node in NODES[1:]:
        mixed.kill(f"object-{node}")
    try:
        response = mixed.request("GET", f"c/{name}")
        assert (response.status, response.body, response.headers["x-object-meta-who"]) == (200, body, "ours")
    finally:
        for node in NODES[1:]:
            mixed.restart(f"object-{node}")
    assert mixed.request("POST", f"c/{name}", {"X-Object-Meta-Who": "again"}).status == 202
    assert mixed.request("HEAD", f"c/{name}").headers["x-object-meta-who"] == "again"


def test_the_peer_stores_nothing_of_a_signature(mixed):
    assert mixed.request("PUT", "c/stored", {}, b"x").status == 201
    found = mixed.stored(node=PEERS)
    assert found
    for each in found:
        path = each.device / "objects" / str(each.partition) / each.hash[-3:] / each.hash / each.name
        names = [name for name in os.listxattr(path) if name.startswith("user.swift.metadata")]
        assert names and not any(b"server-auth" in os.getxattr(path, name).lower() for name in names)


def test_the_proxy_of_the_peer_is_refused_unless_it_is_exempt(mixed):
    assert mixed.by_peer("GET", "c").status in (401, 403, 503)
    assert mixed.by_peer("PUT", "theirs", {}, b"").status in (401, 403, 503)
    conf = mixed.plan.etc / "swift.conf"
    conf.write_text(conf.read_text().replace("mode = require\n", "mode = require\nexempt = 127.0.0.0/8\n"))
    for kind in ("account", "container", "object"):
        for node in NODES:
            if (kind, node) != ("object", PEERS):
                mixed.kill(f"{kind}-{node}")
                mixed.restart(f"{kind}-{node}")
    assert mixed.request("PUT", "c/again", {}, b"x").status == 201

    def responds():
        return mixed.by_peer("PUT", "c/theirs", {}, b"x").status == 201

    mixed.await_true(responds, "the peer's proxy tries the servers again", 90)
    assert mixed.request("GET", "c/theirs").body == b"x"
