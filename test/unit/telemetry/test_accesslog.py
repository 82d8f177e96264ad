"""Access lines, written in batches off the request path."""

import os

import pytest

from swift.base.clock import ManualClock
from swift.telemetry.accesslog import BATCH_BYTES, AccessLog, common_log_time
from swift.telemetry.log import silent_log


@pytest.fixture
def pipe():
    reading, writing = os.pipe2(os.O_NONBLOCK)
    yield reading, writing
    for fd in (reading, writing):
        try:
            os.close(fd)
        except OSError:
            pass


class Later:
    """An event loop that runs calls when told to."""

    def __init__(self):
        self.calls = []

    def __call__(self, seconds, call):
        self.calls.append(call)


def test_lines_of_a_moment_leave_together(pipe):
    later = Later()
    log = AccessLog(silent_log(), fd=pipe[1], name="proxy", schedule=later)
    log.write("first")
    log.write("second")
    with pytest.raises(BlockingIOError):
        os.read(pipe[0], 100)
    assert len(later.calls) == 1
    later.calls[0]()
    assert os.read(pipe[0], 100) == b"proxy: first\nproxy: second\n"


def test_in_a_log_file_each_line_begins_with_its_time(pipe):
    later, clock = Later(), ManualClock(1_700_000_000.0)
    log = AccessLog(silent_log(), fd=pipe[1], name="proxy", schedule=later, now=clock.time)
    log.write("first")
    clock.advance(1)
    log.write("second")
    later.calls[0]()
    assert os.read(pipe[0], 100).decode().splitlines() == [
        "2023-11-14T22:13:20Z proxy: first",
        "2023-11-14T22:13:21Z proxy: second",
    ]


def test_a_long_batch_does_not_wait(pipe):
    log = AccessLog(silent_log(), fd=pipe[1], schedule=Later())
    log.write("x" * BATCH_BYTES)
    assert os.read(pipe[0], BATCH_BYTES * 2) == b"x" * BATCH_BYTES + b"\n"


def test_without_a_loop_each_line_is_written_at_once(pipe):
    AccessLog(silent_log(), fd=pipe[1]).write("bad \udcff")
    assert os.read(pipe[0], 100) == b"bad \\udcff\n"


def test_a_log_that_cannot_be_written_fails_nobody(pipe):
    os.close(pipe[0])
    log = AccessLog(silent_log(), fd=pipe[1])
    log.write("lost")
    log.flush()


def test_nobody_builds_lines_that_go_nowhere():
    assert not AccessLog(silent_log()).is_wanted


def test_a_moment_reads_as_in_the_common_log_format():
    assert common_log_time(1_700_000_000) == "14/Nov/2023:22:13:20 +0000"
