"""Where disk calls run: on the loop while it is quick and nobody else can suffer."""

import threading

import pytest

from swift.platform.waiting import yielding
from swift.runtime.diskcalls import (
    PENALTY_S,
    STALL_S,
    DiskThreadPools,
    InlineCalls,
    MemoryCalls,
)


def lets_others_run(watch, seconds):
    with yielding(lambda: watch.now):
        watch.takes(seconds)


class Watch:
    """A clock that calls move on."""

    def __init__(self):
        self.now = 100.0
        self.queued = 0.0

    def __call__(self):
        return self.now

    def waits_for_a_cpu(self, seconds):
        self.now += seconds
        self.queued += seconds

    def takes(self, seconds):
        self.now += seconds


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture
def threaded():
    return []


@pytest.fixture
def calls(watch, threaded):
    def threads(function, *args):
        threaded.append(args)
        return function(*args)

    return InlineCalls(threads, watch, lambda: watch.queued)


def test_a_quick_device_is_called_where_the_caller_is(calls, watch, threaded):
    for _ in range(1000):
        calls(watch.takes, InlineCalls.average_max_s / 2)
    assert threaded == []


def test_waiting_for_others_is_not_the_devices_fault(calls, watch, threaded):
    calls(lets_others_run, watch, STALL_S * 10)
    calls(watch.takes, 0.001)
    assert threaded == []


def test_a_second_stall_moves_the_device_to_threads_until_the_penalty_is_over(calls, watch, threaded):
    calls(watch.takes, STALL_S * 1.1)
    calls(watch.takes, STALL_S * 1.1)
    assert threaded == []
    calls(watch.takes, 0.001)
    assert threaded == [(0.001,)]
    watch.takes(PENALTY_S)
    calls(watch.takes, 0.001)
    assert len(threaded) == 1


def test_stalls_far_apart_are_forgiven(calls, watch, threaded):
    for _ in range(3):
        calls(watch.takes, STALL_S * 1.1)
        watch.takes(PENALTY_S)
    calls(watch.takes, 0.001)
    assert threaded == []


def test_the_kernel_is_asked_about_the_cpu_only_after_a_slow_call(watch):
    asked = []
    calls = InlineCalls(lambda function, *args: function(*args), watch, lambda: asked.append(1) or 0.0)
    for _ in range(100):
        calls(watch.takes, InlineCalls.average_max_s / 2)
    assert not asked
    calls(watch.takes, STALL_S * 1.1)
    calls(watch.takes, InlineCalls.average_max_s / 2)
    assert asked


def test_a_device_that_is_slow_on_average_moves_to_threads(calls, watch, threaded):
    for _ in range(200):
        calls(watch.takes, InlineCalls.average_max_s * 2)
    assert threaded


def test_one_slow_call_among_quick_ones_is_forgiven(calls, watch, threaded):
    for _ in range(10):
        calls(watch.takes, InlineCalls.average_max_s * 5)
        for _ in range(100):
            calls(watch.takes, InlineCalls.average_max_s / 10)
    assert threaded == []


def test_a_call_that_fails_slowly_counts_as_slow_and_raises(calls, watch, threaded):
    def fail(seconds):
        watch.takes(seconds)
        raise OSError("gone")

    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            calls(fail, STALL_S * 2)
    with pytest.raises(OSError, match="gone"):
        calls(fail, 0.0)
    assert threaded == [(0.0,)]


def test_a_busy_machine_does_not_make_a_quick_device_slow(calls, watch, threaded):
    for _ in range(200):
        calls(watch.waits_for_a_cpu, STALL_S * 2)
    assert threaded == []


def test_the_only_device_of_a_server_is_called_on_the_loop():
    pools = DiskThreadPools(2, quick=True)
    assert pools.run("sdb1")(threading.get_ident) == threading.get_ident()


def test_a_second_device_moves_both_to_threads():
    pools = DiskThreadPools(2, quick=True)
    first = pools.run("sdb1")
    second = pools.run("sdc1")
    assert first(threading.get_ident) != threading.get_ident()
    assert second(threading.get_ident) != threading.get_ident()
    assert first(threading.get_ident) != second(threading.get_ident)


def test_a_second_purpose_of_the_same_device_is_not_a_second_device():
    pools = DiskThreadPools(2, quick=True)
    first = pools.run("sdb1")
    assert pools.threads("sdb1", "hashes")(threading.get_ident) != threading.get_ident()
    assert first(threading.get_ident) == threading.get_ident()


def test_without_threads_everything_runs_inline():
    pools = DiskThreadPools(0, quick=True)
    assert pools.threads("sdb1")(threading.get_ident) == threading.get_ident()


def test_daemons_never_call_a_disk_on_their_loop():
    assert DiskThreadPools(2).run("sdb1")(threading.get_ident) != threading.get_ident()


# --- calls that answer from memory ---------------------------------------------------------------


def test_memory_answers_where_the_caller_is():
    pools = DiskThreadPools(2, quick=True)
    here = threading.get_ident()
    assert [pools.attempt(name)(threading.get_ident) for name in ("sda", "sdb")] == [here, here]
    assert DiskThreadPools(0).attempt("sda")(threading.get_ident) == here


def test_a_device_whose_memory_is_slow_is_not_asked(watch):
    attempt = MemoryCalls(watch, lambda: watch.queued)
    for _ in range(2):
        assert attempt(lambda: "body") == "body"
        attempt(watch.takes, STALL_S * 2)
    assert attempt(lambda: "body") is None
