"""What proxies and nodes tell each other of promises; nonsense is never a promise to us."""

import pytest

from swift.base.timestamp import ZERO, Timestamp
from swift.wire import reservation
from swift.wire.reservation import HELD, OFFER, PREDECESSOR


@pytest.mark.parametrize("text", ["", "no", "Yes", "yes ", "true", Timestamp(5).internal])
def test_only_a_plain_yes_is_one(text):
    assert not reservation.is_held({HELD: text})
    assert not reservation.is_offered({OFFER: text})
    assert not reservation.is_held({}) and not reservation.is_offered({})


def test_what_a_node_tells_is_heard():
    to_us = reservation.failure_headers(None, Timestamp(3))
    assert reservation.is_held(to_us)
    assert reservation.parse_predecessor(to_us) == Timestamp(3)
    to_another = reservation.failure_headers(Timestamp(7, offset=2))
    assert not reservation.is_held(to_another)
    assert reservation.parse_holder(to_another) == Timestamp(7, offset=2)
    assert reservation.parse_predecessor(to_another) == ZERO


@pytest.mark.parametrize("text", ["nonsense", "yes", "", "-1", "nan", "1e99", "5_zz", "é", "9" * 5000])
def test_a_holder_that_nobody_can_read_is_an_unknown_one(text):
    assert reservation.parse_holder({HELD: text}) == ZERO


@pytest.mark.parametrize(
    "headers", [{}, *({PREDECESSOR: text} for text in ("", "x", "-1", "inf", "9" * 5000))]
)
def test_a_node_that_does_not_say_by_what_it_judged_said_nothing(headers):
    assert reservation.parse_predecessor(headers) is None


def test_a_promise_is_forgotten_only_after_nobody_commits_on_it_any_more():
    assert reservation.FORGOTTEN_AFTER_S > reservation.LEASE_S
