"""Rates of devices are remembered for a while, and not for ever (doc/explanation/striping.md)."""

from types import SimpleNamespace

import pytest

from swift.base.clock import ManualClock
from swift.proxy.obj.read.plan import BYTES_MIN, HALF_LIFE_S, MAX_AGE_S, TransferRates

MB = 1_000_000


def node(number):
    return SimpleNamespace(id=number, key=f"10.0.0.{number}:6200/sdb")


A, B, C, D = map(node, range(4))


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def rates(clock):
    return TransferRates(clock)


def test_what_a_device_brought_is_known_until_it_is_too_old(rates, clock):
    assert rates.rate_of(A) is None
    rates.record(A, 20 * MB, 1.0)
    clock.advance(MAX_AGE_S)
    assert rates.rate_of(A) == 20 * MB
    clock.advance(0.1)
    assert rates.rate_of(A) is None


def test_the_older_a_rate_the_less_it_counts_against_a_new_one(rates, clock):
    for key in (A, B, C):
        rates.record(key, 100 * MB, 1.0)
    rates.record(A, 10 * MB, 1.0)
    clock.advance(HALF_LIFE_S)
    rates.record(B, 10 * MB, 1.0)
    clock.advance(MAX_AGE_S)
    rates.record(C, 10 * MB, 1.0)
    assert rates.rate_of(C) == 10 * MB
    clock.advance(-MAX_AGE_S)
    assert 10 * MB < rates.rate_of(B) < rates.rate_of(A) < 100 * MB


@pytest.mark.parametrize(("size", "seconds"), [(BYTES_MIN - 1, 1.0), (MB, 0.0), (MB, -1.0)])
def test_what_says_nothing_is_not_remembered(rates, size, seconds):
    rates.record(A, size, seconds)
    assert rates.rate_of(A) is None


def test_devices_that_were_heard_of_longest_ago_are_forgotten(clock):
    rates = TransferRates(clock, devices_max=2)
    for each in (A, B, A, C):
        rates.record(each, MB, 1.0)
    assert [rates.rate_of(each) for each in (A, B, C)] == [MB, None, MB]


def test_much_slower_ones_come_last_and_the_order_of_others_stays(rates):
    for each, mb in ((A, 5), (B, 19), (C, 30)):
        rates.record(each, mb * MB, 1.0)
    assert rates.slow_last([A, B, C, D]) == [B, C, D, A]
    assert rates.slow_last([A, D]) == [A, D]
    assert rates.fastest_first([A, B, C, D]) == [D, C, B, A]
