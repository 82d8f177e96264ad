"""swift/store/packed/engine.py: one store for each process of a node."""

from __future__ import annotations

import pytest

from swift.base.errors import DeviceUnavailable, LockTimeout
from swift.store.api import LIVE
from swift.store.calls import Effort
from test.sim.packedworld import VIEW, World, delete, device_of, key_of, outcome_of, put
from test.sim.test_powercut import ABSENT_OUTCOME, GOLD, TOP, live

A = key_of("a")
LARGE = bytes(range(256)) * 5


@pytest.fixture
def world():
    return World(1, 0)


def test_processes_see_what_others_acknowledged(world):
    one, other = world.stores
    assert outcome_of(other, A) == ABSENT_OUTCOME
    for second, body in enumerate((b"one", LARGE, b"three"), 1):
        put(one, A, second, body)
        assert outcome_of(other, A) == live(body)
    delete(other, A, 9)
    assert outcome_of(one, A) == ("deleted",)


def test_a_partition_is_replicated_by_one_process_at_a_time(world):
    one, other = world.stores
    with one.replication_lock("sda", "7", GOLD, 0.0):
        with pytest.raises(LockTimeout), other.replication_lock("sda", "7", GOLD, 0.0):
            pass
        with other.replication_lock("sda", "8", GOLD, 0.0, incoming=False):
            pass


def test_a_device_that_was_wiped_is_opened_anew(world):
    store = world.stores[0]
    put(store, A, 1, b"one")
    world.machine.disk.rename(f"{TOP}/packed", f"{TOP}/wiped")
    device_of(store).look()
    assert outcome_of(store, A) == ABSENT_OUTCOME
    put(store, A, 2, b"two")
    assert outcome_of(store, A) == live(b"two")


def test_a_device_that_is_gone_is_told(world):
    store = world.stores[0]
    put(store, A, 1, b"one")

    class Gone:
        def path(self, device):
            raise DeviceUnavailable(device)

    store.core.devices = Gone()
    with pytest.raises(DeviceUnavailable):
        store.stat(A, VIEW)


def test_a_closed_store_opens_its_devices_again(world):
    store = world.stores[0]
    put(store, A, 1, b"one")
    store.close()
    assert store.stat(A, VIEW).kind == LIVE


def test_changes_run_where_they_are_called(world):
    """They wait for a commit; a thread of the pool would only wait along."""
    assert world.stores[0].run("sda", Effort.CHANGE)(lambda: "here") == "here"


def test_what_it_can_do(world):
    capabilities = world.stores[0].capabilities
    assert (capabilities.rsyncable, capabilities.sendfile) == (False, True)
