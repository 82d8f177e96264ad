"""The builder: devices come and go, versions count, moves stay few, time is respected."""

from __future__ import annotations

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.errors import (
    DeviceError,
    DuplicateDevice,
    EmptyRing,
    NoSuchDevice,
    PartPowerError,
    RingValidationError,
)
from swift.ring.report import balance_of
from swift.ring.ring import Ring

HOUR_S = 3600


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((33, 3, 1), "part_power must be at most 32"),
        ((-1, 3, 1), "part_power must be at least 0"),
        ((4, 0.5, 1), "replicas must be at least 1"),
        ((4, float("nan"), 1), "replicas must be at least 1"),
        ((4, float("inf"), 1), "replicas must be less than 65536"),
        ((4, 3, -1), "min_part_hours must be non-negative"),
    ],
)
def test_impossible_settings_are_refused(arguments, sentence):
    with pytest.raises(DeviceError, match=sentence):
        RingBuilder(*arguments)


def test_a_first_rebalance_assigns_everything(make_builder):
    builder = make_builder()
    result = builder.rebalance(seed=1)
    builder.validate()
    assert (result.changed, result.removed, result.dispersion) == (192, 0, 0.0)
    assert [dev["parts"] for dev in builder.live_devs] == [24] * 8
    assert builder.balance == 0
    assert not builder.devs_changed


def test_the_same_seed_gives_the_same_ring(make_builder):
    one, other = make_builder(), make_builder()
    one.rebalance(seed="x")
    other.rebalance(seed="x")
    assert one.rows == other.rows


def test_a_fractional_ring_reports_changes_of_full_partitions_only(make_builder):
    builder = make_builder(part_power=7, replicas=2.5)
    assert builder.rebalance(seed=1).changed == 192
    assert [len(row) for row in builder.rows] == [128, 128, 64]


def test_versions_count_what_matters_for_placement(make_builder):
    builder = make_builder(zones=4, per_zone=1)
    assert builder.version == 4
    builder.change_device(0, weight=5)
    builder.change_device(0, region=2)
    builder.change_device(0, zone=2)
    builder.remove_device(3)
    assert builder.version == 8
    builder.set_info(1, meta="x")
    builder.set_replicas(2)
    assert builder.version == 8
    builder.rebalance()
    assert builder.version == 9


def test_a_removed_device_leaves_a_hole_that_the_next_one_takes(make_builder):
    builder = make_builder()
    builder.rebalance()
    builder.remove_device(2)
    assert builder.rebalance().removed == 1
    assert builder.devs[2] is None
    assert 2 not in set().union(*builder.rows)
    added = builder.add_device(region=1, zone=1, ip="10.9.9.9", port=1, device="x", weight=1)
    assert added == 2


def test_trailing_holes_are_trimmed(make_builder):
    builder = make_builder()
    builder.remove_device(7)
    builder.rebalance()
    assert len(builder.devs) == 7


def test_what_was_on_a_removed_device_moves_at_once_and_nothing_else(make_builder):
    builder = make_builder(min_part_hours=24)
    builder.rebalance(seed=1)
    before = [row[:] for row in builder.rows]
    builder.remove_device(2)
    builder.rebalance(seed=1)
    for old, new in zip(before, builder.rows, strict=True):
        assert all(one == other or one == 2 for one, other in zip(old, new, strict=True))


def test_a_moved_partition_rests_for_its_minimum_time(make_builder):
    builder = make_builder(min_part_hours=5)
    builder.rebalance(seed=1)
    builder.change_device(0, weight=10)
    builder.clock.advance(5 * HOUR_S - 1)
    assert builder.min_part_seconds_left == 1
    assert builder.rebalance(seed=1).changed == 0
    builder.clock.advance(5 * HOUR_S)
    assert builder.min_part_seconds_left == 0
    assert builder.rebalance(seed=1).changed > 0


def test_pretending_lets_everything_move(make_builder):
    builder = make_builder(min_part_hours=5)
    builder.rebalance(seed=1)
    builder.change_device(0, weight=10)
    builder.pretend_min_part_hours_passed()
    assert builder.rebalance(seed=1).changed > 0


def test_each_partition_moves_at_most_once_per_rebalance(make_builder):
    builder = make_builder(min_part_hours=0)
    builder.rebalance(seed=1)
    before = [row[:] for row in builder.rows]
    for dev_id in range(4):
        builder.change_device(dev_id, weight=1)
    builder.rebalance(seed=1)
    moved = [
        sum(old[part] != new[part] for old, new in zip(before, builder.rows, strict=True))
        for part in range(builder.parts)
    ]
    assert max(moved) == 1


def test_new_capacity_gets_its_share_and_nothing_else_moves(make_builder):
    builder = make_builder(part_power=10, zones=5, per_zone=4)
    builder.rebalance(seed=1)
    builder.pretend_min_part_hours_passed()
    added = builder.add_device(region=1, zone=0, ip="10.0.0.99", port=6200, device="sda", weight=100)
    result = builder.rebalance(seed=1)
    assert result.changed == builder.devs[added]["parts"]
    assert result.changed == pytest.approx(3 * 1024 / 21, abs=1)
    assert result.dispersion == 0


def test_an_unchanged_ring_is_left_alone(make_builder):
    builder = make_builder(part_power=8, zones=3, per_zone=3, weight=77)
    builder.rebalance(seed=1)
    rows = [row[:] for row in builder.rows]
    builder.pretend_min_part_hours_passed()
    assert builder.rebalance(seed=2).changed == 0
    assert builder.rows == rows


def test_more_replicas_fill_new_rows_and_fewer_drop_them(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    kept = [row[:] for row in builder.rows]
    builder.set_replicas(4)
    assert builder.devs_changed
    builder.rebalance(seed=1)
    builder.validate()
    assert builder.rows[:3] == kept
    builder.set_replicas(2)
    builder.pretend_min_part_hours_passed()
    builder.rebalance(seed=1)
    builder.validate()
    assert len(builder.rows) == 2


def test_too_few_devices_are_refused_and_change_nothing(make_builder):
    builder = make_builder(zones=2, per_zone=1)
    version = builder.version
    with pytest.raises(RingValidationError, match="requires more than 2 devices"):
        builder.rebalance()
    assert (builder.rows, builder.version) == (None, version)


def test_an_empty_builder_cannot_be_rebalanced():
    with pytest.raises(EmptyRing):
        RingBuilder(4, 3, 1).rebalance()


def test_no_rebalance_during_a_part_power_increase(make_builder):
    builder = make_builder()
    builder.next_part_power = 7
    with pytest.raises(PartPowerError):
        builder.rebalance()


def test_two_devices_cannot_have_one_address(make_builder):
    builder = make_builder()
    with pytest.raises(DuplicateDevice, match=r"Device 0 already uses 10.0.0.0:6200/sda\."):
        builder.add_device(region=1, zone=9, ip="10.0.0.0", port=6200, device="sda", weight=1)
    with pytest.raises(DuplicateDevice):
        builder.set_info(1, ip="10.0.0.0")
    with pytest.raises(DuplicateDevice, match="id 0 is already in use"):
        builder.add_device(id=0, region=1, zone=9, ip="9.9.9.9", port=6200, device="sda", weight=1)


def test_devices_that_do_not_exist_or_are_leaving_cannot_be_changed(make_builder):
    builder = make_builder()
    with pytest.raises(NoSuchDevice):
        builder.change_device(99, weight=1)
    builder.remove_device(1)
    with pytest.raises(DeviceError, match="Can not set weight of dev_id 1 because it is marked for removal"):
        builder.change_device(1, weight=1)


def test_a_device_needs_its_fields():
    with pytest.raises(DeviceError, match="a device needs region, zone"):
        RingBuilder(4, 3, 1).add_device(ip="1.2.3.4", port=1, device="d", weight=1)


def test_balance_counts_weightless_devices_with_partitions_as_worst(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    builder.change_device(0, weight=0)
    assert builder.balance == 999.99
    assert balance_of(builder, builder.devs[0]) == 999.99


def test_a_drained_device_ends_up_empty(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    builder.change_device(0, weight=0)
    for _ in range(3):
        builder.pretend_min_part_hours_passed()
        builder.rebalance(seed=1)
    assert builder.devs[0]["parts"] == 0
    assert builder.balance < 20


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda b: setattr(b, "rows", None), "did you forget to rebalance"),
        (lambda b: b.devs[0].update(parts=1), "counts are wrong"),
        (lambda b: b.devs[0].update(port="x"), "has port 'x'"),
        (lambda b: b.rows[1].__setitem__(0, b.rows[0][0]) or b._recount(), "duplicate devices"),
        (lambda b: (b.rows[0].pop(), b._recount()), "has 63 of 64 partitions"),
        (
            lambda b: (b.devs.pop(), b.devs[0].update(parts=b.devs[0]["parts"] + 24)),
            "device 7, which does not exist",
        ),
    ],
)
def test_validation_finds_broken_promises(make_builder, damage, sentence):
    builder = make_builder()
    builder.rebalance(seed=1)
    damage(builder)
    with pytest.raises(RingValidationError, match=sentence):
        builder.validate()


def test_the_written_ring_is_the_builder(make_builder, tmp_path):
    builder = make_builder(replicas=2.5)
    builder.rebalance(seed=1)
    for version in (1, 2):
        path = str(tmp_path / f"v{version}.ring.gz")
        builder.write_ring(path, format_version=version)
        view = Ring(path).view()
        assert list(view.rows) == builder.rows
        assert view.build_version == builder.version
        assert view.devices[0].key == "10.0.0.0:6200/sda"
    builder.write_ring(path, format_version=2, dev_id_bytes=4)
    assert Ring(path).view().dev_id_bytes == 4


def test_saving_gives_an_id_once_and_keeps_permissions(make_builder, tmp_path):
    path = tmp_path / "object.builder"
    builder = make_builder()
    builder.save(str(path))
    first = builder.id
    path.chmod(0o600)
    builder.save(str(path))
    assert builder.id == first == RingBuilder.load(str(path)).id
    assert path.stat().st_mode & 0o777 == 0o600


def test_ids_widen_when_they_must_and_narrow_when_there_is_room(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    builder.add_device(id=65535, region=1, zone=1, ip="9.9.9.9", port=1, device="d", weight=100)
    builder.rebalance(seed=1)
    assert builder.dev_id_bytes == 4
    builder.validate()
    builder.remove_device(65535)
    builder.rebalance(seed=1)
    builder.rebalance(seed=1)
    assert builder.dev_id_bytes == 2
    builder.validate()


def test_progress_is_reported_to_the_end(make_builder):
    seen = []
    builder = make_builder()
    builder.rebalance(seed=1, progress=lambda *step: seen.append(step))
    assert seen[-1][1] == seen[-1][2]
