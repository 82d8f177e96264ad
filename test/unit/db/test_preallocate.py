"""Preallocation steps."""

import os

import pytest

from swift.base.errors import NoSpace
from swift.db.database import Preallocator, target_size
from swift.platform.disk import Disk

MB = 1_000_000


@pytest.mark.parametrize(
    "size, target",
    [(0, 1), (0.4, 1), (0.6, 2), (1.6, 5), (4.4, 5), (9, 10), (20, 25), (30, 50), (49.6, 100), (120, 150)],
)
def test_the_next_step_is_taken_half_a_megabyte_early(size, target):
    assert target_size(int(size * MB)) == target * MB


def test_it_allocates_once_per_step(tmp_path):
    calls = []

    class Counting(Disk):
        def preallocate(self, fd, size_bytes):
            calls.append(size_bytes)

    path = tmp_path / "x.db"
    path.write_bytes(b"x")
    keeper = Preallocator(Counting(), str(path))
    keeper.grow()
    keeper.grow()
    os.truncate(path, MB)
    keeper.grow()
    keeper.close()
    assert calls == [MB, 2 * MB]


def test_a_full_disk_is_no_space(tmp_path):
    class Full(Disk):
        def preallocate(self, fd, size_bytes):
            raise OSError(28, "full")

    path = tmp_path / "x.db"
    path.write_bytes(b"x")
    with pytest.raises(NoSpace):
        Preallocator(Full(), str(path)).grow()
