"""Reservations are answered at once: a ticket, or what is free and from when there would be more."""

import json

import pytest

from swift.http.response import error_response
from test.support.filters import SharedCache, reserve, reserving


def test_a_reservation_is_answered_with_a_ticket_or_refused_at_once():
    bench = reserving()
    made = reserve(bench)
    assert made.status == 201
    said = json.loads(made.body)
    assert (said["account"], said["direction"], said["bytes_per_second"]) == ("AUTH_a", "read", 500000)
    assert said["ends"] - said["begins"] == 60
    refused = reserve(bench)
    assert refused.status == 503
    assert refused.body == b"Only 300 kB/s can be reserved for that time.\n"
    assert int(refused.headers["retry-after"]) == 60
    assert reserve(bench, begins=bench.clock.time() + 60).status == 201, "then the first one is over"
    assert reserve(bench, bytes_per_second="300kB").status == 201
    assert not bench.seen, "the account is not asked"


def test_two_proxies_promise_together_what_one_may():
    cache = SharedCache()
    one, other = reserving(cache), reserving(cache)
    assert reserve(one).status == 201
    assert reserve(other).status == 503


@pytest.mark.parametrize(
    "params",
    [
        {"direction": "up"},
        {"duration": "x"},
        {"duration": 0},
        {"duration": 1e9},
        {"bytes_per_second": "many"},
        {"bytes_per_second": -1},
        {"begins": "nan"},
        {"begins": 9e9},
    ],
)
def test_a_bad_wish_is_400(params):
    answer = reserve(reserving(), **params)
    assert answer.status == 400
    assert next(iter(params)).encode() in answer.body


def test_who_may_not_change_the_account_reserves_nothing():
    env = {"swift.authorize": lambda request: error_response(403)}
    assert reserve(reserving(), env=env).status == 403


def test_what_cannot_be_known_is_not_promised():
    cache = SharedCache()
    bench = reserving(cache)
    cache.is_away = True
    assert reserve(bench).status == 503
    assert reserve(reserving(capacity_bytes_per_second="learn")).status == 503
    assert reserve(reserving(capacity_bytes_per_second=0)).status == 503
    assert reserve(reserving(ticket_key="")).status == 501


def test_writes_take_what_they_cost():
    bench = reserving(write_cost=3)
    assert reserve(bench, direction="write", bytes_per_second=300000).status == 503
    made = json.loads(reserve(bench, direction="write", bytes_per_second=200000).body)
    assert made["bytes_per_second"] == 200000
