"""A step moves one copy of a partition, in an order that keeps copies apart."""

from array import array

import pytest

from swift.layout.steps import FULL, HELD, NO_DEVICE, Domains, Limits, align, next_step, reshape


def records(*zones):
    """Return devices 0, 1, … in the zones, each on a server of its own."""
    return [
        {"id": number, "region": 1, "zone": zone, "ip": f"10.0.0.{number}", "port": 6200, "device": "sdb"}
        for number, zone in enumerate(zones)
    ]


def rows(*columns):
    """Return rows from the devices of each partition."""
    return [array("H", row) for row in zip(*columns, strict=True)]


def limits(parts, **options):
    return Limits(**{"copies_max": 100, "movable": b"\1" * parts, **options})


def columns(step):
    return list(zip(*step.rows, strict=True))


def test_one_copy_of_a_partition_moves_at_a_time():
    devices = records(1, 2, 3, 4, 5, 6)
    current, target = rows((0, 1, 2)), rows((3, 4, 5))
    for left in (2, 1, 0):
        step = next_step(current, target, devices, limits(1))
        assert (len(step.moves), step.left) == (1, left)
        current = step.rows
    assert set(columns(step)[0]) == {3, 4, 5}


def test_no_more_copies_move_than_are_allowed():
    devices = records(1, 2, 3, 4)
    current, target = rows(*[(0, 1, 2)] * 10), rows(*[(0, 1, 3)] * 10)
    step = next_step(current, target, devices, limits(10, copies_max=4))
    assert (len(step.moves), step.left) == (4, 6)


def test_copies_stay_in_different_zones_on_the_way():
    # Zones 1, 2, 3; the new devices are in zones 2, 3, 1 by their index.
    devices = records(1, 2, 3, 2, 3, 1)
    current, target = rows((0, 1, 2)), rows((3, 4, 5))
    for _ in range(3):
        current = next_step(current, target, devices, limits(1)).rows
        assert Domains(devices).crowding(next(zip(*current, strict=True)))[1] == 1


def test_copies_on_dead_devices_move_first_and_alone():
    devices = records(1, 2, 3, 4, 5)
    current, target = rows((0, 1, 2), (0, 1, 2)), rows((3, 1, 2), (0, 4, 2))
    step = next_step(current, target, devices, limits(2, dead={0}, movable=b"\0\0"))
    assert [(move.part, move.source) for move in step.moves] == [(0, 0)]
    assert step.left == 1


def test_partitions_that_moved_lately_wait():
    devices = records(1, 2, 3, 4)
    step = next_step(rows((0, 1, 2)), rows((0, 1, 3)), devices, limits(1, movable=b"\0"))
    assert (step.moves, step.waiting[HELD]) == ([], 1)


def test_a_full_device_takes_nothing():
    devices = records(1, 2, 3, 4)
    step = next_step(rows((0, 1, 2)), rows((0, 1, 3)), devices, limits(1, full={3}))
    assert (step.moves, step.waiting[FULL]) == ([], 1)


def test_the_order_of_copies_alone_is_no_move():
    devices = records(1, 2, 3)
    step = next_step(rows((0, 1, 2)), rows((2, 0, 1)), devices, limits(1))
    assert (step.moves, step.left) == ([], 0)


def test_archives_of_erasure_codes_keep_their_index():
    devices = records(1, 2, 3, 4)
    # Device 1 gives index 1 to 3, and takes index 0 from device 0.
    current, target = rows((0, 1, 2)), rows((1, 3, 2))
    first = next_step(current, target, devices, limits(1, any_order=False))
    assert columns(first) == [(0, 3, 2)]
    second = next_step(first.rows, target, devices, limits(1, any_order=False))
    assert columns(second) == [(1, 3, 2)] and second.left == 0


def test_archives_that_change_places_do_so_at_once():
    devices = records(1, 2, 3)
    step = next_step(rows((0, 1, 2)), rows((1, 0, 2)), devices, limits(1, any_order=False))
    assert columns(step) == [(1, 0, 2)] and step.left == 0


def test_devices_that_stay_keep_their_index():
    assert align((0, 1, 2), (2, 3, 0), Domains(records(1, 2, 3, 4))) == [0, 3, 2]


def test_copies_are_added_in_steps_and_removed_at_once():
    two, three = rows((0, 1), (1, 2)), rows((0, 1, 2), (1, 2, 0))
    step = reshape(two, three, 1)
    assert [list(row) for row in step.rows] == [[0, 1], [1, 2], [2]]
    assert (step.moves[0].source, step.left) == (NO_DEVICE, 1)
    assert [list(row) for row in reshape(step.rows, three, 9).rows] == [[0, 1], [1, 2], [2, 0]]
    fewer = reshape(three, rows((2, 1), (0, 2)), 1)
    assert [sorted(column) for column in columns(fewer)] == [[1, 2], [0, 2]]
    assert reshape(two, two, 1) is None


@pytest.mark.parametrize("seed", range(3))
def test_moves_are_spread_over_the_partitions(seed):
    devices = records(1, 2, 3, 4)
    current, target = rows(*[(0, 1, 2)] * 64), rows(*[(0, 1, 3)] * 64)
    step = next_step(current, target, devices, limits(64, copies_max=16, seed=seed))
    moved = [move.part for move in step.moves]
    assert min(moved) < 24 and max(moved) > 40
