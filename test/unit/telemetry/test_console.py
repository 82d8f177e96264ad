"""Lines of a log file begin with a time; a terminal and systemd's journal need none."""

import os
import pty

import pytest

from swift.telemetry.console import line_time, needs_timestamps


@pytest.fixture
def file(tmp_path):
    fd = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    yield fd
    os.close(fd)


def test_a_file_needs_times(file):
    assert needs_timestamps(file, "")


def test_the_journal_notes_them_itself(file):
    status = os.fstat(file)
    assert not needs_timestamps(file, f"{status.st_dev}:{status.st_ino}")


def test_a_file_of_a_service_whose_former_output_was_the_journal_needs_them(file):
    assert needs_timestamps(file, "8:12345")


def test_a_terminal_needs_none_and_neither_does_what_is_closed():
    master, terminal = pty.openpty()
    assert not needs_timestamps(terminal, "")
    os.close(master)
    os.close(terminal)
    assert not needs_timestamps(terminal, "")


def test_a_time_is_utc_and_says_so():
    assert line_time(1_700_000_000.9) == "2023-11-14T22:13:20Z"
