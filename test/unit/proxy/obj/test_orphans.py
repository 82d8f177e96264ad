"""Every listing replica hears of a write, even when the node that was to tell it is away."""

import pytest

from swift import green
from test.support.sim import NODES

SMALL, LARGE = b"small", b"large" * 40_000


def let_background_work_end():
    for _ in range(20):
        green.sleep(0)


def rows_of(sim, number, container="c"):
    """Names in one container replica, asked of its server."""
    ring = sim.context.rings.container.view()
    part = ring.partition_of(sim.hasher.digest("a", container))
    port = next(p for p, (kind, n, _) in sim.transport.apps.items() if (kind, n) == ("container", number))
    path = f"/sdb{number}/{part}/a/{container}"
    reply = sim.transport.request("10.0.0.1", port, "GET", path, {}, connect_timeout_s=1, timeout_s=1)
    return reply.body.decode().split()


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("missing", range(3))
def test_rows_reach_all_containers_though_a_primary_and_all_handoffs_are_away(sim, body, missing):
    nodes = sim.primaries("object", "a", "c", "o")
    away = [nodes[missing], *sim.handoffs("a", "c", "o")]
    with sim.refusing("object", *away):
        assert sim("PUT", "/a/c/o", {"content-type": "text/plain"}, body).status == 201
    let_background_work_end()
    assert [rows_of(sim, n) for n in sim.primaries("container", "a", "c")] == [["o"]] * 3
    row = sim("GET", "/a/c?format=json").body.decode()
    assert f'"bytes": {len(body)}' in row and '"content_type": "text/plain"' in row


@pytest.mark.parametrize("missing", range(3))
def test_a_deletion_reaches_all_containers_too(sim, missing):
    assert sim("PUT", "/a/c/o", {"content-type": "text/plain"}, SMALL).status == 201
    nodes = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", nodes[missing], *sim.handoffs("a", "c", "o")):
        assert sim("DELETE", "/a/c/o").status == 204
    let_background_work_end()
    assert [rows_of(sim, n) for n in sim.primaries("container", "a", "c")] == [[]] * 3


def test_a_write_that_all_nodes_took_sends_no_row_of_its_own(sim):
    assert sim("PUT", "/a/c/o", {"content-type": "text/plain"}, SMALL).status == 201
    let_background_work_end()
    assert sim.counts()["container", "PUT"] == 3
    assert NODES > 3
