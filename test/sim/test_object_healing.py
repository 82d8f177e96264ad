"""Seeded histories of writes, deletions, expiry, faults and broken passes; in the end all is well.

Object servers, the container server, replicators, reconstructors and updaters are the real ones, in one
process over real sockets; half of the objects are replicated, half erasure coded. Nodes come and go, ways
between them are cut, one disk is lost, rings are rebalanced, daemons die in the midst. At rest every object
that was acknowledged and not deleted is whole on all its primaries (three copies, or four archives, which are
the very ones of its code), deleted and expired ones are gone from all of them, nothing is left where it does
not belong, and the listing is the set of objects. ``SWIFT_HEALING_SEEDS=100`` runs more of them; a seed that
fails is run again by ``-k seed<number>``.
"""

import os

import pytest

from test.support.objectworld import World

SEEDS = range(int(os.environ.get("SWIFT_HEALING_SEEDS", "6")))
STEPS = 60


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed{seed}")
def test_at_rest_everything_acknowledged_is_whole_and_everything_deleted_is_gone(tmp_path, seed):
    world = World(tmp_path, seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.heal()
        world.check()
    finally:
        world.stop()
