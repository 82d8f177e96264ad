"""Moves go where there is room, pull replicas apart, and leave resting partitions alone."""

from __future__ import annotations

import random
from array import array
from collections import Counter

import pytest

from swift.ring.dispersion import measure
from swift.ring.errors import RingValidationError
from swift.ring.plan import make_plan
from swift.ring.reassign import Reassignment

HOLE = 65535


def reassign(places, rows, *, movable=True, replicas=None):
    """Run one reassignment over (zone, ip, weight) devices; returns the rows and the run."""
    records = [
        {"id": dev_id, "region": 1, "zone": zone, "ip": ip, "weight": weight}
        for dev_id, (zone, ip, weight) in enumerate(places)
    ]
    parts = len(rows[0])
    held = Counter(dev_id for row in rows for dev_id in row if dev_id != HOLE)
    plan = make_plan(records, parts=parts, replicas=replicas or float(len(rows)), overload=10, held=held)
    arrays = [array("H", row) for row in rows]
    run = Reassignment(
        plan, records, arrays, hole=HOLE, movable=bytearray([movable] * parts), rng=random.Random(1)
    )
    run.run()
    return records, arrays, run


THREE = [(1, "a", 100), (2, "b", 100), (3, "c", 100)]


def test_holes_are_filled_with_devices_that_do_not_hold_the_partition():
    _, rows, run = reassign(THREE, [[0, 1, 2, 0], [1, HOLE, 0, HOLE]])
    assert all(one != other for one, other in zip(*rows, strict=True))
    assert run.placed == {(1, 1), (3, 1)}


def test_holes_are_filled_even_when_partitions_rest():
    _, rows, _ = reassign(THREE, [[0, 1, 2, 0], [1, HOLE, 0, HOLE]], movable=False)
    assert HOLE not in rows[1]


def test_resting_partitions_stay():
    before = [[0] * 6, [1] * 6]
    _, rows, run = reassign(THREE, before, movable=False)
    assert [list(row) for row in rows] == before
    assert not run.placed


def test_a_device_above_its_quota_hands_partitions_to_the_one_below():
    _, rows, run = reassign(THREE, [[0] * 6, [1] * 6])
    assert Counter(dev_id for row in rows for dev_id in row) == {0: 4, 1: 4, 2: 4}
    assert len(run.placed) == 4


def test_two_replicas_on_one_device_are_separated_even_when_they_rest():
    _, rows, _ = reassign(THREE, [[0, 1, 2], [0, 2, 1]], movable=False)
    assert rows[0][0] != rows[1][0]


def test_replicas_in_one_zone_are_pulled_apart():
    places = [(1, "a", 100), (1, "a", 100), (2, "b", 100), (2, "b", 100)]
    records, rows, _ = reassign(places, [[0] * 4 + [2] * 4, [1] * 4 + [3] * 4])
    _, dispersion = measure(rows, records, parts=8, replicas=2)
    assert dispersion == 0
    assert sorted(Counter(dev_id for row in rows for dev_id in row).values()) == [4, 4, 4, 4]


def test_more_replicas_than_devices_for_a_partition_are_an_error():
    with pytest.raises(RingValidationError, match="partition 0 has more replicas than there are devices"):
        reassign(THREE[:2], [[0], [1], [HOLE]], replicas=2.0)
