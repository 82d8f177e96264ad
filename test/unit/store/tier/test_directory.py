"""A hash directory becomes an entry only when a reader would take it without a question, and is compared."""

from __future__ import annotations

import errno
import os

import pytest

from swift.platform.disk import Disk
from swift.store.errors import Damaged
from swift.store.metadata import write_metadata
from swift.store.tier.directory import FRESH_NS, Handles, HashDirectory, Reader, is_plain, path_of, stamp_of
from swift.store.tier.entry import FILES_MAX, Stamp

NOW = 1_700_000_000.0
DATA = f"{NOW:016.5f}.data"
META = f"{NOW + 5:016.5f}.meta"
LATER_NS = 1 << 62


class NoHandles(Disk):
    """A kernel that gives no handles, or takes none."""

    def __init__(self, code=errno.EPERM):
        super().__init__()
        self.code = code
        self.asked = 0

    def handle(self, file):
        self.asked += 1
        raise OSError(self.code, "no")


class Bench:
    def __init__(self, root, disk=None):
        self.disk = disk or Disk()
        self.device = root / "sda"
        self.folder = self.device / "objects/7/abc" / ("d" * 29 + "abc")
        self.folder.mkdir(parents=True)
        self.where = HashDirectory(str(self.device), str(self.folder), None)
        self.handles = Handles(self.disk)
        self.reader = Reader(self.disk, self.handles)

    def file(self, name, body=b"body", **metadata):
        path = self.folder / name
        path.write_bytes(body)
        write_metadata(self.disk, str(path), {"name": "/a/c/o", **metadata})
        return path

    def read(self, now_ns=LATER_NS):
        return self.reader.read(self.where, 7, now_ns)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_the_name_in_the_tier_begins_with_the_device(bench):
    assert bench.where.path == path_of(str(bench.device), str(bench.folder))
    assert bench.where.path.startswith(b"sda/objects/7/abc/ddd")


def test_a_directory_is_read_with_its_files_and_their_metadata(bench):
    bench.file(DATA, b"12345")
    bench.file(META, b"")
    snapshot = bench.read()
    assert sorted(snapshot.names) == [DATA, META] and snapshot.epoch == 7
    assert snapshot.only_body.size == 5
    assert snapshot.stamp == stamp_of(bench.disk, str(bench.folder))
    assert bench.reader.body(bench.where, snapshot.only_body) == b"12345"


def test_what_is_not_there_is_known_as_well(bench):
    os.rmdir(bench.folder)
    assert bench.read().files == ()
    assert stamp_of(bench.disk, str(bench.folder)) == Stamp()


@pytest.mark.parametrize(
    "names", [["notes.txt"], [".tmp"], [f"{NOW + n:016.5f}.data" for n in range(FILES_MAX + 1)]]
)
def test_names_that_a_reader_would_question_make_no_entry(bench, names):
    for name in names:
        bench.file(name)
    assert not is_plain(names, None) and bench.read() is None


def test_a_file_in_place_of_the_directory_is_damage(bench):
    os.rmdir(bench.folder)
    bench.folder.write_bytes(b"")
    with pytest.raises(Damaged):
        bench.read()


def test_a_directory_that_has_just_changed_is_believed_only_while_nothing_can_be_missed(bench):
    bench.file(DATA)
    bench.file(META, b"")
    changed_ns = bench.folder.stat().st_ctime_ns
    assert bench.read(changed_ns + FRESH_NS - 1).stamp == Stamp()
    assert bench.read(changed_ns + FRESH_NS + 1).stamp != Stamp()


def test_an_entry_still_holds_until_anything_is_another(bench):
    bench.file(DATA)
    snapshot = bench.read()
    assert bench.reader.is_still(bench.where, snapshot)
    assert bench.reader.difference(bench.where, snapshot) == ""
    bench.file(META, b"")
    assert not bench.reader.is_still(bench.where, snapshot)
    assert "names are" in bench.reader.difference(bench.where, snapshot)


def test_another_body_of_the_same_name_is_noticed(bench):
    path = bench.file(DATA)
    snapshot = bench.read()
    path.rename(bench.device / "kept")
    bench.file(DATA, b"BODY")
    assert not bench.reader.is_still(bench.where, snapshot)
    assert "another file" in bench.reader.difference(bench.where, snapshot)


def test_a_body_is_opened_by_its_handle_and_not_once_it_is_gone(bench):
    path = bench.file(DATA)
    snapshot = bench.read()
    facts = snapshot.only_body
    if facts.handle:
        path.rename(bench.device / "kept")
        os.close(bench.handles.open(bench.where, facts))
        (bench.device / "kept").unlink()
    else:
        path.unlink()
    with pytest.raises(OSError) as caught:
        bench.handles.open(bench.where, facts)
    assert caught.value.errno in (errno.ESTALE, errno.ENOENT)


def test_a_kernel_that_gives_no_handles_is_asked_once(tmp_path):
    bench = Bench(tmp_path, NoHandles())
    bench.file(DATA)
    for _ in range(3):
        assert bench.read().only_body.handle == b""
    assert bench.disk.asked == 1


def test_a_file_that_has_no_handle_for_once_does_not_end_them(tmp_path):
    bench = Bench(tmp_path, NoHandles(errno.EIO))
    bench.file(DATA)
    assert bench.read().only_body.handle == b"" and bench.handles.wanted


def test_handles_that_are_not_wanted_are_not_asked_for(tmp_path):
    disk = NoHandles()
    assert Handles(disk, wanted=False).of(5) == b"" and disk.asked == 0
