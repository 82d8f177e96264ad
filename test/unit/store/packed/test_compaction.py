"""swift/store/packed/compaction.py: dead space returns, and nothing else changes."""

from __future__ import annotations

import os
import random

import pytest

from swift.base.errors import NoSpace
from swift.platform.devices import SpaceGuard
from swift.store.api import DELETED, LIVE, ReadOptions, SyncedVersion
from swift.store.packed.compaction import Compactor, volume_uses
from swift.store.packed.record import ALIGNMENT, Kind
from swift.store.packed.writer import PackedRules
from test.contract.test_maintenance import at
from test.contract.test_store import (
    EC,
    GOLD,
    NOW,
    NOW_S,
    PackedBench,
    delete,
    key_of,
    post,
    put,
    read,
    ts,
)
from test.support.disks import CrampedDisk

KEYS = [key_of(f"o{number}", policy) for number in range(12) for policy in (GOLD, EC)]
ANY_ARCHIVE = ReadOptions(NOW_S, preferences=[])


class SmallVolumes(PackedBench):
    """A bench whose volumes take a few records each."""

    def make(self, reserve=None):
        store = super().make(reserve)
        store.devices.rules = PackedRules(8192, 16384)
        return store

    @property
    def device(self):
        return self.store.devices.device("sda")

    def reopen(self, *, without_index=False):
        self.store.close()
        if without_index:
            for path in self.root.rglob("*.mdb"):
                path.unlink()
        self.store = self.make()

    def compact_all(self):
        compactor = Compactor(self.store.core.disk, self.device)
        return [compactor.compact(number) for number in self.device.volumes.numbers()]

    def picture(self):
        """Everything that readers and daemons can know."""
        states = {key: self.store.stat(key, ANY_ARCHIVE) for key in KEYS}
        bodies = {key: read(self.store, key, options=ANY_ARCHIVE) for key in KEYS if states[key].kind == LIVE}
        hashes = [self.store.hashes("sda", "7", policy) for policy in (GOLD, EC)]
        return states, bodies, hashes, {key: self.names(key) for key in KEYS}


@pytest.fixture
def bench(tmp_path):
    made = SmallVolumes(tmp_path)
    yield made
    made.store.close()


def change_at_random(bench, seed, count):
    """Make changes; the times rise."""
    generator = random.Random(seed)
    for step in range(count):
        key, now = generator.choice(KEYS), ts(NOW_S + seed * count + step)
        verb = generator.choice(("put", "put", "put", "delete", "post", "purge", "upload"))
        state = bench.store.stat(key, NOW)
        if verb == "put":
            body = generator.randbytes(generator.choice((10, 700, 3000)))
            put(bench.store, key, now, body, fragment=3 if key.policy is EC else None)
        elif verb == "upload" and key.policy is EC:
            put(bench.store, key, now, b"x" * 50, fragment=generator.randrange(6), commit=False)
        elif verb == "delete":
            delete(bench.store, key, now)
        elif verb == "post" and state.kind == LIVE:
            post(bench.store, key, now, **{"X-Object-Meta-Step": str(step)})
        elif verb == "purge":
            synced = SyncedVersion(state.timestamp, 3 if key.policy is EC else None)
            bench.store.maintenance.purge(at(key), synced)


@pytest.mark.parametrize("seed", range(5))
def test_compaction_changes_nothing_that_can_be_seen_now_or_after_the_index_was_lost(bench, seed):
    for round_ in range(4):
        change_at_random(bench, seed * 10 + round_, 60)
        # The volume of the store that is open is not compacted.
        bench.reopen()
        before = bench.picture()
        bench.compact_all()
        assert bench.picture() == before
        bench.reopen(without_index=True)
        assert bench.picture() == before


def test_the_space_of_dead_records_returns(bench):
    for second in range(40):
        put(bench.store, KEYS[0], ts(NOW_S + second), os.urandom(3000))
    put(bench.store, KEYS[2], ts(NOW_S), b"live")
    before = volume_uses(bench.device)
    assert len(before) > 5 and sum(use.dead for use in before) > 30 * 3000
    reports = bench.compact_all()
    after = volume_uses(bench.device)
    assert sum(use.dead for use in after) < 16384
    assert len(after) == len(bench.device.volumes.numbers()) <= 3
    stays = [report.reason for report in reports if not report.is_removed]
    assert len(stays) == 1 and stays[0].startswith("a process appends to it")
    assert read(bench.store, KEYS[2]) == b"live"


def test_the_newest_volume_goes_after_another_one_was_begun(bench):
    put(bench.store, KEYS[0], ts(NOW_S), b"x" * 3000)
    put(bench.store, KEYS[2], ts(NOW_S), b"live")
    delete(bench.store, KEYS[0], ts(NOW_S + 1))
    for step in (1, 2):
        bench.reopen()
        before = bench.picture()
        (report,) = bench.compact_all()
        assert report.is_removed and bench.device.volumes.numbers() == [step + 1]
        assert bench.picture() == before
    delete(bench.store, KEYS[2], ts(NOW_S + 1))
    bench.store.core.clock.advance(20_000_000)
    bench.reopen(without_index=True)
    assert bench.device.volumes.numbers() == [3]


def test_a_volume_in_which_nothing_lives_leaves_an_empty_one_that_others_append_to(bench):
    put(bench.store, KEYS[0], ts(NOW_S), b"x" * 3000)
    location = at(KEYS[0])
    assert bench.store.maintenance.purge(location, SyncedVersion(ts(NOW_S)))
    for without_index in (False, True):
        bench.reopen(without_index=without_index)
        (report,) = bench.compact_all()
        assert report.is_removed and report.copied == 0
    assert bench.device.volumes.numbers() == [3]
    bench.reopen()
    put(bench.store, KEYS[2], ts(NOW_S), b"next")
    assert bench.device.volumes.numbers() == [3] and read(bench.store, KEYS[2]) == b"next"


def test_a_volume_to_which_another_process_appends_stays(bench):
    put(bench.store, KEYS[0], ts(NOW_S), b"first")
    other = bench.make()
    try:
        put(other, KEYS[2], ts(NOW_S), b"second")
        assert [report.is_removed for report in bench.compact_all()] == [False, False]
        assert read(bench.store, KEYS[2]) == b"second"
    finally:
        other.close()


def test_ranges_that_a_compaction_finds_lost_are_noted_and_not_looked_for_in_each_pass(bench):
    for second in range(3):
        put(bench.store, KEYS[0], ts(NOW_S + second), b"x" * 900)
    put(bench.store, KEYS[2], ts(NOW_S), b"live")
    (first, *_others) = [position for position, _header in scan(bench)]
    with open(bench.device.volumes.path(1), "r+b") as file:
        file.seek(first.unit * ALIGNMENT)
        file.write(b"damaged")
    bench.reopen()
    (report,) = bench.compact_all()
    assert not report.is_removed and report.copied and "--accept-loss" in report.reason
    assert volume_uses(bench.device)[0].lost > 900
    again = Compactor(bench.store.core.disk, bench.device).compact(1)
    assert not again.is_removed and not again.copied and "--accept-loss" in again.reason
    assert read(bench.store, KEYS[2]) == b"live"


def test_a_device_on_which_bodies_have_no_room_takes_deletions_and_is_not_filled_by_a_compaction(bench):
    for number in range(12):
        put(bench.store, key_of(f"o{number}"), ts(NOW_S - 9), os.urandom(8000))
    bench.reopen()
    disk = bench.store.core.disk = CrampedDisk(is_full=True, free_blocks=6)
    bench.store.core.space = SpaceGuard(disk, None)
    with pytest.raises(NoSpace):
        put(bench.store, key_of("o0"), ts(NOW_S - 2), b"body")
    delete(bench.store, key_of("o0"), ts(NOW_S - 1))
    assert bench.store.stat(key_of("o0"), NOW).kind == DELETED
    before = len(bench.device.volumes.numbers())
    with pytest.raises(NoSpace):
        Compactor(disk, bench.device).compact(2)
    assert len(bench.device.volumes.numbers()) == before
    assert all(bench.store.stat(key_of(f"o{number}"), NOW).kind == LIVE for number in range(1, 12))


def scan(bench):
    volume = bench.device.volumes.open_anew(1)
    return list(bench.device.volumes.scan(volume, 0))


def test_a_volume_with_a_damaged_live_record_stays(bench):
    put(bench.store, KEYS[0], ts(NOW_S), b"x" * 3000)
    bench.damage(KEYS[0])
    for second in range(10):
        put(bench.store, KEYS[2], ts(NOW_S + second), os.urandom(3000))
    first, *_others = bench.compact_all()
    assert not first.is_removed and "damaged" in first.reason
    assert bench.store.stat(KEYS[0], NOW).kind == LIVE


@pytest.mark.parametrize("key", KEYS[:2], ids=["gold", "ec"])
def test_replication_sees_what_a_lossy_rebuild_misses_and_restores_it(bench, key):
    """The hashes of a device that lost a record differ from those of the others."""
    for second in range(3):
        put(bench.store, KEYS[2], ts(NOW_S + second), b"other", fragment=None)
        put(bench.store, key, ts(NOW_S + second), b"x" * 500, fragment=None if key.policy is GOLD else 3)
    before = bench.store.hashes("sda", "7", key.policy)
    (entry,) = [entry for entry in bench.entries(key) if entry.kind is Kind.DATA]
    put(bench.store, KEYS[4], ts(NOW_S + 9), b"the last batch may be torn, others not")
    with open(bench.device.volumes.path(entry.position.volume), "r+b") as file:
        file.seek(entry.position.unit * ALIGNMENT + 30)
        file.write(b"damage")
    bench.reopen(without_index=True)
    assert bench.store.hashes("sda", "7", key.policy) != before
    assert bench.store.space.use("sda").lost_bytes > 500
    if key.policy is GOLD:
        put(bench.store, key, ts(NOW_S + 2), b"x" * 500)
    else:
        put(bench.store, key, ts(NOW_S + 2), b"x" * 500, fragment=3)
    assert bench.store.stat(key, NOW).timestamp == ts(NOW_S + 2)
    bench.store.devices.rules = PackedRules(8192, 16384)
    for round_ in range(8):
        put(bench.store, KEYS[6], ts(NOW_S + 20 + round_), os.urandom(3000))
    first, *_others = bench.compact_all()
    assert "--accept-loss" in first.reason and not first.is_removed
    report = Compactor(bench.store.core.disk, bench.device).compact(1, accepts_loss=True)
    assert report.is_removed and bench.store.space.use("sda").lost_bytes == 0
    assert read(bench.store, key, options=ANY_ARCHIVE) == b"x" * 500
    assert read(bench.store, KEYS[2]) == b"other"


def test_a_volume_with_a_live_record_that_a_scan_does_not_find_stays(bench):
    """It would be gone with the volume; the index still knows of it."""
    put(bench.store, KEYS[0], ts(NOW_S), b"x" * 500)
    (entry,) = bench.entries(KEYS[0])
    for second in range(10):
        put(bench.store, KEYS[2], ts(NOW_S + second), os.urandom(3000))
    with open(bench.device.volumes.path(entry.position.volume), "r+b") as file:
        file.seek(entry.position.unit * ALIGNMENT + 30)
        file.write(b"damage")
    first, *_others = bench.compact_all()
    assert not first.is_removed and "lost" not in first.reason
    report = Compactor(bench.store.core.disk, bench.device).compact(1, accepts_loss=True)
    assert not report.is_removed and "were not found" in report.reason


def test_a_volume_in_use_stays_and_says_so_though_loss_is_accepted(bench):
    """The next record may be on its way into it."""
    put(bench.store, KEYS[0], ts(NOW_S), b"x" * 500)
    bench.store.maintenance.remove_partition("sda", KEYS[0].partition, KEYS[0].policy)
    (number,) = bench.device.volumes.numbers()
    report = Compactor(bench.store.core.disk, bench.device).compact(number, accepts_loss=True)
    assert not report.is_removed and "appends to it" in report.reason
    assert bench.device.volumes.numbers() == [number]


def test_large_dead_bodies_become_holes(bench):
    bench.store.devices.rules = PackedRules(1 << 20, 8 << 20)
    bench.reopen_rules = None
    put(bench.store, KEYS[0], ts(NOW_S), os.urandom(300_000))
    put(bench.store, KEYS[0], ts(NOW_S + 1), b"new")
    put(bench.store, KEYS[2], ts(NOW_S), os.urandom(100_000))
    (number,) = bench.device.volumes.numbers()
    path = bench.device.volumes.path(number)
    before = os.stat(path).st_blocks
    punched = Compactor(bench.store.core.disk, bench.device).punch(number)
    assert 290_000 < punched <= 300_000
    assert os.stat(path).st_blocks < before
    assert read(bench.store, KEYS[0]) == b"new" and len(read(bench.store, KEYS[2])) == 100_000


def test_a_volume_whose_creation_was_cut_short_has_no_holes(bench):
    put(bench.store, KEYS[0], ts(NOW_S), b"body")
    (number,) = bench.device.volumes.numbers()
    open(bench.device.volumes.path(number + 1), "wb").close()
    assert Compactor(bench.store.core.disk, bench.device).punch(number + 1) == 0
