"""A handle makes each call of an engine where the effort of its method says."""

from __future__ import annotations

import os

import pytest

from swift.base.errors import LockTimeout
from swift.store.api import Maintenance, ObjectState, ObjectStore, PendingUpdates
from swift.store.calls import Effort
from swift.store.handle import MaintenanceHandle, OpenDraft, OpenObject, StoreHandle, UpdatesHandle
from swift.store.layered import ForwardingStore
from test.contract.test_store import GOLD, NOW, FileBench, PackedBench, key_of, put, ts


class Watched(ForwardingStore):
    """An engine that notes for which efforts its calls run."""

    def __init__(self, inner):
        super().__init__(inner)
        self.ran = []

    def run(self, device, effort):
        def run(function, *args):
            self.ran.append(effort)
            return function(*args)

        return run


@pytest.fixture
def engine(tmp_path):
    return Watched(FileBench(tmp_path).store)


@pytest.fixture
def handle(engine):
    return StoreHandle(engine, "sda")


@pytest.mark.parametrize(
    ("call", "effort"),
    [
        (lambda handle: handle.stat(key_of(), NOW), Effort.LOOK),
        (lambda handle: handle.open(key_of(), NOW).close(), Effort.LOOK),
        (lambda handle: handle.draft(key_of(), 1).discard(), Effort.LOOK),
        (lambda handle: handle.hashes("sda", "7", GOLD, list_suffixes=True), Effort.HASHES),
        (lambda handle: handle.partitions("sda", GOLD), Effort.HASHES),
        (lambda handle: list(handle.inventory("7", GOLD)), Effort.SSYNC),
        (lambda handle: handle.maintenance.change_token("sda", "7", GOLD), Effort.HASHES),
        (lambda handle: handle.updates.groups("sda", GOLD), Effort.SHORT),
        (lambda handle: handle.call(Effort.LONG, lambda engine: engine.stat(key_of(), NOW)), Effort.LONG),
    ],
)
def test_a_call_runs_where_its_effort_says_and_a_daemons_where_its_purpose_says(engine, handle, call, effort):
    call(handle)
    assert set(engine.ran) == {effort}
    engine.ran.clear()
    call(handle.for_purpose(Effort.AUDIT))
    assert set(engine.ran) == {Effort.AUDIT}


def test_a_method_is_bound_once(handle):
    assert handle.hashes is handle.hashes
    assert handle.for_purpose(Effort.SSYNC) is handle.for_purpose(Effort.SSYNC)


@pytest.fixture
def packed(tmp_path):
    (tmp_path / "packed").mkdir()
    store = PackedBench(tmp_path / "packed").store
    # Not every filesystem tells what is in memory.
    store.core.disk.read_cached = lambda fd, size, at: os.pread(fd, size, at)
    put(store, key_of(), ts(10), b"body")
    store.stat(key_of(), NOW)
    return store


def test_memory_is_asked_first_but_not_by_daemons(packed):
    engine = Watched(packed)
    handle = StoreHandle(engine, "sda")
    assert (handle.stat(key_of(), NOW).size, handle.open(key_of(), NOW).read_small(9)) == (4, b"body")
    handle.draft(key_of(), 4).discard()
    handle.change(key_of(), NOW, lambda edit: edit.delete(ts(11)), create=True)
    assert engine.ran == []
    assert not handle.for_purpose(Effort.AUDIT).stat(key_of(), NOW).exists
    assert engine.ran == [Effort.AUDIT]


def test_what_memory_does_not_answer_is_one_call(engine, handle):
    handle.change(key_of(), NOW, lambda edit: edit.delete(ts(10)), create=True)
    assert engine.ran == [Effort.CHANGE]


def test_memory_does_not_pass_a_wrapper_by(packed):
    class Counting(ForwardingStore):
        def stat(self, key, options):
            return super().stat(key, options)

    assert ForwardingStore(packed).try_stat(key_of(), NOW).size == 4
    assert Counting(packed).try_stat(key_of(), NOW) is None


@pytest.mark.parametrize(
    ("interface", "handle", "elsewhere"),
    [
        # These are for functions that run as one call, for the handle itself, or of a process.
        (
            ObjectStore,
            StoreHandle,
            {"attempt", "close", "edit", "reserve", "run", "try_draft", "try_edit", "try_open", "try_stat"},
        ),
        # The device's handle has it, list by list.
        (Maintenance, MaintenanceHandle, {"locations_in"}),
        (PendingUpdates, UpdatesHandle, set()),
    ],
)
def test_a_handle_has_all_that_its_interface_has(interface, handle, elsewhere):
    names = {name for name in vars(interface) if not name.startswith("_")}
    assert names - elsewhere <= {name for name in dir(handle) if not name.startswith("_")}


def test_a_body_is_read_block_by_block_where_long_calls_run(engine, handle):
    put(engine, key_of(), ts(10), b"x" * 300_000)
    opened = handle.open(key_of(), NOW)
    engine.ran.clear()
    assert isinstance(opened, OpenObject)
    assert b"".join(opened.blocks(0, 300_000)) == b"x" * 300_000
    opened.close()
    assert set(engine.ran) == {Effort.LONG}


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_small_body_is_read_at_once_if_it_is_in_memory_and_the_object_closed(in_memory):
    class Stored:
        state = ObjectState(size=4)
        is_closed = False

        def read_cached(self, _size_max):
            return b"body" if in_memory else None

        def blocks(self, start, stop):
            yield b"body"[start:stop]

        def close(self):
            self.is_closed = True

    stored, ran = Stored(), []

    def run(function, *args):
        ran.append(function)
        return function(*args)

    assert OpenObject(stored, run).read_small(65536) == b"body"
    assert stored.is_closed
    assert len(ran) == (0 if in_memory else 1)


def test_a_draft_is_written_where_long_calls_run(engine, handle):
    draft = handle.draft(key_of(), 4)
    engine.ran.clear()
    assert isinstance(draft, OpenDraft)
    draft.write(b"body")
    assert engine.ran == [Effort.LONG]
    assert draft.etag == "841a2d689ad86bd1611447453c22c6fc"
    draft.discard()


def test_a_partition_is_held_for_the_time_of_a_block(handle):
    with handle.replication_lock("7", GOLD, 0.0), pytest.raises(LockTimeout):
        handle.replication_lock("7", GOLD, 0.0).__enter__()
    with handle.replication_lock("7", GOLD, 0.0):
        pass
