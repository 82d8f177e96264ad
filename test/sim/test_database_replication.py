"""Database replicas converge after network partitions, lost messages, and lost and returned nodes."""

import itertools
import random
import shutil
import sqlite3

import pytest

from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.runtime.selection import Selection
from test.support import databases
from test.support.daemons import Replicators
from test.support.databases import add_ranges, shard
from test.support.sim import NODES, node_port

EVERYBODY = range(1, NODES + 1)
ROW = {"x-size": "5", "x-etag": "e", "x-content-type": "t/p"}


@pytest.fixture
def replicators(sim, tmp_path):
    return Replicators(sim, tmp_path)


def stamp(tick):
    return f"{1_700_000_000 + tick:010d}.00000"


def ask(sim, kind, number, method, names, headers, body=b""):
    """Send a request directly to a server."""
    view = getattr(sim.context.rings, kind).view()
    part = view.partition_of(sim.hasher.digest(*names[: 1 if kind == "account" else 2]))
    path = f"/sdb{number}/{part}/{'/'.join(names)}"
    port = node_port(kind, number)
    return sim.transport.request_of(port, method, path, headers, body)


def put_row(sim, number, name, tick, method="PUT"):
    response = ask(sim, "container", number, method, ("a", "c", name), {"x-timestamp": stamp(tick), **ROW})
    assert response.is_success, response


def lose_database(replicators, number, *names):
    shutil.rmtree(replicators.folder("container", number, *names))


def test_a_lost_database_is_restored_completely(sim, replicators):
    first, second, third = sim.primaries("container", "a", "c")
    for tick in range(5):
        put_row(sim, first, f"o{tick}", tick)
    lose_database(replicators, second, "a", "c")
    facts = replicators.run("container", first)
    assert facts["replication_stats"]["rsync"] == 1
    assert facts["replication_stats"]["success"] == 2
    rows = [replicators.rows(number, "a", "c") for number in (first, second, third)]
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0]) == 5
    # The copy is a separate database with its own sync points.
    facts = replicators.run("container", second)
    assert facts["replication_stats"]["no_change"] + facts["replication_stats"]["hashmatch"] == 2


def test_rows_and_metadata_of_diverged_replicas_are_merged(sim, replicators):
    first, second, third = sim.primaries("container", "a", "c")
    put_row(sim, first, "one", 1)
    put_row(sim, second, "two", 2)
    put_row(sim, third, "one", 3, "DELETE")
    response = ask(
        sim, "container", third, "POST", ("a", "c"), {"x-timestamp": stamp(9), "x-container-meta-k": "v"}
    )
    assert response.status == 204
    replicators.run("container", first, second, third, first)
    rows = [replicators.rows(number, "a", "c") for number in (first, second, third)]
    assert rows[0] == rows[1] == rows[2]
    assert [(row[0], row[5]) for row in rows[0]] == [("one", 1), ("two", 0)]
    for number in (first, second, third):
        response = ask(sim, "container", number, "HEAD", ("a", "c"), {})
        assert (response.headers["x-container-meta-k"], response.headers["x-container-object-count"]) == (
            "v",
            "1",
        )


def test_a_replica_far_behind_gets_the_whole_database_and_keeps_its_own_rows(sim, replicators):
    first, second, _third = sim.primaries("container", "a", "c")
    for tick in range(30):
        put_row(sim, first, f"o{tick:02}", tick)
    put_row(sim, second, "mine", 50)
    facts = replicators.run("container", first, per_diff=3)
    assert facts["replication_stats"]["remote_merge"] == 2
    assert [row[0] for row in replicators.rows(second, "a", "c")][:2] == ["mine", "o00"]
    assert len(replicators.rows(second, "a", "c")) == 31
    put_row(sim, second, "later", 60)
    replicators.run("container", second, per_diff=3)
    assert {row[0] for row in replicators.rows(first, "a", "c")} >= {"mine", "later"}


def test_a_pass_sends_a_limited_number_of_rows_and_the_next_continues(sim, replicators):
    first, second, _third = sim.primaries("container", "a", "c")
    for number in (first, second):
        for tick in range(10):
            put_row(sim, number, f"o{tick}", tick)
    for tick in range(10, 20):
        put_row(sim, first, f"o{tick}", tick)
    facts = replicators.run("container", first, per_diff=2, max_diffs=3)
    assert facts["replication_stats"]["diff_capped"] >= 1
    assert facts["replication_stats"]["failure"] >= 1
    for _ in range(5):
        facts = replicators.run("container", first, per_diff=2, max_diffs=3)
    assert replicators.rows(second, "a", "c") == replicators.rows(first, "a", "c")
    assert facts["replication_stats"]["failure"] == 0


def test_unreachable_nodes_are_counted_by_address(sim, replicators):
    first, second, _third = sim.primaries("container", "a", "c")
    with sim.refusing("container", second):
        facts = replicators.run("container", first)
    assert facts["replication_stats"]["failure_nodes"] == {"10.0.0.1": {f"sdb{second}": 1}}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_replicas_converge_after_random_network_partitions_and_losses(sim, replicators, seed):
    rng = random.Random(seed)
    nodes = sim.primaries("container", "a", "c")

    def lose(_port, _path, _body):
        return rng.choice((None, None, None, "request", "answer"))

    for tick in range(40):
        chance = rng.random()
        if chance < 0.6:
            name, method = f"o{rng.randint(0, 15):02}", rng.choice(("PUT", "PUT", "DELETE"))
            for number in rng.sample(nodes, rng.randint(1, 3)):
                if replicators.files("container", number, "a", "c"):
                    put_row(sim, number, name, tick, method)
        elif chance < 0.65:
            lose_some(replicators, rng, nodes)
        else:
            replicators.transport.lose = lose
            away = rng.sample(nodes, rng.randint(0, 1))
            with sim.refusing("container", *away):
                settings = {"per_diff": rng.choice((1, 3, 1000)), "max_diffs": rng.choice((1, 100))}
                replicators.run("container", rng.choice(nodes), **settings)
            replicators.transport.lose = lambda *_: None
    for number in (*nodes, *nodes):
        replicators.run("container", number)
    rows = [replicators.rows(number, "a", "c") for number in nodes]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0]
    leftovers = [path for number in nodes for path in temporary(sim, number)]
    assert not [path for path in leftovers if path.name.endswith(".tmp")]


def lose_some(replicators, rng, nodes):
    """Replace a device while other replicas are complete."""
    replicators.transport.lose = lambda *_: None
    for number in nodes:
        if replicators.files("container", number, "a", "c"):
            replicators.run("container", number)
    number = rng.choice(nodes)
    if len(replicators.holders("container", "a", "c")) == 3:
        lose_database(replicators, number, "a", "c")


def temporary(sim, number):
    folder = sim.root / f"node{number}" / f"sdb{number}" / "tmp"
    return list(folder.iterdir()) if folder.exists() else []


# --- handoffs ---------------------------------------------------------------------------------------


def make_handoff(sim, replicators):
    """Put a database on a handoff node; return its number and the primaries'."""
    nodes = sim.primaries("container", "a", "c")
    spare = next(n for n in EVERYBODY if n not in nodes)
    put_row(sim, nodes[0], "o", 1)
    replicators.run("container", nodes[0])
    target = replicators.folder("container", spare, "a", "c")
    target.parent.mkdir(parents=True)
    shutil.copytree(replicators.folder("container", nodes[0], "a", "c"), target)
    connection = sqlite3.connect(next(target.glob("*.db")))
    connection.execute("UPDATE container_info SET id = 'spare'")
    connection.commit()
    connection.close()
    put_row(sim, spare, "late", 7)
    return spare, nodes


def test_a_handoff_is_removed_when_all_primaries_have_everything(sim, replicators):
    spare, nodes = make_handoff(sim, replicators)
    with sim.refusing("container", nodes[1]):
        replicators.run("container", spare)
    assert replicators.holders("container", "a", "c") == sorted((*nodes, spare))
    facts = replicators.run("container", spare)
    assert facts["replication_stats"]["remove"] == 1
    assert replicators.holders("container", "a", "c") == sorted(nodes)
    assert not replicators.folder("container", spare, "a", "c").parent.parent.exists()
    for number in nodes:
        assert [row[0] for row in replicators.rows(number, "a", "c")] == ["late", "o"]
    assert ask(sim, "container", spare, "HEAD", ("a", "c"), {}).status == 404


def test_handoff_delete_lowers_the_required_number_of_copies(sim, replicators):
    spare, nodes = make_handoff(sim, replicators)
    with sim.refusing("container", nodes[1]):
        replicators.run("container", spare, handoff_delete=2)
    assert replicators.holders("container", "a", "c") == sorted(nodes)


def test_a_row_that_arrives_during_the_pass_keeps_the_handoff(sim, replicators):
    spare, nodes = make_handoff(sim, replicators)
    ticks = itertools.count(20)
    last = node_port("container", nodes[-1])

    def write_meanwhile(port, _path, body):
        if port == last and b"merge_syncs" in body:
            put_row(sim, spare, f"meanwhile{next(ticks)}", 30)

    replicators.transport.lose = write_meanwhile
    facts = replicators.run("container", spare)
    assert facts["replication_stats"]["remove"] == 0
    replicators.transport.lose = lambda *_: None
    replicators.run("container", spare)
    assert replicators.holders("container", "a", "c") == sorted(nodes)
    for number in nodes:
        assert "meanwhile20" in [row[0] for row in replicators.rows(number, "a", "c")]


def test_a_handoff_stands_in_for_an_unmounted_device(sim, replicators):
    first, second, third = sim.primaries("container", "a", "c")
    put_row(sim, first, "o", 1)
    with sim.responding("container", 507, second):
        replicators.run("container", first)
    holders = replicators.holders("container", "a", "c")
    assert len(holders) == 4
    (spare,) = set(holders) - {first, second, third}
    replicators.run("container", spare)
    assert replicators.holders("container", "a", "c") == sorted((first, second, third))
    assert replicators.rows(second, "a", "c") == replicators.rows(first, "a", "c")


def test_handoffs_only_skips_primaries(sim, replicators):
    spare, nodes = make_handoff(sim, replicators)
    put_row(sim, nodes[0], "only here", 9)
    replicators.run("container", nodes[0], handoffs_only=True)
    assert "only here" not in [row[0] for row in replicators.rows(nodes[1], "a", "c")]
    replicators.run("container", spare, handoffs_only=True)
    assert replicators.holders("container", "a", "c") == sorted(nodes)


def test_a_manual_run_can_be_limited(sim, replicators):
    first, second, _third = sim.primaries("container", "a", "c")
    put_row(sim, first, "o", 1)
    part = replicators.folder("container", first, "a", "c").parent.parent.name
    for wrong in (Selection(devices=frozenset(("sdz",))), Selection(partitions=frozenset(("99",)))):
        assert replicators.run("container", first, selection=wrong) == {}
        assert replicators.rows(second, "a", "c") == []
    right = Selection(frozenset((f"sdb{first}",)), frozenset((part,)))
    assert replicators.run("container", first, selection=right) == {}
    assert len(replicators.rows(second, "a", "c")) == 1


# --- things in the wrong place, broken things -------------------------------------------------------


def test_a_database_of_another_partition_is_returned_to_primaries(sim, replicators):
    first, *_others = nodes = sim.primaries("container", "a", "c")
    put_row(sim, first, "o", 1)
    home = replicators.folder("container", first, "a", "c")
    wrong = replicators.folder("container", first, "a", "c", partition=(int(home.parts[-3]) + 1) % 16)
    wrong.parent.mkdir(parents=True)
    home.rename(wrong)
    replicators.run("container", first)
    assert not wrong.exists()
    assert replicators.holders("container", "a", "c") == sorted(nodes)
    assert replicators.rows(first, "a", "c") == replicators.rows(nodes[1], "a", "c")
    assert len(replicators.rows(first, "a", "c")) == 1


def test_a_damaged_database_is_quarantined_and_restored(sim, replicators):
    first, second, _third = sim.primaries("container", "a", "c")
    put_row(sim, second, "o", 1)
    (path,) = replicators.files("container", first, "a", "c")
    path.write_bytes(b"\xff" * 8192)
    facts = replicators.run("container", first)
    assert facts["replication_stats"]["failure"] == 1
    assert not path.exists()
    device = sim.root / f"node{first}" / f"sdb{first}"
    assert [p.name for p in (device / "quarantined" / "containers").iterdir()] == [path.stem]
    replicators.run("container", second)
    assert len(replicators.rows(first, "a", "c")) == 1


def test_a_damaged_database_that_gets_a_request_is_replaced_at_once(sim, replicators):
    first, second, _third = sim.primaries("container", "a", "c")
    put_row(sim, second, "o", 1)
    (path,) = replicators.files("container", first, "a", "c")
    path.write_bytes(b"\xff" * 8192)
    facts = replicators.run("container", second)
    assert facts["replication_stats"]["rsync"] == 1
    assert len(replicators.rows(first, "a", "c")) == 1


def test_a_misnamed_database_is_quarantined_only_if_other_names_are_right(sim, replicators):
    first = sim.primaries("container", "a", "c")[0]
    home = replicators.folder("container", first, "a", "c")
    wrong = home.with_name("0" * 29 + home.name[-3:])
    home.rename(wrong)
    (path,) = wrong.glob("*.db")
    path.rename(wrong / f"{wrong.name}.db")
    # As with a wrong hash path suffix in swift.conf: nothing fits.
    replicators.run("container", first)
    assert wrong.exists()
    other = next(name for name in "defghij" if first in sim.primaries("container", "a", name))
    assert sim("PUT", f"/a/{other}").status == 201
    device = sim.root / f"node{first}" / f"sdb{first}"
    for _ in range(20):
        # Whether the good one is seen first in a pass is chance.
        replicators.run("container", first)
    assert not wrong.exists()
    assert [p.name for p in (device / "quarantined" / "containers").iterdir()] == [wrong.name]


def test_with_wrong_hash_settings_nothing_is_moved(sim, replicators):
    first = sim.primaries("container", "a", "c")[0]
    task = replicators.task("container", first)
    task.context.hasher = PathHasher(b"", b"other")
    sim.hasher, right = task.context.hasher, sim.hasher
    replicators.run("container", first)
    sim.hasher = right
    assert replicators.files("container", first, "a", "c")


# --- deletion ---------------------------------------------------------------------------------------


def test_deleted_containers_are_reclaimed_after_their_account_was_updated(sim, replicators):
    nodes = sim.primaries("container", "a", "c")
    assert sim("DELETE", "/a/c").status == 204
    clock = replicators.clock = ManualClock(4_000_000_000.0)
    replicators.run("container", *nodes)
    # Their account was not updated yet.
    assert replicators.holders("container", "a", "c") == sorted(nodes)
    for number in nodes:
        (path,) = replicators.files("container", number, "a", "c")
        connection = sqlite3.connect(path)
        connection.execute(
            "UPDATE container_info SET reported_put_timestamp = put_timestamp, "
            "reported_delete_timestamp = delete_timestamp"
        )
        connection.commit()
        connection.close()
    facts = replicators.run("container", nodes[0])
    assert facts["replication_stats"]["remove"] == 1
    clock.advance(1)
    replicators.run("container", *nodes[1:])
    assert replicators.holders("container", "a", "c") == []


def test_old_tombstones_headers_and_remotes_are_reclaimed(sim, replicators):
    first, *_ = sim.primaries("container", "a", "c")
    put_row(sim, first, "gone", 1, "DELETE")
    put_row(sim, first, "here", 2)
    for value, tick in (("v", 3), ("", 4)):
        headers = {"x-timestamp": stamp(tick), "x-container-meta-k": value}
        assert ask(sim, "container", first, "POST", ("a", "c"), headers).status == 204
    (path,) = replicators.files("container", first, "a", "c")
    leftover = path.with_name("1234.tmp")
    leftover.touch()
    replicators.clock = ManualClock(4_000_000_000.0)
    replicators.run("container", first)
    assert [row[0] for row in replicators.rows(first, "a", "c")] == ["here"]
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT metadata FROM container_info").fetchone()[0] == "{}"
    assert not leftover.exists()


def test_accounts_are_replicated_as_well(sim, replicators):
    nodes = sim.primaries("account", "a")
    row = {"x-put-timestamp": stamp(1), "x-object-count": "3", "x-bytes-used": "9"}
    for number, name in zip(nodes, ("c1", "c2", "c3"), strict=True):
        assert ask(sim, "account", number, "PUT", ("a", name), row).status == 201
    replicators.run("account", *nodes, *nodes)
    rows = [replicators.rows(number, "a") for number in nodes]
    assert rows[0] == rows[1] == rows[2]
    assert [row[0] for row in rows[0]] == ["c", "c1", "c2", "c3"]
    shutil.rmtree(replicators.folder("account", nodes[2], "a"))
    replicators.run("account", nodes[0])
    assert replicators.rows(nodes[2], "a") == rows[0]


# --- shards -----------------------------------------------------------------------------------------


def test_a_sharded_container_stays_sharded(sim, replicators):
    first, second, third = nodes = sim.primaries("container", "a", "c")
    put_row(sim, first, "o", 1)
    replicators.run("container", first)
    for number in (first, second):
        shard(replicators.folder("container", number, "a", "c"), "a", "c", epoch=stamp(100))
    # The third node missed it all and still writes into the old database.
    put_row(sim, third, "p", 2)
    replicators.run("container", third, first, second, third)
    for number in (first, second):
        response = ask(sim, "container", number, "HEAD", ("a", "c"), {})
        assert response.headers["x-backend-sharding-state"] == "sharded"
        assert replicators.rows(number, "a", "c") == []
    names = [[path.name for path in replicators.files("container", n, "a", "c")] for n in nodes]
    assert names[0] == names[1] == [f"{names[2][0][:-3]}_{stamp(100)}.db"]
    query = "SELECT name, lower, upper, state, epoch FROM shard_range ORDER BY name"
    ranges = [_select(replicators.files("container", n, "a", "c")[-1], query) for n in nodes]
    assert ranges[0] == ranges[1] == ranges[2]
    assert len(ranges[0]) == 3
    # A node without any copy gets the file with its epoch, and with it the state.
    lose_database(replicators, second, "a", "c")
    replicators.run("container", first)
    assert [path.name for path in replicators.files("container", second, "a", "c")] == names[0]
    response = ask(sim, "container", second, "HEAD", ("a", "c"), {})
    assert response.headers["x-backend-sharding-state"] == "sharded"


def test_rows_of_a_container_during_a_split_are_held_back_and_not_lost(sim, replicators):
    nodes = sim.primaries("container", "a", "c")
    spare, nodes = make_handoff(sim, replicators)
    (path,) = replicators.files("container", spare, "a", "c")
    add_ranges(path, "a", "c", epoch=stamp(100), state=60)
    facts = replicators.run("container", spare)
    assert facts["replication_stats"]["deferred"] == 3
    assert facts["replication_stats"]["remove"] == 0
    assert spare in replicators.holders("container", "a", "c")
    for number in nodes:
        assert "late" not in [row[0] for row in replicators.rows(number, "a", "c")]
        assert (
            len(_select(replicators.files("container", number, "a", "c")[0], "SELECT 1 FROM shard_range"))
            == 3
        )


def _select(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_an_idle_pass_writes_nothing(sim, replicators):
    nodes = sim.primaries("container", "a", "c")
    put_row(sim, nodes[0], "o", 1)
    replicators.run("container", *nodes, *nodes)
    paths = [replicators.files("container", number, "a", "c")[0] for number in nodes]
    before = [path.read_bytes() for path in paths]
    replicators.run("container", *nodes)
    assert [path.read_bytes() for path in paths] == before


@pytest.mark.parametrize("age", databases.OLD_CONTAINERS)
def test_container_databases_of_every_age_are_replicated(sim, replicators, age):
    first, second, third = nodes = sim.primaries("container", "a", "c")
    for number in nodes:
        lose_database(replicators, number, "a", "c")
    folder = replicators.folder("container", first, "a", "c")
    folder.mkdir(parents=True)
    databases.make_old_container(folder / f"{folder.name}.db", age)
    replicators.run("container", first)
    put_row(sim, second, "new", 1)
    replicators.run("container", second)
    rows = [replicators.rows(number, "a", "c") for number in nodes]
    assert rows[0] == rows[1] == rows[2]
    assert [row[0] for row in rows[0]] == ["new", "o1", "o2"]


@pytest.mark.parametrize("age", databases.OLD_ACCOUNTS)
def test_account_databases_of_every_age_are_replicated(sim, replicators, age):
    first, second, _third = nodes = sim.primaries("account", "a")
    for number in nodes:
        shutil.rmtree(replicators.folder("account", number, "a"))
    folder = replicators.folder("account", first, "a")
    folder.mkdir(parents=True)
    databases.make_old_account(folder / f"{folder.name}.db", age)
    replicators.run("account", first)
    row = {"x-put-timestamp": stamp(1), "x-object-count": "3", "x-bytes-used": "9"}
    assert ask(sim, "account", second, "PUT", ("a", "new"), row).status == 201
    replicators.run("account", second)
    rows = [replicators.rows(number, "a") for number in nodes]
    assert rows[0] == rows[1] == rows[2]
    assert [row[0] for row in rows[0]] == ["c1", "c2", "new"]
