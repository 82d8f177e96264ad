"""An error that comes with every request is told once, then now and then with a count."""

import pytest

from swift.base.clock import ManualClock
from swift.telemetry.repeatederrors import ERRORS_MAX, REPEAT_INTERVAL_S, RepeatedErrorLog
from test.support.daemons import ErrorLog


@pytest.fixture
def log():
    return ErrorLog()


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def errors(log, clock):
    return RepeatedErrorLog(log, clock)


def test_the_first_of_each_reason_is_told_at_once(errors, log):
    errors.error("status 507 from sda", txid="tx1")
    errors.error("status 507 from sdb", txid="tx2")
    assert log.errors == [("status 507 from sda", "tx1"), ("status 507 from sdb", "tx2")]


def test_repetitions_are_only_for_developers(errors, log):
    for number in range(3):
        errors.error("status 507 from sda", txid=f"tx{number}")
    assert len(log.errors) == 1
    assert log.debugged == [("status 507 from sda", "tx1"), ("status 507 from sda", "tx2")]


def test_what_has_not_gone_away_is_told_again_after_a_while_with_how_often_it_came(errors, log, clock):
    for _ in range(4):
        errors.error("status 507 from sda")
    clock.advance(REPEAT_INTERVAL_S)
    errors.error("status 507 from sda", txid="tx5")
    assert log.errors[1:] == [("status 507 from sda; 3 more in the last 300 s", "tx5")]
    errors.error("status 507 from sda")
    assert len(log.errors) == 2


def test_what_came_back_later_is_told_as_the_first_time(errors, log, clock):
    errors.error("status 507 from sda")
    clock.advance(REPEAT_INTERVAL_S)
    errors.error("status 507 from sda")
    assert log.errors == [("status 507 from sda", None)] * 2


def test_of_too_many_reasons_the_oldest_is_forgotten(errors, log):
    for number in range(ERRORS_MAX + 1):
        errors.error(f"reason {number}")
    errors.error("reason 1")
    errors.error("reason 0")
    assert [text for text, _ in log.errors[ERRORS_MAX:]] == [f"reason {ERRORS_MAX}", "reason 0"]
