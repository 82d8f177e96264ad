"""Children of the fork server behave like started processes: output, exit status and end."""

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test.support.processes import FORK_SERVER

#: Starts a child, prints its pid, and exits without notifying the child.
LEAVER = """
import os, sys
from test.support.processes import FORK_SERVER
with open(sys.argv[1], "ab") as log:
    print(FORK_SERVER.begin("swift.cli.daemons", ["-v", *sys.argv[2:]], log).pid, flush=True)
os._exit(0)
"""


def begun(path, *args):
    with open(path, "ab") as log:
        return FORK_SERVER.begin("swift.cli.daemons", ["-v", *args], log)


def test_a_child_logs_its_error_and_reports_its_exit_status(tmp_path):
    child = begun(tmp_path / "log", "juggler=x.conf")
    assert child.wait(30) == 1 and child.poll() == 1 and child.returncode == 1
    assert "there is no daemon 'juggler'" in (tmp_path / "log").read_text()


def lasting(tmp_path):
    """Return the arguments of a daemon that runs until it is stopped."""
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    conf = tmp_path / "account.conf"
    user = pwd.getpwuid(os.geteuid()).pw_name
    conf.write_text(
        f"[DEFAULT]\nuser = {user}\nswift_dir = {tmp_path}\ndevices = {tmp_path}\n"
        f"[account-auditor]\nrecon_cache_path = {tmp_path}\ninterval = 3600\n"
    )
    return f"account-auditor={conf}"


def await_started(log):
    deadline = time.monotonic() + 30
    while "Starting" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def test_a_child_has_its_own_session_and_ends_by_a_signal(tmp_path):
    child = begun(tmp_path / "log", lasting(tmp_path))
    assert os.getsid(child.pid) == child.pid and child.poll() is None
    await_started(tmp_path / "log")
    child.send_signal(signal.SIGKILL)
    assert child.wait(30) == -signal.SIGKILL


@pytest.mark.long
def test_children_end_with_the_process_that_started_the_fork_server(tmp_path):
    (tmp_path / "log").touch()
    words = [sys.executable, "-c", LEAVER, tmp_path / "log", lasting(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{int(done.stdout)}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
