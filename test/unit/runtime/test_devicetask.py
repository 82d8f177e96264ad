"""What daemons have in common whose work is cut by device: which ones, and what of those that are gone."""

from __future__ import annotations

import random

import pytest

from swift.db.connection import DatabaseBroken
from swift.db.files import DatabasePath
from swift.db.unchanged import UnchangedDatabases
from swift.platform.diskhandle import DiskHandle
from swift.runtime.devicetask import DatabasePassBase, DeviceTask
from swift.runtime.selection import Selection
from test.support.daemons import DaemonFixture
from test.support.disks import DamagedDisk


@pytest.fixture
def rig(tmp_path):
    return DaemonFixture(tmp_path, ("sda", "sdb", "sdc"))


def make(rig, device="sda", disk=None, **selected):
    task = DeviceTask(rig.context, disk=disk, rng=random.Random(1), selection=Selection.parse(**selected))
    return DatabasePassBase(task, device, rig.pass_context())


def databases(rig, *names):
    """Databases of containers at places like ``sda/containers/7/abc/hash``."""
    for name in names:
        folder = rig.root / name
        folder.mkdir(parents=True)
        (folder / f"{folder.name}.db").write_bytes(b"")


def test_all_devices_are_shares_in_an_order_of_chance(rig):
    orders = {tuple(DeviceTask(rig.context, rng=random.Random(seed)).shares()) for seed in range(30)}
    assert {tuple(sorted(order)) for order in orders} == {("sda", "sdb", "sdc")} and len(orders) > 1


def test_only_selected_devices_and_partitions_are_worked_on(rig):
    databases(rig, "sda/containers/7/abc/" + "d" * 29 + "abc", "sda/containers/8/abc/" + "e" * 29 + "abc")
    assert DeviceTask(rig.context, selection=Selection.parse(devices="sdb,sdz")).shares() == ["sdb"]
    work = make(rig, partitions="8,9")
    assert work._partitions(work._device_path(), "containers") == ["8"]


def test_a_device_that_is_gone_is_counted_and_said(rig):
    work = make(rig)
    assert work._device_path() == str(rig.root / "sda")
    (rig.root / "sda").rmdir()
    assert work._device_path() is None
    assert work._counters.counts == {"errors": 1}


def test_databases_are_walked_until_the_work_is_to_end(rig):
    hashes = [f"{number:029x}abc" for number in range(4)]
    databases(rig, *(f"sda/containers/7/abc/{name}" for name in hashes))
    work = make(rig)
    found = []
    for place in work._database_paths(work._device_path(), "containers", "7"):
        found.append(place.name_hash)
        if len(found) == 2:
            rig.stop.request()
    assert len(set(found)) == 2 and set(found) <= set(hashes)
    assert list(work._partition_batches(["7", "8"])) == []


def test_what_cannot_be_listed_is_counted_and_ends_no_walk(rig):
    names = [f"{digit * 29}{suffix}" for digit, suffix in (("a", "abc"), ("b", "def"))]
    databases(rig, *(f"sda/containers/7/{name[-3:]}/{name}" for name in names))
    disk = DamagedDisk(rig.root / "sda/containers/7/abc")
    work = make(rig, disk=disk)
    assert [
        place.name_hash for place in work._database_paths(work._device_path(), "containers", "7")
    ] == names[1:]
    scan = work._changed_databases(
        UnchangedDatabases(DiskHandle(disk), 60.0, busy_s=0.0), work._device_path(), "containers", ["7"]
    )
    assert [unit.place.name_hash for unit in scan.due] == names[1:]
    assert work._counters.counts == {"errors": 2}


@pytest.mark.parametrize(("kind", "is_moved"), [("containers", True), ("tmp", False)])
def test_a_broken_database_is_quarantined_by_its_own_visit_only(rig, kind, is_moved):
    name = "d" * 29 + "abc"
    databases(rig, f"sda/containers/7/abc/{name}")
    place = DatabasePath(str(rig.root / "sda"), "containers", "7", name)
    make(rig)._quarantine_broken(place, DatabaseBroken(place.file().replace("containers", kind), "malformed"))
    assert (rig.root / "sda/quarantined/containers" / name).exists() is is_moved


def test_a_broken_database_that_cannot_be_moved_does_not_end_the_pass(rig):
    (rig.root / "sda/quarantined").touch()
    place = DatabasePath(str(rig.root / "sda"), "containers", "7", "d" * 29 + "abc")
    work = make(rig)
    work._quarantine_broken(place, DatabaseBroken(place.file(), "malformed"))
    assert work._counters.counts == {}


def test_a_pass_has_nothing_to_add_unless_it_says_so(rig):
    work = make(rig)
    work.end()
    assert work.facts() == {}
