"""How long a green thread let others run."""

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.platform.waiting import waited_s, yielding


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
