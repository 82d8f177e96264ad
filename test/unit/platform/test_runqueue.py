"""Waiting for a CPU is told by the kernel, or counts as nothing."""

import os

from swift.platform.runqueue import RunQueue


def test_the_time_never_goes_back():
    queue = RunQueue()
    times = [queue.waited_s() for _ in range(100)]
    assert times == sorted(times)
    assert all(time >= 0 for time in times)


def test_a_forked_process_asks_about_itself():
    queue = RunQueue()
    queue.waited_s()
    pid = os.fork()
    if not pid:
        os._exit(0 if queue.waited_s() < 1.0 else 1)
    assert os.waitpid(pid, 0)[1] == 0
