"""The quorum of writes, and the nodes chosen by write affinity."""

import contextlib

import pytest

from swift.ring.builder import RingBuilder
from test.support.sim import POLICIES, PORTS, SimCluster, node_port


def write_rings(folder, replicas, *, regions=1):
    """Write rings of ``replicas`` over six nodes in each region."""
    folder.mkdir()
    rings = {kind: (kind, replicas) for kind in PORTS}
    rings |= {policy.ring_name: ("object", policy.ec.replicas) for policy in POLICIES if policy.ec}
    for name, (kind, count) in rings.items():
        builder = RingBuilder(4, count, 1)
        for n in range(1, 7):
            builder.add_device(
                region=1 + n % regions,
                zone=n,
                ip="10.0.0.1",
                port=node_port(kind, n),
                device=f"sdb{n}",
                weight=100.0,
            )
        builder.rebalance(seed=3)
        builder.write_ring(str(folder / f"{name}.ring.gz"))
    return folder


@pytest.fixture
def cluster_of(tmp_path):
    with contextlib.ExitStack() as clusters:

        def make(replicas, *, regions=1, **options):
            rings = write_rings(tmp_path / "rings", replicas, regions=regions)
            cluster = SimCluster(tmp_path / "nodes", rings, log_handoffs=False, **options)
            return clusters.enter_context(contextlib.closing(cluster))

        yield make


def only(sim, kind, count, *names):
    """Let all but ``count`` primaries of an entity refuse connections."""
    return sim.refusing(kind, *(set(range(1, 7)) - set(sim.primaries(kind, *names)[:count])))


@pytest.mark.parametrize("half_is_quorum", [False, True])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5, 6])
def test_more_than_half_must_acknowledge_unless_half_is_a_quorum(cluster_of, replicas, half_is_quorum):
    sim = cluster_of(replicas, half_is_quorum=half_is_quorum)
    need = (replicas + 1) // 2 if half_is_quorum else replicas // 2 + 1
    assert sim("PUT", "/a/c").status == 201
    for available, accepted in ((need, True), (need - 1, False)):
        with only(sim, "object", available, "a", "c", "o"):
            for body in (b"small", b"large" * 40_000):
                assert sim("PUT", "/a/c/o", {}, body).status == (201 if accepted else 503)
            if accepted:
                assert sim("POST", "/a/c/o", {"x-object-meta-a": "b"}).status == 202
                assert sim("DELETE", "/a/c/o").status == 204
        with only(sim, "container", available, "a", "new"):
            assert sim("PUT", "/a/new").status == ((202, 201)[available == need] if accepted else 503)
        with only(sim, "account", available, "b"):
            assert sim("POST", "/b", {"x-account-meta-a": "b"}).status == (204 if accepted else 503)
        sim.clear_node_errors()


def test_write_affinity_moves_only_objects(cluster_of):
    sim = cluster_of(3, regions=2, write_affinity="r1")
    assert sim("PUT", "/a/c").status == 201
    assert sorted(sim.asked("container", "PUT")) == sorted(sim.primaries("container", "a", "c"))
    assert sim("POST", "/a", {"x-account-meta-a": "b"}).status == 204
    assert sorted(sim.asked("account", "POST")) == sorted(sim.primaries("account", "a"))
    assert sim("POST", "/a/c", {"x-container-meta-a": "b"}).status == 204
    assert sorted(sim.asked("container", "POST")) == sorted(sim.primaries("container", "a", "c"))
    assert sim("PUT", "/a/c/o", {}, b"body").status == 201
    local = [n for n in range(1, 7) if n % 2 == 0]
    assert sim.asked("object", "PUT") and set(sim.asked("object", "PUT")) <= set(local)
    sim("POST", "/a/c/o", {"x-object-meta-a": "b"})
    assert set(sim.asked("object", "POST")[:3]) == set(sim.primaries("object", "a", "c", "o"))
    assert sim("DELETE", "/a/c").status == 409
    assert sorted(sim.asked("container", "DELETE")) == sorted(sim.primaries("container", "a", "c"))
    assert sim("DELETE", "/a/c/o").status == 204
    assert set(sim.asked("object", "DELETE")) >= {*sim.primaries("object", "a", "c", "o")}


def test_an_account_deleted_while_primaries_were_down_is_404_for_every_method(cluster_of):
    sim = cluster_of(3, allow_account_management=True)
    with sim.refusing("account", *sim.primaries("account", "b")[1:]):
        assert (sim("PUT", "/b").status, sim("DELETE", "/b").status) == (201, 204)
        responses = {method: sim(method, "/b").status for method in ("HEAD", "GET", "POST", "DELETE")}
    assert responses == {"HEAD": 410, "GET": 410, "POST": 404, "DELETE": 404}
