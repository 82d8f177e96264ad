"""A layout is carried out by real controllers over a simulated cluster, with crashes, partitions, reverts.

``SWIFT_LAYOUT_SEEDS=10000`` tries more histories.
"""

import os

import pytest

from test.support.layouts import RING, LayoutWorld

SEEDS = int(os.environ.get("SWIFT_LAYOUT_SEEDS", "60"))
BATCHES = 6


def run_history(seed):
    """Return the problems of one history."""
    world = LayoutWorld(seed)
    rng = world.random
    world.tick("one")
    for ip in world.hosts:
        world.fetch(ip)
    for _ in range(rng.randint(10, 40)):
        world.write()
    world.crashing = rng.choice((0.0, 0.02, 0.1))
    for _ in range(rng.randint(20, 60)):
        if rng.random() < 0.15:
            world.operate()
        if rng.random() < 0.1:
            world.hurt()
        world.step()
    problems = list(world.problems)
    if not world.rest() and not world.is_blind:
        problems.append(f"it does not end: {world.store.read().state}")
        return problems + world.problems
    problems = list(world.problems)
    world.away_at_decision = set()
    view = world.published.view(max(world.published.rings))
    for part in range(world.parts):
        newest = world.acknowledged[part]
        if newest and not world._reached(world._labels(view, part), part):
            problems.append(f"write {newest} to partition {part} is lost")
    state = world.store.read().state
    builder = world.store.read_builder(state.rings[RING].builder)
    builder.validate()
    if any(change.state == "running" for change in state.changes) and not world.is_blind:
        problems.append("a change has not ended")
    return problems


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_plan_ends_and_nothing_gets_out_of_reach(batch):
    failed = {}
    for seed in range(batch, SEEDS, BATCHES):
        problems = run_history(seed)
        if problems:
            failed[seed] = problems[:3]
    assert not failed
