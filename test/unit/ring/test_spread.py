"""The first assignment fulfils the plan and mixes devices well, so that many help to rebuild one."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from swift.ring.plan import make_plan, row_lengths
from swift.ring.spread import spread


def spread_over(places, *, replicas=3.0, part_power=12, seed=1, progress=None):
    parts = 1 << part_power
    records = [
        {"id": dev_id, "region": 1, "zone": zone, "ip": ip, "weight": weight}
        for dev_id, (zone, ip, weight) in enumerate(places)
    ]
    plan = make_plan(records, parts=parts, replicas=replicas, overload=0, held={})
    lengths = row_lengths(parts, replicas)
    rows = spread(plan, lengths, typecode="H", rng=random.Random(seed), progress=progress)
    return plan, rows


FIVE_ZONES = [(number % 5, f"s{number % 5}-{number // 25}", 100) for number in range(100)]


@pytest.mark.parametrize("replicas", [1.0, 2.5, 3.0, 6.0])
def test_every_device_gets_exactly_its_quota(replicas):
    plan, rows = spread_over(FIVE_ZONES, replicas=replicas)
    held = Counter(dev_id for row in rows for dev_id in row)
    assert held == plan.device_quota()


def test_a_device_shares_partitions_with_most_of_the_devices_it_may():
    _, rows = spread_over(FIVE_ZONES)
    partners = Counter(other for ids in zip(*rows, strict=True) if 0 in ids for other in ids if other != 0)
    # Zone 0 has 20 devices, none of which may share with device 0; of the other 80 nearly all should.
    assert len(partners) >= 72
    assert max(partners.values()) <= 5 * sum(partners.values()) / len(partners)


def test_every_zone_stands_in_every_row():
    _, rows = spread_over(FIVE_ZONES)
    for row in rows:
        zones = Counter(FIVE_ZONES[dev_id][0] for dev_id in row)
        assert min(zones.values()) > len(row) / 5 / 3


def test_devices_that_must_hold_everything_do():
    places = [(0, "a", 100), (1, "b", 100), (2, "c", 100)]
    _, rows = spread_over(places, part_power=8)
    for ids in zip(*rows, strict=True):
        assert set(ids) == {0, 1, 2}


def test_progress_ends_with_everything_done():
    seen = []
    spread_over(FIVE_ZONES, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (4096, 4096)
