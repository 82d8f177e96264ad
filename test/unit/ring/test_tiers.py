"""The tree of failure domains and its shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ring.errors import EmptyRing
from swift.ring.tiers import build_tree, plan_replicanths, share


def record(number, zone=1, ip="10.0.0.1", weight=100.0):
    return {"id": number, "region": 1, "zone": zone, "ip": ip, "weight": weight}


def targets(records, replicas, overload=0.0):
    root = build_tree(records)
    required = plan_replicanths(root, replicas, overload)
    return required, {tier.key[-1]: tier.target for tier in root.leaves()}, root


def test_devices_of_equal_weight_in_zones_of_equal_weight_get_the_same():
    required, leaves, _root = targets([record(n, zone=n, ip=f"10.0.0.{n}") for n in (1, 2, 3)], 3)
    assert required == pytest.approx(0)
    assert leaves == {1: pytest.approx(1), 2: pytest.approx(1), 3: pytest.approx(1)}


def test_no_device_gets_a_partition_twice_however_heavy():
    _required, leaves, _root = targets([record(1, weight=1000.0), record(2), record(3)], 2)
    assert leaves[1] == pytest.approx(1)
    assert leaves[2] == leaves[3] == pytest.approx(0.5)


def test_overload_buys_dispersion():
    records = [record(1, 1), record(2, 1), record(3, 2, "10.0.0.2", 50.0)]
    required, without, _root = targets(records, 2)
    assert required > 0 and without[3] == pytest.approx(2 * 50 / 250)
    _required, with_it, _root = targets(records, 2, overload=required)
    assert with_it[3] == pytest.approx(1)


def test_devices_without_weight_do_not_count():
    assert [leaf.key[-1] for leaf in build_tree([record(1), record(2, weight=0.0), None]).leaves()] == [1]
    with pytest.raises(EmptyRing):
        build_tree([record(1, weight=0.0), None])


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9)), min_size=3, max_size=9),
    st.sampled_from([1.0, 2.0, 2.5, 3.0]),
    st.sampled_from([0.0, 0.1, 10.0]),
)
def test_all_replicas_are_given_out_and_every_tier_is_the_sum_of_its_parts(devices, replicas, overload):
    records = [
        record(number, zone, f"10.0.{zone}.{number}", float(weight))
        for number, (zone, weight) in enumerate(devices)
    ]
    _required, leaves, root = targets(records, replicas, overload)
    assert sum(leaves.values()) == pytest.approx(replicas)
    for tier in root.walk():
        if tier.children:
            assert tier.target == pytest.approx(sum(child.target for child in tier.children))
        assert tier.minimum <= tier.target + 1e-9 and tier.target - 1e-9 <= tier.maximum


@given(st.data())
def test_shares_keep_their_bounds_and_reach_the_total_where_they_can(data):
    count = data.draw(st.integers(1, 6))
    lows = [data.draw(st.floats(0, 1)) for _ in range(count)]
    highs = [low + data.draw(st.floats(0, 2)) for low in lows]
    weights = [data.draw(st.floats(0.1, 10)) for _ in range(count)]
    total = data.draw(st.floats(sum(lows), sum(highs)))
    shares = share(total, weights, lows, highs)
    assert sum(shares) == pytest.approx(total)
    for low, value, high in zip(lows, shares, highs, strict=True):
        assert low - 1e-9 <= value <= high + 1e-9
