"""Seeded histories of clusters in which some nodes pack their objects and the others keep files.

The world is that of test_object_healing: clients, faults, every daemon. In addition clients post and write on
conditions, processes are killed and begin anew (some without their index), auditors read, and volumes, which
are tiny here, are compacted. At rest every acknowledged object, with what was posted to it, is on all its
primaries, whichever engine they have. No node has quarantined anything, volumes and indexes agree, and an
index made again says the same.

``SWIFT_PACKED_CLUSTERS=1000`` runs so many seeds instead of 1 (``bin/test whole``: 5), and
``SWIFT_PACKED_CLUSTERS=7-7`` seed 7 alone.
"""

import os
from dataclasses import replace

import pytest

from swift.obj.auditor.settings import ObjectAuditorSettings
from swift.obj.auditor.task import ALL, ObjectAuditor
from swift.obj.auditor.watchers import Watchers
from swift.obj.compactor import ObjectCompactor, ObjectCompactorSettings
from swift.store.packed.verify import Verifier
from swift.store.packed.writer import PackedRules
from test.support.object_cluster import CODED, NODES, ObjectCluster, Version
from test.support.object_servers import GOLD

FIRST, _, LAST = os.environ.get("SWIFT_PACKED_CLUSTERS", "1").partition("-")
SEEDS = range(int(FIRST), int(LAST) + 1) if LAST else range(1, int(FIRST) + 1)
STEPS = 80
#: Bodies above are files; a volume takes some ten records.
RULES = PackedRules(object_bytes_max=1500, volume_bytes=8192)
AUDITOR = ObjectAuditorSettings(files_per_second=0.0, bytes_per_second=0.0)
COMPACTOR = ObjectCompactorSettings(dead_percent=20.0, bytes_per_second=0.0)


def make_auditor(context, _rings, settings, stores, selection):
    return ObjectAuditor(
        context, ALL, settings, stores, Watchers({}, context.telemetry.log), 86400.0, selection=selection
    )


def make_compactor(context, _rings, settings, stores, selection):
    return ObjectCompactor(context, settings, stores, reclaim_age_s=604800.0, selection=selection)


class MixedCluster(ObjectCluster):
    """An ``ObjectCluster`` whose seed decides which nodes use the packed engine."""

    def __init__(self, root, seed):
        # Drawn apart, so that the history of a seed is the same with other engines.
        packed = {number for number in range(NODES) if (seed * 2654435761 >> (number + 3)) & 1}
        super().__init__(root, seed, packed=packed or {0})
        self.packed = [node for node in self.nodes.nodes if node.is_packed]
        for node in self.packed:
            self.use_small_volumes(node)

    def use_small_volumes(self, node):
        node.engine(GOLD).devices.rules = RULES

    def actions(self):
        return {
            **super().actions(),
            self.post: 12,
            self.put_new: 6,
            self.crash: 6,
            self.audit: 4,
            self.compact: 8,
        }

    def post(self):
        policy, name = self.rng.choice(self.names)
        self.advance_clock(self.rng.random() * 2)
        part, targets = self.targets(policy, name)
        colour = f"colour{len(self.log)}"
        statuses = [
            self.send("POST", policy, name, number, part, self.tick, x_object_meta_colour=colour)
            for number in targets
            if number is not None
        ]
        done = statuses.count(202)
        if not done:
            return
        before = self.truth.get(name, [None])
        posted = [v if v is None else replace(v, delete_at=None, colour=colour) for v in before]
        is_acknowledged = done >= (3 if policy.is_ec else 2)
        self.truth[name] = posted if is_acknowledged else [*before, *posted]
        self.queue.pop(name, None)

    def put_new(self):
        """Create an object with ``If-None-Match: *``; each node decides by its own state."""
        name = self.rng.choice([name for policy, name in self.names if policy == GOLD])
        self.advance_clock(self.rng.random() * 2)
        part, targets = self.targets(GOLD, name)
        body = f"{name} new {self.tick}".encode()
        statuses = [
            self.send("PUT", GOLD, name, number, part, self.tick, body, if_none_match="*")
            for number in targets
            if number is not None
        ]
        self._judge(name, Version(body), statuses.count(201), GOLD, 201 in statuses)

    def crash(self):
        """Kill the processes of a packed node; a power cut loses the index, too."""
        node = self.rng.choice(self.packed)
        node.crash(loses_index=self.rng.random() < 0.4)
        self.use_small_volumes(node)

    def audit(self):
        self.nodes.run_once(self.rng.choice(sorted(self.up)), make_auditor, AUDITOR)

    def compact(self):
        self.nodes.run_once(self.rng.choice(self.packed).number, make_compactor, COMPACTOR)

    def wipe(self):
        super().wipe()
        for node in self.packed:
            self.use_small_volumes(node)

    def check(self):
        super().check()
        for node in self.nodes.nodes:
            self.nodes.run_once(node.number, make_auditor, AUDITOR)
            assert not list(node.path.glob("quarantined/*/*")), (node.number, node.lines)
        for node in self.packed:
            self.check_volumes(node)

    def check_volumes(self, node):
        """Check that volumes, index and a rebuilt index agree, also after compaction."""
        self.nodes.run_once(node.number, make_compactor, COMPACTOR)
        engine = node.engine(GOLD)
        device = engine.devices.device(node.device)
        flaws = list(Verifier(engine.core, device, node.context.policies).run(device.volumes.numbers()))
        assert not flaws, (node.number, flaws)
        before = [(node.names(policy), self.hashes(node, policy)) for policy in (GOLD, CODED)]
        del engine, device
        node.crash(loses_index=True)
        after = [(node.names(policy), self.hashes(node, policy)) for policy in (GOLD, CODED)]
        assert before == after, (node.number, "an index that was made again differs")
        assert node.engine(GOLD).space.use(node.device).lost_bytes == 0

    def hashes(self, node, policy):
        return {part: node.hashes(part, policy) for part in node.names(policy)}


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed{seed}")
def test_mixed_clusters_lose_nothing_and_converge(tmp_path, seed):
    world = MixedCluster(tmp_path, seed)
    try:
        world.play(STEPS)
    finally:
        world.stop()
