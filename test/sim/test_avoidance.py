"""Avoided nodes are the last resort: they get requests only when no other node can respond."""

import pytest

from swift import green
from test.support.sim import node_port

ALL = range(1, 7)
SMALL, LARGE = b"small", b"large" * 40_000


@pytest.fixture(params=["replicated", "coded"])
def sim(request, make_sim):
    """A cluster with container c of either kind of policy."""
    cluster = make_sim(log_handoffs=False)
    policy = {"x-storage-policy": "ec32"} if request.param == "coded" else {}
    assert cluster("PUT", "/a/c", policy).status == 201
    cluster.policy = 1 if policy else 0
    return cluster


def avoid_everything(sim):
    for kind in ("account", "container", "object"):
        sim.avoid(kind, *ALL)
    sim.cache.values.clear()


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("headers", [{}, {"if-none-match": "*"}], ids=["", "exclusive"])
def test_with_every_node_avoided_everything_works(sim, body, headers):
    avoid_everything(sim)
    assert sim("PUT", "/a/c/o", headers, body).status == 201
    avoid_everything(sim)
    assert sim("GET", "/a/c/o").body == body
    avoid_everything(sim)
    assert sim("HEAD", "/a/c/o").status == 200
    avoid_everything(sim)
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == body
    avoid_everything(sim)
    assert sim("POST", "/a/c/o", {"x-object-meta-a": "b"}).status == 202
    avoid_everything(sim)
    assert sim("DELETE", "/a/c/o").status == 204
    avoid_everything(sim)
    assert sim("GET", "/a/c").status in (200, 204)
    avoid_everything(sim)
    assert sim("POST", "/a/c", {"x-container-meta-a": "b"}).status == 204
    avoid_everything(sim)
    assert sim("PUT", "/a/c2").status == 201
    assert sim("GET", "/a").status == 200


def test_an_object_is_on_its_primaries_although_they_were_avoided(sim):
    avoid_everything(sim)
    sim("PUT", "/a/c/o", {}, SMALL)
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    held = sim.holders(policy=sim.policy)
    assert set(held) <= set(primaries) and len(held) >= len(primaries) // 2 + 1


def test_a_response_ends_avoidance(sim):
    avoid_everything(sim)
    sim("PUT", "/a/c/o", {}, SMALL)
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    assert sim.avoided("object") == set(ALL) - set(primaries)


@pytest.mark.parametrize("fault", ["refuses", "malformed"])
def test_unreachable_nodes_are_avoided_but_not_nodes_with_invalid_responses(sim, fault):
    sim("PUT", "/a/c/o", {}, SMALL)
    node = sim.primaries("object", "a", "c", "o", policy=sim.policy)[0]
    getattr(sim.faults, fault).add(node_port("object", node))
    for i in range(60):
        assert sim("PUT", f"/a/c/o{i}", {}, SMALL).status == 201
        assert sim("GET", "/a/c/o").body == SMALL
    assert sim.avoided("object") == ({node} if fault == "refuses" else set())


def hang(sim, kind, *numbers):
    """Avoid these nodes, and let them not respond before the returned event."""
    release = green.Event()
    sim.avoid(kind, *numbers, slow=True)
    for n in numbers:
        sim.faults.waits_for[node_port(kind, n)] = release
    return release


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_writes_skip_an_avoided_node_when_others_form_a_quorum(sim, body):
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    with sim.refusing("object", *(set(ALL) - set(primaries))):
        hang(sim, "object", primaries[0])
        assert sim("PUT", "/a/c/o", {}, body).status == 201
        assert sorted(sim.asked("object", "PUT")) == sorted(primaries[1:])
        assert sim("POST", "/a/c/o", {"x-object-meta-a": "b"}).status == 202
        assert sim("DELETE", "/a/c/o").status == 204
        assert primaries[0] not in sim.asked("object")


def test_404_from_a_majority_of_primaries_does_not_wait_for_a_hanging_node(sim):
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    hang(sim, "object", primaries[0])
    assert sim("GET", "/a/c/o").status == 404
    assert primaries[0] not in sim.asked("object")


def test_an_object_that_a_majority_of_primaries_missed_is_found_on_an_avoided_node(make_sim):
    sim = make_sim()
    sim("PUT", "/a/c")
    primaries, handoffs = sim.primaries("object", "a", "c", "o"), sim.handoffs("a", "c", "o")
    with sim.refusing("object", *primaries[1:], *handoffs[1:]):
        assert sim("PUT", "/a/c/o", {}, SMALL).status == 201
    sim.clear_node_errors()
    sim.avoid("object", primaries[0])
    with sim.refusing("object", handoffs[0]):
        assert sim("GET", "/a/c/o").body == SMALL


def test_the_only_copies_are_found_on_avoided_nodes(make_sim):
    sim = make_sim()
    sim("PUT", "/a/c")
    primaries = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", *(set(ALL) - set(primaries[:2]))):
        assert sim("PUT", "/a/c/o", {}, SMALL).status == 201
    sim.clear_node_errors()
    sim.avoid("object", *primaries[:2])
    assert sim("GET", "/a/c/o").body == SMALL


def test_a_broken_read_continues_at_an_avoided_node(make_sim):
    sim = make_sim()
    sim("PUT", "/a/c")
    sim("PUT", "/a/c/o", {}, LARGE)
    primaries = sim.primaries("object", "a", "c", "o")
    sim.avoid("object", *primaries[:2])
    sim.faults.dies_after[node_port("object", primaries[2])] = 100_000
    assert sim("GET", "/a/c/o").body == LARGE


def test_a_read_from_a_handoff_continues_at_an_avoided_primary(make_sim):
    sim = make_sim()
    sim("PUT", "/a/c")
    primaries, handoffs = sim.primaries("object", "a", "c", "o"), sim.handoffs("a", "c", "o")
    with sim.refusing("object", *primaries[:2]):
        assert sim("PUT", "/a/c/o", {}, LARGE).status == 201
    sim.clear_node_errors()
    assert sim.holders() == sorted([primaries[2], *handoffs[:2]])
    sim.avoid("object", primaries[2], *handoffs[1:], slow=True)
    sim.faults.dies_after[node_port("object", handoffs[0])] = 100_000
    assert sim("GET", "/a/c/o").body == LARGE


def test_a_post_reaches_an_object_on_an_avoided_handoff(make_sim):
    sim = make_sim()
    sim("PUT", "/a/c")
    handoffs = sim.handoffs("a", "c", "o")
    with sim.refusing("object", *sim.primaries("object", "a", "c", "o")[1:]):
        assert sim("PUT", "/a/c/o", {}, SMALL).status == 201
    sim.clear_node_errors()
    holders = set(sim.holders())
    sim.avoid("object", *(holders & set(handoffs)))
    assert sim("POST", "/a/c/o", {"x-object-meta-a": "b"}).status == 202
    assert holders & set(handoffs) & set(sim.asked("object", "POST"))
