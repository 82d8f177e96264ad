"""swift/store/packed/maintenance.py: daemons cause few syncs and read in the order of the device."""

from __future__ import annotations

import pytest

from swift.platform.disk import Disk
from swift.store.api import SyncedVersion
from test.contract.test_maintenance import at
from test.contract.test_store import EC, GOLD, NOW_S, PackedBench, delete, key_of, post, put, ts


class CountedSyncs(Disk):
    """Counts the syncs of volumes."""

    def __init__(self):
        super().__init__()
        self.syncs = 0

    def fdatasync(self, fd):
        self.syncs += 1
        super().fdatasync(fd)


@pytest.fixture
def bench(tmp_path):
    made = PackedBench(tmp_path)
    yield made
    made.store.close()


def test_replication_is_by_ssync(bench):
    """rsync would write files that the index does not have; see also test_delivery."""
    assert not bench.store.capabilities.rsyncable


def test_a_handed_over_partition_is_removed_with_one_sync_for_many_objects(bench):
    keys = [key_of(f"o{number}") for number in range(50)]
    for key in keys:
        put(bench.store, key, ts(NOW_S), b"body")
    disk = CountedSyncs()
    bench.store.devices.device("sda")._disk = disk
    bench.store.devices.device("sda").writer.appender._disk = disk
    bench.store.maintenance.purge_all([(at(key), SyncedVersion(ts(NOW_S))) for key in keys])
    assert disk.syncs == 1
    assert bench.store.maintenance.remove_partition("sda", "7", GOLD)
    assert bench.store.partitions("sda", GOLD) == []


def test_objects_are_listed_in_the_order_in_which_they_lie(bench):
    keys = [key_of(f"o{number}", policy) for number in range(6) for policy in (GOLD, EC)]
    for key in keys:
        put(bench.store, key, ts(NOW_S), b"body", fragment=3 if key.policy is EC else None)
    post(bench.store, keys[2], ts(NOW_S + 1))
    put(bench.store, keys[0], ts(NOW_S + 2), b"moved")
    delete(bench.store, keys[4], ts(NOW_S + 3))
    maintenance = bench.store.maintenance
    assert maintenance.reading_order("sda", GOLD) == ["1"]
    found = list(maintenance.locations_in("sda", "1", [GOLD, EC]))
    assert found == [at(key) for key in (keys[1], keys[2], keys[3], *keys[5:], keys[0], keys[4])]
    assert list(maintenance.locations_in("sda", "1", [GOLD])) == [
        each for each in found if each.policy is GOLD
    ]
    assert list(maintenance.locations_in("sda", "9", [GOLD])) == []


def test_devices_with_files_that_the_index_does_not_have_are_read_by_partition(bench):
    put(bench.store, key_of(), ts(NOW_S))
    bench.store.devices.device("sda").conversion.keep_as_files(0)
    assert bench.store.maintenance.reading_order("sda", GOLD) == []
