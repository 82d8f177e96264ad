"""Which nodes are avoided, from which error on, and when they are tried again (proxy.md §7)."""

import pytest

from swift.base.clock import ManualClock
from swift.cluster.health import FIRST_PAUSE_S, ErrorLimiter
from swift.cluster.silence import SILENCE_S, Question
from swift.ring.device import Device

NODE, OTHER = (Device(n, 1, 1, "127.0.0.1", n, "127.0.0.1", n, "d", 1.0, "") for n in (1, 2))


class Statsd:
    def __init__(self):
        self.names = []

    def increment(self, name):
        self.names.append(name)


@pytest.fixture
def clock():
    # Just booted: what happened "long ago" cannot be told from "never" by the time alone.
    return ManualClock(5.0)


def limiter_of(clock, **options):
    return ErrorLimiter(clock, **{"limit": 2, "interval_s": 60.0, **options})


def avoid(limiter, *, slow=False):
    while not limiter.failed(NODE, slow=slow):
        pass


def test_as_many_errors_as_the_limit_are_forgiven_and_the_next_is_not(clock):
    limiter = limiter_of(clock)
    assert [limiter.failed(NODE) for _ in range(3)] == [False, False, True]
    assert limiter.is_limited(NODE)
    assert not limiter.is_limited(OTHER)


def test_errors_far_apart_do_not_add_up(clock):
    limiter = limiter_of(clock)
    for _ in range(5):
        assert not limiter.failed(NODE)
        clock.advance(60.0)
    for _ in range(2):
        assert not limiter.failed(NODE)
        clock.advance(59.9)
    assert limiter.failed(NODE)


def test_pauses_between_probes_double_up_to_the_interval(clock):
    limiter = limiter_of(clock, interval_s=5.0)
    avoid(limiter)
    pauses = []
    for _ in range(4):
        waited = 0.0
        while not limiter.admits(NODE):
            clock.advance(0.5)
            waited += 0.5
        pauses.append(waited)
        limiter.failed(NODE)
    assert pauses == [FIRST_PAUSE_S, 2.0, 4.0, 5.0]


def test_one_request_is_the_probe_and_its_success_ends_it(clock):
    limiter = limiter_of(clock)
    avoid(limiter)
    clock.advance(FIRST_PAUSE_S)
    assert [limiter.admits(NODE), limiter.admits(NODE)] == [True, False]
    limiter.succeeded(NODE)
    assert limiter.admits(NODE)
    assert not limiter.is_limited(NODE)


def test_a_probe_that_never_ends_is_followed_by_another(clock):
    limiter = limiter_of(clock)
    avoid(limiter)
    clock.advance(FIRST_PAUSE_S)
    assert limiter.admits(NODE)
    clock.advance(FIRST_PAUSE_S)
    assert limiter.admits(NODE)


def test_errors_of_requests_that_were_no_probe_lengthen_nothing(clock):
    limiter = limiter_of(clock)
    avoid(limiter)
    assert [limiter.failed(NODE) for _ in range(20)] == [False] * 20
    clock.advance(FIRST_PAUSE_S)
    assert limiter.admits(NODE)


def test_a_success_forgives_no_errors_that_were_not_enough(clock):
    limiter = limiter_of(clock)
    for _ in range(2):
        limiter.failed(NODE)
        limiter.succeeded(NODE)
    assert limiter.failed(NODE)


def test_a_507_is_avoided_for_the_whole_interval(clock):
    limiter = limiter_of(clock)
    limiter.limit(NODE)
    clock.advance(59.9)
    assert not limiter.admits(NODE)
    clock.advance(0.1)
    assert limiter.admits(NODE)


def test_the_last_error_says_whether_asking_may_cost_a_timeout(clock):
    limiter = limiter_of(clock)
    assert not limiter.is_slow(NODE)
    avoid(limiter, slow=True)
    assert limiter.is_slow(NODE)
    limiter.failed(NODE)
    assert not limiter.is_slow(NODE)


def test_metrics_count_what_begins_and_what_is_left_out(clock):
    limiter = limiter_of(clock, statsd=(statsd := Statsd()))
    avoid(limiter)
    limiter.admits(NODE)
    limiter.limit(OTHER)
    assert statsd.names == [f"error_limiter.{n}" for n in ("incremented_limit", "is_limited", "forced_limit")]


def test_what_it_knows_can_be_read(clock):
    limiter = limiter_of(clock)
    avoid(limiter)
    assert NODE.key in repr(limiter)


QUESTION = Question("/d/7/a", "0")


def asked_until_silent(limiter, clock):
    limiter.asked(NODE, clock.monotonic(), QUESTION)
    clock.advance(SILENCE_S)


def test_a_silent_node_is_left_alone_by_requests_of_clients_and_asked_in_the_background(clock):
    limiter, probes = limiter_of(clock, patience_s=10.0), []
    limiter.on_doubt = lambda node, question: probes.append((node, question))
    asked_until_silent(limiter, clock)
    for _ in range(200):
        assert not limiter.admits(NODE)
        assert limiter.admits(OTHER)
        clock.advance(0.1)
    assert probes == [(NODE, QUESTION)] * 4
    assert limiter.is_silent(NODE)
    assert limiter.is_slow(NODE), "asking it may cost a timeout"
    limiter.heard(NODE)
    assert limiter.admits(NODE) and not limiter.is_silent(NODE)


@pytest.mark.parametrize("sign", ["succeeded", "failed", "limit", "heard"])
def test_any_sign_of_life_ends_a_silence(clock, sign):
    limiter = limiter_of(clock)
    asked_until_silent(limiter, clock)
    getattr(limiter, sign)(NODE)
    assert limiter.admits(NODE) == (sign != "limit")
    assert not limiter.is_slow(NODE)


def test_a_timeout_is_no_sign_of_life(clock):
    limiter = limiter_of(clock)
    asked_until_silent(limiter, clock)
    limiter.failed(NODE, slow=True)
    assert not limiter.admits(NODE)


def test_an_avoided_node_that_is_silent_is_probed_by_no_client(clock):
    limiter = limiter_of(clock)
    avoid(limiter, slow=True)
    clock.advance(FIRST_PAUSE_S)
    asked_until_silent(limiter, clock)
    assert not limiter.admits(NODE)
    limiter.heard(NODE)
    assert limiter.admits(NODE)
