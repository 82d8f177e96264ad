"""With random faults, erasure coded reads are right or fail, and acknowledged writes survive."""

import random

import pytest

from test.support.sim import node_port

EC = 1
OLD = random.Random(1).randbytes(4321)
NEW = random.Random(2).randbytes(5678)


@pytest.fixture
def sim(make_sim):
    cluster = make_sim(node_timeout=1.0)
    assert cluster("PUT", "/a/c", {"x-storage-policy": "ec32"}).status == 201
    return cluster


def break_something(sim, rng, nodes):
    """Inject one to three random faults."""
    faults = sim.faults
    for n in rng.sample(nodes, rng.randint(1, 3)):
        port = node_port("object", n)
        kind = rng.choice(["refuses", "answers", "dies", "stops", "gone"])
        if kind == "refuses":
            faults.refuses.add(port)
        elif kind == "answers":
            faults.answers[port] = rng.choice([404, 500, 503, 507])
        elif kind == "dies":
            faults.dies_after[port] = rng.randrange(2500)
        elif kind == "stops":
            faults.stops_taking_after[port] = rng.randrange(3500)
        else:
            faults.gone_after_stage.add(port)


def mend(sim):
    faults = sim.faults
    for faulty in (faults.refuses, faults.gone_after_stage):
        faulty.clear()
    for faulty in (faults.answers, faults.dies_after, faults.stops_taking_after):
        faulty.clear()
    sim.clear_node_errors()


@pytest.mark.parametrize("seed", range(40))
def test_a_read_is_right_or_fails(sim, seed):
    rng = random.Random(seed)
    nodes = list(range(1, 7))
    sim("PUT", "/a/c/o", {}, NEW)
    break_something(sim, rng, nodes)
    first = rng.randrange(len(NEW))
    last = rng.randrange(first, len(NEW))
    whole = sim("GET", "/a/c/o", {"x-newest": "true"} if rng.random() < 0.3 else {})
    part = sim("GET", "/a/c/o", {"range": f"bytes={first}-{last}"})
    for found, expected in ((whole, NEW), (part, NEW[first : last + 1])):
        if found.status >= 300:
            assert found.status == 503
        elif found.broke_off is not None:
            assert expected.startswith(found.body)
        else:
            assert found.body == expected


@pytest.mark.parametrize("seed", range(40))
def test_acknowledged_writes_survive_and_failed_writes_do_no_harm(sim, seed):
    rng = random.Random(seed)
    nodes = list(range(1, 7))
    assert sim("PUT", "/a/c/o", {}, OLD).status == 201
    break_something(sim, rng, nodes)
    response = sim("PUT", "/a/c/o", {}, NEW)
    mend(sim)
    if response.status == 201:
        with sim.refusing("object", rng.choice(nodes)):
            assert sim("GET", "/a/c/o").body == NEW
    else:
        assert response.status == 503
        assert sim("GET", "/a/c/o").body in (OLD, NEW)
