"""Open brokers: bounded, shared, never closed under somebody's hands."""

from swift.db.cache import BrokerCache, Held
from swift.db.files import DatabasePath
from swift.green import Event, sleep, spawn


class FakeBroker:
    def __init__(self, place, *names):
        self.place = place
        self.holders = 0
        self.works = False
        self.closed = False
        self.weight = 0

    @property
    def is_busy(self):
        return self.works or self.holders > 0

    def relax(self):
        self.weight = 0

    def close(self):
        self.closed = True


def place(n):
    return DatabasePath("/d", "containers", "1", f"{n:032x}")


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
    gone, other = cache.get(place(1)), cache.get(DatabasePath("/e", "containers", "1", f"{2:032x}"))
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


def use(cache, n, weight):
    """A request that leaves a broker so heavy."""
    with Held(cache):
        broker = cache.get(place(n))
        broker.weight = weight
    return broker


def test_what_all_of_them_weigh_is_bounded_and_the_least_recently_used_ones_give_first():
    cache = BrokerCache(FakeBroker, weight_max=100)
    used = [use(cache, n, 40) for n in range(6)]
    assert [broker.weight for broker in used] == [0, 0, 0, 0, 40, 40]
    assert cache.weight == 80 and len(cache) == 6
    assert not any(broker.closed for broker in used)


def test_one_that_is_in_use_keeps_what_makes_it_quick():
    cache = BrokerCache(FakeBroker, weight_max=100)
    first = use(cache, 1, 90)
    first.works = True
    use(cache, 2, 90)
    assert first.weight == 90
    first.works = False
    use(cache, 3, 5)
    assert first.weight == 0 and cache.weight == 95


def test_what_is_closed_weighs_nothing():
    cache = BrokerCache(FakeBroker, open_max=1)
    use(cache, 1, 40)
    use(cache, 2, 30)
    assert cache.weight == 30
    cache.forget(place(2))
    assert cache.weight == 0
