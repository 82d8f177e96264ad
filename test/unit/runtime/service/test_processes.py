"""What /proc tells of processes, and which command of ours one is."""

import os
import subprocess
import sys

import pytest

from swift.runtime.service.processes import (
    RunningProcess,
    process,
    processes,
    program_name,
    shares_mounts,
)


def running(*words):
    return RunningProcess(7, 1, 7, words, 5.0)


@pytest.mark.parametrize(
    "words, name",
    [
        (("/usr/bin/swift-proxy-server", "x.conf"), "swift-proxy-server"),
        (("/venv/bin/python3.11", "/venv/bin/swift-object-server", "x.conf"), "swift-object-server"),
        (("python", "-m", "swift.cli.object_server", "x.conf"), "swift-object-server"),
        (("python", "-m", "swift.cli.daemon", "object-auditor", "x.conf"), "swift-object-auditor"),
        (("python", "-Wignore", "-u", "-m", "swift.cli.aio"), "swift-aio"),
        (("python", "-W", "ignore", "-X", "dev", "-m", "swift.cli.object_server"), "swift-object-server"),
        (("python", "-W", "ignore", "/venv/bin/swift-ring-builder"), "swift-ring-builder"),
        (("vim", "swift-object-server"), "vim"),
        (("python",), ""),
        (("python", "-m"), ""),
        (("python", "-c", "import swift-x"), ""),
        ((), ""),
    ],
)
def test_a_command_has_its_name_however_it_was_started(words, name):
    assert program_name(running(*words)) == name


@pytest.mark.parametrize(
    "module", ["http.server", "pytest", "swift_mirror", "tools.bench.s3", "venv", "swift"]
)
def test_a_module_that_is_no_command_of_ours_does_not_look_like_one(module):
    """Who does is ended by ``swift-orphans --kill``."""
    assert program_name(running("python3", "-m", module)) == module
    assert not program_name(running("python3", "-m", module)).startswith("swift-")


def test_this_process_is_found_with_its_words_and_parent():
    found = process(os.getpid())
    assert found.parent == os.getppid() and found.age_s >= 0
    assert os.path.basename(found.arguments[0]).startswith("python")
    assert os.getpid() in {each.pid for each in processes()}


def test_a_name_in_brackets_may_hold_anything(tmp_path):
    folder = tmp_path / "9"
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"a\0b c\0\xff\0")
    fields = ["S", "3", "9", "9", *["0"] * 15, "100", *["0"] * 20]
    (folder / "stat").write_text(f"9 (x) S 1 (y)) {' '.join(fields)}")
    (tmp_path / "uptime").write_text("1000.00 1.00")
    found = process(9, str(tmp_path))
    assert found.arguments == ("a", "b c", "\ufffd") and (found.parent, found.session) == (3, 9)


def test_one_that_has_ended_is_none():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert process(child.pid) is None
    assert process(2**22 + 1) is None


def test_processes_of_another_mount_namespace_are_told_apart(tmp_path):
    for name, target in (("self", "mnt:[1]"), ("7", "mnt:[1]"), ("8", "mnt:[2]")):
        (tmp_path / name / "ns").mkdir(parents=True)
        (tmp_path / name / "ns" / "mnt").symlink_to(target)
    assert [shares_mounts(pid, str(tmp_path)) for pid in (7, 8, 9)] == [True, False, False]
