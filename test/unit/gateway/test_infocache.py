"""The local cache believes for a moment, and never longer than any worker's next write."""

import os

import pytest

from swift.gateway.infocache import LocalCache


class Inner:
    """A memcached that counts how often it is asked."""

    def __init__(self):
        self.values = {}
        self.asked = 0

    def get(self, key, default=None, *, raise_on_error=False):
        self.asked += 1
        return self.values.get(key, default)

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        self.values[key] = value

    def set_multi(self, values, server_key, *, ttl_s=0):
        self.values.update(values)

    def get_multi(self, keys, server_key):
        return [self.values.get(key) for key in keys]

    def delete(self, key, *, server_key=None):
        self.values.pop(key, None)

    def incr(self, key, delta=1, *, ttl_s=0):
        self.values[key] = self.values.get(key, 0) + delta
        return self.values[key]

    def decr(self, key, delta=1, *, ttl_s=0):
        return self.incr(key, -delta)


@pytest.fixture
def inner():
    return Inner()


@pytest.fixture
def cache(inner):
    return LocalCache(inner, ttl_s=60)


def test_a_value_is_asked_for_once(cache, inner):
    inner.values["k"] = 1
    assert [cache.get("k") for _ in range(5)] == [1] * 5
    assert inner.asked == 1


def test_misses_are_asked_for_every_time(cache, inner):
    assert cache.get("k", "none") == "none"
    inner.values["k"] = 1
    assert cache.get("k") == 1


def test_own_writes_are_seen_at_once(cache):
    cache.set("k", 1)
    assert cache.get("k") == 1
    cache.set("k", 2)
    assert cache.get("k") == 2
    cache.delete("k")
    assert cache.get("k") is None
    cache.set_multi({"k": 3}, "server")
    assert cache.get("k") == 3


def test_others_writes_are_seen_after_the_time(inner):
    cache = LocalCache(inner, ttl_s=0)
    inner.values["k"] = 1
    assert cache.get("k") == 1
    inner.values["k"] = 2
    assert cache.get("k") == 2


def test_counters_are_never_held(cache, inner):
    assert [cache.incr("n"), cache.incr("n", 2), cache.decr("n")] == [1, 3, 2]


@pytest.mark.process
def test_a_write_of_another_worker_is_seen_at_once(inner):
    """Parent and child share the table of generations, not the held values."""
    cache = LocalCache(inner, ttl_s=60)
    inner.values["k"] = "old"
    assert cache.get("k") == "old"
    pid = os.fork()
    if pid == 0:
        cache.set("k", "new")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    # The shared memcached has the new value too; here it is set by hand.
    inner.values["k"] = "new"
    assert cache.get("k") == "new"
    assert cache.get("untouched") is None


def test_a_value_that_changed_while_it_was_fetched_is_not_believed(inner):
    cache = LocalCache(inner, ttl_s=60)
    inner.values["k"] = "old"
    fetch = inner.get

    def get_while_another_worker_writes(key, default=None, *, raise_on_error=False):
        value = fetch(key, default)
        inner.get = fetch
        cache.set("k", "new")
        return value

    inner.get = get_while_another_worker_writes
    cache.get("k")
    assert cache.get("k") == "new"


def test_the_layer_stays_bounded(inner, cache):
    from swift.gateway.infocache import ENTRIES_MAX

    for n in range(ENTRIES_MAX + 10):
        inner.values[str(n)] = n
        cache.get(str(n))
    assert cache.get("5") == 5
    assert int(repr(cache).split()[1]) <= ENTRIES_MAX
