"""Open brokers: bounded, shared, never closed under somebody's hands."""

from swift.db.cache import BrokerCache, Held
from swift.db.files import DatabasePlace
from swift.green import Event, sleep, spawn


class FakeBroker:
    def __init__(self, place, *names):
        self.place = place
        self.holders = 0
        self.works = False
        self.closed = False

    @property
    def is_busy(self):
        return self.works or self.holders > 0

    def close(self):
        self.closed = True


def place(n):
    return DatabasePlace("/d", "containers", "1", f"{n:032x}")


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
    first.works = True
    cache.get(place(2))
    assert not first.closed
    assert cache.get(place(1)) is first


def test_forgetting_and_closing():
    cache = BrokerCache(FakeBroker)
    first, second = cache.get(place(1)), cache.get(place(2))
    cache.forget(place(1))
    cache.close()
    assert first.closed and second.closed and len(cache) == 0


def test_nothing_of_a_device_that_went_away_stays_open():
    cache = BrokerCache(FakeBroker)
    gone, other = cache.get(place(1)), cache.get(DatabasePlace("/e", "containers", "1", f"{2:032x}"))
    cache.forget_device("d")
    assert gone.closed and not other.closed and len(cache) == 1


def test_what_a_request_got_stays_open_until_it_ends():
    cache = BrokerCache(FakeBroker, open_max=1)
    others_ran = Event()

    def request():
        with Held(cache):
            first = cache.get(place(1))
            others_ran.wait()
            return first, first.closed

    waiting = spawn(request)
    sleep(0)
    assert len(cache) == 1
    others = [cache.get(place(n)) for n in range(2, 5)]
    others_ran.set()
    first, closed_too_early = waiting.wait()
    assert not closed_too_early
    assert first.holders == 0
    cache.get(place(9))
    assert first.closed and others[0].closed
    assert len(cache) == 1


def test_one_that_was_forgotten_in_use_is_closed_by_the_last_who_used_it():
    cache = BrokerCache(FakeBroker)
    with Held(cache):
        broker = cache.get(place(1))
        assert cache.peek(place(1)) is broker
        cache.forget(place(1))
        assert not broker.closed
    assert broker.closed
