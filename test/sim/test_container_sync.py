"""Container sync between two simulated clusters, with failures of nodes and requests."""

import base64
import json
from pathlib import Path

import pytest

from swift.cluster.syncrealms import Realm, Realms
from swift.cluster.transport import BackendResponse
from swift.container.server import ContainerServer
from swift.container.sync.remote import RemoteError
from swift.container.sync.task import ContainerSync, ContainerSyncSettings
from swift.gateway.internal_client import InternalClient
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Runner
from swift.runtime.stop import StopRequest
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import LogLines, VirtualTime
from test.support.disks import AgedDisk
from test.support.filters import ONE, EncryptionFixture, as_stored
from test.support.sim import NODES, node_port

REALMS = Realms({"R": Realm("key", clusters={"FAR": "http://far/v1/"})})
SYNC_TO = {"x-container-sync-to": "//r/far/b/copy", "x-container-sync-key": "secret"}


class FarCluster:
    """Another simulated cluster, accessed as over the network."""

    def __init__(self, sim):
        self.sim = sim
        self.asked = []
        self.fails = set()

    def ask(self, method, target, name, timestamp, headers, body=None, *, query=""):
        self.asked.append((method, name))
        if name in self.fails:
            raise RemoteError("cut")
        assert target.credentials(method, name, timestamp)["x-container-sync-auth"].startswith("R ")
        sent = {**headers, "x-timestamp": timestamp}
        data = b"" if body is None else body.read()
        assert target.url_of("").startswith("http://far/v1/b/copy")
        response = self.sim(method, f"/b/copy/{name}?{query}", sent, data)
        return BackendResponse(response.status, response.headers)


class Bench:
    def __init__(self, near, far, root):
        self.near, self.far, self.root = near, far, root
        self.remote = FarCluster(far)
        self.log = LogLines()
        #: The pipeline from which the daemon reads objects.
        self.pipeline = near.app.handle
        #: Daemons that go on from pass to pass; None: each pass has a new one.
        self.kept = None
        self.syncs = 0
        for number in range(1, NODES + 1):
            kind, n, app = near.transport.apps[node_port("container", number)]
            with_realms = ContainerServer(app.context, realms=REALMS)
            near.transport.apps[node_port("container", number)] = (kind, n, with_realms)
        assert near("PUT", "/a/c", SYNC_TO).status == 201
        assert far("PUT", "/b/copy").status == 201

    def run_once(self, *numbers, **options):
        """Run one pass on nodes, all by default; return the sum of their counters."""
        total = {}
        for number in numbers or range(1, NODES + 1):
            for name, count in self._run(number, options).items():
                total[name] = total.get(name, 0) + count
        self.syncs = total.pop("syncs", 0)
        return {name: count for name, count in total.items() if count}

    def _run(self, number, options):
        telemetry = Telemetry(self.log)
        context = BackendContext(
            devices=Devices(str(self.near.root / f"node{number}"), mount_check=False),
            hasher=self.near.hasher,
            policies=self.near.policies,
            telemetry=telemetry,
            clock=VirtualTime(),
            transport=self.near.transport,
            ring_ip="10.0.0.1",
            ring_port=node_port("container", number),
        )
        settings = ContainerSyncSettings(**options)
        client = InternalClient(self.pipeline, "sync", must_decrypt=True, backoff_s=0.0)
        ring = self.near.context.rings.container
        disk = None if self.kept is None else AgedDisk()
        task = ContainerSync(context, ring, settings, client, self.remote, REALMS, disk=disk)
        if self.kept is not None:
            task = self.kept.setdefault(number, task)
        folder = self.root / f"recon{number}"
        folder.mkdir(exist_ok=True)
        recon = ReconFile(str(folder), "container", telemetry.log)
        clock = context.clock
        runner = Runner(
            task,
            settings.schedule,
            telemetry=telemetry,
            recon=recon,
            clock=clock,
            stop=StopRequest(clock, clock.sleep),
        )
        assert runner.run_once()
        return recon.read()["container_sync_stats"]

    def put(self, name, body=b"x", **headers):
        assert self.near("PUT", f"/a/c/{name}", headers, body).status == 201

    def names(self):
        return [row["name"] for row in json.loads(self.far("GET", "/b/copy?format=json").body)]

    def links(self):
        return sorted(self.near.root.glob("node*/sdb*/sync_containers/*/*/*/*.db"))


@pytest.fixture
def bench(tmp_path, make_sim):
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    far.mkdir()
    return Bench(make_sim(root=near), make_sim(root=far), tmp_path)


def test_objects_metadata_timestamps_and_deletions_are_copied(bench):
    bench.put("o/1", b"one", **{"x-object-meta-a": "b", "content-type": "text/x"})
    bench.put("two", b"2" * 100_000)
    assert bench.run_once()["puts"] == 2
    assert bench.names() == ["o/1", "two"]
    here, there = bench.near("GET", "/a/c/o/1"), bench.far("GET", "/b/copy/o/1")
    for name in ("x-timestamp", "etag", "content-type", "x-object-meta-a"):
        assert here.headers[name] == there.headers[name]
    assert there.body == b"one"
    assert bench.near("DELETE", "/a/c/two").status == 204
    assert bench.run_once()["deletes"]
    assert bench.names() == ["o/1"]


def test_each_new_row_is_copied_by_one_node_and_later_passes_only_check(bench):
    for number in range(10):
        bench.put(f"o{number}")
    assert bench.run_once() == {"puts": 10}
    puts = [name for method, name in bench.remote.asked if method == "PUT"]
    assert sorted(puts) == sorted(set(puts))
    assert bench.run_once() == {}
    bench.remote.asked.clear()
    # All rows were checked twice: no more requests are sent.
    assert bench.run_once() == {}
    assert bench.remote.asked == []


def test_the_rows_of_an_unreachable_node_are_copied_by_the_others(bench):
    for number in range(12):
        bench.put(f"o{number}")
    away, *others = bench.near.primaries("container", "a", "c")
    bench.run_once(*others)
    assert len(bench.names()) < 12
    bench.run_once(*others)
    assert len(bench.names()) == 12
    assert away not in others


def test_a_failed_copy_is_retried_in_a_later_pass(bench):
    bench.remote.fails = {"o3", "o7"}
    for number in range(10):
        bench.put(f"o{number}")
    assert bench.run_once()["failures"] == 2
    assert len(bench.names()) == 8
    bench.run_once()
    bench.remote.fails.clear()
    bench.run_once()
    assert len(bench.names()) == 10


def test_newer_objects_at_the_destination_are_kept(bench):
    bench.put("o", b"old")
    assert bench.far("PUT", "/b/copy/o", {}, b"newer").status == 201
    bench.run_once()
    assert bench.far("GET", "/b/copy/o").body == b"newer"


def test_only_synchronised_containers_have_links(bench):
    assert bench.near("PUT", "/a/other").status == 201
    links = bench.links()
    assert len(links) == 3
    assert all(Path(link).resolve().exists() for link in links)
    assert bench.near("POST", "/a/c", {"x-container-sync-to": ""}).status == 204
    assert bench.links() == []
    assert bench.near("POST", "/a/c", SYNC_TO).status == 204
    assert len(bench.links()) == 3
    assert bench.near("DELETE", "/a/c").status == 204
    assert bench.links() == []


def test_versioned_containers_and_unknown_realms_are_left_alone(bench):
    bench.put("o")
    for node in range(1, NODES + 1):
        app = bench.near.transport.apps[node_port("container", node)][2]
        app._realms = Realms({"R": Realm("key", clusters={"FAR": "http://far/v1/", "X": "http://x/"})})
    assert bench.near("POST", "/a/c", {"x-container-sync-to": "//r/x/b/copy"}).status == 204
    assert bench.run_once() == {"failures": 3}
    assert any("No cluster endpoint" in line for line in bench.log.lines)
    headers = {"x-container-sysmeta-versions-enabled": "true"}
    assert bench.near("POST", "/a/c", {**SYNC_TO, **headers}).status == 204
    assert bench.run_once() == {"skips": 3}
    assert bench.names() == []


def test_the_time_for_each_container_is_limited(bench):
    for number in range(10):
        bench.put(f"o{number}")
    assert bench.run_once(container_time=0.0) == {}
    assert bench.names() == []


def test_an_idle_container_is_not_opened_until_something_happens(bench):
    bench.kept = {}
    bench.put("one")
    syncs = []
    for _ in range(5):
        bench.run_once()
        syncs.append(bench.syncs)
    assert syncs[0] == 3
    assert syncs[-1] == 0
    bench.remote.fails = {"two"}
    bench.put("two")
    for _ in range(4):
        assert bench.run_once()["failures"]
    bench.remote.fails = set()
    bench.run_once()
    bench.run_once()
    assert "two" in [name for method, name in bench.remote.asked if method == "PUT"]
    for _ in range(3):
        bench.run_once()
    assert bench.syncs == 0


TWO = base64.b64encode(b"B" * 32).decode()


def test_encrypted_objects_are_copied_by_a_pipeline_that_decrypts_them(bench):
    front, there = EncryptionFixture(bench.near), EncryptionFixture(bench.far, encryption_root_secret=TWO)
    bench.remote.sim = there
    bench.pipeline = front.filter.handle
    headers = {"x-object-meta-a": "b", "content-type": "text/x"}
    assert front("PUT", "/a/c/o", headers, b"needle").status == 201
    assert front("PUT", "/a/c/none", headers).status == 201
    assert as_stored(bench.near, "GET", "/a/c/o").body != b"needle"
    assert bench.run_once() == {"puts": 2, "bytes": 6} or bench.names() == ["none", "o"]
    here, copy = front("GET", "/a/c/o"), there("GET", "/b/copy/o")
    assert copy.body == b"needle"
    for name in ("x-timestamp", "etag", "content-type", "x-object-meta-a"):
        assert here.headers[name] == copy.headers[name]
    stored = as_stored(bench.far, "GET", "/b/copy/o").body
    assert stored not in (b"needle", as_stored(bench.near, "GET", "/a/c/o").body)
    assert there("GET", "/b/copy/none").headers["x-object-meta-a"] == "b"
    assert front("DELETE", "/a/c/o").status == 204
    bench.run_once()
    assert there("GET", "/b/copy/o").status == 404


def test_objects_that_the_pipeline_cannot_decrypt_are_not_copied(bench):
    front = EncryptionFixture(bench.near, encryption_root_secret=ONE)
    assert front("PUT", "/a/c/o", {}, b"needle").status == 201
    assert front("PUT", "/a/c/none", {"x-object-meta-a": "b"}).status == 201
    assert bench.run_once()["failures"]
    assert bench.names() == []
    assert "PUT" not in [method for method, _name in bench.remote.asked]
    assert any("no keymaster and encryption to read it" in line for line in bench.log.lines)
    bench.pipeline = front.filter.handle
    bench.run_once()
    assert bench.names() == ["none", "o"]
