"""Contract of object engines for daemons (``Maintenance`` in swift/store/api.py)."""

from __future__ import annotations

import math
import os
import struct
import time
import zlib

import pytest

from swift.base.entity import EntityPath
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, Location, ReadOptions, SyncedVersion
from swift.store.handle import StoreHandle
from test.contract.test_store import (
    EC,
    GOLD,
    NOW,
    NOW_S,
    delete,
    key_of,
    post,
    put,
    read,
    ts,
)

EC_HEADERS = {"X-Object-Sysmeta-Ec-Frag-Index": "3", "X-Object-Sysmeta-Ec-Etag": "e"}


@pytest.fixture
def maintenance(store):
    return StoreHandle(store, "sda").maintenance


def at(key):
    return Location(key.device, key.partition, key.policy, key.hash)


def audit(maintenance, key, *, full=True):
    paced = []
    report = maintenance.audit(at(key), full=full, pace=paced.append, temporary_age_s=1000.0)
    assert sum(paced) == report.bytes_read or report.quarantined
    return report


def fragment(index, payload):
    """One whole fragment as liberasurecode writes it."""
    head = struct.pack("<IIIQB32sBBI", index, len(payload), 0, len(payload), 1, b"", 0, 6, 0x00010000)
    return head + struct.pack("<III9x", 0x0B0C5ECC, 0x00010800, zlib.crc32(head)) + payload


# --- find -------------------------------------------------------------------------------------------


def test_an_object_is_found_by_its_hash_with_its_name(store, maintenance):
    put(store, key_of("ä/b"), ts(10))
    found = maintenance.find(at(key_of("ä/b")), NOW)
    assert (found.key, found.state.kind) == (key_of("ä/b"), LIVE)


def test_unknown_objects_have_no_name(maintenance):
    found = maintenance.find(at(key_of()), NOW)
    assert (found.key, found.state.kind) == (None, ABSENT)


def test_tombstones_and_expired_objects_have_names(bench, store, maintenance):
    put(store, key_of("old"), ts(10), **{"X-Delete-At": "100"})
    delete(store, key_of("gone"), ts(NOW_S))
    old, gone = maintenance.find(at(key_of("old")), NOW), maintenance.find(at(key_of("gone")), NOW)
    assert (old.key, old.state.kind) == (key_of("old"), EXPIRED)
    assert (gone.key, gone.state.kind) == (key_of("gone"), DELETED)


def test_data_and_metadata_timestamps_differ_after_a_post(store, maintenance):
    put(store, key_of(), ts(10), **{"X-Object-Meta-A": "1"})
    post(store, key_of(), ts(12), **{"X-Object-Meta-B": "2"})
    state = maintenance.find(at(key_of()), NOW).state
    assert state.written["X-Object-Meta-A"] == "1"
    assert "X-Object-Meta-A" not in state.posted
    assert state.posted["X-Object-Meta-B"] == "2"


def test_a_name_with_another_hash_is_reported_as_damage(store, maintenance):
    other = key_of()._replace(path=EntityPath("AUTH_a", "c", "other"))
    put(store, other, ts(10))
    # An object at its right path shows that the hash path settings are correct.
    put(store, key_of("sound"), ts(10))
    assert maintenance.find(at(key_of("sound")), NOW).key == key_of("sound")
    assert maintenance.find(at(key_of()), NOW).key is None
    assert store.stat(other, NOW).kind == ABSENT


# --- audit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 10, (2 << 20) + 7])
def test_audit_keeps_an_intact_object(store, maintenance, size):
    body = os.urandom(size)
    put(store, key_of(), ts(10), body)
    report = audit(maintenance, key_of())
    assert (report.found.key, report.quarantined, report.bytes_read) == (key_of(), None, size)
    assert read(store, key_of()) == body


def test_a_quick_audit_reads_no_body(bench, store, maintenance):
    put(store, key_of(), ts(10), b"sound" * 100)
    bench.damage(key_of())
    report = audit(maintenance, key_of(), full=False)
    assert (report.quarantined, report.bytes_read) == (None, 0)
    assert store.stat(key_of(), NOW).kind == LIVE


@pytest.mark.parametrize("size", [100, (2 << 20) + 7])
def test_a_body_with_wrong_bytes_is_quarantined(bench, store, maintenance, size):
    put(store, key_of(), ts(10), os.urandom(size))
    bench.damage(key_of())
    assert "MD5" in audit(maintenance, key_of()).quarantined
    assert store.stat(key_of(), NOW).kind == ABSENT
    assert audit(maintenance, key_of()).quarantined is None


@pytest.mark.parametrize("full", [False, True])
def test_a_body_of_wrong_length_is_quarantined(store, maintenance, full):
    put(store, key_of(), ts(10), b"body", **{"Content-Length": "5"})
    assert "bytes" in audit(maintenance, key_of(), full=full).quarantined
    assert store.stat(key_of(), NOW).kind == ABSENT


def test_a_misplaced_name_is_quarantined(store, maintenance):
    other = key_of()._replace(path=EntityPath("AUTH_a", "c", "other"))
    put(store, other, ts(10))
    # An object at its right path shows that the hash path settings are correct.
    put(store, key_of("sound"), ts(10))
    assert audit(maintenance, key_of("sound"), full=False).quarantined is None
    assert "does not belong" in audit(maintenance, key_of(), full=False).quarantined


def test_audit_accepts_deleted_expired_and_missing_objects(store, maintenance):
    put(store, key_of("old"), ts(10), **{"X-Delete-At": "100"})
    delete(store, key_of("gone"), ts(NOW_S))
    for name in ("old", "gone", "never"):
        assert audit(maintenance, key_of(name)).quarantined is None


def test_audit_requires_valid_headers_and_whole_fragments_in_archives(store, maintenance):
    sound = fragment(3, b"x" * 1000) + fragment(3, b"y" * 10)
    put(store, key_of("sound", EC), ts(NOW_S), sound, fragment=3, **EC_HEADERS)
    assert audit(maintenance, key_of("sound", EC)).bytes_read == len(sound)
    put(store, key_of("silent", EC), ts(NOW_S), sound, fragment=3)
    assert "lacks" in audit(maintenance, key_of("silent", EC), full=False).quarantined
    bodies = {
        "another": fragment(3, b"x") + fragment(4, b"y"),
        "short": fragment(3, b"x" * 100)[:-1],
        "torn": fragment(3, b"x") + fragment(3, b"y")[:40],
        "nonsense": b"n" * 200,
    }
    for name, body in bodies.items():
        key = key_of(name, EC)
        put(store, key, ts(NOW_S), body, fragment=3, **EC_HEADERS)
        assert audit(maintenance, key, full=False).quarantined is None
        assert audit(maintenance, key).quarantined, name
        assert store.stat(key, NOW).kind == ABSENT


# --- purge ------------------------------------------------------------------------------------------


def test_purge_removes_a_synced_object_and_its_directory(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    assert maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S)))
    assert store.stat(key_of(), NOW).kind == ABSENT
    assert bench.names(key_of()) == []
    assert list(store.inventory("sda", "7", GOLD)) == []
    assert maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S)))


def test_purge_keeps_versions_newer_than_the_synced_one(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S + 1))
    assert not maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S)))
    assert read(store, key_of()) == b"body"


def test_a_tombstone_is_purged_up_to_the_synced_timestamp(store, maintenance):
    delete(store, key_of(), ts(NOW_S))
    assert not maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S - 1)))
    assert maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S)))
    assert store.stat(key_of(), NOW).kind == ABSENT


def test_purge_removes_metadata_together_with_its_object(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    post(store, key_of(), ts(NOW_S + 2))
    assert maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S), meta_timestamp=ts(NOW_S + 2)))
    assert bench.names(key_of()) == []


def test_purge_keeps_an_object_whose_metadata_changed_since_the_sync(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    post(store, key_of(), ts(NOW_S + 2), ctype_at=ts(NOW_S + 2))
    post(store, key_of(), ts(NOW_S + 3))
    before = bench.names(key_of())
    assert not maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S), meta_timestamp=ts(NOW_S + 2)))
    assert bench.names(key_of()) == before
    assert maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S), meta_timestamp=ts(NOW_S + 3)))
    assert bench.names(key_of()) == []


def test_purge_of_a_tombstone_removes_newer_metadata(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    post(store, key_of(), ts(NOW_S + 3))
    delete(store, key_of(), ts(NOW_S + 2))
    assert bench.names(key_of()) == [f"{ts(NOW_S + 2).internal}.ts", f"{ts(NOW_S + 3).internal}.meta"]
    assert maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S + 2)))
    assert bench.names(key_of()) == []


def test_several_objects_are_purged_together(bench, store, maintenance):
    keys = [key_of(f"{policy.name}{number}", policy) for number in range(4) for policy in (GOLD, EC)]
    for key in keys:
        put(store, key, ts(NOW_S), fragment=3 if key.policy is EC else None)
    put(store, keys[0], ts(NOW_S + 1), b"newer")
    synced = {GOLD: SyncedVersion(ts(NOW_S)), EC: SyncedVersion(ts(NOW_S), 3, durable=True)}
    for policy in (GOLD, EC):
        maintenance.purge_all([(at(key), synced[policy]) for key in keys if key.policy is policy])
    assert [key for key in keys if bench.names(key)] == [keys[0]]
    assert read(store, keys[0]) == b"newer"
    # An object may be named twice.
    maintenance.purge_all([(at(keys[0]), SyncedVersion(ts(NOW_S + second))) for second in (0, 1)])
    assert bench.names(keys[0]) == []


def test_metadata_without_an_archive_is_kept_while_an_archive_may_arrive(bench, store, maintenance):
    key = key_of("coded", EC)
    put(store, key, ts(NOW_S), fragment=3)
    post(store, key, ts(NOW_S + 2))
    synced = SyncedVersion(ts(NOW_S), 3, meta_timestamp=ts(NOW_S + 1), keeps_metadata=True)
    assert not maintenance.purge(at(key), synced)
    assert len(bench.names(key)) == 2, "posted since it was offered"
    assert not maintenance.purge(at(key), synced._replace(meta_timestamp=ts(NOW_S + 2)))
    assert bench.names(key) == [f"{ts(NOW_S + 2).internal}.meta"]


def test_only_metadata_without_an_object_is_removed(bench, store, maintenance):
    keys = [key_of(name, EC) for name in ("data", "tombstone", "lone")]
    for key in keys:
        put(store, key, ts(NOW_S), fragment=3)
        post(store, key, ts(NOW_S + 2))
    delete(store, keys[1], ts(NOW_S + 1))
    synced = SyncedVersion(ts(NOW_S), 3, meta_timestamp=ts(NOW_S + 2), keeps_metadata=True)
    maintenance.purge(at(keys[2]), synced)
    maintenance.remove_lone_metadata([at(key) for key in (*keys, key_of("none", EC))])
    assert [len(bench.names(key)) for key in keys] == [2, 2, 0]
    assert sorted(store.inventory("sda", "7", EC)) == sorted(key.hash for key in keys[:2])


def test_only_the_archive_of_the_synced_index_is_purged(bench, store, maintenance):
    key = key_of(policy=EC)
    put(store, key, ts(NOW_S), fragment=3)
    put(store, key, ts(NOW_S), fragment=5)
    post(store, key, ts(NOW_S + 1))
    synced = SyncedVersion(ts(NOW_S), 3, meta_timestamp=ts(NOW_S + 1))
    assert not maintenance.purge(at(key), synced)
    names = bench.names(key)
    assert f"{ts(NOW_S).internal}#5#d.data" in names
    assert f"{ts(NOW_S + 1).internal}.meta" in names
    assert len(names) == 2
    assert maintenance.purge(at(key), synced._replace(fragment=5))


def test_purge_keeps_an_archive_whose_commit_may_be_in_flight(bench, store, maintenance):
    key = key_of(policy=EC)
    # Files have the machine's timestamps.
    bench.clock.now_s = float(int(time.time()))
    put(store, key, ts(bench.clock.now_s), fragment=3, commit=False)
    synced = SyncedVersion(ts(bench.clock.now_s), 3, durable=False)
    assert not maintenance.purge(at(key), synced)
    bench.clock.now_s += 120
    assert maintenance.purge(at(key), synced)


def test_a_commit_that_comes_after_a_purge_finds_nothing(bench, store, maintenance):
    key = key_of(policy=EC)
    for is_committed in (False, True):
        put(store, key, ts(NOW_S), fragment=3, commit=is_committed)
        assert maintenance.purge(at(key), SyncedVersion(ts(NOW_S), 3, durable=True))
        with pytest.raises(FileNotFoundError), store.edit(key, NOW, create=True) as edit:
            edit.commit(ts(NOW_S), 3)
        assert bench.names(key) == []


def test_an_archive_that_arrives_again_after_a_purge_is_not_committed(bench, store, maintenance):
    """The commit applied to the purged archive; this holds after the index is rebuilt, too."""
    key = key_of(policy=EC)
    put(store, key, ts(NOW_S), fragment=3)
    maintenance.purge(at(key), SyncedVersion(ts(NOW_S), 3, durable=True))
    bench.clock.now_s += 1
    put(store, key, ts(NOW_S), fragment=3, commit=False)
    assert bench.names(key) == [f"{ts(NOW_S).internal}#3.data"]
    bench.restart()
    assert bench.names(key) == [f"{ts(NOW_S).internal}#3.data"]
    bench.clock.now_s += 1
    with bench.store.edit(key, NOW, create=True) as edit:
        edit.commit(ts(NOW_S), 3)
    bench.restart()
    assert bench.names(key) == [f"{ts(NOW_S).internal}#3#d.data"]


def test_only_an_empty_partition_is_removed(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    store.hashes("sda", "7", GOLD)
    assert not maintenance.remove_partition("sda", "7", GOLD)
    assert read(store, key_of()) == b"body"
    maintenance.purge(at(key_of()), SyncedVersion(ts(NOW_S)))
    assert maintenance.remove_partition("sda", "7", GOLD)
    assert store.partitions("sda", GOLD) == []
    assert maintenance.remove_partition("sda", "7", GOLD)
    put(store, key_of(), ts(NOW_S))
    assert store.stat(key_of(), ReadOptions(NOW_S)).kind == LIVE


# --- quarantine -------------------------------------------------------------------------------------


def test_a_quarantined_object_is_not_found(store, maintenance):
    put(store, key_of("dark"), ts(10))
    put(store, key_of("other"), ts(10))
    maintenance.quarantine(at(key_of("dark")), "nobody lists it")
    assert maintenance.find(at(key_of("dark")), NOW).state.kind == ABSENT
    assert maintenance.find(at(key_of("other")), NOW).state.kind == LIVE


def test_an_object_cannot_be_quarantined_twice(store, maintenance):
    put(store, key_of(), ts(10))
    for _ in range(2):
        maintenance.quarantine(at(key_of()), "nobody lists it")
    put(store, key_of(), ts(20))
    assert maintenance.find(at(key_of()), NOW).state.kind == LIVE


# --- change tokens, durability, preparation ---------------------------------------------------------


def test_a_change_token_is_empty_or_changes_with_the_partition(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    store.hashes("sda", "7", GOLD)
    mark = maintenance.change_token("sda", "7", GOLD)
    assert mark == "" or mark.startswith(("tier-", "packed-")), (
        "changes of this moment may not show in a time"
    )
    put(store, key_of("another"), ts(NOW_S))
    assert maintenance.change_token("sda", "7", GOLD) != mark or mark == ""
    assert maintenance.change_token("sda", "8", GOLD) == ""


def test_idle_time_is_short_after_a_write_and_infinite_for_missing_partitions(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    # An engine whose hashes cost nothing does not track idle time.
    assert maintenance.idle_s("sda", "7", GOLD) == math.inf or 0 <= maintenance.idle_s("sda", "7", GOLD) < 60
    assert maintenance.idle_s("sda", "8", GOLD) == math.inf


def test_replicated_data_is_made_durable(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    maintenance.make_durable("sda", "7", GOLD, [key_of().hash[-3:], "abc", "../x"])
    maintenance.make_durable("sda", "8", GOLD, ["abc"])
    assert read(store, key_of()) == b"body"


def test_prepare_reports_nothing_on_a_device_without_unknown_entries(bench, store, maintenance):
    put(store, key_of(), ts(NOW_S))
    assert maintenance.prepare("sda", GOLD, NOW_S) == []
    assert maintenance.prepare("sda", EC, NOW_S) == []
    assert read(store, key_of()) == b"body"
