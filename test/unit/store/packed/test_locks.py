"""swift/store/packed/locks.py: one holder of an object at a time, among threads and openings."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from swift.base.errors import LockTimeout
from swift.platform.disk import Disk
from swift.platform.locks import LOCK_TIMEOUT_S
from swift.store.packed.locks import ObjectLocks


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "lock")


@contextmanager
def hold(locks, number, timeout_s=LOCK_TIMEOUT_S):
    locks.acquire(number, timeout_s)
    try:
        yield
    finally:
        locks.release(number)


def test_two_openings_exclude_each_other(path):
    """An opening stands for a process."""
    one, other = ObjectLocks(Disk(), path), ObjectLocks(Disk(), path)
    with hold(one, 5):
        with pytest.raises(LockTimeout), hold(other, 5, 0.0):
            pass
        with hold(other, 6, 0.0):
            pass
    with hold(other, 5, 0.0):
        pass


def test_an_opening_excludes_its_own_threads(path):
    locks = ObjectLocks(Disk(), path)
    with hold(locks, 5), pytest.raises(LockTimeout), hold(locks, 5, 0.0):
        pass


def test_a_waiter_gets_the_lock_when_it_is_given_back(path):
    one, other = ObjectLocks(Disk(), path), ObjectLocks(Disk(), path)
    one.acquire(5)
    got = []
    thread = threading.Thread(target=lambda: got.append(other.acquire(5)))
    thread.start()
    one.release(5)
    thread.join(10)
    assert got == [None]
    with pytest.raises(LockTimeout):
        one.acquire(5, 0.0)


def test_a_waiter_that_gave_up_leaves_nothing_behind(path):
    one, other = ObjectLocks(Disk(), path), ObjectLocks(Disk(), path)
    with hold(one, 5), pytest.raises(LockTimeout):
        other.acquire(5, 0.0)
    other.acquire(5, 0.0)


def test_closing_ends_all_locks(path):
    one, other = ObjectLocks(Disk(), path), ObjectLocks(Disk(), path)
    one.acquire(5)
    one.close()
    other.acquire(5, 0.0)


def test_an_error_of_the_device_is_told_and_leaves_no_lock(path):
    class Failing(Disk):
        is_failing = True

        def lock_byte(self, fd, offset):
            if self.is_failing:
                raise OSError(5, "no")
            return super().lock_byte(fd, offset)

    disk = Failing()
    locks = ObjectLocks(disk, path)
    with pytest.raises(OSError, match="no"):
        locks.acquire(5)
    disk.is_failing = False
    locks.acquire(5, 0.0)


def test_numbers_up_to_2_to_the_62_are_locked(path):
    one, other = ObjectLocks(Disk(), path), ObjectLocks(Disk(), path)
    with hold(one, (1 << 62) - 1), pytest.raises(LockTimeout):
        other.acquire((1 << 62) - 1, 0.0)
