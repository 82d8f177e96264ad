"""Rules given to one proxy reach all, and a memcached that lost them gets them back."""

import pytest

from swift.middleware.admission.announced import RULES_BYTES_MAX, Announcement, Announcements
from test.support.sim import MemoryCache

OLD, NEW = Announcement(1, "old"), Announcement(2, "new")


def test_what_one_process_announces_another_hears():
    cache, one, other = MemoryCache(), Announcements(), Announcements()
    one.announce(cache, OLD)
    other.receive(cache)
    assert other.newest == OLD


def test_the_newest_wins_whoever_tells_it_last():
    cache, one, other = MemoryCache(), Announcements(), Announcements()
    one.announce(cache, NEW)
    other.announce(cache, OLD)
    one.receive(cache)
    assert one.newest == NEW
    other.receive(cache)
    assert other.newest == NEW


def test_what_was_lost_is_brought_back():
    cache, one = MemoryCache(), Announcements()
    one.announce(cache, NEW)
    cache.values.clear()
    one.receive(cache)
    later = Announcements()
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
    assert Announcement.of(value) is None
    cache, one = MemoryCache(), Announcements()
    cache.values["admission/rules"] = value
    one.receive(cache)
    assert one.newest is None
