"""Contract of object engines (swift/store/api.py); each test runs on all of them."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swift.base.checksum import ChunkSums, chunk_size_for
from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.errors import DeviceUnavailable, NoSpace
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.http.body import iter_body_bytes
from swift.platform.devices import Devices, SpaceGuard
from swift.platform.disk import Disk
from swift.platform.nativedisk import machine_disk
from swift.policy.policy import ErasureCode, Policy
from swift.store.api import (
    ABSENT,
    DELETED,
    EXPIRED,
    LIVE,
    AsyncUpdate,
    FragmentPreference,
    ObjectKey,
    ReadOptions,
)
from swift.store.asyncpending import decode_update
from swift.store.core import EngineCore
from swift.store.engine import FileStore
from swift.store.errors import BadFragmentIndex, CorruptBody, HashCollision
from swift.store.layered import ForwardingEdit, ForwardingMaintenance, ForwardingObject, ForwardingStore
from swift.store.observed import ObservedStore
from swift.store.packed.engine import PackedStore
from swift.store.packed.opening import IndexOpening
from swift.store.packed.record import ALIGNMENT, Kind
from swift.store.packed.settings import PackedSettings
from swift.store.packed.writer import PackedRules
from swift.store.tier.policy import MODES
from swift.telemetry.metrics import Registry
from test.support.memoryengine import MemoryStore
from test.support.tiers import PerPolicy, make_tier

GOLD = Policy(0, "gold", is_default=True)
EC = Policy(1, "ec", ec=ErasureCode("liberasurecode_rs_vand", 4, 2))
HASHER = PathHasher(b"p", b"s")
NOW_S = 1_700_000_000.0
NOW = ReadOptions(NOW_S)


class _Full:
    """A reserve that leaves no free byte."""

    def bytes_of(self, total_bytes: int) -> int:
        return total_bytes


def core_of(bench, reserve, disk=None):
    disk = disk or Disk()
    return EngineCore(
        disk,
        Devices(str(bench.root), mount_check=False),
        hasher=HASHER,
        clock=bench.clock,
        space=SpaceGuard(disk, reserve),
    )


class FileBench:
    """The filesystem engine, with access to its files."""

    def __init__(self, root):
        (root / "sda").mkdir()
        self.root = root
        self.clock = ManualClock(NOW_S)
        self.store = self.make()

    def make(self, reserve=None):
        return FileStore(core_of(self, reserve))

    def restart(self):
        """Restart the engine after a power cut; all files survive it."""

    def full_store(self):
        return self.make(_Full())

    def damage(self, key):
        (path,) = self.root.rglob(f"{key.hash}/*.data")
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    def names(self, key):
        return sorted(path.name for path in self.root.rglob(f"objects*/*/*/{key.hash}/*"))

    def pendings(self):
        return [decode_update(path.read_bytes())[0] for path in self.root.rglob("async_pending*/*/*")]

    def break_update(self, ref):
        (path,) = self.root.rglob(f"async_pending*/*/{ref.name}")
        path.write_bytes(b"nonsense")


class NativeFileBench(FileBench):
    """The filesystem engine with several steps in one native call, where that was compiled."""

    def make(self, reserve=None):
        return FileStore(core_of(self, reserve, machine_disk()))


class PackedBench:
    """The packed engine, with access to its records; bodies above ``object_bytes_max`` become files."""

    object_bytes_max = 1 << 20

    def __init__(self, root):
        (root / "srv" / "sda").mkdir(parents=True)
        self.root = root / "srv"
        self.clock = ManualClock(NOW_S)
        self._settings = PackedSettings(state_path=str(root / "memory"))
        self.store = self.make()

    def make(self, reserve=None):
        core = core_of(self, reserve)
        return PackedStore(
            core,
            open_index=IndexOpening(self._settings, core.disk),
            rules=PackedRules(self.object_bytes_max, 64 << 20),
        )

    def restart(self):
        """Restart the engine after a power cut, which the index does not survive."""
        self.store.close()
        for path in self.root.rglob("*.mdb"):
            path.unlink()
        self.store = self.make()

    def full_store(self):
        return self.make(_Full())

    def entries(self, key):
        return self.store.devices.place(key).entries()

    def damage(self, key):
        (entry,) = [entry for entry in self.entries(key) if entry.kind is Kind.DATA]
        if entry.external:
            (path,) = self.root.rglob(f"{key.hash}/*.data")
            offset, size = 0, path.stat().st_size
        else:
            device = self.store.devices.device(key.device)
            record = device.read(entry, 0)
            path = Path(device.volumes.path(entry.position.volume))
            offset = entry.position.unit * ALIGNMENT + record.header.prefix_bytes
            size = record.header.body_bytes
        with open(path, "r+b") as file:
            file.seek(offset + size // 2)
            byte = file.read(1)
            file.seek(-1, 1)
            file.write(bytes((byte[0] ^ 1,)))

    def names(self, key):
        return sorted(entry.name for entry in self.entries(key))

    pendings = FileBench.pendings
    break_update = FileBench.break_update


class PackedFilesBench(PackedBench):
    """The packed engine with bodies as files beside the volumes."""

    object_bytes_max = 0


class MemoryBench:
    """The in-memory engine, with access to its content."""

    def __init__(self, _root=None):
        self.clock = ManualClock(NOW_S)
        self.store = self.make()

    def make(self, capacity=None):
        return MemoryStore(["sda"], hasher=HASHER, clock=self.clock, capacity_bytes=capacity)

    restart = FileBench.restart

    def full_store(self):
        return self.make(capacity=1)

    def damage(self, key):
        (name,) = [name for name in self.store.files(key) if name.endswith(".data")]
        file = self.store.files(key)[name]
        body = bytearray(file.body)
        body[len(body) // 2] ^= 1
        file.body = bytes(body)

    def names(self, key):
        return sorted(self.store.files(key))

    def pendings(self):
        return [pending.update for pending in self.store.updates._kept.values()]


class Wrapping(ForwardingStore):
    """A store wrapper that forwards every call unchanged."""

    @property
    def maintenance(self):
        return ForwardingMaintenance(self.inner.maintenance)

    def open(self, key, options):
        return ForwardingObject(self.inner.open(key, options))

    def edit(self, key, options, **how):
        return ForwardingEdit(self.inner.edit(key, options, **how))


class WrappedBench(FileBench):
    """The filesystem engine in a wrapper that forwards every call."""

    def make(self, reserve=None):
        return Wrapping(super().make(reserve))


class ObservedBench(FileBench):
    """The filesystem engine with its calls counted."""

    def make(self, reserve=None):
        return ObservedStore(super().make(reserve), Registry())


class Recalling(ForwardingStore):
    """An engine as handles use it: memory is asked first."""

    def __init__(self, inner):
        super().__init__(inner)
        self.devices = inner.devices

    def stat(self, key, options):
        return self.try_stat(key, options) or super().stat(key, options)

    def try_stat(self, key, options):
        return self.inner.try_stat(key, options)

    def open(self, key, options):
        return self.inner.try_open(key, options) or super().open(key, options)

    def draft(self, key, size, *, etag_follows=False):
        made = self.inner.try_draft(key, size, etag_follows=etag_follows)
        return made or super().draft(key, size, etag_follows=etag_follows)

    def edit(self, key, options, *, create, is_new=False, next_part_power=None):
        edit = self.inner.try_edit(key, options, create=create, next_part_power=next_part_power)
        return edit or super().edit(key, options, create=create, next_part_power=next_part_power)


class RecallingBench(PackedBench):
    """The packed engine, of which memory is asked first."""

    def make(self, reserve=None):
        store = super().make(reserve)
        # Not every filesystem tells what is in memory.
        store.core.disk.read_cached = lambda fd, size, at: os.pread(fd, size, at)
        return Recalling(store)


class TierBench(FileBench):
    """The filesystem engine with the cache tier; every class is on in one mode as far as it may be."""

    mode = "write-through"

    def __init__(self, root):
        self.tier = make_tier(root / "ssd", self.mode)
        (root / "srv").mkdir()
        super().__init__(root / "srv")

    def make(self, reserve=None):
        return PerPolicy(super().make(reserve), self.tier)

    def damage(self, key):
        """Damage the file and drop the intact copy on the SSD."""
        super().damage(key)
        self.tier.entries().flush(key.device)


def tier_bench(mode):
    return type(f"TierBench{mode}", (TierBench,), {"mode": mode})


TIERED = [mode for mode in MODES if mode != "write-back"] + ["write-back"]
BENCHES = [
    FileBench,
    NativeFileBench,
    PackedBench,
    PackedFilesBench,
    RecallingBench,
    MemoryBench,
    WrappedBench,
    ObservedBench,
    *map(tier_bench, TIERED),
]
NAMES = [
    "files",
    "native",
    "packed",
    "packed-files",
    "packed-in-memory",
    "memory",
    "wrapped",
    "observed",
    *(f"tier-{mode}" for mode in TIERED),
]


@contextmanager
def running(kind, root):
    """A bench that ends: the maps of many tiers would fill the address space."""
    made = kind(root)
    yield made
    if isinstance(made, TierBench):
        made.tier.close()
    if isinstance(made, PackedBench):
        made.store.close()


def key_of(name="o", policy=GOLD, device="sda", partition="7"):
    path = EntityPath("AUTH_a", "c", name)
    return ObjectKey(device, partition, policy, path, HASHER.hexdigest(*path))


def ts(seconds, offset=0):
    return Timestamp(seconds, offset)


def put(store, key, at, body=b"body", *, fragment=None, commit=True, next_part_power=None, **headers):
    metadata = {
        "X-Timestamp": at.internal,
        "Content-Type": "text/plain",
        "Content-Length": str(len(body)),
        "ETag": md5(body).hexdigest(),
        **headers,
        "name": str(key.path),
    }
    with store.edit(key, NOW, create=True, next_part_power=next_part_power) as edit:
        draft = edit.draft(len(body))
        draft.write(body)
        assert draft.etag == metadata["ETag"]
        edit.put(draft, at, metadata, fragment=fragment)
        if fragment is not None and commit:
            edit.commit(at, fragment)


def post(store, key, at, ctype_at=None, **headers):
    metadata = {"X-Timestamp": at.internal, **headers, "name": str(key.path)}
    if ctype_at is not None:
        metadata |= {"Content-Type": "new/type", "Content-Type-Timestamp": ctype_at.internal}
    with store.edit(key, NOW, create=False) as edit:
        edit.post(at, ctype_at, metadata)


def delete(store, key, at):
    with store.edit(key, NOW, create=True) as edit:
        edit.delete(at)


def read(store, key, start=0, stop=None, options=NOW):
    stored = store.open(key, options)
    try:
        return b"".join(stored.blocks(start, stored.state.size if stop is None else stop))
    finally:
        stored.close()


def test_an_object_that_was_never_stored_is_missing(store):
    state = store.stat(key_of(), NOW)
    assert (state.kind, bool(state.timestamp), state.etag) == (ABSENT, False, None)
    stored = store.open(key_of(), NOW)
    assert stored.state.kind == ABSENT
    stored.close()


def test_what_was_put_is_read_back(store):
    put(store, key_of(), ts(10), b"hello", **{"X-Object-Meta-Colour": "gr\xc3\xbcn"})
    state = store.stat(key_of(), NOW)
    assert state.kind == LIVE
    assert state.size == 5
    assert state.metadata["X-Object-Meta-Colour"] == "gr\xc3\xbcn"
    assert state.timestamp == state.data_timestamp == state.durable_timestamp == ts(10)
    assert read(store, key_of()) == b"hello"


def test_partition_policy_and_name_identify_an_object(store):
    put(store, key_of(), ts(10))
    for other in (key_of(partition="8"), key_of(policy=Policy(2, "silver")), key_of("p")):
        assert store.stat(other, NOW).kind == ABSENT


@pytest.mark.parametrize("size", [0, 1, 65536, 65537, 1 << 20, (3 << 20) + 5])
def test_every_range_of_every_size_is_read_exactly(store, size):
    body = os.urandom(size)
    put(store, key_of(), ts(10), body)
    spans = {(0, size), (0, size // 2), (size // 2, size), (size // 3, size // 2)}
    if size > 2 << 20:
        spans |= {((1 << 20) - 1, (1 << 20) + 1), (1 << 20, 2 << 20), (size - 1, size)}
    for start, stop in spans:
        assert read(store, key_of(), start, stop) == body[start:stop]


def test_read_cached_returns_a_small_body_or_none(store):
    put(store, key_of(), ts(10), b"small")
    stored = store.open(key_of(), NOW)
    assert stored.read_cached(4) is None
    assert stored.read_cached(5) in (b"small", None)
    stored.close()
    stored.close()


def test_a_newer_put_replaces_an_older_one_and_leaves_one_body(bench, store):
    put(store, key_of(), ts(10), b"old")
    put(store, key_of(), ts(11), b"new")
    assert read(store, key_of()) == b"new"
    assert bench.names(key_of()) == [f"{ts(11).internal}.data"]


def test_a_late_older_put_changes_nothing(bench, store):
    put(store, key_of(), ts(11), b"new")
    put(store, key_of(), ts(10), b"old")
    assert read(store, key_of()) == b"new"
    assert bench.names(key_of()) == [f"{ts(11).internal}.data"]


def test_an_offset_makes_a_put_newer_than_a_tombstone_of_the_same_time(store):
    delete(store, key_of(), ts(NOW_S))
    put(store, key_of(), ts(NOW_S), b"lost")
    assert store.stat(key_of(), NOW).kind == DELETED
    put(store, key_of(), ts(NOW_S, 1), b"moved")
    assert read(store, key_of()) == b"moved"


def test_a_reader_keeps_the_body_it_opened_while_it_is_replaced(store):
    body = os.urandom(200_000)
    put(store, key_of(), ts(10), body)
    stored = store.open(key_of(), NOW)
    put(store, key_of(), ts(11), b"new")
    assert b"".join(stored.blocks(0, len(body))) == body
    stored.close()


def test_a_deleted_object_leaves_a_tombstone_with_its_timestamp(bench, store):
    bench.clock.now_s = 100.0
    put(store, key_of(), ts(10))
    delete(store, key_of(), ts(11))
    state = store.stat(key_of(), NOW)
    assert (state.kind, state.timestamp, state.write_timestamp) == (DELETED, ts(11), ts(11))
    assert bench.names(key_of()) == [f"{ts(11).internal}.ts"]


def test_a_tombstone_older_than_reclaim_age_leaves_nothing(bench, store):
    put(store, key_of(), ts(10))
    delete(store, key_of(), ts(11))
    assert bench.names(key_of()) == []
    assert list(store.inventory("sda", "7", GOLD)) == []


def test_a_post_replaces_user_metadata_but_not_what_belongs_to_the_body(store):
    put(
        store,
        key_of(),
        ts(10),
        **{"X-Object-Meta-A": "1", "X-Object-Sysmeta-S": "s", "X-Delete-At": "9999999999"},
    )
    post(store, key_of(), ts(12), **{"X-Object-Meta-B": "2"})
    state = store.stat(key_of(), NOW)
    assert "X-Object-Meta-A" not in state.metadata
    assert "X-Delete-At" not in state.metadata
    assert state.metadata["X-Object-Meta-B"] == "2"
    assert state.metadata["X-Object-Sysmeta-S"] == "s"
    assert state.metadata["Content-Type"] == "text/plain"
    assert (state.timestamp, state.data_timestamp, state.ctype_timestamp) == (ts(12), ts(10), ts(10))
    assert state.posted is not None


def test_the_newest_content_type_wins_whichever_post_it_came_with(store):
    put(store, key_of(), ts(10))
    post(store, key_of(), ts(12), ctype_at=ts(12))
    post(store, key_of(), ts(13), **{"X-Object-Meta-B": "2"})
    state = store.stat(key_of(), NOW)
    assert (state.metadata["Content-Type"], state.ctype_timestamp) == ("new/type", ts(12))
    assert state.metadata["X-Object-Meta-B"] == "2"
    assert state.data_content_type == "text/plain"


def test_a_put_supersedes_older_posts(bench, store):
    put(store, key_of(), ts(10))
    post(store, key_of(), ts(12), **{"X-Object-Meta-B": "2"})
    put(store, key_of(), ts(13))
    assert "X-Object-Meta-B" not in store.stat(key_of(), NOW).metadata
    assert bench.names(key_of()) == [f"{ts(13).internal}.data"]


def test_an_object_is_missing_after_its_expiry(store):
    put(store, key_of(), ts(10), **{"X-Delete-At": "2000"})
    assert store.stat(key_of(), ReadOptions(1999.9)).kind == LIVE
    state = store.stat(key_of(), ReadOptions(2000.0))
    assert (state.kind, state.timestamp, state.delete_at) == (EXPIRED, ts(10), 2000)
    assert store.stat(key_of(), ReadOptions(2000.0, open_expired=True)).kind == LIVE


def test_an_object_stored_under_the_same_hash_but_another_name_is_not_served(store):
    put(store, key_of(), ts(10))
    stranger = key_of()._replace(path=EntityPath("AUTH_a", "c", "other"))
    with pytest.raises(HashCollision):
        store.stat(stranger, NOW)
    with pytest.raises(HashCollision), store.edit(stranger, NOW, create=True):
        pass
    assert read(store, key_of()) == b"body"


def test_a_discarded_draft_leaves_nothing(bench, store):
    draft = store.draft(key_of(), 4)
    draft.write(b"body")
    draft.discard()
    draft.discard()
    assert bench.names(key_of()) == []
    assert list(store.inventory("sda", "7", GOLD)) == []


def test_a_draft_made_beforehand_can_be_put_later(store):
    draft = store.draft(key_of(), None)
    for piece in (b"a" * 70_000, b"b" * 70_000):
        draft.write(piece)
    metadata = {
        "X-Timestamp": ts(10).internal,
        "Content-Length": str(draft.size),
        "ETag": draft.etag,
        "name": str(key_of().path),
    }
    with store.edit(key_of(), NOW, create=True) as edit:
        edit.put(draft, ts(10), metadata)
    draft.discard()
    assert read(store, key_of()) == b"a" * 70_000 + b"b" * 70_000


@pytest.mark.parametrize("size", [4, 100_000])
def test_a_draft_accepts_a_supplied_md5(store, size):
    body = b"x" * size
    with store.edit(key_of(), NOW, create=True) as edit:
        draft = edit.draft(size, etag=md5(body).hexdigest())
        draft.write(body)
        assert draft.etag == md5(body).hexdigest()
        metadata = {"X-Timestamp": ts(10).internal, "Content-Length": str(size), "ETag": draft.etag}
        edit.put(draft, ts(10), {**metadata, "name": str(key_of().path)})
    assert read(store, key_of()) == body


@pytest.mark.parametrize("before", [False, True])
def test_an_edit_that_wrongly_assumes_a_new_object_is_correct(store, before):
    if before:
        put(store, key_of(), ts(10), b"old")
    with store.edit(key_of(), NOW, create=True, is_new=True) as edit:
        assert edit.state.exists is before
        draft = edit.draft(3)
        draft.write(b"new")
        metadata = {"X-Timestamp": ts(11).internal, "Content-Length": "3", "ETag": draft.etag}
        edit.put(draft, ts(11), {**metadata, "name": str(key_of().path)})
    assert read(store, key_of()) == b"new"


@pytest.mark.parametrize("is_new", [False, True])
def test_an_edit_that_changes_nothing_leaves_nothing(bench, store, is_new):
    with store.edit(key_of(), NOW, create=True, is_new=is_new) as edit:
        assert edit.state.kind == ABSENT
    assert bench.names(key_of()) == []
    assert list(store.inventory("sda", "7", GOLD)) == []


def test_only_one_of_many_creators_finds_no_object(store):
    created, start = [], threading.Barrier(8)

    def create(number):
        start.wait()
        with store.edit(key_of(), NOW, create=True) as edit:
            if edit.state.kind == ABSENT:
                draft = edit.draft(1)
                draft.write(b"%d" % number)
                at = ts(10 + number)
                metadata = {
                    "X-Timestamp": at.internal,
                    "Content-Length": "1",
                    "ETag": draft.etag,
                    "name": str(key_of().path),
                }
                edit.put(draft, at, metadata)
                created.append(b"%d" % number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert created == [read(store, key_of())]


@pytest.mark.parametrize("size", [1000, 3 << 20])
def test_reading_a_damaged_body_fails_and_quarantines_it(bench, store, size):
    body = os.urandom(size)
    put(store, key_of(), ts(10), body)
    bench.damage(key_of())
    stored = store.open(key_of(), NOW)
    got = []
    with pytest.raises(CorruptBody):
        got.extend(stored.blocks(0, size))
    stored.close()
    assert body.startswith(b"".join(got))
    assert store.stat(key_of(), NOW).kind == ABSENT


def test_an_unknown_device_is_unavailable_for_everything(store):
    key = key_of(device="nodisk")
    calls = [
        lambda: store.stat(key, NOW),
        lambda: store.open(key, NOW),
        lambda: store.draft(key, 1),
        lambda: store.edit(key, NOW, create=True).__enter__(),
        lambda: store.hashes("nodisk", "7", GOLD),
        lambda: store.invalidate("nodisk", "7", GOLD, ["abc"]),
        lambda: store.partitions("nodisk", GOLD),
    ]
    for call in calls:
        with pytest.raises(DeviceUnavailable):
            call()


def test_a_full_device_refuses_a_body_but_accepts_a_tombstone(bench):
    store = bench.full_store()
    with pytest.raises(NoSpace):
        store.draft(key_of(), 100)
    with pytest.raises(NoSpace):
        put(store, key_of(), ts(NOW_S), b"x" * 100)
    delete(store, key_of(), ts(NOW_S))
    assert store.stat(key_of(), NOW).kind == DELETED
    assert list(store.inventory("sda", "7", GOLD)) == [key_of().hash]


def test_readers_do_not_see_an_uncommitted_archive(store):
    key = key_of(policy=EC)
    put(store, key, ts(NOW_S), fragment=3, commit=False)
    assert store.stat(key, NOW).kind == ABSENT
    welcome = ReadOptions(NOW_S, preferences=[])
    state = store.stat(key, welcome)
    assert (state.kind, state.durable, state.fragments) == (LIVE, False, [(ts(NOW_S), [3])])
    with store.edit(key, NOW, create=True) as edit:
        edit.commit(ts(NOW_S), 3)
    state = store.stat(key, NOW)
    assert (state.kind, state.durable, state.durable_timestamp) == (LIVE, True, ts(NOW_S))


def test_fragment_preferences_exclude_archives(store):
    key = key_of(policy=EC)
    put(store, key, ts(NOW_S), b"three", fragment=3)
    put(store, key, ts(NOW_S), b"five", fragment=5)
    assert read(store, key) == b"five"
    without_five = ReadOptions(NOW_S, preferences=[FragmentPreference(ts(NOW_S), frozenset([5]))])
    assert read(store, key, options=without_five) == b"three"
    assert read(store, key, options=ReadOptions(NOW_S, fragment=3)) == b"three"


def test_a_superseded_archive_can_be_committed(store):
    key = key_of(policy=EC)
    put(store, key, ts(NOW_S), fragment=3, commit=False)
    delete(store, key, ts(NOW_S + 1))
    with store.edit(key, NOW, create=True) as edit:
        edit.commit(ts(NOW_S), 3)
    with pytest.raises(FileNotFoundError), store.edit(key, NOW, create=True) as edit:
        edit.commit(ts(NOW_S + 2), 3)


def test_an_archive_needs_an_index_of_its_geometry(store):
    key = key_of(policy=EC)
    for fragment in (None, 6, -1):
        with pytest.raises(BadFragmentIndex):
            put(store, key, ts(NOW_S), fragment=fragment, commit=False)
    assert list(store.inventory("sda", "7", EC)) == []


def test_hashes_tell_objects_apart_and_follow_changes(store):
    assert store.hashes("sda", "7", GOLD) == {}
    put(store, key_of(), ts(10))
    suffix = key_of().hash[-3:]
    first = dict(store.hashes("sda", "7", GOLD))
    assert first == {suffix: md5(f"{ts(10).internal}.data".encode()).hexdigest()}
    post(store, key_of(), ts(11))
    second = dict(store.hashes("sda", "7", GOLD))
    assert second.keys() == first.keys()
    assert second != first
    delete(store, key_of(), ts(12))
    assert store.hashes("sda", "7", GOLD) == {}


def test_archives_hash_per_index(store):
    key = key_of(policy=EC)
    put(store, key, ts(NOW_S), fragment=3)
    text = ts(NOW_S).internal
    assert store.hashes("sda", "7", EC) == {
        key.hash[-3:]: {
            None: md5(f"{text}.durable".encode()).hexdigest(),
            3: md5(text.encode()).hexdigest(),
        }
    }


def test_partitions_and_inventory_list_what_is_there(store):
    put(store, key_of("a"), ts(10))
    put(store, key_of("b"), ts(10))
    put(store, key_of("c", partition="9"), ts(10))
    assert sorted(store.partitions("sda", GOLD)) == ["7", "9"]
    assert store.partitions("sda", EC) == []
    assert sorted(store.inventory("sda", "7", GOLD)) == sorted([key_of("a").hash, key_of("b").hash])


def test_an_inventory_can_be_of_some_suffixes_only(store):
    for name in "abcdef":
        put(store, key_of(name), ts(10))
    first, second = key_of("a").hash, key_of("b").hash
    found = list(store.inventory("sda", "7", GOLD, [first[-3:], "000", "nonsense", second[-3:]]))
    assert found == sorted([first, second], key=lambda name: (name[-3:], name))
    assert list(store.inventory("sda", "7", GOLD, [])) == []


def test_a_change_during_a_part_power_increase_is_made_in_both_partitions(store):
    key = key_of()
    future = str(int(key.hash[:8], 16) >> (32 - 9))
    with store.edit(key, NOW, create=True, next_part_power=9) as edit:
        draft = edit.draft(4)
        draft.write(b"body")
        metadata = {
            "X-Timestamp": ts(10).internal,
            "Content-Length": "4",
            "ETag": draft.etag,
            "name": str(key.path),
        }
        edit.put(draft, ts(10), metadata)
    assert read(store, key) == read(store, key._replace(partition=future)) == b"body"


def test_an_archive_is_committed_in_both_partitions_during_a_part_power_increase(store):
    key = key_of(policy=EC)
    future = key._replace(partition=str(int(key.hash[:8], 16) >> (32 - 9)))
    put(store, key, ts(10), b"old", fragment=3, next_part_power=9)
    put(store, key, ts(11), b"new", fragment=3, next_part_power=9)
    for object_path in (key, future):
        state = store.stat(object_path, ReadOptions(NOW_S, preferences=[]))
        assert (state.durable, state.fragments) == (True, [(ts(11), [3])])
        assert read(store, object_path) == b"new"


def test_relink_links_objects_from_the_old_partition(store):
    old, new = key_of(partition="7"), key_of(partition="14")
    store.relink(new, "7")
    assert store.stat(new, NOW).kind == ABSENT
    put(store, old, ts(10), b"old")
    for _ in range(2):
        store.relink(new, "7")
        assert read(store, new) == read(store, old) == b"old"
    post(store, old, ts(11), **{"X-Object-Meta-A": "1"})
    store.relink(new, "7")
    assert store.stat(new, NOW).metadata["X-Object-Meta-A"] == "1"
    put(store, new, ts(12), b"new")
    store.relink(new, "7")
    assert read(store, new) == b"new"
    delete(store, old, ts(NOW_S))
    store.relink(new, "7")
    assert store.stat(new, NOW).kind == DELETED


def test_relink_keeps_the_state_of_archives(store):
    old, new = key_of(policy=EC, partition="7"), key_of(policy=EC, partition="14")
    put(store, old, ts(10), b"body", fragment=3)
    put(store, old, ts(NOW_S), b"more", fragment=3, commit=False)
    store.relink(new, "7")
    assert read(store, new) == b"body"
    state = store.stat(new, ReadOptions(NOW_S, preferences=[]))
    assert state.fragments == [(ts(NOW_S), [3]), (ts(10), [3])]


def test_an_update_is_saved_once_per_object_and_timestamp(bench, store):
    update = AsyncUpdate("PUT", key_of().path, {"X-Timestamp": ts(10).internal}, "unsharded", None)
    store.updates.save("sda", GOLD, update, ts(10))
    store.updates.save("sda", GOLD, update._replace(container_path="a/shard"), ts(10))
    assert bench.pendings() == [update._replace(container_path="a/shard")]


_STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "post", "type", "delete"]), st.integers(1, 9), st.integers(0, 1)),
    max_size=12,
)


@given(steps=_STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_engines_agree_on_every_sequence_of_changes(tmp_path_factory, steps):
    packed = PackedBench(tmp_path_factory.mktemp("packed"))
    benches = [FileBench(tmp_path_factory.mktemp("store")), MemoryBench(), packed]
    pictures = []
    for bench in benches:
        bench.clock.now_s = 100.0
        for verb, second, offset in steps:
            at = ts(second, offset)
            if verb == "put":
                put(bench.store, key_of(), at, str(at).encode())
            elif verb == "delete":
                delete(bench.store, key_of(), at)
            elif bench.store.stat(key_of(), NOW).kind == LIVE:
                ctype_at = ts(second, offset) if verb == "type" else None
                post(bench.store, key_of(), at, ctype_at, **{"X-Object-Meta-At": str(at)})
        state = bench.store.stat(key_of(), NOW)
        pictures.append((state, bench.names(key_of()), dict(bench.store.hashes("sda", "7", GOLD))))
    packed.store.close()
    assert pictures[0] == pictures[1] == pictures[2]


@pytest.mark.parametrize("size", [5, 70_000, None])
def test_a_draft_accepts_the_md5_of_a_sender_with_equal_checksums(store, size):
    body = os.urandom(size or 300_000)
    draft = store.draft(key_of(), size, etag_follows=True)
    draft.write(body[:3])
    draft.write(memoryview(body)[3:])
    sums = ChunkSums(chunk_size_for(size))
    sums.update(body)
    etag = md5(body).hexdigest()
    assert draft.accept_etag(etag, sums.digest())
    assert draft.etag == etag
    metadata = {
        "X-Timestamp": ts(10).internal,
        "Content-Length": str(draft.size),
        "ETag": draft.etag,
        "name": str(key_of().path),
    }
    with store.edit(key_of(), NOW, create=True) as edit:
        edit.put(draft, ts(10), metadata)
    assert read(store, key_of()) == body


def test_a_draft_rejects_an_md5_of_other_bytes(bench, store):
    draft = store.draft(key_of(), 5, etag_follows=True)
    draft.write(b"hallo")
    sums = ChunkSums(chunk_size_for(5))
    sums.update(b"hello")
    assert not draft.accept_etag(md5(b"hello").hexdigest(), sums.digest())
    draft.discard()
    assert bench.names(key_of()) == []


@pytest.mark.parametrize("size", [5, 65537, (3 << 20) + 5])
def test_pieces_and_blocks_return_the_same_bytes_repeatedly(store, size):
    body = os.urandom(size)
    put(store, key_of(), ts(10), body)
    for start, stop in [(0, size), (0, size), (size // 3, size), (0, size // 2)]:
        stored = store.open(key_of(), NOW)
        try:
            assert b"".join(iter_body_bytes(stored.pieces(start, stop))) == body[start:stop]
        finally:
            stored.close()
