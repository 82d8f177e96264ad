"""A sharded container that became small is one database again; listings stay the same throughout."""

import contextlib
import os
import random
import shutil
from collections import Counter

import pytest

from swift.base.timestamp import Timestamp
from test.support.daemons import Sharders, put, rows, settle, shards, state
from test.support.sim import MemoryCache, SimCluster, node_port

NAMES = [f"o{number:02d}" for number in range(30)]
#: Shards of fewer rows than this shrink, all of them at once; tombstones count until they are reclaimed.
ALL = {"shrink_threshold": 15, "minimum_shard_size": 15, "rows_per_shard": 18, "max_shrinking": 9}
FEW = {**ALL, "shard_container_threshold": 40, "expansion_limit": 39}


class Cut(BaseException):
    """The sharder process was killed."""


@pytest.fixture(scope="module")
def sharded(tmp_path_factory, rings):
    """The files of a cluster whose container has been split; each test has a copy."""
    root = tmp_path_factory.mktemp("sharded")
    with contextlib.closing(SimCluster(root, rings)) as cluster:
        assert cluster("PUT", "/a/c", {"x-container-sysmeta-sharding": "True"}).status == 201
        put(cluster, *NAMES)
        settle(cluster, Sharders(cluster, root))
        assert (state(cluster), len(shards(cluster))) == ("sharded", 4)
    return root


@pytest.fixture
def sim(make_sim, sharded, tmp_path):
    shutil.copytree(sharded, tmp_path, dirs_exist_ok=True)
    return make_sim()


@pytest.fixture
def split(sim, tmp_path):
    return Sharders(sim, tmp_path)


def count(sim):
    return int(sim("HEAD", "/a/c", {"x-newest": "true"}).headers["x-container-object-count"])


@pytest.mark.long
def test_shards_that_are_all_small_are_merged_into_the_root(sim, split):
    counters = Counter()
    for _ in range(4):
        counters.update(split.run(**FEW))
        sim.cache.values.clear()
        assert rows(sim) == NAMES
        assert count(sim) == len(NAMES)
    assert counters["shrinking_found"] == 1
    assert state(sim) == "collapsed"
    assert shards(sim) == [] or {item["name"] for item in shards(sim)} == {"a/c"}
    assert not [line for line in split.log.lines if line.startswith(("ERROR", "WARNING"))]
    # It is a container like any other from now on.
    put(sim, "zz")
    assert sim("DELETE", "/a/c/o00").status == 204
    assert rows(sim) == [*NAMES[1:], "zz"]
    for _ in range(2):
        assert "shrinking_found" not in split.run(**FEW)


@pytest.mark.long
def test_the_last_shards_are_merged_into_the_root_one_by_one(sim, split):
    for name in NAMES[4:]:
        assert sim("DELETE", f"/a/c/{name}").status == 204
    sizes = {"shrink_threshold": 35, "minimum_shard_size": 35, "rows_per_shard": 38, "max_shrinking": 1}
    for _ in range(16):
        split.run(**{**FEW, **sizes})
        sim.cache.values.clear()
        assert rows(sim) == NAMES[:4]
    assert state(sim) == "collapsed"
    assert count(sim) == 4


@pytest.mark.long
def test_an_empty_sharded_container_can_be_deleted(sim, split):
    for name in NAMES:
        assert sim("DELETE", f"/a/c/{name}").status == 204
    for _ in range(4):
        split.run(**FEW)
        sim.cache.values.clear()
    assert (state(sim), rows(sim)) == ("collapsed", [])
    assert sim("DELETE", "/a/c").status == 204
    split.run(**FEW)
    assert sim("GET", "/a/c").status == 404


def put_row(sim, path, timestamp):
    """Send a row to all replicas of a container as the object updater does; return where it is redirected."""
    account, container, _name = path.split("/", 3)[1:]
    part = sim.context.rings.container.view().partition_of(sim.hasher.digest(account, container))
    headers = {"x-timestamp": timestamp, "x-size": "1", "x-etag": "e", "x-content-type": "t/p"}
    headers |= {"x-backend-accept-redirect": "true", "x-backend-accept-quoted-location": "true"}
    responses = [
        sim.transport.request_of(
            node_port("container", node), "PUT", f"/sdb{node}/{part}{path}", dict(headers)
        )
        for node in sim.primaries("container", account, container)
    ]
    assert len({response.status for response in responses}) == 1
    return responses[0].headers.get("location")


@pytest.mark.long
def test_a_row_that_arrives_late_revives_a_merged_and_deleted_container(sim, split):
    shard = put_row(sim, "/a/c/late", "1500000000.00000")
    assert shard.startswith("/.shards_a/")
    written_at = Timestamp.now().internal
    for name in NAMES:
        assert sim("DELETE", f"/a/c/{name}").status == 204
    for _ in range(4):
        split.run(**FEW)
        sim.cache.values.clear()
    assert sim("DELETE", "/a/c").status == 204
    assert sim("GET", "/a/c").status == 404
    # The object's server has saved the row for the shard, which is merged now.
    assert put_row(sim, shard, written_at) == "/a/c/late"
    assert put_row(sim, "/a/c/late", written_at) is None
    for _ in range(3):
        sim.cache.values.clear()
        assert rows(sim) == ["late"]
        split.run(**FEW)


@pytest.mark.long
def test_a_container_deleted_while_shards_are_merged_stays_deleted(sim, split):
    for name in NAMES:
        assert sim("DELETE", f"/a/c/{name}").status == 204
    settle(sim, split, auto_shard=False)
    (leader, *_others) = sim.primaries("container", "a", "c")
    split.run(leader, **FEW)
    sim.cache.values.clear()
    assert sim("DELETE", "/a/c").status == 204
    for _ in range(4):
        split.run(**FEW)
        sim.cache.values.clear()
        assert sim("GET", "/a/c").status == 404


@pytest.mark.long
def test_rows_written_during_the_merge_are_kept(sim, split):
    (leader, *_others) = sim.primaries("container", "a", "c")
    split.run(leader, **FEW)
    # Proxies cache the shards for a while, and request them from the root afterwards.
    for clear in (False, True):
        if clear:
            sim.cache.values.clear()
        put(sim, f"new{clear:d}", f"a{clear:d}")
        assert sim("DELETE", f"/a/c/o1{clear:d}").status == 204
    expected = sorted({*NAMES, "new0", "new1", "a0", "a1"} - {"o10", "o11"})
    assert set(expected) - {"new0", "new1", "a0", "a1"} <= set(rows(sim))
    for _ in range(5):
        split.run(**FEW)
        sim.cache.values.clear()
    assert (state(sim), rows(sim), count(sim)) == ("collapsed", expected, len(expected))


@pytest.mark.long
def test_a_collapsed_container_that_grows_is_sharded_again(sim, split):
    for _ in range(4):
        split.run(**FEW)
    assert state(sim) == "collapsed"
    more = [f"p{number:02d}" for number in range(10)]
    put(sim, *more)
    settle(sim, split, passes=20)
    assert state(sim) == "sharded"
    assert rows(sim) == [*NAMES, *more]
    sim.cache.values.clear()
    assert count(sim) == 40
    # Cached ranges of the first shards do no harm.
    assert len(shards(sim)) == 5


@pytest.mark.long
def test_a_shard_that_cannot_reach_the_root_lists_what_it_has(sim, split):
    (leader, *others) = sim.primaries("container", "a", "c")
    split.run(leader, **FEW)
    with sim.refusing("container", *others):
        split.run(*(n for n in range(1, 7) if n not in others), **FEW)
    sim.clear_node_errors()
    sim.cache.values.clear()
    assert rows(sim) == NAMES
    assert state(sim) == "sharded"
    for _ in range(5):
        split.run(**FEW)
        sim.cache.values.clear()
        assert rows(sim) == NAMES
    assert state(sim) == "collapsed"


def cached_shards(sim):
    """Return the cache of a proxy that has listed the container, and its content."""
    sim.cache.values.clear()
    assert rows(sim) == NAMES
    return dict(sim.cache.values)


def put_by_another_proxy(sim, *names):
    """Put objects through another proxy, which has an empty cache."""
    for name in names:
        env = {"swift.cache": MemoryCache()}
        assert sim("PUT", f"/a/c/{name}", {"content-type": "t/p"}, b"x", env=env).status == 201


@pytest.mark.parametrize("role", ["none", "leader", "replica", "other"])
def test_a_proxy_refreshes_cached_shards_that_were_merged_into_the_root(sim, split, role):
    leader, replica, _third = primaries = sim.primaries("container", "a", "c")
    other = next(number for number in range(1, 7) if number not in primaries)
    away = {"leader": leader, "replica": replica, "other": other}.get(role)
    known = cached_shards(sim)
    for _ in range(4):
        split.run(*(number for number in range(1, 7) if number != away), **FEW)
    put_by_another_proxy(sim, "a", "o15x", "zz")
    expected = sorted([*NAMES, "a", "o15x", "zz"])
    for _ in range(6):
        # Whichever replica answers: one has not been looked at yet by its sharder.
        sim.cache.values.clear()
        sim.cache.values.update(known)
        assert rows(sim) == expected
    # The next rows go to shards where they are listed.
    put(sim, "o15y")
    assert "o15y" in rows(sim)


@pytest.mark.long
def test_a_proxy_refreshes_cached_shards_that_were_replaced(sim, split):
    known = cached_shards(sim)
    for _ in range(4):
        split.run(**FEW)
    assert state(sim) == "collapsed"
    more = [f"p{number:02d}" for number in range(10)]
    put_by_another_proxy(sim, *more)
    settle(sim, split, passes=20)
    assert state(sim) == "sharded"
    sim.cache.values.clear()
    sim.cache.values.update(known)
    assert rows(sim) == [*NAMES, *more]
    assert sim("DELETE", "/a/c/o00").status == 204
    put(sim, "q")
    assert rows(sim) == [*NAMES[1:], *more, "q"]


class CutTransport:
    """The transport of a process that is killed before, or just after, its request number ``at``."""

    def __init__(self, transport, at, *, is_sent):
        self._transport = transport
        self.left = at
        self._is_sent = is_sent

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def request(self, request):
        self.left -= 1
        if self.left == 0 and not self._is_sent:
            raise Cut
        response = self._transport.request(request)
        if self.left == 0:
            raise Cut
        return response


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("SWIFT_COLLAPSE_SEEDS", "2"))))
def test_a_sharder_killed_at_any_step_is_recovered_from(sim, split, seed):
    draw = random.Random(seed)
    known, steady = set(NAMES), set(NAMES)
    for turn in range(8):
        split.transport = CutTransport(sim.transport, draw.randrange(1, 40), is_sent=draw.random() < 0.5)
        with contextlib.suppress(Cut):
            split.run(draw.randrange(1, 7), **FEW)
        # Cached shard ranges may name shards that are deleted by now.
        sim.cache.values.clear()
        put(sim, f"n{turn}")
        known.add(f"n{turn}")
        gone = draw.choice(sorted(known))
        assert sim("DELETE", f"/a/c/{gone}").status == 204
        known.discard(gone)
        steady.discard(gone)
        listed = rows(sim)
        assert listed == sorted(set(listed)), "everything is listed once"
        assert steady <= set(listed), "what was there before is there all the time"
    split.transport = sim.transport
    for _ in range(8):
        split.run(**FEW)
        sim.cache.values.clear()
    assert rows(sim) == sorted(known)
    assert count(sim) == len(known)


class BusyTransport:
    """The transport of concurrent sharders: another sharder's pass runs between some requests."""

    def __init__(self, sharders, draw, look):
        self._sharders = sharders
        self._transport = sharders.sim.transport
        self._draw = draw
        self._look = look
        self._running = []

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def run(self, number):
        self._running.append(number)
        try:
            self._sharders.run(number, **FEW)
        finally:
            self._running.pop()

    def request(self, request):
        self._intrude()
        response = self._transport.request(request)
        self._intrude()
        return response

    def _intrude(self):
        if len(self._running) < 3 and self._draw.random() < 0.1:
            self.run(self._draw.choice([n for n in range(1, 7) if n not in self._running]))
            self._look()


@pytest.mark.long
@pytest.mark.parametrize("seed", [116])
def test_listings_stay_complete_while_all_sharders_run(sim, split, seed):
    draw = random.Random(seed)

    def look():
        sim.cache.values.clear()
        assert rows(sim) == NAMES

    split.transport = BusyTransport(split, draw, look)
    (leader, *others) = sim.primaries("container", "a", "c")
    if seed % 2:
        # As if an operator had changed one replica: replication informs the others later.
        with sim.refusing("container", *others):
            split.run(leader, **FEW)
        sim.clear_node_errors()
    for _ in range(12):
        split.transport.run(draw.randrange(1, 7))
        look()
    for _ in range(4):
        split.run(**FEW)
        look()
    assert state(sim) == "collapsed"
