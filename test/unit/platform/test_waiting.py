"""How long a green thread let others run."""

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.platform.waiting import (
    WouldBlock,
    allow_blocking,
    before_blocking,
    call_without_blocking,
    must_not_block,
    waited_s,
    yielding,
)


def test_what_happens_inside_is_waiting():
    clock, before = ManualClock(), waited_s()
    with yielding(clock.monotonic):
        clock.advance(2)
    clock.advance(5)
    with yielding(clock.monotonic):
        clock.advance(0.5)
    assert waited_s() - before == pytest.approx(2.5)


def test_an_error_ends_the_waiting_too():
    clock, before = ManualClock(), waited_s()
    with pytest.raises(ZeroDivisionError), yielding(clock.monotonic):
        clock.advance(1)
        raise ZeroDivisionError
    assert waited_s() - before == pytest.approx(1)


def test_each_green_thread_counts_for_itself():
    before = waited_s()

    def other():
        clock = ManualClock()
        with yielding(clock.monotonic):
            clock.advance(100)

    green.spawn(other).wait()
    assert waited_s() == before


def test_a_call_that_must_not_block_ends_before_it_would():
    with pytest.raises(WouldBlock):
        call_without_blocking(before_blocking)
    assert not must_not_block()
    before_blocking()


def test_a_call_that_changed_something_may_block():
    def work():
        allow_blocking()
        before_blocking()
        return must_not_block()

    assert call_without_blocking(work) is False


def test_another_green_thread_may_block_meanwhile():
    def work():
        return green.spawn(must_not_block).wait(), must_not_block()

    assert call_without_blocking(work) == (False, True)
