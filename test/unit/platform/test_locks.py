"""Locks exclude each other between openers, in time, and leave no file in directories."""

from __future__ import annotations

import os
import threading

import pytest

from swift import green
from swift.base.errors import LockTimeout
from swift.platform.disk import Disk
from swift.platform.locks import file_lock, lock_directory


def test_a_held_file_lock_makes_others_time_out(tmp_path):
    path = str(tmp_path / ".lock")
    with file_lock(Disk(), path), pytest.raises(LockTimeout) as caught, file_lock(Disk(), path, 0.05):
        pass
    assert caught.value.path == path
    with file_lock(Disk(), path, 0.05):
        pass
    assert os.path.getsize(path) == 0


def test_a_directory_lock_is_granted_when_the_holder_closes_it(tmp_path):
    held = lock_directory(Disk(), str(tmp_path))
    with pytest.raises(LockTimeout):
        lock_directory(Disk(), str(tmp_path), 0.02)
    got = []
    waiter = threading.Thread(target=lambda: got.append(lock_directory(Disk(), str(tmp_path), 5)))
    waiter.start()
    os.close(held)
    waiter.join()
    os.close(got[0])
    assert os.listdir(tmp_path) == []


def test_a_directory_that_was_removed_while_waiting_is_not_locked(tmp_path):
    directory = tmp_path / "dir"
    directory.mkdir()
    held = lock_directory(Disk(), str(directory))
    outcome = []

    def wait():
        try:
            outcome.append(lock_directory(Disk(), str(directory), 5))
        except FileNotFoundError:
            outcome.append("gone")

    waiter = threading.Thread(target=wait)
    waiter.start()
    directory.rmdir()
    os.close(held)
    waiter.join()
    assert outcome == ["gone"]


def test_a_missing_directory_cannot_be_locked(tmp_path):
    with pytest.raises(FileNotFoundError):
        lock_directory(Disk(), str(tmp_path / "nope"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        lock_directory(Disk(), str(tmp_path / "file"))


def test_a_green_thread_that_waits_for_a_lock_lets_the_others_run(tmp_path):
    held = lock_directory(Disk(), str(tmp_path))
    waiter = green.spawn(lock_directory, Disk(), str(tmp_path), 30.0)
    green.sleep(0)
    assert not waiter.done
    os.close(held)
    os.close(waiter.wait())
