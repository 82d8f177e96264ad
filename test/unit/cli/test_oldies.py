"""Processes of this software that have been running for long, listed."""

import os
import subprocess
import sys

import pytest

from swift.cli.oldies import HOUR_S, as_json, main, process_table, swift_processes
from swift.runtime.service.processes import RunningProcess, process

SERVER = ("python", "-m", "swift.cli.object_server", "/etc/swift/object-server.conf", "-v")
DAEMON = ("python", "-m", "swift.cli.daemon", "object-auditor", "/etc/swift/object-server.conf")
SCRIPT = ("/usr/bin/python3", "/usr/bin/swift-proxy-server", "x" * 200)


def running(words, hours=100.0, pid=12):
    return RunningProcess(pid, 1, pid, words, hours * HOUR_S)


def test_a_line_has_age_pid_and_the_command_without_its_interpreter():
    head, line, daemon, long = process_table([running(SERVER), running(DAEMON), running(SCRIPT, 2.9, 12345)])
    assert head == "Hours   PID Command"
    assert line == "  100    12 object-server /etc/swift/object-server.conf -v"
    assert daemon == "  100    12 object-auditor /etc/swift/object-server.conf"
    assert long.startswith("    2 12345 proxy-server xxx") and len(long) == 80


def test_lines_are_whole_where_there_is_no_width():
    *_, line = process_table([running(SCRIPT)], width=None)
    assert line.endswith("x" * 200)


def test_programs_get_the_whole_command():
    assert as_json([running(SERVER, 1.5)]) == [{"pid": 12, "hours": 1.5, "command": " ".join(SERVER)}]
    assert as_json([]) == []


@pytest.fixture
def sleeper():
    """A process whose command line looks like one of ours."""
    command = "import sys, time; print('up', flush=True); time.sleep(60)"
    child = subprocess.Popen(
        ["swift-test-sleeper", "-c", command], executable=sys.executable, stdout=subprocess.PIPE
    )
    child.stdout.readline()
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_young_process_is_not_old_and_this_one_is_never_listed(sleeper, capsys):
    assert process(sleeper.pid).arguments[0] == "swift-test-sleeper"
    assert sleeper.pid in {each.pid for each in swift_processes(0)}
    assert sleeper.pid not in {each.pid for each in swift_processes(1)}
    assert os.getpid() not in {each.pid for each in swift_processes(0)}
    assert main(["-a", "0", "-p"]) == 0
    assert str(sleeper.pid) in capsys.readouterr().out.split()
    assert main(["-a", "100000"]) == 0
    assert capsys.readouterr().out == ""
