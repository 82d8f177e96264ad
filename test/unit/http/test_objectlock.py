"""Locks as values: what they read from, and what may take their place."""

import pytest

from swift.http.objectlock import (
    COMPLIANCE,
    GOVERNANCE,
    MAY_BYPASS,
    MAY_RELEASE,
    MAY_WITHDRAW,
    NO_LOCK,
    DefaultRetention,
    ObjectLock,
    parse_authority,
    parse_default_retention,
    parse_lock,
)

NOW = 1000
G, C, HELD = ObjectLock(GOVERNANCE, 2000), ObjectLock(COMPLIANCE, 2000), ObjectLock(has_legal_hold=True)
OVER = ObjectLock(COMPLIANCE, 999)
NONE, BYPASS, RELEASE, WITHDRAW = (
    parse_authority(text) for text in (None, MAY_BYPASS, MAY_RELEASE, MAY_WITHDRAW)
)


@pytest.mark.parametrize("lock", [G, C, HELD, OVER, NO_LOCK, G._replace(has_legal_hold=True)])
def test_a_lock_reads_back(lock):
    assert parse_lock(str(lock)) == lock


@pytest.mark.parametrize(
    "text", ["x", "GOVERNANCE", "GOVERNANCE soon ON", "FREE 1 OFF", "- 1 MAYBE", "- -1 ON"]
)
def test_what_nobody_understands_is_held(text):
    assert parse_lock(text).has_legal_hold


def test_nothing_is_no_lock():
    assert parse_lock(None) == parse_lock("") == NO_LOCK


@pytest.mark.parametrize(
    ("lock", "authority", "expected"),
    [
        (G, NONE, False),
        (G, BYPASS, True),
        (G, RELEASE, False),
        (C, NONE, False),
        (C, BYPASS, False),
        (C, WITHDRAW, True),
        (HELD, NONE, False),
        (HELD, BYPASS, False),
        (HELD, RELEASE, False),
        (G._replace(has_legal_hold=True), BYPASS, False),
        (OVER, NONE, True),
        (OVER._replace(has_legal_hold=True), NONE, False),
        (NO_LOCK, NONE, True),
    ],
)
def test_what_may_be_removed(lock, authority, expected):
    assert lock.allows_removal(authority, NOW) is expected


@pytest.mark.parametrize(
    ("lock", "new", "authority", "expected"),
    [
        (NO_LOCK, C, NONE, True),
        (G, G._replace(until_s=3000), NONE, True),
        (G, C, NONE, True),
        (G, G._replace(until_s=1999), NONE, False),
        (G, NO_LOCK, NONE, False),
        (G, NO_LOCK, BYPASS, True),
        (C, C._replace(until_s=2001), NONE, True),
        (C, C._replace(until_s=1999), BYPASS, False),
        (C, G._replace(until_s=9000), BYPASS, False),
        (C, NO_LOCK, BYPASS, False),
        (HELD, NO_LOCK, NONE, False),
        (HELD, NO_LOCK, BYPASS, False),
        (HELD, NO_LOCK, RELEASE, True),
        (G._replace(has_legal_hold=True), G, RELEASE, True),
        (G._replace(has_legal_hold=True), NO_LOCK, RELEASE, False),
        (OVER, NO_LOCK, NONE, True),
        (G, G._replace(has_legal_hold=True), NONE, True),
    ],
)
def test_what_may_take_the_place_of_a_lock(lock, new, authority, expected):
    assert lock.allows(new, authority, NOW) is expected


def test_a_default_gives_days_or_years():
    for default, days in (
        (DefaultRetention(GOVERNANCE, 30, "Days"), 30),
        (DefaultRetention(COMPLIANCE, 2, "Years"), 730),
    ):
        assert parse_default_retention(str(default)) == default
        assert default.make_lock(1000.5) == (default.mode, 1000 + days * 86400, False)


@pytest.mark.parametrize("text", [None, "", "on", "GOVERNANCE x Days", "FREE 1 Days", "GOVERNANCE 1 Weeks"])
def test_other_texts_are_no_default(text):
    assert parse_default_retention(text) is None
