"""Whatever is done to a builder, its rings keep their promises (property tests)."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swift.base.clock import ManualClock
from swift.ring.builder import RingBuilder
from swift.ring.dispersion import measure
from swift.ring.errors import EmptyRing, RingValidationError
from swift.ring.tiers import tier_keys

WEIGHTS = st.sampled_from([0, 10, 50, 100, 100, 400])
PLACES = st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), WEIGHTS)
ACTIONS = st.one_of(
    st.tuples(st.just("add"), PLACES),
    st.tuples(st.just("remove"), st.integers(0, 30)),
    st.tuples(st.just("weight"), st.integers(0, 30), WEIGHTS),
    st.tuples(st.just("zone"), st.integers(0, 30), st.integers(1, 3)),
    st.tuples(st.just("replicas"), st.sampled_from([1, 2, 2.5, 3, 4])),
    st.tuples(st.just("hours"), st.integers(0, 3)),
)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def add(builder: RingBuilder, place) -> None:
    region, zone, server, weight = place
    number = sum(dev is not None for dev in builder.devs) + builder.version
    builder.add_device(
        region=region,
        zone=zone,
        ip=f"10.{region}.{zone}.{server}",
        port=1,
        device=f"d{number}",
        weight=weight,
    )


def build(places, replicas, *, overload=0.0, min_part_hours=1) -> RingBuilder:
    builder = RingBuilder(5, replicas, min_part_hours, clock=ManualClock())
    builder.overload = overload
    for place in places:
        add(builder, place)
    return builder


def apply(builder: RingBuilder, action) -> None:
    name, *values = action
    live = builder.live_devs
    if name == "add":
        add(builder, values[0])
    elif name == "replicas":
        builder.set_replicas(values[0])
    elif name == "hours":
        builder._clock.advance(values[0] * 3600)
    elif live:
        dev = live[values[0] % len(live)]
        if name == "remove":
            builder.remove_device(dev["id"])
        elif dev["id"] not in builder.removed_ids:
            builder.change_device(dev["id"], **{name: values[1]})


def rebalanced(builder: RingBuilder) -> bool:
    try:
        builder.rebalance(seed=7)
    except (EmptyRing, RingValidationError):
        return False
    return True


@QUICK
@given(st.lists(PLACES, min_size=4, max_size=14), st.lists(ACTIONS, max_size=12), st.floats(0, 2))
def test_no_two_replicas_share_a_device_and_recent_moves_stay(places, actions, overload):
    builder = build(places, 3, overload=overload)
    rebalanced(builder)
    for action in actions:
        apply(builder, action)
        before = [row[:] for row in builder.rows or []]
        resting = [not movable for movable in builder.movable_parts]
        leaving = set(builder.removed_ids)
        if not rebalanced(builder):
            continue
        builder.validate()
        for old, new in zip(before, builder.rows, strict=False):
            for part, (one, other) in enumerate(zip(old, new, strict=False)):
                assert one == other or one in leaving or not resting[part]


@QUICK
@given(
    st.lists(PLACES, min_size=4, max_size=14),
    st.sampled_from([1, 2, 2.5, 3, 4]),
    st.sampled_from([0, 0.2, 5]),
)
def test_a_fresh_ring_fulfils_its_plan_exactly(places, replicas, overload):
    builder = build(places, replicas, overload=overload)
    if not rebalanced(builder):
        return
    plan = builder.plan()
    held = Counter(dev_id for row in builder.rows for dev_id in row)
    assert {dev_id: quota for dev_id, quota in plan.device_quota().items() if quota} == dict(held)
    bounds = {tier.key: (tier.minimum, tier.maximum) for tier in plan.root.walk() if tier.key}
    whole = [row for row in builder.rows if len(row) == builder.parts]
    for part in range(builder.parts):
        ids = [row[part] for row in builder.rows if part < len(row)]
        counts = Counter(key for dev_id in ids for key in tier_keys(builder.devs[dev_id]))
        for key, (least, most) in bounds.items():
            assert counts[key] <= most
            if len(whole) == len(builder.rows):
                assert counts[key] >= least


@QUICK
@given(st.lists(PLACES, min_size=4, max_size=14), st.sampled_from([1, 2, 3]))
def test_enough_overload_gives_the_best_dispersion_there_is(places, replicas):
    builder = build(places, replicas, overload=1000)
    if rebalanced(builder):
        assert builder.dispersion == 0


@QUICK
@given(st.lists(PLACES, min_size=4, max_size=14), st.sampled_from([1, 2, 2.5, 3]))
def test_devices_are_within_the_reported_balance_of_their_share(places, replicas):
    builder = build(places, replicas)
    if not rebalanced(builder):
        return
    worst = builder.balance
    for dev in builder.live_devs:
        desired = dev["weight"] * builder.weight_of_one_part
        assert abs(dev["parts"] - desired) <= worst / 100 * desired + 1e-6


@QUICK
@given(st.lists(PLACES, min_size=5, max_size=14), PLACES)
def test_repeated_rebalances_reach_the_plan(places, late):
    builder = build(places, 2, min_part_hours=0)
    if not rebalanced(builder):
        return
    add(builder, late)
    for _ in range(6):
        rebalanced(builder)
    quota = builder.plan().device_quota()
    off = sum(abs(dev["parts"] - quota.get(dev["id"], 0)) for dev in builder.live_devs)
    # In a tight ring two partitions may have no place to go that keeps their replicas apart.
    assert off <= max(0.05 * 2 * builder.parts, 4)


@QUICK
@given(st.lists(PLACES, min_size=4, max_size=10), st.sampled_from([2, 2.5, 3]), st.lists(ACTIONS, max_size=4))
def test_dispersion_agrees_with_counting_one_by_one(places, replicas, actions):
    builder = build(places, replicas)
    if not rebalanced(builder):
        return
    for action in actions:
        if action[0] not in ("replicas", "add"):
            apply(builder, action)
    graph, _ = measure(builder.rows, builder.devs, parts=builder.parts, replicas=builder.replicas)
    shared = min(len(row) for row in builder.rows)
    expected: dict = {}
    for part in range(shared):
        keys = Counter(key for row in builder.rows for key in tier_keys(builder.devs[row[part]]))
        for key, present in keys.items():
            counts = expected.setdefault(key, [builder.parts] + [0] * len(builder.rows))
            counts[present] += 1
            counts[0] -= 1
    assert graph == expected
