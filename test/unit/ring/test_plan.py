"""Plans reproduce the numbers recorded from upstream, and whole numbers add up (spec: ring.md §10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ring.errors import EmptyRing, RingValidationError
from swift.ring.plan import make_plan, row_lengths
from swift.ring.tiers import share


def records(*places):
    return [
        {"id": dev_id, "region": region, "zone": zone, "ip": ip, "weight": weight}
        for dev_id, (region, zone, ip, weight) in enumerate(places)
    ]


def plan_of(devs, *, replicas, overload=0.0, parts=256, held=None):
    return make_plan(devs, parts=parts, replicas=replicas, overload=overload, held=held or {})


def tier(plan, *key):
    return next(tier for tier in plan.root.walk() if tier.key == key)


FOUR_ZONES = records(*((1, zone, f"s{zone}", weight) for zone, weight in enumerate((100, 100, 100, 50), 1)))
LOPSIDED = records(*[(1, 1, "A", 100)] * 3, (1, 2, "B", 100))
TWO_REGIONS = records((1, 1, "a", 10), (1, 2, "b", 20), (2, 1, "c", 30), (2, 2, "d", 0), (2, 2, "d", 40))


def test_four_zones_need_no_overload():
    plan = plan_of(FOUR_ZONES, replicas=3)
    assert plan.required_overload == pytest.approx(0)
    assert tier(plan, 1, 1).target == pytest.approx(6 / 7)
    assert tier(plan, 1, 4).target == pytest.approx(3 / 7)
    assert plan.device_quota() == {0: 220, 1: 219, 2: 219, 3: 110}


@pytest.mark.parametrize(
    ("overload", "target", "quota"),
    [
        (0.0, 1.5, [128, 128, 128, 128]),
        (0.1, 1.45, [123, 124, 124, 141]),
        (9.0, 1.0, [85, 85, 86, 256]),
    ],
)
def test_overload_trades_balance_for_dispersion(overload, target, quota):
    plan = plan_of(LOPSIDED, replicas=2, overload=overload)
    assert plan.required_overload == pytest.approx(1.0)
    assert tier(plan, 1, 1).weighted == pytest.approx(1.5)
    assert tier(plan, 1, 1).wanted == pytest.approx(1.0)
    assert tier(plan, 1, 1).target == pytest.approx(target)
    assert sorted(plan.device_quota().values()) == quota


def test_fractional_replicas_in_two_regions():
    plan = plan_of(TWO_REGIONS, replicas=2.5)
    assert plan.required_overload == pytest.approx(1 / 3)
    assert tier(plan, 1).weighted == pytest.approx(0.75)
    assert tier(plan, 1).wanted == pytest.approx(1.0)
    assert tier(plan, 2).target == pytest.approx(1.75)
    assert plan.device_quota() == {0: 64, 1: 128, 2: 192, 4: 256}


def test_a_ring_without_weight_is_empty():
    with pytest.raises(EmptyRing, match="There are no devices in this ring"):
        plan_of(records((1, 1, "a", 0)), replicas=1)


def test_more_replicas_than_devices_are_refused():
    with pytest.raises(RingValidationError, match=r"Replica count of 3.0 requires more than 2 devices"):
        plan_of(records((1, 1, "a", 1), (1, 1, "a", 1)), replicas=3.0)


def test_equals_keep_what_they_hold():
    devs = records(*((1, 1, "a", 100) for _ in range(3)))
    held = {0: 85, 1: 86, 2: 85}
    assert plan_of(devs, replicas=1, held=held).device_quota() == held


def test_a_plan_can_be_printed():
    text = str(plan_of(LOPSIDED, replicas=2))
    assert "required overload 1.000000" in text
    assert "1/1: weighted 1.5000 wanted 1.0000 target 1.5000 quota 384 per partition 1..2" in text


@pytest.mark.parametrize(
    ("replicas", "lengths"), [(3, [8, 8, 8]), (2.5, [8, 8, 4]), (1.01, [8]), (1.2, [8, 1])]
)
def test_the_last_row_holds_the_fraction(replicas, lengths):
    assert row_lengths(8, replicas) == lengths


DEVICES = st.lists(
    st.tuples(
        st.integers(1, 2),
        st.integers(1, 3),
        st.sampled_from("abc"),
        st.sampled_from([0, 1, 10, 50, 100, 700]),
    ),
    min_size=4,
    max_size=20,
).filter(lambda places: sum(weight > 0 for *_, weight in places) >= 4)


@given(DEVICES, st.sampled_from([1.0, 2.0, 2.5, 3.0, 3.3, 4.0]), st.sampled_from([0.0, 0.1, 3.0]))
def test_quotas_add_up_and_respect_what_a_partition_may_have(places, replicas, overload):
    plan = plan_of(records(*places), replicas=replicas, overload=overload)
    assert sum(plan.device_quota().values()) == sum(row_lengths(256, replicas))
    for node in plan.root.walk():
        if node.children:
            assert plan.quota[node.key] == sum(plan.quota[child.key] for child in node.children)
        if node is not plan.root:
            assert 0 <= plan.quota[node.key] <= node.maximum * 256
            assert plan.quota[node.key] >= min(node.minimum * 256, int(node.target * 256))


@given(
    st.floats(0, 10),
    st.lists(st.tuples(st.floats(0.001, 100), st.floats(0, 1), st.floats(1, 3)), min_size=1, max_size=8),
)
def test_shares_keep_their_bounds_and_use_everything_that_fits(total, parts):
    weights, lows, highs = (list(column) for column in zip(*parts, strict=True))
    shares = share(total, weights, lows, highs)
    for got, low, high in zip(shares, lows, highs, strict=True):
        assert low - 1e-6 <= got <= high + 1e-6
    if sum(lows) <= total <= sum(highs):
        assert sum(shares) == pytest.approx(total, abs=1e-6)
