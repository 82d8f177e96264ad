"""Green threads: waiting, waking, deadlines and threads for blocking calls."""

import os
import random
import threading
import time

import pytest

from swift import green


def test_a_mailbox_gives_values_in_order_however_puts_and_gets_interleave():
    box = green.Mailbox()
    rng = random.Random(7)

    def producer(start):
        for n in range(50):
            if rng.random() < 0.5:
                green.sleep(0)
            box.put((start, n))

    for start in range(4):
        green.spawn_detached(producer, start)
    received = [box.get(time.monotonic() + 5) for _ in range(200)]
    for start in range(4):
        assert [n for s, n in received if s == start] == list(range(50))


def test_two_values_put_before_the_reader_runs_wake_it_once_and_lose_nothing():
    box = green.Mailbox()
    got = []

    def reader():
        for _ in range(3):
            got.append(box.get(time.monotonic() + 5))

    task = green.spawn(reader)
    green.sleep(0)
    box.put(1)
    box.put(2)
    green.sleep(0.01)
    box.put(3)
    task.wait()
    assert got == [1, 2, 3]


def test_a_mailbox_wait_ends_at_its_deadline():
    with pytest.raises(green.DeadlineExceeded):
        green.Mailbox().get(time.monotonic() + 0.05)


def test_an_event_wakes_everybody_once_and_says_whether_it_came_in_time():
    event = green.Event()
    tasks = [green.spawn(event.wait, 5) for _ in range(5)]
    green.sleep(0)
    assert not event.wait(0.05)
    event.set()
    event.set()
    assert [task.wait() for task in tasks] == [True] * 5
    assert event.wait(0)


def test_a_socket_wait_ends_at_its_deadline_and_leaves_the_descriptor_usable():
    reader, writer = os.pipe()
    try:
        with pytest.raises(green.DeadlineExceeded):
            green.wait_readable(reader, time.monotonic() + 0.05)
        os.write(writer, b"x")
        green.wait_readable(reader, time.monotonic() + 5)
        assert os.read(reader, 1) == b"x"
    finally:
        os.close(reader)
        os.close(writer)


def test_calls_in_a_thread_pool_run_beside_each_other_and_beside_the_loop():
    pool = green.ThreadPool(3, "test")
    barrier = threading.Barrier(3, timeout=10)
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
        green.ThreadPool(1).call(lambda: 1 // 0)


def test_a_killed_caller_leaves_the_pool_working():
    pool = green.ThreadPool(1)
    release = threading.Event()
    task = green.spawn(pool.call, release.wait, 10)
    green.sleep(0.02)
    task.kill()
    release.set()
    assert pool.call(lambda: 5) == 5


def test_gather_raises_the_first_error_after_all_have_ended():
    ended = []

    def slow():
        green.sleep(0.02)
        ended.append(1)

    def failing():
        raise KeyError("x")

    with pytest.raises(KeyError):
        green.gather([failing, slow])
    assert ended == [1]
