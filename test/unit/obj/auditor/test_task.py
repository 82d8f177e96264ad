"""The object auditor looks at everything and quarantines exactly what is damaged (replication.md §7)."""

import json
import os
import random
from dataclasses import replace

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.obj.auditor.settings import ObjectAuditorSettings, temporary_age_s
from swift.obj.auditor.task import ALL, ZERO_BYTE, AuditPosition, ObjectAuditor
from swift.obj.auditor.watchers import DeleteRequest, QuarantineRequest, Watcher, Watchers
from swift.platform.disk import Disk
from swift.policy.policy import Policies, Policy
from swift.runtime.daemon import Schedule
from swift.runtime.selection import Selection
from swift.store.api import ObjectKey, ReadOptions
from swift.store.packed.settings import PackedSettings
from swift.store.registry import EngineParts, StoreRegistry
from test.contract.test_store import key_of, put, ts
from test.support.daemons import DaemonFixture

NOW_S = 1_700_000_000
POLICIES = [Policy(0, "gold", is_default=True), Policy(1, "silver")]


class Eyes(Watcher):
    """Remembers what it saw; asks what it is told to."""

    def __init__(self, request=None):
        super().__init__({}, None)
        self.seen, self.request = [], request

    def start(self, audit_type, **more):
        self.seen.append(audit_type)

    def see_object(self, object_metadata, data_file_path, **more):
        self.seen.append((object_metadata["name"], os.path.exists(data_file_path)))
        if self.request is not None:
            raise self.request

    def end(self, **more):
        self.seen.append("end")


class Bench:
    """Objects on temporary devices, and an auditor of them."""

    def __init__(self, root, devices=("sda",), kind=ALL, watcher=None, selection=None, **options):
        self.rig = DaemonFixture(root, devices)
        context = self.rig.context
        self.stores = StoreRegistry(EngineParts(context.devices, context.hasher, context.clock, Disk()))
        watchers = Watchers({"eyes": watcher} if watcher else {}, context.telemetry.log)
        self.settings = ObjectAuditorSettings(**options)
        self.task = ObjectAuditor(
            context, kind, self.settings, self.stores, watchers, 1000.0, selection=selection
        )

    def put(self, name="o", body=b"content", *, device="sda", partition="7", policy=0):
        """Store an object; the path of its file."""
        path = EntityPath("AUTH_a", "c", name)
        digits = self.rig.context.hasher.hexdigest(*path)
        key = ObjectKey(device, partition, POLICIES[policy], path, digits)
        view = ReadOptions(NOW_S)
        with self.stores.engine(key.policy).edit(key, view, create=True) as edit:
            draft = edit.draft(len(body))
            draft.write(body)
            at = Timestamp(NOW_S)
            headers = {
                "X-Timestamp": at.internal,
                "Content-Type": "t/t",
                "Content-Length": str(len(body)),
                "ETag": draft.etag,
                "name": str(path),
            }
            edit.put(draft, at, headers)
        (found,) = self.rig.root.glob(f"{device}/objects*/{partition}/*/{digits}/*.data")
        return found

    def run_once(self, schedule=None):
        """One pass; what it counted."""
        seen = []
        report, self.task.report = self.task.report, lambda passed: seen.append(passed) or report(passed)
        done = self.rig.runner(self.task, schedule or Schedule(30.0)).run_once()
        del self.task.report
        if not done:
            return None
        counts = {"units": sum(result.units for result in seen[0].results.values())}
        for result in seen[0].results.values():
            for event, count in result.counts.items():
                counts[event] = counts.get(event, 0) + count
        return counts

    def recon(self):
        path = self.rig.root.parent / "recon" / "object.recon"
        return json.loads(path.read_text())

    def quarantined(self):
        return sorted(path.name for path in self.rig.root.glob("*/quarantined/objects*/*"))


def spoil(path):
    os.chmod(path, 0o600)
    with open(path, "r+b") as file:
        file.write(b"X")


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_sound_objects_of_all_policies_and_devices_are_left_alone(tmp_path):
    bench = Bench(tmp_path, devices=("sda", "sdb"))
    paths = [bench.put("a"), bench.put("b", policy=1), bench.put("c", device="sdb", partition="9")]
    assert bench.run_once() == {"units": 3}
    assert all(map(os.path.exists, paths))
    stats = bench.recon()["object_auditor_stats_ALL"]
    assert (stats["passes"], stats["errors"], stats["quarantined"]) == (3, 0, 0)
    assert stats["bytes_processed"] == 3 * len(b"content")


def test_a_damaged_body_is_quarantined_and_nothing_else_is(bench):
    damaged, sound = bench.put("damaged"), bench.put("sound")
    spoil(damaged)
    assert bench.run_once() == {"units": 2, "quarantines": 1}
    assert not damaged.exists()
    assert sound.exists()
    assert bench.quarantined() == [damaged.parent.name]
    assert bench.recon()["object_auditor_stats_ALL"]["quarantined"] == 1


def test_the_quick_pass_reads_no_bodies_but_finds_what_is_cut_short(tmp_path):
    bench = Bench(tmp_path, kind=ZERO_BYTE)
    damaged, cut = bench.put("damaged"), bench.put("cut")
    spoil(damaged)
    os.truncate(cut, 0)
    assert bench.run_once() == {"units": 2, "quarantines": 1}
    assert damaged.exists()
    assert not cut.exists()
    assert bench.recon()["object_auditor_stats_ZBF"]["bytes_processed"] == 0


def test_a_pass_goes_on_where_the_last_one_stopped(bench):
    for number in range(4):
        bench.put(f"o{number}", partition=str(number))
    status = bench.rig.root / "sda" / "objects" / "auditor_status_ALL.json"
    status.write_text(json.dumps({"partitions": ["2", "3"]}))
    assert bench.run_once() == {"units": 2}
    assert not status.exists()
    assert bench.run_once() == {"units": 4}


def test_where_a_pass_is_when_it_is_stopped_stays_on_the_device(tmp_path):
    stopper = Eyes()
    bench = Bench(tmp_path, watcher=stopper)
    for number in range(4):
        bench.put(f"o{number}", partition=str(number))
    see = stopper.see_object

    def stop_after_two(**seen):
        see(**seen)
        # A minute passes with each, so that the place is worth writing.
        bench.rig.clock.advance(61)
        if len([each for each in stopper.seen if isinstance(each, tuple)]) == 2:
            bench.rig.stop.request()

    stopper.see_object = stop_after_two
    assert bench.run_once() is None
    status = bench.rig.root / "sda" / "objects" / "auditor_status_ALL.json"
    left = json.loads(status.read_text())["partitions"]
    seen = {name for name, _there in stopper.seen[1:3]}
    assert {f"/AUTH_a/c/o{partition}" for partition in left}.isdisjoint(seen - {f"/AUTH_a/c/o{left[0]}"})
    assert len(left) in (2, 3)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"partitions": 5}', '{"partitions": [5]}', "[" * 100_000])
def test_a_place_that_cannot_be_read_is_none(bench, text):
    bench.put()
    (bench.rig.root / "sda" / "objects" / "auditor_status_ALL.json").write_text(text)
    assert bench.run_once() == {"units": 1}


def test_a_selection_neither_uses_nor_changes_the_place(tmp_path):
    bench = Bench(tmp_path, selection=Selection.parse(partitions="8"))
    bench.put("a", partition="7")
    bench.put("b", partition="8")
    status = bench.rig.root / "sda" / "objects" / "auditor_status_ALL.json"
    assert bench.run_once() == {"units": 1}
    assert not status.exists()


def test_a_lost_device_is_skipped(tmp_path):
    bench = Bench(tmp_path, devices=("sda", "sdb"))
    bench.put()
    (tmp_path / "srv" / "sdb").rmdir()
    assert bench.run_once()["units"] == 1


def test_old_partial_files_of_rsync_are_removed(bench):
    path = bench.put()
    partial = path.parent / f".{path.name}.Ab1Cd2"
    partial.write_bytes(b"half")
    os.utime(partial, (bench.rig.clock.time() - 1001,) * 2)
    bench.run_once()
    assert not partial.exists()
    assert path.exists()


def test_reading_keeps_to_bytes_per_second(bench):
    for number in range(3):
        bench.put(f"o{number}", b"x" * 1000)
    started_s = bench.rig.clock.monotonic()
    bench.run_once(Schedule(30.0, bytes_per_second=100.0))
    assert bench.rig.clock.monotonic() - started_s >= 20


def test_sizes_are_told_as_a_histogram(tmp_path):
    bench = Bench(tmp_path, object_size_stats=(10, 100))
    for name, size in (("a", 0), ("b", 10), ("c", 11), ("d", 1000)):
        bench.put(name, b"x" * size)
    facts = []
    report, bench.task.report = bench.task.report, lambda passed: facts.append(passed) or report(passed)
    bench.rig.runner(bench.task).run_once()
    (result,) = facts[0].results.values()
    assert result.facts["sizes"] == {"10": 2, "100": 1, "OVER": 1}


# --- watchers ---------------------------------------------------------------------------------------


def test_watchers_see_every_sound_object(tmp_path):
    eyes = Eyes()
    bench = Bench(tmp_path, watcher=eyes)
    bench.put("sound")
    spoil(bench.put("damaged"))
    bench.run_once()
    assert eyes.seen == ["ALL", ("/AUTH_a/c/sound", True), "end"]


class ForeignRequest(Exception):
    """Stands for the exception of another program."""


ForeignRequest.__name__ = "QuarantineRequest"


@pytest.mark.parametrize("request_", [QuarantineRequest("dark"), ForeignRequest("dark")])
def test_a_watcher_may_have_an_object_quarantined(tmp_path, request_):
    bench = Bench(tmp_path, watcher=Eyes(request_))
    path = bench.put()
    assert bench.run_once() == {"units": 1, "quarantines": 1}
    assert not path.exists()
    assert bench.quarantined() == [path.parent.name]


def test_a_watcher_may_have_an_object_removed(tmp_path):
    bench = Bench(tmp_path, watcher=Eyes(DeleteRequest("dark")))
    path = bench.put()
    assert bench.run_once() == {"units": 1, "deletes": 1}
    assert not path.parent.exists()
    assert bench.quarantined() == []


def test_a_failing_watcher_harms_neither_audit_nor_object(tmp_path):
    bench = Bench(tmp_path, watcher=Eyes(RuntimeError("a bug")))
    path = bench.put()
    assert bench.run_once() == {"units": 1}
    assert path.exists()


# --- options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "of_rsync", "age_s"),
    [("auto", "900", 1800), ("auto", None, 86400), ("auto", "soon", 86400), ("60", "900", 60)],
)
def test_how_old_partial_files_become(own, of_rsync, age_s):
    settings = ObjectAuditorSettings.parse({"rsync_tempfile_timeout": own})
    assert temporary_age_s(settings, of_rsync) == age_s


def misplace(bench, count, *, partition="7"):
    """Store objects in the places that other hash path settings give them."""
    for number in range(count):
        wrong = bench.rig.context.hasher.hexdigest("AUTH_a", "elsewhere", str(number))
        place = bench.rig.root / "sda/objects" / partition / wrong[-3:] / wrong
        place.parent.mkdir(parents=True, exist_ok=True)
        bench.put(f"m{number}", partition=partition).parent.rename(place)


def test_a_pass_ends_where_nothing_is_in_its_place_and_moves_nothing(bench):
    """With a wrong hash path suffix the auditor would quarantine every object of the node."""
    misplace(bench, 30)
    assert bench.run_once() == {"units": 10, "errors": 10}
    assert bench.quarantined() == []


def test_of_misplaced_objects_among_sound_ones_only_few_are_moved(bench):
    for number in range(5):
        bench.put(f"o{number}", partition="1")
    misplace(bench, 40)
    bench.task.rng = random.Random(1)
    counted = [bench.run_once()["units"] for _ in range(12)]
    # Some pass began with the sound ones.
    assert min(counted) < 15 <= max(counted)
    assert len(bench.quarantined()) == 10


def packed_bench(root, **options):
    """Objects of two packed policies in volumes of 16 MiB."""
    policies = [
        Policy(index, name, is_default=not index, diskfile_module="egg:swift#replication.packed")
        for index, name in enumerate(("gold", "silver"))
    ]
    bench = Bench(root, **options)
    context = replace(bench.rig.context, policies=Policies(policies))
    packed = PackedSettings(state_path=str(root / "memory"), volume_mb=16)
    bench.stores = StoreRegistry(EngineParts(context.devices, context.hasher, context.clock, packed=packed))
    bench.task = ObjectAuditor(context, ALL, bench.settings, bench.stores, Watchers({}, None), 1000.0)
    return bench, policies


def store_packed(bench, policy, name, size=600_000):
    key = key_of(name, policy)
    put(bench.stores.engine(policy), key, ts(NOW_S), os.urandom(size))
    return key


def test_packed_objects_of_all_policies_are_audited_in_the_order_of_the_volumes(tmp_path):
    bench, policies = packed_bench(tmp_path)
    keys = [store_packed(bench, policies[number % 2], f"o{number}") for number in range(40)]
    units = list(bench.task.begin("sda", bench.rig.pass_context()).plan())
    assert [(unit.policy, unit.hash) for unit in units] == [(key.policy, key.hash) for key in keys]
    device = bench.stores.engine(policies[0]).devices.device("sda")
    assert len(device.volumes.numbers()) > 1
    (entry,) = device.entries(0, 7, bytes.fromhex(keys[0].hash))
    with open(device.volumes.path(1), "r+b") as file:
        file.seek(entry.position.unit * 64 + 1000)
        file.write(b"rotten")
    assert bench.run_once() == {"units": 40, "quarantines": 1}
    assert [path.name for path in bench.rig.root.glob("sda/quarantined/objects/*")] == [keys[0].hash]
    bench.stores.close()


def test_an_audit_of_volumes_goes_on_where_it_was(tmp_path):
    bench, policies = packed_bench(tmp_path)
    keys = [store_packed(bench, policies[0], f"o{number}") for number in range(40)]
    numbers = bench.stores.engine(policies[0]).devices.device("sda").volumes.numbers()
    position = AuditPosition(
        bench.task.disk_at("sda"), str(bench.rig.root / "sda/packed"), "ALL", bench.rig.clock
    )
    position.save([str(number) for number in numbers[1:]])
    seen = [unit.hash for unit in bench.task.begin("sda", bench.rig.pass_context()).plan()]
    assert 0 < len(seen) < 40 and seen == [key.hash for key in keys][-len(seen) :]
    bench.stores.close()


def test_selected_partitions_of_packed_devices_are_audited_alone(tmp_path):
    bench, policies = packed_bench(tmp_path)
    store_packed(bench, policies[0], "o", 10)
    bench.task.selection = Selection.parse(partitions="7")
    assert len(list(bench.task.begin("sda", bench.rig.pass_context()).plan())) == 1
    bench.task.selection = Selection.parse(partitions="8")
    assert list(bench.task.begin("sda", bench.rig.pass_context()).plan()) == []
    bench.stores.close()
