"""swift/store/tier/store.py on real files and a real LMDB."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from swift import green
from swift.aio.xfs import make_image, mount_image, unmount_image
from swift.base.clock import ManualClock
from swift.platform.devices import Devices, SpaceGuard
from swift.platform.disk import Disk
from swift.platform.sharedstate import StateHeld, TierSession
from swift.store.api import ABSENT, DELETED, LIVE, Location
from swift.store.core import EngineCore
from swift.store.engine import FileStore
from swift.store.errors import HashCollision
from swift.store.lmdbindex import LmdbIndex
from swift.store.relink import Splitter, target_partition
from swift.store.tier.figures import hit_rate
from swift.store.tier.policy import CLASSES, MODES
from swift.store.tier.settings import option_of
from swift.store.tier.store import TierStore
from swift.store.tier.tier import CONTROL_FILE, CacheTier, TierDependencies
from test.contract.test_store import EC, GOLD, HASHER, NOW, NOW_S, delete, key_of, post, put, read, ts
from test.support.tiers import make_tier, tier_settings


class CountingDisk(Disk):
    """Names the looks at the disk that may seek."""

    def __init__(self):
        self.calls = []

    def listdir(self, path):
        self.calls.append(("listdir", path))
        return os.listdir(path)

    def getxattr(self, file, name):
        self.calls.append(("getxattr", file))
        return os.getxattr(file, name)

    def open(self, path, *how):
        self.calls.append(("open", path))
        return os.open(path, *how)

    def open_handle(self, root, handle, flags):
        self.calls.append(("handle", root))
        return super().open_handle(root, handle, flags)

    def stat(self, path, **options):
        self.calls.append(("stat", path))
        return os.stat(path, **options)

    def taken(self):
        found, self.calls = [name for name, _ in self.calls], []
        return found


class Bench:
    """A node whose processes are stores."""

    def __init__(self, root):
        self.root = root
        (root / "srv" / "sda").mkdir(parents=True)
        self.settings = tier_settings(root / "ssd")
        self.tiers = []
        self.notices = []

    def process(self, policy=GOLD, disk=None, **more):
        disk = disk or Disk()
        engine = FileStore(
            EngineCore(
                disk,
                Devices(str(self.root / "srv"), mount_check=False),
                hasher=HASHER,
                clock=ManualClock(NOW_S),
                space=SpaceGuard(disk, None),
            )
        )
        tier = CacheTier(
            replace(self.settings, **more), TierDependencies(disk=disk, notice=self.notices.append)
        )
        self.tiers.append(tier)
        return TierStore(engine, tier, policy)

    def end(self):
        for tier in self.tiers:
            tier.close()
        self.tiers.clear()


@pytest.fixture
def node(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.end()


METADATA_ONLY = {"classes": ("metadata",)}


def test_a_look_at_a_known_object_asks_the_disk_nothing(node):
    disk = CountingDisk()
    store = node.process(disk=disk, **METADATA_ONLY)
    put(store, key_of(), ts(10), b"body")
    disk.taken()
    assert store.stat(key_of(), NOW).metadata["Content-Type"] == "text/plain"
    assert disk.taken() == []


def test_a_known_body_is_opened_by_handle_where_the_kernel_permits_it(node):
    disk = CountingDisk()
    store = node.process(disk=disk, **METADATA_ONLY)
    put(store, key_of(), ts(10), b"body")
    disk.taken()
    store.open(key_of(), NOW).close()
    calls = disk.taken()
    assert calls in (["handle"], ["handle", "open"], ["open"])
    if store.tier.reader._handles.wanted:
        assert calls == ["handle"]


def test_that_there_is_nothing_is_known_as_well(node):
    disk = CountingDisk()
    store = node.process(disk=disk, **METADATA_ONLY)
    assert store.stat(key_of(), NOW).kind == ABSENT
    disk.taken()
    assert store.stat(key_of(), NOW).kind == ABSENT
    assert store.maintenance.find(Location("sda", "7", GOLD, key_of().hash), NOW).state.kind == ABSENT
    assert disk.taken() == []
    put(store, key_of(), ts(10))
    assert store.stat(key_of(), NOW).kind == LIVE


def test_a_small_body_is_read_without_its_disk(node):
    disk = CountingDisk()
    store = node.process(disk=disk)
    put(store, key_of(), ts(10), b"small" * 1000)
    disk.taken()
    assert read(store, key_of()) == b"small" * 1000
    assert disk.taken() == []
    assert hit_rate(store.tier.figures, "small-data") == 1.0


def test_a_small_body_stays_when_metadata_is_posted(node):
    store = node.process()
    put(store, key_of(), ts(10), b"small")
    post(store, key_of(), ts(11), **{"X-Object-Meta-A": "b"})
    assert read(store, key_of()) == b"small"
    assert store.stat(key_of(), NOW).metadata["X-Object-Meta-A"] == "b"
    assert hit_rate(store.tier.figures, "small-data") == 1.0


def test_pieces_of_a_larger_body_come_from_the_ssd_the_second_time(node):
    store = node.process()
    body = os.urandom((3 << 20) + 17)
    put(store, key_of(), ts(10), body)
    assert read(store, key_of()) == body
    assert read(store, key_of()) == body
    assert read(store, key_of(), 5, (1 << 20) + 5) == body[5 : (1 << 20) + 5]
    assert store.tier.figures["data", "sda", "misses"] == 4
    assert store.tier.figures["data", "sda", "hits"] == 6
    put(store, key_of(), ts(11), body[::-1])
    assert read(store, key_of()) == body[::-1]


def test_hashes_and_marks_are_known_until_something_changes(node):
    disk = CountingDisk()
    store = node.process(disk=disk)
    put(store, key_of(), ts(10))
    first = store.hashes("sda", "7", GOLD)
    mark = store.maintenance.change_token("sda", "7", GOLD)
    disk.taken()
    assert store.hashes("sda", "7", GOLD) == first
    assert store.maintenance.change_token("sda", "7", GOLD) == mark
    assert 0 <= store.maintenance.idle_s("sda", "7", GOLD) < 60
    # Removals by hand are noticed by a look at the partition, not at its suffixes.
    assert set(disk.taken()) == {"stat"}
    assert store.hashes("sda", "7", GOLD, list_suffixes=True) == first
    assert store.maintenance.change_token("sda", "7", GOLD) == mark
    put(store, key_of("other"), ts(11))
    assert store.maintenance.change_token("sda", "7", GOLD) != mark
    assert store.hashes("sda", "7", GOLD) != first


@pytest.mark.parametrize("mode", ["write-through", "write-back"])
def test_hashes_are_computed_anew_once_their_cache_on_the_disk_is_removed(node, mode):
    store = node.process(hashes_mode=mode)
    put(store, key_of(), ts(10))
    put(store, key_of("other"), ts(11))
    store.hashes("sda", "7", GOLD)
    first = store.hashes("sda", "7", GOLD)
    partition = node.root / "srv/sda/objects/7"
    next(partition.rglob("*.data")).unlink()
    assert store.hashes("sda", "7", GOLD) == first
    (partition / "hashes.pkl").unlink()
    assert store.maintenance.change_token("sda", "7", GOLD) == ""
    assert store.hashes("sda", "7", GOLD) != first


def test_hashes_in_write_back_stay_dirty_on_the_disk(node):
    store = node.process(hashes_mode="write-back")
    put(store, key_of(), ts(10))
    store.files.hashes("sda", "7", GOLD)
    put(store, key_of("other"), ts(11))
    told = store.hashes("sda", "7", GOLD)
    journal = node.root / "srv/sda/objects/7/hashes.invalid"
    assert journal.read_text().split() == [key_of("other").hash[-3:]]
    assert store.files.hashes("sda", "7", GOLD) == told
    assert journal.read_text() == ""


def test_hashes_of_archives_are_kept_by_index(node):
    store = node.process(EC)
    key = key_of(policy=EC)
    put(store, key, ts(NOW_S), fragment=3)
    assert store.hashes("sda", "7", EC) == store.hashes("sda", "7", EC) == store.files.hashes("sda", "7", EC)


def test_what_one_process_changes_another_one_sees(node):
    one, other = node.process(), node.process()
    for second in range(10, 40, 3):
        put(one, key_of(), ts(second), b"from one %d" % second)
        assert read(other, key_of()) == b"from one %d" % second
        post(other, key_of(), ts(second + 1), **{"X-Object-Meta-Second": str(second)})
        assert one.stat(key_of(), NOW).metadata["X-Object-Meta-Second"] == str(second)
        delete(other, key_of(), ts(second + 2))
        assert one.stat(key_of(), NOW).kind != LIVE


def test_what_rsync_brought_is_seen_once_it_told(node):
    store = node.process()
    source = node.process()
    put(source, key_of(partition="8"), ts(11), b"brought")
    put(store, key_of(), ts(10), b"old")
    assert read(store, key_of()) == b"old"
    below = f"{key_of().hash[-3:]}/{key_of().hash}"
    (name,) = os.listdir(node.root / "srv/sda/objects/8" / below)
    os.link(node.root / "srv/sda/objects/8" / below / name, node.root / "srv/sda/objects/7" / below / name)
    store.invalidate("sda", "7", GOLD, [key_of().hash[-3:]])
    assert read(store, key_of()) == b"brought"


def test_after_all_processes_were_gone_everything_is_compared_with_the_disk(node):
    store = node.process(**METADATA_ONLY)
    put(store, key_of(), ts(10))
    put(store, key_of("b"), ts(10))
    node.end()
    path = node.root / f"srv/sda/objects/7/{key_of().hash[-3:]}/{key_of().hash}"
    (path / f"{ts(10).internal}.data").unlink()
    disk = CountingDisk()
    store = node.process(disk=disk, **METADATA_ONLY)
    assert store.stat(key_of(), NOW).kind == ABSENT
    assert store.stat(key_of("b"), NOW).kind == LIVE
    assert store.tier.figures["metadata", "sda", "unproven"] == 2
    disk.taken()
    assert store.stat(key_of("b"), NOW).kind == LIVE
    assert disk.taken() == []


def test_without_the_last_user_closing_it_the_index_does_not_survive_a_boot(node):
    class Rebooted(Disk):
        def boot(self):
            return super().boot()._replace(id="another")

    store = node.process()
    put(store, key_of(), ts(10))
    state = node.root / "ssd/cache/index.json"
    kept = state.read_bytes()
    node.end()
    state.write_bytes(kept)
    store = node.process(disk=Rebooted())
    assert store.tier.entries().find(b"sda/objects/7") is None
    assert store.tier.entries().totals().metadata == 0
    assert store.stat(key_of(), NOW).kind == LIVE


def test_a_collision_is_told_from_the_tier_as_well(node):
    store = node.process()
    put(store, key_of(), ts(10))
    stranger = key_of()._replace(path=key_of().path._replace(obj="other"))
    for _ in range(2):
        with pytest.raises(HashCollision):
            store.stat(stranger, NOW)


def test_modes_and_classes_change_while_it_runs(node):
    disk = CountingDisk()
    store = node.process(disk=disk, **METADATA_ONLY)
    put(store, key_of(), ts(10))
    control = node.root / "ssd/cache" / CONTROL_FILE
    control.write_text(json.dumps({"metadata_mode": "pass-through"}))
    store.tier._next_tick_s = 0.0
    disk.taken()
    assert store.stat(key_of(), NOW).kind == LIVE
    assert disk.taken() != []
    control.write_text(json.dumps({"metadata_mode": "write-invalidate"}))
    store.tier._next_tick_s = 0.0
    for _ in range(2):
        disk.taken()
        assert store.stat(key_of(), NOW).kind == LIVE
    assert disk.taken() == []
    control.write_text(json.dumps({"metadata_mode": "write-back"}))
    store.tier._next_tick_s = 0.0
    assert store.stat(key_of(), NOW).kind == LIVE
    assert "refused" in node.notices[-1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[1]",
        "7",
        "null",
        '{"size_mb": "x"}',
        '{"size_mb": -5}',
        '{"size_mb": [1, 2]}',
        '{"size_mb": 1e300}',
        '{"size_mb": ' + "9" * 5000 + "}",
        '{"metadata_share": 400}',
        '{"metadata_share": "4x"}',
        '{"classes": 7}',
        '{"classes": "metadata, everything"}',
        '{"classes": {"metadata": 1, "x": 2}}',
        '{"path": "/"}',
        '{"enabled": false}',
        '{"metadata_mode": null}',
        '{"retry_interval": "soon"}',
        "[" * 100_000,
        "\ud800",
    ],
)
def test_what_cannot_be_taken_over_is_told_once_and_changes_nothing(node, text):
    store = node.process()
    put(store, key_of(), ts(10), b"body")
    before = store.tier.settings
    (node.root / "ssd/cache" / CONTROL_FILE).write_text(text, errors="surrogatepass")
    for _ in range(3):
        store.tier._next_tick_s = 0.0
        assert read(store, key_of()) == b"body"
    assert store.tier.settings == before
    assert len(node.notices) == 1
    assert CONTROL_FILE in node.notices[0]


def test_whoever_loses_what_the_processes_share_begins_again(node):
    store = node.process()
    put(store, key_of(), ts(10), b"old")
    shutil.rmtree(node.root / "ssd/state")
    other = node.process()
    put(other, key_of(), ts(11), b"new")
    store.tier._next_tick_s = 0.0
    for process in (store, other, store):
        process.tier._next_tick_s = 0.0
        assert read(process, key_of()) == b"new"
    put(store, key_of(), ts(12), b"newer")
    assert read(other, key_of()) == read(store, key_of()) == b"newer"
    assert store.tier.member().shared_state.index == other.tier.member().shared_state.index
    assert "was removed" in node.notices[0]


@pytest.mark.parametrize("how", ["anybody may write", "a link", "somebody else's", "a file"])
def test_what_the_processes_share_must_be_theirs(node, how):
    state = node.root / "ssd/state"
    state.parent.mkdir()
    if how == "a link":
        (node.root / "elsewhere").mkdir()
        state.symlink_to(node.root / "elsewhere")
    elif how == "a file":
        state.write_text("precious")
    else:
        state.mkdir()
        if how == "anybody may write":
            state.chmod(0o777)
        elif os.geteuid() == 0:
            os.chown(state, 12345, 12345)
        else:
            pytest.skip("needs root, to give it away")
    store = node.process()
    with pytest.raises(OSError, match="must be a directory of this user|File exists"):
        put(store, key_of(), ts(10), b"body")
    # Whoever only reads is not kept from the disk.
    assert store.stat(key_of(), NOW).kind == ABSENT
    assert not list((node.root / "elsewhere").glob("*"))
    assert how != "a file" or state.read_text() == "precious"


def test_a_session_that_a_stopped_process_prevents_is_not_waited_for_by_each_request(tmp_path):
    now_s, attempts = [100.0], []

    def open_session(directory, owner):
        attempts.append(now_s[0])
        if len(attempts) == 1:
            raise StateHeld(directory, 1.0)
        return TierSession(directory, owner)

    tier = make_tier(tmp_path, open_session=open_session, monotonic=lambda: now_s[0])
    for _ in range(3):
        with pytest.raises(OSError, match="another process has held it|another process holds it"):
            tier.entries()
    assert attempts == [100.0]
    now_s[0] += tier.settings.retry_interval
    assert tier.entries() is not None
    tier.close()


@pytest.mark.parametrize("opened", ("session", "index"))
def test_requests_that_come_while_one_opens_the_tier_wait_for_it(tmp_path, opened):
    attempts = []

    def slowly(make, name):
        def open_it(*where):
            attempts.append(name)
            for _ in range(3):
                green.sleep(0)
            return make(*where)

        return open_it

    how = {"session": {"open_session": slowly(TierSession, "session")}, "index": {}}[opened]
    how = how or {"open_index": slowly(LmdbIndex, "index")}
    tier = make_tier(tmp_path, **how)
    first, *others = green.gather([tier.entries] * 3)
    assert first is not None and all(each is first for each in others)
    assert attempts == [opened]
    tier.close()


def test_an_index_that_cannot_be_read_any_more_fails_no_request(node):
    store = node.process(retry_interval=0.0)
    bodies = {key_of(f"o{number}"): b"%d" % number for number in range(200)}
    for second, (key, body) in enumerate(bodies.items()):
        put(store, key, ts(second), body)
    os.truncate(next((node.root / "ssd/cache").glob("*.mdb")), 12288)
    for key, body in bodies.items():
        assert read(store, key) == body
        put(store, key, ts(900), body * 2)
        assert read(store, key) == body * 2
    assert "cannot be read" in node.notices[0]
    assert "works again" in node.notices[-1]


def test_an_index_that_cannot_be_used_is_done_without_and_comes_back(node):
    store = node.process(retry_interval=0.0)
    other = node.process()
    put(store, key_of(), ts(10), b"old")
    assert read(other, key_of()) == b"old"
    working = node.root / "ssd/cache"
    store.tier.failed("the device was pulled")
    store.tier._retry_s = time.monotonic() + 1000
    put(store, key_of(), ts(11), b"new")
    assert read(store, key_of()) == b"new"
    assert read(other, key_of()) == b"new"
    assert working.exists()
    store.tier._retry_s = 0.0
    put(store, key_of(), ts(12), b"newer")
    assert read(store, key_of()) == read(other, key_of()) == b"newer"
    assert "works again" in node.notices[-1]


@pytest.mark.process
def test_an_index_that_was_replaced_is_noticed(node):
    one = node.process()
    put(one, key_of(), ts(10), b"old")
    shutil.rmtree(node.root / "ssd/cache")
    forked = multiprocessing.get_context("fork")
    other = forked.Process(target=_put_once, args=(node.root, 11))
    other.start()
    other.join(60)
    assert other.exitcode == 0
    one.tier._next_tick_s = 0.0
    assert read(one, key_of()) == b"at 11"
    put(one, key_of(), ts(12), b"newer")
    assert read(one, key_of()) == b"newer"
    assert any("replaced" in notice for notice in node.notices)


def _put_once(root, second):
    node = _node_at(root)
    put(node.process(), key_of(), ts(second), b"at %d" % second)
    node.end()


def _node_at(root):
    node = Bench.__new__(Bench)
    node.root, node.tiers, node.notices = root, [], []
    node.settings = tier_settings(root / "ssd")
    return node


def test_the_oldest_go_when_there_is_no_room(node):
    store = node.process(size_mb=16, metadata_share=0, hashes_share=0, **METADATA_ONLY)
    for number in range(5):
        put(store, key_of(f"o{number}"), ts(10))
    totals = store.tier.entries().totals()
    assert totals.metadata == 0
    assert store.stat(key_of("o1"), NOW).kind == LIVE


def test_a_day_has_only_so_many_bytes(node):
    store = node.process(written_per_day_mb=1)
    for number in range(40):
        put(store, key_of(f"o{number}"), ts(10), b"x" * 60000)
    entries = store.tier.entries()
    known = [entries.find(_path(key_of(f"o{number}"))) for number in range(40)]
    assert 0 < sum(each is not None for each in known) < 40
    assert read(store, key_of("o39")) == b"x" * 60000


def _path(key):
    return f"sda/objects/7/{key.hash[-3:]}/{key.hash}".encode()


def test_a_killed_writer_leaves_nothing_that_is_believed(node):
    store, other = node.process(), node.process()
    put(store, key_of(), ts(10), b"old")
    entries = other.tier.entries()
    note = entries.begin(_path(key_of()))
    assert note.is_kept
    assert read(store, key_of()) == b"old"
    assert entries.find(_path(key_of())) is None
    other.tier.close()
    # The first one finds the note of the dead, and only the next one keeps what it read.
    assert read(store, key_of()) == b"old"
    assert store.tier.entries().find(_path(key_of())) is None
    assert read(store, key_of()) == b"old"
    assert store.tier.entries().find(_path(key_of())) is not None


def _writer(root, name, seconds, mistakes):
    node = _node_at(root)
    store = node.process()
    try:
        for second in range(seconds):
            key = key_of(f"{name}-{second % 7}")
            body = f"{name} {second}".encode()
            put(store, key, ts(NOW_S + second), body)
            if read(store, key) != body:
                mistakes.put(f"{key.path} at {second}")
            if second % 5 == 4:
                delete(store, key, ts(NOW_S + second, 1))
                if store.stat(key, NOW).kind not in (DELETED, ABSENT):
                    mistakes.put(f"{key.path} is not deleted at {second}")
            store.hashes("sda", "7", GOLD)
    finally:
        node.end()


def _reader(root, names, finished, mistakes):
    node = _node_at(root)
    store = node.process()
    newest = {}
    try:
        while not finished.is_set():
            for name in names:
                for number in range(7):
                    key = key_of(f"{name}-{number}")
                    stamp = store.stat(key, NOW).timestamp
                    if stamp < newest.get(key, stamp):
                        mistakes.put(f"{key.path} went back to {stamp.internal}")
                    newest[key] = stamp
    finally:
        node.end()


@pytest.mark.long
@pytest.mark.process
def test_several_processes_at_once_never_see_anything_go_back(node):
    """Writers read what they wrote; readers see every object only become newer."""
    spawn = multiprocessing.get_context("fork")
    mistakes, finished = spawn.Queue(), spawn.Event()
    names = ["one", "two", "three"]
    writers = [spawn.Process(target=_writer, args=(node.root, name, 120, mistakes)) for name in names]
    readers = [spawn.Process(target=_reader, args=(node.root, names, finished, mistakes)) for _ in range(2)]
    for process in (*readers, *writers):
        process.start()
    for process in writers:
        process.join(120)
    finished.set()
    for process in readers:
        process.join(60)
    found = [mistakes.get() for _ in range(mistakes.qsize())]
    assert not found
    assert [process.exitcode for process in (*writers, *readers)] == [0] * 5


def test_every_mode_is_taken_under_load_without_a_failed_request(node):
    """Readers and writers go on while modes, sizes and classes change."""
    store = node.process()
    control = node.root / "ssd/cache" / CONTROL_FILE
    store.tier.entries()
    finished, wrong, done = threading.Event(), [], []

    def work(number):
        key, second = key_of(f"busy{number}"), 0
        while not finished.is_set():
            second += 1
            body = os.urandom(100 if second % 2 else 70_000)
            try:
                put(store, key, ts(NOW_S + second), body)
                if read(store, key) != body:
                    wrong.append(f"{number} at {second}")
                store.hashes("sda", "7", GOLD)
                done.append(second)
            except Exception as error:
                wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for mode in (*MODES, *MODES):
        deferred = mode == "write-back"
        values = {option_of(of, "mode"): mode for of in CLASSES if of == "hashes" or not deferred}
        control.write_text(json.dumps({**values, "size_mb": 16 + len(mode)}))
        store.tier._next_tick_s = 0.0
        before = len(done)
        while len(done) < before + 10 and not wrong:
            time.sleep(0.01)
    finished.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not node.notices


def test_an_object_that_is_split_is_found_in_both_places_and_then_in_one(node):
    store = node.process()
    key = key_of(partition=str(int(key_of().hash[:8], 16) >> (32 - 8)))
    new = key._replace(partition=target_partition(key.hash, 9))
    if new.partition == key.partition:
        new = key._replace(partition=target_partition(key.hash, 10))
    power = 9 if new.partition == target_partition(key.hash, 9) else 10
    put(store, key, ts(10), b"body")
    assert store.stat(new, NOW).kind == ABSENT
    splitter = Splitter(store.core, power)
    location = Location(key.device, key.partition, key.policy, key.hash)
    splitter.relink(location)
    assert read(store, key) == read(store, new) == b"body"
    splitter.remove_old(location)
    assert store.stat(key, NOW).kind == ABSENT
    assert read(store, new) == b"body"


@pytest.mark.process
@pytest.mark.xfs
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("xfs_io"), reason="needs root and XFS tools")
def test_an_ssd_that_is_pulled_under_load_fails_no_request(tmp_path):
    image, ssd = tmp_path / "ssd.img", tmp_path / "ssd"
    ssd.mkdir()
    make_image(image, 512 << 20)
    mount_image(image, ssd)
    node = Bench(tmp_path)
    try:
        store = node.process(retry_interval=0.2, state_path=str(tmp_path / "state"))
        for second in range(40):
            put(store, key_of(), ts(NOW_S + second), b"at %d" % second)
            assert read(store, key_of()) == b"at %d" % second
            if second == 20:
                subprocess.run(["xfs_io", "-x", "-c", "shutdown", str(ssd)], check=True)
        assert store.tier.failure
        store.tier.failed("so that nothing of it is open")
        store.tier._retry_s = time.monotonic() + 1000
        # A filesystem that was shut down does not tell that it is mounted.
        subprocess.run(["umount", str(ssd)], check=True)
        another = tmp_path / "another.img"
        make_image(another, 512 << 20)
        mount_image(another, ssd)
        store.tier._retry_s = 0.0
        for second in range(40, 50):
            put(store, key_of(), ts(NOW_S + second), b"at %d" % second)
            assert read(store, key_of()) == b"at %d" % second
        assert not store.tier.failure
        assert "works again" in node.notices[-1]
    finally:
        node.end()
        unmount_image(ssd)
