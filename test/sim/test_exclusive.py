"""Concurrent conditional creations: one writer wins, and the others leave nothing.

``SWIFT_RACES=10000`` runs as many races of two.
"""

import json
import os
import random
import time
from dataclasses import replace
from hashlib import md5

import pytest

from swift import green
from swift.http.response import error_response
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
    """Run concurrent writers; return their statuses and contents."""
    bodies = [bytes([65 + n]) * size for n in range(writers)]
    calls = [lambda body=body: sim("PUT", path, headers, body) for body in bodies]
    return [response.status for response in green.gather(calls)], bodies


def contents(sim, path):
    """Return the content that readers get with each node as the first one."""
    seen = set()
    for _ in range(8):
        response = sim("GET", path)
        seen.add(response.body if response.status == 200 else response.status)
    return seen


def archives_of(sim):
    return sorted(name for names in sim.files(sim.policy).values() for name in names)


@pytest.mark.parametrize("size", [0, 100, 200_000])
def test_a_lone_creator_wins_and_a_second_one_is_refused(sim, size):
    body = b"x" * size
    assert sim("PUT", "/a/c/o", EXCLUSIVE, body).status == 201
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"other").status == 412
    response = sim("GET", "/a/c/o")
    assert (response.status, response.body) == (200, body)
    assert len(sim.holders(policy=sim.policy)) == len(
        sim.primaries("object", "a", "c", "o", policy=sim.policy)
    )


def test_one_of_two_creators_wins_and_the_other_leaves_nothing(sim):
    chance = random.Random(11)
    sim.faults.jitter = chance
    for number in range(RACES):
        path = f"/a/c/o{number}"
        statuses, bodies = race(sim, path, 2)
        assert sorted(statuses) == [201, 412], (number, statuses)
        assert contents(sim, path) == {bodies[statuses.index(201)]}, number
    assert all("#d" in name or not sim.policy for name in archives_of(sim))
    assert list(sim.root.glob("node*/sdb*/tmp*/reserved-*")) == []


def test_one_of_two_creators_with_the_same_timestamp_wins(sim):
    sim.faults.jitter = random.Random(17)
    stamp = {"x-timestamp": "1500000000.00000"}
    for number in range(RACES):
        path = f"/a/c/tick{number}"
        statuses, bodies = race(sim, path, 2, headers={**EXCLUSIVE, **stamp})
        assert sorted(statuses) == [201, 412], (number, statuses)
        assert contents(sim, path) == {bodies[statuses.index(201)]}, number


@pytest.mark.long
@pytest.mark.parametrize("writers", [3, 6])
def test_one_of_many_creators_wins(sim, writers):
    sim.faults.jitter = random.Random(writers)
    for number in range(4):
        path = f"/a/c/many{number}"
        statuses, bodies = race(sim, path, writers)
        assert sorted(statuses) == [201] + [412] * (writers - 1), (number, statuses)
        assert contents(sim, path) == {bodies[statuses.index(201)]}


def test_one_creator_wins_while_a_minority_of_primaries_is_down(sim):
    sim.faults.jitter = random.Random(5)
    for number in range(8):
        path = f"/a/c/away{number}"
        away = sim.primaries("object", "a", "c", f"away{number}", policy=sim.policy)[0]
        with sim.refusing("object", away):
            statuses, bodies = race(sim, path, 2)
            assert sorted(statuses) == [201, 412], (number, statuses)
            assert contents(sim, path) == {bodies[statuses.index(201)]}
        sim.clear_node_errors()


def test_no_creator_wins_without_a_majority_of_primaries(sim):
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    with sim.refusing("object", *primaries[: len(primaries) // 2 + 1]):
        assert sim("PUT", "/a/c/o", EXCLUSIVE, b"x").status == 503
    assert archives_of(sim) == []


@pytest.mark.long
def test_two_creators_never_both_win_whichever_nodes_fail(sim):
    chance = random.Random(23)
    sim.faults.jitter = chance
    for number in range(RACES):
        path = f"/a/c/dying{number}"
        node = chance.randrange(1, NODES + 1)
        sim.faults.dies_after_answers[node_port("object", node)] = chance.randrange(0, 4)
        statuses, bodies = race(sim, path, 2)
        sim.faults.dies_after_answers.clear()
        sim.clear_node_errors()
        assert statuses.count(201) <= 1, (number, statuses)
        assert set(statuses) <= {201, 412, 503}
        if 201 in statuses:
            assert contents(sim, path) == {bodies[statuses.index(201)]}, (number, statuses)


def test_a_vanished_creator_releases_the_object_at_once(sim):
    from swift.http.body import ClientDisconnected
    from test.sim.test_writes import Broken

    response = sim(
        "PUT",
        "/a/c/o",
        {**EXCLUSIVE, "content-length": "100"},
        Broken(b"x" * 50, 100, ClientDisconnected("gone")),
    )
    assert response.status == 499
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"mine").status == 201


def test_an_unconditional_writer_wins_over_an_earlier_creator(sim):
    """It needs no reservation and does not wait; readers finally get the newer version.

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
def test_if_match_replaces_only_the_matching_version(sim, size):
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


def test_concurrent_increments_lose_no_update(sim):
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


def half_write(sim, headers, body, node):
    """Write an object that only ``node`` commits: the writer dies before the other commits."""
    ports = {node_port("object", n) for n in sim.primaries("object", "a", "c", "o", policy=sim.policy)}
    lost = ports - {node_port("object", node)}
    for _ in range(50):
        sim.faults.gone_after_stage |= lost
        assert sim("PUT", "/a/c/o", headers, body).status == 503
        sim.faults.gone_after_stage -= lost
        sim.clear_node_errors()
        # The node gets the commit only if it reserved the object in time.
        if committed(sim) == [node]:
            return
    raise AssertionError(f"node {node} was never told to commit")


def half_replace(sim, headers, body, node):
    """Do ``half_write`` for an existing object."""
    before = set(committed_files(sim))
    ports = {node_port("object", n) for n in sim.primaries("object", "a", "c", "o", policy=sim.policy)}
    lost = ports - {node_port("object", node)}
    for _ in range(50):
        sim.faults.gone_after_stage |= lost
        assert sim("PUT", "/a/c/o", headers, body).status == 503
        sim.faults.gone_after_stage -= lost
        sim.clear_node_errors()
        if {n for n, _name in set(committed_files(sim)) - before} == {node}:
            return
    raise AssertionError(f"node {node} was never told to commit")


def committed_files(sim):
    """Return (node, name) of the committed files."""
    named = [(n, name) for n, names in sim.files(sim.policy).items() for name in names]
    return [(n, name) for n, name in named if has_committed(sim, [name])]


def committed(sim):
    """Return the nodes that have committed the object."""
    return sorted(n for n, names in sim.files(sim.policy).items() if has_committed(sim, names))


def has_committed(sim, names):
    return any("#d" in name or (not sim.policy and name.endswith(".data")) for name in names)


def test_a_write_that_failed_after_one_node_is_completed_first(sim):
    """A client may have read the version; so it counts as written before the next write."""
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    # Small ones are sent to nodes that are known before anything can be lost.
    body = b"half-written" * 20_000
    colour = {**EXCLUSIVE, "x-object-meta-colour": "red", "content-type": "text/half"}
    half_write(sim, colour, body, primaries[0])
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"other").status == 412
    majority = len(primaries) // 2 + 1
    assert len(committed(sim)) >= majority
    with sim.refusing("object", primaries[0]):
        response = sim("GET", "/a/c/o")
        assert (response.body, response.headers["x-object-meta-colour"]) == (body, "red")
        assert (response.headers["etag"], response.headers["content-type"]) == (
            md5(body).hexdigest(),
            "text/half",
        )


@pytest.mark.files
def test_a_version_that_cannot_be_completed_is_neither_used_nor_dropped(sim):
    """Too few archives are left: the version cannot be read, but the object may exist."""
    if not sim.policy:
        pytest.skip("a replica is whole")
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    half_write(sim, EXCLUSIVE, b"half" * 50_000, primaries[0])
    for path in sim.root.glob(f"node*/sdb*/objects-{sim.policy}/*/*/*/*.data"):
        if "#d" not in path.name:
            path.unlink()
    for headers in (EXCLUSIVE, {"if-match": "*"}):
        assert sim("PUT", "/a/c/o", headers, b"other").status in (412, 503)
    assert sim("GET", "/a/c/o").status in (404, 503)
    # Unconditional writes continue, and after one of them conditional writes do, too.
    assert sim("PUT", "/a/c/o", {}, b"plain").status == 201
    assert sim("PUT", "/a/c/o", {"if-match": md5(b"plain").hexdigest()}, b"next").status == 201


def test_an_aborted_writer_leaves_nothing(sim):
    """The writer told the nodes to abort, so none of them keeps an archive."""
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    assert sim("PUT", "/a/c/o", {}, b"first").status == 201
    before = archives_of(sim)
    with sim.refusing("object", *primaries[: len(primaries) // 2 + 1]):
        assert sim("PUT", "/a/c/o", {"if-match": "*"}, b"x" * 300_000).status == 503
    assert archives_of(sim) == before


def test_if_match_on_a_half_written_version_succeeds(sim):
    """Readers get the newest version at once, whatever other nodes have."""
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    assert sim("PUT", "/a/c/o", {}, b"first").status == 201
    known, body = md5(b"first").hexdigest(), b"half-written" * 20_000
    half_replace(sim, {"if-match": known}, body, primaries[0])
    assert sim("PUT", "/a/c/o", {"if-match": md5(body).hexdigest()}, b"third").status == 201
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"third"


@pytest.mark.parametrize("size", [100, 200_000])
def test_if_match_on_the_version_before_a_half_written_one_is_refused(sim, size):
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    assert sim("PUT", "/a/c/o", {}, b"first").status == 201
    known, body = md5(b"first").hexdigest(), b"half-written" * 20_000
    half_replace(sim, {"if-match": known}, body, primaries[0])
    assert sim("PUT", "/a/c/o", {"if-match": known}, b"x" * size).status == 412
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == body


def test_if_match_replaces_a_version_while_a_primary_is_down(sim):
    """The handoff that replaces the primary has no version and takes no part in conditions."""
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    assert sim("PUT", "/a/c/o", {}, b"first").status == 201
    with sim.refusing("object", primaries[0]):
        for before, after in ((b"first", b"second"), (b"second", b"third")):
            assert sim("PUT", "/a/c/o", {"if-match": md5(before).hexdigest()}, after).status == 201
        assert sim("PUT", "/a/c/o", {"if-match": md5(b"first").hexdigest()}, b"x").status == 412
    sim.clear_node_errors()
    assert sim("PUT", "/a/c/o", {"if-match": md5(b"third").hexdigest()}, b"fourth").status == 201
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"fourth"


def test_an_object_that_only_a_handoff_has_is_not_created_again(sim):
    primaries = sim.primaries("object", "a", "c", "o", policy=sim.policy)
    with sim.refusing("object", primaries[0]):
        assert sim("PUT", "/a/c/o", {}, b"first").status == 201
    sim.clear_node_errors()
    with sim.refusing("object", primaries[1]):
        assert sim("PUT", "/a/c/o", EXCLUSIVE, b"second").status == 412
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"first"


def test_a_version_that_one_node_missed_is_judged_by_the_other_nodes(sim):
    if sim.policy:
        pytest.skip("five of five archives must be there")
    primaries, away = sim.primaries("object", "a", "c", "o"), sim.handoffs("a", "c", "o")
    assert sim("PUT", "/a/c/o", {}, b"old").status == 201
    with sim.refusing("object", primaries[2], *away):
        assert sim("PUT", "/a/c/o", {}, b"new").status == 201
    sim.clear_node_errors()
    assert sim("PUT", "/a/c/o", {"if-match": md5(b"old").hexdigest()}, b"x").status == 412
    assert sim("PUT", "/a/c/o", {"if-match": md5(b"new").hexdigest()}, b"newest").status == 201
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"newest"


# --- changing metadata, and deleting ----------------------------------------------------------------------


def metadata_of(sim):
    return sim("HEAD", "/a/c/o", {"x-newest": "true"}).headers.get("x-object-meta-a")


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (lambda etag: {"if-match": etag}, True),
        (lambda etag: {"if-match": f'"{etag}"'}, True),
        (lambda _etag: {"if-match": "*"}, True),
        (lambda _etag: {"if-match": "0" * 32}, False),
        (lambda _etag: {"if-none-match": "*"}, False),
        (lambda etag: {"if-none-match": f'"{etag}"'}, False),
        (lambda _etag: {"if-none-match": "0" * 32}, True),
        (lambda etag: {"if-match": etag, "if-none-match": etag}, False),
    ],
)
def test_a_change_happens_exactly_when_its_condition_holds(sim, condition, holds):
    assert sim("PUT", "/a/c/o", {"x-object-meta-a": "old"}, b"body").status == 201
    headers = condition(md5(b"body").hexdigest())
    posted = sim("POST", "/a/c/o", {**headers, "x-object-meta-a": "new"})
    assert (posted.status, metadata_of(sim)) == ((202, "new") if holds else (412, "old"))
    assert sim("DELETE", "/a/c/o", headers).status == (204 if holds else 412)
    assert sim("GET", "/a/c/o").status == (404 if holds else 200)


def test_conditional_changes_of_a_missing_object_are_404(sim):
    """RFC 9110 §13.2.1: conditions are for requests that would do something without them."""
    for headers in (EXCLUSIVE, {"if-match": "*"}, {"if-match": "0" * 32}):
        assert sim("POST", "/a/c/o", headers).status == 404
        assert sim("DELETE", "/a/c/o", headers).status == 404
    assert archives_of(sim) == []
    assert sim("PUT", "/a/c/o", {}, b"x").status == 201
    assert sim("DELETE", "/a/c/o", {}).status == 204
    assert sim("DELETE", "/a/c/o", {"if-match": "*"}).status == 404


def test_conditional_changes_update_the_container(sim):
    assert sim("PUT", "/a/c/o", {"content-type": "text/old"}, b"body").status == 201
    known = {"if-match": md5(b"body").hexdigest()}
    assert sim("POST", "/a/c/o", {**known, "content-type": "text/new"}).status == 202
    (row,) = json.loads(sim("GET", "/a/c?format=json").body)
    assert (row["content_type"], row["hash"]) == ("text/new", md5(b"body").hexdigest())
    assert sim("DELETE", "/a/c/o", known).status == 204
    assert json.loads(sim("GET", "/a/c?format=json").body) == []


@pytest.mark.long
def test_one_of_several_conditional_deletions_wins(sim):
    sim.faults.jitter = random.Random(13)
    for number in range(6):
        path = f"/a/c/gone{number}"
        assert sim("PUT", path, {}, b"x").status == 201
        known = {"if-match": md5(b"x").hexdigest()}
        calls = [lambda path=path, known=known: sim("DELETE", path, known).status for _ in range(3)]
        statuses = green.gather(calls)
        assert statuses.count(204) == 1, statuses
        assert set(statuses) <= {204, 404}, statuses


def test_a_deletion_and_a_replacement_of_one_version_do_not_both_happen(sim):
    sim.faults.jitter = random.Random(17)
    for number in range(10):
        path = f"/a/c/either{number}"
        assert sim("PUT", path, {}, b"x").status == 201
        known = {"if-match": md5(b"x").hexdigest()}
        deleted, replaced = green.gather(
            [
                lambda path=path, known=known: sim("DELETE", path, known).status,
                lambda path=path, known=known: sim("PUT", path, known, b"y").status,
            ]
        )
        assert (deleted, replaced) in {(204, 412), (412, 201), (204, 503), (503, 201)}, (deleted, replaced)
        assert sim("GET", path).status == (404 if deleted == 204 else 200)


# --- clocks -----------------------------------------------------------------------------------------------


def stamped(seconds):
    """Return the headers of a request through a proxy with a fast clock."""
    return {"x-timestamp": f"{time.time() + seconds:.5f}"}


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_a_proxy_with_a_slow_clock_can_change_objects_of_another_proxy(sim, size):
    body = b"a" * size
    assert sim("PUT", "/a/c/o", stamped(25), body).status == 201
    known = {"if-match": md5(body).hexdigest()}
    assert sim("POST", "/a/c/o", {**known, "x-object-meta-a": "new"}).status == 202
    assert metadata_of(sim) == "new"
    assert sim("PUT", "/a/c/o", known, b"b" * size).status == 201
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"b" * size
    assert sim("DELETE", "/a/c/o", {"if-match": md5(b"b" * size).hexdigest()}).status == 204
    assert sim("GET", "/a/c/o").status == 404
    assert sim("PUT", "/a/c/o", EXCLUSIVE, body).status == 201
    response = sim("GET", "/a/c/o", {"x-newest": "true"})
    assert (response.status, response.body) == (200, body)
    assert float(response.headers["x-timestamp"]) > time.time() + 10


def test_a_version_with_the_maximum_timestamp_cannot_be_changed(sim):
    assert sim("PUT", "/a/c/o", {"x-timestamp": "9999999999.99999"}, b"last").status == 201
    for method in ("PUT", "POST", "DELETE"):
        assert sim(method, "/a/c/o", {"if-match": md5(b"last").hexdigest()}).status == 503
    assert sim("GET", "/a/c/o").body == b"last"


# --- what it costs ----------------------------------------------------------------------------------------


def test_a_small_creation_costs_one_round_trip_more_than_a_plain_one(sim):
    assert sim("PUT", "/a/c/o", {}, b"x").status == 201
    plain = sim.round_trips("PUT")
    # From now on the nodes are known to promise.
    assert sim("PUT", "/a/c/o", {"if-match": "*"}, b"x").status == 201
    allowed = plain if sim.policy else plain + 1
    assert sim("PUT", "/a/c/o", {"if-match": md5(b"x").hexdigest()}, b"y" * 1000).status == 201
    assert sim.round_trips("PUT") == allowed
    for method in ("POST", "DELETE"):
        assert sim(method, "/a/c/o", {"if-match": "*"}).status in (202, 204)
        assert sim.round_trips("RESERVE") == 2
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"y").status == 201
    assert sim.round_trips("PUT") == allowed


def test_bodies_are_sent_in_advance_only_to_nodes_that_support_it(sim):
    if sim.policy:
        pytest.skip("archives differ by node, and are sent when all nodes are known")
    nodes = sim.primaries("object", "a", "c", "o")
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"x").status == 201
    assert sim.round_trips("PUT") == 3
    with sim.without_footers(nodes[0]):
        assert sim("PUT", "/a/c/o", {"if-match": "*"}, b"y").status == 201
    sim.clear_node_errors()
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"y"


# --- nodes that promise nothing ---------------------------------------------------------------------------


class NodeWithoutReservations:
    """An object server like the peer's: it supports neither reservations nor RESERVE."""

    def __init__(self, app):
        self._app = app

    def handle(self, request):
        if request.method == "RESERVE":
            return error_response(405)
        request.headers.pop("x-backend-reserve", None)
        return self._app.handle(request)


@pytest.fixture
def disable_reservations(sim):
    """Replace the first primaries of an object by nodes without reservations; restore them at the end."""
    apps, former = sim.transport.apps, dict(sim.transport.apps)

    def make(count):
        for number in sim.primaries("object", "a", "c", "o", policy=sim.policy)[:count]:
            port = node_port("object", number)
            apps[port] = (*former[port][:2], NodeWithoutReservations(former[port][2]))

    yield make
    apps.update(former)


@pytest.mark.parametrize("size", [5, 200_000])
@pytest.mark.parametrize("old_nodes", [1, 5])
def test_conditions_that_a_node_cannot_keep_are_501(sim, disable_reservations, old_nodes, size):
    disable_reservations(old_nodes)
    body = b"x" * size
    assert sim("PUT", "/a/c/o", EXCLUSIVE, body).status == 501
    assert sim("GET", "/a/c/o").status == 404
    assert sim("PUT", "/a/c/o", {}, body).status == 201
    for condition in ({"if-match": "*"}, {"if-none-match": "0"}):
        for method in ("POST", "DELETE"):
            assert sim(method, "/a/c/o", condition).status == 501
    assert sim("PUT", "/a/c/o", {"if-match": "*"}, b"y").status == 501
    assert sim("GET", "/a/c/o").body == body


@pytest.mark.parametrize("size", [5, 200_000])
@pytest.mark.parametrize("old_nodes", [1, 5])
def test_the_weaker_rule_of_creation_can_be_enabled(sim, disable_reservations, old_nodes, size):
    sim.context.settings = replace(sim.context.settings, weak_if_none_match=True)
    disable_reservations(old_nodes)
    body = b"x" * size
    assert sim("PUT", "/a/c/o", EXCLUSIVE, body).status == 201
    assert sim("PUT", "/a/c/o", EXCLUSIVE, b"other").status == 412
    assert sim("PUT", "/a/c/o", {"if-match": "*"}, b"other").status == 501
    assert sim("DELETE", "/a/c/o", {"if-match": "*"}).status == 501
    assert sim("GET", "/a/c/o").body == body
