"""Two runs side by side: what differs is said to differ, chance is not."""

import random

import numpy as np
import pytest

from swift.load.compare import differences, percentiles
from swift.load.measure import latency_bin
from swift.load.savedruns import BadResult, read_saved_run
from test.support.load_runs import saved_of


def verdicts(a, b):
    return {one.figure: one.verdict for one in differences(a, b)}


@pytest.mark.long
def test_two_runs_of_the_same_seldom_differ():
    found = [verdicts(saved_of(2 * seed), saved_of(2 * seed + 1))["ops/s"] for seed in range(12)]
    assert found.count("no difference seen") >= 9


def test_slower_is_worse_and_more_is_better():
    found = verdicts(saved_of(1), saved_of(2, rate=150, latency_s=0.02))
    assert found == {
        "ops/s": "better",
        "MB/s": "better",
        "p50 ms": "worse",
        "p95 ms": "worse",
        "p99 ms": "worse",
    }


def test_the_interval_is_around_the_change_and_draws_are_seeded():
    a, b = saved_of(1), saved_of(2, rate=150)
    (rate, *_rest) = differences(a, b)
    assert rate.low < rate.change < rate.high and abs(rate.change - 0.5) < 0.1
    assert differences(a, b) == differences(a, b)


def test_of_a_few_seconds_nothing_is_said():
    assert set(verdicts(saved_of(1, seconds=3), saved_of(2)).values()) == {"too short to say"}


def test_percentiles_of_bins_are_near_those_of_the_values():
    chance = random.Random(5)
    values = [chance.lognormvariate(9, 1) for _ in range(5000)]
    counts = np.zeros((1, 200))
    for value in values:
        counts[0, latency_bin(value)] += 1
    for percent in (50, 95, 99):
        expected = sorted(values)[int(len(values) * percent / 100)] / 1000
        assert percentiles(counts, percent)[0] == pytest.approx(expected, rel=0.05)
    assert percentiles(np.zeros((1, 4)), 50)[0] == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"workload": 1, "phases": 3}', "\x00"])
def test_a_file_that_is_no_result_is_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(BadResult, match="no result"):
        read_saved_run(tmp_path / "r.json")
