"""Green threads: waiting, waking, deadlines and threads for blocking calls."""

import gc
import os
import random
import subprocess
import sys
import time

import greenlet
import pytest

from swift import green
from swift.platform.threads import ThreadPool


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


#: A program like our servers: what it listens with accepts sockets that block nobody and wait in our own way.
SERVER = """
from swift import green
from swift.platform.threads import ThreadPool
green.patch()
import socket
from swift.platform.sockets import listen
listener = listen("127.0.0.1", 0, 5)
client = green.connect(*listener.getsockname()[:2], None)
listener.setblocking(True)
accepted = listener.accept()[0]
print(type(client) is type(accepted) is green.PlainSocket, socket.socket is green.PlainSocket)
"""


@pytest.mark.process
def test_what_a_plain_socket_accepts_is_plain_in_a_program_that_is_cooperative():
    done = subprocess.run([sys.executable, "-c", SERVER], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True False\n", "")


#: The loop and threads write log lines, and make and release guards, all at once.
SHARING = """
import mmap, sys
from swift import green
from swift.platform.threads import ThreadPool
green.patch()
green.use_hub()
from swift.config.common import LogSettings
from swift.platform.mapguard import MapGuard
from swift.platform.threads import ThreadPool
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


@pytest.mark.process
def test_a_patched_standard_library_raises_the_exceptions_that_its_names_catch():
    code = """
import queue, socket, subprocess, sys, threading
from swift import green
from swift.platform.threads import ThreadPool
green.patch()
import queue, socket, subprocess, threading
program = [sys.executable, "-c", "import time; time.sleep(600)"]
try:
    subprocess.run(program, timeout=0.1, capture_output=True)
except subprocess.TimeoutExpired:
    print("run")
child = subprocess.Popen(program)
try:
    child.wait(0.1)
except subprocess.TimeoutExpired:
    print("wait")
child.kill()
child.wait()
try:
    subprocess.run([sys.executable, "-c", "raise SystemExit(1)"], check=True)
except subprocess.CalledProcessError:
    print("check")
try:
    queue.Queue().get(timeout=0.1)
except queue.Empty:
    print("empty")
full = queue.Queue(1)
full.put(1)
try:
    full.put(2, timeout=0.1)
except queue.Full:
    print("full")
one, _other = socket.socketpair()
one.settimeout(0.1)
try:
    one.recv(1)
except socket.timeout:
    print("socket")
try:
    threading.Lock().release()
except RuntimeError:
    print("lock")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["run", "wait", "check", "empty", "full", "socket", "lock"], done.stderr


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
    gc.collect()
    assert "Input/output error" in capfd.readouterr().err
