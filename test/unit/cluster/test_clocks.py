"""Clocks of servers are compared by the Date of their responses, now and then."""

import pytest

from swift.base.clock import ManualClock
from swift.base.timestamp import http_date
from swift.cluster.clocks import INTERVAL_S, TOLERANCE_S, ClockComparison
from swift.telemetry.metrics import GaugeMetric
from swift.telemetry.telemetry import Telemetry


class Compared:
    def __init__(self):
        self.clock = ManualClock()
        self.warnings = []
        self.gauge = GaugeMetric("offset", "Offset.").of(Telemetry().metrics)
        self.clocks = ClockComparison(self.clock, self.warnings.append, self.gauge)

    def note(self, server, ahead_s):
        self.clocks.compare(server, http_date(int(self.clock.time() + ahead_s)))


@pytest.fixture
def compared():
    return Compared()


@pytest.mark.parametrize("ahead_s", [0, 1, -1, TOLERANCE_S, -TOLERANCE_S])
def test_clocks_within_the_tolerance_are_not_reported(compared, ahead_s):
    compared.note("10.0.0.1:6200/sda", ahead_s)
    assert compared.warnings == []


@pytest.mark.parametrize(("ahead_s", "words"), [(5, "5 s ahead of"), (-5, "4 s behind")])
def test_one_server_that_differs_is_named(compared, ahead_s, words):
    for number in (1, 2, 3):
        compared.note(f"10.0.0.{number}:6200/sda", ahead_s if number == 3 else 0)
    assert compared.warnings == [
        f"the clock of 10.0.0.3:6200 is {words} this server's; check its time synchronization"
    ]


def test_where_most_servers_differ_it_is_this_clock(compared):
    for number in (1, 2, 3):
        compared.note(f"10.0.0.{number}:6200/sda", -60)
    assert "this server's clock is 59 s ahead of those of 3 of 3 storage servers" in compared.warnings[-1]


def test_servers_that_differ_in_both_directions_say_nothing_of_this_clock(compared):
    for number, ahead_s in enumerate((0, 3600, -3600, -3600)):
        compared.note(f"10.0.0.{number}:6200/sda", ahead_s)
    assert [warning.startswith("the clock of") for warning in compared.warnings] == [True] * 3


def test_a_server_is_compared_once_in_the_interval(compared):
    compared.note("10.0.0.1:6200/sda", 0)
    compared.note("10.0.0.1:6200/sda", 60)
    assert compared.warnings == []
    compared.clock.advance(INTERVAL_S)
    compared.note("10.0.0.1:6200/sda", 60)
    assert len(compared.warnings) == 1


def test_a_date_that_cannot_be_read_is_ignored(compared):
    compared.clocks.compare("10.0.0.1:6200/sda", "yesterday")
    assert compared.warnings == []
