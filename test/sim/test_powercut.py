"""Power cuts at every moment of every change, on the real engine and a simulated disk.

A story is a few acknowledged changes. Before each operation that alters the disk, everything that a power cut
may leave is mounted afresh and looked at: what was acknowledged must be there with its exact bytes and
metadata, a change under way may have happened or not, and nothing deleted comes back. The default run samples
the states of each moment; ``SWIFT_POWER_CUT_STATES=50000`` (about) asks for more.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import zlib
from functools import partial
from hashlib import md5

import pytest

from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.green import gather
from swift.platform.devices import SpaceGuard
from swift.platform.syncing import SharedSyncs, SingleSyncs
from swift.policy.policy import ErasureCode, Policy
from swift.runtime.diskcalls import run_inline
from swift.store.api import (
    ABSENT,
    DELETED,
    LIVE,
    AsyncUpdate,
    Location,
    ObjectKey,
    ReadOptions,
    SyncedVersion,
)
from swift.store.asyncpending import decode_update
from swift.store.chooser import ReclaimRules
from swift.store.core import EngineCore, EngineRules
from swift.store.engine import FileStore
from swift.store.errors import CorruptBody
from swift.store.hashes import SuffixHasher
from swift.store.layout import is_suffix, partition_dir
from swift.store.partitionlock import ReplicationLocks
from test.sim.powercut import ROOT, Killed, SimulatedDisk

TOP = "/srv/sda"
GOLD = Policy(0, "gold", is_default=True)
EC = Policy(1, "ec", ec=ErasureCode("liberasurecode_rs_vand", 4, 2))
HASHER = PathHasher(b"p", b"s")
NOW_S = 1_700_000_000.0
VIEW = ReadOptions(NOW_S)
#: Every member of a durable set is durable; the stories of archives are about this one.
INDEX = 2
EC_VIEW = ReadOptions(NOW_S, fragment=INDEX)
WANTED_BY_DEFAULT = 4000
WANTED = int(os.environ.get("SWIFT_POWER_CUT_STATES", WANTED_BY_DEFAULT))

ABSENT_OUTCOME = (ABSENT,)
DELETED_OUTCOME = (DELETED,)


class OneDevice:
    """A device that is always available."""

    def path(self, _device):
        return TOP


def at(second):
    return Timestamp(f"{1_699_000_000 + second}.00000")


def live(body, colour=None, ctype="text/plain"):
    return (LIVE, body, colour, ctype)


def key_of(name, policy=GOLD, partition="7"):
    path = EntityPath("AUTH_a", "c", name)
    return ObjectKey("sda", partition, policy, path, HASHER.hexdigest(*path))


def shared_syncs(disk):
    """Return shared syncs like the object server's, without a thread and with a deterministic clock."""
    ticks = itertools.count()
    return SharedSyncs(disk, run=run_inline, monotonic=lambda: next(ticks) * 1e-5)


def store_on(disk, clock, reclaim_age_s, new_syncs=shared_syncs):
    rules = EngineRules(reclaim=ReclaimRules(reclaim_age_s), sync_every_bytes=4096)
    return FileStore(
        EngineCore(
            disk,
            OneDevice(),
            hasher=HASHER,
            clock=clock,
            space=SpaceGuard(disk, None),
            rules=rules,
            new_syncs=new_syncs,
        )
    )


class World:
    """A device, the engine on it, what may be found there, and the states seen so far."""

    def __init__(self, seed, limit, *, unnamed=True, reclaim_age_s=10_000_000.0):
        self.clock = ManualClock(NOW_S)
        self.reclaim_age_s = reclaim_age_s
        self.unnamed = unnamed
        self.limit = limit
        self.chooser = random.Random(seed)
        self.seen = set()
        self.current = {}
        self.allowed = {}
        self.checks = []
        self.disk = SimulatedDisk(TOP, unnamed=unnamed)
        self.store = store_on(self.disk, self.clock, reclaim_age_s)

    # --- telling the story ---------------------------------------------------------------------------

    def watch(self):
        """Examine power cuts before each further change."""
        self.disk.before_change = self.cut_power

    def settle(self):
        """Make everything so far durable."""
        self.disk.sync_everything()
        self.watch()

    def change(self, key, outcome, action):
        """Run an action whose result is ``outcome`` once it returns."""
        self.allowed[key] = {*self.allowed.get(key, (ABSENT_OUTCOME,)), outcome}
        action()
        self.current[key] = outcome
        self.allowed[key] = {outcome}
        self.cut_power()

    def put(self, key, second, body, colour=None):
        self.change(key, live(body, colour), lambda: put_small(self.store, key, second, body, colour))

    def put_large(self, key, second, body):
        self.change(key, live(body), lambda: put_large(self.store, key, second, body))

    def delete(self, key, second):
        self.change(key, DELETED_OUTCOME, lambda: delete(self.store, key, second))

    def post(self, key, second, colour, ctype=None):
        _, body, _, old_type = self.current[key]
        new = live(body, colour, ctype or old_type)
        self.change(key, new, lambda: post(self.store, key, second, colour, ctype))

    def archive(self, key, second, body, fragment=INDEX):
        """A fragment archive that is not committed: nothing changes for readers of durable data."""
        same = self.current.get(key, ABSENT_OUTCOME)
        self.change(key, same, lambda: put_small(self.store, key, second, body, None, fragment))

    def commit(self, key, second, body, fragment=INDEX):
        self.change(key, live(body), lambda: commit(self.store, key, second, fragment))

    # --- cutting the power ---------------------------------------------------------------------------

    def cut_power(self):
        expected = hash(frozenset((key, frozenset(outcomes)) for key, outcomes in self.allowed.items()))
        for image in self.disk.crash_states(self.limit, self.chooser):
            state = (image.fingerprint(), expected)
            if state not in self.seen:
                self.seen.add(state)
                self.inspect(image, len(self.seen))

    def inspect(self, image, number):
        disk = SimulatedDisk(TOP, image, unnamed=self.unnamed)
        # Looking must not let the others of this moment go on.
        store = store_on(disk, self.clock, self.reclaim_age_s, SingleSyncs)
        found = {key: outcome_of(store, key) for key in self.allowed}
        for key, outcome in found.items():
            assert outcome in self.allowed[key], (
                f"{key.path} is {shown(outcome)}, not {' or '.join(map(shown, self.allowed[key]))}:\n"
                + tree(disk)
            )
        for check in self.checks:
            check(disk, store)
        if number % 6 == 1:
            for device, partition, policy in {(key.device, key.partition, key.policy) for key in found}:
                assert_hashes_are_true(disk, store, device, partition, policy)
        for key, outcome in found.items():
            store.hashes(key.device, key.partition, key.policy, list_suffixes=True)
            again = outcome_of(store, key)
            reclaimed = again == ABSENT_OUTCOME and outcome == DELETED_OUTCOME
            assert again == outcome or reclaimed, f"{key.path} changed by hashing:\n{tree(disk)}"
            if number % 4 == 0 and key.policy.ec is None:
                put_small(store, key, 900, b"life goes on", None)
                assert outcome_of(store, key) == live(b"life goes on"), tree(disk)


def outcome_of(store, key):
    """Return the outcome that a reader gets."""
    for _ in range(2):
        stored = store.open(key, VIEW if key.policy.ec is None else EC_VIEW)
        state = stored.state
        try:
            if state.kind != LIVE:
                return (state.kind,)
            body = b"".join(stored.blocks(0, state.size))
        except CorruptBody:
            # It is quarantined now, as the object server would find as well.
            continue
        finally:
            stored.close()
        assert md5(body).hexdigest() == state.metadata["ETag"]
        return live(body, state.metadata.get("X-Object-Meta-Colour"), state.metadata["Content-Type"])
    raise AssertionError("damaged again after quarantine")


def assert_hashes_are_true(disk, store, device, partition, policy):
    """Check that cached suffix hashes match the stored files."""
    told = store.hashes(device, partition, policy)
    path = partition_dir(TOP, policy, partition)
    hasher = SuffixHasher(disk, store.core.clock, path, policy, store.core.rules.reclaim)
    true = {}
    for suffix in filter(is_suffix, disk.listdir(path) if told else ()):
        with contextlib.suppress(FileNotFoundError):
            true[suffix] = hasher.hash_suffix(suffix)
    assert told == true, tree(disk)


def shown(outcome):
    if outcome[0] != LIVE:
        return outcome[0]
    return f"live {outcome[1][:20]!r} ({len(outcome[1])} bytes) {outcome[2:]}"


def tree(disk, path=TOP, indent=0):
    """Return the files of a disk as text for failure messages."""
    lines = []
    for name in sorted(disk.listdir(path)):
        inode = disk._find(f"{path}/{name}")
        what = "/" if inode.entries is not None else f" {len(inode.data)} bytes {sorted(inode.attributes)}"
        lines.append(" " * indent + name + what)
        if inode.entries is not None:
            lines.append(tree(disk, f"{path}/{name}", indent + 2))
    return "\n".join(line for line in lines if line)


# --- changes as the object server makes them --------------------------------------------------------


def metadata_of(key, second, body, colour):
    metadata = {
        "X-Timestamp": at(second).internal,
        "Content-Type": "text/plain",
        "Content-Length": str(len(body)),
        "ETag": md5(body).hexdigest(),
        "name": str(key.path),
    }
    if colour is not None:
        metadata["X-Object-Meta-Colour"] = colour
    return metadata


def put_small(store, key, second, body, colour, fragment=None):
    with store.edit(key, VIEW, create=True, is_new=True) as edit:
        draft = edit.draft(len(body), etag=md5(body).hexdigest())
        try:
            draft.write(body)
            edit.put(draft, at(second), metadata_of(key, second, body, colour), fragment=fragment)
        finally:
            draft.discard()


def put_large(store, key, second, body):
    draft = store.draft(key, len(body))
    try:
        for start in range(0, len(body), 3000):
            draft.write(body[start : start + 3000])
        with store.edit(key, VIEW, create=True) as edit:
            edit.put(draft, at(second), metadata_of(key, second, body, None))
    finally:
        draft.discard()


def post(store, key, second, colour, ctype):
    with store.edit(key, VIEW, create=False) as edit:
        metadata = {"X-Timestamp": at(second).internal, "name": str(key.path)}
        metadata["X-Object-Meta-Colour"] = colour
        if ctype is not None:
            metadata |= {"Content-Type": ctype, "Content-Type-Timestamp": at(second).internal}
        edit.post(at(second), at(second) if ctype else None, metadata)


def delete(store, key, second):
    with store.edit(key, VIEW, create=True) as edit:
        edit.delete(at(second))


def commit(store, key, second, fragment):
    with store.edit(key, VIEW, create=True) as edit:
        edit.commit(at(second), fragment)


def purge(world, key, second, *, fragment=None, meta=None):
    """Purge a synced object; until that is durable all or some of its files may remain."""
    location = Location(key.device, key.partition, key.policy, key.hash)
    synced = SyncedVersion(at(second), fragment, meta_timestamp=None if meta is None else at(meta))
    if meta is not None:
        # The data may be there without its posted metadata, as both were synced.
        world.allowed[key].add((LIVE, world.current[key][1], "blue", world.current[key][3]))
    world.allowed[key].add(ABSENT_OUTCOME)
    world.store.maintenance.purge(location, synced)
    world.current[key] = ABSENT_OUTCOME
    world.cut_power()


# --- stories ----------------------------------------------------------------------------------------

A = key_of("a")


def first_put(world):
    world.watch()
    world.put(A, 1, b"first", "red")


def large_put(world):
    world.watch()
    world.put_large(A, 1, os.urandom(9000))


def overwrite(world):
    world.put(A, 1, b"old body", "red")
    world.settle()
    world.put(A, 2, b"new body!", "blue")


def overwrite_by_a_large_one(world):
    world.put(A, 1, b"old body", "red")
    world.settle()
    world.put_large(A, 2, bytes(range(256)) * 30)


def same_name_again(world):
    """Store an existing file again, as replication may do; a rename replaces it."""
    world.put(A, 1, b"body", "red")
    world.settle()
    world.put(A, 1, b"body", "red")


def posts(world):
    world.put(A, 1, b"body", "red")
    world.settle()
    world.post(A, 2, "green")
    world.post(A, 3, "blue", "image/png")
    world.post(A, 4, "white")


def deleted(world):
    world.put(A, 1, b"body", "red")
    world.post(A, 2, "green")
    world.settle()
    world.delete(A, 3)


def deleted_before_it_came(world):
    world.watch()
    world.delete(A, 3)


def long_life(world):
    """Make changes without pauses, so that only their own syncs make them durable."""
    world.watch()
    world.put(A, 1, b"one", "red")
    world.post(A, 2, "green")
    world.put(A, 3, b"two", "blue")
    world.delete(A, 4)
    world.put(A, 5, b"three", "white")
    world.post(A, 6, "black", "image/png")
    world.delete(A, 7)
    world.delete(A, 8)


def neighbours(world):
    """Store objects that share directories that are not synced yet."""
    world.watch()
    draft = world.store.draft(A, 10)
    world.put(A, 1, b"quicker", None)
    same_partition = key_of("b")
    world.put(same_partition, 2, b"neighbour", None)
    draft.discard()
    waiting = world.store.draft(key_of("c"), 10)
    world.put(key_of("c"), 3, b"c", None)
    waiting.discard()
    world.delete(same_partition, 4)


def at_once(*changes):
    """Run changes as concurrent requests do: they share their syncs."""
    gather([partial(*change) for change in changes])


def new_ones_at_once(world):
    world.watch()
    at_once(
        (world.put, A, 1, b"a", "red"),
        (world.put, key_of("b"), 1, b"b", None),
        (world.put, key_of("c"), 1, b"c", None),
    )
    world.put(key_of("d"), 2, b"d", None)


def overwrites_at_once(world):
    keys = [A, key_of("b"), key_of("c")]
    for key in keys:
        world.put(key, 1, b"old", "red")
    world.settle()
    at_once(*((world.put, key, 2, b"new", None) for key in keys))


def changes_at_once(world):
    """Make changes of every kind while other changes begin during their syncs."""
    b, c, d = key_of("b"), key_of("c"), key_of("ec", EC)
    world.watch()
    at_once((world.put, A, 1, b"a", "red"), (world.put, b, 1, b"b", None), (world.archive, d, 1, b"d"))
    at_once(
        (world.put, A, 2, b"A", "blue"),
        (world.post, b, 2, "green"),
        (world.delete, c, 2),
        (world.commit, d, 1, b"d"),
    )
    at_once((world.delete, A, 3), (world.put, b, 3, b"B", None), (world.put_large, c, 3, bytes(5000)))


def archives(world):
    key = key_of("ec", EC)
    world.watch()
    world.archive(key, 1, b"archive one")
    world.commit(key, 1, b"archive one")
    world.archive(key, 2, b"archive two")
    world.archive(key, 2, b"other index", fragment=4)
    world.commit(key, 2, b"archive two")


def archives_after_a_while(world):
    key = key_of("ec", EC)
    world.archive(key, 1, b"archive one")
    world.commit(key, 1, b"archive one")
    world.settle()
    world.archive(key, 2, b"archive two")
    world.commit(key, 2, b"archive two")
    world.delete(key, 3)


def damage(world):
    """Quarantine a damaged object; its successor and its neighbours stay."""
    world.put(A, 1, b"sound body")
    world.put(key_of("b"), 1, b"neighbour", None)
    directory = f"{TOP}/objects/7/{A.hash[-3:]}/{A.hash}"
    data = world.disk._find(f"{directory}/{world.disk.listdir(directory)[0]}")
    data.data = b"s0und b0dy"
    world.settle()
    world.change(A, ABSENT_OUTCOME, lambda: outcome_of(world.store, A))
    world.put(A, 2, b"new body", "red")
    world.delete(A, 3)


def reclaimed(world):
    """Reclaim a tombstone last, so that the objects it deleted do not return."""
    world.put(A, 1, b"body", "red")
    world.post(A, 2, "green")
    world.settle()
    world.delete(A, 3)
    world.clock.advance(20_000_000)
    world.allowed[A] = {DELETED_OUTCOME, ABSENT_OUTCOME}
    world.store.hashes("sda", "7", GOLD, list_suffixes=True)
    world.cut_power()


def larger_part_power(world):
    world.watch()

    def put():
        with world.store.edit(A, VIEW, create=True, next_part_power=10) as edit:
            draft = edit.draft(4)
            draft.write(b"both")
            edit.put(draft, at(1), metadata_of(A, 1, b"both", None))
            draft.discard()

    world.change(A, live(b"both"), put)


def changed_after_hashing(world):
    """Change objects after hashing; hashes stay right even if the journal of invalidations is lost."""
    world.put(A, 1, b"body", None)
    world.put(key_of("b"), 1, b"b", None)
    world.store.hashes("sda", "7", GOLD)
    world.settle()
    world.put(A, 2, b"newer", None)
    world.store.hashes("sda", "7", GOLD)
    world.cut_power()
    world.put(A, 3, b"newest", None)
    world.delete(key_of("b"), 4)
    world.put(key_of("new suffix"), 5, b"c", None)


def consolidated(world):
    """Consolidate the journal into the hashes; no durable invalidation is lost."""

    def truth(disk, store):
        hasher = SuffixHasher(disk, store.core.clock, f"{TOP}/objects/7", GOLD, store.core.rules.reclaim)
        found = store.hashes("sda", "7", GOLD)
        assert found == {name: hasher.hash_suffix(name) for name in found}
        assert A.hash[-3:] in found

    world.put(A, 1, b"body", None)
    world.store.hashes("sda", "7", GOLD)
    world.put(A, 2, b"newer", None)
    world.put(key_of("b"), 2, b"b", None)
    world.checks.append(truth)
    world.settle()
    world.store.hashes("sda", "7", GOLD)
    world.cut_power()
    world.store.hashes("sda", "7", GOLD, list_suffixes=True)
    world.cut_power()


def handed_over(world):
    """Purge reverted objects of a handoff; no older version returns."""
    world.watch()
    world.put(A, 1, b"one", "red")
    world.post(A, 2, "green")
    world.put(A, 3, b"two", "blue")
    world.post(A, 4, "white")
    purge(world, A, 3, meta=4)
    world.put(A, 5, b"three", "red")
    world.delete(A, 6)
    purge(world, A, 6)
    world.store.maintenance.remove_partition(A.device, A.partition, A.policy)
    world.cut_power()
    world.put(A, 7, b"life goes on", "black")


def partition_made_again(world):
    """Recreate a partition that the replicator, a separate process, removed."""
    replicator = store_on(world.disk, world.clock, world.reclaim_age_s).maintenance

    def give_away(second):
        world.allowed[A].add(ABSENT_OUTCOME)
        location = Location(A.device, A.partition, A.policy, A.hash)
        assert replicator.purge(location, SyncedVersion(at(second)))
        assert replicator.remove_partition(A.device, A.partition, A.policy)
        world.current[A] = ABSENT_OUTCOME
        world.cut_power()

    world.put(A, 1, b"one", "red")
    give_away(1)
    world.settle()
    world.put(A, 2, b"two", "blue")
    give_away(2)
    world.settle()
    world.put_large(A, 3, bytes(5000))
    give_away(3)
    world.store.invalidate(A.device, A.partition, A.policy, [A.hash[-3:]])
    world.put(A, 4, b"four", "white")
    give_away(4)
    with ReplicationLocks(world.disk, OneDevice()).hold(A.device, A.partition, A.policy, 0.0):
        world.put(A, 5, b"five", "green")


def archives_handed_over(world):
    key = key_of("ec", EC)
    world.watch()
    world.archive(key, 1, b"archive one")
    world.commit(key, 1, b"archive one")
    world.archive(key, 2, b"archive two")
    world.archive(key, 2, b"other index", fragment=4)
    world.commit(key, 2, b"archive two")
    purge(world, key, 2, fragment=INDEX)
    world.archive(key, 3, b"archive three")
    world.commit(key, 3, b"archive three")


def updates(world):
    """Save a container update; it survives power cuts."""
    kept = []

    def all_kept(disk, _store):
        for second in kept:
            path = f"{TOP}/async_pending/{A.hash[-3:]}/{A.hash}-{at(second).internal}"
            data = disk._find(path).data
            assert decode_update(data)[0].headers == {"X-Timestamp": at(second).internal}

    world.checks.append(all_kept)
    world.watch()
    for second in (1, 2, 2):
        update = AsyncUpdate("PUT", A.path, {"X-Timestamp": at(second).internal})
        world.store.updates.save("sda", GOLD, update, at(second))
        kept.append(second)
        world.cut_power()


#: Story → its minimum number of states, so that no story shrinks unnoticed.
STORIES = {
    first_put: 36,
    large_put: 36,
    overwrite: 25,
    overwrite_by_a_large_one: 25,
    same_name_again: 17,
    posts: 72,
    deleted: 53,
    deleted_before_it_came: 36,
    long_life: 510,
    neighbours: 135,
    new_ones_at_once: 136,
    overwrites_at_once: 84,
    changes_at_once: 376,
    archives: 149,
    archives_after_a_while: 80,
    damage: 140,
    reclaimed: 198,
    larger_part_power: 148,
    handed_over: 465,
    partition_made_again: 283,
    archives_handed_over: 288,
    changed_after_hashing: 255,
    consolidated: 60,
    updates: 27,
}
#: States looked at by all tests of this run, by story.
COUNTED = {}


def tell(story, *, unnamed=True, limit=None):
    reclaim_age_s = 10_000_000.0
    seed = zlib.crc32(story.__name__.encode())
    world = World(seed, limit or max(10, WANTED // 90), unnamed=unnamed, reclaim_age_s=reclaim_age_s)
    story(world)
    if limit is None:
        COUNTED[story.__name__, unnamed] = len(world.seen)
    return world


@pytest.mark.parametrize("unnamed", [True, False], ids=["unnamed", "temporary-names"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_power_cut_at_any_moment_loses_no_acknowledged_write(story, unnamed):
    world = tell(story, unnamed=unnamed)
    assert len(world.seen) >= min(STORIES[story], STORIES[story] * WANTED // WANTED_BY_DEFAULT)


@pytest.mark.long
@pytest.mark.parametrize("unnamed", [True, False], ids=["unnamed", "temporary-names"])
def test_a_seed_reproduces_the_same_states(unnamed):
    def states_of(seed):
        chance = Chance(seed, unnamed=unnamed)
        chance.run(12)
        return len(chance.world.seen)

    assert [states_of(seed) for seed in (1, 2)] == [states_of(seed) for seed in (1, 2)]
    # Stories of several threads at once may meet in another order on a busy machine.
    counts = [len(tell(posts, unnamed=unnamed, limit=10).seen) for _ in range(2)]
    assert counts[0] == counts[1]


def test_a_process_killed_at_any_moment_leaves_no_half_synced_state():
    """SIGKILL during a PUT, then another process continues, then the power fails."""
    states = 0
    lives = 0
    while True:
        lives += 1
        world = World(lives, max(5, WANTED // 400))
        world.disk.lives = lives
        try:
            put_small(world.store, A, 1, b"killed in mid-air", None)
            break
        except Killed:
            pass
        world.disk.restart_process()
        world.store = store_on(world.disk, world.clock, world.reclaim_age_s)
        left = outcome_of(world.store, A)
        assert left in (ABSENT_OUTCOME, live(b"killed in mid-air"))
        world.watch()
        world.allowed[A] = {ABSENT_OUTCOME, left}
        world.put(A, 2, b"acknowledged")
        world.put(key_of("b"), 3, b"neighbour", None)
        states += len(world.seen)
    assert lives > 10
    COUNTED["killed", True] = states


# --- stories made up by chance ------------------------------------------------------------------------


def twin_of(key):
    """Return another object in the same suffix directory."""
    number = 0
    while True:
        number += 1
        twin = key_of(f"twin{number}")
        if twin.hash[-3:] == key.hash[-3:]:
            return twin


KEYS = [A, twin_of(A), key_of("b"), key_of("elsewhere", partition="8"), key_of("ec", EC)]


class Chance:
    """A seeded sequence of changes, restarts, kills and pauses."""

    def __init__(self, seed, *, unnamed):
        self.random = random.Random(seed)
        self.world = World(seed, 6 + self.random.randrange(12), unnamed=unnamed)
        self.second = 0
        self.world.watch()

    def run(self, steps):
        for _ in range(steps):
            self.second += 1
            step = self.random.choice(
                [self.change] * 10
                + [self.crowd] * 2
                + [self.kill] * 3
                + [self.hash, self.restart, self.rest, self.draft]
            )
            step(self.random.choice(KEYS))

    def change(self, key):
        """Make a request's change."""
        world, second, chance = self.world, self.second, self.random.random()
        body = b"%s at %d" % (key.path.obj.encode(), second)
        if chance < 0.2:
            world.delete(key, second)
        elif key.policy.ec is not None:
            world.archive(key, second, body)
            if chance < 0.8:
                world.commit(key, second, body)
        elif chance < 0.5 and world.current.get(key, ABSENT_OUTCOME)[0] == LIVE:
            world.post(key, second, f"colour{second}", "image/png" if chance < 0.3 else None)
        elif chance < 0.6:
            world.put_large(key, second, body * 400)
        else:
            world.put(key, second, body, "red")

    def crowd(self, _key):
        """Run several concurrent requests."""
        at_once(*((self.change, key) for key in self.random.sample(KEYS, 3)))

    def kill(self, key):
        """Kill the process during a request; its change may be visible or lost."""
        self.world.disk.lives = 1 + self.random.randrange(15)
        try:
            self.change(key)
        except Killed:
            pass
        self.restart(key)
        self.world.current[key] = outcome_of(self.world.store, key)

    def restart(self, _key):
        """Start a new process on the same files."""
        world = self.world
        world.disk.restart_process()
        world.store = store_on(world.disk, world.clock, world.reclaim_age_s)

    def hash(self, key):
        """Hash the partition, as replication does."""
        everything = self.random.random() < 0.5
        self.world.store.hashes("sda", key.partition, key.policy, list_suffixes=everything)

    def rest(self, _key):
        """Wait until the kernel has written everything."""
        self.world.settle()

    def draft(self, key):
        """Abort an upload."""
        draft = self.world.store.draft(key, 100)
        draft.write(b"given up")
        draft.discard()


@pytest.mark.long
@pytest.mark.parametrize("unnamed", [True, False], ids=["unnamed", "temporary-names"])
def test_random_histories_with_kills_and_power_cuts_lose_nothing(unnamed):
    states, seed = 0, 0
    while states < WANTED // 2:
        seed += 1
        chance = Chance(seed, unnamed=unnamed)
        try:
            chance.run(12)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        states += len(chance.world.seen)
    COUNTED["chance", unnamed] = states


def test_enough_states_were_examined():
    total = sum(COUNTED.values())
    print(f"{total} states after power cuts in {len(COUNTED)} stories")
    if len(COUNTED) == 2 * len(STORIES) + 3:
        assert total >= WANTED


# --- does the simulator bite? -----------------------------------------------------------------------


class SyncSkipping(SimulatedDisk):
    """Skips the ``skip``-th sync, as faulty code would."""

    skip = 0

    def fsync(self, fd):
        self.skip -= 1
        if self.skip:
            super().fsync(fd)

    def sync_filesystem(self, fd):
        self.skip -= 1
        if self.skip:
            super().sync_filesystem(fd)


@pytest.mark.parametrize(
    "story", [first_put, overwrite, deleted, overwrites_at_once], ids=lambda story: story.__name__
)
def test_a_missing_sync_is_detected(story):
    """Every sync of the engine is needed: without it some power cut loses data."""
    needed, number = [], 0
    while True:
        number += 1
        world = World(number, 60)
        world.disk = SyncSkipping(TOP)
        world.store = store_on(world.disk, world.clock, world.reclaim_age_s)
        real_watch = world.watch

        def watch(world=world, number=number, real_watch=real_watch):
            world.disk.skip = number
            real_watch()

        world.watch = watch
        try:
            story(world)
            if world.disk.skip > 0:
                break
        except AssertionError:
            needed.append(number)
    assert needed == list(range(1, number)), "some syncs are not needed"


def test_the_tree_of_a_fresh_disk_is_empty():
    disk = SimulatedDisk(TOP)
    assert disk.listdir(TOP) == []
    assert disk.stat(TOP).st_ino == ROOT
