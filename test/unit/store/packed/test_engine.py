"""swift/store/packed/engine.py: one store for each process of a node."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from swift.base.errors import DeviceUnavailable, LockTimeout
from swift.store.api import LIVE
from swift.store.calls import InlinePools
from swift.store.handle import StoreHandle
from test.sim.packedworld import INDEX, VIEW, World, commit, delete, device_of, key_of, outcome_of, post, put
from test.sim.test_powercut import ABSENT_OUTCOME, EC, GOLD, TOP, live

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


#: Calls of a disk that are served from memory.
MEMORY_CALLS = {"index.get", "index.is_current", "lock_byte", "now_ns", "read_cached", "statvfs", "close"}


@pytest.fixture
def loop():
    """A store as an event loop has it, and the calls that a thread made."""
    # Larger than what is read with the header of its last record.
    store, threaded, asked = World(1, 0, volume_bytes=1 << 20).stores[0], [], []

    class Pools(InlinePools):
        def threads(self, device, purpose=""):
            def run(function, *args):
                threaded.append(function)
                return function(*args)

            return run

        def attempt(self, device):
            def attempt(function, *args):
                asked.append(function)
                try:
                    return function(*args)
                finally:
                    asked.pop()

            return attempt

    def fault(name):
        assert not asked or name in MEMORY_CALLS, name

    store.core.pools = Pools()
    store.process.fault = fault
    yield SimpleNamespace(
        store=store, threaded=threaded, handle=StoreHandle(store, "sda"), process=store.process
    )


def changed(loop, change, key, *args, **options):
    """Make a change as one call; return how often a thread had to."""
    before = len(loop.threaded)
    size = len(args[1]) if change is put else 0

    def work(edit):
        store = SimpleNamespace(edit=lambda *_args, **_options: nullcontext(edit))
        store.draft = lambda _key, size: edit.draft(size)
        return change(store, key, *args, **options)

    loop.handle.change(key, VIEW, work, create=True, size_bytes=size)
    return len(loop.threaded) - before


def test_small_objects_are_changed_and_read_on_the_loop(loop):
    loop.store.stat(A, VIEW)
    assert changed(loop, put, A, 1, b"one") == 0
    # A thread opens the volume for reading, once.
    assert changed(loop, put, A, 2, b"two") == 1
    assert changed(loop, put, A, 3, b"three") == 0
    assert changed(loop, post, A, 4, "red") == 0
    loop.threaded.clear()
    assert (loop.handle.open(A, VIEW).read_small(100), loop.threaded) == (b"three", [])
    assert changed(loop, delete, A, 5) == 0
    assert outcome_of(loop.store, A) == ("deleted",)


def test_fragment_archives_are_committed_on_the_loop(loop):
    key = key_of("coded", EC)
    loop.store.stat(key, VIEW)
    assert changed(loop, put, key, 1, b"archive", fragment=INDEX) == 0
    assert changed(loop, commit, key, 1) == 0
    assert loop.handle.stat(key, VIEW).kind == LIVE


def test_a_thread_opens_a_device(loop):
    assert changed(loop, put, A, 1, b"one") == 1
    assert outcome_of(loop.store, A) == live(b"one")


def test_a_thread_reads_what_is_not_in_memory(loop, monkeypatch):
    put(loop.store, A, 1, b"one")
    monkeypatch.setattr(loop.process.machine.disk, "read_cached", lambda *_args: None)
    assert loop.handle.open(A, VIEW).read_small(100) == b"one"
    assert len(loop.threaded) == 1
    assert changed(loop, delete, A, 2) == 1
    assert outcome_of(loop.store, A) == ("deleted",)


@pytest.mark.parametrize("bodies", [(LARGE, b"small"), (b"small", LARGE), (LARGE, LARGE)])
def test_a_thread_changes_what_is_a_file(loop, bodies):
    """A body that replaces a file, or becomes one, is stored once."""
    loop.store.stat(A, VIEW)
    first, last = bodies
    assert changed(loop, put, A, 1, first) == (first is LARGE)
    assert changed(loop, put, A, 2, last) == 1
    assert outcome_of(loop.store, A) == live(last)
    assert len(loop.store.devices.place(A).entries()) == 1


def test_a_thread_keeps_objects_as_files(loop):
    device_of(loop.store).conversion.keep_as_files(GOLD.index)
    assert changed(loop, put, A, 1, b"one") == 1
    assert changed(loop, delete, A, 2) == 1


def test_what_it_can_do(world):
    capabilities = world.stores[0].capabilities
    assert (capabilities.rsyncable, capabilities.sendfile) == (False, True)
