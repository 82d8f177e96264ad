"""swift/store/packed/agreement.py: nothing that cannot be undone happens on the word of an index alone."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from swift.operations.repacking import RepackRefused, remove_volumes
from swift.store.packed import rows
from swift.store.packed.compaction import Compactor
from swift.store.packed.record import ALIGNMENT
from swift.store.packed.writer import PackedRules
from test.contract.test_store import GOLD, NOW_S, PackedBench, key_of, put, read, ts
from test.unit.store.packed.test_device import Bench, roll_back


@pytest.fixture
def bench():
    return Bench()


# --- volumes and rows -----------------------------------------------------------------------------------


def test_an_index_with_all_records_of_all_volumes_agrees(bench):
    for second in (1, 2):
        bench.put(second)
        bench.put(second, by=1)
    device = bench.process()
    device.volumes.create()
    for by in (0, 1):
        assert bench.process(by).agreement.objection() == ""
    assert device.agreement.objection(device.index) == ""


def lacks_a_batch(bench, device):
    kept = bench.machine.file.kept
    bench.put(9, by=1)
    roll_back(bench, kept)


def has_another_nonce(_bench, device):
    with device.index.writing() as writing:
        rows.set_nonce(writing, 2, b"anothers")


def has_no_nonce(_bench, device):
    with device.index.writing() as writing:
        row = rows.read_volume(writing, 2)
        rows.delete_volume(writing, 2)
        rows.write_volume(writing, 2, row)


def ends_behind_the_file(_bench, device):
    with device.index.writing() as writing:
        rows.write_volume(writing, 2, rows.read_volume(writing, 2)._replace(end=1 << 24))


def knows_no_row(_bench, device):
    with device.index.writing() as writing:
        rows.delete_volume(writing, 2)


def closed_it_too_early(bench, device):
    lacks_a_batch(bench, device)
    with device.index.writing() as writing:
        rows.write_volume(writing, 2, rows.read_volume(writing, 2)._replace(is_closed=True))


def has_a_damaged_volume(bench, device):
    path = device.volumes.path(2)
    bench.machine.disk.setxattr(path, "user.swift.volume", b"x")
    fd = bench.machine.disk.open(path, os.O_RDWR)
    for at in (0, ALIGNMENT + 20):
        bench.machine.disk.pwrite(fd, b"xxxxxxxx", at)


WRONG = [
    lacks_a_batch,
    has_another_nonce,
    has_no_nonce,
    ends_behind_the_file,
    knows_no_row,
    closed_it_too_early,
    has_a_damaged_volume,
]


@pytest.mark.parametrize("change", WRONG, ids=lambda change: change.__name__)
@pytest.mark.parametrize("is_alive", (False, True))
def test_an_index_that_differs_from_a_volume_is_objected_to(change, is_alive):
    bench = Bench()
    bench.rules = PackedRules(volume_bytes=4096, publish_timeout_s=0.0)
    bench.put(1)
    bench.put(2, by=1)
    device = bench.process()
    change(bench, device)
    if not is_alive:
        bench.kill(1)
    assert f"{device.volumes.path(2)}" in device.agreement.objection()
    assert device.agreement.objection(besides=2) == ""


def test_an_index_by_which_something_was_decided_must_still_be_in_use(bench):
    bench.put(1)
    index = bench.process().index
    bench.machine.file = None
    assert bench.process().agreement.objection(index) == "the index was replaced meanwhile"


def test_a_batch_that_a_living_process_indexes_meanwhile_agrees(bench):
    bench.put(1)
    bench.put(2, by=1)
    kept = bench.machine.file.kept
    bench.put(3, by=1)
    newer = bench.machine.file.kept
    roll_back(bench, kept)
    device = bench.process()
    looks = []

    def publish(name):
        if name == "flock":
            looks.append(name)
            roll_back(bench, newer)

    device.process.fault = publish
    assert device.agreement.objection() == "" and looks


def test_a_volume_is_looked_at_again_only_after_a_change(bench):
    bench.put(1)
    device, calls = bench.process(), []
    # A change of the last second may not show in the time of a file.
    bench.machine.disk._moment += 2_000_000_000
    device.process.fault = calls.append
    for _ in range(2):
        assert device.agreement.objection() == ""
    assert calls.count("open") == 1
    bench.put(2)
    calls.clear()
    assert device.agreement.objection() == "" and calls.count("open") == 1


# --- what is not done -----------------------------------------------------------------------------------


class OldIndexBench(PackedBench):
    """A device whose index, in use, lacks the last objects: another one has them."""

    object_bytes_max = 100_000

    def __init__(self, root):
        super().__init__(root)
        self.store.devices.rules = PackedRules(self.object_bytes_max, 64 << 20, publish_timeout_s=0.0)
        put(self.store, key_of("o"), ts(NOW_S), os.urandom(60_000))
        self.device = self.store.devices.device("sda")
        row = rows.read_volume(self.device.index, 1)
        for name, size in (("new", 60_000), ("large", 200_000), ("last", 5)):
            put(self.store, key_of(name), ts(NOW_S), os.urandom(size))
        with self.device.index.writing() as writing:
            rows.write_volume(writing, 1, row)
            for name in ("new", "large", "last"):
                self.forget(writing, name)
        # Nothing more is appended by this process.
        self.device.writer.close()

    def forget(self, writing, name):
        place = self.store.devices.place(key_of(name))
        writing.delete(self.device.session.spaces.find(writing, 0, place.partition, place.hash))


@pytest.fixture
def old(tmp_path):
    made = OldIndexBench(tmp_path)
    yield made
    made.store.close()


def is_all_there(old):
    """Make the index again, and read all objects."""
    old.restart()
    return [len(read(old.store, key_of(name))) for name in ("o", "new", "large", "last")] == [
        60_000,
        60_000,
        200_000,
        5,
    ]


def test_no_hole_is_made(old):
    assert Compactor(old.store.core.disk, old.device).punch(1) == 0
    assert is_all_there(old)


def test_no_volume_is_removed(old):
    report = Compactor(old.store.core.disk, old.device).compact(1)
    assert not report.is_removed and "does not have all" in report.reason
    assert is_all_there(old)


def test_the_volumes_stay_when_a_device_is_given_to_the_file_engine(old):
    node = SimpleNamespace(
        has_volumes=lambda _device: True,
        policies=lambda: [GOLD],
        devices=old.store.devices,
        open=old.store.devices.device,
    )
    with old.device.index.writing() as writing:
        old.forget(writing, "o")
    with pytest.raises(RepackRefused, match="the volumes of sda stay: .*does not have all"):
        remove_volumes(node, "sda")
    assert is_all_there(old)


def test_no_file_is_taken_for_an_orphan(old):
    old.store.space.remove_orphans("sda", "7", GOLD, NOW_S * 2)
    assert is_all_there(old)
