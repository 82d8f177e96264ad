"""The object updater delivers every stored update to every replica and loses none (replication.md §6)."""

import pickle
from pathlib import Path

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse, TransportError
from swift.obj.updater.task import ObjectUpdater, ObjectUpdaterSettings
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.api import AsyncUpdate, PendingUpdate, UpdateRef
from swift.store.asyncpending import FileUpdates
from swift.store.registry import EngineParts, StoreRegistry
from test.support.daemons import DaemonFixture, FakeRing

NOW = 1_700_000_000
POLICIES = [Policy(0, "gold", is_default=True), Policy(1, "silver")]


class PowerCut(BaseException):
    """The process ends here."""


class Bench:
    """An updater on temporary devices and short ways to give it work."""

    def __init__(self, root, devices=("sda",), disk=None, **options):
        self.rig = DaemonFixture(root, devices)
        self.ring = FakeRing()
        self.nodes = self.rig.nodes
        self.disk = disk or Disk()
        self.settings = ObjectUpdaterSettings(**options)
        context = self.rig.context
        parts = EngineParts(context.devices, context.hasher, context.clock, self.disk)
        stores = StoreRegistry(parts)
        self.kept = FileUpdates(Disk(), context.devices, context.hasher)
        self.task = ObjectUpdater(context, self.ring, self.settings, stores)

    def save(self, name="o", at=NOW, op="PUT", *, device="sda", policy=0, container="c", **more):
        """Store an update as the object server does; its path."""
        headers = {"X-Timestamp": Timestamp(at).internal, "X-Size": "3", "Referer": "PUT x"}
        extra = more.pop("extra", None)
        update = AsyncUpdate(op, EntityPath("AUTH_a", container, name), headers, **more)
        kept = self.kept
        kept.save(device, POLICIES[policy], update, Timestamp(at))
        name = f"{self.rig.context.hasher.hexdigest(*update.path)}-{Timestamp(at).internal}"
        ref = UpdateRef(device, POLICIES[policy], name)
        if extra:
            successes, redirects = extra.get("successes", ()), extra.get("redirect_history", ())
            kept.rewrite(PendingUpdate(ref, Timestamp(at), update, tuple(successes), tuple(redirects)))
        (path,) = self.rig.root.glob(f"{device}/async_pending*/*/{name}")
        return str(path)

    def run_once(self):
        """One pass; what it counted on all devices."""
        seen = []
        report, self.task.report = self.task.report, lambda passed: seen.append(passed) or report(passed)
        assert self.rig.runner(self.task, self.settings.schedule).run_once()
        del self.task.report
        counts = {}
        for result in seen[0].results.values():
            for event, count in result.counts.items():
                counts[event] = counts.get(event, 0) + count
        self.recon = self.rig.recon("object").read()
        return counts

    def pendings(self):
        return sorted(p.name for p in self.rig.root.glob("*/async_pending*/*/*"))

    def record(self):
        (path,) = self.rig.root.glob("*/async_pending*/*/*")
        return pickle.loads(path.read_bytes())


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def moved(location, at, **more):
    return BackendResponse(
        301, {"location": location, "x-backend-redirect-timestamp": Timestamp(at).internal, **more}
    )


def test_an_update_goes_to_every_replica_and_is_removed(bench):
    bench.save("object é", op="PUT")
    assert bench.run_once() == {"successes": 1, "unlinks": 1}
    assert bench.nodes.asked == [0, 1, 2]
    number, method, path, headers = bench.nodes.requests[0]
    assert (method, path) == ("PUT", f"/d{number}/7/AUTH_a/c/object%20%C3%A9")
    assert headers["user-agent"].startswith("object-updater ")
    assert headers["x-size"] == "3"
    assert headers["x-backend-storage-policy-index"] == "0"
    assert headers["x-backend-accept-redirect"] == "true"
    assert headers["x-backend-accept-quoted-location"] == "true"
    assert bench.pendings() == []
    assert list((bench.rig.root / "sda/async_pending").iterdir()) == []


def test_nothing_to_do_asks_nobody(bench):
    assert bench.run_once() == {}
    assert bench.nodes.requests == []


def test_a_delete_is_sent_as_such(bench):
    bench.save(op="DELETE")
    bench.run_once()
    assert {method for _, method, *_ in bench.nodes.requests} == {"DELETE"}


def test_the_directorys_policy_is_named_unless_the_record_names_one(bench):
    bench.save(policy=1)
    bench.run_once()
    assert bench.nodes.requests[0][3]["x-backend-storage-policy-index"] == "1"


def test_who_has_it_is_remembered_and_not_asked_again(bench):
    bench.save()
    bench.nodes.answers = {1: 503, 2: TransportError("no route")}
    assert bench.run_once() == {"failures": 1}
    assert bench.record()["successes"] == [0]
    bench.nodes.requests.clear()
    bench.nodes.answers = {2: 404}
    assert bench.run_once() == {"failures": 1}
    assert bench.nodes.asked == [1, 2]
    assert sorted(bench.record()["successes"]) == [0, 1]
    bench.nodes.requests.clear()
    bench.nodes.answers = {}
    assert bench.run_once() == {"successes": 1, "unlinks": 1}
    assert bench.nodes.asked == [2]
    assert bench.pendings() == []


def test_a_record_is_left_untouched_when_nothing_new_succeeded(bench):
    bench.save()
    (path,) = bench.rig.root.glob("*/async_pending/*/*")
    before = path.stat()
    bench.nodes.answers = {0: 503, 1: 503, 2: 404}
    bench.run_once()
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_only_the_newest_update_of_an_object_is_sent(bench):
    for second in range(4):
        bench.save("o", NOW + second)
    bench.save("other", NOW)
    assert bench.run_once() == {"successes": 2, "unlinks": 2, "outdated_unlinks": 3}
    sent = {headers["x-timestamp"] for _, _, path, headers in bench.nodes.requests if path.endswith("/o")}
    assert sent == {Timestamp(NOW + 3).internal}
    assert bench.pendings() == []


def test_a_damaged_update_is_quarantined_and_stops_nothing(bench):
    path = bench.save("bad")
    Path(path).write_bytes(b"\x80garbage")
    bench.save("good")
    assert bench.run_once() == {"successes": 1, "unlinks": 1, "quarantines": 1}
    assert bench.pendings() == []
    assert (bench.rig.root / "sda/quarantined/objects" / path.rpartition("/")[2]).exists()


def test_an_older_update_stands_in_for_a_damaged_newest(bench):
    bench.save("o", NOW)
    newest = bench.save("o", NOW + 5)
    Path(newest).write_bytes(b"")
    assert bench.run_once() == {"quarantines": 1, "successes": 1, "unlinks": 1}
    assert {headers["x-timestamp"] for *_, headers in bench.nodes.requests} == {Timestamp(NOW).internal}


def test_a_file_with_a_strange_name_is_an_error_and_stays(bench):
    folder = bench.rig.root / "sda/async_pending/abc"
    folder.mkdir(parents=True)
    (folder / "strange").touch()
    bench.save()
    assert bench.run_once() == {"errors": 1, "successes": 1, "unlinks": 1}
    assert bench.pendings() == ["strange"]


def test_all_devices_and_policies_are_visited_but_lost_ones(tmp_path):
    bench = Bench(tmp_path, ("sda", "sdb", "sdc"))
    bench.save("o1", device="sda")
    bench.save("o2", device="sda", policy=1)
    bench.save("o3", device="sdb", policy=1)
    assert bench.run_once() == {"successes": 3, "unlinks": 3}
    assert set(bench.recon["object_updater_per_device"]) == {"sda", "sdb", "sdc"}


def test_an_unmounted_device_is_skipped(tmp_path):
    bench = Bench(tmp_path, ("sda", "sdb"))
    bench.save(device="sdb")
    bench.rig.context.devices.mount_check = True
    (tmp_path / "srv/sdb/.ismount").touch()
    assert bench.run_once() == {"errors": 1, "successes": 1, "unlinks": 1}


def test_a_missing_ring_is_one_error_and_loses_nothing(bench):
    bench.save("o1")
    bench.save("o2")
    bench.ring.error = FileNotFoundError("container.ring.gz")
    assert bench.run_once() == {"errors": 1}
    assert len(bench.pendings()) == 2


# --- redirects --------------------------------------------------------------------------------------


def test_a_redirect_is_followed_once_to_the_newest_shard(bench):
    bench.save()
    responses = {0: moved("/.shards_a/old/o", 5), 1: moved("/.shards_a/new%2Bx/o", 9), 2: 201}
    responses[1].headers["x-backend-location-is-quoted"] = "true"
    for number, response in responses.items():
        bench.nodes.answers[number] = lambda _m, path, a=response: a if "/AUTH_a/" in path else 201
    assert bench.run_once() == {"redirects": 1, "successes": 1, "unlinks": 1}
    second = [path for _, _, path, _ in bench.nodes.requests if "/.shards_a/" in path]
    assert sorted(second) == [f"/d{n}/7/.shards_a/new%2Bx/o" for n in range(3)]


def test_where_a_redirect_led_is_remembered(bench):
    bench.save()
    for number in range(3):
        bench.nodes.answers[number] = lambda _m, path, n=number: (
            moved("/.shards_a/s1/o", 5) if "/AUTH_a/" in path else (201 if n == 1 else 503)
        )
    assert bench.run_once() == {"redirects": 1, "failures": 1}
    record = bench.record()
    assert record["container_path"] == ".shards_a/s1"
    assert record["redirect_history"] == [".shards_a/s1"]
    assert record["successes"] == [1]
    bench.nodes.requests.clear()
    bench.nodes.answers = {}
    bench.run_once()
    assert [path for *_, path, _ in bench.nodes.requests] == [
        f"/d{n}/7/.shards_a/s1/o" for n, *_ in bench.nodes.requests
    ]
    assert bench.nodes.asked == [0, 2]


def test_a_circle_of_redirects_ends_at_the_own_container(bench):
    bench.save(container_path=".shards_a/s1", extra={"redirect_history": [".shards_a/s1"]})
    bench.nodes.answers = dict.fromkeys(
        range(3), lambda _m, path: moved("/.shards_a/s1/o", 5) if "s1" in path else 503
    )
    bench.run_once()
    record = bench.record()
    assert "container_path" not in record or record["container_path"] is None
    assert record["successes"] == []
    assert "redirect_history" not in record


def test_an_update_for_a_shard_that_has_gone_goes_to_its_container(bench):
    bench.save(container_path=".shards_a/s1")
    bench.nodes.answers = dict.fromkeys(range(3), lambda _m, path: 404 if "s1" in path else 201)
    assert bench.run_once() == {"redirects": 1, "successes": 1, "unlinks": 1}
    assert bench.pendings() == []


def test_a_shard_that_some_server_does_not_answer_for_may_be_there(bench):
    bench.save(container_path=".shards_a/s1")
    bench.nodes.answers = {0: 404, 1: 404, 2: 503}
    assert bench.run_once() == {"failures": 1}
    assert bench.record()["container_path"] == ".shards_a/s1"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"location": "/a/c/o"},
        {"x-backend-redirect-timestamp": "5"},
        {"location": "/a", "x-backend-redirect-timestamp": "5"},
        {"location": "/a/c/o", "x-backend-redirect-timestamp": "soon"},
    ],
)
def test_an_unusable_redirect_is_a_failure(bench, headers):
    bench.save()
    bench.nodes.answers = {0: BackendResponse(301, headers)}
    assert bench.run_once() == {"failures": 1}
    assert sorted(bench.record()["successes"]) == [1, 2]


# --- nothing is lost --------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["unlink", "rename", "open"])
def test_a_crash_between_any_two_steps_loses_nothing(tmp_path, broken):
    class Failing(Disk):
        def __getattribute__(self, name):
            if name == broken and Failing.armed:
                raise PowerCut(name)
            return super().__getattribute__(name)

    Failing.armed = True
    bench = Bench(tmp_path, disk=Failing(), concurrency=1)
    for number in range(3):
        bench.save(f"o{number}")
    bench.nodes.answers = {} if broken == "unlink" else {2: 503}
    with pytest.raises(PowerCut):
        bench.rig.runner(bench.task, bench.settings.schedule).run_once()
    assert len(bench.pendings()) == 3
    Failing.armed = False
    bench.nodes.answers = {}
    assert bench.run_once() == {"successes": 3, "unlinks": 3}
    assert bench.pendings() == []


def test_a_file_that_cannot_be_read_stays_with_its_older_ones(tmp_path):
    class Unreadable(Disk):
        def open(self, path, flags, *more):
            if path.endswith(f"{NOW + 1}.00000"):
                raise OSError(5, "Input/output error")
            return Disk.open(path, flags, *more)

    bench = Bench(tmp_path, disk=Unreadable())
    bench.save("o", NOW)
    bench.save("o", NOW + 1)
    bench.save("other", NOW)
    assert bench.run_once() == {"errors": 1, "successes": 1, "unlinks": 1}
    assert len(bench.pendings()) == 2


# --- pace and report --------------------------------------------------------------------------------


def test_a_container_gets_only_so_many_updates_a_second(tmp_path):
    bench = Bench(
        tmp_path,
        interval=300,
        concurrency=1,
        objects_per_second=0,
        max_objects_per_container_per_second=2,
    )
    for number in range(20):
        bench.save(f"o{number}", container="busy")
    for number in range(5):
        bench.save(f"o{number}", container=f"calm{number}")
    moments = {}
    bench.nodes.answers = dict.fromkeys(
        range(3), lambda _m, path: moments.setdefault(path, bench.rig.clock.now_s) and 201
    )
    counts = bench.run_once()
    assert counts["successes"] == 25
    assert counts["deferrals"] >= 19
    busy = sorted(at for path, at in moments.items() if path.startswith("/d0/7/AUTH_a/busy/"))
    assert min(b - a for a, b in zip(busy, busy[1:], strict=False)) > 0.499
    calm = [at for path, at in moments.items() if "calm" in path]
    assert max(calm) - min(busy) <= 0.5


def test_what_cannot_be_sent_before_the_next_pass_waits_on_disk(tmp_path):
    bench = Bench(
        tmp_path, interval=10, objects_per_second=0, max_objects_per_container_per_second=1, concurrency=1
    )
    for number in range(30):
        bench.save(f"o{number}")
    counts = bench.run_once()
    assert counts["successes"] == 10
    assert counts["skips"] == 20
    assert len(bench.pendings()) == 20


def test_not_more_than_allowed_is_held_back(tmp_path):
    bench = Bench(
        tmp_path, objects_per_second=0, max_objects_per_container_per_second=10, max_deferred_updates=4
    )
    for number in range(20):
        bench.save(f"o{number}")
    counts = bench.run_once()
    assert counts["successes"] == 5
    assert counts["skips"] == 15


def test_the_recon_file_names_the_containers_that_wait_longest(tmp_path):
    bench = Bench(tmp_path, async_tracker_max_entries=3, async_tracker_dump_count=2)
    for number in range(6):
        bench.save(f"x{number}", NOW + 10 * number, container=f"c{number}")
    bench.save("y", NOW + 7, container="c0")
    bench.nodes.answers = {0: 503}
    bench.run_once()
    stats = bench.recon["object_updater_stats"]
    assert stats["failures_oldest_timestamp"] == float(NOW)
    assert stats["failures_oldest_timestamp_age"] == pytest.approx(bench.rig.clock.now_s - NOW)
    assert stats["failures_account_container_count"] == 3
    assert stats["failures_oldest_timestamp_account_containers"] == {
        "oldest_count": 2,
        "oldest_entries": [
            {"timestamp": float(NOW), "account": "AUTH_a", "container": "c0"},
            {"timestamp": float(NOW + 10), "account": "AUTH_a", "container": "c1"},
        ],
    }
    assert stats["tracker_memory_usage"] > 0
    assert bench.recon["object_updater_per_device"]["sda"] == stats
    assert bench.recon["object_updater_last"] == bench.rig.clock.now_s


def test_the_deprecated_rest_caps_the_pace():
    assert ObjectUpdaterSettings().schedule.units_per_second == 50
    assert ObjectUpdaterSettings(slowdown=0.09).schedule.units_per_second == pytest.approx(10)
    assert ObjectUpdaterSettings(slowdown=0, objects_per_second=20).schedule.units_per_second == 20
    assert ObjectUpdaterSettings(slowdown=0, objects_per_second=0).schedule.units_per_second == 100
