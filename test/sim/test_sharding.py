"""A container is sharded while clients use it; listings stay the same throughout."""

import json
import random
from dataclasses import replace

import pytest

from swift.base.shardrange import ShardRange
from swift.base.timestamp import Timestamp
from test.support.daemons import Sharders, put, rows, settle, shards, state
from test.support.sim import node_port

NAMES = [f"o{number:02d}" for number in range(30)]


def test_a_large_container_is_sharded_and_lists_the_same(sim, sharders):
    put(sim, *NAMES)
    before = sim("HEAD", "/a/c").headers
    counters = sharders.run()
    assert counters["created_success"] == 4
    assert counters["cleaved_success"]
    sim.cache.values.clear()
    assert state(sim) in ("sharding", "unsharded")
    assert rows(sim) == NAMES
    settle(sim, sharders)
    assert state(sim) == "sharded"
    assert rows(sim) == NAMES
    after = sim("HEAD", "/a/c").headers
    for name in ("x-container-object-count", "x-container-bytes-used"):
        assert after[name] == before[name]
    assert not sharders.log.lines or not [line for line in sharders.log.lines if line.startswith("ERROR")]


def test_clients_see_the_same_headers_of_listings_before_and_after_a_split(sim, sharders):
    def client_headers():
        """Return the names that the gatekeeper lets through, of both formats of a listing."""
        responses = [sim("GET", f"/a/c{query}") for query in ("", "?format=json")]
        assert [response.headers["accept-ranges"] for response in responses] == ["bytes", "bytes"]
        internal = ("x-backend-", "x-container-sysmeta-")
        return [
            {name for name in response.headers if not name.startswith(internal)} for response in responses
        ]

    put(sim, *NAMES)
    before = client_headers()
    settle(sim, sharders)
    assert state(sim) == "sharded"
    sim.cache.values.clear()
    # The first listing fills the cache, the second one is made from it.
    assert [client_headers(), client_headers()] == [before, before]


@pytest.mark.long
def test_listings_of_a_sharded_container_support_all_parameters(sim, sharders):
    names = sorted([*NAMES, *(f"d{n}/x{m}" for n in range(4) for m in range(3)), "d2", "p/ä", "p/z"])
    put(sim, *names)
    plain = {
        json.dumps(params): rows(sim, **params)
        for params in (
            {},
            {"limit": 7},
            {"marker": "o07"},
            {"marker": "o07", "limit": 5},
            {"end_marker": "o20"},
            {"marker": "o03", "end_marker": "o21"},
            {"prefix": "o1"},
            {"prefix": "d1/"},
            {"prefix": "zzz"},
            {"delimiter": "/"},
            {"delimiter": "/", "limit": 3},
            {"delimiter": "/", "marker": "d1/"},
            {"delimiter": "/", "prefix": "d"},
            {"delimiter": "/", "reverse": "true"},
            {"reverse": "true"},
            {"reverse": "true", "limit": 4},
            {"reverse": "true", "marker": "o17", "end_marker": "d3"},
            {"reverse": "true", "prefix": "o2"},
            {"reverse": "true", "delimiter": "/", "marker": "d3/"},
            {"path": "d1"},
            {"path": ""},
            {"limit": 0},
            {"marker": "zzz"},
        )
    }
    settle(sim, sharders, passes=20)
    assert state(sim) == "sharded"
    for text, expected in plain.items():
        assert rows(sim, **json.loads(text)) == expected, text


def test_rows_and_deletions_go_to_shards(sim, sharders):
    put(sim, *NAMES)
    settle(sim, sharders)
    assert state(sim) == "sharded"
    put(sim, "o05x", "zz", "aa")
    told = [
        headers["x-backend-quoted-container-path"]
        for kind, _n, method, _path, headers in sim.transport.requests
        if kind == "object" and method == "PUT"
    ]
    assert told and all(path.startswith(".shards_a/c-") for path in told)
    for name in ("o00", "o29"):
        assert sim("DELETE", f"/a/c/{name}").status == 204
    expected = sorted({*NAMES, "o05x", "zz", "aa"} - {"o00", "o29"})
    assert rows(sim) == expected
    settle(sim, sharders)
    assert rows(sim) == expected
    sim.cache.values.clear()
    assert sim("HEAD", "/a/c").headers["x-container-object-count"] == str(len(expected))


def test_rows_that_reach_the_root_late_are_moved(sim, sharders):
    put(sim, *NAMES)
    settle(sim, sharders)
    # Object servers with cached ranges send updates to the root.
    for node in sim.primaries("container", "a", "c"):
        response = sim.transport.request_of(
            node_port("container", node),
            "PUT",
            f"/sdb{node}/{part_of(sim)}/a/c/late",
            {"x-timestamp": "1795000000.00000", "x-size": "1", "x-etag": "e", "x-content-type": "t/p"},
        )
        assert response.status == 201
    settle(sim, sharders)
    assert "late" in rows(sim)


def part_of(sim):
    view = sim.context.rings.container.view()
    return view.partition_of(sim.hasher.digest("a", "c"))


def test_a_split_container_is_deleted_only_when_it_is_empty(sim, sharders):
    put(sim, *NAMES)
    settle(sim, sharders)
    assert sim("DELETE", "/a/c").status == 409
    for name in NAMES:
        assert sim("DELETE", f"/a/c/{name}").status == 204
    settle(sim, sharders, auto_shard=False)
    assert rows(sim) == []
    assert sim("DELETE", "/a/c").status == 204
    assert sim("HEAD", "/a/c").status == 404


@pytest.mark.long
def test_writers_do_not_keep_a_container_from_being_split(sim, sharders, tmp_path):
    running = Sharders(sim, tmp_path, keeps=True)
    running.run()
    put(sim, *NAMES)
    # Every file was just written; a sharder that has not seen the shard ranges would wait.
    for turn in range(6):
        put(sim, f"p{turn}")
        running.run()
    sim.cache.values.clear()
    assert state(sim) == "sharded"
    for _ in range(2):
        running.run()
    expected = sorted([*NAMES, *(f"p{turn}" for turn in range(6))])
    sim.cache.values.clear()
    assert rows(sim) == expected
    assert sim("HEAD", "/a/c", {"x-newest": "true"}).headers["x-container-object-count"] == str(len(expected))


@pytest.mark.long
def test_small_shards_are_merged(sim, sharders):
    put(sim, *NAMES)
    settle(sim, sharders)
    for name in NAMES[:7]:
        assert sim("DELETE", f"/a/c/{name}").status == 204
    assert len(shards(sim)) == 4
    for _ in range(15):
        sharders.run(shrink_threshold=3, reclaim_age=0.0)
        sim.cache.values.clear()
        assert rows(sim) == NAMES[7:]
    assert len(shards(sim)) == 3
    assert sim("HEAD", "/a/c").headers["x-container-object-count"] == str(len(NAMES) - 7)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_the_listing_matches_the_objects_whenever_sharders_are_idle(sim, sharders, seed):
    draw = random.Random(seed)
    known = set()
    for _round in range(6):
        for _ in range(14):
            name = f"{draw.choice('abcdef')}{draw.randrange(20):02d}"
            if name in known and draw.random() < 0.4:
                assert sim("DELETE", f"/a/c/{name}").status == 204
                known.discard(name)
            else:
                put(sim, name)
                known.add(name)
        away = draw.sample(range(1, 7), draw.randrange(3))
        with sim.refusing("container", *away[:1]):
            sharders.run(*(n for n in range(1, 7) if n not in away))
        sim.clear_node_errors()
        if draw.random() < 0.5:
            sim.cache.values.clear()
    settle(sim, sharders, passes=25)
    assert rows(sim) == sorted(known)
    assert sim("HEAD", "/a/c").headers["x-container-object-count"] == str(len(known))


@pytest.mark.long
def test_recon_lists_sharding_candidates_and_containers_being_sharded(sim, sharders):
    put(sim, *NAMES)
    sharders.run(auto_shard=False)
    candidates = sharders.lists["sharding_candidates"]
    assert {(item["container"], item["object_count"]) for item in candidates} == {("c", 30)}
    assert sorted(item["node_index"] for item in candidates) == [0, 1, 2]
    assert set(candidates[0]) == {
        *("account", "container", "file_size", "meta_timestamp", "node_index", "object_count", "path"),
        *("root", "tombstones"),
    }
    sharders.run()
    busy = sharders.lists["sharding_in_progress"]
    assert {item["db_state"] for item in busy} == {"sharding"}
    settle(sim, sharders)
    done = sharders.lists["sharding_in_progress"]
    assert {(item["state"], item["active"], item["error"]) for item in done} == {("sharded", 4, None)}
    assert all(item["total_sharding_time"] > 0 for item in done)
    sharders.run(recon_sharded_timeout=0.0)
    assert sharders.lists["sharding_in_progress"] == []


@pytest.mark.long
def test_a_split_that_takes_long_and_shards_that_leave_gaps_are_warned_about(sim, sharders, tmp_path):
    put(sim, *NAMES)
    running = Sharders(sim, tmp_path, keeps=True)
    running.run(container_sharding_timeout=0.0)
    running.run(container_sharding_timeout=0.0)
    said = [line for line in running.log.lines if "is being split for" in line]
    assert len(said) == len(set(said)) == 3 and "a/c is being split" in said[0]
    settle(sim, sharders)
    assert not [line for line in sharders.log.lines if "missing" in line or "overlapping" in line]
    (gone, *_others) = [item for item in shards(sim) if item["lower"]]
    told = json.dumps([{**gone, "deleted": 1, "timestamp": Timestamp.now().normal}]).encode()
    for node in sim.primaries("container", "a", "c"):
        response = sim.transport.request_of(
            node_port("container", node),
            "PUT",
            f"/sdb{node}/{part_of(sim)}/a/c",
            {
                "x-timestamp": Timestamp.now().internal,
                "x-backend-record-type": "shard",
                "content-length": str(len(told)),
            },
            told,
        )
        assert response.status in (201, 202)
    sharders.run()
    said = [line for line in sharders.log.lines if "missing range(s)" in line]
    assert len(said) == 3
    assert f"missing range(s): {gone['lower']}-{gone['upper']}" in said[0]


def test_a_filled_gap_takes_new_names_and_not_those_of_the_deleted_shard(sim, sharders):
    """The listing is OpenStack Swift's after ``swift-manage-shard-ranges repair --gaps``."""
    put(sim, *NAMES)
    settle(sim, sharders)
    ranges = [ShardRange.from_mapping(item) for item in shards(sim)]
    now = Timestamp.now().internal
    gone, filler = replace(ranges[1], deleted=True, timestamp=now), replace(ranges[2], timestamp=now)
    filler = replace(filler, lower=gone.lower)
    body = json.dumps([gone.as_dict(), filler.as_dict()]).encode()
    for node in sim.primaries("container", "a", "c"):
        response = sim.transport.request_of(
            node_port("container", node),
            "PUT",
            f"/sdb{node}/{part_of(sim)}/a/c",
            {"x-timestamp": now, "x-backend-record-type": "shard", "content-length": str(len(body))},
            body,
        )
        assert response.status in (201, 202)
    sim.cache.values.clear()
    new = f"{gone.lower}x"
    assert gone.includes(new)
    put(sim, new)
    settle(sim, sharders, auto_shard=False)
    left = [name for name in NAMES if not gone.includes(name)]
    assert rows(sim) == sorted([*left, new])
