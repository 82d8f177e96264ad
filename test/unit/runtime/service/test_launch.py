"""Services that are started in the background: what they say until they are ready, and their pid files."""

import os
import sys
from pathlib import Path

import pytest

from swift.runtime.service.launch import Launcher, program_path, raise_limits
from swift.runtime.service.services import Service

SERVICE = Service("object-updater")

READY = """import os, socket, sys, time
print("hello", flush=True)
word = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
word.connect("\\0" + os.environ["NOTIFY_SOCKET"][1:])
word.send(b"STATUS=reading")
word.send(b"READY=1")
sys.stdin.read()
while True:
    time.sleep(60)
"""


class Bench:
    def __init__(self, root, monkeypatch):
        self.root, self.said = root, []
        self.program = root / "bin" / SERVICE.program
        self.program.parent.mkdir()
        monkeypatch.setattr(sys, "argv", [str(root / "bin" / "swift-init")])
        self.pid_file = root / "run" / "object-updater.pid"

    def write(self, text):
        self.program.write_text(f"#!{sys.executable}\n{text}")
        self.program.chmod(0o755)

    def launch(self, text, *, once=False, in_foreground=False):
        self.write(text)
        launcher = Launcher(str(self.root / "run"), str(self.root / "etc"), self.said.append)
        config = str(self.root / "etc" / "object-server.conf")
        return launcher.launch(SERVICE, config, once=once, in_foreground=in_foreground)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    return Bench(tmp_path, monkeypatch)


def test_a_service_is_waited_for_until_it_says_that_it_is_ready(bench, capsys):
    launched = bench.launch(READY)
    pid = int(bench.pid_file.read_text())
    try:
        assert launched.await_ready() is True
        assert os.getsid(pid) == pid
    finally:
        os.kill(pid, 9)
        launched.wait()
    assert capsys.readouterr().out.startswith("hello\n")
    assert bench.said == [f"Starting object-updater...({bench.root}/etc/object-server.conf)"]
    assert not bench.pid_file.exists()


def test_one_that_fails_is_told_with_what_it_said_also_when_that_is_no_text(bench, capsys):
    launched = bench.launch("import sys; sys.stderr.buffer.write(b'bad \\xff option'); sys.exit(3)")
    assert launched.await_ready() is False
    assert capsys.readouterr().out == "bad � option\n"


def test_one_that_ends_well_at_once_has_not_failed(bench):
    assert bench.launch("").await_ready() is True


def test_one_that_says_nothing_for_long_is_taken_to_be_running(bench):
    launched = bench.launch("import time\nwhile True: time.sleep(60)")
    try:
        assert launched.await_ready(timeout_s=0.0) is True
    finally:
        os.kill(int(bench.pid_file.read_text()), 9)
        os.waitpid(int(bench.pid_file.read_text()), 0)


def test_once_is_told_to_daemons_and_its_status_is_that_of_the_wait(bench, capsys):
    launched = bench.launch("import sys; print(sys.argv[2:]); sys.exit(5)", once=True)
    assert launched.wait() == 5
    assert capsys.readouterr().out == "['once']\n"
    assert bench.said[0].startswith("Running object-updater once...(")


def test_in_the_foreground_the_output_is_the_terminals(bench, capfd):
    launched = bench.launch("import sys; print(sys.argv[2:])", in_foreground=True)
    assert launched.wait() == 0
    assert capfd.readouterr().out == "['verbose']\n"


def test_a_command_that_is_not_installed_is_named(bench):
    launcher = Launcher(str(bench.root / "run"), "/etc/swift", bench.said.append)
    assert launcher.launch(Service("no-such-thing"), "x.conf", once=False, in_foreground=False) is None
    assert bench.said == ["Unable to find the command swift-no-such-thing"]
    assert not (bench.root / "run").exists()


def test_commands_beside_the_running_one_come_first_if_they_can_be_run(bench):
    bench.write("")
    assert program_path(SERVICE.program) == str(bench.program)
    bench.program.chmod(0o644)
    beside = Path(sys.executable).parent / SERVICE.program
    assert program_path(SERVICE.program) == str(beside)


def test_commands_are_named_through_the_links_of_directories(bench, monkeypatch, tmp_path):
    bench.write("")
    (tmp_path / "current").symlink_to(bench.program.parent.parent)
    (tmp_path / "sbin").mkdir()
    (bench.program.parent / "swift-init").touch()
    (tmp_path / "sbin/swift-init").symlink_to("../current/bin/swift-init")
    for started in ("current/bin/swift-init", "sbin/swift-init"):
        monkeypatch.setattr(sys, "argv", [str(tmp_path / started)])
        found = program_path(SERVICE.program)
        assert os.path.normpath(found) == str(tmp_path / "current/bin" / SERVICE.program)


def test_limits_that_cannot_be_raised_are_named_with_both_numbers():
    class Fixed:
        def getrlimit(self, _kind):
            return 1024, 1024

        def setrlimit(self, _kind, _limits):
            raise ValueError("not allowed to raise maximum limit")

    said = []
    raise_limits(said.append, Fixed(), lambda: 1000)
    assert all(line.endswith("; run this as root") for line in said)
    raise_limits(said.append, Fixed(), lambda: 0)
    assert all("raise the hard limit" in line for line in said[2:])
    assert [line.partition(";")[0] for line in said[:2]] == [
        "WARNING: the limit of open files stays 1024, 32768 are needed",
        "WARNING: the limit of processes stays 1024, 8192 are needed",
    ]
