"""Finding all databases of a device."""

import errno
import random

import pytest

from swift.db import walk
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from test.support.disks import DamagedDisk

HASHES = ["0" * 29 + "abc", "1" * 29 + "abc", "2" * 29 + "def"]


@pytest.fixture
def device(tmp_path):
    for partition, name_hash in zip(("7", "7", "12"), HASHES, strict=True):
        (tmp_path / "containers" / partition / name_hash[-3:] / name_hash).mkdir(parents=True)
    return tmp_path


def partitions(device, kind="containers"):
    return walk.partitions(DiskHandle(Disk()), str(device), kind, random.Random(1))


def places(device, partition, disk=None, unreadable=None):
    """The hashes found; without ``unreadable`` everything can be listed."""
    told = [] if unreadable is None else unreadable
    found = walk.places(DiskHandle(disk or Disk()), str(device), "containers", partition, told.append)
    hashes = sorted(place.name_hash for place in found)
    assert unreadable is not None or not told
    return hashes


def test_every_database_directory_is_found_by_its_partition(device):
    assert sorted(partitions(device)) == ["12", "7"]
    assert places(device, "7") == HASHES[:2]
    assert places(device, "12") == HASHES[2:]


def test_what_is_no_partition_or_hash_is_passed_over(device):
    (device / "containers" / "tmp").mkdir()
    (device / "containers" / "²").mkdir()
    for name in ("short", "z" * 32, "²" * 32, "A" * 32):
        (device / "containers" / "7" / "abc" / name).mkdir()
    (device / "containers" / "7" / "hashes.pkl").write_bytes(b"")
    assert sorted(partitions(device)) == ["12", "7"]
    assert places(device, "7") == HASHES[:2]


@pytest.mark.parametrize(("damaged", "found"), [("7", []), ("7/abc", HASHES[1:2])])
def test_a_directory_that_cannot_be_listed_is_told_and_those_beside_it_are_walked(device, damaged, found):
    (device / "containers/7/other").mkdir()
    (device / "containers/7/abc" / HASHES[1]).rename(device / "containers/7/other" / HASHES[1])
    told = []
    disk = DamagedDisk(device / "containers" / damaged)
    assert places(device, "7", disk, told) == found
    assert [error.errno for error in told] == [errno.EIO]


def test_a_device_without_databases_has_no_partitions(device):
    assert partitions(device, "accounts") == []
    assert places(device, "99") == []


def test_portions_hold_everything_once():
    names = [str(n) for n in range(walk.PORTION * 2 + 1)]
    portions = list(walk.portions(names))
    assert [name for portion in portions for name in portion] == names
    assert max(map(len, portions)) == walk.PORTION
