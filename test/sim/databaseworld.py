"""Account and container databases whose power is cut: what was acknowledged, and what is left of it.

A ``World`` is a database on a recorded device; a story changes it and says what is known after each
acknowledged change. ``cut`` stops the recorded story at every operation and opens what may be left there.
"""

from __future__ import annotations

import os
import shutil

from swift.account.broker import AccountBroker
from swift.account.rows import ContainerRow
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.db import files
from swift.db.broker import Engine
from swift.db.connection import chexor
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery
from test.sim.sqlitecut import Log, PagedDisk, RecordedDisk, materialize

#: About how many states are looked at.
WANTED = int(os.environ.get("SWIFT_POWER_CUT_STATES", "1000"))
HASH = "ab" * 16
#: The state of a missing database.
NOTHING = None


def at(second):
    return Timestamp(f"{1_700_000_000 + second}.00000")


def row(name, second, size=5):
    return ObjectRow(name, at(second).internal, size, "text/plain", "e")


class World:
    """A container (or account) on a recorded device, and what was acknowledged of it."""

    kind, name_hash = "containers", HASH

    def __init__(self, root):
        self.root = root
        live = root / "live"
        live.mkdir()
        self.log = Log(str(live))
        self.place = DatabasePath(str(live), self.kind, "1", self.name_hash)
        self.disk = RecordedDisk(self.log)
        self.broker = self.open(self.place, Engine(disk=self.disk))
        self.known = NOTHING

    @staticmethod
    def open(place, engine):
        return ContainerBroker(place, engine, "a", "c")

    def step(self, expected, act):
        """Make a change whose acknowledged state is ``expected``."""
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
        """Serve a request, which merges pending rows."""

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
        """Return the state that a server reads when it starts on this device."""
        place = DatabasePath(str(root), self.kind, "1", self.name_hash)
        if not files.database_files(self.disk, place):
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
    kind = "accounts"

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


# --- cutting ------------------------------------------------------------------------------------------


def legal(found, known, upcoming):
    """Return True if each found value is the known or the upcoming one."""
    if found is None:
        return known is None or upcoming is None
    known, upcoming = known or {}, upcoming or {}
    return all(
        found.get(key) in (known.get(key), upcoming.get(key))
        for key in {*found, *known, *upcoming}
        # An account or container may exist before its creation is acknowledged.
        if (key, found.get(key)) != ("#", "alive") or known.get("#") != "deleted"
    )


def moments(world, steps, forget=None):
    """Yield the simulated disk after every operation, with the known and the upcoming state."""
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
    """Check the states that power cuts leave; return their number. AssertionError for an illegal state."""
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
