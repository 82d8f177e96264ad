"""swift/store/packed/place.py: an object's entries, of the index and of files that it does not have yet."""

from __future__ import annotations

import os

import pytest

from swift.store.packed.place import NOWHERE, external_entry
from swift.store.packed.record import Kind
from test.contract.test_store import EC, GOLD, NOW_S, FileBench, PackedBench, delete, key_of, post, put, ts

KEY, ARCHIVE = key_of(), key_of(policy=EC)


@pytest.fixture
def bench(tmp_path):
    """A packed node on a device that the file engine wrote."""
    made = PackedBench(tmp_path)
    made.files = FileBench.make(made)
    yield made
    made.store.close()


def place(bench, key=KEY):
    return bench.store.devices.place(key)


@pytest.mark.parametrize(
    ("name", "kind", "fragment", "durable"),
    [
        ("1700000000.00000.data", Kind.DATA, None, False),
        ("1700000000.00000.meta", Kind.META, None, False),
        ("1700000000.00000.ts", Kind.TOMBSTONE, None, False),
        ("1700000000.00000#3.data", Kind.DATA, 3, False),
        ("1700000000.00000#3#d.data", Kind.DATA, 3, True),
    ],
)
def test_a_file_has_an_entry_of_the_same_name(name, kind, fragment, durable):
    entry = external_entry(name, GOLD if fragment is None else EC)
    assert (entry.kind, entry.fragment, entry.durable, entry.external) == (kind, fragment, durable, True)
    assert entry.name == name and entry.position == NOWHERE


@pytest.mark.parametrize("name", ["hashes.pkl", "1700000000.00000.durable", "x.data", "1.part", "984.ts"])
def test_other_files_have_none(name):
    assert external_entry(name, EC) is None


def test_files_count_until_the_index_has_them(bench):
    put(bench.files, KEY, ts(NOW_S), b"of the file engine")
    (entry,) = place(bench).entries()
    assert (entry.external, entry.position) == (True, NOWHERE)
    post(bench.store, KEY, ts(NOW_S + 1))
    entries = place(bench).entries()
    assert [each.kind for each in entries] == [Kind.DATA, Kind.META]
    assert NOWHERE not in {each.position for each in entries}, "a change makes records of the files"


def test_a_record_of_a_file_that_the_file_engine_removed_does_not_count(bench):
    put(bench.files, KEY, ts(NOW_S), b"of the file engine")
    post(bench.store, KEY, ts(NOW_S + 1))
    (path,) = bench.root.rglob("*.data")
    path.unlink()
    assert [entry.kind for entry in place(bench).entries()] == [Kind.META]
    assert [entry.kind for entry in place(bench).missing()] == [Kind.DATA]


def test_an_archive_with_a_file_that_says_it_is_durable_gets_the_name_that_says_so(bench):
    """Releases before 2.16 wrote it."""
    put(bench.files, ARCHIVE, ts(NOW_S), b"archive", fragment=3, commit=False)
    (path,) = bench.root.rglob("*.data")
    path.with_name(f"{ts(NOW_S).internal}.durable").touch()
    (entry,) = place(bench, ARCHIVE).entries()
    assert entry.durable and entry.fragment == 3
    assert os.listdir(path.parent) == [f"{ts(NOW_S).internal}#3#d.data"]


def test_a_file_that_became_durable_before_the_index_knows_is_one_entry(bench):
    put(bench.files, ARCHIVE, ts(NOW_S), b"archive", fragment=3, commit=False)
    post(bench.store, ARCHIVE, ts(NOW_S + 1))
    (path,) = bench.root.rglob("*#3.data")
    path.rename(path.with_name(f"{ts(NOW_S).internal}#3#d.data"))
    (entry,) = [each for each in place(bench, ARCHIVE).entries() if each.kind is Kind.DATA]
    assert entry.durable and entry.position != NOWHERE


def test_what_a_newer_record_supersedes_is_obsolete(bench):
    put(bench.store, KEY, ts(NOW_S))
    at = place(bench)
    reader = bench.store.edit(KEY, None, create=True)._reader
    assert at.obsolete(at.entries(), reader) == []
    put(bench.files, KEY, ts(NOW_S - 1), b"older")
    mark = f"{at.path(at.partition).directory}"
    assert os.path.isdir(mark)
    (old,) = [entry for entry in (external_entry(name, GOLD) for name in os.listdir(mark)) if entry]
    assert at.obsolete([*at.entries(), old], reader) == [old]


def test_a_tombstone_is_obsolete_after_its_time(bench):
    delete(bench.store, KEY, ts(NOW_S))
    at = place(bench)
    reader = bench.store.edit(KEY, None, create=True)._reader
    assert at.obsolete(at.entries(), reader) == []
    bench.clock.now_s += 30 * 86400
    assert [entry.kind for entry in at.obsolete(at.entries(), reader)] == [Kind.TOMBSTONE]


def test_a_header_says_what_the_entry_does(bench):
    put(bench.store, ARCHIVE, ts(NOW_S), fragment=3)
    at = place(bench, ARCHIVE)
    (entry,) = at.entries()
    header = at.header_of(entry)
    assert (header.kind, header.timestamp, header.fragment, header.durable) == (Kind.DATA, ts(NOW_S), 3, True)
    assert (header.hash.hex(), header.partition, header.policy) == (ARCHIVE.hash, 7, EC.index)
