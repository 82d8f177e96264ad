"""Mapped files whose pages cannot be read."""

import mmap
import os
import signal
import subprocess
import sys

import pytest

from swift.platform.mapguard import MapGuard


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mapped"
    path.write_bytes(b"a" * mmap.PAGESIZE * 4)
    return path


@pytest.fixture
def mapped(file):
    with open(file, "r+b") as stream, mmap.mmap(stream.fileno(), 0) as view:
        yield view


def test_a_page_that_cannot_be_read_is_another_one_and_the_guard_says_so(file, mapped):
    guard = MapGuard(str(file), b"lost")
    try:
        assert mapped[:1] == b"a" and not guard.has_failed
        os.truncate(file, mmap.PAGESIZE)
        at = 2 * mmap.PAGESIZE
        assert mapped[at + 10 : at + 11] == b"\0"
        assert guard.has_failed
        assert mapped[at : at + 5] == b"lost\0"
        assert mapped[:1] == b"a"
    finally:
        guard.release()


def test_a_link_to_the_file_will_do(file, mapped, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file)
    guard = MapGuard(str(link))
    os.truncate(file, 0)
    assert mapped[:1] == b"\0"
    assert guard.has_failed
    guard.release()


def test_what_is_not_mapped_cannot_be_guarded(tmp_path):
    path = tmp_path / "other"
    path.write_bytes(b"")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="not mapped"):
        MapGuard(str(path))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_device_that_took_everything_has_lost_nothing(file, mapped):
    guard = MapGuard(str(file))
    mapped[:4] = b"some"
    mapped.flush()
    assert not guard.has_lost_writes()
    guard.release()


DYING = """
import mmap, os, sys, threading
from swift.platform.mapguard import MapGuard
file = open(sys.argv[1], "r+b")
other = open(sys.argv[2], "r+b")
mine, theirs = mmap.mmap(file.fileno(), 0), mmap.mmap(other.fileno(), 0)
guard = MapGuard(sys.argv[1])
os.truncate(sys.argv[1], 0)
reader = threading.Thread(target=lambda: mine[0])
reader.start()
reader.join()
print(guard.has_failed, flush=True)
if sys.argv[3] == "released":
    guard.release()
    mine[mmap.PAGESIZE]
elif sys.argv[3] == "killed":
    os.kill(os.getpid(), 7)
else:
    os.truncate(sys.argv[2], 0)
    theirs[0]
print("lives")
"""


@pytest.mark.process
@pytest.mark.parametrize("how", ["foreign", "released", "killed"])
def test_any_other_such_signal_ends_the_process_as_ever(tmp_path, how):
    paths = [tmp_path / "mine", tmp_path / "other"]
    for path in paths:
        path.write_bytes(b"a" * mmap.PAGESIZE * 2)
    done = subprocess.run(
        [sys.executable, "-c", DYING, *paths, how], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.returncode) == ("True\n", -signal.SIGBUS), done.stderr
