"""The reserve is kept as operators configured it."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest

from swift.base.errors import NoSpace
from swift.config.kinds import Reserve
from swift.platform.devices import PREALLOCATE_FROM_BYTES, LeastRoom, SpaceGuard
from swift.platform.disk import Disk


class SizedDisk(Disk):
    """A disk of 1000 blocks of 100 bytes, some of them free."""

    def __init__(self, free_blocks, code=0, *, inodes=(1000, 1000)):
        self.free = free_blocks
        self.inodes = inodes
        self.code = code
        self.preallocated = []

    def statvfs(self, _path):
        files, free = self.inodes
        return SimpleNamespace(f_frsize=100, f_blocks=1000, f_bavail=self.free, f_files=files, f_favail=free)

    def preallocate(self, _fd, size):
        if self.code:
            raise OSError(self.code, os.strerror(self.code))
        self.preallocated.append(size)


def guard(free, reserve, **more):
    return SpaceGuard(SizedDisk(free), reserve, **more)


@pytest.mark.parametrize(
    ("free", "reserve", "size", "fits"),
    [
        (20, Reserve(1000, False), 999, True),
        (20, Reserve(1000, False), 1000, False),
        (20, Reserve(1, True), 999, True),
        (20, Reserve(1, True), 1000, False),
        (10, Reserve(1000, False), None, True),
        (9, Reserve(1000, False), None, False),
        (9, Reserve(1000, False), 0, False),
        (1, Reserve(0, False), 99, True),
        (1, Reserve(0, False), 100, False),
    ],
)
def test_a_write_must_leave_the_reserve_free(free, reserve, size, fits):
    if fits:
        guard(free, reserve).check("/x", size)
    else:
        with pytest.raises(NoSpace):
            guard(free, reserve).check("/x", size)


LEAST = LeastRoom(size_bytes=5000, inodes=20, parts=10)
SMALLER = LeastRoom(size_bytes=50_000, inodes=500, parts=25)


@pytest.mark.parametrize("is_enabled", (False, True))
@pytest.mark.parametrize(
    ("free", "reserve", "size", "least", "fits"),
    [
        (52, None, 199, LEAST, True),
        (52, None, 200, LEAST, False),
        (52, Reserve(0, False), 200, LEAST, False),
        # A part of a small filesystem.
        (42, None, 199, SMALLER, True),
        (42, None, 200, SMALLER, False),
        (50, None, None, LEAST, True),
        (49, None, None, LEAST, False),
    ],
)
def test_the_least_room_stays_free_whatever_is_configured(free, reserve, size, least, fits, is_enabled):
    space = guard(free, reserve, enabled=is_enabled)
    if fits:
        space.check("/x", size, least=least)
    else:
        with pytest.raises(NoSpace):
            space.check("/x", size, least=least)


@pytest.mark.parametrize(
    ("inodes", "least", "fits"),
    [
        ((1000, 20), LEAST, True),
        ((1000, 19), LEAST, False),
        ((1000, 39), SMALLER, False),
        ((0, 0), LEAST, True),
    ],
)
def test_some_inodes_stay_free_where_they_are_counted(inodes, least, fits):
    space = SpaceGuard(SizedDisk(900, inodes=inodes), None)
    if fits:
        space.check("/x", 100, least=least)
    else:
        with pytest.raises(NoSpace, match="inodes"):
            space.check("/x", 100, least=least)


def test_turned_off_means_no_check_and_no_preallocation():
    off = guard(0, Reserve(1000, False), enabled=False)
    off.check("/x", 10**9)
    off.preallocate(0, 10**9)
    assert off._disk.preallocated == []


def test_only_large_files_of_known_size_are_preallocated():
    space = guard(100, None)
    for size in (None, 0, PREALLOCATE_FROM_BYTES - 1, PREALLOCATE_FROM_BYTES):
        space.preallocate(0, size)
    assert space._disk.preallocated == [PREALLOCATE_FROM_BYTES]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_or_over_quota_filesystem_has_no_space(code):
    with pytest.raises(NoSpace):
        SpaceGuard(SizedDisk(1, code), None).preallocate(0, 1 << 20)


def test_a_filesystem_that_cannot_preallocate_does_without():
    SpaceGuard(SizedDisk(1, errno.EOPNOTSUPP), None).preallocate(0, 1 << 20)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        SpaceGuard(SizedDisk(1, errno.EIO), None).preallocate(0, 1 << 20)


def test_preallocation_keeps_the_length_and_takes_the_blocks(tmp_path):
    path = tmp_path / "file"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    Disk().preallocate(fd, 1 << 20)
    assert os.fstat(fd).st_size == 0
    assert os.fstat(fd).st_blocks * 512 >= 1 << 20
    os.close(fd)
