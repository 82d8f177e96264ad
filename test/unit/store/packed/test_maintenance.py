"""swift/store/packed/maintenance.py: finding, auditing and purging objects."""

from __future__ import annotations

import math

import pytest

from swift.store.api import LIVE, SyncedVersion
from swift.store.packed.record import ALIGNMENT
from swift.store.packed.volumes import write_at
from test.sim.packedworld import (
    VIEW,
    World,
    commit,
    delete,
    key_of,
    location_of,
    outcome_of,
    place_of,
    post,
    purge,
    put,
)
from test.sim.test_powercut import ABSENT_OUTCOME, EC, GOLD, at, live

A, ARCHIVED = key_of("a"), key_of("ec", EC)
LARGE = bytes(range(256)) * 5


class Lenient(World):
    def _notice(self, text):
        pass


@pytest.fixture
def store():
    return Lenient(1, 0).stores[0]


def audit(store, key, *, full=True):
    read = []
    report = store.maintenance.audit(location_of(key), full=full, pace=read.append, temporary_age_s=1.0)
    return report, sum(read)


def damage_body(store, key):
    (entry,) = place_of(store, key).entries()
    device = place_of(store, key).device
    at_body = entry.position.unit * ALIGNMENT + device.read(entry, 0).header.prefix_bytes
    write_at(store.process.machine.disk, device.volumes.open(entry.position.volume).fd, b"x", at_body)


# --- audit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"small" * 20, LARGE])
def test_a_sound_object_is_read_as_a_whole(store, body):
    put(store, A, 1, body)
    report, read = audit(store, A)
    assert report.quarantined is None and read == len(body) == report.bytes_read
    report, read = audit(store, A, full=False)
    assert report.found.state.kind == LIVE and read == 0


def test_a_damaged_body_is_quarantined(store):
    put(store, A, 1, b"body" * 20)
    damage_body(store, A)
    report, _read = audit(store, A)
    assert "MD5" in report.quarantined
    assert outcome_of(store, A) == ABSENT_OUTCOME


def test_a_tombstone_is_sound(store):
    delete(store, A, 1)
    report, read = audit(store, A)
    assert report.quarantined is None and read == 0


# --- purge --------------------------------------------------------------------------------------------


def test_a_purge_of_an_older_version_removes_nothing(store):
    put(store, A, 5, b"five")
    assert not purge(store, A, 1)
    assert outcome_of(store, A) == live(b"five")


def test_a_purge_of_everything_says_so(store):
    put(store, A, 1, LARGE)
    post(store, A, 2, "green")
    assert purge(store, A, 1, meta=2)
    assert place_of(store, A).entries() == []


def test_an_uncommitted_archive_stays_while_a_commit_may_come(store):
    put(store, ARCHIVED, 1, b"archive", fragment=2)
    synced = SyncedVersion(at(1), 2, durable=False)
    assert not store.maintenance.purge(location_of(ARCHIVED), synced)
    store.core.clock.advance(10_000_000)
    assert store.maintenance.purge(location_of(ARCHIVED), synced)


# --- partitions ---------------------------------------------------------------------------------------


def test_the_token_of_a_partition_changes_with_it(store):
    token = lambda: store.maintenance.change_token("sda", A.partition, GOLD)  # noqa: E731
    assert token() == ""
    tokens = []
    for second in (1, 2, 3):
        put(store, A, second, b"x")
        tokens.append(token())
    store.invalidate("sda", A.partition, GOLD, [])
    assert len({*tokens, token()}) == 4


def test_a_partition_that_is_not_there_has_been_idle_for_ever(store):
    assert store.maintenance.idle_s("sda", A.partition, GOLD) == math.inf
    put(store, A, 1, b"x")
    assert store.maintenance.idle_s("sda", A.partition, GOLD) < 1.0


def test_a_found_object_is_told_with_its_key_and_state(store):
    put(store, ARCHIVED, 1, b"archive", fragment=2)
    commit(store, ARCHIVED, 1)
    found = store.maintenance.find(location_of(ARCHIVED), VIEW._replace(fragment=2))
    assert found.state.kind == LIVE and found.key == ARCHIVED


def test_an_object_is_quarantined_on_demand(store):
    put(store, A, 1, b"x")
    store.maintenance.quarantine(location_of(A), "asked for")
    store.maintenance.quarantine(location_of(A), "asked for")
    assert outcome_of(store, A) == ABSENT_OUTCOME
