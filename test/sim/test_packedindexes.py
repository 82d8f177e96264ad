"""Indexes of a packed device that are replaced, rolled back or doubled at any moment, beside compactions.

Several processes change a few objects. Between any two steps of any of them the index is taken away, an older
state is written over it, or another index takes its place while some processes keep the one that they have.
Volumes are compacted and holes are made all the time, and processes are killed.

In half of the histories the index itself notices what happened to it, as LMDB's does: then readers always see
what was acknowledged. In the other half nothing but the volumes tells: then nothing acknowledged may be
destroyed, and all of it must be in an index that is made again.

``SWIFT_PACKED_INDEX_SEEDS=10000`` asks for more histories than the default run.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress

import pytest

from swift.base.errors import LockTimeout, NoSpace
from swift.store.errors import FilesChanged
from test.sim.packedworld import IndexFile, World, key_of, outcome_of, shown
from test.sim.powercut import Killed
from test.sim.test_powercut import LIVE

SEEDS = int(os.environ.get("SWIFT_PACKED_INDEX_SEEDS", 150))
#: Histories of one test.
TOGETHER = 250
STEPS = 24
KEYS = [key_of(name) for name in "abcd"]
FAILURES = (OSError, NoSpace, FilesChanged, LockTimeout)
#: Bodies, bytes: of the larger ones holes are made, and the largest are files.
SIZES = (10, 900, 40_000, 40_000, 70_000)
PACKED_MAX = 65_536


class TolerantWorld(World):
    """A world in which an index may lead to records that are gone."""

    def _notice(self, text):
        """Take what an old index leads to for damage."""


class History:
    """A seeded history; ``is_blind`` if the index does not notice what is done to it."""

    def __init__(self, seed, *, is_blind):
        self.is_blind = is_blind
        self.random = random.Random(seed)
        self.world = (TolerantWorld if is_blind else World)(
            seed,
            0,
            volume_bytes=self.random.choice([100_000, 200_000]),
            packed_max=PACKED_MAX,
            processes=3,
        )
        self.second = 0
        #: Earlier states of the index.
        self.states = [{}]
        #: Objects whose last change was not acknowledged.
        self.unsure = set()
        self.removed = self.punched = 0

    def run(self):
        steps = [self.change] * 8 + [self.compact] * 4 + [self.kill, self.restart] + [self.spoil] * 3
        for _ in range(STEPS):
            self.plan_spoiling()
            self.random.choice(steps)(self.random.randrange(3))
            self.world.meanwhile = None
            if self.world.machine.file is not None:
                self.states.append(dict(self.world.machine.file.kept))
            if not self.is_blind:
                for by in range(3):
                    self.look(by)
        self.make_again()

    def plan_spoiling(self):
        """Spoil the index before some change of the disk within the next step, or not at all."""
        wait = [self.random.randrange(24)]

        def meanwhile():
            wait[0] -= 1
            if wait[0] < 0:
                self.spoil(0)
            return wait[0] < 0

        self.world.meanwhile = meanwhile

    def spoil(self, _by):
        """Let an operator do something to the index."""
        machine, older = self.world.machine, self.random.choice(self.states[-12:])
        kind = self.random.choice(["lost", "older", "twin"])
        if machine.file is None or kind == "lost":
            machine.file = None
        elif kind == "older":
            machine.file.kept = dict(older)
            machine.file.is_overwritten = not self.is_blind
        else:
            machine.file.is_twin = self.is_blind
            machine.file = IndexFile(self.random.choice([{}, older]) if self.is_blind else {})

    def change(self, by):
        world, key = self.world, self.random.choice(KEYS)
        self.second += 1
        chance = self.random.random()
        try:
            if chance < 0.25:
                world.delete(key, self.second, by=by)
            elif chance < 0.4 and self.is_sure_of(key) and world.state(key)[0] == LIVE:
                world.post(key, self.second, f"colour{self.second}", by=by)
            else:
                size = self.random.choice(SIZES)
                world.put(key, self.second, self.random.randbytes(8) * (size // 8), "red", by=by)
        except FAILURES:
            self.unsure.add(key)
        else:
            self.unsure.discard(key)

    def is_sure_of(self, key):
        """Return True if each process sees an object as it is."""
        return not self.is_blind and key not in self.unsure

    def compact(self, by):
        with suppress(*FAILURES):
            removed, punched = self.world.compact(by=by)
            self.removed, self.punched = self.removed + removed, self.punched + bool(punched)

    def kill(self, by):
        """Kill a process during a step."""
        process = self.world.stores[by].process
        process.dies_in = self.random.randrange(20)
        key_states = {key: set(allowed) for key, allowed in self.world.allowed.items()}
        try:
            self.random.choice([self.change, self.compact])(by)
        except Killed:
            self.unsure |= {
                key for key, allowed in self.world.allowed.items() if allowed != key_states.get(key)
            }
            self.world.start(by)
            if not self.is_blind:
                # It takes up what was not indexed, before others see that.
                self.look(by)
        process.dies_in = -1

    def restart(self, by):
        """End a process in order, and start it again."""
        self.world.stores[by].close()
        self.world.start(by)

    def look(self, by):
        """Compare what a process serves with what was acknowledged."""
        store = self.world.stores[by]
        for key, allowed in self.world.allowed.items():
            found = outcome_of(store, key)
            assert found in allowed, f"{key.path} is {shown(found)}, not {' or '.join(map(shown, allowed))}"
            self.world.current[key] = found
            self.world.allowed[key] = {found}
            self.unsure.discard(key)

    def make_again(self):
        """Kill all processes, and make the index again; what is served then must outlive a compaction."""
        for by in range(3):
            self.world.stores[by].process.kill()
        self.world.machine.file = None
        self.world.stores[0] = self.world._start()
        self.look(0)
        self.world.compact()
        self.look(0)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
@pytest.mark.parametrize("is_blind", (False, True), ids=("noticed", "blind"))
def test_an_index_of_another_time_destroys_nothing_that_was_acknowledged(is_blind, first):
    removed = punched = 0
    count = min(TOGETHER, SEEDS - first)
    for seed in range(first, first + count):
        history = History(seed, is_blind=is_blind)
        try:
            history.run()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        removed, punched = removed + history.removed, punched + history.punched
    print(f"{count} histories, {removed} volumes compacted, holes in {punched} passes")
    assert removed > count / 4 and punched > count / 4
