"""swift/store/packed/edit.py: changes of one object, in volumes and as files."""

from __future__ import annotations

import os

import pytest

from swift.platform.disk import Disk
from swift.store.errors import BadFragmentIndex
from swift.store.packed.writer import PackedRules
from test.contract import test_store as contract
from test.sim.packedworld import (
    VIEW,
    World,
    abort,
    commit,
    delete,
    key_of,
    outcome_of,
    place_of,
    post,
    put,
    view_of,
)
from test.sim.test_powercut import ABSENT_OUTCOME, EC, TOP, at, live

A, ARCHIVED = key_of("a"), key_of("ec", EC)
LARGE = bytes(range(256)) * 5


@pytest.fixture
def store():
    return World(1, 0).stores[0]


def names(store, key):
    return sorted(entry.name for entry in place_of(store, key).entries())


def files(store, key):
    disk = store.process.machine.disk
    policy = "objects-1" if key.policy.ec else "objects"
    try:
        return sorted(disk.listdir(f"{TOP}/{policy}/{key.partition}/{key.hash[-3:]}/{key.hash}"))
    except FileNotFoundError:
        return []


def test_a_newer_body_takes_the_place_of_data_and_metadata(store):
    put(store, A, 1, b"one")
    post(store, A, 2, "green")
    put(store, A, 3, b"three")
    assert names(store, A) == [f"{at(3).internal}.data"]


def test_a_body_that_is_obsolete_when_it_comes_leaves_nothing(store):
    put(store, A, 5, b"five")
    put(store, A, 1, b"one")
    put(store, A, 2, LARGE)
    assert names(store, A) == [f"{at(5).internal}.data"]
    assert files(store, A) == []


def test_a_large_body_is_a_file_until_it_is_obsolete(store):
    put(store, A, 1, LARGE)
    assert files(store, A) == [f"{at(1).internal}.data"]
    put(store, A, 2, b"small")
    assert files(store, A) == []
    assert outcome_of(store, A) == live(b"small")


def test_a_large_body_that_comes_again_stays(store):
    """Replication brings what is there already; the file has the same name."""
    put(store, A, 1, LARGE)
    put(store, A, 1, LARGE)
    assert outcome_of(store, A) == live(LARGE)


def test_a_body_that_becomes_small_under_the_same_name_leaves_no_file(store):
    put(store, A, 1, LARGE)
    put(store, A, 1, b"small")
    assert files(store, A) == [] and outcome_of(store, A) == live(b"small")


def test_an_archive_is_read_once_it_is_committed(store):
    put(store, ARCHIVED, 1, b"archive", fragment=2)
    assert outcome_of(store, ARCHIVED) == ABSENT_OUTCOME
    commit(store, ARCHIVED, 1)
    assert outcome_of(store, ARCHIVED) == live(b"archive")


def test_a_large_archive_is_named_durable_by_its_commit(store):
    put(store, ARCHIVED, 1, LARGE, fragment=2)
    commit(store, ARCHIVED, 1)
    commit(store, ARCHIVED, 1)
    assert files(store, ARCHIVED) == [f"{at(1).internal}#2#d.data"] == names(store, ARCHIVED)


def test_a_commit_of_what_is_not_there_is_refused(store):
    with pytest.raises(FileNotFoundError):
        commit(store, ARCHIVED, 1)


def test_a_commit_of_what_was_superseded_is_not(store):
    put(store, ARCHIVED, 2, b"archive", fragment=2)
    commit(store, ARCHIVED, 2)
    commit(store, ARCHIVED, 1)
    assert outcome_of(store, ARCHIVED) == live(b"archive")


def test_an_abort_removes_only_what_is_not_durable(store):
    put(store, ARCHIVED, 1, b"archive", fragment=2)
    commit(store, ARCHIVED, 1)
    put(store, ARCHIVED, 2, b"other", fragment=2)
    abort(store, ARCHIVED, 1)
    abort(store, ARCHIVED, 2)
    assert names(store, ARCHIVED) == [f"{at(1).internal}#2#d.data"]


@pytest.mark.parametrize("fragment", [None, -1, 6])
def test_an_archive_without_a_right_index_is_refused(store, fragment):
    with pytest.raises(BadFragmentIndex):
        put(store, ARCHIVED, 1, b"archive", fragment=fragment)
    assert names(store, ARCHIVED) == []


@pytest.mark.parametrize("body", [b"small", LARGE])
def test_a_change_during_an_increase_is_in_both_partitions(store, body):
    partition = str(int(A.hash[:8], 16) >> 20)
    moved = A._replace(partition=partition)
    put(store, A, 1, body, next_part_power=12)
    assert outcome_of(store, moved) == outcome_of(store, A) == live(body)
    delete(store, A, 2, next_part_power=12)
    assert outcome_of(store, moved) == outcome_of(store, A) == ("deleted",)


def test_an_object_is_locked_while_it_is_edited_and_free_after_an_error(store):
    place = place_of(store, A)
    with pytest.raises(ZeroDivisionError), store.edit(A, view_of(A), create=True):
        assert place.lock in place.device.locks._held
        raise ZeroDivisionError
    assert not place.device.locks._held


def test_an_object_is_free_after_a_look_that_failed(store):
    put(store, A, 1, b"one")
    store.process.fault = lambda name: OSError(5, "no") if name == "pread" else None
    with pytest.raises(OSError, match="no"), store.edit(A, VIEW, create=True):
        pass
    store.process.fault = lambda _name: None
    assert not place_of(store, A).device.locks._held


class Vanishing(Disk):
    """The first time that a hash directory is locked it has just been removed, as one that is empty."""

    has_vanished = False

    def open(self, path, flags, *args, **options):
        is_lock = flags & os.O_DIRECTORY and flags & os.O_TMPFILE != os.O_TMPFILE
        if is_lock and not self.has_vanished and len(str(path).rpartition("/")[2]) == 32:
            self.has_vanished = True
            os.rmdir(path)
        return super().open(path, flags, *args, **options)


def test_a_large_body_is_stored_though_its_empty_directory_goes_away_meanwhile(tmp_path):
    """As orphans are removed, or the last object of a suffix."""
    bench = contract.PackedBench(tmp_path)
    disk = bench.store.core.disk = Vanishing()
    bench.store.devices.rules = PackedRules(object_bytes_max=1000)
    key, body = contract.key_of("large"), b"x" * 3000
    try:
        contract.put(bench.store, key, contract.ts(contract.NOW_S), body)
        assert disk.has_vanished
        assert contract.read(bench.store, key) == body
    finally:
        bench.store.close()
