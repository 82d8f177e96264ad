"""The device that takes a replica: the roomiest way down, within quotas and maxima, as trying all does it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ring.domains import Domains
from swift.ring.plan import make_plan


def records_of(places):
    return [
        {"id": dev_id, "region": region, "zone": zone, "ip": ip, "weight": 1.0}
        for dev_id, (region, zone, ip) in enumerate(places)
    ]


def domains_of(places, *, parts=8, replicas=3.0, held=None, gone=()):
    records = records_of(places)
    plan = make_plan(records, parts=parts, replicas=replicas, overload=0.0, held=held or {})
    kept = [None if record["id"] in gone else record for record in records]
    return Domains(plan, kept, held or {}, random.Random(1))


PLACES = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.sampled_from("ab")), min_size=3, max_size=8
)


@given(places=PLACES, data=st.data(), need_room=st.booleans(), disperse=st.booleans())
def test_whoever_is_found_may_take_it_and_nobody_is_found_only_when_nobody_may(
    places, data, need_room, disperse
):
    domains = domains_of(places)
    leaves = list(domains.by_device.values())
    for leaf in data.draw(st.lists(st.sampled_from(leaves), max_size=20)):
        domains.take(leaf)
    others = data.draw(st.lists(st.sampled_from(range(len(places))), max_size=2, unique=True))
    counts = domains.counts(others)

    def may(leaf):
        *above, device = leaf.path
        return (
            (not need_room or all(domain.room > 0 for domain in leaf.path))
            and (not disperse or all(counts.get(domain, 0) < domain.maximum for domain in above))
            and counts.get(device, 0) < 1
            and (device.maximum > 0 or not disperse)
        )

    found = domains.receiver(counts, need_room=need_room, disperse=disperse)
    if found is None:
        assert not any(may(leaf) for leaf in leaves)
    else:
        assert may(found)
        # Nothing that was looked at and passed over is forgotten.
        assert domains.receiver(counts, need_room=need_room, disperse=disperse) is not None


def test_the_roomiest_comes_first():
    domains = domains_of([(1, 1, "a"), (1, 1, "a"), (1, 1, "a")], held={0: 5, 1: 2, 2: 4})
    assert domains.receiver({}).dev_id == 1


def test_a_device_that_is_full_takes_nothing_unless_room_is_not_asked_for():
    domains = domains_of([(1, 1, "a"), (1, 2, "b")], replicas=2.0, held={0: 8, 1: 8})
    assert domains.receiver({}) is None
    assert domains.receiver({}, need_room=False) is not None


def test_a_replica_that_leaves_makes_room_on_its_own_way():
    domains = domains_of([(1, 1, "a"), (1, 1, "a")], replicas=1.0, parts=8, held={0: 8, 1: 0})
    leaving = domains.by_device[0].path
    assert domains.receiver({}, leaving=leaving).dev_id == 1


@given(places=PLACES, data=st.data())
def test_a_move_leaves_the_sum_of_room_as_it_was(places, data):
    domains = domains_of(places)
    leaves = list(domains.by_device.values())
    one, other = (data.draw(st.sampled_from(leaves)) for _ in range(2))
    before = {leaf: leaf.room for leaf in leaves}
    domains.move(one, other)
    assert sum(leaf.room for leaf in leaves) == sum(before.values())
    if one is not other:
        assert (one.room, other.room) == (before[one] + 1, before[other] - 1)


def test_devices_that_are_gone_have_no_domain():
    domains = domains_of([(1, 1, "a"), (1, 2, "b")], replicas=2.0, gone={1})
    assert set(domains.by_device) == {0}
    with pytest.raises(KeyError):
        domains.counts([1])
