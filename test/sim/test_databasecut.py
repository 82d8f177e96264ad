"""Power cuts at every moment of every change of account and container databases.

A story is a few acknowledged changes, made by the real broker with the real SQLite. At every operation on
files that it led to, what a power cut may leave is opened afresh: the database must be sound, acknowledged
rows and facts must be there, changes under way may have happened or not. The default run samples the states
of each moment; ``SWIFT_POWER_CUT_STATES=50000`` (about) asks for more.
"""

from __future__ import annotations

import random

import pytest

from swift.container import objecttable
from swift.container.rows import tombstone
from swift.db.connection import DatabaseError
from test.sim.databaseworld import WANTED, AccountWorld, World, at, cut, moments, row
from test.sim.sqlitecut import Recorder, materialize, sqlite_library

LIBRARY = sqlite_library()
COUNTED = {}

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="SQLite is built into this Python")


# --- stories ------------------------------------------------------------------------------------------


def first_rows(world):
    world.create(1)
    world.rows(row("a", 2))
    world.rows(row("b", 3), row("c", 3), row("d", 3))
    world.merge()
    world.rows(row("e", 4))
    world.merge()


def overwritten_and_deleted(world):
    world.create(1)
    world.rows(*(row(f"o{n}", 2) for n in range(6)))
    world.merge()
    world.rows(row("o1", 5, 9))
    world.rows(tombstone("o2", at(6), 0), row("o3", 7))
    world.merge()
    world.rows(tombstone("o1", at(8), 0))
    world.merge()


def metadata_and_deletion(world):
    world.create(1)
    new = {"X-Container-Meta-Color": ("blue", at(2).internal)}
    world.change({"#X-Container-Meta-Color": "blue"}, lambda: world.broker.update_metadata(new))
    world.rows(row("a", 3))
    newer = {"X-Container-Meta-Color": ("red", at(4).internal)}
    world.change({"#X-Container-Meta-Color": "red"}, lambda: world.broker.update_metadata(newer))
    world.rows(tombstone("a", at(5), 0))
    gone = {"#": "deleted", "#X-Container-Meta-Color": ""}
    world.change(gone, lambda: world.broker.delete(at(6)))
    world.change({"#": "alive"}, lambda: world.broker.put(at(7), None, 0))
    world.rows(row("a", 8))
    world.merge()


def many_rows_at_once(world):
    """Put more rows than the page cache holds, so that SQLite writes pages before it commits."""
    world.create(1)
    rows = [row(f"{n:04}" + "x" * 400, 2) for n in range(2500)]
    known = {each.name: (each.created_at, 0) for each in rows}
    world.change(known, lambda: world.broker.write(lambda c: objecttable.merge_rows(c, rows)))
    world.rows(row("a", 3))
    world.merge()


def a_long_pending_file(world):
    """Put rows until the pending file is merged by the write that reached its limit."""
    world.create(1)
    for start in range(0, 900, 300):
        world.rows(*(row(f"o{n:04}", 2) for n in range(start, start + 300)))
    world.merge()


def account(world):
    world.create(1)
    world.container("c1", 2, 3)
    world.container("c2", 2, 1)
    world.merge()
    world.container("c1", 3, 4)
    world.container("c2", 2, 0, deleted_at=5)
    world.merge()
    new = {"X-Account-Meta-Quota": ("7", at(6).internal)}
    world.change(
        {"#X-Account-Meta-Quota": "7"}, lambda: world.broker.update_metadata(new, lambda _metadata: None)
    )


STORIES = (
    first_rows,
    overwritten_and_deleted,
    metadata_and_deletion,
    many_rows_at_once,
    a_long_pending_file,
    account,
)


def run_story(story, root):
    """Return the world after a story, with its recorded log."""
    world = (AccountWorld if story is account else World)(root)
    with Recorder(LIBRARY, world.log):
        story(world)
        world.broker.close()
    return world


@pytest.mark.long
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_power_cut_at_any_moment_keeps_acknowledged_changes(story, root):
    world = run_story(story, root)
    steps = len(world.log.steps)
    every = max(1, steps // 60)
    per_moment = max(2, WANTED // len(STORIES) // min(steps, 80))
    COUNTED[story.__name__] = cut(world, random.Random(steps), per_moment, every=every)


def test_enough_states_were_examined():
    total = sum(COUNTED.values())
    print(f"{total} states after power cuts in {len(COUNTED)} stories: {COUNTED}")
    if len(COUNTED) == len(STORIES):
        # Short stories have no more than some thousand states that differ.
        assert total >= min(WANTED, 2000) / 2


# --- does the simulator bite? -------------------------------------------------------------------------


def syncs(steps):
    """Return step number and kind of file of every sync."""
    suffixes = {step.args[0]: step.args[1].rpartition(".")[2] for step in steps if step.what == "open"}
    for number, step in enumerate(steps):
        if step.what in ("fsync", "fdatasync"):
            yield number, suffixes[step.args[0]]
        elif step.what == "sync directory":
            yield number, "directory"


@pytest.mark.long
def test_a_missing_sync_of_any_kind_is_detected(root):
    world = run_story(first_rows, root)
    kinds = {"tmp", "directory", "pending", "db-journal", "db"}
    missed = set(kinds)
    for number, kind in syncs(world.log.steps):
        assert kind in kinds
        if kind in missed:
            try:
                cut(world, random.Random(number), 8, forget=number)
            except (AssertionError, DatabaseError):
                missed.remove(kind)
    assert not missed


def test_writes_are_recorded_as_they_happened(root):
    """The log, replayed without a power cut, results in the existing files."""
    world = run_story(overwritten_and_deleted, root)
    *_, (_number, disk, _known, _upcoming) = moments(world, world.log.steps)
    disk.sync_everything()
    (image,) = disk.crash_states(1, random.Random(1))
    materialize(image, root / "replayed")
    for path in sorted((root / "live").rglob("*")):
        if path.is_file():
            assert (root / "replayed" / path.relative_to(root / "live")).read_bytes() == path.read_bytes()
