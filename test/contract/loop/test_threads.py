"""Threads for calls that may block."""

import gc
import os
import threading
import time
from pathlib import Path

import pytest

from swift import green
from swift.green import ThreadPool
from swift.loop import base


def test_calls_in_a_thread_pool_run_beside_each_other_and_beside_the_loop():
    pool = ThreadPool(3, "test")
    barrier = threading.Barrier(3, timeout=60)
    ticks = []

    def tick():
        while len(ticks) < 3:
            ticks.append(1)
            green.sleep(0.01)

    green.spawn_detached(tick)
    indexes = green.gather([lambda: pool.call(barrier.wait)] * 3)
    assert sorted(indexes) == [0, 1, 2]


def test_an_error_in_a_threaded_call_is_raised_where_it_was_called():
    with pytest.raises(ZeroDivisionError):
        ThreadPool(1).call(lambda: 1 // 0)


def test_a_killed_caller_leaves_the_pool_working():
    pool = ThreadPool(1)
    release = threading.Event()
    task = green.spawn(pool.call, release.wait, 10)
    green.sleep(0.02)
    task.kill()
    release.set()
    assert pool.call(lambda: 5) == 5


def test_a_thread_that_cannot_start_is_an_error_and_the_pool_goes_on():
    pool = ThreadPool(1)
    before = threading.stack_size(1 << 46)
    try:
        # Three times, so that one lost place would be seen.
        for _ in range(3):
            with pytest.raises(RuntimeError):
                pool.call(lambda: 1)
    finally:
        threading.stack_size(before)
    assert pool.call(lambda: 5) == 5


@pytest.mark.process
def test_a_forked_child_gets_threads_of_its_own():
    pool = ThreadPool(1)
    assert pool.call(lambda: 1) == 1
    child = os.fork()
    if not child:
        try:
            os._exit(pool.call(lambda: 7))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_the_threads_of_a_pool_that_nobody_refers_to_end():
    pool = ThreadPool(2, "forgotten")
    thread = Path("/proc", pool.call(os.readlink, "/proc/thread-self"))
    assert thread.exists()
    del pool
    gc.collect()
    deadline = time.monotonic() + 10
    while thread.exists() and time.monotonic() < deadline:
        green.sleep(0.01)
    assert not thread.exists()


def test_a_thread_calls_back_into_the_loop_and_gets_results_and_errors():
    pool, seen = ThreadPool(2), []

    def in_the_loop(value):
        green.sleep(0.001)
        seen.append(threading.current_thread() is threading.main_thread())
        if value is None:
            raise KeyError("none")
        return 2 * value

    def in_a_thread(value):
        return green.call_in_loop(in_the_loop, value) + 1

    assert green.gather([lambda: pool.call(in_a_thread, 5), lambda: pool.call(in_a_thread, 6)]) == [11, 13]
    with pytest.raises(KeyError, match="none"):
        pool.call(in_a_thread, None)
    assert green.call_in_loop(in_the_loop, 1) == 2
    assert seen == [True] * 4


def test_a_thread_that_a_pools_thread_has_started_calls_back_into_the_same_loop():
    found = []

    def start_another():
        thread = threading.Thread(target=lambda: found.append(green.call_in_loop(base.loop)))
        thread.start()
        thread.join(10)

    ThreadPool(1).call(start_another)
    assert found == [base.loop()]
