"""swift/store/packed/partitions.py: partitions come from the index."""

from __future__ import annotations

import pytest

from test.sim.packedworld import World, delete, key_of, outcome_of, place_of, post, put
from test.sim.powercut import SimulatedDisk
from test.sim.test_powercut import GOLD, TOP, live, put_small, store_on

PARTITION = "8"
KEYS = [key_of(f"o{number}")._replace(partition=PARTITION) for number in range(40)]
A = key_of("a")
MOVED = A._replace(partition="2099")
LARGE = bytes(range(256)) * 5


@pytest.fixture
def store():
    return World(1, 0, volume_bytes=1 << 16).stores[0]


def test_a_partition_is_there_from_its_first_object_until_it_is_removed(store):
    assert store.partitions("sda", GOLD) == []
    put(store, A, 1, b"a")
    assert store.partitions("sda", GOLD) == [A.partition]
    assert not store.maintenance.remove_partition("sda", A.partition, GOLD)
    assert outcome_of(store, A) == live(b"a")
    assert store.partitions("sda", GOLD) == [A.partition]


def test_a_partition_that_is_only_looked_for_is_made(store):
    """Replication of a partition that is on its way must be told of it."""
    with store.replication_lock("sda", "5", GOLD, 0.0):
        assert store.partitions("sda", GOLD) == ["5"]
    assert store.maintenance.remove_partition("sda", "5", GOLD)
    assert store.partitions("sda", GOLD) == []


def test_the_inventory_is_sorted_by_suffix_and_chosen_by_it(store):
    for key in KEYS:
        put(store, key, 1, b"x")
    found = list(store.inventory("sda", PARTITION, GOLD))
    assert found == sorted((key.hash for key in KEYS), key=lambda each: (each[-3:], each))
    suffix = KEYS[3].hash[-3:]
    some = list(store.inventory("sda", PARTITION, GOLD, [suffix, "nonsense"]))
    assert some == [each for each in found if each.endswith(suffix)]
    assert list(store.inventory("sda", "7", GOLD)) == []


def test_hashes_are_those_of_the_file_engine(store):
    files = store_on(SimulatedDisk(TOP), store.core.clock, 10_000_000.0)
    for number, key in enumerate(KEYS):
        for engine, write in ((store, put), (files, put_small)):
            write(engine, key, 1, b"x", "red")
            if number % 3 == 0:
                post(engine, key, 2, "green")
            if number % 5 == 0:
                delete(engine, key, 3)
    listed = files.hashes("sda", PARTITION, GOLD, list_suffixes=True)
    assert store.hashes("sda", PARTITION, GOLD) == listed and len(listed) > 30


def test_hashing_removes_what_is_due(store):
    delete(store, A, 1)
    store.core.clock.advance(20_000_000)
    assert store.hashes("sda", A.partition, GOLD) == {}
    assert place_of(store, A).entries() == []


@pytest.mark.parametrize("body", [b"small", LARGE])
def test_a_linked_object_is_in_both_partitions_and_outlives_the_other(store, body):
    put(store, A, 1, body, "red")
    post(store, A, 2, "green")
    for _ in range(2):
        store.relink(MOVED, A.partition)
    assert outcome_of(store, MOVED) == outcome_of(store, A) == live(body, "green")
    delete(store, A, 3)
    assert outcome_of(store, MOVED) == live(body, "green")


def test_what_is_obsolete_in_the_other_partition_is_not_linked(store):
    put(store, A, 1, b"old")
    put(store, MOVED, 5, b"new")
    store.relink(MOVED, A.partition)
    assert len(place_of(store, MOVED).entries()) == 1
    assert outcome_of(store, MOVED) == live(b"new")


def test_what_becomes_obsolete_by_a_link_goes(store):
    put(store, MOVED, 1, LARGE)
    put(store, A, 5, b"new")
    store.relink(MOVED, A.partition)
    assert outcome_of(store, MOVED) == live(b"new")
    assert len(place_of(store, MOVED).entries()) == 1
