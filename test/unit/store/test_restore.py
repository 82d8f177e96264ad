"""Bringing objects back from the quarantine."""

import os

import pytest

from swift.store.api import ABSENT, LIVE, Location
from swift.store.errors import Damaged
from swift.store.restore import Restorer
from test.contract.test_store import EC, NOW, NOW_S, FileBench, delete, key_of, post, put, ts

KEY = key_of()
AT = Location(KEY.device, KEY.partition, KEY.policy, KEY.hash)


@pytest.fixture
def bench(tmp_path):
    return FileBench(tmp_path)


def away(bench, tmp_path, at=AT):
    """Quarantine what is there; its path."""
    bench.store.maintenance.quarantine(at, "rot")
    found = [str(path) for path in tmp_path.rglob("quarantined/*/*") if path.is_dir()]
    assert len(found) == 1
    return found[0]


def test_files_that_belong_together_come_back_together(bench, tmp_path):
    put(bench.store, KEY, ts(NOW_S - 30))
    post(bench.store, KEY, ts(NOW_S - 20))
    path = away(bench, tmp_path)
    assert bench.store.stat(KEY, NOW).kind == ABSENT
    restorer = Restorer(bench.store.core)
    assert restorer.verify(AT, path).state.kind == LIVE
    restorer.restore(AT, path)
    state = bench.store.stat(KEY, NOW)
    assert (state.kind, state.timestamp) == (LIVE, ts(NOW_S - 20))
    assert not os.path.exists(path)


def test_a_tombstone_is_as_good_as_an_object(bench, tmp_path):
    put(bench.store, KEY, ts(NOW_S - 30))
    delete(bench.store, KEY, ts(NOW_S - 10))
    path = away(bench, tmp_path)
    restorer = Restorer(bench.store.core)
    restorer.verify(AT, path)
    restorer.restore(AT, path)
    assert bench.store.stat(KEY, NOW).timestamp == ts(NOW_S - 10)


def test_a_tombstone_that_is_newer_wins_over_what_comes_back(bench, tmp_path):
    put(bench.store, KEY, ts(NOW_S - 30))
    path = away(bench, tmp_path)
    delete(bench.store, KEY, ts(NOW_S - 10))
    Restorer(bench.store.core).restore(AT, path)
    assert bench.store.stat(KEY, NOW).kind != LIVE


def test_an_archive_whose_fragments_are_damaged_is_refused(bench, tmp_path):
    key = key_of(policy=EC)
    put(bench.store, key, ts(NOW_S - 30), b"no fragments", fragment=1)
    path = away(bench, tmp_path, Location(key.device, key.partition, key.policy, key.hash))
    with pytest.raises(Damaged):
        Restorer(bench.store.core).verify(Location(key.device, key.partition, EC, key.hash), path)
