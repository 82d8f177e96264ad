"""swift/store/packed/repack.py: devices between the engines, every object readable all the time."""

from __future__ import annotations

import time

import pytest

from swift.store.api import LIVE
from swift.store.packed.repack import BeingConverted, Repacker
from swift.store.packed.writer import PackedRules
from test.contract.test_store import (
    EC,
    GOLD,
    NOW,
    NOW_S,
    FileBench,
    PackedBench,
    delete,
    key_of,
    put,
    read,
    ts,
)
from test.unit.store.packed.test_compaction import ANY_ARCHIVE, KEYS, change_at_random


class Converted(PackedBench):
    """A device that the file engine wrote, and a packed store on it that is opened later."""

    def __init__(self, root):
        super().__init__(root)
        self.files = FileBench.make(self)
        self.packed = self.store
        self.store = self.files

    def make(self, reserve=None):
        store = super().make(reserve)
        store.devices.rules = PackedRules(2000, 16 << 20)
        return store

    def picture(self, store):
        """Everything that readers and daemons can know."""
        states = {key: store.stat(key, ANY_ARCHIVE) for key in KEYS}
        bodies = {key: read(store, key, options=ANY_ARCHIVE) for key in KEYS if states[key].kind == LIVE}
        hashes = [store.hashes("sda", "7", policy) for policy in (GOLD, EC)]
        inventory = [list(store.inventory("sda", "7", policy)) for policy in (GOLD, EC)]
        return states, bodies, hashes, inventory, [store.partitions("sda", policy) for policy in (GOLD, EC)]

    def repack(self, *, packs, policies=(GOLD, EC), **options):
        reports = []
        for policy in policies:
            repacker = Repacker(self.packed.devices, "sda", policy, settle_s=0, **options)
            reports += list(repacker.run(packs=packs))[-1:]
        return reports

    def files_left(self):
        return sorted(path.stat().st_size for path in self.root.rglob("objects*/*/*/*/*") if path.is_file())


@pytest.fixture
def bench(tmp_path):
    made = Converted(tmp_path)
    yield made
    made.packed.close()


def test_a_packed_store_reads_what_the_file_engine_wrote(bench):
    change_at_random(bench, 1, 200)
    assert bench.picture(bench.packed) == bench.picture(bench.files)


@pytest.mark.parametrize("seed", range(3))
def test_a_device_is_packed_and_made_files_again(bench, seed):
    change_at_random(bench, seed, 200)
    before = bench.picture(bench.files)
    bench.repack(packs=True)
    assert bench.picture(bench.packed) == before
    # Larger bodies stay files.
    assert all(size > 2000 for size in bench.files_left())
    bench.store = bench.packed
    change_at_random(bench, seed + 5, 100)
    changed = bench.picture(bench.packed)
    bench.repack(packs=False)
    assert bench.picture(bench.packed) == changed == bench.picture(bench.files)


def test_changes_of_objects_that_were_not_reached_yet_are_right(bench):
    change_at_random(bench, 3, 100)
    bench.store = bench.packed
    change_at_random(bench, 4, 100)
    before = bench.picture(bench.packed)
    bench.repack(packs=True)
    assert bench.picture(bench.packed) == before


def test_a_conversion_that_was_stopped_goes_on_and_every_object_is_readable_meanwhile(bench):
    change_at_random(bench, 5, 200)
    before = bench.picture(bench.files)
    for packs in (True, False):
        for steps in (1, 3, 10):
            left = [steps]

            def stopped(left=left):
                left[0] -= 1
                return left[0] < 0

            bench.repack(packs=packs, stopped=stopped)
            assert bench.picture(bench.packed) == before
        bench.repack(packs=packs)
        assert bench.picture(bench.packed) == before
    assert bench.picture(bench.files) == before


def test_new_objects_are_files_while_a_device_becomes_one_of_files(bench):
    bench.repack(packs=False)
    key, other = key_of("new"), key_of("gone")
    put(bench.packed, key, ts(NOW_S), b"")
    put(bench.packed, other, ts(NOW_S), b"body")
    delete(bench.packed, other, ts(NOW_S + 1))
    assert bench.files.stat(key, NOW).kind == LIVE
    assert bench.files.stat(other, NOW).write_timestamp == ts(NOW_S + 1)


def test_a_damaged_file_is_quarantined_and_told(bench):
    put(bench.files, KEYS[0], ts(NOW_S), b"sound" * 50)
    (path,) = bench.root.rglob("*.data")
    path.write_bytes(b"wrong" * 50)
    (report,) = bench.repack(packs=True, policies=(GOLD,))
    assert report.quarantined == 1
    assert list((bench.root / "sda/quarantined/objects").iterdir())


@pytest.mark.parametrize("seed", range(3))
def test_what_the_file_engine_did_in_between_is_seen_and_packed(bench, seed):
    """Objects that were changed, removed and purged while the file engine was used again."""
    bench.store = bench.packed
    change_at_random(bench, seed, 100)
    bench.repack(packs=False)
    bench.store = bench.files
    change_at_random(bench, seed + 10, 150)
    before = bench.picture(bench.files)
    assert bench.picture(bench.packed) == before
    bench.repack(packs=True)
    assert bench.picture(bench.packed) == before
    bench.packed.close()
    for path in bench.root.rglob("*.mdb"):
        path.unlink()
    bench.packed = bench.make()
    assert bench.picture(bench.packed) == before


def test_files_that_the_file_engine_wrote_beside_records_are_kept_and_can_be_packed(bench):
    """The engine was changed in swift.conf without a conversion, and changed back."""
    put(bench.packed, KEYS[0], ts(NOW_S), b"a record")
    put(bench.packed, KEYS[2], ts(NOW_S), b"x" * 3000)
    bench.repack(packs=True, policies=(GOLD,))
    put(bench.files, KEYS[4], ts(NOW_S), b"a file")
    assert bench.packed.space.remove_orphans("sda", "7", GOLD, NOW_S * 2) == 0
    bench.repack(packs=True, policies=(GOLD,))
    assert read(bench.packed, KEYS[4]) == b"a file"
    assert read(bench.packed, KEYS[0]) == b"a record"
    assert bench.packed.space.remove_orphans("sda", "7", GOLD, NOW_S * 2) == 0
    assert read(bench.packed, KEYS[2]) == b"x" * 3000


def test_a_policy_that_is_packed_later_than_others_has_its_files(bench):
    put(bench.packed, KEYS[0], ts(NOW_S), b"packed long ago")
    assert read(bench.packed, KEYS[0]) == b"packed long ago"
    key = key_of("later", EC)
    put(bench.files, key, ts(NOW_S), b"a file of a younger policy", fragment=3)
    other = bench.make()
    for store in (bench.packed, other):
        assert read(store, key, options=ANY_ARCHIVE) == b"a file of a younger policy"
        assert store.partitions("sda", EC) == ["7"]
        assert store.space.remove_orphans("sda", "7", EC, NOW_S * 2) == 0
    other.close()
    bench.repack(packs=True, policies=(EC,))
    assert read(bench.packed, key, options=ANY_ARCHIVE) == b"a file of a younger policy"


def test_objects_stay_files_for_the_file_engine_when_the_index_is_lost(bench):
    bench.repack(packs=False)
    bench.packed.close()
    for path in bench.root.rglob("*.mdb"):
        path.unlink()
    bench.packed = bench.make()
    put(bench.packed, KEYS[0], ts(NOW_S), b"body")
    assert read(bench.files, KEYS[0]) == b"body"


def test_an_upload_that_began_before_is_stored_in_the_new_way(bench):
    store = bench.packed
    draft = store.draft(KEYS[0], 4)
    draft.write(b"body")
    bench.repack(packs=False)
    with store.edit(KEYS[0], NOW, create=True) as edit:
        metadata = {"name": "/AUTH_a/c/o0", "ETag": draft.etag, "Content-Length": "4", "Content-Type": "t/t"}
        edit.put(draft, ts(NOW_S), {**metadata, "X-Timestamp": ts(NOW_S).internal})
    assert read(bench.files, KEYS[0]) == b"body"


def test_two_conversions_of_a_policy_at_the_same_time_are_refused(bench):
    put(bench.packed, KEYS[0], ts(NOW_S), b"body")
    first = Repacker(bench.packed.devices, "sda", GOLD, settle_s=0).run(packs=True)
    next(first)
    with pytest.raises(BeingConverted):
        next(Repacker(bench.packed.devices, "sda", GOLD, settle_s=0).run(packs=False))
    first.close()


class Arrivals:
    """Files that appear on a packed device as rsync writes them."""

    def __init__(self, bench):
        self.bench = bench
        put(bench.packed, KEYS[0], ts(NOW_S), b"a record")
        bench.repack(packs=True, policies=(GOLD,))

    def arrive(self, change, key, at, *args):
        """Let the file engine write; rsync does not copy its hashes."""
        change(self.bench.files, key, ts(at), *args)
        for path in self.bench.root.rglob("hashes.*"):
            path.unlink()

    def invalidate(self, *keys):
        self.bench.packed.invalidate("sda", "7", GOLD, [key.hash[-3:] for key in keys])


def test_files_that_rsync_brought_count_once_their_suffixes_are_invalidated(bench):
    arrivals = Arrivals(bench)
    small, large, deleted = KEYS[2], KEYS[4], KEYS[0]
    arrivals.arrive(put, small, NOW_S + 1, b"small")
    arrivals.arrive(put, large, NOW_S + 1, b"x" * 3000)
    arrivals.arrive(delete, deleted, NOW_S + 1)
    assert bench.packed.stat(small, ANY_ARCHIVE).kind != LIVE
    arrivals.invalidate(small, large, deleted)
    assert (read(bench.packed, small), read(bench.packed, large)) == (b"small", b"x" * 3000)
    assert bench.packed.stat(deleted, ANY_ARCHIVE).kind != LIVE
    assert len(bench.packed.hashes("sda", "7", GOLD)) == 3
    # Only the large one stays a file; what comes again is not kept twice.
    assert bench.files_left() == [3000]
    arrivals.arrive(put, small, NOW_S + 1, b"small")
    arrivals.invalidate(small)
    assert bench.files_left() == [3000]


def test_files_that_rsync_brought_do_not_hide_what_is_newer(bench):
    arrivals = Arrivals(bench)
    arrivals.arrive(put, KEYS[0], NOW_S - 5, b"older")
    arrivals.arrive(put, KEYS[2], NOW_S + 1, b"rotten")
    (path,) = (each for each in bench.root.rglob("*.data") if each.read_bytes() == b"rotten")
    path.write_bytes(b"broken")
    arrivals.invalidate(KEYS[0], KEYS[2])
    assert read(bench.packed, KEYS[0]) == b"a record"
    assert bench.packed.stat(KEYS[2], ANY_ARCHIVE).kind != LIVE
    assert list(bench.root.rglob("quarantined/*/*/*.data")) and bench.files_left() == []


def test_a_pass_of_the_compactor_takes_files_that_rsync_brought_but_none_of_long_ago(bench):
    arrivals = Arrivals(bench)
    before_s = time.time() - 10
    arrivals.arrive(put, KEYS[2], NOW_S, b"young")
    assert bench.packed.space.take_arrivals("sda", "7", GOLD, before_s) == 1
    assert read(bench.packed, KEYS[2]) == b"young"
    arrivals.arrive(put, KEYS[4], NOW_S, b"of long ago")
    assert bench.packed.space.take_arrivals("sda", "7", GOLD, before_s + 3600) == 0
    assert bench.packed.stat(KEYS[4], ANY_ARCHIVE).kind != LIVE
    assert bench.packed.space.remove_orphans("sda", "7", GOLD, before_s + 3600) == 1
