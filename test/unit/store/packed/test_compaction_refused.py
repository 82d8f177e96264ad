"""Compaction concludes nothing from records that were refused, or that are not indexed yet."""

from __future__ import annotations

import pytest

from swift.store.packed.compaction import Compactor
from test.sim.packedworld import broken
from test.unit.store.packed.test_device import Bench


@pytest.fixture
def bench():
    return Bench()


def compacted(bench, number, by=1):
    device = bench.process(by)
    return Compactor(device.process, device).compact(number)


def test_what_a_refused_record_says_is_not_carried_on(bench):
    """It referenced a record that has to stay."""
    bench.put(1, by=1)
    bench.put(2)
    bench.fail("fdatasync", broken())
    with pytest.raises(OSError):
        bench.put(3, replaces=[1, 2])
    bench.mend()
    bench.put(4)
    bench.kill()
    report = compacted(bench, 2)
    assert report.is_removed, report
    assert bench.seconds(by=1) == [1, 2, 4] == bench.made_again()


def test_a_volume_with_records_that_are_not_indexed_stays(bench):
    bench.put(1)
    bench.put(2, by=1)
    bench.process().process.fault = lambda name: bench.kill() if name == "index.writing" else None
    with pytest.raises(BaseException):  # noqa: B017 - it is killed
        bench.put(3, replaces=[2])
    report = compacted(bench, 1)
    assert not report.is_removed and "index" in report.reason
    assert bench.seconds(by=1) == [1, 2]
    assert bench.seconds(by=2) == [1, 3] == bench.made_again()
