"""Errors of devices, and files of the wrong kind."""

import errno
import os

import pytest

from swift.platform.disk import Disk
from swift.platform.regularfiles import (
    IrregularFile,
    file_identity,
    is_blocking,
    is_device_error,
    move_irregular_file_aside,
    open_or_replace,
    open_regular,
    read_regular,
    read_through_links,
)
from test.support.disks import ODD, bounded, replace

FLAGS = {"read": os.O_RDONLY, "write": os.O_WRONLY, "append": os.O_WRONLY | os.O_APPEND | os.O_CREAT}


@pytest.fixture(params=sorted(set(ODD) - {"empty"}))
def odd(request, tmp_path):
    path = tmp_path / "f"
    replace(path, request.param)
    return path


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_what_is_no_file_is_refused_at_once_and_says_what_it_is(odd, flags):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(IrregularFile, match="is in the place of a file"):
        open_regular(Disk(), str(odd), flags)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_of_ours_is_made_anew_where_something_odd_was(odd):
    fd = open_or_replace(Disk(), str(odd), os.O_RDWR | os.O_CREAT)
    os.write(fd, b"ours")
    os.close(fd)
    assert read_regular(Disk(), str(odd)) == b"ours"
    # Nothing is lost that might have been in a directory.
    assert len([name for name in os.listdir(odd.parent) if name.startswith(".f.")]) == 1


def test_a_regular_file_is_never_moved_aside(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    move_irregular_file_aside(Disk(), str(tmp_path / "f"))
    assert os.listdir(tmp_path) == ["f"]


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_regular(Disk(), str(tmp_path / "f"), os.O_RDONLY)


def test_only_what_is_no_directory_is_in_the_way_of_one(tmp_path):
    disk = Disk()
    for kind in ODD:
        replace(tmp_path / kind, kind)
    (tmp_path / "link to a directory").symlink_to(tmp_path / "directory")
    found = {name for name in os.listdir(tmp_path) if is_blocking(disk, str(tmp_path / name))}
    assert found == set(ODD) - {"directory"} | {"target"}
    assert not is_blocking(disk, str(tmp_path / "none"))
    assert not is_blocking(disk, str(tmp_path / "empty/below"))


def test_errors_of_the_device_are_told_from_others():
    assert is_device_error(OSError(errno.EIO, "rot")) and is_device_error(OSError(errno.EROFS, "ro"))
    assert not is_device_error(OSError(errno.EMFILE, "too many"))
    assert not is_device_error(OSError(errno.ENOSPC, "full"))
    assert not is_device_error(IrregularFile(errno.EIO, "a FIFO"))
    assert not is_device_error(ValueError())


@pytest.mark.parametrize("kind", sorted(set(ODD) - {"link", "empty", "dangling-link"}))
def test_an_odd_file_of_an_operator_is_refused_without_waiting(tmp_path, kind):
    replace(tmp_path / "f", kind)
    os.symlink("f", tmp_path / "l")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("f", "l"):
        with bounded(), pytest.raises(OSError):
            read_through_links(str(tmp_path / name))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_of_an_operator_may_be_behind_a_link(tmp_path):
    (tmp_path / "f").write_bytes(b"ring")
    os.symlink("f", tmp_path / "l")
    assert read_through_links(str(tmp_path / "l")) == b"ring"


def test_a_file_of_the_same_age_behind_a_switched_link_has_another_identity(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).write_text("same size")
        os.utime(tmp_path / name, (1, 1))
    link = tmp_path / "link"
    link.symlink_to("first")
    identity = file_identity(str(link))
    assert identity == file_identity(str(link))
    link.unlink()
    link.symlink_to("second")
    assert identity != file_identity(str(link))
