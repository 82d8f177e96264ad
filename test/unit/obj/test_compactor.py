"""The object compactor returns dead space, removes orphans, and reports both."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from swift.obj.compactor import CompactVolume, ObjectCompactor, ObjectCompactorSettings, PunchVolume
from swift.platform.disk import Disk
from swift.policy.policy import Policies, Policy
from swift.store.packed.settings import PackedSettings
from swift.store.registry import EngineParts, StoreRegistry
from test.contract.test_store import key_of, put, read, ts
from test.support.daemons import DaemonFixture
from test.support.disks import CrampedDisk

PACKED = "egg:swift#replication.packed"
GOLD = Policy(0, "gold", is_default=True, diskfile_module=PACKED)
SILVER = Policy(1, "silver", diskfile_module=PACKED)
NOW_S = 5_000_000_000
AGE_S = 1000.0


class Bench:
    def __init__(self, root, policies=(GOLD, SILVER), *, disk=None, **options):
        self.disk = disk or Disk()
        self.fixture = DaemonFixture(root)
        self.root = self.fixture.root
        self.fixture.context = replace(self.fixture.context, policies=Policies(list(policies)))
        self.settings = ObjectCompactorSettings(**options)
        self.packed = PackedSettings(state_path=str(root / "memory"), volume_mb=16, object_max_kb=512)
        self.opened = []
        self.stores = self.registry()
        self.task = ObjectCompactor(self.fixture.context, self.settings, self.registry(), reclaim_age_s=AGE_S)

    def registry(self):
        context = self.fixture.context
        parts = EngineParts(context.devices, context.hasher, context.clock, self.disk, packed=self.packed)
        self.opened.append(StoreRegistry(parts))
        return self.opened[-1]

    @property
    def store(self):
        return self.stores.engine(GOLD)

    def put(self, name, at, size, policy=GOLD):
        put(self.store, key_of(name, policy), ts(NOW_S + at), os.urandom(size))

    def other_process(self):
        """Let another process append from now on, so that all former volumes are free."""
        old, self.stores = self.stores, self.registry()
        self.put("other", 0, 10)
        old.close()

    def run(self):
        assert self.fixture.runner(self.task, self.settings.schedule).run_once()
        return self.fixture.recon("object").read()

    def volumes(self):
        return self.stores.space("sda").volumes("sda")

    def close(self):
        for registry in self.opened:
            registry.close()


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.close()


def test_volumes_of_which_enough_is_dead_are_compacted_and_the_space_is_reported(bench):
    for at in range(40):
        bench.put(f"o{at % 4}", at, 200_000)
    bench.other_process()
    bodies = {name: read(bench.store, key_of(name)) for name in ("o0", "o1", "o2", "o3")}
    facts = bench.run()
    assert facts["object_compactor_stats"]["compacted"] == 1
    assert facts["object_compactor_stats"]["errors"] == 0
    space = facts["object_packed_devices"]["sda"]
    assert space["dead_bytes"] < 1_000_000 and space["live_bytes"] > 800_000
    assert space["volumes"] == len(bench.volumes()) and space["index_bytes"] > 0
    assert {name: read(bench.store, key_of(name)) for name in bodies} == bodies
    page = (bench.root.parent / "recon" / "object-compactor.prom").read_text()
    assert "swift_packed_dead_bytes" in page and 'device="sda"' in page


def test_large_dead_bodies_of_other_volumes_become_holes_once(bench):
    for at in range(10):
        bench.put(f"o{at}", at, 200_000)
    for at in range(3):
        bench.put(f"o{at}", at + 20, 10)
    bench.other_process()
    units = list(bench.task.begin("sda", bench.fixture.pass_context()).plan())
    assert [type(unit) for unit in units] == [PunchVolume]
    facts = bench.run()
    assert facts["object_compactor_stats"]["punched_bytes"] > 500_000
    assert list(bench.task.begin("sda", bench.fixture.pass_context()).plan()) == []


def test_the_newest_volume_is_compacted_when_much_of_it_is_dead_and_no_process_uses_it(bench):
    for at in range(60):
        bench.put(f"o{at % 4}", at, 200_000)
    body = read(bench.store, key_of("o0"))
    old, bench.stores = bench.stores, bench.registry()
    old.close()
    assert bench.run()["object_compactor_stats"]["compacted"] == 1
    assert [volume.number for volume in bench.volumes()] == [2]
    assert read(bench.store, key_of("o0")) == body


def test_the_newest_volume_stays_while_little_of_it_is_dead(bench):
    for at in range(4):
        bench.put("o", at, 20_000)
    assert CompactVolume(1) not in bench.task.begin("sda", bench.fixture.pass_context()).plan()


def test_volumes_in_use_stay_and_the_pass_goes_on(bench):
    for at in range(60):
        bench.put(f"o{at % 4}", at, 200_000)
    units = list(bench.task.begin("sda", bench.fixture.pass_context()).plan())
    assert units == [CompactVolume(1)]
    assert bench.run()["object_compactor_stats"] == {
        "compacted": 0,
        "copied_bytes": 0,
        "punched_bytes": 0,
        "taken": 0,
        "orphans": 0,
        "errors": 0,
    }


def test_a_volume_for_whose_copy_there_is_no_room_gets_holes(tmp_path):
    bench = Bench(tmp_path, disk=CrampedDisk())
    for at in range(40):
        bench.put(f"o{at % 4}", at, 200_000)
    bench.other_process()
    body, before = read(bench.store, key_of("o0")), max(bench.volumes(), key=lambda each: each.allocated)
    bench.disk.is_full = True
    stats = bench.run()["object_compactor_stats"]
    assert (stats["compacted"], stats["errors"]) == (0, 1) and stats["punched_bytes"] > 5_000_000
    (after,) = [each for each in bench.volumes() if each.number == before.number]
    assert after.allocated < before.allocated / 2 and read(bench.store, key_of("o0")) == body
    bench.close()


def age(path, seconds=0):
    os.utime(path, (seconds, seconds))


def test_old_files_that_no_record_names_are_removed_and_others_stay(bench):
    bench.put("large", 0, 600_000)
    (known,) = bench.root.rglob("*.data")
    orphan = known.with_name(f"{ts(NOW_S - 5).internal}.data")
    lone = known.parents[1] / ("0" * 29 + known.parent.name[-3:]) / known.name
    lone.parent.mkdir()
    strange = known.with_name("README")
    for path in (orphan, lone, strange):
        path.write_bytes(b"x")
    facts = bench.run()
    # The time of change of these files is that of this machine, which is long before that of the daemon.
    assert facts["object_compactor_stats"]["orphans"] == 2
    assert known.exists() and strange.exists()
    assert not orphan.exists() and not lone.parent.exists()
    assert len(read(bench.store, key_of("large"))) == 600_000


def test_new_files_without_a_record_stay(bench):
    bench.put("large", 0, 600_000)
    (known,) = bench.root.rglob("*.data")
    orphan = known.with_name(f"{ts(NOW_S - 5).internal}.data")
    orphan.write_bytes(b"x")
    space = bench.stores.space("sda")
    assert space.remove_orphans("sda", "7", GOLD, os.stat(orphan).st_ctime - 1) == 0
    assert space.remove_orphans("sda", "7", GOLD, os.stat(orphan).st_ctime + 1) == 1


def test_files_that_count_without_records_stay(bench):
    """While a device is converted, or kept as files for the file engine."""
    bench.put("large", 0, 600_000)
    bench.store.devices.device("sda").conversion.keep_as_files(0)
    (known,) = bench.root.rglob("*.data")
    mine = known.parents[1] / ("0" * 29 + known.parent.name[-3:]) / known.name
    mine.parent.mkdir()
    mine.write_bytes(b"x")
    assert bench.run()["object_compactor_stats"]["orphans"] == 0
    assert mine.exists()


def test_rows_of_volumes_that_are_gone_are_removed(bench):
    bench.put("o", 0, 10)
    bench.other_process()
    os.unlink(bench.store.devices.device("sda").volumes.path(1))
    assert bench.stores.space("sda").forget_volumes("sda") == [1]
    assert bench.stores.space("sda").use("sda").volumes == 1


def test_nodes_without_a_packed_policy_have_nothing_to_do(tmp_path):
    bench = Bench(tmp_path, policies=(Policy(0, "gold", is_default=True),))
    assert bench.task.shares() == []
    assert "object_packed_devices" not in bench.run()
    assert not (bench.root / "sda/packed").exists()
