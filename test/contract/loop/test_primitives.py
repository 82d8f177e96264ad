"""Events, conditions, semaphores, queues and futures: no value is lost, no wake-up is missing."""

import random
import time

import pytest

from swift import green


def test_a_queue_gives_values_in_order_however_puts_and_gets_interleave():
    box = green.Queue()
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
    box = green.Queue()
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


def test_a_wait_for_a_queue_ends_at_its_deadline():
    with pytest.raises(green.DeadlineExceeded):
        green.Queue().get(time.monotonic() + 0.05)


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


def test_a_future_gives_the_value_or_raises_the_error_before_and_after_the_wait():
    for set_before in (True, False):
        value, error = green.Future(), green.Future()
        calls = [(value.set_result, 7), (error.set_error, OSError("broken"))]
        for function, argument in calls:
            if set_before:
                function(argument)
            else:
                green.spawn_after(0.0, function, argument)
        assert value.result() == 7
        with pytest.raises(OSError, match="broken"):
            error.result()


def test_a_result_after_the_waiter_was_killed_is_dropped():
    future = green.Future()
    waiting = green.spawn(future.result)
    green.sleep(0.001)
    waiting.kill()
    future.set_result(1)
    with pytest.raises(green.Killed):
        waiting.wait()


def test_a_wait_for_a_future_ends_at_its_deadline():
    with pytest.raises(green.DeadlineExceeded):
        green.Future().result(time.monotonic() + 0.05)


def test_a_value_for_a_killed_reader_goes_to_the_next_one():
    queue, got = green.Queue(), []
    readers = [green.spawn(lambda: got.append(queue.get())) for _ in range(2)]
    green.sleep(0)
    green.spawn(readers[0].kill)
    green.spawn(queue.put, 1)
    readers[1].wait()
    assert got == [1]


def test_a_condition_resumes_all_that_wait_and_says_when_time_passed():
    condition = green.Condition()
    waiting = [green.spawn(condition.wait, 30) for _ in range(3)]
    green.sleep(0)
    condition.notify_all()
    assert [task.wait() for task in waiting] == [True] * 3
    assert not condition.wait(0.05)


def test_a_condition_returns_when_its_predicate_holds():
    condition, state = green.Condition(), []
    condition.wait_for(lambda: not state)
    task = green.spawn(condition.wait_for, lambda: len(state) == 2)
    for number in range(2):
        green.sleep(0)
        assert not task.done
        state.append(number)
        condition.notify_all()
    task.wait()
    with pytest.raises(green.DeadlineExceeded):
        condition.wait_for(lambda: len(state) > 2, time.monotonic() + 0.05)


def test_a_semaphore_has_no_more_holders_than_places():
    places, holding, most = green.Semaphore(3), [], []

    def hold():
        with places:
            holding.append(1)
            most.append(len(holding))
            green.sleep(0)
            holding.pop()

    green.gather([hold] * 20)
    assert max(most) == 3
    assert places.acquire(0)
    places.release()


def test_a_semaphore_without_places_ends_waits_at_their_deadline_and_refuses_others():
    none = green.Semaphore(0)
    assert none.locked() and not none.acquire(0)
    assert not none.acquire(0.05)
    with pytest.raises(ValueError, match="at least 0"):
        green.Semaphore(-1)


def test_a_place_for_a_killed_waiter_goes_to_the_next_one():
    places, got = green.Semaphore(0), []
    waiting = [green.spawn(lambda: got.append(places.acquire())) for _ in range(2)]
    green.sleep(0)
    green.spawn(waiting[0].kill)
    green.spawn(places.release)
    waiting[1].wait()
    assert got == [True]


@pytest.mark.parametrize(
    "wait",
    [
        lambda: green.Event().wait(),
        lambda: green.Event().wait(30),
        lambda: green.Condition().wait(30),
        lambda: green.Semaphore(0).acquire(30),
        lambda: green.spawn(green.sleep, 0.2).wait(),
    ],
)
def test_a_timeout_around_a_wait_is_not_the_end_of_that_wait(wait):
    def limited():
        with pytest.raises(green.DeadlineExceeded, match=r"0\.01 s passed"), green.Timeout(0.01):
            wait()

    green.spawn(limited).wait()
