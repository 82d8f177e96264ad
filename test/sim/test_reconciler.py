"""Objects in a wrong policy are moved to the right one; nothing is lost or resurrected."""

import json
import time

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.direct import DirectClient, NodeTimeouts, has_majority
from swift.container.misplaced import entry
from swift.container.reconciler.queue import ReconcilerQueue
from swift.container.reconciler.task import ContainerReconciler, ContainerReconcilerSettings
from swift.container.rows import ObjectRow
from swift.gateway.internal_client import InternalClient
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import Runner
from swift.runtime.stop import StopRequest
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import LogLines, VirtualTime
from test.support.filters import EncryptionFixture

#: In the hour before this one, so that nothing is old and nothing is in the future.
NOW_S = int(time.time()) // 3600 * 3600 - 600
RIGHT, WRONG = 0, 2


class Bench:
    def __init__(self, sim, root):
        self.sim = sim
        self.log = LogLines()
        self.clock = VirtualTime(NOW_S)
        telemetry = Telemetry(self.log)
        self.context = BackendContext(
            devices=Devices(str(root), mount_check=False),
            hasher=sim.hasher,
            policies=sim.policies,
            telemetry=telemetry,
            clock=self.clock,
            transport=sim.transport,
        )
        (root / "recon").mkdir()
        self.recon = ReconFile(str(root / "recon"), "container", telemetry.log)
        self.direct = DirectClient(sim.transport, "test", NodeTimeouts(5, 5))
        self.tick = 0
        #: The pipeline through which the daemon moves objects.
        self.pipeline = sim.app.handle

    def stamp(self, tick):
        return f"{NOW_S - 1000 + tick}.00000"

    def put(self, name, tick, body, *, policy=WRONG, **headers):
        sent = {"x-backend-storage-policy-index": str(policy), "x-timestamp": self.stamp(tick), **headers}
        assert self.sim("PUT", f"/a/c/{name}", sent, body).status == 201

    def delete(self, name, tick, *, policy=WRONG):
        sent = {"x-backend-storage-policy-index": str(policy), "x-timestamp": self.stamp(tick)}
        return self.sim("DELETE", f"/a/c/{name}", sent).status

    def queue(self, name, tick, *, deleted=0):
        row = ObjectRow(name, self.stamp(tick), 0, "", "", deleted, WRONG)
        return self.enqueue(row)

    def enqueue(self, row):
        """Queue a row as swift-reconciler-enqueue does; return the queue's container."""
        hour, queued = entry(row, "a/c")
        target = EntityPath(".misplaced_objects", hour, queued.name)
        part, nodes = self.sim.context.rings.container.nodes(
            self.sim.hasher.digest(".misplaced_objects", hour)
        )
        headers = {
            "x-timestamp": Timestamp(queued.created_at).internal,
            "x-size": "0",
            "x-etag": queued.etag,
            "x-content-type": queued.content_type,
            "x-backend-storage-policy-index": "0",
        }
        assert has_majority(self.direct.request_all(nodes, part, "PUT", target, headers))
        return hour

    def run_once(self, **options):
        settings = ContainerReconcilerSettings(node_timeout=5.0, **options)
        client = InternalClient(self.pipeline, "reconciler", backoff_s=0.0)
        mover = InternalClient(self.pipeline, "reconciler", tries=1)
        queue = ReconcilerQueue(
            client, processes=settings.processes, process=settings.process, warn=self.log.warning
        )
        task = ContainerReconciler(self.context, self.sim.context.rings, settings, client, mover, queue)
        runner = Runner(
            task,
            settings.schedule,
            telemetry=self.context.telemetry,
            recon=self.recon,
            clock=self.clock,
            stop=StopRequest(self.clock, self.clock.sleep),
        )
        assert runner.run_once()
        return {k: v for k, v in self.recon.read().get("reconciler_stats", {}).items() if v}

    def queued(self):
        client = InternalClient(self.sim.app.handle, "test")
        rows = client.containers(".misplaced_objects")
        names = {row["name"] for row in rows} | {str((NOW_S - 1000) // 3600 * 3600)}
        return [row["name"] for name in names for row in client.objects(".misplaced_objects", name)]

    def get(self, name, policy=None):
        headers = {} if policy is None else {"x-backend-storage-policy-index": str(policy)}
        return self.sim("GET", f"/a/c/{name}", {**headers, "x-newest": "true"})


@pytest.fixture
def bench(sim, tmp_path):
    root = tmp_path / "reconciler"
    root.mkdir()
    return Bench(sim, root)


def test_an_object_moves_with_its_metadata_and_its_queue_entry_is_removed(bench):
    extra = {"x-object-meta-color": "red", "content-type": "text/x", "x-object-sysmeta-a": "b"}
    bench.put("o/x", 1, b"precious", **extra)
    bench.queue("o/x", 1)
    assert bench.queued() == ["2:/a/c/o/x"]
    assert bench.run_once() == {"success": 1}
    moved = bench.get("o/x")
    assert (moved.status, moved.body) == (200, b"precious")
    assert moved.headers["x-object-meta-color"] == "red"
    assert moved.headers["content-type"] == "text/x"
    assert moved.headers["x-object-sysmeta-a"] == "b"
    assert moved.headers["x-backend-timestamp"] == f"{bench.stamp(1)}_0000000000000003"
    assert bench.get("o/x", WRONG).status == 404
    assert bench.queued() == []
    assert [row["name"] for row in json.loads(bench.sim("GET", "/a/c?format=json").body)] == ["o/x"]
    assert bench.run_once() == {}


def test_a_newer_object_in_the_right_policy_stays(bench):
    bench.put("o", 1, b"old")
    bench.put("o", 2, b"new", policy=RIGHT)
    bench.queue("o", 1)
    assert bench.run_once() == {"success": 1}
    assert bench.get("o").body == b"new"
    assert bench.get("o", WRONG).status == 404


def test_a_deletion_reaches_the_right_policy(bench):
    bench.put("o", 1, b"old", policy=RIGHT)
    bench.delete("o", 2)
    bench.queue("o", 2, deleted=1)
    assert bench.run_once() == {"success": 1}
    assert bench.get("o").status == 404
    assert bench.get("o").headers["x-backend-timestamp"] == f"{bench.stamp(2)}_0000000000000003"


def test_an_object_deleted_after_it_was_queued_does_not_return(bench):
    bench.put("o", 1, b"x")
    bench.delete("o", 2)
    bench.queue("o", 1)
    bench.run_once()
    assert bench.get("o").status == 404
    assert bench.get("o", WRONG).status == 404
    assert bench.queued() == []


def test_the_tombstones_of_the_reconciler_itself_are_not_queued_again(bench):
    bench.put("o", 1, b"x")
    bench.queue("o", 1)
    bench.run_once()
    # The tombstone's row has the wrong policy as well, so the replicator queues it; the removal is newer.
    row = ObjectRow("o", f"{bench.stamp(1)}_1", 0, "", "", 1, WRONG)
    bench.enqueue(row)
    assert bench.queued() == []
    assert bench.run_once() == {}
    assert bench.get("o").body == b"x"


def test_a_queue_entry_of_an_object_in_the_right_policy_is_removed(bench):
    row = ObjectRow("o", bench.stamp(1), 0, "", "", 0, RIGHT)
    bench.put("o", 1, b"x", policy=RIGHT)
    bench.enqueue(row)
    assert bench.run_once() == {"noop_object": 1}
    assert bench.get("o").body == b"x"
    assert bench.queued() == []


def test_a_missing_object_is_retried_until_the_reclaim_age(bench):
    bench.queue("o", 1)
    assert bench.run_once() == {"unavailable_source": 1}
    assert bench.queued() == ["2:/a/c/o"]
    assert bench.run_once(reclaim_age=10) == {"lost_source": 1}
    assert bench.queued() == []
    assert any("removing queue entry" in line for line in bench.log.lines)


def test_nothing_is_moved_while_a_majority_of_the_container_is_down(bench):
    bench.put("o", 1, b"x")
    bench.queue("o", 1)
    primaries = bench.sim.primaries("container", "a", "c")
    with bench.sim.refusing("container", *primaries[:2]):
        told = bench.run_once()
    assert told in ({"unavailable_container": 1}, {})
    assert bench.get("o", WRONG).body == b"x"
    assert bench.run_once() == {"success": 1}
    assert bench.get("o").body == b"x"


def test_a_failed_move_is_retried(bench):
    bench.put("o", 1, b"x")
    bench.queue("o", 1)
    with bench.sim.responding("object", 503, *bench.sim.primaries("object", "a", "c", "o")):
        assert bench.run_once() == {"errors": 1}
    bench.sim.clear_node_errors()
    assert bench.queued() == ["2:/a/c/o"]
    assert bench.run_once() == {"success": 1}
    assert bench.get("o").body == b"x"


def test_processes_share_the_queue(bench):
    for number in range(8):
        bench.put(f"o{number}", number, b"x")
        bench.queue(f"o{number}", number)
    first = bench.run_once(processes=2, process=0)["success"]
    second = bench.run_once(processes=2, process=1)["success"]
    assert first + second == 8
    assert first and second
    assert bench.queued() == []


def test_old_empty_queue_containers_are_removed_and_invalid_rows_kept(bench):
    bench.put("o", 1, b"x")
    hour = bench.queue("o", 1)
    client = InternalClient(bench.sim.app.handle, "test")
    client.create(EntityPath(".misplaced_objects", hour))
    client.put(EntityPath(".misplaced_objects", hour, "no entry"), b"", {"content-type": "t/p"})
    assert bench.run_once(reclaim_age=3600 * 24) == {"success": 1}
    assert bench.queued() == ["no entry"]
    assert any("names no policy" in line for line in bench.log.lines)
    client.delete(EntityPath(".misplaced_objects", hour, "no entry"))
    bench.run_once(reclaim_age=1)
    assert not client.exists(EntityPath(".misplaced_objects", hour))


def test_times_with_offsets_keep_their_order():
    stamp = Timestamp("1402436408.91203_f0")
    assert Timestamp(stamp, offset=3).internal == "1402436408.91203_00000000000000f3"


@pytest.mark.parametrize("decrypts", [False, True])
def test_encrypted_objects_move_whether_the_pipeline_decrypts_them_or_not(bench, decrypts):
    front = EncryptionFixture(bench.sim)
    if decrypts:
        bench.pipeline = front.filter.handle
    index = {"x-backend-storage-policy-index": str(WRONG), "x-timestamp": bench.stamp(1)}
    headers = {**index, "x-object-meta-color": "red", "content-type": "text/x"}
    assert front("PUT", "/a/c/o", headers, b"needle").status == 201
    etag = front("GET", "/a/c/o", index).headers["etag"]
    bench.queue("o", 1)
    assert bench.run_once() == {"success": 1}
    moved = front("GET", "/a/c/o", {"x-newest": "true"})
    assert (moved.status, moved.body, moved.headers["etag"]) == (200, b"needle", etag)
    assert moved.headers["x-object-meta-color"] == "red"
    assert bench.get("o").body != b"needle"
    assert bench.get("o", WRONG).status == 404
    (row,) = json.loads(front("GET", "/a/c?format=json").body)
    assert (row["hash"], row["bytes"]) == (etag.strip('"'), 6)
