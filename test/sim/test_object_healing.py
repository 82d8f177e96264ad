"""Seeded histories of writes, deletions, expiry, faults and broken passes end in a repaired cluster.

Object servers, the container server, replicators, reconstructors and updaters are the real ones, in one
process over real sockets; half of the objects are replicated, half erasure coded. Nodes come and go, ways
between them are cut, one disk is lost, rings are rebalanced, daemons die in the midst. At rest every object
that was acknowledged and not deleted is whole on all its primaries (three copies, or four archives, which are
the very ones of its code), deleted and expired ones are gone from all of them, nothing is left where it does
not belong, and the listing is the set of objects. ``SWIFT_HEALING_SEEDS=6-99`` runs other ones; a seed that
fails is run again by ``SWIFT_HEALING_SEEDS=<seed>-<seed>``.
"""

import os

import pytest

from test.support.object_cluster import ObjectCluster

FIRST, _, LAST = os.environ.get("SWIFT_HEALING_SEEDS", "0-5").partition("-")
SEEDS = range(int(FIRST), int(LAST) + 1)
STEPS = 60


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed{seed}")
def test_after_repair_acknowledged_objects_are_complete_and_deleted_ones_gone(tmp_path, seed):
    world = ObjectCluster(tmp_path, seed)
    try:
        world.play(STEPS)
    finally:
        world.stop()
