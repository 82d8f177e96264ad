"""The study of metadata caching of 2017 comes out within a fifth, in a short simulated time."""

from itertools import pairwise
from statistics import fmean

import pytest

from tools.studies.study2017 import SIZES, gain, replication, rising

LARGEST = 10_000_000


@pytest.fixture(scope="module")
def gains():
    return [gain(5, size, LARGEST, seconds=4, seed=1) for size in SIZES]


def test_latency_falls_by_86_percent_at_64_kb_and_53_percent_at_1_mb(gains):
    assert gains[0].latency_change == pytest.approx(-0.86, rel=0.2)
    assert gains[-1].latency_change == pytest.approx(-0.53, rel=0.2)
    assert fmean(each.latency_change for each in gains) == pytest.approx(-0.67, rel=0.2)


def test_throughput_is_about_three_times_and_the_ssd_is_not_the_bottleneck(gains):
    without, cached = (fmean(getattr(each, side).mean_s for each in gains) for side in ("without", "cached"))
    assert without / cached == pytest.approx(3, rel=0.2)
    assert all(each.cached.ssd < 0.5 for each in gains)


def test_smaller_objects_gain_more(gains):
    changes = [each.latency_change for each in gains]
    assert changes == pytest.approx(sorted(changes), abs=0.03)


def test_the_gain_grows_with_the_working_set():
    changes = [each.latency_change for each in rising(seconds=3, seed=1)]
    assert all(later < earlier for earlier, later in pairwise(changes))


def test_a_replication_pass():
    assert [figure.name for figure in replication(seed=1, partitions=300) if not figure.is_near] == []
