"""The account reaper in a simulated cluster removes deleted accounts with all their content."""

import json
import shutil
import sqlite3

import pytest

from swift.runtime.stop import StopRequest
from test.support.daemons import Reapers, Replicators
from test.support.databases import shard
from test.support.sim import NODES, POLICIES, node_port

EVERYBODY = range(1, NODES + 1)


@pytest.fixture
def reapers(sim, tmp_path):
    return Reapers(sim, tmp_path)


@pytest.fixture
def replicators(sim, tmp_path):
    return Replicators(sim, tmp_path)


def fill(sim, account="AUTH_a", containers=2, objects=3):
    """Create containers with objects in every policy."""
    for policy in POLICIES:
        for number in range(containers):
            container = f"/{account}/{policy.name}-{number}"
            assert sim("PUT", container, {"x-storage-policy": policy.name}).status == 201
            for name in range(objects):
                assert sim("PUT", f"{container}/o%20{name}%C3%A9", body=b"x" * 2500).status == 201


def delete_account(sim, account="AUTH_a", *numbers):
    """Mark the account deleted on every primary, as an administrator's DELETE does."""
    for number in numbers or sim.primaries("account", account):
        response = ask_account(sim, number, "DELETE", account)
        assert response.status == 204, response


def ask_account(sim, number, method, account="AUTH_a", query=""):
    part = sim.context.rings.account.partition_of(sim.hasher.digest(account))
    return sim.transport.request_of(
        node_port("account", number),
        method,
        f"/sdb{number}/{part}/{account}{query}",
        {"x-timestamp": "4000000000.00000"},
    )


def listed(sim, account="AUTH_a"):
    """Return node number → containers that it still lists, read from the files."""
    name_hash = sim.hasher.hexdigest(account)
    found = {}
    for number in sim.primaries("account", account):
        # Merges what is pending.
        ask_account(sim, number, "HEAD", account)
        (path,) = (sim.root / f"node{number}").glob(f"*/accounts/*/*/{name_hash}/*.db")
        connection = sqlite3.connect(path)
        found[number] = [row[0] for row in connection.execute("SELECT name FROM container WHERE deleted = 0")]
        connection.close()
    return found


def living_files(sim):
    """Return the object files of all policies except tombstones."""
    return [
        name
        for policy in POLICIES
        for names in sim.files(policy.index).values()
        for name in names
        if not name.endswith(".ts")
    ]


def assert_gone(sim, account="AUTH_a"):
    assert set(map(tuple, listed(sim, account).values())) == {()}
    assert living_files(sim) == []


def test_an_account_with_objects_in_every_policy_is_reaped_completely(sim, reapers):
    fill(sim)
    delete_account(sim)
    assert living_files(sim)
    counts = reapers.run(*EVERYBODY)
    assert counts == {"accounts": 3, "containers_deleted": 8, "objects_deleted": 24}
    assert_gone(sim)
    # Nothing is left to do, and no request is sent.
    sim.transport.requests.clear()
    assert reapers.run(*EVERYBODY) == {}
    assert sim.transport.requests == []
    assert any("Completed pass on account AUTH_a" in line for line in reapers.log.lines)


@pytest.mark.long
def test_requests_name_the_nodes_to_update(sim, reapers):
    assert sim("PUT", "/AUTH_a/c", {"x-storage-policy": "ec32"}).status == 201
    assert sim("PUT", "/AUTH_a/c/o", body=b"x").status == 201
    delete_account(sim)
    sim.transport.requests.clear()
    reapers.run(*EVERYBODY)
    sent = {}
    for kind, number, method, path, headers in sim.transport.requests:
        if method == "DELETE" and headers.get("user-agent", "").startswith("account-reaper "):
            sent.setdefault(kind, {})[number] = headers
            assert path.count("/") == (5 if kind == "object" else 4)
    containers = sim.primaries("container", "AUTH_a", "c")
    accounts = sim.primaries("account", "AUTH_a")
    assert set(sent["object"]) == set(sim.primaries("object", "AUTH_a", "c", "o", policy=1))
    for headers in sent["object"].values():
        assert headers["x-backend-storage-policy-index"] == "1"
        (number,) = (n for n in containers if headers["x-container-device"] == f"sdb{n}")
        assert headers["x-container-host"] == f"10.0.0.1:{node_port('container', number)}"
    told = [headers["x-container-device"] for headers in sent["object"].values()]
    assert set(told) == {f"sdb{number}" for number in containers}
    assert set(sent["container"]) == set(containers)
    assert {headers["x-account-device"] for headers in sent["container"].values()} == {
        f"sdb{number}" for number in accounts
    }
    assert {headers["x-account-override-deleted"] for headers in sent["container"].values()} == {"yes"}


@pytest.mark.long
def test_accounts_that_are_not_deleted_are_unchanged(sim, reapers):
    fill(sim, containers=1)
    fill(sim, "AUTH_b", containers=1)
    delete_account(sim, "AUTH_b")
    files = len(living_files(sim))
    reapers.run(*EVERYBODY)
    assert len(living_files(sim)) == files / 2
    assert sim("GET", "/AUTH_a/gold-0").status == 200
    assert set(map(tuple, listed(sim, "AUTH_b").values())) == {()}


def test_reaping_continues_without_failed_nodes_and_finishes_later(sim, reapers, replicators):
    fill(sim)
    delete_account(sim)
    with sim.refusing("object", 1), sim.refusing("container", 2):
        counts = reapers.run(*EVERYBODY)
        assert counts["objects_failures"] and counts["containers_failures"]
        assert counts["objects_deleted"] == 24
        assert any("connection to" in line for line in reapers.log.lines)
    replicators.run("container", *EVERYBODY)
    counts = reapers.run(*EVERYBODY)
    replicators.run("account", *EVERYBODY)
    assert set(map(tuple, listed(sim).values())) == {()}
    # Objects on the dead node have tombstones on other nodes, which replication will push.
    assert set(living_files(sim)) == {
        name for policy in POLICIES for name in sim.files(policy.index).get(1, ()) if not name.endswith(".ts")
    }


def test_an_account_node_that_was_down_reaps_its_share_later(sim, reapers):
    fill(sim)
    delete_account(sim)
    first, second, third = sim.primaries("account", "AUTH_a")
    reapers.run(first, second)
    left = listed(sim)
    assert left[first] == left[second]
    assert 0 < len(left[first]) < 8
    reapers.run(third)
    assert_gone(sim)


def test_each_container_is_reaped_by_one_node(sim, reapers):
    fill(sim, containers=4, objects=0)
    delete_account(sim)
    counts = [reapers.run(number).get("containers_deleted", 0) for number in EVERYBODY]
    assert sum(counts) == 16
    assert sum(1 for count in counts if count) <= 3


def test_reaping_waits_for_its_delay_and_warns_when_it_takes_too_long(sim, reapers):
    fill(sim, containers=1, objects=1)
    delete_account(sim)
    reapers.clock.now_s = 4_000_000_000.0 + 99
    assert reapers.run(*EVERYBODY, delay_reaping=100) == {}
    reapers.clock.now_s += 2
    assert not any("has not been reaped" in line for line in reapers.log.lines)
    with sim.refusing("container", *EVERYBODY):
        assert reapers.run(*EVERYBODY, delay_reaping=100)["containers_remaining"] == 4
    reapers.clock.now_s += 50
    assert reapers.run(*EVERYBODY, delay_reaping=100, reap_warn_after=40)["containers_deleted"] == 4
    warned = [line for line in reapers.log.lines if "has not been reaped since 2096-10-02T07:06:40" in line]
    assert len(warned) == 3
    assert_gone(sim)


def test_a_container_that_no_replica_has_is_removed_from_the_account(sim, reapers):
    fill(sim, containers=1, objects=0)
    for path in sim.root.glob("node*/*/containers"):
        shutil.rmtree(path)
    delete_account(sim)
    assert len(next(iter(listed(sim).values()))) == 4
    reapers.run(*EVERYBODY)
    assert_gone(sim)


@pytest.mark.parametrize("status", [None, 500, 503])
def test_a_container_that_one_replica_lacks_is_kept_while_others_do_not_respond(sim, reapers, status):
    fill(sim, containers=1, objects=0)
    kept = f"{POLICIES[0].name}-0"
    nodes = sim.primaries("container", "AUTH_a", kept)
    name_hash = sim.hasher.hexdigest("AUTH_a", kept)
    (folder,) = sim.root.glob(f"node{nodes[0]}/*/containers/*/*/{name_hash}")
    shutil.rmtree(folder)
    delete_account(sim)
    silent = (
        sim.refusing("container", *nodes[1:])
        if status is None
        else sim.responding("container", status, *nodes[1:])
    )
    with silent:
        reapers.run(*EVERYBODY)
    assert all(kept in names for names in listed(sim).values())


def test_an_invalid_listing_stops_no_other_container(sim, reapers):
    fill(sim, containers=1, objects=1)
    delete_account(sim)
    with sim.responding("container", 503, *EVERYBODY):
        counts = reapers.run(*EVERYBODY)
    assert counts["errors"] == 4
    assert counts["containers_remaining"] == 4
    reapers.run(*EVERYBODY)
    assert_gone(sim)


def test_a_damaged_account_database_stops_no_other(sim, reapers):
    fill(sim, "AUTH_a", containers=1, objects=1)
    fill(sim, "AUTH_b", containers=1, objects=1)
    for account in ("AUTH_a", "AUTH_b"):
        delete_account(sim, account)
        listed(sim, account)
    name_hash = sim.hasher.hexdigest("AUTH_a")
    for path in sim.root.glob(f"node*/*/accounts/*/*/{name_hash}/*.db"):
        path.unlink()
        path.write_bytes(b"no database" * 1000)
    assert reapers.run(*EVERYBODY)["errors"] == 3
    assert set(map(tuple, listed(sim, "AUTH_b").values())) == {()}


def test_reserved_names_are_reaped_too(sim, reapers):
    assert sim("PUT", "/AUTH_a/plain").status == 201
    allowed = {"x-backend-allow-reserved-names": "true"}
    assert sim("PUT", "/AUTH_a/%00versions%00c", allowed).status == 201
    assert sim("PUT", "/AUTH_a/%00versions%00c/%00o%001", allowed, b"hidden").status == 201
    delete_account(sim)
    assert reapers.run(*EVERYBODY)["objects_deleted"] == 1
    assert_gone(sim)


def test_a_stop_request_takes_effect_between_objects(sim, reapers):
    fill(sim, containers=1, objects=5)
    delete_account(sim)
    stop = StopRequest(reapers.clock, reapers.clock.sleep)
    real = sim.transport.request

    def request(request):
        if request.method == "DELETE":
            stop.request()
        return real(request)

    sim.transport.request = request
    sim.transport.requests.clear()
    reapers.run(*EVERYBODY, stop=stop, concurrency=1)
    del sim.transport.request
    deleted = {
        (kind, path.partition("AUTH_a")[2])
        for kind, _number, method, path, _headers in sim.transport.requests
        if method == "DELETE"
    }
    # One object, its row, and no container.
    assert len(deleted) == 2
    assert all(path.count("/") == 2 for _kind, path in deleted)
    reapers.run(*EVERYBODY)
    assert_gone(sim)


def ask_container(sim, number, method, names, headers=None, query=""):
    part = sim.context.rings.container.partition_of(sim.hasher.digest(*names[:2]))
    port = node_port("container", number)
    path = f"/sdb{number}/{part}/{'/'.join(names)}{query}"
    return sim.transport.request_of(port, method, path, headers)


def test_a_sharded_container_is_emptied_through_its_shards(sim, reapers, replicators):
    names = ("apple", "zebra")
    assert sim("PUT", "/AUTH_s/c").status == 201
    for name in names:
        assert sim("PUT", f"/AUTH_s/c/{name}", body=b"x").status == 201
    for number in sim.primaries("container", "AUTH_s", "c"):
        # Merges what is pending before the files are changed.
        ask_container(sim, number, "HEAD", ("AUTH_s", "c"))
        rows = {row[0]: row for row in replicators.rows(number, "AUTH_s", "c")}
        folder = replicators.folder("container", number, "AUTH_s", "c")
        shard(folder, "AUTH_s", "c", epoch="1700000000.00000")
    shards = [(".shards_AUTH_s", f"c-{place}") for place in range(2)]
    for name, where in zip(names, shards, strict=True):
        headers = {
            "x-timestamp": rows[name][1],
            "x-size": "1",
            "x-etag": rows[name][4],
            "x-content-type": rows[name][3],
            "x-backend-auto-create": "true",
        }
        for number in sim.primaries("container", *where):
            assert ask_container(sim, number, "PUT", (*where, name), headers).status == 201
    delete_account(sim, "AUTH_s")
    assert reapers.run(*EVERYBODY)["objects_deleted"] == 2
    assert living_files(sim) == []
    for where in shards:
        for number in sim.primaries("container", *where):
            assert json.loads(ask_container(sim, number, "GET", where, query="?format=json").body) == []
