"""swift/store/packed/quarantine.py: what can be read of an object becomes files below ``quarantined``."""

from __future__ import annotations

import json

import pytest

from swift.platform.quarantine import NOTE_ATTRIBUTE
from swift.store.metadata import read_metadata
from swift.store.packed.quarantine import quarantine
from test.sim.packedworld import World, key_of, outcome_of, place_of, post, put
from test.sim.test_powercut import ABSENT_OUTCOME, TOP, at, live

A = key_of("a")
LARGE = bytes(range(256)) * 5


class Lenient(World):
    def _notice(self, text):
        self.notices = [*getattr(self, "notices", []), text]


@pytest.fixture
def world():
    return Lenient(1, 0)


def moved(store, reason="because"):
    place = place_of(store, A)
    with place.device.holding(place.lock):
        return quarantine(place, place.entries(), reason)


@pytest.mark.parametrize("body", [b"small", LARGE])
def test_a_quarantined_object_is_files_as_the_file_engine_has_them(world, body):
    store, disk = world.stores[0], world.machine.disk
    put(store, A, 1, body, "red")
    post(store, A, 2, "green")
    target = moved(store)
    assert target == f"{TOP}/quarantined/objects/{A.hash}"
    assert sorted(disk.listdir(target)) == [f"{at(1).internal}.data", f"{at(2).internal}.meta"]
    data = f"{target}/{at(1).internal}.data"
    assert disk.pread(disk.open(data, 0), 10_000, 0) == body
    assert read_metadata(disk, data)["X-Object-Meta-Colour"] == "red"
    assert outcome_of(store, A) == ABSENT_OUTCOME


def test_the_reason_and_the_origin_are_noted(world):
    store = world.stores[0]
    put(store, A, 1, b"body")
    note = json.loads(world.machine.disk.getxattr(moved(store, "r" * 600), NOTE_ATTRIBUTE))
    assert note["reason"] == "r" * 500
    assert note["origin"] == f"objects/{A.partition}/{A.hash[-3:]}/{A.hash}"
    assert any("Quarantined" in notice for notice in world.notices)


def test_a_second_time_has_a_directory_of_its_own(world):
    store = world.stores[0]
    targets = set()
    for second in (1, 2):
        put(store, A, second, b"body")
        targets.add(moved(store))
    assert len(targets) == 2


def test_what_cannot_be_read_is_an_empty_file(world):
    store, disk = world.stores[0], world.machine.disk
    put(store, A, 1, b"body")
    entries = place_of(store, A).entries()
    place = place_of(store, A)
    lost = [entries[0]._replace(position=entries[0].position._replace(unit=50))]
    with place.device.holding(place.lock):
        target = quarantine(place, lost, "lost")
    assert disk.stat(f"{target}/{at(1).internal}.data").st_size == 0


def test_an_object_can_be_stored_again(world):
    store = world.stores[0]
    put(store, A, 1, b"body")
    moved(store)
    put(store, A, 1, b"body")
    assert outcome_of(store, A) == live(b"body")
