"""A throttle keeps an even pace and never makes up for idle time."""

from swift.runtime.stop import StopRequest
from swift.runtime.throttle import Throttle
from test.support.daemons import VirtualTime


def make(per_second):
    clock = VirtualTime()
    return clock, Throttle(per_second, clock, StopRequest(clock, clock.sleep).wait)


def test_turns_come_at_the_rate():
    clock, throttle = make(50)
    for _ in range(501):
        throttle.wait_for_turn()
    assert abs(clock.slept - 10.0) < 0.01


def test_slow_work_counts_as_waiting():
    clock, throttle = make(10)
    for _ in range(100):
        throttle.wait_for_turn()
        clock.advance(0.05)
    assert abs(clock.slept - 99 * 0.05) < 0.01


def test_an_idle_time_is_not_made_up_for():
    clock, throttle = make(10)
    throttle.wait_for_turn()
    clock.advance(3600)
    times = []
    for _ in range(4):
        throttle.wait_for_turn()
        times.append(clock.monotonic())
    gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
    assert all(abs(gap - 0.1) < 1e-5 for gap in gaps)


def test_no_rate_means_no_waiting():
    clock, throttle = make(0)
    for _ in range(1000):
        throttle.wait_for_turn()
    assert clock.slept == 0
