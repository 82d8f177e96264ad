"""What a receiver wants, as a table (spec: replication.md §3.2)."""

from __future__ import annotations

import pytest

from swift.base.timestamp import Timestamp
from swift.obj.ssync.decide import LocalVersion, completes_commit, local_version, parts_to_request
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, ObjectState
from swift.wire.ssync import Offer

H = "f" * 32


def t(second):
    return Timestamp(second)


@pytest.mark.parametrize(
    ("offer", "local", "expected"),
    [
        (Offer.of(H, t(5)), None, "dm"),
        (Offer.of(H, t(5)), LocalVersion(t(5), t(5), t(5)), ""),
        (Offer.of(H, t(6)), LocalVersion(t(5), t(5), t(5)), "dm"),
        (Offer.of(H, t(6)), LocalVersion(t(5), t(8), t(5)), "d"),
        (Offer.of(H, t(4)), LocalVersion(t(5), t(5), t(5)), ""),
        (Offer.of(H, t(5), t(7)), LocalVersion(t(5), t(6), t(5)), "m"),
        (Offer.of(H, t(5), t(7)), LocalVersion(t(5), t(7), t(5)), ""),
        (Offer.of(H, t(5), t(7), t(6)), LocalVersion(t(5), t(8), t(5)), "m"),
        (Offer.of(H, t(5), t(7), t(6)), LocalVersion(t(5), t(8), t(6)), ""),
        (Offer.of(H, t(4), t(7), t(4)), LocalVersion(t(5), t(8), t(5)), ""),
        (Offer.of(H, t(6)), LocalVersion(t(5)), "d"),
        (Offer.of(H, t(6), t(7)), LocalVersion(t(5)), "dm"),
        (Offer.of(H, t(6), t(8), t(7)), LocalVersion(t(5)), "dm"),
        (Offer.of(H, t(4), t(9), t(9)), LocalVersion(t(5)), ""),
    ],
)
def test_what_is_newer_is_wanted(offer, local, expected):
    want = parts_to_request(offer, local)
    text = "" if want is None else want.encode().split()[1]
    assert text == expected


def test_expired_objects_are_there_and_tombstones_have_no_metadata():
    state = ObjectState(EXPIRED, {}, t(7), t(5), t(6))
    assert local_version(state) == LocalVersion(t(5), t(7), t(6))
    assert local_version(ObjectState(DELETED, {}, t(7))) == LocalVersion(t(7))
    assert local_version(ObjectState(ABSENT)) is None


def test_an_uncommitted_archive_of_the_offered_time_and_index_can_be_completed():
    state = ObjectState(LIVE, fragments=[(t(6), [1, 2]), (t(5), [2])], durable_timestamp=t(5))
    assert completes_commit(Offer.of(H, t(6)), state, 2)
    assert not completes_commit(Offer.of(H, t(6)), state, 3)
    assert not completes_commit(Offer.of(H, t(5)), state, 2)
    assert not completes_commit(Offer.of(H, t(7)), state, 2)
