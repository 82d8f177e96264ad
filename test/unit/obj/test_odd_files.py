"""Odd files on a device are damage: no request or daemon hangs, and the object can be written again."""

import os

import pytest

from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.http.request import Request
from swift.obj.server import ObjectServer
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.policy.policy import Policies
from swift.runtime.backendapp import BackendContext
from swift.store.api import Location
from swift.store.registry import EngineParts, StoreRegistry
from test.support.disks import ODD, bounded, replace

PATH = "/sda/1/AUTH_a/c/o"
HASHER = PathHasher(b"p")
HASH = HASHER.hexdigest("AUTH_a", "c", "o")
PLACE = f"objects/1/{HASH[-3:]}/{HASH}"
#: Where something odd may be, below the device.
DATA, META = f"{PLACE}/5000000001.00000.data", f"{PLACE}/5000000002.00000.meta"
PLACES = {
    "data": DATA,
    "meta": META,
    "tombstone": f"{PLACE}/5000000003.00000.ts",
    "hash directory": PLACE,
    "suffix": f"objects/1/{HASH[-3:]}",
    "partition": "objects/1",
    "hashes.pkl": "objects/1/hashes.pkl",
    "journal": "objects/1/hashes.invalid",
    "lock": "objects/1/.lock",
    "replication lock": "objects/1/.lock-replication",
    "device lock": ".lock",
    "reservation": f"tmp/reserved-{HASH}",
}


class Node:
    def __init__(self, root):
        self.root = root / "sda"
        self.root.mkdir()
        self.clock = ManualClock(5_000_000_000.0)
        context = BackendContext(
            devices=Devices(str(root), mount_check=False), hasher=HASHER, clock=self.clock
        )
        parts = EngineParts(devices=context.devices, hasher=HASHER, clock=self.clock, disk=Disk())
        self.stores = StoreRegistry(parts)
        self.app = ObjectServer(context, ObjectSettings(), self.stores)
        self.store = self.stores.engine(Policies.single().get(0))
        self.policy = Policies.single().get(0)

    def ask(self, method, second=0, body=b"", path=PATH, **headers):
        headers["x-timestamp"] = f"{5_000_000_000 + second}.00000"
        if method == "PUT":
            headers |= {"content-type": "a/b", "content-length": str(len(body))}
        response = self.app.handle(Request(method, path, headers, body))
        return response.status, response.read_body()

    def audit(self):
        for name in self.store.inventory("sda", "1", self.policy):
            at = Location("sda", "1", self.policy, name)
            self.store.maintenance.audit(at, full=True, pace=lambda _count: None, temporary_age_s=1e6)


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    assert made.ask("PUT", 1, b"body")[0] == 201
    assert made.ask("POST", 2, **{"x-object-meta-a": "b"})[0] == 202
    made.store.hashes("sda", "1", made.policy)
    return made


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("place", PLACES)
def test_nothing_hangs_and_the_object_can_be_written_again(node, place, kind):
    target = node.root / PLACES[place]
    target.parent.mkdir(exist_ok=True)
    replace(target, kind)
    with bounded():
        for method in ("HEAD", "GET"):
            assert node.ask(method, 4)[0] in (200, 404, 503)
        node.ask("REPLICATE", path="/sda/1")
        node.audit()
        with node.store.replication_lock("sda", "1", node.policy, 1.0):
            pass
        for second in (10, 11):
            status = node.ask("PUT", second, b"again")[0]
            if status == 201:
                break
        assert status == 201
        assert node.ask("GET") == (200, b"again")
        assert node.ask("POST", 20, **{"x-object-meta-a": "c"})[0] == 202
        hashes = node.store.hashes("sda", "1", node.policy)
        assert hashes[HASH[-3:]]
        assert node.ask("DELETE", 30)[0] == 204


@pytest.mark.parametrize("kind", sorted(set(ODD) - {"empty"}))
@pytest.mark.parametrize("place", ["data", "meta", "hash directory"])
def test_what_is_odd_in_the_place_of_an_object_is_quarantined_by_an_audit(node, place, kind):
    if (place, kind) in {("hash directory", "directory"), ("meta", "link")}:
        # A directory is no odd hash directory; a link to metadata is read, and is damaged by what it says.
        kind = "fifo"
    replace(node.root / PLACES[place], kind)
    with bounded():
        node.audit()
    assert len(os.listdir(node.root / "quarantined/objects")) == 1
