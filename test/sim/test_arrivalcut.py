"""Power cuts while a database from another node replaces the local one.

The rows that this node had acknowledged, in its database or still in the pending file, must survive at every
moment; the rows of the database that arrived are there from the answer on.
"""

import json
import random

import pytest

from swift.base.hashing import PathHasher
from swift.container.server import ContainerServer
from swift.db.connection import DatabaseError
from swift.http.request import Request
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from swift.runtime.diskcalls import DiskThreadPools
from test.sim.databaseworld import WANTED, World, at, cut
from test.sim.sqlitecut import Recorder, sqlite_library

HASHER = PathHasher(b"", b"s")
HASH = HASHER.hexdigest("a", "c")
LIBRARY = sqlite_library()

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="SQLite is built into this Python")


class Node:
    """A container server and requests to it."""

    def __init__(self, folder, device, disk=None):
        self.device = device
        (folder / device).mkdir(exist_ok=True)
        devices = Devices(str(folder), mount_check=False)
        context = BackendContext(devices=devices, hasher=HASHER, pools=DiskThreadPools(0))
        self.server = ContainerServer(context, disk=disk)
        self.database = folder / device / "containers" / "1" / HASH[-3:] / HASH

    def create(self, second):
        self._ask("PUT", "/a/c", {"x-timestamp": at(second).internal})

    def row(self, name, second, *, deleted=False):
        headers = {"x-timestamp": at(second).internal, "x-size": "5", "x-etag": "e", "x-content-type": "t/p"}
        self._ask("DELETE" if deleted else "PUT", f"/a/c/{name}", headers)

    def _ask(self, method, path, headers):
        response = self.server.handle(Request(method, f"/{self.device}/1{path}", headers))
        assert response.status // 100 == 2, response.status

    def replicate(self, *message, body=None, headers=None):
        data = json.dumps(message).encode() if body is None else body
        path = f"/{self.device}/1/{HASH}"
        return self.server.handle(Request("REPLICATE", path, headers or {}, data))

    def close(self):
        self.server.brokers.close()


class ArrivalWorld(World):
    """A container of this node, told by requests, and one of another node whose file is brought here."""

    name_hash = HASH

    def __init__(self, root):
        super().__init__(root)
        self.here = Node(root, "live", self.disk)
        self.there = Node(root, "other")
        self.theirs = {}

    def create_here(self, second):
        self.step({"#": "alive"}, lambda: self.here.create(second))

    def row_here(self, name, second, *, deleted=False):
        known = {**self.known, name: (at(second).internal, int(deleted))}
        self.step(known, lambda: self.here.row(name, second, deleted=deleted))

    def row_there(self, name, second, *, deleted=False):
        self.there.row(name, second, deleted=deleted)
        self.theirs[name] = (at(second).internal, int(deleted))

    def arrive(self, operation):
        """Receive the other node's database; a newer row wins."""
        info = ["0", "0" * 32, "us", at(1).internal, at(1).internal, "0", ""]
        assert self.there.replicate("sync", 0, *info[1:]).status == 200
        (source,) = self.there.database.glob("*.db")
        known = {"#": "alive", **self.theirs}
        for name, what in (self.known or {}).items():
            known[name] = max(what, known.get(name, what))

        def bring():
            upload = {"x-backend-database-upload": "theirs"}
            assert self.here.replicate(body=source.read_bytes(), headers=upload).status == 204
            assert self.here.replicate(operation, "theirs", f"{HASH}.db").status == 204

        self.step(known, bring)


def exchanged(world):
    world.create_here(1)
    for name in "abc":
        world.row_here(name, 2)
    world.there.create(1)
    world.row_there("a", 3, deleted=True)
    world.row_there("b", 1)
    for number in range(40):
        world.row_there(f"x{number:02}", 2)
    # There was no request since: the row is still in the pending file.
    world.row_here("d", 4)
    world.arrive("rsync_then_merge")
    world.row_here("e", 5)
    world.row_here("x01", 6, deleted=True)


def installed(world):
    world.there.create(1)
    for number in range(40):
        world.row_there(f"x{number:02}", 2)
    world.arrive("complete_rsync")
    world.row_here("a", 3)


def told(story, root):
    world = ArrivalWorld(root)
    with Recorder(LIBRARY, world.log):
        try:
            story(world)
        finally:
            world.here.close()
            world.there.close()
    return world


@pytest.mark.long
@pytest.mark.parametrize("story", [exchanged, installed], ids=lambda story: story.__name__)
def test_a_power_cut_during_database_replication_loses_no_acknowledged_row(story, root):
    world = told(story, root)
    steps = len(world.log.steps)
    states = cut(
        world, random.Random(steps), max(2, WANTED // 4 // min(steps, 80)), every=max(1, steps // 60)
    )
    print(f"{states} states after power cuts in {steps} steps")
    assert states >= 100


def arrival_syncs(world):
    """Return the steps that make the received file and its name durable."""
    directory = str(world.here.database)
    path_of = {step.args[0]: step.args[1] for step in world.log.steps if step.what == "open"}
    renamed = None
    for number, step in enumerate(world.log.steps):
        if step.what == "fsync" and path_of[step.args[0]].endswith("/tmp/theirs"):
            yield number
        elif step.what == "rename" and step.args[0].endswith("/tmp/theirs"):
            renamed = number
        elif step.what == "sync directory" and renamed is not None and step.args[0] == directory:
            yield number
            return


@pytest.mark.long
@pytest.mark.parametrize("story", [exchanged, installed], ids=lambda story: story.__name__)
def test_a_missing_sync_of_a_received_database_is_detected(story, root):
    world = told(story, root)
    numbers = list(arrival_syncs(world))
    assert len(numbers) >= 2
    for number in numbers:
        with pytest.raises((AssertionError, DatabaseError)):
            cut(world, random.Random(number), 8, forget=number)
