"""What the tier believes is compared with the disk: what differs is told and dropped, the rest stays."""

from __future__ import annotations

import os

import pytest

from swift.base.errors import DeviceUnavailable
from swift.platform.disk import Disk
from swift.store.metadata import write_metadata
from swift.store.tier.directory import HashDirectory, path_of
from swift.store.tier.scrub import TierScrub
from test.support.tiers import make_tier

DATA = "1700000000.00000.data"
LATER_NS = 1 << 62


class Bench:
    """A device with some objects that a tier knows."""

    def __init__(self, root):
        self.device = root / "sda"
        self.tier = make_tier(root / "ssd", now_ns=lambda: LATER_NS)
        self.scrub = TierScrub(self.tier, self._device_path)
        self.paced = 0

    def _device_path(self, name):
        if name != "sda":
            raise DeviceUnavailable(name)
        return str(self.device)

    def object(self, number, body=b"body"):
        """An object that is known; its path in the tier."""
        folder = self.device / "objects/7/abc" / f"{number:029x}abc"
        folder.mkdir(parents=True)
        self.write(folder, body)
        hash_dir = HashDirectory(str(self.device), str(folder), None)
        assert self.tier.take(hash_dir) is not None
        path = path_of(str(self.device), str(folder))
        assert self.tier.entries().find(path) is not None
        return folder, path

    def write(self, folder, body, name=DATA):
        (folder / name).write_bytes(body)
        write_metadata(Disk(), str(folder / name), {"name": "/a/c/o", "Content-Length": str(len(body))})

    def compare(self, *paths):
        def pace():
            self.paced += 1

        return self.scrub.compare(paths, pace)


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.tier.close()


def test_what_is_as_it_was_is_the_same_and_stays_known(bench):
    _folder, path = bench.object(1)
    done = bench.compare(path)
    assert (done.same, done.unproven, done.busy, done.differences) == (1, 0, 0, [])
    assert bench.tier.entries().find(path) is not None


def test_what_changed_behind_its_back_is_told_and_dropped_and_the_rest_is_compared_all_the_same(bench):
    folder, path = bench.object(1)
    _folder, other = bench.object(2)
    bench.write(folder, b"other body!")
    done = bench.compare(path, other)
    ((hash_dir, difference),) = done.differences
    assert hash_dir == str(folder) and difference
    assert done.same == 1 and bench.paced == 2
    assert bench.tier.entries().find(path) is None
    assert bench.tier.figures["metadata", "sda", "differences"] == 1


@pytest.mark.parametrize("how", ["another file", "a file less", "no directory"])
def test_every_way_to_differ_is_one(bench, how):
    folder, path = bench.object(1)
    if how == "another file":
        bench.write(folder, b"", "1700000005.00000.meta")
    else:
        (folder / DATA).unlink()
    if how == "no directory":
        folder.rmdir()
    assert len(bench.compare(path).differences) == 1


def test_what_is_not_believed_anyhow_is_no_mistake(bench):
    folder, path = bench.object(1)
    bench.tier.entries().shared_state.renew("sda")
    bench.write(folder, b"other body!")
    done = bench.compare(path)
    assert (done.unproven, done.differences) == (1, [])


def test_an_entry_that_went_meanwhile_is_nothing(bench):
    _folder, path = bench.object(1)
    bench.tier.entries().forget(path)
    done = bench.compare(path)
    assert (done.same, done.unproven, done.busy, done.differences) == (0, 0, 0, [])


def test_an_entry_that_is_always_being_changed_is_busy_and_no_mistake(tmp_path):
    class Restless(Disk):
        """Somebody changes the object whenever it is looked at."""

        change = staticmethod(lambda: None)

        def listdir(self, path):
            self.change()
            return os.listdir(path)

        def stat(self, path):
            self.change()
            return os.stat(path)

    disk = Restless()
    bench = Bench(tmp_path)
    bench.tier.close()
    bench.tier = make_tier(tmp_path / "ssd", now_ns=lambda: LATER_NS, disk=disk)
    bench.scrub = TierScrub(bench.tier, bench._device_path)
    folder, path = bench.object(1)
    entries = bench.tier.entries()
    known = entries.find(path)
    bench.write(folder, b"other body!")

    def change():
        disk.change = lambda: None
        entries.forget(path)
        assert entries.keep(path, entries.start(path), known)
        disk.change = change

    disk.change = change
    done = bench.compare(path)
    disk.change = lambda: None
    assert (done.busy, done.differences) == (1, [])
    bench.tier.close()


def test_without_an_index_there_is_nothing_to_compare(bench):
    _folder, path = bench.object(1)
    bench.tier.failed("pulled")
    done = bench.compare(path)
    assert (done.same, done.differences, bench.paced) == (0, [], 1)


def test_a_device_that_is_away_is_the_callers(bench):
    with pytest.raises(DeviceUnavailable):
        bench.compare(b"sdb/objects/7/abc/" + b"0" * 29 + b"abc")
