"""Power cuts of a packed device, and kills of its processes, at every moment.

Volumes are on a simulated disk that loses, tears and reorders whatever was not synced; the index is elsewhere
and lost with the power, but survives SIGKILL together with the page cache. Several processes change a few
objects in tiny volumes. Before each operation that alters the disk, and in the middle of each write, all that
may be left is opened anew: what was acknowledged must be there, what was under way may have happened or not,
and an index made again must have the same in it.

``SWIFT_PACKED_CUT_STATES=100000`` (about) asks for more states than the default run.
"""

from __future__ import annotations

import os
import random
import zlib
from functools import partial

import pytest

from test.sim.packedworld import ABSENT_OUTCOME, PART_POWER, World, device_of, key_of
from test.sim.powercut import Killed
from test.sim.test_powercut import EC, LIVE

WANTED_BY_DEFAULT = 6000
WANTED = int(os.environ.get("SWIFT_PACKED_CUT_STATES", WANTED_BY_DEFAULT))
#: States looked at by all tests of this run, by story.
COUNTED = {}
A, B, C, ARCHIVED = key_of("a"), key_of("b"), key_of("c"), key_of("ec", EC)
#: An object in a partition that its hash does not begin with.
STRANGE = A._replace(partition="7")
LARGE = bytes(range(256)) * 5
NEXT = PART_POWER + 1


# --- stories ------------------------------------------------------------------------------------------


def first_put(world):
    world.put(A, 1, b"first", "red")


def life(world):
    world.put(A, 1, b"one", "red")
    world.post(A, 2, "green")
    world.put(A, 3, b"two" * 100, "blue")
    world.delete(A, 4)
    world.put(A, 5, b"three", "white")
    world.post(A, 6, "black", "image/png")
    world.delete(A, 7)


def two_processes(world):
    """Two processes append to separate volumes; records of one supersede those of the other."""
    for second in range(1, 9):
        world.put(A, second, b"%d" % second, "red", by=second % 2)
    world.delete(A, 9)
    world.put(A, 10, b"again", by=1)


def rolled_over(world):
    for second in range(1, 12):
        world.put((A, B)[second % 2], second, bytes(500), "red", by=second % 3 // 2)


def large_bodies(world):
    world.put(A, 1, LARGE)
    world.put(A, 2, LARGE * 3, by=1)
    world.post(A, 3, "green")
    world.put(A, 4, b"small", "red", by=1)
    world.put(A, 5, LARGE)
    world.delete(A, 6)


def same_time_again(world):
    """Store the same timestamp again, as replication may do."""
    world.put(A, 1, b"body", "red")
    world.put(A, 1, b"body", "red", by=1)
    world.put(B, 1, LARGE)
    world.put(B, 1, LARGE, by=1)


def archives(world):
    world.archive(ARCHIVED, 1, b"archive one")
    world.commit(ARCHIVED, 1, b"archive one", by=1)
    world.archive(ARCHIVED, 2, b"archive two")
    world.archive(ARCHIVED, 2, b"other index", fragment=4)
    world.abort(ARCHIVED, 2, by=1)
    world.archive(ARCHIVED, 3, b"archive three")
    world.commit(ARCHIVED, 3, b"archive three")
    world.delete(ARCHIVED, 4, by=1)


def large_archives(world):
    world.archive(ARCHIVED, 1, LARGE)
    world.commit(ARCHIVED, 1, LARGE, by=1)
    world.archive(ARCHIVED, 2, LARGE * 2, by=1)
    world.commit(ARCHIVED, 2, LARGE * 2)


def handed_over(world):
    world.put(A, 1, b"one", "red")
    world.post(A, 2, "green", by=1)
    world.purge(A)
    world.put(A, 3, b"two", by=1)
    world.delete(A, 4)
    world.purge(A, by=1)
    world.archive(ARCHIVED, 5, b"archive")
    world.commit(ARCHIVED, 5, b"archive")
    world.purge(ARCHIVED, by=1)
    world.put(B, 6, LARGE)
    world.purge(B, by=1)
    world.put(STRANGE, 7, b"far from its partition")
    world.put(B, 8, LARGE, by=1)


def larger_part_power(world):
    world.put(A, 1, b"one", "red")
    world.put(B, 1, LARGE)
    world.post(A, 2, "green", by=1)
    world.put(C, 3, b"both", next_part_power=NEXT)
    for key in (A, B):
        (moved,) = world._both(key, NEXT)[1:] or [None]
        if moved is not None:
            world.relink(moved, key, by=1)
            world.put(moved, 5, b"after", by=1)
            world.purge(key)
    world.delete(C, 6, next_part_power=NEXT, by=1)
    world.put(C, 7, LARGE, next_part_power=NEXT)


def at_once(world):
    """Apply changes of concurrent requests as one batch."""
    for turn in (1, 2):
        second = turn * 10
        world.at_once(
            [
                partial(world.put, A, second, b"a" * 300, "red"),
                partial(world.put, B, second, b"b", None),
                partial(world.delete, C, second),
                partial(world.archive, ARCHIVED, second, b"d"),
            ]
        )


def index_lost_on_the_way(world):
    """Remove the index while processes run."""
    world.put(A, 1, b"one", "red")
    world.put(B, 1, b"b", by=1)
    world.lose_index()
    world.put(A, 2, b"two", "blue", by=1)
    world.lose_index()
    world.delete(B, 3)
    world.put(B, 4, LARGE, by=1)


def compacted(world):
    """Compact volumes while records in other volumes refer to their content."""
    for second in range(1, 9):
        world.put((A, B)[second % 2], second, bytes([second]) * 500, "red", by=second % 2)
    world.compact(by=1)
    world.post(A, 10, "green", by=1)
    world.delete(B, 11)
    world.archive(ARCHIVED, 12, b"archive")
    world.commit(ARCHIVED, 12, b"archive", by=1)
    world.compact()
    world.put(B, 13, b"again")
    world.purge(A, by=1)
    world.start(0)
    world.compact(by=1)
    world.put(A, 14, LARGE)
    world.compact()


def newest_compacted(world):
    """Compact the only volume, and one without live records."""
    world.put(A, 1, b"a" * 500, "red")
    world.put(B, 2, b"b" * 500)
    world.delete(A, 3)
    world.start(0)
    world.compact(by=1)
    world.put(A, 4, b"again")
    world.start(1)
    world.compact()
    world.purge(A)
    world.purge(B)
    world.start(0)
    world.compact(by=1)
    world.put(B, 5, b"last", by=1)


STORIES = [
    first_put,
    life,
    two_processes,
    rolled_over,
    large_bodies,
    same_time_again,
    archives,
    large_archives,
    handed_over,
    larger_part_power,
    index_lost_on_the_way,
    at_once,
    compacted,
    newest_compacted,
]


def tell(story, limit):
    world = World(zlib.crc32(story.__name__.encode()), limit)
    world.watch()
    story(world)
    world.shut_down()
    return world


@pytest.mark.long
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_no_power_cut_or_kill_loses_an_acknowledged_write(story):
    world = tell(story, max(4, WANTED // 1200))
    COUNTED[story.__name__] = world.states
    assert world.states >= 50


# --- stories made up by chance ------------------------------------------------------------------------

KEYS = [A, B, C, ARCHIVED, STRANGE]


class Chance:
    """A seeded history of several processes: nested changes, kills, a lost index."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.world = World(
            seed,
            2 + self.random.randrange(4),
            volume_bytes=self.random.choice([2048, 4096, 8192]),
            processes=2 + seed % 2,
        )
        self.second = 0
        self.haunted = {}
        self.next_part_power = NEXT if seed % 4 == 0 else None
        self.world.watch()

    def run(self, steps):
        for _ in range(steps):
            step = self.random.choice(
                [self.change] * 8
                + [self.crowd] * 2
                + [self.interleave] * 3
                + [self.kill] * 2
                + [self.compact] * 2
                + [self.restart, self.lose]
            )
            step(self.random.choice(KEYS), self.random.randrange(len(self.world.stores)))
        self.world.shut_down()

    def change(self, key, by, others=()):
        """Make a request's change; skip objects with an interrupted change."""
        world, chance = self.world, self.random.random()
        self.second += 1
        second, following = self.second, self.next_part_power
        body = b"%s at %d" % (key.path.obj.encode(), second) * self.random.choice([1, 1, 1, 20, 60])
        state, is_haunted = world.state(key), key in self.haunted
        if key.policy.ec is not None:
            following = None
        if chance < 0.2:
            world.delete(key, second, by=by, next_part_power=following)
        elif key.policy.ec is not None:
            is_whole = chance > 0.45 or is_haunted
            world.archive(key, second, body, by=by, fragment=4 if chance < 0.3 and not is_whole else 2)
            if is_whole:
                world.commit(key, second, body, by=by)
            elif chance > 0.3:
                world.abort(key, second, by=by)
                return
        elif chance < 0.45 and state[0] == LIVE and not is_haunted:
            world.post(
                key,
                second,
                f"colour{second}",
                "image/png" if chance < 0.3 else None,
                by=by,
                next_part_power=following,
            )
        elif chance < 0.55 and state != ABSENT_OUTCOME and not is_haunted and key in world.written:
            world.purge(key, by=by)
        else:
            world.put(key, second, body, "red", by=by, next_part_power=following)
        self.haunted.pop(key, None)

    def crowd(self, _key, by):
        """Run several concurrent requests."""
        self.world.at_once([partial(self.change, key, by) for key in self.random.sample(KEYS[:4], 3)], by=by)

    def interleave(self, key, by):
        """Let another process make a change in the middle of this one's change."""
        world = self.world
        other = (by + 1) % len(world.stores)
        quiet = [each for each in KEYS if each.hash != key.hash]
        another = self.random.choice(quiet)
        wait = [self.random.randrange(6)]

        def meanwhile():
            wait[0] -= 1
            if wait[0] >= 0 or world.is_opening():
                return False
            self.change(another, other)
            return True

        world.meanwhile = meanwhile
        self.change(key, by)
        world.meanwhile = None

    def kill(self, key, by):
        """Kill a process during a request; its change may be visible now, later or never."""
        world = self.world
        world.stores[by].process.dies_in = self.random.randrange(8)
        before = {each: set(allowed) for each, allowed in world.allowed.items()}
        try:
            self.change(key, by)
        except Killed:
            for each, allowed in world.allowed.items():
                if allowed != before.get(each, {ABSENT_OUTCOME}):
                    self.haunted[each] = True
                    world.written.pop(each, None)
            if len(world.stores) == 2 or self.random.random() < 0.5:
                self.restart(key, by)
            else:
                # The others go on with the device as they have it; the place stays empty for a while.
                self.restart(key, by, opens=False)
        world.stores[by].process.dies_in = -1

    def restart(self, _key, by, opens=True):
        """Replace a process; the new one recovers the interrupted changes."""
        store = self.world.start(by)
        if opens:
            device_of(store)
            for key in list(self.haunted):
                self.world.settle_interrupted(key, by)
            self.haunted.clear()

    def compact(self, _key, by):
        """Run compaction, sometimes killed half-way."""
        process = self.world.stores[by].process
        if self.random.random() < 0.5:
            process.dies_in = self.random.randrange(30)
        try:
            self.world.compact(by=by)
        except Killed:
            self.restart(_key, by)
        self.world.stores[by].process.dies_in = -1

    def lose(self, _key, _by):
        self.world.lose_index()


@pytest.mark.long
def test_random_histories_of_several_processes_lose_nothing():
    states, seed = 0, int(os.environ.get("SWIFT_PACKED_CUT_SEED", 0))
    others = sum(COUNTED.values())
    while states < max(WANTED // 2, WANTED - others):
        seed += 1
        chance = Chance(seed)
        try:
            chance.run(10)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        states += chance.world.states
    COUNTED["chance"] = states


def test_enough_states_were_examined():
    total = sum(COUNTED.values())
    print(f"{total} states after power cuts and kills in {len(COUNTED)} stories")
    if len(COUNTED) == len(STORIES) + 1:
        assert total >= WANTED
