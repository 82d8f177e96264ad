"""Rates by the size of containers, and the counters that all proxies share (middleware.md §13)."""

import pytest

from swift.base.errors import ConfigError
from swift.cluster.memcache import MemcacheError
from swift.middleware.ratelimit.rates import RatelimitClock, RatesBySize, WaitTooLong
from test.support.filters import Counters

SIZES = RatesBySize({200: 5.0, 100: 10.0})
NOW_S = 1_000_000.0
KEY = "ratelimit/a"


def pace(buffer_s=0.0, sleep_max_s=60.0):
    return RatelimitClock(1000, buffer_s, sleep_max_s)


@pytest.mark.parametrize(
    ("objects", "rate"), [(0, None), (99, None), (100, 10.0), (150, 7.5), (200, 5.0), (10**9, 5.0)]
)
def test_rates_are_linear_between_sizes(objects, rate):
    assert SIZES.get_rate(objects) == rate


def test_one_size_is_for_all_that_are_larger():
    assert [RatesBySize({10: 3.0}).get_rate(n) for n in (9, 10, 10**12)] == [None, 3.0, 3.0]
    assert RatesBySize({}).get_rate(10**12) is None


def test_sizes_are_read_from_the_names_of_options():
    conf = {"r_100": "10", "r_20": "1.5", "r_": "x", "r_x": "x", "r_-1": "x", "r_\u0661": "x", "q_1": "x"}
    assert RatesBySize.parse(conf, "r_").points == [(20, 1.5), (100, 10.0)]


@pytest.mark.parametrize("value", ["x", "", "0", "-1", "inf", "nan"])
def test_a_rate_that_is_none_is_an_error_at_the_start(value):
    with pytest.raises(ConfigError, match="container_ratelimit_5"):
        RatesBySize.parse({"container_ratelimit_5": value}, "container_ratelimit_")


def test_who_comes_at_once_waits_for_the_turn_that_is_next():
    cache = Counters()
    assert [pace().advance(cache, KEY, 10.0, NOW_S) for _ in range(3)] == [0.0, 0.1, 0.2]
    assert pace().advance(cache, KEY, 10.0, NOW_S + 0.25) == pytest.approx(0.05)
    assert pace().advance(cache, "ratelimit/b", 10.0, NOW_S) == 0.0


def test_a_quiet_time_is_caught_up_to_the_buffer_only():
    cache = Counters()
    kept = pace(buffer_s=1.0)
    kept.advance(cache, KEY, 10.0, NOW_S)
    waits = [kept.advance(cache, KEY, 10.0, NOW_S + 1.0) for _ in range(11)]
    assert waits[:10] == [0.0] * 10 and waits[10] > 0
    assert [kept.advance(cache, KEY, 10.0, NOW_S + 100.0) for _ in range(2)] == [0.0, 0.1]


def test_who_is_refused_takes_nobodys_turn():
    cache = Counters()
    kept = pace(sleep_max_s=1.0)
    assert [kept.advance(cache, KEY, 1.0, NOW_S) for _ in range(2)] == [0.0, 1.0]
    before = dict(cache.values)
    for _ in range(3):
        with pytest.raises(WaitTooLong):
            kept.advance(cache, KEY, 1.0, NOW_S)
    assert cache.values == before


@pytest.mark.parametrize("rate", [1e-300, 1e-320])
def test_a_rate_of_next_to_nothing_lets_one_pass(rate):
    cache = Counters()
    assert pace().advance(cache, KEY, rate, NOW_S) == 0.0
    with pytest.raises(WaitTooLong):
        pace().advance(cache, KEY, rate, NOW_S)
    assert cache.values[KEY] < 2**63, "memcached counts no further"


def test_a_rate_that_is_faster_than_ticks_is_a_tick():
    cache = Counters()
    assert [pace().advance(cache, KEY, 1e300, NOW_S) for _ in range(3)] == [0.0, 0.001, 0.002]


def test_two_that_come_first_at_the_same_time_block_nobody():
    kept, seen = pace(buffer_s=5.0), set()

    class Racing(Counters):
        def set(self, key, value, **more):
            if key not in seen:
                seen.add(key)
                assert kept.advance(self, key, 10.0, NOW_S) == 0
            super().set(key, value, **more)

    cache = Racing()
    assert kept.advance(cache, KEY, 10.0, NOW_S) == 0
    assert kept.advance(cache, KEY, 10.0, NOW_S) < 1


def test_a_cache_that_is_away_is_told_as_such():
    cache = Counters()
    cache.broken = True
    with pytest.raises(MemcacheError):
        pace().advance(cache, KEY, 1.0, NOW_S)
