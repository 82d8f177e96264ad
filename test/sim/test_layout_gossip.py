"""Fifty nodes come to the newest layout through partitions, crashes, lies and damage, and never go back.

``SWIFT_LAYOUT_SEEDS`` is the number of stories.
"""

from __future__ import annotations

import os
import random

import pytest

from swift.ring.layoutfiles import LayoutFolder
from swift.ring.ringfile import load_table
from test.support.layoutnodes import KINDS, Crash, FailingDisk, LayoutNodes

SEEDS = int(os.environ.get("SWIFT_LAYOUT_SEEDS", "1"))
COUNT = 50
#: Rounds after which all nodes have what one has, when the network is whole.
ROUNDS_MAX = 8


class Story:
    """Random events among nodes, and what must hold after each."""

    def __init__(self, root, seed):
        self.rng = random.Random(seed)
        self.nodes = LayoutNodes(root, COUNT, seed=seed)
        self.files = self.nodes.publish()
        #: Manifests that were published, for nodes that repeat old ones.
        self.manifests = [self.nodes.manifest()]
        self.highest = dict.fromkeys(range(COUNT), 0)

    def check(self):
        """Every node has rings that can be read, and its version never falls."""
        for number, folder in self.nodes.folders.items():
            for kind in KINDS:
                load_table(str(folder / f"{kind}.ring.gz"))
            installed = LayoutFolder(str(folder)).installed()
            version = installed.manifest.version if installed else 0
            assert version >= self.highest[number], number
            self.highest[number] = version

    def publish(self):
        """A change of the controller."""
        self.files = self.nodes.publish()
        self.manifests.append(self.nodes.manifest())

    def partition(self):
        """Two halves that do not reach each other."""
        numbers = list(range(COUNT))
        self.rng.shuffle(numbers)
        split = self.rng.randrange(1, COUNT)
        self.nodes.network.cut = {
            frozenset((one, other)) for one in numbers[:split] for other in numbers[split:]
        }

    def take_away(self):
        """Some nodes are down."""
        self.nodes.network.away = set(self.rng.sample(range(COUNT), self.rng.randrange(COUNT // 2)))

    def lie(self):
        """Some nodes repeat an old manifest or send damaged bytes."""
        old = self.rng.choice(self.manifests)
        lies = (
            lambda path, body: old if path.endswith("manifest") else body,
            lambda path, body: bytes(len(body)),
            lambda path, body: body[: len(body) // 2],
        )
        self.nodes.network.liars = {
            number: self.rng.choice(lies) for number in self.rng.sample(range(1, COUNT), 5)
        }

    def crash(self):
        """An agent ends at a random step, and its node starts again."""
        number = self.rng.randrange(COUNT)
        folder = LayoutFolder(str(self.nodes.folders[number]), disk=FailingDisk(self.rng.randrange(120)))
        self.nodes.restart(number, folder=folder)
        try:
            self.nodes.run(number)
        except Crash:
            pass
        self.nodes.restart(number)

    def damage(self):
        """A ring file is lost; the processes of the node still have the ring."""
        path = self.nodes.folders[self.rng.randrange(COUNT)] / f"{self.rng.choice(KINDS)}.ring.gz"
        data = path.read_bytes()
        path.unlink()
        self.nodes.run(int(path.parent.name))
        if not path.exists():
            path.write_bytes(data)

    def round(self):
        """All nodes that are up run a pass."""
        self.nodes.run_all(set(range(COUNT)) - self.nodes.network.away)

    def heal(self):
        """The network is whole, and all tell the truth."""
        self.nodes.network.cut, self.nodes.network.away = set(), set()
        self.nodes.network.liars = {}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
def test_all_nodes_come_to_the_newest_layout(tmp_path, seed):
    story = Story(tmp_path, seed)
    events = (story.publish, story.partition, story.take_away, story.lie, story.crash, story.damage)
    for _ in range(12):
        for event in story.rng.sample(events, 2):
            event()
        story.round()
        story.check()
    story.heal()
    rounds = 0
    while set(story.nodes.versions().values()) != {len(story.manifests)}:
        rounds += 1
        assert rounds <= ROUNDS_MAX, story.nodes.versions()
        story.round()
        story.check()
    story.round()
    assert all(story.nodes.has(number, story.files) for number in range(COUNT))
