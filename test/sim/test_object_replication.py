"""Seeded histories of writes, deletions, lost nodes, wiped devices and broken passes; in the end all is well.

Object servers and replicators are the real ones, in one process over real sockets. At rest every object that
was acknowledged and not deleted is whole on all three of its primaries, a deleted one is gone from all of
them, and nothing is left where it does not belong. ``SWIFT_REPLICATION_SEEDS=100`` runs more of them; a seed
that fails is run again by ``-k seed<number>``.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.obj.replicator.task import ObjectReplicator
from test.support.objectnodes import ObjectNodes, partition_of

SEEDS = range(int(os.environ.get("SWIFT_REPLICATION_SEEDS", "6")))
NODES, OBJECTS, STEPS = 5, 12, 60
SETTINGS = ObjectReplicatorSettings(
    sync_method="ssync", interval=0.0, conn_timeout=1.0, node_timeout=2.0, recheck_interval=0.0
)


class Broken(Exception):
    """The process of a replicator ends."""


class World:
    """The nodes, the clients' view of them, and what may be the truth about every object."""

    def __init__(self, root, seed):
        self.rng = random.Random(seed)
        self.nodes = ObjectNodes(root, NODES)
        self.up = set(range(NODES))
        self.tick = time.time() - 10_000
        #: name → states that may be the last one: the last acknowledged, and what was tried after it.
        self.truth = {}
        self.was_wiped = False

    def primaries(self, name):
        part = partition_of(name)
        return part, [(part + n) % NODES for n in range(3)]

    def targets(self, name):
        """The three nodes that a proxy writes to: handoffs stand in for primaries that are down."""
        part, primaries = self.primaries(name)
        others = [n for n in range(NODES) if n not in primaries and n in self.up]
        return part, [n if n in self.up else others.pop() if others else None for n in primaries]

    def change(self, method):
        name = f"o{self.rng.randrange(OBJECTS)}"
        self.tick += self.rng.random()
        part, targets = self.targets(name)
        body = f"{name} {self.tick}".encode()
        done = 0
        for number in targets:
            # A client, or the way to a node, may break at any moment.
            if number is None or self.rng.random() < 0.15:
                continue
            sent = body if method == "PUT" else b""
            status = self.nodes[number].ask(method, f"/{part}/a/c/{name}", self.tick, sent).status
            done += status in (201, 204, 404)
        state = body if method == "PUT" else None
        if done >= 2:
            self.truth[name] = [state]
        elif done:
            self.truth.setdefault(name, [None]).append(state)

    def lose(self):
        if len(self.up) == NODES:
            number = self.rng.randrange(NODES)
            self.up.remove(number)
            self.nodes[number].stop()

    def restore(self):
        for number in set(range(NODES)) - self.up:
            self.nodes[number].start()
        self.up = set(range(NODES))

    def wipe(self):
        """One disk is lost in a history, while the other nodes are there."""
        if not self.was_wiped and len(self.up) == NODES:
            self.was_wiped = True
            self.nodes[self.rng.randrange(NODES)].wipe()

    def replicate(self):
        """A pass of one node, which may be broken off in the midst."""
        number = self.rng.choice(sorted(self.up))
        runner = self.nodes.runner(number, ObjectReplicator, SETTINGS)
        begun, left = runner.task.begin, self.rng.choice((0, 1, 3, 1000))

        def begin(share, context):
            turn = begun(share, context)
            do = turn.do

            def do_or_break(unit):
                nonlocal left
                left -= 1
                if left < 0:
                    raise Broken
                do(unit)

            turn.do = do_or_break
            return turn

        runner.task.begin = begin
        runner.once()

    def step(self):
        action = self.rng.choices(
            (lambda: self.change("PUT"), lambda: self.change("DELETE"), self.lose, self.restore, self.wipe)
            + (self.replicate,),
            (40, 12, 6, 8, 2, 20),
        )[0]
        action()

    def heal(self):
        """Passes of all nodes until nothing moves any more."""
        self.restore()
        before = None
        for _ in range(8):
            for number in range(NODES):
                self.nodes.once(number, ObjectReplicator, SETTINGS)
            now = [node.files() for node in self.nodes.nodes]
            if now == before:
                return
            before = now
        raise AssertionError("it does not come to rest")

    def check(self):
        for name, states in self.truth.items():
            part, primaries = self.primaries(name)
            found = [self.nodes[n].ask("GET", f"/{part}/a/c/{name}") for n in primaries]
            seen = {answer.content if answer.status == 200 else None for answer in found}
            assert len(seen) == 1, (name, seen)
            assert seen <= set(states), (name, states)
            for number in set(range(NODES)) - set(primaries):
                there = self.nodes[number].path / f"objects/{part}"
                assert not there.exists(), (name, number)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed{seed}")
def test_at_rest_everything_acknowledged_is_whole_and_everything_deleted_is_gone(tmp_path, seed):
    world = World(tmp_path, seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.heal()
        world.check()
    finally:
        world.nodes.stop()
