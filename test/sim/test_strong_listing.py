"""Strong listings show all acknowledged writes and deletions, whichever container servers were down."""

import itertools
import json
import random

import pytest

from swift.base.shardrange import State
from swift.http import fields
from test.support.daemons import Sharders, state

TEXT = {"content-type": "text/plain"}
BODIES = {"small": b"small", "large": b"large" * 40_000}


def listed(sim, query="", container="c"):
    response = sim("GET", f"/a/{container}?format=json{query}")
    assert response.status in (200, 204), response
    return [row.get("name") or row["subdir"] for row in json.loads(response.body or b"[]")]


@pytest.fixture
def sim(make_sim):
    cluster = make_sim(strong_listing="all")
    assert cluster("PUT", "/a/c").status == 201
    return cluster


@pytest.fixture
def containers(sim):
    return sim.primaries("container", "a", "c")


PAIRS = list(itertools.product(range(3), range(3)))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("away, later", PAIRS)
def test_stored_objects_are_listed_although_other_servers_fail_later(sim, containers, away, later, body):
    with sim.refusing("container", containers[away]):
        assert sim("PUT", "/a/c/o", TEXT, body).status == 201
    with sim.refusing("container", containers[later]):
        assert listed(sim) == ["o"]
        row = json.loads(sim("GET", "/a/c?format=json").body)[0]
    assert row["bytes"] == len(body) and row["content_type"] == "text/plain"


@pytest.mark.parametrize("away, later", PAIRS)
def test_deleted_objects_are_not_listed(sim, containers, away, later):
    assert sim("PUT", "/a/c/o", TEXT, b"x").status == 201
    with sim.refusing("container", containers[away]):
        assert sim("DELETE", "/a/c/o").status == 204
    with sim.refusing("container", containers[later]):
        assert listed(sim) == []


@pytest.mark.parametrize("later", range(3))
def test_the_replacement_of_an_object_is_listed(sim, containers, later):
    assert sim("PUT", "/a/c/o", TEXT, b"x").status == 201
    with sim.refusing("container", containers[0]):
        assert sim("PUT", "/a/c/o", TEXT, b"longer").status == 201
    with sim.refusing("container", containers[later]):
        assert json.loads(sim("GET", "/a/c?format=json").body)[0]["bytes"] == 6


def test_without_a_majority_of_the_servers_nothing_is_acknowledged_and_nothing_listed(sim, containers):
    assert sim("PUT", "/a/c/kept", TEXT, b"x").status == 201
    with sim.refusing("container", *containers[:2]):
        assert sim("PUT", "/a/c/o", TEXT, b"x").status == 503
        assert sim("DELETE", "/a/c/kept").status == 503
        assert sim("GET", "/a/c?format=json").status == 503


@pytest.mark.parametrize("away", range(3))
def test_erasure_coded_objects_are_listed_too(sim, away):
    assert sim("PUT", "/a/e", {"x-storage-policy": "ec32"}).status == 201
    with sim.refusing("container", sim.primaries("container", "a", "e")[away]):
        assert sim("PUT", "/a/e/o", TEXT, b"x" * 5000).status == 201
        assert sim("PUT", "/a/e/gone", TEXT, b"x").status == 201
        assert sim("DELETE", "/a/e/gone").status == 204
    for later in sim.primaries("container", "a", "e"):
        with sim.refusing("container", later):
            assert [(r["name"], r["bytes"]) for r in json.loads(sim("GET", "/a/e?format=json").body)] == [
                ("o", 5000)
            ]


def test_pages_and_prefixes_are_complete(sim, containers):
    names = [f"{folder}/{n}" for folder in "abc" for n in range(4)]
    for n, name in enumerate(names):
        with sim.refusing("container", containers[n % 3]):
            assert sim("PUT", f"/a/c/{name}", TEXT, b"x").status == 201
    for n in range(4):
        with sim.refusing("container", containers[n % 3]):
            assert sim("DELETE", f"/a/c/b/{n}").status == 204
    left = [name for name in names if not name.startswith("b")]
    for later in range(3):
        with sim.refusing("container", containers[later]):
            assert listed(sim) == left
            assert listed(sim, "&delimiter=/") == ["a/", "c/"]
            assert listed(sim, "&limit=3") == left[:3]
            assert listed(sim, "&limit=3&marker=a/2") == left[3:6]
            assert listed(sim, "&reverse=true&limit=5") == left[::-1][:5]
            assert listed(sim, "&prefix=c/&delimiter=/") == left[4:]
            assert listed(sim, "&marker=a/3&end_marker=c/2") == ["c/0", "c/1"]


def test_container_metadata_enables_strong_listings(make_sim):
    sim = make_sim(strong_listing="marked")
    assert sim("PUT", "/a/c", {"x-container-meta-strong-listing": "true"}).status == 201
    assert sim("PUT", "/a/d").status == 201
    assert sim("PUT", "/a/c/first", TEXT, b"x").status == 201
    for name in "cd":
        with sim.refusing("container", *sim.primaries("container", "a", name)[:2]):
            assert sim("PUT", f"/a/{name}/o", TEXT, b"x").status == (503 if name == "c" else 201)
    assert listed(sim)[0] == "first"


def test_eventual_listings_cost_no_additional_requests(make_sim):
    sim = make_sim()
    sim("PUT", "/a/c", {"x-container-meta-strong-listing": "true"})
    sim("PUT", "/a/c/o", TEXT, b"x")
    assert not any(
        fields.BACKEND_REPORT_CONTAINER_SERVERS in headers for *_, headers in sim.transport.requests
    )
    assert listed(sim) == ["o"]
    assert len(sim.asked("container", "GET")) == 1


@pytest.mark.long
def test_listings_of_a_server_that_missed_a_split_are_not_used(sim, containers, tmp_path):
    assert sim("POST", "/a/c", {"x-container-sysmeta-sharding": "True"}).status == 204
    sharders = Sharders(sim, tmp_path)
    before = [f"o{n:03}" for n in range(30)]
    for name in before:
        assert sim("PUT", f"/a/c/{name}", TEXT, b"x").status == 201
    *knowing, late = containers
    with sim.refusing("container", late):
        for _ in range(12):
            sharders.run(*knowing)
        sim.cache.values.clear()
        assert sim("PUT", "/a/c/p", TEXT, b"x").status == 201
    sim.clear_node_errors()
    for _ in range(30):
        sim.cache.values.clear()
        assert listed(sim) == [*before, "p"]
        sim.cache.values.clear()
        assert listed(sim, "&limit=2&marker=o028") == ["o029", "p"]


def agreed_listings(sim, wanted):
    """Check that listings with all parameters match ``wanted``, whichever server is down."""
    folders = sorted({f"{name.partition('/')[0]}/" for name in wanted if "/" in name})
    for later in SERVERS:
        with sim.refusing("container", later):
            sim.cache.values.clear()
            assert listed(sim) == wanted
            assert listed(sim, "&limit=5") == wanted[:5]
            middle = wanted[len(wanted) // 2]
            assert listed(sim, f"&limit=7&marker={middle}") == [n for n in wanted if n > middle][:7]
            assert (
                listed(sim, f"&reverse=true&limit=9&marker={middle}")
                == [n for n in wanted[::-1] if n < middle][:9]
            )
            assert listed(sim, f"&prefix={middle[:2]}") == [n for n in wanted if n.startswith(middle[:2])]
            tops = sorted({n for n in wanted if "/" not in n} | set(folders))
            assert listed(sim, "&delimiter=/") == tops
            assert listed(sim, "&delimiter=/&limit=2") == tops[:2]
            assert listed(sim, "&delimiter=/&reverse=true") == tops[::-1]
            assert listed(sim, "&path=") == [n for n in tops if "/" not in n]


SERVERS = range(1, 7)


def states_of(sim):
    headers = {"x-backend-record-type": "shard", "x-newest": "true"}
    return {item["state"] for item in json.loads(sim("GET", "/a/c?format=json", headers).body or b"[]")}


def test_rows_go_to_shards_only_when_a_majority_of_servers_knows_the_shards(sim, sharders, containers):
    fill(sim)
    leader, *others = containers
    with sim.refusing("container", *others):
        for _ in range(3):
            sharders.run(leader)
    sim.clear_node_errors()
    assert states_of(sim) <= {State.FOUND}
    assert listed(sim) == NAMES


def fill(sim):
    for name in NAMES:
        assert sim("PUT", f"/a/c/{name}", TEXT, b"x").status == 201


NAMES = [f"o{n:03}" for n in range(30)]


@pytest.mark.parametrize("away", range(3))
def test_rows_in_shards_are_listed_although_no_responding_server_has_begun_to_split(
    sim, sharders, containers, away
):
    fill(sim)
    leader = containers[0]
    sharders.run(leader)
    if away:
        sharders.run(containers[away])
    new, to_shards = [], 0
    while to_shards < 3:
        # A row goes to the container or to its shard, depending on the server that responds.
        sim.cache.values.clear()
        new.append(f"p{len(new):03}")
        assert sim("PUT", f"/a/c/{new[-1]}", TEXT, b"x").status == 201
        to_shards += any(
            "x-backend-quoted-container-path" in headers for *_, headers in sim.transport.requests
        )
    assert sim("DELETE", f"/a/c/{NAMES[0]}").status == 204
    for server in containers:
        with sim.refusing("container", server):
            sim.cache.values.clear()
            assert listed(sim) == [*NAMES[1:], *new]
        sim.clear_node_errors()


def change(sim, there, chance, *, puts):
    """Write or delete while a server may be down; ``there`` has the expected names, None: unknown."""
    name = chance.choice("abcdefgh") + chance.choice(("/", "", "/x/")) + str(chance.randrange(9))
    if chance.random() < 0.3:
        sim.cache.values.clear()
    with sim.refusing("container", *chance.sample(SERVERS, chance.choice((0, 0, 1)))):
        if chance.random() < puts:
            status, after = sim("PUT", f"/a/c/{name}", TEXT, b"x").status, True
        else:
            status, after = sim("DELETE", f"/a/c/{name}").status, False
    assert status in (201, 204, 404, 503)
    there[name] = after if status != 503 else None


def work(sim, sharders, there, chance, *, puts, **options):
    """Make changes, run sharders while a server is down, and check a listing."""
    for _ in range(12):
        change(sim, there, chance, puts=puts)
    nodes = chance.sample(SERVERS, chance.choice((1, 3, 6)))
    away = [server for server in chance.sample(SERVERS, 1) if server not in nodes]
    with sim.refusing("container", *away):
        sharders.run(*nodes, **options)
    sim.clear_node_errors()
    with sim.refusing("container", chance.choice(SERVERS)):
        found = set(listed(sim))
    assert {name for name, is_there in there.items() if is_there} <= found
    assert not {name for name, is_there in there.items() if is_there is False} & found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_acknowledged_objects_are_listed_during_a_split(sim, sharders, seed):
    chance, there = random.Random(seed), {}
    for _ in range(8):
        work(sim, sharders, there, chance, puts=0.7)
    for _ in range(4):
        sharders.run()
    assert state(sim) in ("sharding", "sharded")
    for _ in range(6):
        work(sim, sharders, there, chance, puts=0.15, shrink_threshold=6, minimum_shard_size=6)
    for name in [name for name, is_there in there.items() if is_there is None]:
        there[name] = sim("PUT", f"/a/c/{name}", TEXT, b"x").status == 201
    agreed_listings(sim, sorted(name for name, is_there in there.items() if is_there))


def test_hidden_containers_have_strong_listings(sim):
    allowed = {"x-backend-allow-reserved-names": "true"}
    home = "/a/%00versions%00c"
    assert sim("PUT", home, allowed).status == 201
    servers = sim.primaries("container", "a", "\0versions\0c")
    for n in range(3):
        with sim.refusing("container", servers[n]):
            assert sim("PUT", f"{home}/%00k%00{n}", {**allowed, **TEXT}, b"x").status == 201
    with sim.refusing("container", servers[0]):
        assert sim("DELETE", f"{home}/%00k%000", allowed).status == 204
    for later in servers:
        with sim.refusing("container", later):
            rows = json.loads(sim("GET", f"{home}?format=json", allowed).body)
            assert [row["name"] for row in rows] == ["\x00k\x001", "\x00k\x002"]


@pytest.mark.parametrize("seed", range(4))
def test_listings_match_acknowledged_writes_whichever_servers_are_down(sim, containers, seed):
    chance = random.Random(seed)
    there, unknown = {}, set()
    for n in range(60):
        name = chance.choice("abcdefgh") + "/" + chance.choice("xyz")
        away = chance.sample(containers, chance.choice((0, 1, 1, 1, 2)))
        lost = chance.sample(sim.primaries("object", "a", "c", name), chance.choice((0, 0, 1)))
        with sim.refusing("container", *away), sim.refusing("object", *lost):
            if chance.random() < 0.6:
                body = b"x" * n
                status, after = sim("PUT", f"/a/c/{name}", TEXT, body).status, {name: len(body)}
            else:
                status, after = sim("DELETE", f"/a/c/{name}").status, {}
        there.pop(name, None)
        unknown.discard(name)
        if status in (201, 204, 404):
            there.update(after)
        else:
            assert status == 503
            unknown.add(name)
        with sim.refusing("container", chance.choice(containers)):
            limit = chance.choice((2, 5, 100))
            rows, marker = [], ""
            while page := json.loads(
                sim("GET", f"/a/c?format=json&limit={limit}&marker={marker}").body or b"[]"
            ):
                rows += page
                marker = page[-1]["name"]
        found = {row["name"]: row["bytes"] for row in rows}
        assert {name: size for name, size in found.items() if name not in unknown} == there
