"""Metadata that does not fit into file attributes is refused with 400; no node is avoided for it."""

import pytest

from swift.obj.server import ObjectServer
from test.support.disks import CrampedDisk, cramped_stores
from test.support.sim import node_port

MUCH = {f"x-object-meta-{number:02d}": "a" * 235 for number in range(8)}
BODIES = [b"small", b"large" * 40_000]


def cramp(sim, *nodes, **options):
    """Give these nodes a disk with little space for attributes."""
    for n in nodes:
        kind, number, app = sim.transport.apps[node_port("object", n)]
        stores = cramped_stores(app.context, CrampedDisk(**options))
        sim.transport.apps[node_port("object", n)] = (
            kind,
            number,
            ObjectServer(app.context, app.settings, stores),
        )


def primaries(sim, policy=0):
    return sim.primaries("object", "a", "c", "o", policy=policy)


def store_much(sim, body):
    return sim("PUT", "/a/c/o", {"content-type": "text/plain", **MUCH}, body)


def assert_all_serve(sim):
    """Fail if a node is avoided: each must get the next object, which fits."""
    assert sim("PUT", "/a/c/o", {"content-type": "text/plain"}, b"x").status == 201
    assert sorted(sim.asked("object", "PUT")) == sorted(primaries(sim))


@pytest.mark.parametrize("body", BODIES, ids=["small", "large"])
def test_a_put_with_too_much_metadata_is_400_and_leaves_nothing(sim, body):
    cramp(sim, *range(1, 7))
    response = store_much(sim, body)
    assert response.status == 400
    assert b"Metadata too large" in response.body
    assert sim.files() == {}
    assert_all_serve(sim)


@pytest.mark.files
@pytest.mark.parametrize("policy", ["ec32", "twice"])
@pytest.mark.parametrize("body", BODIES, ids=["small", "large"])
def test_an_erasure_coded_put_with_too_much_metadata_is_400_and_leaves_nothing(sim, body, policy):
    cramp(sim, *range(1, 7))
    assert sim("PUT", "/a/coded", {"x-storage-policy": policy}).status == 201
    response = sim("PUT", "/a/coded/o", {"content-type": "text/plain", **MUCH}, body)
    assert response.status == 400
    assert b"Metadata too large" in response.body
    assert list(sim.root.glob("node*/sdb*/objects*/*/*/*/*")) == []
    assert_all_serve(sim)


def test_a_post_with_too_much_metadata_is_400_and_changes_nothing(sim):
    cramp(sim, *range(1, 7))
    assert sim("PUT", "/a/c/o", {"content-type": "text/plain", "x-object-meta-a": "old"}, b"x").status == 201
    files = sim.files()
    assert sim("POST", "/a/c/o", MUCH).status == 400
    assert sim.files() == files
    assert sim("HEAD", "/a/c/o").headers["x-object-meta-a"] == "old"
    assert_all_serve(sim)


@pytest.mark.parametrize("body", BODIES, ids=["small", "large"])
@pytest.mark.parametrize(("cramped", "status"), [(1, 201), (2, 400)])
def test_a_majority_decides_where_only_some_nodes_have_space(sim, body, cramped, status):
    cramp(sim, *primaries(sim)[:cramped])
    assert store_much(sim, body).status == status
    assert_all_serve(sim)


@pytest.mark.parametrize("body", BODIES, ids=["small", "large"])
def test_a_full_device_responds_507_and_is_avoided(sim, body):
    nodes = primaries(sim)
    cramp(sim, nodes[0], is_full=True)
    assert store_much(sim, body).status == 201
    assert set(nodes[1:]) <= set(sim.holders())
    assert nodes[0] not in sim.holders()
    assert sim("PUT", "/a/c/o", {"content-type": "text/plain"}, b"x").status == 201
    assert nodes[0] not in sim.asked("object", "PUT")
