"""Standard streams of servers and daemons, in processes of their own."""

import os
import subprocess
import sys

import pytest

from swift.runtime.service.streams import LogStream

CHILD = """
import os, sys
from swift.runtime.service.streams import detach_streams
from swift.config.common import LogSettings
from swift.telemetry.log import make_log
console = sys.argv[1] == "console"
report = os.fdopen(os.dup(int(sys.argv[2])), "w")
class Log:
    def error(self, text):
        report.write(text + "\\n")
    def exception(self, text, error):
        report.write(f"{text}: {error}\\n")
detach_streams(make_log(LogSettings(), console=True, name="me") if console else Log(), console=console)
print("printed")
print("complaint", file=sys.stderr)
report.write(" ".join(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in (0, 1, 2)) + "\\n")
report.write(f"{os.getsid(0) == os.getpid()}\\n")
report.flush()
raise ValueError("broken")
"""


def run_child(console):
    read, write = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, console, str(write)],
        pass_fds=[write],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    with os.fdopen(read) as report:
        return done.stdout, done.stderr, report.read().splitlines()


def test_without_a_console_nothing_is_kept_and_what_is_printed_is_logged():
    assert run_child("syslog") == (
        "",
        "",
        [
            "STDOUT: printed",
            "STDERR: complaint",
            "/dev/null /dev/null /dev/null",
            "True",
            "unexpected error; the process ends: broken",
        ],
    )


def test_a_console_keeps_standard_error_for_the_log():
    out, err, report = run_child("console")
    assert (out, report) == ("", ["/dev/null /dev/null pipe", "True"])
    assert err.splitlines()[0].endswith("me: STDOUT: printed")
    assert err.splitlines()[1] == "complaint"
    assert err.splitlines()[-1] == "ValueError: broken"


class FailingLog:
    """A log that reports its own failure on the stream that it is written from."""

    def __init__(self):
        self.lines = []
        self.stream = LogStream(self, "STDERR")

    def error(self, text):
        self.lines.append(text)
        self.stream.write("cannot log\n")


@pytest.mark.parametrize("writes", [("one\ntwo\n",), ("one", "\n", "\ntw", "o\n", "rest")])
def test_lines_are_logged_when_they_are_complete_and_failures_do_not_repeat(writes):
    log = FailingLog()
    for text in writes:
        assert log.stream.write(text) == len(text)
    assert log.lines == ["STDERR: one", "STDERR: two"]
