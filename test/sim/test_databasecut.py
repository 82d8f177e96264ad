"""Cutting the power at every moment of every change of account and container databases.

A story is a few acknowledged changes, made by the real broker with the real SQLite. At every operation on
files that it led to, what a power cut may leave is opened afresh: the database must be sound, acknowledged
rows and facts must be there, changes under way may have happened or not. The default run samples the states
of each moment; ``SWIFT_POWER_CUT_STATES=50000`` (about) asks for more.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest

from swift.account.broker import AccountBroker
from swift.account.rows import ContainerRow
from swift.base.timestamp import Timestamp
from swift.container import objecttable
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow, tombstone
from swift.db import files
from swift.db.broker import Engine
from swift.db.connection import DatabaseError, chexor
from swift.db.files import Place
from swift.db.listing import ListingQuery
from test.sim.sqlitecut import Log, PagedDisk, RecordedDisk, Recorder, materialize, sqlite_library

WANTED = int(os.environ.get("SWIFT_POWER_CUT_STATES", "1000"))
HASH = "ab" * 16
LIBRARY = sqlite_library()
#: What is seen of a database that is not there.
NOTHING = None
COUNTED = {}

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="SQLite is built into this Python")


def at(second):
    return Timestamp(f"{1_700_000_000 + second}.00000")


def row(name, second, size=5):
    return ObjectRow(name, at(second).internal, size, "text/plain", "e")


class World:
    """A container (or account) on a recorded device, and what was acknowledged of it."""

    kind, table = "containers", "object"

    def __init__(self, root):
        self.root = root
        live = root / "live"
        live.mkdir()
        self.log = Log(str(live))
        self.place = Place(str(live), self.kind, "1", HASH)
        self.disk = RecordedDisk(self.log)
        self.broker = self.open(self.place, Engine(disk=self.disk))
        self.known = NOTHING

    @staticmethod
    def open(place, engine):
        return ContainerBroker(place, engine, "a", "c")

    def step(self, expected, act):
        """Do something that leads to ``expected`` when it is acknowledged."""
        self.log.add("begin", expected)
        act()
        self.log.add("acknowledged", expected)
        self.known = expected

    # --- stories tell with these -------------------------------------------------------------------

    def create(self, second):
        self.step({"#": "alive"}, lambda: self.broker.create(at(second), 0, created_at=at(second)))

    def rows(self, *rows):
        known = {**self.known, **{each.name: (each.created_at, each.deleted) for each in rows}}

        def put():
            assert self.broker.refresh()
            self.broker.put_rows(rows)

        self.step(known, put)

    def merge(self):
        """Somebody asks."""

        def ask():
            assert self.broker.refresh()
            self.broker.info()

        self.step(self.known, ask)

    def change(self, known, act):
        def run():
            assert self.broker.refresh()
            act()

        self.step({**self.known, **known}, run)

    # --- looking -----------------------------------------------------------------------------------

    def seen(self, root):
        """What a server sees that starts on this device."""
        place = Place(str(root), self.kind, "1", HASH)
        if not files.look(self.disk, place):
            return NOTHING
        broker = self.open(place, Engine())
        if not broker.refresh():
            return NOTHING
        try:
            info = broker.info()
            found = {"#": "deleted" if info.is_deleted else "alive"}
            for name, (value, _time) in info.metadata.items():
                found[f"#{name}"] = value
            broker.read(lambda connection: self.look(connection, found))
            self.check(broker, info, found)
            return found
        finally:
            broker.close()

    def look(self, connection, found):
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        total = "0" * 32
        for name, created_at, deleted in connection.execute("SELECT name, created_at, deleted FROM object"):
            assert name not in found, "a row is there twice"
            found[name] = (created_at, deleted)
            total = chexor(total, name, created_at)
        assert connection.execute("SELECT hash FROM container_info").fetchone() == (total,)

    def check(self, broker, info, found):
        alive = sorted(name for name, what in found.items() if name[0] != "#" and not what[1])
        assert [each[0] for each in broker.listing(ListingQuery(10000), 0)] == alive
        assert info.object_count == len(alive)


class AccountWorld(World):
    kind, table = "accounts", "container"

    @staticmethod
    def open(place, engine):
        return AccountBroker(place, engine, "a")

    def create(self, second):
        self.step({"#": "alive"}, lambda: self.broker.create(at(second), created_at=at(second)))

    def container(self, name, second, count, deleted_at=None):
        times = (at(second).internal, "0" if deleted_at is None else at(deleted_at).internal)
        deleted = int(deleted_at is not None)
        known = {**self.known, name: (times[0], deleted)}

        def put():
            assert self.broker.refresh()
            self.broker.put_rows([ContainerRow(name, *times, count, 10 * count, deleted)])

        self.step(known, put)

    def look(self, connection, found):
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = "SELECT name, put_timestamp, deleted FROM container"
        for name, put_timestamp, deleted in connection.execute(rows):
            assert name not in found, "a row is there twice"
            found[name] = (put_timestamp, deleted)

    def check(self, broker, info, found):
        alive = sorted(name for name, what in found.items() if name[0] != "#" and not what[1])
        assert [each[0] for each in broker.listing(ListingQuery(10000))] == alive
        assert info.container_count == len(alive)


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
    """More than the page cache holds, so that SQLite writes pages before it commits."""
    world.create(1)
    rows = [row(f"{n:04}" + "x" * 400, 2) for n in range(2500)]
    known = {each.name: (each.created_at, 0) for each in rows}
    world.change(known, lambda: world.broker.write(lambda c: objecttable.merge_rows(c, rows)))
    world.rows(row("a", 3))
    world.merge()


def a_long_pending_file(world):
    """One that is merged by the write that made it long."""
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


@pytest.fixture
def root():
    """A directory in memory, where syncs cost nothing."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def told(story, root):
    """The world after a story, its log recorded."""
    world = (AccountWorld if story is account else World)(root)
    with Recorder(LIBRARY, world.log):
        story(world)
        world.broker.close()
    return world


def legal(found, known, upcoming):
    """Whether something seen is what was known, or what was about to be, fact by fact."""
    if found is None:
        return known is None or upcoming is None
    known, upcoming = known or {}, upcoming or {}
    return all(
        found.get(key) in (known.get(key), upcoming.get(key))
        for key in {*found, *known, *upcoming}
        # An account or container that is there at all is alive before it is said to be so.
        if (key, found.get(key)) != ("#", "alive") or known.get("#") != "deleted"
    )


def moments(world, steps, forget=None):
    """The simulated disk after every operation, with what is known and under way then."""
    disk, handles = PagedDisk(world.log.top), {}
    known = upcoming = NOTHING
    for number, step in enumerate(steps):
        if step.what == "begin":
            upcoming = step.args[0]
        elif step.what == "acknowledged":
            known = upcoming = step.args[0]
        elif number != forget:
            world.log.replay(disk, step, handles)
        yield number, disk, known, upcoming


def cut(world, chooser, states_per_moment, *, every=1, forget=None):
    """Look at what power cuts leave; how many states there were. AssertionError for an illegal one."""
    seen, count = set(), 0
    for number, disk, known, upcoming in moments(world, world.log.steps, forget):
        if number % every and world.log.steps[number].what == "pwrite":
            # A long story has too many writes to stop at each.
            continue
        for image in disk.crash_states(states_per_moment, chooser):
            mark = (image.fingerprint(), number)
            if mark in seen:
                continue
            seen.add(mark)
            root = world.root / "cut"
            materialize(image, root)
            try:
                found = world.seen(root)
                assert legal(found, known, upcoming), (number, found, known, upcoming)
                count += 1
            finally:
                shutil.rmtree(root)
    return count


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_power_cut_at_any_moment_leaves_what_was_acknowledged(story, root):
    world = told(story, root)
    steps = len(world.log.steps)
    every = max(1, steps // 60)
    per_moment = max(2, WANTED // len(STORIES) // min(steps, 80))
    COUNTED[story.__name__] = cut(world, random.Random(steps), per_moment, every=every)


def test_enough_states_were_looked_at():
    total = sum(COUNTED.values())
    print(f"{total} states after power cuts in {len(COUNTED)} stories: {COUNTED}")
    if len(COUNTED) == len(STORIES):
        # Short stories have no more than some thousand states that differ.
        assert total >= min(WANTED, 2000) / 2


# --- does the simulator bite? -------------------------------------------------------------------------


def syncs(steps):
    """Step number and kind of every sync: what it is of."""
    suffixes = {step.args[0]: step.args[1].rpartition(".")[2] for step in steps if step.what == "open"}
    for number, step in enumerate(steps):
        if step.what in ("fsync", "fdatasync"):
            yield number, suffixes[step.args[0]]
        elif step.what == "sync directory":
            yield number, "directory"


def test_a_forgotten_sync_of_any_kind_is_found_out(root):
    world = told(first_rows, root)
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
    """The log, replayed to its end without a power cut, gives the files that are there."""
    world = told(overwritten_and_deleted, root)
    *_, (_number, disk, _known, _upcoming) = moments(world, world.log.steps)
    disk.sync_everything()
    (image,) = disk.crash_states(1, random.Random(1))
    materialize(image, root / "replayed")
    for path in sorted((root / "live").rglob("*")):
        if path.is_file():
            assert (root / "replayed" / path.relative_to(root / "live")).read_bytes() == path.read_bytes()
