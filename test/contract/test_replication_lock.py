"""Contract of replication locks and capabilities of object engines."""

from __future__ import annotations

import pytest

from swift.base.errors import DeviceUnavailable, LockTimeout
from swift.http.body import FileBody
from swift.store.calls import Effort
from test.contract.test_store import GOLD, NOW, FileBench, key_of, put, ts


def is_held(store, partition="7"):
    try:
        with store.replication_lock("sda", partition, GOLD, 0.0):
            return False
    except LockTimeout:
        return True


def test_a_partition_is_replicated_into_by_one_at_a_time(store):
    with store.replication_lock("sda", "7", GOLD, 0.0):
        assert is_held(store)
    assert not is_held(store)


def test_the_lock_is_taken_on_entry_by_a_thread(store):
    lock = store.replication_lock("sdz", "7", GOLD, 0.0)
    with pytest.raises(DeviceUnavailable), lock:
        pass


def test_a_device_limits_concurrent_replication(store):
    with store.replication_lock("sda", "7", GOLD, 0.0):
        assert is_held(store, "8")


def test_outgoing_replication_takes_no_slot_of_the_device(store):
    with store.replication_lock("sda", "7", GOLD, 0.0, incoming=False):
        assert is_held(store, "7")
        assert not is_held(store, "8")
    with (
        store.replication_lock("sda", "8", GOLD, 0.0),
        store.replication_lock("sda", "7", GOLD, 0.0, incoming=False),
    ):
        assert is_held(store, "7")
    assert not is_held(store, "7") and not is_held(store, "8")


def test_the_lock_is_released_after_an_error(store):
    with pytest.raises(ValueError, match="broke"), store.replication_lock("sda", "7", GOLD, 0.0):
        raise ValueError("broke")
    assert not is_held(store)


def test_clients_can_change_objects_while_the_lock_is_held(store):
    with store.replication_lock("sda", "7", GOLD, 0.0):
        put(store, key_of(), ts(10))
    assert store.stat(key_of(), NOW).exists


def test_calls_of_every_effort_have_somewhere_to_run(store):
    for effort in Effort:
        assert store.run("sda", effort)(divmod, 7, 2) == (3, 1)


def test_nothing_is_created_for_a_missing_device(store):
    with pytest.raises(DeviceUnavailable):
        store.run("sdz", Effort.SHORT)


def test_only_an_engine_with_the_capability_returns_file_ranges(store):
    body = b"x" * (3 << 20)
    put(store, key_of(), ts(10), body)
    for _ in range(2):
        stored = store.open(key_of(), NOW)
        try:
            pieces = list(stored.pieces(0, len(body)))
        finally:
            stored.close()
    if not store.capabilities.sendfile:
        assert not any(isinstance(piece, FileBody) for piece in pieces)


def test_an_engine_that_rsync_can_copy_stores_files(bench, store):
    put(store, key_of(), ts(10))
    if store.capabilities.rsyncable:
        assert list(bench.root.glob(f"sda/objects/7/*/{key_of().hash}/*.data"))


def test_an_engine_decides_where_its_calls_run(tmp_path):
    requests = []

    class Pools:
        def run(self, device):
            requests.append((device, "run"))
            return lambda function, *args: function(*args)

        def threads(self, device, purpose=""):
            requests.append((device, purpose))
            return lambda function, *args: function(*args)

    bench = FileBench(tmp_path)
    bench.store.core.pools = Pools()
    for effort in (Effort.SHORT, Effort.LONG, Effort.HASHES, Effort.LONG):
        bench.store.run("sda", effort)
    assert requests == [("sda", "run"), ("sda", "run"), ("sda", ""), ("sda", "run"), ("sda", "hashes")]
