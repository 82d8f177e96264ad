"""What the files of a hash directory amount to: which wins, what a POST may change, and what is damage."""

from __future__ import annotations

import errno

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, ObjectKey, ReadOptions
from swift.store.errors import Damaged, FilesChanged, HashCollision
from swift.store.metadata import write_metadata
from swift.store.reader import ANY_NAME, list_names, load

GOLD = Policy(0, "gold", is_default=True)
KEY = ObjectKey("sda", "7", GOLD, EntityPath("a", "c", "o"), "d" * 32)
NOW = ReadOptions(1000.0)


def at(seconds):
    return Timestamp(seconds).internal


class Bench:
    def __init__(self, folder):
        self.folder = folder
        self.disk = Disk()

    def file(self, filename, body=b"", **metadata):
        path = self.folder / filename
        path.write_bytes(body)
        write_metadata(
            self.disk, str(path), {key.replace("_", "-"): value for key, value in metadata.items()}
        )

    def data(self, seconds=100, body=b"body", **more):
        metadata = {"name": "/a/c/o", "Content-Length": str(len(body)), "X-Timestamp": at(seconds), **more}
        self.file(f"{at(seconds)}.data", body, **metadata)

    def meta(self, seconds, **more):
        self.file(f"{at(seconds)}.meta", **{"name": "/a/c/o", "X-Timestamp": at(seconds), **more})

    def load(self, key=KEY, options=NOW, names=None, *, open_data=False):
        names = list_names(self.disk, str(self.folder)) if names is None else names
        return load(self.disk, str(self.folder), names, key, options, open_data=open_data)

    @property
    def state(self):
        return self.load().state


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_no_files_are_no_object(bench):
    assert bench.state.kind == ABSENT


def test_a_body_is_an_object_with_its_size_and_times(bench):
    bench.data(100, b"12345", ETag="e")
    state = bench.state
    assert (state.kind, state.size, state.timestamp) == (LIVE, 5, Timestamp(100))
    assert state.durable_timestamp == state.data_timestamp == Timestamp(100)


def test_a_newer_tombstone_is_a_deletion(bench):
    bench.data(100)
    bench.file(f"{at(200)}.ts", **{"name": "/a/c/o", "X-Timestamp": at(200)})
    assert (bench.state.kind, bench.state.timestamp) == (DELETED, Timestamp(200))


def test_a_post_replaces_what_it_may_and_nothing_else(bench):
    bench.data(
        100, **{"X-Object-Meta-A": "old", "X-Object-Sysmeta-B": "kept", "ETag": "e", "Content-Type": "text/a"}
    )
    bench.meta(200, **{"X-Object-Meta-C": "new", "X-Object-Sysmeta-B": "evil", "ETag": "f", "name": "/x/y/z"})
    state = bench.state
    assert state.timestamp == Timestamp(200) and state.data_timestamp == Timestamp(100)
    assert state.metadata["X-Object-Meta-C"] == "new" and "X-Object-Meta-A" not in state.metadata
    assert state.metadata["X-Object-Sysmeta-B"] == "kept" and state.metadata["ETag"] == "e"
    assert state.metadata["name"] == "/a/c/o" and state.metadata["Content-Type"] == "text/a"


def test_a_content_type_of_a_post_counts_from_its_own_time(bench):
    bench.data(100, **{"Content-Type": "text/a"})
    bench.meta(200, **{"Content-Type": "text/b", "Content-Type-Timestamp": at(150)})
    assert bench.state.metadata["Content-Type"] == "text/b"
    assert bench.state.ctype_timestamp == Timestamp(150)


def test_a_content_type_older_than_the_body_is_the_bodys(bench):
    bench.data(100, **{"Content-Type": "text/a"})
    bench.meta(200, **{"Content-Type": "text/b", "Content-Type-Timestamp": at(50)})
    assert bench.state.metadata["Content-Type"] == "text/a"


def test_an_expired_object_is_only_shown_to_who_asks_for_it(bench):
    bench.data(100, **{"X-Delete-At": "1000"})
    assert bench.state.kind == EXPIRED
    assert bench.load(options=ReadOptions(999.0)).state.kind == LIVE
    assert bench.load(options=ReadOptions(1000.0, open_expired=True)).state.kind == LIVE


@pytest.mark.parametrize(
    "change",
    [
        {"Content-Length": "5"},
        {"Content-Length": "x"},
        {"Content-Length": ""},
        {"X-Delete-At": "soon"},
        {"X-Timestamp": "yesterday"},
    ],
)
def test_metadata_that_contradicts_the_body_is_damage(bench, change):
    bench.data(100, **change)
    with pytest.raises(Damaged):
        assert bench.state


def test_metadata_without_a_name_is_damage(bench):
    bench.file(f"{at(100)}.data", **{"Content-Length": "0", "X-Timestamp": at(100)})
    with pytest.raises(Damaged, match="name"):
        assert bench.state


def test_another_objects_name_is_no_damage_but_a_collision(bench):
    bench.data(100)
    other = KEY._replace(path=EntityPath("a", "c", "p"))
    with pytest.raises(HashCollision):
        bench.load(other)
    assert bench.load(KEY._replace(path=ANY_NAME)).state.kind == LIVE


@pytest.mark.parametrize("open_data", [True, False])
def test_a_file_that_vanished_since_it_was_listed_is_told(bench, open_data):
    with pytest.raises(FilesChanged):
        bench.load(names=[f"{at(100)}.data"], open_data=open_data)


def test_the_body_is_open_only_where_it_was_asked_for(bench):
    bench.data(100)
    assert bench.load().fd is None
    loaded = bench.load(open_data=True)
    assert bench.disk.pread(loaded.fd, 10, 0) == b"body"
    bench.disk.close(loaded.fd)


class BadDisk(Disk):
    """A disk on which one call fails."""

    def __init__(self, call, code):
        super().__init__()
        self._call, self._code = call, code
        self.closed = []

    def listdir(self, path):
        self._fail("listdir")
        return super().listdir(path)

    def fstat(self, fd):
        self._fail("fstat")
        return super().fstat(fd)

    def close(self, fd):
        self.closed.append(fd)
        super().close(fd)

    def _fail(self, call):
        if call == self._call:
            raise OSError(self._code, "damaged")


@pytest.mark.parametrize("code", [errno.EUCLEAN, errno.ENODATA, errno.EIO])
def test_a_directory_that_cannot_be_listed_is_the_disk_s_fault(tmp_path, code):
    with pytest.raises(OSError, match="damaged"):
        list_names(BadDisk("listdir", code), str(tmp_path))


def test_a_body_that_cannot_be_read_is_the_disk_s_fault_and_is_closed(bench):
    bench.data(100)
    bench.disk = BadDisk("fstat", errno.EIO)
    with pytest.raises(OSError, match="damaged"):
        bench.load(open_data=True)
    assert len(bench.disk.closed) == 1


def test_a_file_in_place_of_the_directory_is_damage(tmp_path):
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(Damaged):
        list_names(Disk(), str(tmp_path / "f"))
    assert list_names(Disk(), str(tmp_path / "none")) == []
