"""What a body being written does to the page cache."""

import os

import pytest

from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.api import ObjectKey, ReadOptions
from swift.store.core import KEPT_BYTES, WRITEBACK_BYTES
from swift.store.registry import EngineParts, file_store

NOW_S = 1_700_000_000.0
HASHER = PathHasher(b"p", b"s")
PATH = EntityPath("AUTH_a", "c", "o")
KEY = ObjectKey("sda", "7", Policy(0, "gold", is_default=True), PATH, HASHER.hexdigest(*PATH))
MIB = 1 << 20


class Cache(Disk):
    """Writes down hints and syncs; keeps no bytes."""

    def __init__(self):
        self.begun = []
        self.dropped = []
        self.synced = 0

    def write(self, _fd, data):
        return len(data)

    def fsync(self, fd):
        self.synced += 1
        os.fsync(fd)

    def start_writeback(self, _fd, offset, length):
        self.begun.append((offset, offset + length))

    def drop_cache(self, _fd, offset, length):
        self.dropped.append((offset, offset + length, self.synced > 0))


def put(root, size):
    os.makedirs(root / "sda")
    disk = Cache()
    devices = Devices(str(root), mount_check=False)
    store = file_store(EngineParts(devices=devices, hasher=HASHER, clock=ManualClock(NOW_S), disk=disk))
    draft = store.draft(KEY, size)
    for _ in range(size // MIB):
        draft.write(bytes(MIB))
    with store.edit(KEY, ReadOptions(NOW_S), create=True) as edit:
        edit.put(draft, Timestamp(NOW_S), {"X-Timestamp": Timestamp(NOW_S).internal, "name": str(PATH)})
    return disk


@pytest.mark.parametrize("size", [KEPT_BYTES + MIB, 3 * KEPT_BYTES, 3 * KEPT_BYTES + 5 * MIB])
def test_a_large_body_leaves_the_page_cache_and_nothing_of_it_is_forgotten(tmp_path, size):
    disk = put(tmp_path, size)
    reached = 0
    for start, end, _is_synced in disk.dropped:
        assert start <= reached
        reached = max(reached, end)
    assert reached == size


def test_only_what_the_device_was_told_to_write_a_while_ago_is_dropped_before_the_sync(tmp_path):
    disk = put(tmp_path, 3 * KEPT_BYTES)
    early = [end for _start, end, is_synced in disk.dropped if not is_synced]
    assert early
    assert max(early) <= disk.begun[-1][1] - WRITEBACK_BYTES


def test_what_was_still_being_written_is_dropped_a_second_time(tmp_path):
    disk = put(tmp_path, 2 * KEPT_BYTES)
    for (_start, end, _), (following, _end, _) in zip(disk.dropped, disk.dropped[1:], strict=False):
        assert following <= max(0, end - WRITEBACK_BYTES)


def test_a_body_that_somebody_may_read_soon_stays(tmp_path):
    assert put(tmp_path, KEPT_BYTES).dropped == []
