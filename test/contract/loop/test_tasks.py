"""Tasks: results, errors, ends, and many at the same time."""

import gc
import os
import random
import subprocess
import sys
import time

import greenlet
import pytest

from swift import green
from swift.green import ThreadPool


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
        green.wait_readable(reader, time.monotonic() + 30)
    finally:
        stopped.append(True)
        os.close(reader)
        os.close(writer)


def test_letting_others_run_lets_all_who_can_go_on_now_whatever_they_waited_for():
    reader, writer = os.pipe()
    seen = []
    event = green.Event()

    def waits_for_bytes():
        green.wait_readable(reader, time.monotonic() + 30)
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


@pytest.mark.parametrize("pause_s", [None, 0.001], ids=["not begun", "asleep"])
def test_one_that_was_killed_says_so_to_whoever_waits_for_it(pause_s):
    began = []
    task = green.spawn(lambda: began.append(True) or green.sleep(5))
    if pause_s:
        green.sleep(pause_s)
    task.kill()
    with pytest.raises(green.Killed):
        task.wait()
    assert bool(began) == bool(pause_s) and task.done


#: The loop and threads write log lines, and make and release guards, all at once.
SHARING = """
import mmap, sys
from swift import green
from swift.green import ThreadPool
from swift.config.common import LogSettings
from swift.platform.mapguard import MapGuard
from swift.green import ThreadPool
from swift.telemetry.log import make_log
log = make_log(LogSettings(), console=True, name="x")
file = open(sys.argv[1], "r+b")
view = mmap.mmap(file.fileno(), 0)

def work():
    for number in range(500):
        log.error("line")
        if number % 10 == 0:
            MapGuard(sys.argv[1]).release()

sys.setswitchinterval(1e-5)
pool = ThreadPool(3)
tasks = [green.spawn(pool.call, work) for _ in range(3)]
work()
with green.Timeout(60):
    for task in tasks:
        task.wait()
"""


@pytest.mark.process
def test_threads_and_the_loop_share_locks_without_losing_who_waits(tmp_path):
    path = tmp_path / "mapped"
    path.write_bytes(b"a" * 8192)
    line = [sys.executable, "-c", SHARING, str(path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (0, 2000), lines[-5:]
    assert all(line.endswith("x: line") for line in lines)


def _fail_in_a_thread(pool):
    def fail():
        raise OSError(5, "Input/output error")

    return green.spawn(pool.call, fail)


def test_an_error_goes_to_the_waiter_and_is_not_printed(capfd):
    task = _fail_in_a_thread(ThreadPool(1))
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            task.wait()
    assert task.done
    del task
    assert capfd.readouterr().err == ""


def test_an_error_of_a_task_that_is_given_up_is_not_printed(capfd):
    task = _fail_in_a_thread(ThreadPool(1))
    while not task.done:
        green.sleep(0.001)
    task.kill()
    del task
    gc.collect()
    assert capfd.readouterr().err == ""


def test_an_error_that_no_one_takes_is_printed(capfd):
    task = _fail_in_a_thread(ThreadPool(1))
    while not task.done:
        green.sleep(0.001)
    del task
    printed = ""
    # The thread may hold the error, and by its traceback the task, a little longer.
    while "Input/output error" not in printed:
        gc.collect()
        green.sleep(0.001)
        printed += capfd.readouterr().err


def test_a_bounded_map_keeps_the_order_and_its_bound():
    running, most = [], []

    def double(number):
        running.append(number)
        most.append(len(running))
        green.sleep(0.002 if number % 3 else 0)
        running.remove(number)
        return 2 * number

    assert green.bounded_map(double, iter(range(20)), 4) == [2 * number for number in range(20)]
    assert max(most) == 4
    assert green.bounded_map(double, [1], 4) == [2] and green.bounded_map(double, [], 4) == []


def test_a_bounded_map_starts_nothing_after_an_error_and_ends_what_runs():
    begun, ended = [], []

    def work(number):
        begun.append(number)
        green.sleep(0.005 * number)
        if number == 1:
            raise KeyError(number)
        ended.append(number)

    with pytest.raises(KeyError):
        green.bounded_map(work, range(10), 3)
    assert 9 not in begun and sorted([*ended, 1]) == sorted(begun)


def test_a_task_that_starts_later_can_be_cancelled_and_tells_of_its_end():
    made, ends = [], []
    cancelled = green.spawn_after(0.001, made.append, "cancelled")
    task = green.spawn_after(0.001, made.append, "made")
    for each in (cancelled, task):
        each.on_exit(lambda: ends.append(1))
    cancelled.kill()
    task.wait()
    task.on_exit(lambda: ends.append(2))
    green.sleep(0)
    assert (made, ends) == (["made"], [1, 1, 2])


def test_a_block_that_takes_too_long_is_ended():
    with pytest.raises(green.DeadlineExceeded, match=r"0\.01 s passed"), green.Timeout(0.01):
        green.sleep(30)
    with green.Timeout(0.01), green.Timeout(None):
        pass
    green.sleep(0.03)


def test_a_block_that_ended_in_time_is_not_ended_later_when_both_were_due_at_once():
    def work():
        with green.Timeout(0.3):
            green.sleep(0.01)
        green.sleep(0.05)
        return "not interrupted"

    task = green.spawn(work)
    green.sleep(0.005)
    # The loop is busy until the sleep and the limit of the block are both over.
    time.sleep(0.35)
    assert task.wait() == "not interrupted"
