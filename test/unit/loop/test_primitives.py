"""Mailboxes, events and handovers: nothing is lost, nobody is woken for nothing or not at all."""

import random
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
    received = [box.get(time.monotonic() + 30) for _ in range(200)]
    for start in range(4):
        assert [n for s, n in received if s == start] == list(range(50))


def test_two_values_put_before_the_reader_runs_wake_it_once_and_lose_nothing():
    box = green.Mailbox()
    got = []

    def reader():
        for _ in range(3):
            got.append(box.get(time.monotonic() + 30))

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


def test_an_event_that_came_already_keeps_nobody_and_a_second_one_is_nothing():
    event = green.Event()
    event.set()
    event.set()
    assert event.wait() and event.wait(0.0) and event.is_set


def test_one_that_was_killed_while_it_waited_is_not_woken():
    event, woken = green.Event(), []
    waiting = [green.spawn(lambda: woken.append(event.wait())) for _ in range(2)]
    green.sleep(0)
    waiting[0].kill()
    event.set()
    green.sleep(0)
    assert woken == [True]


def test_a_handover_gives_what_another_thread_left_or_raises_its_error():
    handover = green.Handover()
    green.spawn_after(0.0, handover.switch, 7)
    assert handover.wait() == 7
    green.spawn_after(0.0, handover.throw, OSError("broken"))
    with pytest.raises(OSError, match="broken"):
        handover.wait()


def test_a_result_that_nobody_waits_for_any_more_vanishes():
    handover = green.Handover()
    waiting = green.spawn(handover.wait)
    green.sleep(0.001)
    waiting.kill()
    handover.switch(1)
    handover.throw(OSError())
    with pytest.raises(green.Killed):
        waiting.wait()
