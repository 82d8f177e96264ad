"""swift/store/packed/relink.py: a larger part power on a packed device."""

from __future__ import annotations

import os

import pytest

from swift.store.api import LIVE, Location
from swift.store.packed.relink import PackedSplitter
from swift.store.relink import target_partition
from test.contract.test_store import EC, GOLD, NOW, NOW_S, PackedBench, delete, key_of, post, put, read, ts

POWER = 6


class Bench(PackedBench):
    object_bytes_max = 1000

    def __init__(self, root):
        super().__init__(root)
        self.keys = []
        for number in range(12):
            policy = EC if number % 3 == 2 else GOLD
            key = key_of(f"o{number}", policy)
            key = key._replace(partition=target_partition(key.hash, POWER - 1))
            self.keys.append(key)
            body = b"x" * (3000 if number % 4 == 1 else 100)
            put(self.store, key, ts(NOW_S), body, fragment=3 if policy is EC else None)
            if number % 5 == 0:
                post(self.store, key, ts(NOW_S + 1), **{"X-Object-Meta-A": "b"})
            if number % 6 == 4:
                delete(self.store, key, ts(NOW_S + 2))

    def next_of(self, key):
        return key._replace(partition=target_partition(key.hash, POWER))

    def all(self, act):
        """Do something with every object that is not in its place; yield the counts."""
        splitter = PackedSplitter(self.store.devices, POWER)
        for policy in (GOLD, EC):
            for partition in self.store.partitions("sda", policy):
                for name in self.store.inventory("sda", partition, policy):
                    location = Location("sda", partition, policy, name)
                    if not splitter.is_in_place(location):
                        yield getattr(splitter, act)(location)

    def reopen_without_index(self):
        self.store.close()
        for path in self.root.rglob("*.mdb"):
            path.unlink()
        self.store = self.make()

    def names_in_index(self, key):
        return [entry.name for entry in self.entries(key)]

    def picture(self, keys):
        found = {}
        for key in keys:
            state = self.store.stat(key, NOW)
            body = read(self.store, key) if state.kind == LIVE else None
            found[key.path, key.policy.index] = state, body
        return found


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.store.close()


def test_objects_are_in_both_partitions_and_then_in_the_next_one_alone(bench):
    nexts = [bench.next_of(key) for key in bench.keys]
    moving = [key for key, new in zip(bench.keys, nexts, strict=True) if key != new]
    before = bench.picture(bench.keys)
    counts = list(bench.all("relink"))
    assert len(counts) == len(moving) > 3 and sum(count.linked for count in counts) >= len(moving)
    assert sum(count.linked for count in bench.all("relink")) == 0, "again changes nothing"
    for _ in range(2):
        assert bench.picture(bench.keys) == bench.picture(nexts) == before
        bench.reopen_without_index()
    assert not any(count.errors for count in bench.all("remove_old"))
    for _ in range(2):
        assert bench.picture(nexts) == before
        assert not any(bench.names_in_index(key) for key in moving)
        bench.reopen_without_index()
    for path in bench.root.rglob("*.data"):
        assert path.parts[-4] == target_partition(path.parts[-2], POWER)


def test_cleanup_alone_links_first(bench):
    before = bench.picture(bench.keys)
    assert list(bench.all("remove_old"))
    assert bench.picture([bench.next_of(key) for key in bench.keys]) == before


def test_what_came_to_the_next_partition_meanwhile_stays(bench):
    key = next(key for key in bench.keys if bench.next_of(key) != key and key.policy is GOLD)
    put(bench.store, bench.next_of(key), ts(NOW_S + 9), b"newer")
    list(bench.all("relink"))
    list(bench.all("remove_old"))
    assert read(bench.store, bench.next_of(key)) == b"newer"
    assert bench.names_in_index(key) == []


def test_a_file_that_no_record_names_does_not_stand_in_for_one_of_the_same_name(bench):
    def is_file(key):
        return bench.store.stat(key, NOW).kind == LIVE and len(read(bench.store, key)) == 3000

    key = next(key for key in bench.keys if bench.next_of(key) != key and is_file(key))
    target = bench.store.devices.place(bench.next_of(key)).path(int(bench.next_of(key).partition))
    os.makedirs(target.directory)
    for entry in bench.entries(key):
        with open(f"{target.directory}/{entry.name}", "wb") as file:
            file.write(b"other")
    list(bench.all("relink"))
    assert read(bench.store, bench.next_of(key)) == read(bench.store, key) == b"x" * 3000
