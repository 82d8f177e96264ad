"""Growing the ring doubles every entry, and steps out of order are refused (spec: ring.md §8)."""

from __future__ import annotations

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.errors import PartPowerError
from swift.ring.partpower import (
    cancel_increase,
    finish_increase,
    increase,
    predecessor,
    prepare_increase,
)
from swift.ring.ring import Ring
from swift.ring.split import SplitPhase, phase


def test_every_entry_is_doubled_and_devices_hold_twice_as_many(make_builder):
    builder = make_builder(replicas=2.5)
    builder.rebalance(seed=1)
    before, version = [list(row) for row in builder.rows], builder.version
    prepare_increase(builder)
    increase(builder)
    assert builder.rows[0].tolist() == [dev for dev in before[0] for _ in (0, 1)]
    assert [len(row) for row in builder.rows] == [128, 128, 64]
    builder.validate()
    finish_increase(builder)
    assert builder.version == version + 3
    builder.rebalance(seed=1)
    builder.validate()


def test_the_graph_saved_after_an_increase_is_the_true_one(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    prepare_increase(builder)
    increase(builder)
    saved = builder.dispersion_graph
    builder.measure_dispersion()
    assert builder.dispersion_graph == saved


def test_a_cancelled_increase_leaves_the_assignment_alone(make_builder):
    builder = make_builder()
    builder.rebalance(seed=1)
    rows = [row[:] for row in builder.rows]
    prepare_increase(builder)
    cancel_increase(builder)
    assert phase(builder.part_power, builder.next_part_power) is SplitPhase.CLEANUP
    finish_increase(builder)
    assert builder.rows == rows


@pytest.mark.parametrize("step", [increase, cancel_increase, finish_increase])
def test_steps_need_a_prepared_builder(make_builder, step):
    with pytest.raises(PartPowerError):
        step(make_builder())


def test_preparing_twice_or_beyond_the_largest_power_is_refused(make_builder):
    builder = make_builder()
    prepare_increase(builder)
    with pytest.raises(PartPowerError, match="already prepared"):
        prepare_increase(builder)
    largest = make_builder()
    largest.part_power = 32
    with pytest.raises(PartPowerError, match="largest"):
        prepare_increase(largest)


def test_an_increase_begun_by_upstream_is_finished(golden):
    builder = RingBuilder.load(str(golden / "e2-increased.builder"))
    finish_increase(builder)
    assert builder.table().rows == Ring(str(golden / "e3-finished.ring.gz")).view().rows
    builder.pretend_min_part_hours_passed()
    builder.rebalance(seed=1)
    builder.validate()


def test_a_split_partition_keeps_its_devices(golden):
    old = Ring(str(golden / "e1-prepared.ring.gz"))
    new = Ring(str(golden / "e2-increased.ring.gz"))
    for part in range(old.view().partition_count):
        for half in (2 * part, 2 * part + 1):
            assert predecessor(half) == part
            assert [node.id for node in new.primaries(half)] == [node.id for node in old.primaries(part)]
