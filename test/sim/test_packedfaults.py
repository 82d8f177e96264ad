"""Failures of every call, at every step of every change of the packed engine.

A device with some objects is prepared; then one action runs while its n-th call of the disk or of the index
fails, once or from then on. Whatever the caller was told: nothing acknowledged is lost, nothing
else happens than what was asked, and when the fault is gone everything works again. In the end an index that
is made again has the same in it, and a power cut takes nothing.

``bin/test`` takes every 17th n, ``bin/test whole`` every seventh; ``SWIFT_PACKED_FAULT_STRIDE=1`` takes each.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from swift.base.errors import LockTimeout, NoSpace
from swift.store.errors import FilesChanged
from swift.store.lmdbindex import IndexFailed
from swift.store.metadata import AttributesTooLarge
from test.sim.packedworld import (
    CHANGING,
    PART_POWER,
    READING,
    World,
    broken,
    key_of,
    no_space,
    outcome_of,
    shown,
)
from test.sim.powercut import SimulatedDisk
from test.sim.test_powercut import EC, TOP

A, B, C, D, ARCHIVED = key_of("a"), key_of("b"), key_of("c"), key_of("d"), key_of("ec", EC)
LARGE = bytes(range(256)) * 5
NEXT = PART_POWER + 1
#: With the part power one larger it is in another partition.
MOVING = next(
    key
    for key in (key_of(f"moving{number}") for number in range(100))
    if int(key.hash[:8], 16) >> (32 - NEXT) != int(key.partition)
)
MOVED = MOVING._replace(partition=str(int(MOVING.hash[:8], 16) >> (32 - NEXT)))
#: Disk and index: calls that failed, by fault.
COUNTED = Counter()
#: Actions that went through all faults.
TOLD = []
FAILURES = (OSError, NoSpace, FilesChanged, LockTimeout, AttributesTooLarge)


def prepared():
    """Return a world of two processes, some objects, and an interrupted write of a killed process."""
    world = World(1, 0, volume_bytes=4096, processes=3)
    world.put(A, 1, b"a" * 100, "red")
    world.post(A, 2, "green", by=1)
    world.put(B, 3, LARGE)
    world.put(MOVING, 4, b"moving", "red", by=1)
    world.archive(ARCHIVED, 5, b"archive one", by=1)
    world.commit(ARCHIVED, 5, b"archive one")
    world.put(C, 6, b"c", by=2)
    world.start(2)
    return world


# --- actions ------------------------------------------------------------------------------------------


def put_new(world):
    world.put(D, 10, b"new")


def overwrite(world):
    world.put(A, 10, b"other", "blue")


def put_large(world):
    world.put(B, 10, LARGE * 2)


def put_both(world):
    world.put(MOVING, 10, LARGE, next_part_power=NEXT)


def post(world):
    world.post(A, 10, "black", "image/png")


def delete(world):
    world.delete(B, 10)


def archive(world):
    world.archive(ARCHIVED, 10, b"archive two")
    world.commit(ARCHIVED, 10, b"archive two")


def archive_large(world):
    world.archive(ARCHIVED, 10, LARGE)
    world.commit(ARCHIVED, 10, LARGE)


def abort(world):
    world.archive(ARCHIVED, 10, b"archive two")
    world.abort(ARCHIVED, 10)


def purge(world):
    world.purge(A)
    world.purge(B)


def relink(world):
    world.relink(MOVED, MOVING)


def roll_over(world):
    for second in range(10, 16):
        world.put(A, second, bytes([second]) * 580)


def three_at_once(world):
    world.at_once(
        [
            lambda: world.put(A, 10, b"a" * 500),
            lambda: world.delete(C, 10),
            lambda: world.put(D, 10, b"d"),
        ]
    )


def open_anew(world):
    world.start(0)
    assert outcome_of(world.stores[0], A) in world.allowed[A]
    world.put(D, 10, b"new")


def open_without_index(world):
    world.lose_index()
    open_anew(world)


def go_on_without_index(world):
    world.lose_index()
    world.put(A, 10, b"other")
    world.put(B, 10, b"another", by=1)


ACTIONS = [
    put_new,
    overwrite,
    put_large,
    put_both,
    post,
    delete,
    archive,
    archive_large,
    abort,
    purge,
    relink,
    roll_over,
    three_at_once,
    open_anew,
    open_without_index,
    go_on_without_index,
]

# --- faults -------------------------------------------------------------------------------------------


class Fault:
    """Fails the n-th matching call, in any process."""

    lasts = False

    def __init__(self, world, number):
        self.world, self.left, self.hits = world, number, 0
        self.is_on = True

    def concerns(self, name):
        return name in CHANGING or name in READING or name in ("open", "open_unnamed")

    def __call__(self, name):
        if not self.is_on or not self.concerns(name):
            return None
        self.left -= 1
        if self.left == 0 or (self.left < 0 and self.lasts):
            self.hits += 1
            return self.happen(name)
        return None

    def happen(self, _name):
        return broken()


class Failing(Fault):
    """Fails from the n-th call on, until it is repaired."""

    lasts = True


class Full(Fault):
    def concerns(self, name):
        return name in ("open", "open_unnamed", "write", "pwrite", "mkdir", "link", "rename", "setxattr")

    def happen(self, _name):
        return no_space()


class StaysFull(Full):
    lasts = True


class Short(Fault):
    def concerns(self, name):
        return name in ("write", "pwrite")

    def happen(self, _name):
        return 70


class Torn(Short):
    """Writes some bytes, and then fails."""

    lasts = True

    def happen(self, _name):
        return 70 if self.hits == 1 else broken()


class NoSync(Fault):
    lasts = True

    def concerns(self, name):
        return name in ("fdatasync", "fsync", "sync_filesystem")


class IndexFails(Fault):
    def concerns(self, name):
        return name.startswith("index.") and name != "index.is_current" or name == "commit"

    def happen(self, _name):
        return IndexFailed("the device failed")


class IndexStaysBroken(IndexFails):
    lasts = True


class EverythingFails(Fault):
    """Volumes and index are on the same device."""

    lasts = True

    def concerns(self, name):
        return super().concerns(name) or IndexFails.concerns(self, name)

    def happen(self, name):
        return IndexFailed("the device failed") if IndexFails.concerns(self, name) else broken()


class IndexLost(IndexFails):
    def concerns(self, name):
        return name.startswith("index.") or name == "commit"

    def happen(self, _name):
        self.world.lose_index()


class IndexReplaced(IndexLost):
    """Another process rebuilds the index during the call."""

    def happen(self, _name):
        if not self.world.is_opening():
            self.is_on = False
            self.world.lose_index()
            assert outcome_of(self.world.stores[1], C) in self.world.allowed[C]
            self.is_on = True


FAULTS = [
    Fault,
    Failing,
    Full,
    StaysFull,
    Short,
    Torn,
    NoSync,
    IndexFails,
    IndexStaysBroken,
    EverythingFails,
    IndexLost,
    IndexReplaced,
]


def run(action, kind, number):
    """Run one action with one fault; return True if the fault occurred."""
    world = prepared()
    fault = kind(world, number)
    for store in world.stores:
        store.process.fault = fault
    world.on_start = lambda store: setattr(store.process, "fault", fault)
    try:
        action(world)
    except FAILURES:
        assert fault.hits, "it failed without a fault"
    fault.is_on = False
    kept = None if world.machine.file is None else world.machine.file.kept
    what = f"{action.__name__} with {kind.__name__} at {number}"
    try:
        # All processes are killed before they can repair anything.
        world.check_killed(world.machine.disk, kept)
        look(world, "at once")
        # It works again, in every process.
        for by in range(3):
            world.put(C, 20 + by, b"after it %d" % by, by=by)
            world.delete(D, 30 + by, by=by)
        world.put(B, 40, LARGE, "red", by=1)
        look(world, "later")
        machine, store = world.machine, world.stores[0]
        found = {key: outcome_of(store, key) for key in world.allowed}
        world.states = number
        world.check_rebuilt_index(machine, store, found, "later")
        for image in machine.disk.crash_states(2, world.chooser):
            world.states += 1
            world.inspect(SimulatedDisk(TOP, image), None)
        kept = machine.file.kept
        world.inspect(machine.disk.forked(), kept)
    except Exception as error:
        raise AssertionError(f"{what}: {error!r}") from error
    COUNTED[kind.__name__] += bool(fault.hits)
    return bool(fault.hits)


def look(world, when):
    for key, allowed in world.allowed.items():
        for store in world.stores:
            found = outcome_of(store, key)
            assert found in allowed, (
                f"{when}: {key.path} is {shown(found)}, not {' or '.join(map(shown, allowed))}"
            )


#: Steps from one call that fails to the next one that does; 1: each.
STRIDE = int(os.environ.get("SWIFT_PACKED_FAULT_STRIDE", 17))


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
def test_a_failing_call_loses_nothing_and_succeeds_after_the_repair(action):
    for turn, kind in enumerate(FAULTS):
        stride = 1 if issubclass(kind, Short) else STRIDE
        number = 1 + turn % stride
        while run(action, kind, number):
            number += stride
    TOLD.append(action)


def test_every_fault_happened():
    if len(TOLD) == len(ACTIONS):
        print(sum(COUNTED.values()), dict(COUNTED))
        assert all(COUNTED[kind.__name__] for kind in FAULTS)
