"""Handoffs go home: nobody waits for who waits for him, and nothing goes before it is elsewhere."""

from __future__ import annotations

import time
from functools import partial

import pytest

from swift import green
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.obj.replicator.task import ObjectReplicator
from test.support.object_servers import GOLD, HASHER, BadSector, ObjectNodes

NOW = float(int(time.time()) - 1000)
#: How long a receiver of these nodes waits for a lock, seconds.
LOCK_S = 5


@pytest.fixture
def nodes(tmp_path):
    """Four nodes; partition p lies on p, p+1, p+2 (modulo 4), so p+3 is a handoff of it."""
    made = ObjectNodes(tmp_path, 4)
    yield made
    made.stop()


def put(node, part, name, body=b"body"):
    assert node.ask("PUT", f"/{part}/a/c/{name}", NOW, body).status == 201


def replicate(nodes, number, **options):
    settings = ObjectReplicatorSettings(sync_method="ssync", conn_timeout=2.0, **options)
    runner = nodes.runner(number, ObjectReplicator, settings)
    assert runner.run_once()
    return runner


def has(node, part, name="o"):
    return node.ask("HEAD", f"/{part}/a/c/{name}").status == 200


def test_nodes_that_have_handoffs_of_each_other_bring_them_home_at_the_same_time(nodes):
    for number in range(4):
        for name in ("o", "p", "q"):
            put(nodes[number], (number + 1) % 4, name)
    began_s = time.monotonic()
    green.gather([partial(replicate, nodes, number) for number in range(4)])
    assert time.monotonic() - began_s < LOCK_S
    for number in range(4):
        part = (number + 1) % 4
        assert not (nodes[number].path / f"objects/{part}").exists()
        assert all(has(nodes[(part + n) % 4], part, name) for n in range(3) for name in ("o", "p", "q"))


def test_a_partition_that_somebody_else_replicates_into_is_left_for_the_next_pass(nodes):
    put(nodes[3], 0, "o")
    store = nodes[3].stores.engine(GOLD)
    with store.replication_lock("d3", "0", GOLD, 0.0):
        replicate(nodes, 3)
    assert has(nodes[3], 0)
    replicate(nodes, 3)
    assert not (nodes[3].path / "objects/0").exists()


def test_a_revert_goes_on_while_its_device_is_written_to(nodes):
    put(nodes[3], 0, "o")
    with nodes[3].stores.engine(GOLD).replication_lock("d3", "1", GOLD, 0.0):
        replicate(nodes, 3)
    assert not (nodes[3].path / "objects/0").exists()


def test_what_only_some_primaries_have_stays_until_the_others_have_it_too(nodes):
    put(nodes[3], 0, "o")
    nodes[3].ways.cut.add(nodes[1].port)
    replicate(nodes, 3)
    assert has(nodes[3], 0) and has(nodes[0], 0) and not has(nodes[1], 0)
    nodes[3].ways.cut.clear()
    replicate(nodes, 3)
    assert has(nodes[1], 0) and not (nodes[3].path / "objects/0").exists()


def test_an_object_that_cannot_be_read_stays_and_the_others_go(nodes):
    for name in ("o", "p", "q"):
        put(nodes[3], 0, name)
    at = nodes[3].stores.at
    damaged = HASHER.hexdigest("a", "c", "p")
    nodes[3].stores.at = lambda policy, device: BadSector(at(policy, device), damaged, looks=True)
    replicate(nodes, 3)
    assert [has(nodes[3], 0, name) for name in ("o", "p", "q")] == [False, True, False]
    assert [has(nodes[0], 0, name) for name in ("o", "p", "q")] == [True, False, True]


def test_an_empty_handoff_partition_goes_without_a_word(nodes):
    put(nodes[3], 0, "o")
    digest = HASHER.hexdigest("a", "c", "o")
    for path in (nodes[3].path / f"objects/0/{digest[-3:]}/{digest}").iterdir():
        path.unlink()
    replicate(nodes, 3)
    assert not (nodes[3].path / "objects/0").exists()
    assert not any(has(nodes[number], 0) for number in range(3))


def test_a_tombstone_goes_home_like_an_object(nodes):
    put(nodes[0], 0, "o")
    assert nodes[3].ask("DELETE", "/0/a/c/o", NOW + 5).status == 404
    replicate(nodes, 3)
    response = nodes[0].ask("GET", "/0/a/c/o")
    assert (response.status, response.headers["x-backend-timestamp"]) == (404, f"{NOW + 5:.5f}")
    assert not (nodes[3].path / "objects/0").exists()


def test_a_primary_that_does_not_answer_is_told_of_once_not_with_each_partition(nodes):
    for part in (0, 4, 8, 12):
        put(nodes[3], part, "o")
    nodes[3].ways.cut.add(nodes[1].port)
    replicate(nodes, 3)
    assert len([line for line in nodes[3].lines if f":{nodes[1].port}/" in line]) == 1
    assert all(has(nodes[0], part) for part in (0, 4, 8, 12))


def test_a_handoff_that_all_primaries_equal_goes_without_being_pushed(nodes):
    for number in range(4):
        put(nodes[number], 0, "o")
    replicate(nodes, 3)
    assert not nodes[3].has_partition(0)
    assert all(method != "SSYNC" for number in range(3) for method, _path in nodes[number].heard)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_change_after_copies_were_compared_is_pushed_before_the_handoff_goes(nodes, method):
    for number in range(4):
        put(nodes[number], 0, "o")
    runner = nodes.runner(3, ObjectReplicator, ObjectReplicatorSettings(sync_method="ssync"))
    begin = runner.task.begin

    def begin_and_change(share, context):
        turn = begin(share, context)
        do = turn.do

        def do_after_change(unit):
            nodes[3].ask(method, "/0/a/c/o", NOW + 5, x_object_meta_colour="red")
            do(unit)

        turn.do = do_after_change
        return turn

    runner.task.begin = begin_and_change
    assert runner.run_once()
    stamps = {nodes[n].ask("HEAD", "/0/a/c/o").headers.get("x-backend-timestamp") for n in range(4)}
    assert f"{NOW + 5:.5f}" in stamps, "the change is on some node"
