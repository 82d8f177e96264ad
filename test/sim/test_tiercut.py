"""Power cuts of a node with a cache tier: every story of ``test_powercut``, through the tier.

In every state of the disk the tier is mounted as well: as it is, emptied, rolled back to each kind of older
state, torn, and failing at its first uses. Whatever of the two survived, a reader finds what the disk has.
The clock of the simulated disk is old, so that entries claim to be comparable as soon as they can be.

``SWIFT_TIER_CUT_STATES=50000`` asks for more states than the default run.
"""

from __future__ import annotations

import os
import random
import zlib
from contextlib import contextmanager

import pytest

from swift.platform.sharedstate import BYTES, SharedState
from swift.store.core import EngineCore
from swift.store.lmdbindex import IndexFailed
from swift.store.tier.directory import Reader
from swift.store.tier.entries import Entries
from swift.store.tier.extents import ExtentLog
from swift.store.tier.policy import CLASSES
from swift.store.tier.store import TierStore
from swift.store.tier.tier import CacheTier, TierDependencies
from test.sim import test_powercut as plain
from test.sim.powercut import Killed, SimulatedDisk
from test.support.tiers import tier_settings

WANTED_BY_DEFAULT = 6000
WANTED = int(os.environ.get("SWIFT_TIER_CUT_STATES", WANTED_BY_DEFAULT))
#: Disk and SSD together: states looked at by all tests of this run.
COUNTED = {}
OLDER_KEPT = 12


class Node:
    """The memory that processes of one boot share, and the running processes."""

    def __init__(self):
        self.shared_state = SharedState(bytearray(BYTES))
        self.shared_state.renew()
        self.alive = set()


class SimulatedMember:
    """A process of a node."""

    def __init__(self, node, token):
        self.node, self.token, self.shared_state = node, token, node.shared_state
        node.alive.add(token)

    def is_alive(self, token):
        return token in self.node.alive

    def report(self, data):
        pass

    def close(self, leaving):
        self.node.alive.discard(self.token)
        leaving(not self.node.alive)

    def forget(self):
        pass


class SameMount:
    """A mount watcher that never sees a change."""

    def has_changed(self):
        return False

    def mount_id(self, _path):
        return 1

    def close(self):
        pass


class MemoryIndex:
    """An index without a device, for simulations; ``fails`` is called before each use."""

    identity = 1

    def __init__(self, kept=None):
        self.kept = dict(kept or {})
        self.failing = False

    def check(self):
        """See ``Index``."""

    def _check(self):
        if self.failing:
            raise IndexFailed("the device is gone")

    def get(self, key):
        """See ``Index``."""
        self._check()
        return self.kept.get(key)

    def keys(self, prefix, after, count):
        """See ``Index``."""
        self._check()
        return [key for key in sorted(self.kept) if key.startswith(prefix) and key > after][:count]

    @contextmanager
    def writing(self):
        """See ``Index``."""
        self._check()
        made = _MemoryWriting(dict(self.kept))
        yield made
        self._check()
        self.kept = made.kept

    def close(self, *, is_last):
        """Do nothing: no resources are held."""


class _MemoryWriting:
    def __init__(self, kept):
        self.kept = kept

    def get(self, key):
        return self.kept.get(key)

    def put(self, key, value):
        self.kept[key] = value

    def delete(self, key):
        return self.kept.pop(key, None) is not None

    def scan(self, prefix):
        return (key for key in sorted(self.kept) if key.startswith(prefix))


class SSD(MemoryIndex):
    """An index and logs."""

    def __init__(self, kept=None, logs=None):
        super().__init__(kept)
        self.logs = {path: bytearray(buffer) for path, buffer in (logs or {}).items()}

    def copied(self):
        return dict(self.kept), {path: bytes(buffer) for path, buffer in self.logs.items()}


class Failing(SSD):
    """Fails at chosen uses, counted from the first."""

    def __init__(self, kept, logs, fails_at):
        super().__init__(kept, logs)
        self.fails_at, self.uses = fails_at, 0

    def _check(self):
        self.uses += 1
        if self.fails_at(self.uses):
            raise IndexFailed("the device failed")


class DiesWithItsDisk:
    """Changes whose end is not reported after the process was killed."""

    def __init__(self, changes):
        self._changes = changes

    def change(self, device_path, directory):
        return _Mortal(self._changes.change(device_path, directory))


class _Mortal:
    def __init__(self, inner):
        self._inner = inner

    def __enter__(self):
        self._inner.__enter__()
        return self

    def __exit__(self, kind, *error):
        if kind is not Killed:
            self._inner.__exit__(kind, *error)


class MemoryLog(ExtentLog):
    """A log whose file is a buffer that several processes share."""

    def __init__(self, buffer, capacity):
        super().__init__("", capacity)
        self._buffer = buffer

    def _put(self, data, at):
        if len(self._buffer) < at + len(data):
            self._buffer.extend(bytes(at + len(data) - len(self._buffer)))
        self._buffer[at : at + len(data)] = data
        return len(data)

    def _get(self, length, at):
        return bytes(self._buffer[at : at + length])


_tokens = iter(range(1, 1 << 60))


class SpoiltTier(CacheTier):
    """A tier with an optional fault."""

    mistaken = None

    def _open_index(self):
        super()._open_index()
        if self._entries is not None and issubclass(self.mistaken or Reader, Entries):
            self._entries.__class__ = self.mistaken
        elif self.mistaken is not None:
            self.reader.__class__ = self.mistaken


def tiered(store, node, index, world):
    """Return a store with a tier, for a new process of a node."""

    def open_index(_path, _boot, _memory):
        return index

    root = type("Nowhere", (), {"__truediv__": lambda _self, name: f"/nowhere/{name}"})()
    tier = SpoiltTier(
        tier_settings(root, world.mode, classes=world.classes),
        TierDependencies(
            disk=store.core.disk,
            open_session=lambda _path, _owner: SimulatedMember(node, next(_tokens).to_bytes(8, "big")),
            open_index=open_index,
            open_log=lambda path, capacity: MemoryLog(index.logs.setdefault(path, bytearray()), capacity),
            mounts=SameMount,
        ),
    )
    tier.mistaken = world.mistaken
    found = Both(store, tier)
    store.core.changes = DiesWithItsDisk(store.core.changes)
    return found


class Both(TierStore):
    """One store for objects of both policies, as the stories expect."""

    def __init__(self, inner, tier):
        super().__init__(inner, tier, plain.GOLD)
        self._ec = TierStore(inner, tier, plain.EC)

    @property
    def core(self) -> EngineCore:
        return self.files.core

    def stat(self, key, options):
        return self._ec.stat(key, options) if key.policy.ec else super().stat(key, options)

    def open(self, key, options):
        return self._ec.open(key, options) if key.policy.ec else super().open(key, options)


class TierWorld(plain.World):
    """A device and an SSD."""

    mode = "write-through"
    #: A class that makes a mistake, in place of the right one.
    mistaken = None
    classes = CLASSES

    def __init__(self, seed, limit, **how):
        self.node = Node()
        self.index = SSD()
        self.older = []
        super().__init__(seed, limit, **how)
        self.fate = random.Random(seed + 1)
        self._make = self.store

    def __setattr__(self, name, value):
        # Stories put another store in place when a process starts anew.
        if name == "store" and not isinstance(value, Both):
            self.node.alive.clear()
            value = tiered(value, self.node, self.index, self)
        super().__setattr__(name, value)

    def change(self, key, outcome, action):
        super().change(key, outcome, action)
        # Two processes read the current state, so that the tier has entries of it.
        self.check_now(key)
        self.older.append(self.index.copied())
        del self.older[:-OLDER_KEPT]

    def check_now(self, key):
        other = tiered(plain.store_on(self.disk, self.clock, self.reclaim_age_s), self.node, self.index, self)
        if not plain_lives(self.disk):
            return
        for store in (self.store, other, self.store):
            found = plain.outcome_of(store, key)
            assert found == self.current[key], f"stale: {plain.shown(found)}"
        other.tier.close()

    def inspect(self, image, number):
        super().inspect(image, number)
        for name, index in self.ssds(number):
            disk = SimulatedDisk(plain.TOP, image, unnamed=self.unnamed)
            bare = plain.store_on(disk, self.clock, self.reclaim_age_s, plain.SingleSyncs)
            true = {key: plain.outcome_of(bare, key) for key in self.allowed}
            disk = SimulatedDisk(plain.TOP, image, unnamed=self.unnamed)
            bare = plain.store_on(disk, self.clock, self.reclaim_age_s, plain.SingleSyncs)
            store = tiered(bare, Node(), index, self)
            for _ in range(2):
                for key, outcome in true.items():
                    found = plain.outcome_of(store, key)
                    assert found == outcome, (
                        f"SSD {name}: {key.path} is {plain.shown(found)}, not {plain.shown(outcome)}\n"
                        + plain.tree(disk)
                    )
            self.tells_hashes(disk, store, number)
            self.goes_on(store, index, name, true)
            self.tells_hashes(disk, store, number)
            self.ssd_states += 1

    ssd_states = 0

    def tells_hashes(self, disk, store, number):
        """Check that suffix hashes from disk and tier match the stored files."""
        if number % 3:
            return
        for device, partition, policy in {(key.device, key.partition, key.policy) for key in self.allowed}:
            for _ in range(2):
                plain.assert_hashes_are_true(disk, store, device, partition, policy)

    def goes_on(self, store, index, name, true):
        """Check changes after the power cut: all processes see them at once."""
        for key in true:
            if key.policy.ec is None:
                plain.put_small(store, key, 901, b"after the cut", None)
                assert plain.outcome_of(store, key) == plain.live(b"after the cut"), name
                plain.delete(store, key, 902)
                gone = plain.outcome_of(store, key)
                # An old tombstone may be reclaimed at once.
                assert gone in (plain.DELETED_OUTCOME, plain.ABSENT_OUTCOME), name

    def ssds(self, number):
        """Return the possible states of the SSD."""
        now, logs = self.index.copied()
        yield "as it was", SSD(now, logs)
        if number % 2:
            yield "emptied", SSD()
        if self.older:
            yield "rolled back", SSD(*self.fate.choice(self.older))
            # The bodies of one moment, the index of another one.
            yield (
                "rolled back in parts",
                SSD(self.fate.choice(self.older)[0], self.fate.choice(self.older)[1]),
            )
        yield "torn", SSD(self.torn(now), self.torn_logs(logs))
        at = self.fate.randrange(1, 12)
        yield "failing once", Failing(now, logs, lambda use: use == at)
        if number % 3 == 0:
            yield "failing from then on", Failing(now, logs, lambda use: use >= at)

    def torn_logs(self, logs):
        """Return logs with damaged bytes in bodies."""
        found = {path: bytearray(buffer) for path, buffer in logs.items()}
        for buffer in found.values():
            for _ in range(len(buffer) // 64):
                buffer[self.fate.randrange(len(buffer))] ^= 0x17
        return found

    def torn(self, kept):
        """Return an index with lost, truncated, damaged and older entries."""
        found = dict(self.fate.choice(self.older)[0]) if self.older and self.fate.random() < 0.5 else {}
        for key, value in kept.items():
            chance = self.fate.random()
            if chance < 0.25:
                continue
            if chance < 0.5 and value:
                at = self.fate.randrange(len(value))
                value = value[:at] + bytes([value[at] ^ 0x41]) + value[at + 1 :]
            elif chance < 0.6:
                value = value[: len(value) // 2]
            found[key] = value
        return found


def plain_lives(disk):
    return disk.lives != 0


def classes_for(story):
    """Return the classes for a story: an intact body on the SSD would hide damage of the disk's body."""
    return ("metadata", "hashes") if story is plain.damage else CLASSES


def tell(story, mode, *, limit, mistaken=None):
    seed = zlib.crc32(story.__name__.encode())
    kind = type("World", (TierWorld,), {"mode": mode, "mistaken": mistaken, "classes": classes_for(story)})
    world = kind(seed, limit)
    story(world)
    if mistaken is None:
        COUNTED[story.__name__, mode] = len(world.seen) + world.ssd_states
    return world


#: Stories that check files other than objects.
STORIES = [story for story in plain.STORIES if story not in (plain.partition_made_again,)]
MODES = ("write-through", "write-around", "write-only")


def stories_by_mode():
    """Return each story in each mode; ``bin/test`` alone runs each story in one mode."""
    for number, story in enumerate(STORIES):
        for turn, mode in enumerate(MODES):
            marks = () if turn == number % len(MODES) else pytest.mark.long
            yield pytest.param(story, mode, id=f"{story.__name__}-{mode}", marks=marks)


@pytest.mark.long
@pytest.mark.parametrize(("story", "mode"), list(stories_by_mode()))
def test_readers_find_the_disks_content_whatever_state_the_ssd_is_in(story, mode):
    tell(story, mode, limit=max(3, WANTED // 2000))
    assert COUNTED[story.__name__, mode] > 0


class TierChance(plain.Chance):
    """A seeded sequence of changes, restarts, kills and pauses, through the tier."""

    def __init__(self, seed, mode):
        super().__init__(seed, unnamed=True)
        kind = type("World", (TierWorld,), {"mode": mode})
        self.world = kind(seed, 2 + seed % 3)
        self.world.watch()

    def kill(self, key):
        super().kill(key)
        self.world.check_now(key)


@pytest.mark.long
def test_random_histories_with_kills_and_ssd_states_show_nothing_stale_or_lost():
    states, seed = 0, 0
    while states < WANTED // 2:
        seed += 1
        chance = TierChance(seed, MODES[seed % len(MODES)])
        try:
            chance.run(8)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        states += len(chance.world.seen) + chance.world.ssd_states
    COUNTED["chance", "all"] = states


def test_enough_states_were_examined():
    total = sum(COUNTED.values())
    print(f"{total} states of disk and SSD in {len(COUNTED)} stories")
    if len(COUNTED) == len(MODES) * len(STORIES) + 1:
        assert total >= WANTED


# --- does the simulator bite? -----------------------------------------------------------------------


class TrustsEntriesOfEarlierBoots(Reader):
    """Does not compare entries of an earlier boot with the disk."""

    def is_still(self, _where, _snapshot):
        return True


class KeepsEntriesOnWrite(Entries):
    """Does not drop entries on a write."""

    def _drop(self, _txn, _path):
        pass


class StoresReadsDuringWrites(Entries):
    """Stores everything read, even during a concurrent write."""

    def _may_keep(self, *_args, **_how):
        return True


class KeepsEntriesAndStoresReads(KeepsEntriesOnWrite, StoresReadsDuringWrites):
    """Both faults together."""


@pytest.mark.parametrize(
    "mistaken", [TrustsEntriesOfEarlierBoots, KeepsEntriesOnWrite, KeepsEntriesAndStoresReads]
)
def test_a_tier_with_a_missing_check_is_detected(mistaken):
    with pytest.raises(AssertionError):
        for story in (plain.overwrite, plain.posts, plain.long_life, plain.handed_over, plain.deleted):
            tell(story, "write-invalidate", limit=4, mistaken=mistaken)
