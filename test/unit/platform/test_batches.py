"""swift/platform/batches.py: what waits at the same moment is processed together."""

from __future__ import annotations

import threading

from swift.green import Event, gather, sleep, spawn
from swift.platform.batches import GreenBatches, ThreadBatches


class Member:
    """Equal to every other, as changes of the same content are."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return isinstance(other, Member)

    __hash__ = None


class Processing:
    """Notes what it gets; each call ends when it is let."""

    def __init__(self):
        self.begun = []
        self.ended = []
        self.may_end = Event()

    def __call__(self, members):
        numbers = [each.number for each in members]
        self.begun.append(numbers)
        self.may_end.wait()
        self.ended.append(numbers)


def until(condition):
    while not condition():
        sleep(0)


def waiting(batches, processing):
    """A green thread whose member is being processed."""
    task = spawn(batches.wait, Member(0))
    until(lambda: processing.begun == [[0]])
    return task


def test_what_comes_in_one_turn_of_the_loop_is_processed_together():
    processing = Processing()
    processing.may_end.set()
    batches = GreenBatches(processing)
    gather([lambda number=number: batches.wait(Member(number)) for number in range(3)])
    assert processing.ended == [[0, 1, 2]]


def test_what_comes_while_a_batch_is_processed_is_the_next_one():
    processing = Processing()
    batches = GreenBatches(processing)
    tasks = [waiting(batches, processing), *(spawn(batches.wait, Member(number)) for number in (1, 2))]
    sleep(0)
    assert processing.begun == [[0]]
    processing.may_end.set()
    for task in tasks:
        task.wait()
    assert processing.ended == [[0], [1, 2]]


def test_a_waiter_that_is_killed_before_its_turn_takes_only_its_own_member_along():
    processing = Processing()
    batches = GreenBatches(processing)
    first = waiting(batches, processing)
    second, third = (spawn(batches.wait, Member(number)) for number in (1, 2))
    sleep(0)
    third.kill()
    processing.may_end.set()
    for task in (first, second):
        task.wait()
    assert processing.ended == [[0], [1]]


def test_a_waiter_that_is_killed_in_its_turn_leaves_at_once():
    processing = Processing()
    task = waiting(GreenBatches(processing), processing)
    task.kill()
    assert task.done and not processing.ended
    processing.may_end.set()


def test_with_finishes_it_leaves_when_its_member_was_processed():
    """A change that is being written must not go on after its lock was given back."""
    processing = Processing()
    task = waiting(GreenBatches(processing, finishes=True), processing)
    ended_when_it_left = []
    task.on_exit(lambda: ended_when_it_left.append(list(processing.ended)))
    for _ in range(2):
        spawn(task.kill)
        sleep(0)
    assert not task.done
    processing.may_end.set()
    until(lambda: task.done)
    assert ended_when_it_left == [[[0]]]


def test_an_error_in_processing_ends_the_wait():
    def process(_members):
        raise ZeroDivisionError

    batches = GreenBatches(process)
    task = spawn(batches.wait, Member(0))
    until(lambda: task.done)
    again = spawn(batches.wait, Member(1))
    until(lambda: again.done)


# --- threads ------------------------------------------------------------------------------------------


class ThreadProcessing:
    """Notes what it gets; the first call ends when it is let."""

    def __init__(self):
        self.batches = []
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, members):
        self.batches.append([each.number for each in members])
        if len(self.batches) == 1:
            self.has_begun.set()
            self.may_end.wait(10)
        return len(members) < 3


def threads_of(batches, numbers, results):
    started = [
        threading.Thread(target=lambda number=number: results.append(batches.wait(Member(number))))
        for number in numbers
    ]
    for thread in started:
        thread.start()
    return started


def test_threads_that_come_while_a_batch_is_processed_share_the_next_one():
    processing, results = ThreadProcessing(), []
    batches = ThreadBatches(processing)
    threads = threads_of(batches, [0], results)
    assert processing.has_begun.wait(10)
    threads += threads_of(batches, [1, 2], results)
    while batches._gathering is None or len(batches._gathering.members) < 2:
        threading.Event().wait(0.001)
    processing.may_end.set()
    for thread in threads:
        thread.join(10)
    assert processing.batches[0] == [0] and sorted(processing.batches[1]) == [1, 2]
    assert results == [True, True, True]


def test_a_batch_that_is_not_processed_is_told_to_all_its_members():
    processing, results = ThreadProcessing(), []
    batches = ThreadBatches(processing)
    threads = threads_of(batches, [0], results)
    assert processing.has_begun.wait(10)
    threads += threads_of(batches, [1, 2, 3], results)
    while batches._gathering is None or len(batches._gathering.members) < 3:
        threading.Event().wait(0.001)
    processing.may_end.set()
    for thread in threads:
        thread.join(10)
    assert sorted(results) == [False, False, False, True]


def test_an_error_is_raised_to_the_thread_that_processes_and_the_next_one_goes_on():
    calls = []

    def process(members):
        calls.append(len(members))
        if len(calls) == 1:
            raise ZeroDivisionError
        return True

    batches = ThreadBatches(process)
    try:
        batches.wait(Member(0))
    except ZeroDivisionError:
        assert batches.wait(Member(1))
    assert calls == [1, 1]
