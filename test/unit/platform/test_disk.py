"""The real disk does what a store relies on."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from swift.platform.disk import Disk


def test_an_unnamed_file_appears_only_when_it_is_linked(tmp_path):
    disk = Disk()
    fd = disk.open_unnamed(str(tmp_path))
    disk.write(fd, b"content")
    assert os.listdir(tmp_path) == []
    dir_fd = os.open(tmp_path, os.O_RDONLY)
    disk.link_unnamed(fd, "named", dir_fd=dir_fd)
    disk.close(fd)
    os.close(dir_fd)
    assert (tmp_path / "named").read_bytes() == b"content"


def test_closing_never_raises():
    Disk().close(1_000_000)


def test_cached_reading_gives_everything_or_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5000)
    fd = os.open(path, os.O_RDONLY)
    assert Disk().read_cached(fd, 5000) in (b"x" * 5000, None)
    assert Disk().read_cached(fd, 5001) is None
    os.close(fd)


def test_beginning_to_write_is_a_hint_that_never_fails(tmp_path):
    disk = Disk()
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 5000)
    disk.start_writeback(fd, 0, 5000)
    disk.start_writeback(fd, 10_000, 5000)
    assert os.pread(fd, 6000, 0) == b"x" * 5000
    os.close(fd)
    disk.start_writeback(fd, 0, 1)


@pytest.mark.parametrize(
    ("release", "told"),
    [("5.16.20-generic", False), ("5.17.0", True), ("6.1.0-18-amd64", True), ("4.19", False), ("odd", False)],
)
def test_shared_syncs_need_a_kernel_that_tells_of_all_failed_writes(monkeypatch, release, told):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    assert Disk().tells_failures is told
