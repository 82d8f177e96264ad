"""The engine without files: what only it does; all that engines promise is in the contract suite."""

from __future__ import annotations

import threading

import pytest

from swift.base.clock import ManualClock
from swift.base.errors import DeviceUnavailable, NoSpace
from swift.store.api import ABSENT, DELETED, LIVE, Location
from swift.store.calls import Effort
from test.contract.test_store import GOLD, HASHER, NOW, NOW_S, key_of, put, read, ts
from test.support.memoryengine import BLOCK_BYTES, MemoryStore


@pytest.fixture
def make():
    return lambda **more: MemoryStore(["sda", "sdb"], hasher=HASHER, clock=ManualClock(NOW_S), **more)


@pytest.fixture
def store(make):
    return make()


def find(store):
    return store.maintenance.find(Location("sda", key_of().partition, GOLD, key_of().hash), NOW)


def test_every_store_has_its_own_and_nothing_outlives_it(make):
    put(make(), key_of(), ts(10), b"body")
    assert make().stat(key_of(), NOW).kind == ABSENT


def test_calls_of_any_length_run_where_they_are_made(store):
    for effort in Effort:
        assert store.run("sda", effort)(threading.get_ident) == threading.get_ident()
    assert not (store.capabilities.rsyncable or store.capabilities.sendfile)


def test_a_device_that_is_taken_away_is_away_and_comes_back_with_all_it_had(store):
    put(store, key_of(), ts(10), b"body")
    store.available.discard("sda")
    for ask in (
        lambda: store.stat(key_of(), NOW),
        lambda: store.run("sda", Effort.SHORT),
        lambda: store.partitions("sda", GOLD),
        lambda: store.draft(key_of(), 1),
        lambda: store.maintenance.change_token("sda", "7", GOLD),
    ):
        with pytest.raises(DeviceUnavailable):
            ask()
    assert store.partitions("sdb", GOLD) == []
    store.available.add("sda")
    assert read(store, key_of()) == b"body"


def test_each_device_has_a_capacity_of_its_own_to_the_last_byte(make):
    store = make(capacity_bytes=10)
    put(store, key_of(), ts(10), b"123456")
    with pytest.raises(NoSpace):
        store.draft(key_of("p"), 5)
    draft = store.draft(key_of("p"), None)
    draft.write(b"1234")
    with pytest.raises(NoSpace, match="4 bytes free"):
        draft.write(b"5")
    put(store, key_of("p")._replace(device="sdb"), ts(10), b"1234567890")


def test_large_bodies_come_in_blocks(store):
    body = bytes(2 * BLOCK_BYTES + 5)
    put(store, key_of(), ts(10), body)
    opened = store.open(key_of(), NOW)
    assert [len(block) for block in opened.blocks(0, len(body))] == [BLOCK_BYTES, BLOCK_BYTES, 5]
    assert [len(block) for block in opened.blocks(1, 3)] == [2]
    assert opened.read_cached(len(body) - 1) is None


@pytest.mark.parametrize("name", ["", "o", "/AUTH_a/c", "AUTH_a/c/o", "x/AUTH_a/c/o", "/AUTH_a/c/other"])
def test_an_object_whose_name_is_not_that_of_its_place_is_taken_out_of_sight(store, name):
    put(store, key_of(), ts(10), b"body")
    (file,) = store.files(key_of()).values()
    file.metadata["name"] = name
    found = find(store)
    assert (found.key, found.state.kind) == (None, ABSENT)
    ((where, reason),) = store.quarantined
    assert where[-1] == key_of().hash and repr(name) in reason


def test_an_object_is_found_by_its_hash(store):
    put(store, key_of(), ts(10), b"body")
    found = find(store)
    assert (found.key, found.state.kind) == (key_of(), LIVE)


def test_an_edit_keeps_others_from_the_store_until_it_ends_also_by_an_error(store):
    with pytest.raises(ZeroDivisionError), store.edit(key_of(), NOW, create=True):
        1 // 0  # noqa: B018
    begun, order = threading.Event(), []

    def stat():
        begun.set()
        order.append(store.stat(key_of(), NOW).kind)

    other = threading.Thread(target=stat)
    with store.edit(key_of(), NOW, create=True) as edit:
        other.start()
        begun.wait(5)
        edit.delete(ts(NOW_S))
        order.append("changed")
    other.join(5)
    assert order == ["changed", DELETED]


def test_while_partitions_are_split_an_object_is_written_in_both_places(store):
    power = 20
    with store.edit(key_of(), NOW, create=True, next_part_power=power) as edit:
        draft = edit.draft(4)
        draft.write(b"body")
        edit.put(draft, ts(10), {"Content-Type": "t/p", "ETag": draft.etag, "name": "/a/c/o"})
    target = str(int(key_of().hash[:8], 16) >> (32 - power))
    assert set(store.partitions("sda", GOLD)) == {key_of().partition, target}
    assert store.maintenance.remove_partition("sda", "999", GOLD)
    assert not store.maintenance.remove_partition("sda", target, GOLD)


def test_looks_cost_nothing_so_nobody_is_to_remember_them(store):
    put(store, key_of(), ts(10), b"body")
    assert store.maintenance.change_token("sda", key_of().partition, GOLD) == ""
    assert store.maintenance.idle_s("sda", key_of().partition, GOLD) == float("inf")
