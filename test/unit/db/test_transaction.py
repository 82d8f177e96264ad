"""Group commit: who shares a transaction, and who is told what."""

import pytest

from swift import green
from swift.db.transaction import GroupCommit


class Disk:
    """A commit that takes as long as the test wants."""

    def __init__(self):
        self.batches = []
        self.gate = None
        self.error = None

    def commit(self, items):
        self.batches.append(list(items))
        if self.gate is not None:
            self.gate.wait()
        if self.error is not None:
            raise self.error


def run(function, *args):
    return function(*args)


def test_a_lone_item_is_committed_at_once():
    disk = Disk()
    GroupCommit(disk.commit, run).submit([1])
    assert disk.batches == [[1]]


def begun(disk, lane, item):
    """A task whose commit has begun, so that what comes now must wait for the next one."""
    task = green.spawn(lane.submit, [item])
    while not disk.batches:
        green.sleep(0)
    return task


def test_what_arrives_in_one_turn_of_the_loop_shares_a_commit():
    disk = Disk()
    lane = GroupCommit(disk.commit, run)
    for task in [green.spawn(lane.submit, [n]) for n in range(5)]:
        task.wait()
    assert disk.batches == [[0, 1, 2, 3, 4]]
    assert lane.is_idle


def test_what_arrives_during_a_commit_shares_the_next_one():
    disk = Disk()
    disk.gate = green.Event()
    lane = GroupCommit(disk.commit, run)
    tasks = [begun(disk, lane, 0), *(green.spawn(lane.submit, [n]) for n in range(1, 5))]
    green.sleep(0)
    assert disk.batches == [[0]]
    disk.gate.set()
    for task in tasks:
        task.wait()
    assert disk.batches == [[0], [1, 2, 3, 4]]
    assert lane.is_idle


def test_a_leader_that_is_killed_in_its_first_turn_does_not_block_the_others():
    disk = Disk()
    lane = GroupCommit(disk.commit, run)
    first = green.spawn(lane.submit, range(2000))
    second = green.spawn(lane.submit, [1])
    green.spawn(first.kill)
    second.wait()
    assert disk.batches == [[1]]
    assert lane.is_idle


def test_nobody_is_told_success_before_the_commit_ended():
    disk = Disk()
    disk.gate = green.Event()
    lane = GroupCommit(disk.commit, run)
    told = []

    def submit(n):
        lane.submit([n])
        told.append(n)

    tasks = [green.spawn(submit, n) for n in range(3)]
    green.sleep(0)
    assert told == []
    disk.gate.set()
    for task in tasks:
        task.wait()
    assert sorted(told) == [0, 1, 2]


def test_a_failed_commit_fails_everybody_in_it_and_nobody_else():
    disk = Disk()
    disk.gate = green.Event()
    lane = GroupCommit(disk.commit, run)
    outcomes = {}

    def submit(n):
        try:
            lane.submit([n])
            outcomes[n] = "stored"
        except OSError:
            outcomes[n] = "failed"

    tasks = [green.spawn(submit, n) for n in range(3)]
    green.sleep(0)
    disk.error = OSError("no flush")
    disk.gate.set()
    tasks[0].wait()
    green.sleep(0)
    tasks[1].wait()
    tasks[2].wait()
    assert outcomes == {0: "failed", 1: "failed", 2: "failed"}
    disk.error = None
    lane.submit([9])
    assert disk.batches[-1] == [9]


def test_a_leader_that_is_killed_while_waiting_does_not_block_the_others():
    disk = Disk()
    disk.gate = green.Event()
    lane = GroupCommit(disk.commit, run)
    first = begun(disk, lane, 0)
    second = green.spawn(lane.submit, [1])
    green.sleep(0)
    second.kill()
    third = green.spawn(lane.submit, [2])
    green.sleep(0)
    disk.gate.set()
    first.wait()
    third.wait()
    assert [2] in disk.batches and [1] not in disk.batches
    assert lane.is_idle


def test_followers_of_a_killed_leader_hear_of_it():
    disk = Disk()
    disk.gate = green.Event()
    lane = GroupCommit(disk.commit, run)
    first = begun(disk, lane, 0)
    leader = green.spawn(lane.submit, [1])
    green.sleep(0)
    errors = []

    def follow():
        try:
            lane.submit([2])
        except InterruptedError as error:
            errors.append(error)

    follower = green.spawn(follow)
    green.sleep(0)
    leader.kill()
    follower.wait()
    assert errors
    disk.gate.set()
    first.wait()


def test_a_long_queue_is_cut_into_batches(monkeypatch):
    disk = Disk()
    disk.gate = green.Event()
    lane = GroupCommit(disk.commit, run)
    tasks = [green.spawn(lane.submit, range(600)) for _ in range(5)]
    green.sleep(0)
    disk.gate.set()
    for task in tasks:
        task.wait()
    assert sum(map(len, disk.batches)) == 3000
    assert max(map(len, disk.batches)) < 2000


def test_a_lane_describes_itself():
    assert "idle" in repr(GroupCommit(lambda items: None, run))


def test_an_error_of_the_items_own_commit_is_raised_to_its_submitter():
    disk = Disk()
    disk.error = ValueError("bad")
    with pytest.raises(ValueError, match="bad"):
        GroupCommit(disk.commit, run).submit([1])
