"""Reservations are one list for all proxies (doc/explanation/admission.md)."""

import pytest

from swift.cluster.memcache import MemcacheError
from swift.middleware.admission.reservations import SharedReservations
from swift.middleware.admission.tickets import ReservedShare, unreserved_bandwidth
from test.support.filters import SharedCache


def wish(number, rate=40.0, ends=100.0):
    def decide(rivals):
        free = unreserved_bandwidth(rivals, promisable=100.0, begins=0.0, ends=ends)
        return ReservedShare(f"r{number}", "a", "read", rate, 0.0, ends) if rate <= free else None

    return decide


def ledger(slept=None):
    return SharedReservations([].append if slept is None else slept.append)


def test_two_proxies_promise_no_more_than_one():
    cache, proxies = SharedCache(), [ledger(), ledger()]
    made = [proxies[n % 2].reserve(cache, wish(n), 1.0) for n in range(6)]
    assert [m is not None for m in made] == [True, True, False, False, False, False]
    assert "admission/reservations/lock" not in cache.values


def test_what_is_over_makes_room():
    cache, proxy = SharedCache(), ledger()
    assert proxy.reserve(cache, wish(1, 100.0, ends=50.0), 1.0)
    assert not proxy.reserve(cache, wish(2, 100.0), 49.0)
    assert proxy.reserve(cache, wish(3, 100.0), 50.0)


def test_a_memcached_that_forgot_is_told_again():
    cache, one, other = SharedCache(), ledger(), ledger()
    one.reserve(cache, wish(1, 100.0), 1.0)
    cache.values.clear()
    one.synchronize(cache, 2.0)
    assert not other.reserve(cache, wish(2, 100.0), 2.0)
    assert set(other.unexpired(2.0)) == {"r1"}


def test_without_memcached_nothing_is_reserved():
    cache, proxy = SharedCache(), ledger()
    cache.is_away = True
    with pytest.raises(MemcacheError):
        proxy.reserve(cache, wish(1), 1.0)


def test_a_lock_that_others_hold_is_waited_for_but_not_for_ever():
    cache, slept = SharedCache(), []
    cache.values["admission/reservations/lock"] = 1
    with pytest.raises(MemcacheError, match="reserve all the time"):
        ledger(slept).reserve(cache, wish(1), 1.0)
    assert 1.0 < sum(slept) < 5.0


def test_rubbish_in_the_list_is_left_out():
    cache, proxy = SharedCache(), ledger()
    cache.values["admission/reservations"] = ["x", {"id": 1}, None]
    assert proxy.reserve(cache, wish(1), 1.0)
    cache.values["admission/reservations"] = "no list"
    proxy.synchronize(cache, 1.0)
    assert len(cache.values["admission/reservations"]) == 1
