"""Watching a hash directory: listed again exactly when its names may have changed."""

import os

import pytest

from swift.db.files import DatabasePath
from swift.db.watch import REST_NS, Watch
from swift.platform.disk import Disk

HASH = "0123456789abcdef0123456789abcdef"


class CountingDisk(Disk):
    """Counts listings."""

    def __init__(self, now_ns):
        self.listings = 0
        self.now_ns = now_ns

    def listdir(self, path):
        self.listings += 1
        return super().listdir(path)


class Room:
    """A hash directory and a clock that runs ahead of the filesystem's."""

    def __init__(self, root):
        self.disk = CountingDisk(self.now_ns)
        self.place = DatabasePath(str(root), "containers", "1", HASH)
        self.ahead_ns = 10 * REST_NS
        self.watch = Watch(self.disk, self.place)

    def now_ns(self):
        return os.stat(self.place.directory).st_ctime_ns + self.ahead_ns

    def touch(self, epoch=None):
        """Make a database file at a time of its own."""
        before = os.stat(self.place.directory).st_ctime_ns
        path = self.place.file(epoch)
        while True:
            open(path, "wb").close()
            if os.stat(self.place.directory).st_ctime_ns != before:
                return path
            os.unlink(path)


@pytest.fixture
def room(tmp_path):
    found = Room(tmp_path)
    os.makedirs(found.place.directory)
    return found


def test_a_directory_at_rest_is_listed_once(room):
    path = room.touch()
    first = room.watch.databases()
    assert first == (path,)
    with open(path, "ab") as file:
        file.write(b"content changes no names")
    assert room.watch.databases() is first
    assert room.disk.listings == 1


def test_a_new_name_is_seen(room):
    first = room.touch()
    assert room.watch.databases() == (first,)
    second = room.touch("0000000003.00000")
    assert room.watch.databases() == (first, second)


def test_a_replaced_file_gives_a_new_answer(room):
    path = room.touch()
    before = room.watch.databases()
    spare = f"{room.place.directory}/spare"
    mark = os.stat(room.place.directory).st_ctime_ns
    while os.stat(room.place.directory).st_ctime_ns == mark:
        open(spare, "wb").close()
        os.replace(spare, path)
    after = room.watch.databases()
    assert after == before
    assert after is not before


def test_a_directory_that_changed_a_moment_ago_is_listed_every_time(room):
    room.ahead_ns = REST_NS
    room.touch()
    room.watch.databases()
    room.watch.databases()
    assert room.disk.listings == 2


def test_a_change_time_in_the_future_is_not_trusted(room):
    room.ahead_ns = -10 * REST_NS
    room.touch()
    room.watch.databases()
    room.watch.databases()
    assert room.disk.listings == 2


def test_no_directory_holds_no_database(tmp_path):
    room = Room(tmp_path)
    assert room.watch.databases() == ()
    os.makedirs(room.place.directory)
    assert room.watch.databases() == ()
    path = room.touch()
    assert room.watch.databases() == (path,)
    os.unlink(path)
    os.rmdir(room.place.directory)
    assert room.watch.databases() == ()


def test_another_directory_of_the_same_name_is_listed(room):
    path = room.touch()
    assert room.watch.databases() == (path,)
    os.rename(room.place.directory, f"{room.place.directory}-moved")
    os.mkdir(room.place.directory)
    assert room.watch.databases() == ()
