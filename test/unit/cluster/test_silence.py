"""Who answers nobody, and when to ask it again."""

import pytest

from swift.base.clock import ManualClock
from swift.cluster.silence import DOUBT_S, SERVERS_MAX, SILENCE_S, Question, Silence

PATIENCE_S = 10.0


@pytest.fixture
def clock():
    # Just booted: what happened "long ago" cannot be told from "never" by the time alone.
    return ManualClock(5.0)


@pytest.fixture
def silence(clock):
    return Silence(clock, PATIENCE_S)


def ask(silence, clock, server="a", question=None):
    silence.asked(server, clock.monotonic(), question)


def test_who_answers_nobody_is_silent_before_anything_has_timed_out(silence, clock):
    assert not silence
    ask(silence, clock)
    clock.advance(SILENCE_S - 0.1)
    assert silence and not silence.is_silent("a")
    clock.advance(0.1)
    assert silence.is_silent("a") and not silence.is_silent("b")
    assert "a" in repr(silence)


def test_who_answers_now_and_then_is_busy_and_not_silent(silence, clock):
    for _ in range(20):
        ask(silence, clock)
        clock.advance(SILENCE_S / 2)
        ask(silence, clock)
        silence.heard("a")
        assert not silence.is_silent("a")


def test_what_was_asked_longer_ago_than_anybody_waits_proves_nothing(silence, clock):
    # Its client may have gone, and nobody has asked since.
    ask(silence, clock)
    clock.advance(PATIENCE_S + 0.1)
    assert not silence.is_silent("a")
    ask(silence, clock)
    clock.advance(SILENCE_S / 2)
    assert not silence.is_silent("a"), "its silence begins anew"


def test_a_probe_is_due_before_the_silence_begins_and_then_now_and_then(silence, clock):
    assert not silence.is_due("a")
    ask(silence, clock)
    assert not silence.is_due("a")
    clock.advance(DOUBT_S)
    due = 0
    for _ in range(400):
        due += silence.is_due("a")
        clock.advance(0.1)
    assert due == 40 / (PATIENCE_S / 2)
    assert silence.is_silent("a")


def test_a_probe_asks_what_was_asked_first(silence, clock):
    assert silence.question("a") is None
    for number in range(3):
        ask(silence, clock, question=Question(f"/d/{number}/a", "0"))
    assert silence.question("a") == Question("/d/0/a", "0")


def test_what_is_remembered_has_a_bound(silence, clock):
    for number in range(SERVERS_MAX + 1):
        ask(silence, clock, str(number))
    clock.advance(SILENCE_S)
    assert silence.is_silent(str(SERVERS_MAX)) and not silence.is_silent("0")
