"""Which container node each object node tells, and that each is told."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.http.fields import BACKEND_CLEAN_EXPIRING_QUEUE as CLEAN
from swift.proxy.obj.rowupdates import ContainerNodes, mark_queue_cleaners, pair_with_objects, spread_updates
from swift.ring.device import Node


def node(number: int, ip: str, device: str = "sda", port: int = 6200) -> Node:
    return Node(number, 1, 1, ip, port, ip, port, device, 1.0, "", index=0)


addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
nodes = st.lists(
    st.builds(node, st.integers(0, 9), addresses, st.sampled_from(["sda", "sdb"])), max_size=5, unique=True
)


@given(nodes, nodes)
def test_every_container_node_has_one_place(objects, containers):
    paired = pair_with_objects(objects, containers)
    assert sorted(paired, key=repr) == sorted(containers, key=repr)


def test_the_same_device_goes_before_the_same_host():
    objects = [node(1, "10.0.0.1", "sdb"), node(2, "10.0.0.1", "sda"), node(3, "10.0.0.2", "sda")]
    containers = [node(7, "10.0.0.2", "sdc"), node(8, "10.0.0.1", "sda"), node(9, "10.0.0.1", "sdz")]
    assert [each.id for each in pair_with_objects(objects, containers)] == [9, 8, 7]


@pytest.mark.parametrize(
    ("network", "told"),
    [("10.0.0", {1: 1, 2: 2, 4: 3}), ("10.0.1", {3: 1, 7: 2, 11: 3})],
    ids=["the one beside it", "far from all, the same one again and again"],
)
def test_an_object_node_tells_one_container_node_whatever_its_place_is(network, told):
    containers = [node(k, f"{network}.{k}") for k in (1, 2, 3)]
    for three in permutations(told):
        paired = pair_with_objects([node(k, f"10.0.0.{k}") for k in three], containers)
        assert dict(zip(three, (each.id for each in paired), strict=True)) == told


@given(nodes, nodes.filter(len), st.integers(1, 5), st.integers(1, 5))
def test_no_container_node_is_left_out(objects, containers, count, quorum):
    attempts = spread_updates(
        {"x-timestamp": "1"},
        ContainerNodes(7, containers, min(len(containers), quorum), "unsharded"),
        object_count=count,
        object_quorum=min(count, quorum),
        object_nodes=objects,
    )
    assert len(attempts) == count
    told = [host for attempt in attempts for host in attempt.get("x-container-host", "").split(",") if host]
    assert len(told) >= len(containers)
    assert {each.key.rpartition("/")[0] for each in containers} == set(told)


def test_two_nodes_clean_the_queue_unless_the_request_says_otherwise():
    attempts = [{}, {}, {}]
    mark_queue_cleaners(attempts)
    assert [each[CLEAN] for each in attempts] == ["t", "t", "f"]
    attempts = [{CLEAN: "no"}, {CLEAN: "no"}, {CLEAN: "no"}]
    mark_queue_cleaners(attempts)
    assert [each[CLEAN] for each in attempts] == ["no"] * 3
