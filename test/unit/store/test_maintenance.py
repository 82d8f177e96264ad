"""Auditing and purging files: what only the filesystem engine has to care for."""

from __future__ import annotations

import errno
import os
import time

import pytest

from swift.platform.disk import Disk
from swift.store.api import LIVE, Location, SyncedVersion
from swift.store.metadata import CHECKSUM_ATTRIBUTE
from test.contract.test_store import GOLD, NOW, NOW_S, FileBench, delete, key_of, post, put, ts

KEY = key_of()
AT = Location(KEY.device, KEY.partition, KEY.policy, KEY.hash)


@pytest.fixture
def bench(tmp_path):
    return FileBench(tmp_path)


@pytest.fixture
def directory(bench):
    return bench.root / "sda/objects/7" / KEY.hash[-3:] / KEY.hash


def audit(bench, *, full=True, age_s=1000.0):
    return bench.store.maintenance.audit(AT, full=full, pace=lambda _bytes: None, temporary_age_s=age_s)


def test_partial_files_of_rsync_go_when_they_are_old(bench, directory):
    put(bench.store, KEY, ts(10))
    old, young = directory / ".10.data.abcDEF", directory / ".11.data.abcDEF"
    for path, age_s in ((old, 2000), (young, 10)):
        path.write_bytes(b"partial")
        os.utime(path, (NOW_S - age_s, NOW_S - age_s))
    audit(bench)
    assert not old.exists()
    assert young.exists()


def test_a_partial_file_that_vanishes_keeps_no_other(bench, directory):
    class Racing(Disk):
        """The first partial file that is looked at is finished at that moment."""

        raced = ""

        def stat(self, path, **where):
            if not self.raced and ".data." in str(path):
                self.raced = str(path)
                os.unlink(path)
            return super().stat(path, **where)

    put(bench.store, KEY, ts(10))
    partial = [directory / f".{n}.data.abcDEF" for n in (10, 11, 12)]
    for path in partial:
        path.write_bytes(b"partial")
        os.utime(path, (NOW_S - 2000, NOW_S - 2000))
    bench.store.core.disk = disk = Racing()
    audit(bench)
    assert disk.raced
    assert not [path for path in partial if path.exists()]


def test_metadata_without_a_checksum_gets_one(bench, directory):
    put(bench.store, KEY, ts(10))
    post(bench.store, KEY, ts(11))
    for path in directory.iterdir():
        os.removexattr(path, CHECKSUM_ATTRIBUTE)
    assert audit(bench).quarantined is None
    for path in directory.iterdir():
        assert len(os.getxattr(path, CHECKSUM_ATTRIBUTE)) == 32


@pytest.mark.parametrize("name", ["data", "meta", "ts"])
def test_damaged_metadata_of_any_file_quarantines(bench, directory, name):
    if name == "ts":
        delete(bench.store, KEY, ts(NOW_S))
    else:
        put(bench.store, KEY, ts(NOW_S))
    if name == "meta":
        post(bench.store, KEY, ts(NOW_S + 1))
    (path,) = directory.glob(f"*.{name}")
    os.setxattr(path, CHECKSUM_ATTRIBUTE, b"0" * 32)
    assert "checksum" in audit(bench, full=False).quarantined
    assert [p.name for p in (bench.root / "sda/quarantined/objects").iterdir()] == [KEY.hash]


def test_a_file_in_place_of_the_directory_is_quarantined(bench, directory):
    directory.parent.mkdir(parents=True)
    directory.write_bytes(b"")
    assert audit(bench).quarantined
    assert not directory.exists()


def test_the_suffix_of_a_tombstone_past_its_time_is_marked(bench, directory):
    bench.clock.now_s = 100.0
    delete(bench.store, KEY, ts(10))
    bench.clock.now_s = NOW_S
    journal = bench.root / "sda/objects/7/hashes.invalid"
    journal.write_text("")
    audit(bench)
    assert journal.read_text() == f"{KEY.hash[-3:]}\n"


class Unreadable(Disk):
    """Gives an I/O error for bodies."""

    def pread(self, fd, size, offset):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_body_that_cannot_be_read_stays_where_it_is(bench):
    put(bench.store, KEY, ts(10))
    bench.store.core.disk = Unreadable()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        audit(bench)
    assert bench.store.stat(KEY, NOW).kind == LIVE


class Replaced(Disk):
    """Another PUT happens while a body is read."""

    def __init__(self):
        self.during = lambda: None

    def pread(self, fd, size, offset):
        during, self.during = self.during, lambda: None
        during()
        return b"x" * len(os.pread(fd, size, offset))


def test_an_object_that_is_replaced_while_it_is_read_is_not_blamed(bench):
    put(bench.store, KEY, ts(10))
    disk = bench.store.core.disk = Replaced()
    disk.during = lambda: put(bench.store, KEY, ts(11), b"xxxx")
    assert audit(bench).quarantined is None


def test_purging_marks_the_suffix_and_empties_its_directory(bench, directory):
    put(bench.store, KEY, ts(10))
    (bench.root / "sda/objects/7/hashes.invalid").write_text("")
    assert bench.store.maintenance.purge(AT, SyncedVersion(ts(10)))
    assert not directory.parent.exists()
    assert (bench.root / "sda/objects/7/hashes.invalid").read_text() == f"{KEY.hash[-3:]}\n"


def test_a_device_is_prepared_old_temporary_files_go_and_strangers_are_named(bench):
    device = bench.root / "sda"
    (device / "tmp").mkdir()
    for name, age_s in (("old", 5000), ("new", 0)):
        (device / "tmp" / name).touch()
        os.utime(device / "tmp" / name, (time.time() - age_s,) * 2)
    for name in ("7", "auditor_status_ALL.json", "stranger"):
        (device / "objects" / name).mkdir(parents=True)
    maintenance = bench.store.maintenance
    assert maintenance.prepare("sda", GOLD, time.time() - 1000) == ["stranger"]
    assert [path.name for path in (device / "tmp").iterdir()] == ["new"]
