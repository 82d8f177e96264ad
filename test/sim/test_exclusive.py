"""Writers that must not replace anything, racing each other: one wins, nothing of the others stays.

``SWIFT_RACES=10000`` runs as many races of two.
"""

import os
import random
from hashlib import md5

import pytest

from swift import green
from test.support.sim import NODES, POLICIES, node_port

RACES = int(os.environ.get("SWIFT_RACES", "20"))
EXCLUSIVE = {"if-none-match": "*"}
KINDS = ("gold", "ec32")


@pytest.fixture(params=KINDS)
def sim(request, make_sim):
    cluster = make_sim()
    assert cluster("PUT", "/a/c", {"x-storage-policy": request.param}).status == 201
    cluster.policy = next(policy.index for policy in POLICIES if policy.name == request.param)
    return cluster


def race(sim, path, writers, size=100, headers=EXCLUSIVE):
    """Statuses and the contents that writers at the same moment tried to store."""
    bodies = [bytes([65 + n]) * size for n in range(writers)]
    calls = [lambda body=body: sim("PUT", path, headers, body) for body in bodies]
    return [answer.status for answer in green.gather(calls)], bodies


def contents(sim, path):
    """What readers see who ask every node first."""
    seen = set()
    for _ in range(8):
        answer = sim("GET", path)
        seen.add(answer.body if answer.status == 200 else answer.status)
    return seen


def archives_of(sim):
    return sorted(name for names in sim.files(sim.policy).values() for name in names)


@pytest.mark.parametrize("size", [0, 100, 200_000])
def test_a_lone_creator_wins_and_a_second_one_is_refused(sim, size):
    body = b"x" * size
    assert sim("PUT", "/a/c/o", EXCLUSIVE, body).status == 201
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"other").status == 412
    answer = sim("GET", "/a/c/o")
    assert (answer.status, answer.body) == (200, body)
    assert len(sim.holders(policy=sim.policy)) == len(
        sim.primaries("object", "a", "c", "o", policy=sim.policy)
    )


def test_of_two_creators_one_wins_and_nothing_of_the_other_stays(sim):
    chance = random.Random(11)
    sim.faults.jitter = chance
    for number in range(RACES):
        path = f"/a/c/o{number}"
        statuses, bodies = race(sim, path, 2)
        assert sorted(statuses) == [201, 412], (number, statuses)
        assert contents(sim, path) == {bodies[statuses.index(201)]}, number
    assert all("#d" in name or not sim.policy for name in archives_of(sim))
    assert list(sim.root.glob("node*/sdb*/tmp*/reserved-*")) == []


@pytest.mark.parametrize("writers", [3, 6])
def test_of_many_creators_one_wins(sim, writers):
    sim.faults.jitter = random.Random(writers)
    for number in range(4):
        path = f"/a/c/many{number}"
        statuses, bodies = race(sim, path, writers)
        assert sorted(statuses) == [201] + [412] * (writers - 1), (number, statuses)
        assert contents(sim, path) == {bodies[statuses.index(201)]}


def test_one_wins_while_a_minority_of_primaries_is_away(sim):
    sim.faults.jitter = random.Random(5)
    for number in range(8):
        path = f"/a/c/away{number}"
        away = sim.primaries("object", "a", "c", f"away{number}", policy=sim.policy)[0]
        with sim.refusing("object", away):
            statuses, bodies = race(sim, path, 2)
            assert sorted(statuses) == [201, 412], (number, statuses)
            assert contents(sim, path) == {bodies[statuses.index(201)]}
        sim.forgive()


def test_without_a_majority_of_primaries_nobody_wins(sim):
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    with sim.refusing("object", *primaries[: len(primaries) // 2 + 1]):
        assert sim("PUT", "/a/c/o", EXCLUSIVE, b"x").status == 503
    assert archives_of(sim) == []


def test_never_two_win_whatever_nodes_die_on_the_way(sim):
    chance = random.Random(23)
    sim.faults.jitter = chance
    for number in range(RACES):
        path = f"/a/c/dying{number}"
        node = chance.randrange(1, NODES + 1)
        sim.faults.dies_after_answers[node_port("object", node)] = chance.randrange(0, 4)
        statuses, bodies = race(sim, path, 2)
        sim.faults.dies_after_answers.clear()
        sim.forgive()
        assert statuses.count(201) <= 1, (number, statuses)
        assert set(statuses) <= {201, 412, 503}
        if 201 in statuses:
            assert contents(sim, path) == {bodies[statuses.index(201)]}, (number, statuses)


def test_a_creator_that_vanishes_frees_the_object_at_once(sim):
    from swift.http.body import ClientDisconnected
    from test.sim.test_writes import Broken

    answer = sim(
        "PUT",
        "/a/c/o",
        {**EXCLUSIVE, "content-length": "100"},
        Broken(b"x" * 50, 100, ClientDisconnected("gone")),
    )
    assert answer.status == 499
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"mine").status == 201


def test_an_ordinary_writer_wins_over_a_creator_that_began_before(sim):
    """It asks for no promise and is not held up; the newer one is what readers see in the end.

    One that comes between promise and commit leaves the creator on some nodes only: 503, nobody can tell.
    """
    sim.faults.jitter = random.Random(3)
    for number in range(10):
        path = f"/a/c/mixed{number}"
        creator, writer = green.gather(
            [lambda p=path: sim("PUT", p, EXCLUSIVE, b"new"), lambda p=path: sim("PUT", p, {}, b"plain")]
        )
        assert writer.status in (201, 202), writer
        assert creator.status in (201, 202, 412, 503), creator
        assert len(contents(sim, path)) == 1


# --- replacing a known version --------------------------------------------------------------------------


def etag_of(sim, path="/a/c/o"):
    return sim("HEAD", path, {"x-newest": "true"}).headers["etag"]


@pytest.mark.parametrize("size", [0, 100, 200_000])
def test_a_known_version_is_replaced_and_another_is_not(sim, size):
    assert sim("PUT", "/a/c/o", {"if-match": "*"}, b"x").status == 412
    assert sim("PUT", "/a/c/o", {}, b"first" * size).status == 201
    known = etag_of(sim)
    assert sim("PUT", "/a/c/o", {"if-match": f'"{known}"'}, b"second" * size).status == 201
    assert sim("GET", "/a/c/o").body == b"second" * size
    if size:
        assert sim("PUT", "/a/c/o", {"if-match": known}, b"third").status == 412
    assert sim("PUT", "/a/c/o", {"if-match": "0" * 32}, b"third").status == 412
    assert sim("GET", "/a/c/o").body == b"second" * size
    assert sim("PUT", "/a/c/o", {"if-match": f"{'0' * 32}, {etag_of(sim)}"}, b"fourth").status == 201
    assert sim("DELETE", "/a/c/o").status == 204
    assert sim("PUT", "/a/c/o", {"if-match": "*"}, b"fifth").status == 412


def test_no_update_is_lost_among_writers_that_count_up(sim):
    sim.faults.jitter = random.Random(7)
    assert sim("PUT", "/a/c/o", {}, b"0").status == 201
    counted = []

    def count():
        for _ in range(2):
            while True:
                now = sim("GET", "/a/c/o", {"x-newest": "true"})
                more = b"%d" % (int(now.body) + 1)
                status = sim("PUT", "/a/c/o", {"if-match": now.headers["etag"]}, more).status
                assert status in (201, 412, 503), status
                if status == 201:
                    counted.append(int(more))
                    break

    green.gather([count] * 4)
    assert sorted(counted) == list(range(1, 9))
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"8"


def test_what_a_failed_writer_left_on_one_node_is_brought_to_the_others_first(sim):
    """Somebody may have read it; so it has happened, before the one that finds it."""
    if sim.policy:
        pytest.skip("archives of one node cannot be copied")
    primaries = sim.primaries("object", "a", "c", "o")
    away = sim.handoffs("a", "c", "o")
    with sim.refusing("object", *primaries[1:], *away):
        assert sim("PUT", "/a/c/o", {"x-object-meta-colour": "red"}, b"half-written").status == 503
    sim.forgive()
    assert sim.holders() == [primaries[0]]
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"other").status == 412
    assert sim.holders() == sorted(primaries)
    with sim.refusing("object", primaries[0], *away):
        answer = sim("GET", "/a/c/o")
        assert (answer.body, answer.headers["x-object-meta-colour"]) == (b"half-written", "red")


def test_a_version_that_one_node_missed_is_judged_by_what_the_others_have(sim):
    if sim.policy:
        pytest.skip("five of five archives must be there")
    primaries, away = sim.primaries("object", "a", "c", "o"), sim.handoffs("a", "c", "o")
    assert sim("PUT", "/a/c/o", {}, b"old").status == 201
    with sim.refusing("object", primaries[2], *away):
        assert sim("PUT", "/a/c/o", {}, b"new").status == 201
    sim.forgive()
    assert sim("PUT", "/a/c/o", {"if-match": md5(b"old").hexdigest()}, b"x").status == 412
    assert sim("PUT", "/a/c/o", {"if-match": md5(b"new").hexdigest()}, b"newest").status == 201
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"newest"
