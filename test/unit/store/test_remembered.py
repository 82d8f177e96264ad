"""Hash directories that a process keeps, and the changes after which it reads them again."""

import os

import pytest

from swift.base.entity import EntityPath
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.api import EXPIRED, LIVE, ObjectKey, ReadOptions
from swift.store.metadata import write_metadata
from swift.store.reader import list_names, load
from swift.store.remembered import SETTLED_S, KnownDirectories

KEY = ObjectKey("sda", "7", Policy(0, "gold"), EntityPath("a", "c", "o"), "0" * 32)
OPTIONS = ReadOptions(1000.0)
DATA = "0000000100.00000.data"


class Later(Disk):
    """A disk whose clock is ahead of the times of files, and which has all files in memory unless told."""

    def __init__(self, ahead_s=10.0):
        self.ahead_s = ahead_s
        self.in_memory = True
        self.opened = []

    def now_ns(self):
        return Disk.now_ns() + int(self.ahead_s * 1e9)

    def open_cached(self, path, flags, **where):
        if not self.in_memory:
            return None
        self.opened.append(path)
        return os.open(path, flags, **where)


def write(directory, name=DATA, body=b"body", **more):
    path = directory / name
    path.write_bytes(body)
    stamp = name.partition(".data")[0].partition(".meta")[0]
    metadata = {"name": "/a/c/o", "X-Timestamp": stamp, "Content-Type": "text/plain", "ETag": "e", **more}
    if name.endswith(".data"):
        metadata["Content-Length"] = str(len(body))
    write_metadata(Disk(), str(path), metadata)


@pytest.fixture
def directory(tmp_path):
    write(tmp_path)
    return tmp_path


def read(known, disk, directory, *, open_data=True):
    """Read as a thread does."""
    seen = known.watch(str(directory))
    names = list_names(disk, str(directory))
    keep = None if seen is None else seen.metadata
    loaded = load(disk, str(directory), names, KEY, OPTIONS, open_data=open_data, keep=keep)
    if loaded.fd is not None:
        os.close(loaded.fd)
    if seen is not None:
        seen.end(names, loaded)
    return loaded.state


def recall(known, directory, options=OPTIONS):
    """Return state and body as the event loop reads them; None if it cannot."""
    loaded = known.load(str(directory), KEY, options, open_data=True)
    if loaded is None:
        return None
    body = os.read(loaded.fd, 100)
    os.close(loaded.fd)
    return loaded.state, body


@pytest.fixture
def disk():
    return Later()


@pytest.fixture
def known(disk, directory):
    known = KnownDirectories(disk)
    for _ in range(2):
        read(known, disk, directory)
    return known


def test_what_is_read_twice_is_known(known, disk, directory):
    assert recall(known, directory) == (read(known, disk, directory), b"body")
    assert disk.opened == [str(directory), DATA]


def test_what_is_read_once_is_not_kept(disk, directory):
    known = KnownDirectories(disk)
    read(known, disk, directory)
    assert recall(known, directory) is None


def test_what_changed_just_now_is_not_kept(directory):
    """Another change in the same tick of the clock would not show."""
    disk = Later(ahead_s=SETTLED_S / 2)
    known = KnownDirectories(disk)
    for _ in range(3):
        read(known, disk, directory)
    assert recall(known, directory) is None


def test_nothing_is_read_from_a_device(known, disk, directory):
    disk.in_memory = False
    assert recall(known, directory) is None
    disk.in_memory = True
    assert recall(known, directory) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda directory: write(directory, "0000000200.00000.data", b"newer"),
        lambda directory: write(directory, "0000000200.00000.meta", b""),
        lambda directory: (directory / "0000000300.00000.ts").write_bytes(b""),
        lambda directory: (directory / DATA).unlink(),
        lambda directory: os.truncate(directory / DATA, 2),
        lambda directory: (directory / DATA).write_bytes(b"BODY"),
        lambda directory: write_metadata(Disk(), str(directory / DATA), {"name": "/a/c/other"}),
        lambda directory: (directory.rename(f"{directory}-away"), directory.mkdir()),
    ],
)
def test_every_change_of_files_is_noticed(known, directory, change):
    change(directory)
    assert recall(known, directory) is None


def test_a_missing_directory_is_not_known(known, disk, directory):
    directory.rename(f"{directory}-away")
    disk.open_cached = Disk().open_cached
    assert recall(known, directory) is None


def test_metadata_of_posts_is_merged_again(disk, directory):
    write(directory, "0000000200.00000.meta", b"", **{"X-Object-Meta-Colour": "blue"})
    known = KnownDirectories(disk)
    for _ in range(2):
        state = read(known, disk, directory)
    for _ in range(2):
        assert recall(known, directory) == (state, b"body")
    assert state.metadata["X-Object-Meta-Colour"] == "blue"


def test_expiry_is_judged_at_each_read(tmp_path, disk):
    write(tmp_path, **{"X-Delete-At": "2000"})
    known = KnownDirectories(disk)
    for _ in range(2):
        read(known, disk, tmp_path)
    assert recall(known, tmp_path)[0].kind == LIVE
    assert recall(known, tmp_path, ReadOptions(2000.0))[0].kind == EXPIRED


def test_the_kernel_opens_what_it_has_in_memory(directory):
    fd = Disk().open_cached(str(directory / DATA), os.O_RDONLY)
    if fd is not None:
        assert os.read(fd, 10) == b"body"
        os.close(fd)
    assert Disk().open_cached(str(directory / "none"), os.O_RDONLY) is None
