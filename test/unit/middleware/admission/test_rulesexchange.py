"""Rules given to one proxy reach all, and a memcached that lost them gets them back."""

import pytest

from swift.middleware.admission.rulesexchange import RULES_BYTES_MAX, RulesExchange, RulesUpdate
from test.support.sim import MemoryCache

OLD, NEW = RulesUpdate(1, "old"), RulesUpdate(2, "new")


def test_what_one_process_announces_another_hears():
    cache, one, other = MemoryCache(), RulesExchange(), RulesExchange()
    one.publish(cache, OLD)
    other.receive(cache)
    assert other.newest == OLD


def test_the_newest_wins_whoever_tells_it_last():
    cache, one, other = MemoryCache(), RulesExchange(), RulesExchange()
    one.publish(cache, NEW)
    other.publish(cache, OLD)
    one.receive(cache)
    assert one.newest == NEW
    other.receive(cache)
    assert other.newest == NEW


def test_what_was_lost_is_brought_back():
    cache, one = MemoryCache(), RulesExchange()
    one.publish(cache, NEW)
    cache.values.clear()
    one.receive(cache)
    later = RulesExchange()
    later.receive(cache)
    assert later.newest == NEW


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        [1, "text"],
        {},
        {"at_ns": "1", "text": "x"},
        {"at_ns": 0, "text": "x"},
        {"at_ns": 1 << 63, "text": "x"},
        {"at_ns": 1, "text": b"x"},
        {"at_ns": 1, "text": "x" * (RULES_BYTES_MAX + 1)},
    ],
)
def test_what_is_no_announcement_is_none(value):
    assert RulesUpdate.of(value) is None
    cache, one = MemoryCache(), RulesExchange()
    cache.values["admission/rules"] = value
    one.receive(cache)
    assert one.newest is None
