"""A run that ends removes what it made; one that was killed leaves it to the next, and nobody else's goes."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swift.cli.load import main
from swift.load.failures.cleanup import RECORD, StaleRun, remove_run, run_folder, stale_runs

#: A run: it makes its folder, starts a child with a path in it that no signal but SIGKILL ends, and waits.
RUN = """
import subprocess, sys, time
from pathlib import Path
from swift.load.failures.cleanup import run_folder
from swift.aio.xfs import exit_on_sigterm
from swift.aio.xfs import make_image, mount_image
with exit_on_sigterm(), run_folder(Path(sys.argv[1])) as folder:
    if sys.argv[2] == "xfs":
        (folder / "d 1").mkdir()
        make_image(folder / "a.img", 300 << 20)
        mount_image(folder / "a.img", folder / "d 1")
    ignoring = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", ignoring, f"{folder}/etc/x.conf"], stdout=subprocess.PIPE)
    child.stdout.readline()
    print(folder, child.pid, flush=True)
    time.sleep(60)
"""
CAN_MOUNT = (
    os.geteuid() == 0
    and all(map(shutil.which, ("mkfs.xfs", "losetup")))
    and Path("/dev/loop-control").exists()
)


@pytest.fixture
def start(tmp_path):
    """``start(kind)`` begins a run below ``tmp_path``; the process, its folder and its child."""
    begun = []

    def start(kind="plain"):
        words = [sys.executable, "-c", RUN, str(tmp_path), kind]
        run = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        begun.append(run)
        folder, child = run.stdout.readline().split()
        return run, Path(folder), int(child)

    yield start
    for run in begun:
        run.kill()
        run.wait()
        run.stdout.close()
    for left in stale_runs(tmp_path):
        remove_run(left)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def mounts():
    return Path("/proc/self/mountinfo").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_end_leaves_nothing(start, tmp_path, number):
    run, folder, child = start()
    assert stale_runs(tmp_path) == []
    run.send_signal(number)
    run.wait(20)
    assert not folder.exists()
    assert not is_alive(child)


def test_what_a_killed_run_left_is_found_and_removed(start, tmp_path, capsys):
    run, folder, child = start()
    run.kill()
    run.wait()
    os.kill(child, signal.SIGSTOP)
    assert stale_runs(tmp_path) == [StaleRun(folder, run.pid)]
    assert main(["fail", "--clean", "--root", str(tmp_path)]) == 0
    assert f"removed {folder} of process {run.pid}, which is gone" in capsys.readouterr().out.replace(
        "\n", ""
    )
    assert not folder.exists()
    assert not is_alive(child)
    assert main(["fail", "--clean", "--root", str(tmp_path)]) == 0
    assert "nothing was left behind" in capsys.readouterr().out


@pytest.mark.skipif(not CAN_MOUNT, reason="needs root, loop devices and mkfs.xfs")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_mounts_of_a_run_go_however_it_ends(start, tmp_path, number):
    run, folder, _child = start("xfs")
    assert f"{folder}/d\\0401 " in mounts()
    run.send_signal(number)
    run.wait(20)
    if number == signal.SIGKILL:
        assert str(folder) in mounts()
        (left,) = stale_runs(tmp_path)
        remove_run(left)
    assert str(folder) not in mounts()
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    assert str(folder) not in loops
    assert not folder.exists()


def test_a_run_that_lives_is_left_alone(start, tmp_path, capsys):
    _run, folder, child = start()
    assert main(["fail", "--clean", "--root", str(tmp_path)]) == 0
    assert (folder / RECORD).exists()
    assert is_alive(child)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"-5", b"9" * 100, "²".encode()])
def test_a_record_that_says_nothing_is_that_of_an_unknown_process(tmp_path, content):
    folder = tmp_path / "swift-load-x"
    folder.mkdir(mode=0o700)
    (folder / RECORD).write_bytes(content)
    (found,) = stale_runs(tmp_path)
    assert found.folder == folder
    remove_run(found)
    assert not folder.exists()


def test_what_others_put_there_is_no_leftover(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o700)
    (precious / RECORD).write_text("1")
    (tmp_path / "swift-load-link").symlink_to(precious)
    for name, mode in (("open", 0o777), ("bare", 0o700), ("linked", 0o700)):
        (tmp_path / f"swift-load-{name}").mkdir()
        (tmp_path / f"swift-load-{name}").chmod(mode)
    (tmp_path / "swift-load-open" / RECORD).write_text("1")
    (tmp_path / "swift-load-linked" / RECORD).symlink_to(precious / RECORD)
    (tmp_path / "swift-load-file").write_text("1")
    assert stale_runs(tmp_path) == []


def test_a_run_removes_what_it_made_when_it_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), run_folder(tmp_path) as folder:
        (folder / "a" / "b").mkdir(parents=True)
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_is_not_there_is_named(capsys):
    assert main(["fail", "--clean", "--root", "/no/such"]) == 1
    assert capsys.readouterr().err == "swift-load: --root /no/such: there is no such directory\n"
