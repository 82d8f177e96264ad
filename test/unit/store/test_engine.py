"""The filesystem engine: verified reads, quarantine, fallbacks, and creators in several processes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import stat
from types import SimpleNamespace

import pytest

from swift.base.entity import EntityPath
from swift.base.errors import DeviceUnavailable, NoSpace
from swift.base.timestamp import Timestamp
from swift.platform.devices import SpaceGuard
from swift.platform.disk import Disk
from swift.platform.syncing import SingleSyncs, moments
from swift.policy.policy import ErasureCode, Policy
from swift.store.api import ABSENT, DELETED, LIVE, ObjectKey
from swift.store.core import EngineCore
from swift.store.engine import FileStore
from swift.store.errors import FilesChanged
from test.support.disks import (
    GOLD,
    HASHER,
    KEY,
    NOW,
    NOW_S,
    PATH,
    data_file,
    directory,
    make_store,
    metadata_of,
    put,
    read,
)


def _break_checksum(root):
    os.setxattr(data_file(root), "user.swift.metadata_checksum", b"0" * 32)


def _cut(root):
    os.truncate(data_file(root), 1)


def _lose_metadata(root):
    os.removexattr(data_file(root), "user.swift.metadata")


@pytest.mark.parametrize("damage", [_break_checksum, _cut, _lose_metadata])
def test_a_file_that_contradicts_itself_is_quarantined_at_first_sight(tmp_path, damage):
    notices = []
    store = make_store(tmp_path, notice=notices.append)
    put(store)
    damage(tmp_path)
    assert store.stat(KEY, NOW).kind == ABSENT
    assert os.listdir(tmp_path / "sda/quarantined/objects") == [KEY.hash]
    assert KEY.hash[-3:] in (tmp_path / "sda/objects/7/hashes.invalid").read_text()
    assert len(notices) == 1
    put(store, b"again")
    assert read(store, 0, 5) == b"again"


class FewInodes(Disk):
    """Much room for bytes, and ``left`` of 100,000 inodes."""

    def __init__(self, left):
        self.left = left

    def statvfs(self, _path):
        return SimpleNamespace(
            f_frsize=4096, f_blocks=10**6, f_bavail=10**6, f_files=100_000, f_favail=self.left
        )


def test_bodies_leave_inodes_to_metadata_and_that_to_deletions(tmp_path):
    disk = FewInodes(1000)
    store = make_store(tmp_path, disk=disk)
    put(store)
    disk.left = 999
    with pytest.raises(NoSpace, match="1000 are reserved"):
        put(store, at=Timestamp(NOW_S + 1))
    post(store, Timestamp(NOW_S + 1))
    disk.left = 499
    with pytest.raises(NoSpace, match="500 are reserved"):
        post(store, Timestamp(NOW_S + 2))
    with store.edit(KEY, NOW, create=False) as edit:
        edit.delete(Timestamp(NOW_S + 2))
    assert store.stat(KEY, NOW).kind == DELETED


def post(store, at):
    with store.edit(KEY, NOW, create=False) as edit:
        edit.post(at, None, {"X-Timestamp": at.internal, "name": str(PATH)})


def test_a_second_quarantine_of_one_object_gets_a_name_of_its_own(tmp_path):
    store = make_store(tmp_path)
    for _ in range(2):
        put(store)
        _cut(tmp_path)
        store.stat(KEY, NOW)
    names = sorted(os.listdir(tmp_path / "sda/quarantined/objects"), key=len)
    assert names[0] == KEY.hash
    assert names[1].startswith(f"{KEY.hash}-")
    assert len(names[1]) == 65


@pytest.mark.parametrize("earlier", [False, True], ids=["first", "again"])
def test_a_file_in_place_of_the_hash_directory_is_quarantined(tmp_path, earlier):
    store = make_store(tmp_path)
    if earlier:
        (tmp_path / "sda/quarantined/objects" / KEY.hash).mkdir(parents=True)
    directory(tmp_path).parent.mkdir(parents=True)
    directory(tmp_path).write_bytes(b"")
    assert store.stat(KEY, NOW).kind == ABSENT
    put(store)
    assert read(store, 0, 4) == b"body"


def test_a_hash_directory_that_cannot_be_listed_is_no_damaged_object(tmp_path):
    class Failing(Disk):
        broken = True

        def listdir(self, path):
            if self.broken and path.endswith(KEY.hash):
                self.broken = False
                raise OSError(errno.EUCLEAN, "structure needs cleaning")
            return os.listdir(path)

    disk = Failing()
    disk.broken = False
    store = make_store(tmp_path, disk)
    put(store)
    disk.broken = True
    with pytest.raises(OSError, match="structure"):
        store.stat(KEY, NOW)
    assert store.stat(KEY, NOW).kind == LIVE
    assert not (tmp_path / "sda/quarantined").exists()


def test_files_that_keep_vanishing_end_in_an_error(tmp_path):
    class Mirage(Disk):
        def listdir(self, _path):
            return ["1700000000.00000.data"]

    with pytest.raises(FilesChanged):
        make_store(tmp_path, Mirage()).stat(KEY, NOW)


def test_a_file_that_vanishes_once_is_looked_for_again(tmp_path):
    class Blink(Disk):
        blinks = 1

        def stat(self, path, **more):
            if self.blinks and str(path).endswith(".data"):
                self.blinks -= 1
                raise FileNotFoundError(path)
            return os.stat(path, **more)

    disk = Blink()
    disk.blinks = 0
    store = make_store(tmp_path, disk)
    put(store)
    disk.blinks = 1
    assert store.stat(KEY, NOW).kind == LIVE


def test_without_unnamed_files_a_temporary_directory_is_used_and_left_empty(tmp_path):
    class Plain(Disk):
        asked = 0

        def open_unnamed(self, _directory):
            self.asked += 1
            raise OSError(errno.EOPNOTSUPP, "no")

    disk = Plain()
    store = make_store(tmp_path, disk)
    put(store)
    put(store, b"newer", Timestamp(NOW_S + 1))
    draft = store.draft(KEY, None)
    draft.discard()
    assert read(store, 0, 5) == b"newer"
    assert os.listdir(tmp_path / "sda/tmp") == []
    assert disk.asked == 1


def test_every_new_ancestor_is_synced_before_the_file_is_named(tmp_path):
    class Watching(Disk):
        def __init__(self):
            self.synced = []
            self.synced_before_naming = None

        def fsync(self, fd):
            self.synced.append(os.readlink(f"/proc/self/fd/{fd}"))
            os.fsync(fd)

        def link_unnamed(self, fd, name, *, dir_fd):
            self.synced_before_naming = list(self.synced)
            super().link_unnamed(fd, name, dir_fd=dir_fd)

    disk = Watching()
    put(make_store(tmp_path, disk))
    suffix = directory(tmp_path).parent
    for ancestor in (suffix, suffix.parent, suffix.parent.parent, tmp_path / "sda"):
        assert str(ancestor) in disk.synced_before_naming
    assert str(directory(tmp_path)) == disk.synced[-1]


def test_cleanup_that_fails_does_not_fail_the_change(tmp_path):
    class Sticky(Disk):
        def unlink(self, path, **more):
            if str(path).endswith(".data"):
                raise OSError(errno.EIO, "no")
            os.unlink(path, **more)

    notices = []
    store = make_store(tmp_path, Sticky(), notices.append)
    put(store)
    put(store, b"newer", Timestamp(NOW_S + 1))
    assert read(store, 0, 5) == b"newer"
    assert len(notices) == 1


def _create(root, number, barrier, results):
    store = make_store(root)
    barrier.wait()
    for turn in range(20):
        path = EntityPath("AUTH_a", "c", f"o{turn}")
        key = ObjectKey("sda", "7", GOLD, path, HASHER.hexdigest(*path))
        with store.edit(key, NOW, create=True) as edit:
            if edit.state.kind == ABSENT:
                body, at = b"%d" % number, Timestamp(NOW_S + number)
                draft = edit.draft(1)
                draft.write(body)
                edit.put(draft, at, {**metadata_of(body, at), "name": str(path)})
                results.put((turn, number))


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:Using fork")
def test_of_creators_in_several_processes_exactly_one_wins(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(3), context.Queue()
    workers = [context.Process(target=_create, args=(tmp_path, n, barrier, results)) for n in range(3)]
    for worker in workers:
        worker.start()
    winners = [results.get(timeout=30) for _ in range(20)]
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    assert results.empty()
    assert sorted(turn for turn, _ in winners) == list(range(20))


def test_a_directory_borrows_no_moment_from_a_draft_that_is_older(tmp_path):
    settled = []

    class Moments(SingleSyncs):
        def make_durable(self, fd, opened, directories=()):
            settled.append((stat.S_ISDIR(os.fstat(fd).st_mode), opened))
            super().make_durable(fd, opened, directories)

    store = make_store(tmp_path)
    store = FileStore(
        EngineCore(
            store.core.disk,
            store.core.devices,
            hasher=HASHER,
            clock=store.core.clock,
            space=SpaceGuard(store.core.disk, None),
            new_syncs=Moments,
        )
    )
    draft = store.draft(KEY, None)
    draft.write(b"body")
    between = next(moments)
    with store.edit(KEY, NOW, create=True) as edit:
        edit.put(draft, Timestamp(NOW_S), metadata_of(b"body", Timestamp(NOW_S)))
    (file_is_dir, file_at), (dir_is_dir, dir_at) = settled
    assert (file_is_dir, dir_is_dir) == (False, True)
    assert file_at < between < dir_at


def test_quarantine_marks_the_suffix_dirty_so_that_replicas_repair_it(tmp_path):
    store = make_store(tmp_path)
    put(store)
    before = store.hashes("sda", "7", GOLD)
    assert list(before) == [KEY.hash[-3:]]
    data_file(tmp_path).write_bytes(b"other size")
    assert store.stat(KEY, NOW).kind == ABSENT
    assert KEY.hash[-3:] in (tmp_path / "sda/objects/7/hashes.invalid").read_text()
    assert store.hashes("sda", "7", GOLD) == {}


def test_a_draft_does_not_outlive_its_lost_directory_by_another_device(tmp_path):
    store = make_store(tmp_path)
    shutil.rmtree(tmp_path / "sda")
    with pytest.raises(DeviceUnavailable):
        store.draft(KEY, 5)


EC = Policy(1, "ec", ec=ErasureCode("liberasurecode_rs_vand", 4, 2))
EC_KEY = KEY._replace(policy=EC)


def test_a_suffix_is_dirty_before_the_name_of_a_durable_archive_is_there(tmp_path):
    journal = tmp_path / "sda/objects-1/7/hashes.invalid"
    at = Timestamp(NOW_S)
    seen = []

    class Watching(Disk):
        def rename(self, old, new, **options):
            if new.endswith("#d.data"):
                seen.append(journal.read_text())
            os.rename(old, new, **options)

    store = make_store(tmp_path, Watching())
    with store.edit(EC_KEY, NOW, create=True) as edit:
        draft = edit.draft(4)
        draft.write(b"body")
        edit.put(draft, at, metadata_of(b"body", at), fragment=2)
    store.hashes("sda", "7", EC)
    assert journal.read_text() == ""
    with store.edit(EC_KEY, NOW, create=True) as edit:
        edit.commit(at, 2)
    assert seen == [f"{KEY.hash[-3:]}\n"]


def test_the_name_in_the_partition_to_be_is_durable_as_well(tmp_path):
    steps = []

    class Watching(Disk):
        def link(self, old, new, **options):
            os.link(old, new, **options)
            steps.append(os.path.dirname(new))

        def fsync(self, fd):
            steps.append(os.readlink(f"/proc/self/fd/{fd}"))
            os.fsync(fd)

    store = make_store(tmp_path, Watching())
    at = Timestamp(NOW_S)
    with store.edit(KEY, NOW, create=True, next_part_power=9) as edit:
        draft = edit.draft(4)
        draft.write(b"body")
        edit.put(draft, at, metadata_of(b"body", at))
    target = tmp_path / "sda/objects" / str(int(KEY.hash[:8], 16) >> 23) / KEY.hash[-3:] / KEY.hash
    assert os.listdir(target) == [f"{at.internal}.data"]
    synced = steps[steps.index(str(target)) + 1 :]
    assert set(map(str, (target, *target.parents[:3]))) <= set(synced)
