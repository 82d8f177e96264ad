"""Publishing keeps its order of syncs, and a failed sync leaves no new name."""

from __future__ import annotations

import errno
import os

import pytest

from swift.platform.disk import Disk
from swift.platform.durable import (
    UnnamedFile,
    make_directories,
    open_temporary,
    publish,
    rename_durably,
    replace_file,
    write_all,
)
from swift.platform.syncing import SingleSyncs, moments


class Recorder(Disk):
    """Writes down what matters for order, and fails the n-th fsync."""

    def __init__(self, fail_fsync=0):
        self.log = []
        self.fail_fsync = fail_fsync

    def fsync(self, fd):
        self.log.append(("fsync", os.path.basename(os.readlink(f"/proc/self/fd/{fd}")).partition(" ")[0]))
        if sum(step[0] == "fsync" for step in self.log) == self.fail_fsync:
            raise OSError(errno.EIO, "no")
        os.fsync(fd)

    def link_unnamed(self, fd, name, *, dir_fd):
        self.log.append(("name", name))
        super().link_unnamed(fd, name, dir_fd=dir_fd)

    def rename(self, *args, **kwargs):
        self.log.append(("name", os.path.basename(args[1])))
        os.rename(*args, **kwargs)


def publish_in(disk, root, name="new", *, unsynced=(), replace=False, temporary=False):
    directory = str(root / "dir")
    os.makedirs(directory, exist_ok=True)
    file = (
        open_temporary(disk, str(root))
        if temporary
        else UnnamedFile(disk, disk.open_unnamed(directory), None)
    )
    dir_fd = os.open(directory, os.O_RDONLY)
    try:
        write_all(disk, file.fd, b"content")
        publish(
            disk,
            SingleSyncs(disk),
            file,
            name,
            directory=directory,
            dir_fd=dir_fd,
            dir_opened=next(moments),
            unsynced=unsynced,
            announce=lambda: disk.log.append(("announce", "")),
            replace=replace,
        )
    finally:
        file.discard()
        os.close(dir_fd)


def test_content_and_ancestors_are_durable_before_the_name_and_the_name_before_success(tmp_path):
    disk = Recorder()
    publish_in(disk, tmp_path, unsynced=[str(tmp_path)])
    assert [step[0] for step in disk.log] == ["fsync", "fsync", "announce", "name", "fsync"]
    assert [step[1] for step in disk.log][1] == tmp_path.name
    assert disk.log[-1] == ("fsync", "dir")
    assert (tmp_path / "dir/new").read_bytes() == b"content"


@pytest.mark.parametrize("failing", [1, 2, 3])
@pytest.mark.parametrize("temporary", [False, True])
def test_a_failed_sync_leaves_no_name_and_no_temporary_file(tmp_path, failing, temporary):
    disk = Recorder(failing)
    with pytest.raises(OSError, match="no"):
        publish_in(disk, tmp_path, unsynced=[str(tmp_path)], temporary=temporary)
    assert os.listdir(tmp_path / "dir") == []
    assert os.listdir(tmp_path) == ["dir"]


def test_an_existing_name_is_replaced_without_a_moment_in_which_it_is_missing(tmp_path):
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/new").write_bytes(b"old")
    disk = Recorder()
    publish_in(disk, tmp_path, replace=True)
    names = [name for verb, name in disk.log if verb == "name"]
    assert names[0].startswith(".new.")
    assert names[1] == "new"
    assert os.listdir(tmp_path / "dir") == ["new"]
    assert (tmp_path / "dir/new").read_bytes() == b"content"


def test_a_failed_replacement_removes_its_spare_name(tmp_path):
    class NoRename(Recorder):
        def rename(self, *_args, **_kwargs):
            raise OSError(errno.EIO, "no")

    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/new").write_bytes(b"old")
    with pytest.raises(OSError, match="no"):
        publish_in(NoRename(), tmp_path, replace=True)
    assert os.listdir(tmp_path / "dir") == ["new"]
    assert (tmp_path / "dir/new").read_bytes() == b"old"


def test_a_removed_directory_does_not_swallow_the_file(tmp_path):
    disk = Disk()
    directory = tmp_path / "dir"
    directory.mkdir()
    file = UnnamedFile(disk, disk.open_unnamed(str(directory)), None)
    dir_fd = os.open(directory, os.O_RDONLY)
    directory.rmdir()
    directory.mkdir()
    with pytest.raises(FileNotFoundError):
        publish(
            disk,
            SingleSyncs(disk),
            file,
            "new",
            directory=str(directory),
            dir_fd=dir_fd,
            dir_opened=next(moments),
            unsynced=(),
            announce=lambda: None,
            replace=False,
        )
    file.discard()
    os.close(dir_fd)
    assert os.listdir(directory) == []


def test_made_directories_are_reported_from_the_leaf_up(tmp_path):
    below = str(tmp_path)
    assert make_directories(Disk(), f"{below}/a/b/c", below=below) == [f"{below}/a/b", f"{below}/a", below]
    assert make_directories(Disk(), f"{below}/a/b/d", below=below) == [f"{below}/a/b"]
    assert make_directories(Disk(), f"{below}/a/b/d", below=below) == []


def test_a_vanished_device_is_not_made_again(tmp_path):
    device = f"{tmp_path}/sda"
    with pytest.raises(FileNotFoundError):
        make_directories(Disk(), f"{device}/objects/1", below=device)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("failing", [1, 2])
def test_a_file_that_could_not_be_replaced_durably_is_the_old_or_the_new_one(tmp_path, failing):
    path = tmp_path / "file"
    replace_file(Disk(), str(path), b"old")
    with pytest.raises(OSError, match="no"):
        replace_file(Recorder(failing), str(path), b"new")
    assert path.read_bytes() == (b"old" if failing == 1 else b"new")
    assert os.listdir(tmp_path) == ["file"]


def test_renaming_durably_syncs_the_directory(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    disk = Recorder()
    dir_fd = os.open(tmp_path, os.O_RDONLY)
    rename_durably(disk, SingleSyncs(disk), "a", "b", dir_fd=dir_fd)
    os.close(dir_fd)
    assert [step[0] for step in disk.log] == ["name", "fsync"]
    assert os.listdir(tmp_path) == ["b"]


def test_short_writes_are_continued():
    class Stutter(Disk):
        def __init__(self):
            self.got = b""

        def write(self, _fd, data):
            self.got += bytes(data[:3])
            return len(data[:3])

    disk = Stutter()
    write_all(disk, 0, b"0123456789")
    assert disk.got == b"0123456789"


def test_a_forgotten_file_gives_its_descriptor_back(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    file = open_temporary(Disk(), str(tmp_path))
    del file
    assert len(os.listdir("/proc/self/fd")) == before
    assert os.listdir(tmp_path) == []


class Hasher(Disk):
    """Removes the empty parent of a new directory a few times, as one who tidies up does."""

    def __init__(self, times):
        self.times = times

    def mkdir(self, path, *args):
        if self.times and path.endswith("/c") and os.path.isdir(os.path.dirname(path)):
            self.times -= 1
            os.rmdir(os.path.dirname(path))
        os.mkdir(path, *args)


def test_a_parent_that_is_removed_between_two_steps_is_made_again(tmp_path):
    made = make_directories(Hasher(3), f"{tmp_path}/a/b/c", below=str(tmp_path))
    assert os.path.isdir(tmp_path / "a/b/c")
    assert made[:2] == [f"{tmp_path}/a/b", f"{tmp_path}/a"]


def test_a_parent_that_is_removed_for_ever_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        make_directories(Hasher(1000), f"{tmp_path}/a/b/c", below=str(tmp_path))
