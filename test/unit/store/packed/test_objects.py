"""swift/store/packed/objects.py: from entries to states and bodies."""

from __future__ import annotations

import pytest

from swift.store.api import LIVE
from swift.store.errors import CorruptBody, Damaged, FilesChanged
from swift.store.packed.objects import PackedObject
from swift.store.packed.record import ALIGNMENT
from swift.store.packed.volumes import write_at
from test.sim.packedworld import VIEW, World, key_of, outcome_of, place_of, post, put
from test.sim.test_powercut import ABSENT_OUTCOME, live

A, B = key_of("a"), key_of("b")
LARGE = bytes(range(256)) * 5


class Lenient(World):
    """Damage is part of the story."""

    def _notice(self, text):
        self.notices = [*getattr(self, "notices", []), text]


@pytest.fixture
def world():
    return Lenient(1, 0)


@pytest.fixture
def store(world):
    return world.stores[0]


def damage(store, key, offset):
    """Change bytes of a record, or of the file of a body."""
    (entry,) = place_of(store, key).entries()
    device = place_of(store, key).device
    fd = device.volumes.open(entry.position.volume).fd
    write_at(store.process.machine.disk, fd, b"xxxx", entry.position.unit * ALIGNMENT + offset)


def test_a_body_is_read_in_blocks_and_ranges(store):
    body = bytes(range(250))
    put(store, A, 1, body)
    stored = store.open(A, VIEW)
    assert b"".join(stored.blocks(10, 20)) == body[10:20]
    assert list(stored.blocks(5, 5)) == []
    assert stored.read_cached(1000) == body
    assert stored.read_cached(10) is None
    assert len(list(stored.blocks(0, 250))) == 1
    stored.close()


def test_what_was_posted_to_a_large_body_is_merged(store):
    put(store, A, 1, LARGE, "red")
    post(store, A, 2, "green", "image/png")
    assert outcome_of(store, A) == live(LARGE, "green", "image/png")


def test_a_damaged_body_is_told_and_quarantined(world, store):
    put(store, A, 1, b"body" * 20)
    (entry,) = place_of(store, A).entries()
    damage(store, A, place_of(store, A).device.read(entry, 0).header.prefix_bytes)
    stored = store.open(A, VIEW)
    with pytest.raises(CorruptBody):
        list(stored.blocks(0, stored.state.size))
    stored.close()
    assert outcome_of(store, A) == ABSENT_OUTCOME
    assert any("Quarantined" in notice for notice in world.notices)


@pytest.mark.parametrize("offset", [4, 20, 150])
def test_a_damaged_header_or_metadata_is_quarantined_at_once(store, offset):
    put(store, A, 1, b"body" * 20)
    damage(store, A, offset)
    assert store.stat(A, VIEW).kind != LIVE
    assert store.stat(A, VIEW).quarantine_reason == ""


def test_a_record_of_another_object_is_damage(store):
    put(store, A, 1, b"a")
    put(store, B, 1, b"b")
    (entry,) = place_of(store, A).entries()
    with pytest.raises(Damaged, match="another"):
        place_of(store, B).reader().record(entry)


def test_a_record_whose_volume_is_gone_was_moved(store):
    put(store, A, 1, b"a")
    (entry,) = place_of(store, A).entries()
    moved = entry._replace(position=entry.position._replace(volume=99))
    with pytest.raises(FilesChanged):
        place_of(store, A).reader().record(moved)


def test_an_object_without_data_has_no_body(store):
    stored = store.open(A, VIEW)
    assert isinstance(stored, PackedObject)
    assert stored.read_cached(10) is None and list(stored.blocks(0, 0)) == []
    stored.close()
