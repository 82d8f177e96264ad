"""Waiting ends early when a daemon is told to stop."""

import os
import signal

from swift.runtime.stop import SLICE_S, StopRequest
from test.support.daemons import VirtualTime


def test_waiting_takes_its_time():
    clock = VirtualTime()
    assert StopRequest(clock, clock.sleep).wait(12.3) is False
    assert abs(clock.slept - 12.3) < 1e-6


def test_a_request_ends_the_wait_within_a_slice():
    clock = VirtualTime()
    stop = StopRequest(clock, lambda seconds: (clock.sleep(seconds), clock.slept > 5 and stop.request()))
    assert stop.wait(3600) is True
    assert clock.slept <= 5 + 2 * SLICE_S


def test_sigterm_requests_and_sighup_does_nothing():
    before = {sig: signal.getsignal(sig) for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        stop = StopRequest()
        stop.on_signals()
        os.kill(os.getpid(), signal.SIGHUP)
        assert not stop.requested
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)
