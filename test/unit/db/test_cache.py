"""Open brokers: bounded, shared, never closed under somebody's hands."""

from swift.db.cache import BrokerCache
from swift.db.files import Place


class FakeBroker:
    def __init__(self, place, *names):
        self.place = place
        self.is_busy = False
        self.closed = False

    def close(self):
        self.closed = True


def place(n):
    return Place("/d", "containers", "1", f"{n:032x}")


def test_everybody_gets_the_same_broker():
    cache = BrokerCache(FakeBroker)
    assert cache.get(place(1), "a") is cache.get(place(1), "a")


def test_the_least_recently_used_one_is_closed():
    cache = BrokerCache(FakeBroker, open_max=2)
    first, second = cache.get(place(1)), cache.get(place(2))
    cache.get(place(1))
    cache.get(place(3))
    assert second.closed and not first.closed
    assert len(cache) == 2


def test_a_busy_one_is_spared():
    cache = BrokerCache(FakeBroker, open_max=1)
    first = cache.get(place(1))
    first.is_busy = True
    cache.get(place(2))
    assert not first.closed
    assert cache.get(place(1)) is first


def test_forgetting_and_closing():
    cache = BrokerCache(FakeBroker)
    first, second = cache.get(place(1)), cache.get(place(2))
    cache.forget(place(1))
    cache.close()
    assert first.closed and second.closed and len(cache) == 0
