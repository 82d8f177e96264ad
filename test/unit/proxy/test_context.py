"""The order in which nodes are asked (proxy.md §6, §13)."""

import pytest

from swift.base.hashing import PathHasher
from swift.base.limits import Limits
from swift.cluster.rings import Rings
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.proxy.context import ProxyContext
from swift.proxy.settings import ProxySettings
from swift.ring.builder import RingBuilder
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry

CODE = ErasureCode("liberasurecode_rs_vand", 2, 2, 1000, 2)


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """Eight replicas on twelve devices, half of them in each of two regions."""
    builder = RingBuilder(4, 8, 1)
    for n in range(12):
        builder.add_device(
            region=1 + n % 2, zone=n, ip="10.0.0.1", port=6200 + n, device=f"d{n}", weight=100.0
        )
    builder.rebalance(seed=1)
    folder = tmp_path_factory.mktemp("ring")
    builder.write_ring(str(folder / "object.ring.gz"))
    policies = Policies([Policy(0, "gold", is_default=True)])
    return Rings(str(folder), policies).object(policies.default).view()


def planner(**options):
    return context_of(**options).planner()


def context_of(**options):
    return ProxyContext(
        settings=ProxySettings(log_handoffs=False, **options),
        rings=None,
        transport=None,
        policies=Policies.single(),
        limits=Limits(),
        hasher=PathHasher(b"", b"x"),
        telemetry=Telemetry(silent_log()),
    )


@pytest.mark.parametrize("part", range(8))
def test_one_copy_of_the_data_is_asked_for_first(view, part):
    nodes = list(planner().for_fragments(view, part, CODE))
    indexes = [node.index % CODE.fragments for node in nodes[:8]]
    assert sorted(indexes[:2]) == [0, 1]
    assert sorted(indexes[:4]) == [0, 1, 2, 3]
    assert {node.id for node in nodes[:8]} == {node.id for node in view.primaries(part)}
    assert all(node.index is None for node in nodes[8:])


def test_either_copy_may_lead(view):
    leading = {next(planner().for_fragments(view, 0, CODE)).index for _ in range(100)}
    assert leading == {0, 1, 4, 5}


def test_an_operator_s_order_comes_before_ours(view):
    chosen = planner(sorting_method="affinity", read_affinity="r2=1")
    regions = [node.region for node in chosen.for_fragments(view, 0, CODE)][:8]
    assert regions == sorted(regions, reverse=True)


@pytest.mark.parametrize(("option", "extra"), [(None, None), (0, 0), (1, 1), (9, 2)])
def test_deletions_also_go_to_local_handoffs(view, option, extra):
    part = 0
    primaries = {node.id for node in view.primaries(part)}
    local = [node.id for node in view.handoffs(part) if node.region == 1]
    if extra is None:
        extra = min(len(local), sum(1 for node in view.primaries(part) if node.region != 1))
    chosen = planner(write_affinity="r1", write_affinity_handoff_delete_count=option)
    nodes, count = chosen.for_delete(view, part)
    asked = [node.id for node in nodes]
    assert count == 8 + extra
    assert set(asked[:8]) == primaries
    assert asked[8:count] == local[:extra]
    assert len(asked) == len(set(asked)) == 12


def test_without_write_affinity_deletions_go_to_the_primaries(view):
    nodes, count = planner().for_delete(view, 0)
    assert (count, {n.id for n, _ in zip(nodes, range(8), strict=False)}) == (
        8,
        {n.id for n in view.primaries(0)},
    )


def test_the_node_count_grows_by_the_handoffs(view):
    chosen = planner(
        write_affinity="r1", write_affinity_handoff_delete_count=1, request_node_count="1 * replicas"
    )
    nodes, count = chosen.for_delete(view, 0)
    assert (count, len(list(nodes))) == (9, 9)


def test_new_objects_go_to_local_nodes_first(view):
    chosen = planner(write_affinity="r1", write_affinity_node_count="1 * replicas")
    asked = [node.region for node in chosen.for_put(view, 0)]
    local = sum(1 for node in [*view.primaries(0), *view.handoffs(0)] if node.region == 1)
    assert asked[:8].count(1) == local
    assert planner().for_put(view, 0).primary_count == 8


@pytest.mark.parametrize("count", range(1, 9))
def test_more_than_half_must_acknowledge_a_write_unless_half_is_a_quorum(count):
    gold = Policy(0, "gold", is_default=True)
    strict, loose = context_of(), context_of(half_is_quorum=True)
    assert strict.write_quorum(count) == strict.object_quorum(gold, count) == count // 2 + 1
    assert loose.write_quorum(count) == loose.object_quorum(gold, count) == (count + 1) // 2


@pytest.mark.parametrize(
    ("data", "parity", "copies", "strict", "loose"),
    [(2, 1, 1, 3, 3), (4, 2, 1, 5, 5), (8, 4, 1, 9, 9), (2, 2, 2, 6, 6), (2, 4, 1, 4, 3), (1, 3, 1, 3, 2)],
)
def test_an_erasure_code_asks_for_one_archive_more_than_the_data_and_for_a_majority(
    data, parity, copies, strict, loose
):
    policy = Policy(1, "ec", ec=ErasureCode("liberasurecode_rs_vand", data, parity, 1000, copies))
    count = policy.ec.replicas
    assert context_of().object_quorum(policy, count) == strict
    assert context_of(half_is_quorum=True).object_quorum(policy, count) == loose


@pytest.mark.parametrize(
    "setting, mark, is_strong",
    [
        ("all", None, True),
        ("all", "false", True),
        ("marked", "true", True),
        ("marked", "off", False),
        ("off", "true", False),
    ],
)
def test_listings_are_strong_by_the_option_and_the_containers_mark(setting, mark, is_strong):
    assert context_of(strong_listing=setting).lists_strongly(mark) is is_strong
