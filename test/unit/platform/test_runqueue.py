"""Waiting for a CPU is told by the kernel, or counts as nothing."""

import os

import pytest

from swift.runtime.diskcalls import RunQueueDelay


def test_the_time_never_goes_back():
    queue = RunQueueDelay()
    times = [queue.waited_s() for _ in range(100)]
    assert times == sorted(times)
    assert all(time >= 0 for time in times)


@pytest.mark.process
def test_a_forked_process_asks_about_itself():
    queue = RunQueueDelay()
    queue.waited_s()
    pid = os.fork()
    if not pid:
        os._exit(0 if queue.waited_s() < 1.0 else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("text", [None, "", "1", "1 x 3"])
def test_a_kernel_that_does_not_tell_is_no_error(tmp_path, text):
    path = tmp_path / "schedstat"
    if text is not None:
        path.write_text(text)
    assert RunQueueDelay(str(path)).waited_s() == 0.0


def test_the_second_number_is_nanoseconds(tmp_path):
    (tmp_path / "schedstat").write_text("5 1500000000 7\n")
    assert RunQueueDelay(str(tmp_path / "schedstat")).waited_s() == 1.5
