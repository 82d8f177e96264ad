"""Pid files mean processes of their service, and what was left behind is removed (cli-and-config.md §8.1)."""

import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from swift.runtime.notify import READY, refusal_message, reload_address
from swift.runtime.service.processes import (
    ReadySocket,
    ReloadRefused,
    ServiceProcess,
    Signaller,
    is_service_process,
    running_processes,
)
from swift.runtime.service.services import Service, pid_file

SERVICE = Service("object-updater")


@pytest.fixture
def dirs(tmp_path):
    """Where pid files and configurations are; there is one configuration."""
    (tmp_path / "run").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "object-server.conf").write_text("[DEFAULT]\n")
    return str(tmp_path / "run"), str(tmp_path / "etc")


@pytest.fixture
def child():
    """A process with the service's name in its command."""
    code = "import sys, time; print(flush=True); time.sleep(60)"
    made = subprocess.Popen(
        [sys.executable, "-c", code, SERVICE.program], stdout=subprocess.PIPE, start_new_session=True
    )
    made.stdout.readline()
    yield made
    made.kill()
    made.wait()
    made.stdout.close()


def written(dirs, text):
    run_dir, swift_dir = dirs
    path = pid_file(SERVICE, f"{swift_dir}/object-server.conf", run_dir, swift_dir)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    return path


def test_a_running_process_is_found_with_its_configuration(dirs, child):
    path = written(dirs, f"{child.pid}\n")
    [found] = running_processes(SERVICE, *dirs)
    assert (found.pid, found.pid_file) == (child.pid, path)
    assert found.config.endswith("object-server.conf")
    assert str(found) == f"{SERVICE} ({child.pid})"


@pytest.mark.parametrize("text", ["", "x", "12 34", "²"])
def test_a_pid_file_without_a_pid_is_removed(dirs, text, capsys):
    path = written(dirs, text)
    assert running_processes(SERVICE, *dirs) == []
    assert not os.path.exists(path)
    assert "invalid pid" in capsys.readouterr().out


@pytest.mark.parametrize(("pid", "said"), [("1", "with wrong pid 1"), (str(os.getppid()), "with wrong pid")])
def test_a_pid_file_of_another_process_is_removed_and_told(dirs, pid, said):
    path, told = written(dirs, pid), []
    assert running_processes(SERVICE, dirs[0], dirs[1], told.append) == []
    assert not os.path.exists(path)
    assert said in told[0]


def test_a_pid_file_of_a_process_that_has_gone_is_stale(dirs):
    gone = subprocess.Popen(["true"])
    gone.wait()
    told = []
    path = written(dirs, str(gone.pid))
    assert running_processes(SERVICE, dirs[0], dirs[1], told.append) == []
    assert told == [f"Removing stale pid file {path}"]
    assert not is_service_process(SERVICE, 0)


def signaller(told, **more):
    return Signaller(told.append, **{"wait_s": 5.0, "kills": True, "verbose": False, **more})


def test_a_process_that_ends_is_told_of_and_forgotten(dirs, child):
    path = written(dirs, str(child.pid))
    told = []
    hand = signaller(told)
    running = hand.end(running_processes(SERVICE, *dirs), graceful=False)
    reaper = threading.Thread(target=child.wait)
    reaper.start()
    assert hand.wait_for_ends(running) == 0
    reaper.join()
    assert not os.path.exists(path)
    assert told == [
        f"Signal {SERVICE}  pid: {child.pid}  signal: {int(signal.SIGTERM)}",
        f"{SERVICE} ({child.pid}) appears to have stopped",
    ]


def test_a_process_that_does_not_end_is_given_up_or_killed(dirs, child):
    written(dirs, str(child.pid))
    told, running = [], running_processes(SERVICE, *dirs)
    assert signaller(told, wait_s=0.05, kills=False).wait_for_ends(running) == 1
    assert told == [f"Waited 0.05 seconds for {SERVICE} to die; giving up"]
    reaper = threading.Thread(target=child.wait)
    reaper.start()
    assert signaller(told, wait_s=0.05).wait_for_ends(running) == 0
    reaper.join()
    assert child.returncode == -signal.SIGKILL


def test_a_process_that_is_gone_cannot_be_told():
    gone = subprocess.Popen(["true"])
    gone.wait()
    told = []
    running = [ServiceProcess(SERVICE, gone.pid, "conf", "/nowhere/pid")]
    assert signaller(told).end(running, graceful=False) == []
    assert told[-1] == f"No {SERVICE} running"
    running[0].remove_pid_file()


def test_a_reloaded_process_says_that_it_is_ready():
    heard = []
    with ReadySocket(999_999_001) as word, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"RELOADING=1", reload_address(999_999_001))
        sender.sendto(f"STATUS=x\n{READY}".encode(), reload_address(999_999_001))
        assert word.wait(5.0, heard.append)
        assert heard == ["RELOADING=1", f"STATUS=x\n{READY}"]
        assert not word.wait(0.01)


def test_a_process_that_cannot_be_reloaded_says_why():
    with ReadySocket(999_999_002) as word, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(refusal_message("it has no workers").encode(), reload_address(999_999_002))
        with pytest.raises(ReloadRefused, match="^it has no workers$"):
            word.wait(5.0)
