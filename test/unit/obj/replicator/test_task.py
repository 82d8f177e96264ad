"""Replicators of a small cluster, by both ways: primaries end equal, handoffs go home, nothing is lost."""

from __future__ import annotations

import json
import time

import pytest

from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.obj.replicator.task import ObjectReplicator
from test.support.object_servers import HASHER, ObjectNodes, Rsyncd

pytestmark = pytest.mark.process

NOW = float(int(time.time()) - 1000)


@pytest.fixture(params=["ssync", "rsync"])
def method(request):
    return request.param


@pytest.fixture
def make(tmp_path, method):
    """Makes nodes; ``settings`` of them are for the method."""
    ended = []

    def made(count=4, **more):
        nodes = ObjectNodes(tmp_path, count, **more)
        ended.append(nodes.stop)
        module = "{replication_ip}::object"
        if method == "rsync":
            daemon = Rsyncd(tmp_path, count)
            ended.append(daemon.stop)
            module = daemon.module

        def once(number, selection=None, **options):
            chosen = {"sync_method": method, "rsync_module": module, "conn_timeout": 2.0, **options}
            return replicate(nodes, number, ObjectReplicatorSettings(**chosen), **(selection or {}))

        nodes.replicate = once
        return nodes

    yield made
    for end in ended:
        end()


@pytest.fixture
def nodes(make):
    """Four nodes; partition p lies on p, p+1, p+2 (modulo 4)."""
    return make()


def replicate(nodes, number, settings, **selection):
    """One pass of node ``number``; what it told recon."""
    runner = nodes.runner(number, ObjectReplicator, settings, **selection)
    assert runner.run_once()
    path = nodes[number].root / "recon/object.recon"
    return json.loads(path.read_text()) if path.exists() else {}


def put(nodes, part, name, numbers, at=NOW, body=b"body"):
    for number in numbers:
        response = nodes[number].ask("PUT", f"/{part}/a/c/{name}", at, body, x_object_meta_a="1")
        assert response.status == 201


@pytest.mark.long
def test_a_wiped_device_gets_everything_back(nodes):
    for part in range(8):
        owners = [(part + n) % 4 for n in range(3)]
        for n in range(3):
            put(nodes, part, f"o{part}-{n}", owners, NOW + n)
        nodes[owners[0]].ask("POST", f"/{part}/a/c/o{part}-0", NOW + 50, x_object_meta_b="2")
        nodes[owners[0]].ask("DELETE", f"/{part}/a/c/o{part}-1", NOW + 60)
    before = {part: nodes[1].hashes(part) for part in range(8)}
    for number in range(4):
        nodes.replicate(number)
    whole = {part: nodes[1].hashes(part) for part in range(8)}
    nodes[1].wipe()
    for number in (0, 2, 3):
        nodes.replicate(number)
    assert {part: nodes[1].hashes(part) for part in range(8)} == whole
    assert before != whole
    response = nodes[1].ask("GET", "/1/a/c/o1-2")
    assert (response.status, response.content) == (200, b"body")


def test_when_everything_is_equal_each_partner_is_asked_once_and_nothing_is_done(nodes):
    for part in range(16):
        put(nodes, part, "o", [(part + n) % 4 for n in range(3)])
    facts = nodes.replicate(0)
    acknowledged = [request for node in nodes.nodes for request in node.heard]
    assert len(acknowledged) == 3
    assert facts["replication_stats"]["attempted"] == 12
    assert facts["replication_stats"]["hashmatch"] == 24
    assert facts["replication_stats"]["rsync"] == 0
    assert facts["replication_stats"]["failure"] == 0


@pytest.mark.parametrize(("interval", "status"), [(0.0, 200), (60.0, 404)])
def test_a_partition_that_was_settled_and_is_being_written_is_left_alone(make, interval, status):
    nodes = make()
    settings = ObjectReplicatorSettings(sync_method="ssync", conn_timeout=2.0, interval=interval)
    put(nodes, 0, "o", [0, 1, 2])
    runner = nodes.runner(0, ObjectReplicator, settings)
    assert runner.run_once()
    put(nodes, 0, "p", [0, 1])
    assert runner.run_once()
    assert nodes[2].ask("GET", "/0/a/c/p").status == status


def test_nothing_is_left_alone_once_a_partner_has_lost_something(make):
    nodes = make()
    settings = ObjectReplicatorSettings(sync_method="ssync", conn_timeout=2.0, interval=60.0)
    parts = [0, 4]
    for part in parts:
        put(nodes, part, f"o{part}", [0, 1, 2])
    runner = nodes.runner(0, ObjectReplicator, settings)
    assert runner.run_once()
    nodes[2].wipe()
    put(nodes, 0, "busy", [0, 1])
    # A third partition, new since, tells it.
    put(nodes, 8, "o8", [0, 1])
    assert runner.run_once()
    assert runner.run_once()
    assert [nodes[2].ask("GET", f"/{part}/a/c/o{part}").status for part in parts] == [200, 200]


def test_what_a_partner_has_newer_is_not_touched(nodes):
    put(nodes, 0, "o", [0, 1], NOW, b"old")
    put(nodes, 0, "o", [2], NOW + 5, b"new")
    nodes.replicate(0)
    assert nodes[2].ask("GET", "/0/a/c/o").content == b"new"
    nodes.replicate(2)
    for number in range(3):
        assert nodes[number].ask("GET", "/0/a/c/o").content == b"new"


def test_what_arrives_is_seen_through_a_cache_tier_that_knew_better(make):
    nodes = make(tier=True)
    put(nodes, 0, "old", [0, 1, 2])
    for name in ("old", "new"):
        assert nodes[2].ask("GET", f"/0/a/c/{name}").status == (200 if name == "old" else 404)
    before = nodes[2].hashes(0)
    put(nodes, 0, "new", [0, 1], NOW + 1)
    put(nodes, 0, "old", [0, 1], NOW + 1, b"newer body")
    for number in (0, 1):
        nodes.replicate(number)
    assert nodes[2].ask("GET", "/0/a/c/new").content == b"body"
    assert nodes[2].ask("GET", "/0/a/c/old").content == b"newer body"
    assert nodes[2].hashes(0) == nodes[0].hashes(0) != before
    nodes[0].ask("DELETE", "/0/a/c/old", NOW + 2)
    nodes.replicate(0)
    assert nodes[2].ask("HEAD", "/0/a/c/old").status == 404


def test_what_was_deleted_stays_deleted(nodes):
    put(nodes, 0, "o", [0, 1, 2])
    nodes[0].ask("DELETE", "/0/a/c/o", NOW + 5)
    for number in (1, 2, 0):
        nodes.replicate(number)
    for number in range(3):
        response = nodes[number].ask("GET", "/0/a/c/o")
        assert (response.status, response.headers["x-backend-timestamp"]) == (404, f"{NOW + 5:.5f}")


def test_a_handoff_goes_home_and_leaves_nothing_behind(nodes):
    put(nodes, 0, "o", [3])
    put(nodes, 0, "p", [3])
    facts = nodes.replicate(3)
    for number in range(3):
        assert nodes[number].ask("GET", "/0/a/c/o").status == 200
    assert not (nodes[3].path / "objects/0").exists()
    assert facts["replication_stats"]["remove"] == 1


def test_a_handoff_stays_while_a_primary_does_not_have_it(nodes):
    put(nodes, 0, "o", [3])
    nodes[2].path.rename(nodes[2].root / "away")
    facts = nodes.replicate(3)
    assert nodes[3].ask("GET", "/0/a/c/o").status == 200
    assert facts["replication_stats"]["remove"] == 0
    assert facts["replication_stats"]["failure_nodes"] == {"127.0.0.1": {"d2": 1}}
    assert [nodes[n].ask("GET", "/0/a/c/o").status for n in (0, 1)] == [200, 200]


@pytest.mark.long
def test_with_handoff_delete_so_many_copies_are_enough(nodes):
    put(nodes, 0, "o", [3])
    nodes[2].path.rename(nodes[2].root / "away")
    nodes.replicate(3, handoff_delete=2)
    assert not (nodes[3].path / "objects/0").exists()
    nodes[1].path.rename(nodes[1].root / "away")
    put(nodes, 0, "p", [3])
    nodes.replicate(3, handoff_delete=2)
    assert nodes[3].ask("GET", "/0/a/c/p").status == 200


def test_a_handoff_that_all_primaries_have_costs_one_word_to_each(nodes):
    put(nodes, 0, "o", [0, 1, 2, 3])
    facts = nodes.replicate(3)
    assert not (nodes[3].path / "objects/0").exists()
    assert facts["replication_stats"]["rsync"] == 0
    assert [request[0] for request in nodes[0].heard] == ["REPLICATE", "REPLICATE"]


@pytest.mark.long
def test_what_arrives_while_a_handoff_is_brought_home_is_kept(nodes):
    put(nodes, 0, "o", [3])
    suffix = HASHER.hexdigest("a", "c", "o")[-3:]
    handle, results = nodes[2].app.handle, []

    def writes_meanwhile(request):
        if not results and request.raw_path == f"/d2/0/{suffix}":
            results.append(request.raw_path)
            put(nodes, 0, "late", [3])
            put(nodes, 0, "o", [3], NOW + 9, b"newer")
        return handle(request)

    nodes[2].app.handle = writes_meanwhile
    nodes.replicate(3)
    assert results
    assert nodes[3].ask("GET", "/0/a/c/late").status == 200
    assert nodes[3].ask("GET", "/0/a/c/o").content == b"newer"
    nodes.replicate(3)
    assert not (nodes[3].path / "objects/0").exists()
    assert nodes[0].ask("GET", "/0/a/c/o").content == b"newer"


def test_the_partition_with_the_fewest_copies_is_first(nodes):
    for part in (0, 4, 8):
        put(nodes, part, "o", [0, 1, 2])
    put(nodes, 12, "o", [0])
    put(nodes, 4, "p", [0, 1])
    put(nodes, 8, "p", [0])
    command = []
    runner = nodes.runner(0, ObjectReplicator, ObjectReplicatorSettings(sync_method="ssync"))
    began = runner.task.begin

    def begin(share, context):
        turn = began(share, context)
        turn.do = lambda unit: command.append(unit.local.part)
        return turn

    runner.task.begin = begin
    assert runner.run_once()
    assert command == [12, 8, 4]


@pytest.mark.long
def test_handoffs_first_does_nothing_else_while_one_is_left(nodes):
    put(nodes, 0, "handoff", [3])
    put(nodes, 1, "primary", [3])
    nodes[2].path.rename(nodes[2].root / "away")
    nodes.replicate(3, handoffs_first=True)
    assert nodes[1].ask("GET", "/1/a/c/primary").status == 404
    (nodes[2].root / "away").rename(nodes[2].path)
    nodes.replicate(3, handoffs_first=True)
    assert nodes[1].ask("GET", "/1/a/c/primary").status == 200
    assert not (nodes[3].path / "objects/0").exists()


def test_handoffs_only_leaves_what_belongs_here(nodes):
    put(nodes, 0, "handoff", [3])
    put(nodes, 1, "primary", [3])
    nodes.replicate(3, handoffs_only=True)
    assert nodes[1].ask("GET", "/1/a/c/primary").status == 404
    assert not (nodes[3].path / "objects/0").exists()


def test_a_handoff_stands_in_for_a_device_that_is_gone(nodes):
    put(nodes, 0, "o", [0])
    nodes[1].path.rename(nodes[1].root / "away")
    nodes.replicate(0)
    assert [nodes[n].ask("GET", "/0/a/c/o").status for n in (2, 3)] == [200, 200]


def test_a_selection_limits_the_work_and_tells_recon_nothing(nodes):
    put(nodes, 0, "o", [0])
    put(nodes, 3, "o", [0])
    assert nodes.replicate(0, {"partitions": "3"}) == {}
    assert nodes[1].ask("GET", "/0/a/c/o").status == 404
    assert nodes[1].ask("GET", "/3/a/c/o").status == 200
    nodes.replicate(0, {"policies": "1"})
    nodes.replicate(0, {"devices": "other"})
    assert nodes[1].ask("GET", "/0/a/c/o").status == 404


def test_while_partitions_are_split_nothing_is_moved(nodes):
    put(nodes, 0, "o", [0])
    nodes.write_ring("object", 3, next_part_power=5)
    nodes.replicate(0)
    assert nodes[1].ask("GET", "/0/a/c/o").status == 404


def test_a_new_ring_ends_the_pass_that_the_old_one_planned(nodes):
    put(nodes, 0, "o", [3])
    settings = ObjectReplicatorSettings(sync_method="ssync")
    runner = nodes.runner(3, ObjectReplicator, settings)
    began = runner.task.begin

    def begin(share, context):
        turn = began(share, context)
        do = turn.do

        def change_first(unit):
            nodes.write_ring("object", 3, shift=3)
            nodes.clock.ahead_s += 20
            ring = runner.task.rings.object(unit.local.policy)
            ring.load()
            do(unit)

        turn.do = change_first
        return turn

    runner.task.begin = begin
    assert runner.run_once()
    assert nodes[3].ask("GET", "/0/a/c/o").status == 200


def test_a_node_that_is_down_is_counted_and_the_others_get_theirs(nodes):
    for part in (0, 4, 8, 12):
        put(nodes, part, "o", [0])
    nodes[1].stop()
    facts = nodes.replicate(0, node_timeout=1.0)
    nodes[1].start()
    assert nodes[2].ask("GET", "/12/a/c/o").status == 200
    assert facts["replication_stats"]["failure_nodes"]["127.0.0.1"]["d1"] == 4


def test_between_regions_the_way_is_taken_once(make):
    nodes = make(regions=[1, 2, 2, 2])
    put(nodes, 0, "o", [0])
    nodes.replicate(0)
    assert sorted(nodes[n].ask("GET", "/0/a/c/o").status for n in (1, 2)) == [200, 404]


def test_a_handoff_of_another_region_goes_once_everybody_has_it(make, method):
    nodes = make(regions=[2, 2, 2, 1])
    put(nodes, 0, "o", [3])
    nodes.replicate(3)
    if method == "ssync":
        # The second and third node are only asked.
        assert nodes[3].ask("GET", "/0/a/c/o").status == 200
        nodes.replicate(0)
        nodes.replicate(1)
        nodes.replicate(3)
    assert not (nodes[3].path / "objects/0").exists()
    assert [nodes[n].ask("GET", "/0/a/c/o").status for n in range(3)] == [200] * 3


def copies(facts, device, name="object"):
    counts = facts["copy_state"][name]["devices"][device]
    return {key: counts[key] for key in ("partitions", "misplaced", "missing", "failed", "done")}


def test_recon_hears_what_is_left_of_what_is_missing_and_misplaced(nodes):
    for part in (0, 4):
        put(nodes, part, f"o{part}", [0, 1, 3])
    nodes[2].path.rename(nodes[2].root / "away")
    facts = nodes.replicate(3)
    assert copies(facts, "d3") == {"partitions": 2, "misplaced": 2, "missing": 0, "failed": 2, "done": 0}
    (nodes[2].root / "away").rename(nodes[2].path)
    facts = nodes.replicate(3)
    assert copies(facts, "d3") == {"partitions": 0, "misplaced": 0, "missing": 0, "failed": 0, "done": 2}
    policy = next(iter(nodes[0].context.policies))
    digest = nodes.rings().object(policy).view().digest
    assert facts["copy_state"]["object"]["devices"]["d3"]["ring"] == digest != ""
