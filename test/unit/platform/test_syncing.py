"""Syncs are shared by those who wait at the same moment, and nobody is told of a sync that was not made."""

import errno
import os
import threading
import time

import pytest

from swift.green import Event, gather, sleep, spawn
from swift.platform.disk import Disk
from swift.platform.syncing import (
    DIRTY_EACH,
    DIRTY_FOR_S,
    LONG_S,
    PENALTY_S,
    SharedSyncs,
    SingleSyncs,
    moments,
)
from swift.runtime.diskcalls import run_inline


class Recorder(Disk):
    """Counts syncs; descriptors are the caller's own numbers."""

    def __init__(self):
        self.singles = []
        self.filesystems = []
        self.copies = {}
        self.dirty = 0
        self.failure = None
        self.on_sync = lambda: None

    def fsync(self, fd):
        self.singles.append(self.copies.get(fd, fd))
        if self.failure is not None:
            raise self.failure

    def open(self, path, _flags):
        return path

    def close(self, fd):
        self.copies.pop(fd, None)

    def duplicate(self, fd):
        copy = 1000 + fd
        self.copies[copy] = fd
        return copy

    def sync_filesystem(self, fd):
        self.filesystems.append(self.copies.get(fd, fd))
        self.on_sync()
        if self.failure is not None:
            raise self.failure

    def dirty_bytes(self):
        return self.dirty


class Watch:
    def __init__(self):
        self.now = 50.0

    def __call__(self):
        return self.now

    def takes(self, seconds):
        self.now += seconds


@pytest.fixture
def disk():
    return Recorder()


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture
def syncs(disk, watch):
    return SharedSyncs(disk, run=run_inline, monotonic=watch)


def settle_all(syncs, fds, directories=("d", "e")):
    """Everybody at once; what each was told: None or the error."""

    def settle(fd, moment):
        try:
            syncs.make_durable(fd, moment, directories)
        except OSError as error:
            return error
        return None

    opened = {fd: next(moments) for fd in sorted(fds)}
    return gather([lambda fd=fd: settle(fd, opened[fd]) for fd in fds])


def test_those_who_wait_at_the_same_moment_share_one_sync_of_the_filesystem(disk, syncs):
    assert settle_all(syncs, [1, 2, 3]) == [None] * 3
    assert len(disk.filesystems) == 1
    assert disk.singles == []
    assert disk.copies == {}


def test_the_filesystem_is_asked_through_what_was_opened_first_because_it_hears_of_every_failure(disk, syncs):
    settle_all(syncs, [3, 1, 2])
    assert disk.filesystems == [1]


def test_a_single_sync_is_not_worth_one_of_the_filesystem(disk, syncs):
    assert settle_all(syncs, [7], ()) == [None]
    assert (disk.singles, disk.filesystems) == ([7], [])


def test_a_new_object_alone_is_worth_one(disk, syncs):
    settle_all(syncs, [7])
    assert (disk.singles, disk.filesystems) == ([], [7])


def test_a_failure_is_everybodys(disk, syncs):
    disk.failure = OSError(errno.EIO, "no")
    told = settle_all(syncs, [1, 2])
    assert [error.errno for error in told] == [errno.EIO] * 2
    assert told[0] is not told[1]


def test_a_failed_single_sync_is_its_owners_alone(disk, syncs):
    disk.dirty = 1 << 40

    def fsync(fd):
        if disk.copies.get(fd) == 2:
            raise OSError(errno.ENOSPC, "full")

    disk.fsync = fsync
    assert [error and error.errno for error in settle_all(syncs, [1, 2, 3])] == [None, errno.ENOSPC, None]


def test_a_sync_that_ends_unforeseen_is_no_success(disk, syncs):
    def on_sync():
        raise RuntimeError("a bug")

    disk.on_sync = on_sync
    assert all(isinstance(error, OSError) for error in settle_all(syncs, [1, 2]))
    disk.on_sync = lambda: None
    assert settle_all(syncs, [1, 2]) == [None] * 2


def held_back(disk):
    """Syncs that wait in the midst of it; what tells that one has begun, and what lets it go on."""
    under_way, go_on = Event(), Event()

    def run(function, *args):
        under_way.set()
        go_on.wait()
        return function(*args)

    return SharedSyncs(disk, run=run), under_way, go_on


def test_who_comes_during_a_sync_waits_for_the_next_one(disk):
    syncs, under_way, go_on = held_back(disk)
    first = spawn(settle_all, syncs, [1, 2])
    under_way.wait()
    second = spawn(settle_all, syncs, [3, 4])
    sleep()
    assert not second.done
    go_on.set()
    assert first.wait() == second.wait() == [None, None]
    assert disk.filesystems == [1, 3]


def test_who_gives_up_before_the_sync_is_left_out_of_it(disk, syncs):
    tasks = [spawn(syncs.make_durable, fd, next(moments), ("d", "e")) for fd in (1, 2)]
    spawn(tasks[0].kill)
    tasks[1].wait()
    assert disk.filesystems == [2]


def test_who_gives_up_during_its_sync_may_close_its_descriptor(disk):
    syncs, under_way, go_on = held_back(disk)
    task = spawn(syncs.make_durable, 7, next(moments))
    under_way.wait()
    task.kill()
    sleep()
    assert task.done
    # The sync goes on with a copy of its own.
    assert list(disk.copies.values()) == [7]
    go_on.set()
    sleep()
    assert (disk.singles, disk.copies) == ([7], {})


def test_when_all_give_up_nothing_is_synced_and_the_next_one_is_served(disk, syncs):
    task = spawn(syncs.make_durable, 1, next(moments), ("d", "e"))
    spawn(task.kill)
    sleep(0.01)
    assert task.done
    assert (disk.filesystems, disk.singles) == ([], [])
    assert settle_all(syncs, [2]) == [None]


def test_while_much_else_waits_to_be_written_everybody_syncs_alone(disk, syncs):
    disk.dirty = 4 * 3 * DIRTY_EACH
    settle_all(syncs, [1, 2, 3])
    assert (disk.singles, disk.filesystems) == ([1, "d", "e", 2, "d", "e", 3, "d", "e"], [])
    settle_all(syncs, [1, 2, 3, 4])
    assert disk.filesystems == [1]


def test_what_waits_to_be_written_is_asked_for_once_in_a_while(disk, watch, syncs):
    settle_all(syncs, [1, 2])
    disk.dirty = 1 << 40
    settle_all(syncs, [1, 2])
    assert len(disk.filesystems) == 2
    watch.takes(DIRTY_FOR_S)
    settle_all(syncs, [1, 2])
    assert len(disk.filesystems) == 2


def test_after_a_long_sync_everybody_syncs_alone_for_a_while(disk, watch, syncs):
    disk.on_sync = lambda: watch.takes(LONG_S * 5)
    settle_all(syncs, [1, 2])
    settle_all(syncs, [1, 2])
    assert (len(disk.filesystems), len(disk.singles)) == (1, 6)
    watch.takes(PENALTY_S)
    settle_all(syncs, [1, 2])
    assert len(disk.filesystems) == 2


def test_a_lone_thread_does_what_is_cheaper_as_well(disk, syncs):
    syncs.make_durable(1, next(moments), ("d", "e"))
    syncs.make_durable(2, next(moments), ())
    assert (disk.filesystems, disk.singles) == ([1], [2])


@pytest.mark.parametrize("make", [SingleSyncs, SharedSyncs])
def test_a_real_file_and_its_directories_are_synced(tmp_path, make):
    syncs = make(Disk())

    def settle(name):
        moment = next(moments)
        fd = os.open(tmp_path / name, os.O_CREAT | os.O_WRONLY)
        try:
            os.write(fd, b"x")
            syncs.make_durable(fd, moment, [str(tmp_path), str(tmp_path.parent)])
        finally:
            os.close(fd)

    gather([lambda: settle("a"), lambda: settle("b")])
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_closed_descriptor_is_an_error():
    with pytest.raises(OSError, match="Bad file"):
        Disk().sync_filesystem(-1)


def test_the_machine_tells_what_it_has_to_write():
    assert 0 <= Disk().dirty_bytes() < 1 << 50


class Gate:
    """A sync of the filesystem that waits in a thread until it may go on."""

    def __init__(self, disk):
        self.begun, self.may_end = threading.Semaphore(0), threading.Semaphore(0)
        disk.on_sync = self

    def __call__(self):
        self.begun.release()
        assert self.may_end.acquire(timeout=10)


def settle_in_threads(syncs, fds, told, directories=("d",)):
    def settle(fd):
        try:
            syncs.make_durable(fd, next(moments), directories)
        except OSError as error:
            told[fd] = error.errno
        else:
            told[fd] = None

    threads = [threading.Thread(target=settle, args=(fd,)) for fd in fds]
    for thread in threads:
        thread.start()
    return threads


def waiting_in_threads(syncs, count):
    """Return when so many threads wait for the next turn."""
    deadline = time.monotonic() + 10
    while len(getattr(syncs._thread_batches._gathering, "members", ())) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_threads_that_come_while_a_sync_is_under_way_share_the_next_one(disk, syncs):
    gate, told = Gate(disk), {}
    threads = settle_in_threads(syncs, [1], told)
    assert gate.begun.acquire(timeout=10)
    threads += settle_in_threads(syncs, [2, 3, 4], told)
    waiting_in_threads(syncs, 3)
    gate.may_end.release()
    gate.may_end.release()
    for thread in threads:
        thread.join(10)
    assert told == dict.fromkeys([1, 2, 3, 4])
    assert len(disk.filesystems) == 2
    assert disk.singles == []


def test_a_failure_of_a_sync_that_threads_share_is_everybodys(disk, syncs):
    gate, told = Gate(disk), {}
    threads = settle_in_threads(syncs, [1], told)
    assert gate.begun.acquire(timeout=10)
    threads += settle_in_threads(syncs, [2, 3], told)
    waiting_in_threads(syncs, 2)
    disk.failure = OSError(errno.EIO, "no")
    gate.may_end.release()
    gate.may_end.release()
    for thread in threads:
        thread.join(10)
    assert told == dict.fromkeys([1, 2, 3], errno.EIO)


def test_threads_sync_at_the_same_time_where_the_filesystem_is_dear(disk, syncs):
    disk.dirty = 1 << 40
    told, both = {}, threading.Barrier(2)
    disk.fsync = lambda fd: both.wait(10) if fd in (1, 2) else None
    for thread in settle_in_threads(syncs, [1, 2], told):
        thread.join(10)
    assert told == {1: None, 2: None}
    assert disk.filesystems == []


def test_threads_are_not_held_up_when_the_one_that_syncs_for_them_breaks(disk, syncs):
    def on_sync():
        raise RuntimeError("a bug")

    disk.on_sync = on_sync
    with pytest.raises(RuntimeError):
        syncs.make_durable(1, next(moments), ("d",))
    disk.on_sync = lambda: None
    syncs.make_durable(2, next(moments), ("d",))
    assert disk.filesystems == [1, 2]
