"""An unhandled error ends its own green thread and nothing else."""

import time

import pytest

from swift import green
from swift.green import ThreadPool


def test_deadlines_are_still_kept_after_a_green_thread_died_of_one():
    green.spawn_detached(lambda: green.Queue().get(time.monotonic() + 0.05))
    green.sleep(0.4)
    with pytest.raises(green.DeadlineExceeded):
        green.Queue().get(time.monotonic() + 0.05)


def test_two_overdue_waits_both_end_although_the_first_dies_of_it():
    ended = []

    def careful():
        try:
            green.Queue().get(time.monotonic() + 0.05)
        except green.DeadlineExceeded:
            ended.append(True)

    green.spawn_detached(lambda: green.Queue().get(time.monotonic() + 0.05))
    green.spawn_detached(careful)
    green.sleep(0.5)
    assert ended == [True]


def _fail():
    raise ValueError("in a thread")


def test_threaded_calls_still_return_after_a_green_thread_died_of_one(capsys):
    pool = ThreadPool(2)
    green.spawn_detached(pool.call, _fail)
    green.sleep(0.1)
    assert pool.call(lambda: 5) == 5
    assert "in a thread" in capsys.readouterr().err


def test_an_error_of_a_threaded_call_is_raised_where_it_was_asked_for():
    with pytest.raises(ValueError, match="in a thread"):
        ThreadPool(1).call(_fail)
