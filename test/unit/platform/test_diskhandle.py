"""The handle of a disk makes each call where calls to its device run."""

from __future__ import annotations

from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle


def test_each_call_runs_where_the_device_says(tmp_path):
    ran = []

    def run(function, *args):
        ran.append(args)
        return function(*args)

    handle = DiskHandle(Disk(), run)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    (tmp_path / "old").write_bytes(b"x")
    handle.rename(old, new)
    assert handle.listdir(str(tmp_path)) == ["new"] and handle.stat(new).st_size == 1
    assert handle.is_directory(str(tmp_path)) and not handle.is_directory(new)
    assert handle.statvfs(str(tmp_path)).f_frsize > 0
    handle.unlink(new)
    assert len(ran) == 7


def test_a_function_of_a_disk_is_one_call_with_the_disk(tmp_path):
    disk, ran = Disk(), []

    def run(function, *args):
        ran.append(args)
        return function(*args)

    assert DiskHandle(disk, run).call(lambda given, path: (given, path), "p") == (disk, "p")
    assert ran == [(disk, "p")]
