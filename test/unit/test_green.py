"""Green threads: waiting, waking, deadlines and threads for blocking calls."""

import os
import random
import time

import greenlet
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


def test_a_detached_green_thread_is_used_again_and_one_that_failed_is_not(capsys):
    seen = []

    def work(value):
        if value is None:
            raise ValueError("meant to fail")
        seen.append((value, greenlet.getcurrent()))

    for value in (1, 2, None, 3):
        green.spawn_detached(work, value)
        green.sleep(0)
    assert [value for value, _ in seen] == [1, 2, 3]
    assert seen[0][1] is seen[1][1]
    assert seen[1][1] is not seen[2][1]
    assert "meant to fail" in capsys.readouterr().err


def test_detached_green_threads_that_wait_do_not_get_in_each_others_way():
    rng = random.Random(3)
    events = [green.Event() for _ in range(200)]
    ended = []

    def work(number):
        if rng.random() < 0.5:
            green.sleep(0)
        if not events[number].wait(0.02 if number % 10 == 0 else 10):
            ended.append(-number)
            return
        ended.append(number)

    for number in range(200):
        green.spawn_detached(work, number)
        if rng.random() < 0.3:
            green.sleep(0)
    order = [number for number in range(200) if number % 10]
    rng.shuffle(order)
    for number in order:
        events[number].set()
        if rng.random() < 0.3:
            green.sleep(0)
    deadline = time.monotonic() + 10
    while len(ended) < 200 and time.monotonic() < deadline:
        green.sleep(0.01)
    assert sorted(ended) == sorted(number if number % 10 else -number for number in range(200))


def test_calls_that_make_each_other_ready_for_ever_leave_room_for_descriptors():
    reader, writer = os.pipe()
    stopped = []

    def ping():
        if not stopped:
            green.spawn_detached(ping)

    green.spawn_detached(ping)
    try:
        os.write(writer, b"x")
        green.wait_readable(reader, time.monotonic() + 5)
    finally:
        stopped.append(True)
        os.close(reader)
        os.close(writer)


def test_letting_others_run_lets_all_who_can_go_on_now_whatever_they_waited_for():
    reader, writer = os.pipe()
    seen = []
    event = green.Event()

    def waits_for_bytes():
        green.wait_readable(reader, time.monotonic() + 5)
        seen.append("bytes")

    def waits_for_the_event():
        event.wait()
        seen.append("event")

    try:
        tasks = [green.spawn(waits_for_bytes), green.spawn(waits_for_the_event)]
        green.sleep(0)
        os.write(writer, b"x")
        event.set()
        green.sleep(0)
        assert sorted(seen) == ["bytes", "event"]
        for task in tasks:
            task.wait()
    finally:
        os.close(reader)
        os.close(writer)


def test_one_that_lets_others_run_can_be_killed_and_does_not_come_back():
    turns = []

    def run():
        while True:
            green.sleep(0)
            turns.append(1)

    task = green.spawn(run)
    while len(turns) < 3:
        green.sleep(0)
    task.kill()
    count = len(turns)
    for _ in range(5):
        green.sleep(0)
    assert len(turns) == count
    assert task.done
