"""Databases to which nothing has happened are not visited again."""

import os
from types import SimpleNamespace

import pytest

from swift.db.files import DatabasePath
from swift.db.unchanged import BUSY_RECHECK_S, UnchangedDatabases
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from test.support.disks import DamagedDisk

#: So long that none begins anew while a test looks on: files have the times of this machine.
PERIOD_S = 1e7
SECOND = 1_000_000_000


class Device:
    """A device with databases, and a daemon that finds all in order."""

    def __init__(self, root):
        self.root = root
        self.unchanged_databases = UnchangedDatabases(DiskHandle(Disk()), PERIOD_S, busy_s=BUSY_RECHECK_S)
        self.pass_key = 0
        self.now_ns = 0
        self.later(10)

    def later(self, seconds):
        """Let so much time pass since the last change."""
        newest = max((path.stat().st_ctime_ns for path in self.root.rglob("*.db*")), default=0)
        self.now_ns = max(self.now_ns, newest) + int(seconds * SECOND)

    def place(self, digit):
        return DatabasePath(str(self.root), "containers", "7", digit * 32)

    def make(self, digit):
        place = self.place(digit)
        os.makedirs(place.directory)
        self.write(digit, b"first")
        return place

    def write(self, digit, data, name="{}.db"):
        with open(f"{self.place(digit).directory}/{name.format(digit * 32)}", "ab") as file:
            file.write(data)

    def gone(self):
        """The partitions of what one pass finds gone."""
        self.unchanged_databases.begin(self.pass_key)
        self.unchanged_databases.scan(str(self.root), "containers", ["7"], self.now_ns)
        found = self.unchanged_databases.missing_partitions(str(self.root), "containers", lambda _key: 7)
        self.unchanged_databases.end()
        return found

    def visited(self, *, in_order=True):
        """The digits of the databases that one pass visits."""
        self.unchanged_databases.begin(self.pass_key)
        scan = self.unchanged_databases.scan(str(self.root), "containers", ["7"], self.now_ns)
        if in_order:
            for unit in scan.due:
                self.unchanged_databases.mark_unchanged(unit, self.now_ns)
        self.unchanged_databases.end()
        return sorted(unit.place.name_hash[0] for unit in scan.due)


@pytest.fixture
def device(tmp_path):
    made = Device(tmp_path)
    for digit in "ab":
        made.make(digit)
    made.later(10)
    return made


def test_what_was_found_in_order_is_left_alone(device):
    assert device.visited() == ["a", "b"]
    assert device.visited() == []
    assert device.visited() == []


def test_what_was_not_found_in_order_is_visited_again(device):
    assert device.visited(in_order=False) == ["a", "b"]
    assert device.visited() == ["a", "b"]


@pytest.mark.parametrize("name", ["{}.db", "{}.db.pending", "{}_0000000001.00000.db"])
def test_a_database_that_changed_is_visited(device, name):
    device.visited()
    device.write("b", b"more", name)
    device.later(10)
    assert device.visited() == ["b"]
    assert device.visited() == []


def test_a_database_of_the_same_name_and_size_is_another_one(device):
    device.visited()
    path = f"{device.place('a').directory}/{'a' * 32}.db"
    os.unlink(path)
    device.write("a", b"first")
    device.later(10)
    assert device.visited() == ["a"]


class Counting(Disk):
    """Knows how many directories were listed."""

    def __init__(self):
        self.listed = 0

    def listdir(self, path):
        self.listed += 1
        return super().listdir(path)


def test_directories_are_listed_again_only_when_they_changed(device):
    disk = Counting()
    device.unchanged_databases = UnchangedDatabases(DiskHandle(disk), PERIOD_S, busy_s=BUSY_RECHECK_S)
    device.visited()
    disk.listed = 0
    assert device.visited() == []
    assert disk.listed == 0
    device.make("c")
    device.later(10)
    assert device.visited() == ["c"]
    # The partition, the new suffix and the new database.
    assert disk.listed == 3


def test_a_directory_that_cannot_be_listed_is_noted_and_those_beside_it_are_looked_at(device):
    damaged = os.path.dirname(device.place("a").directory)
    unchanged_databases = UnchangedDatabases(
        DiskHandle(DamagedDisk(damaged)), PERIOD_S, busy_s=BUSY_RECHECK_S
    )
    scan = unchanged_databases.scan(str(device.root), "containers", ["7"], device.now_ns)
    assert [unit.place for unit in scan.due] == [device.place("b")]
    assert [error.filename for error in scan.unreadable] == [damaged]
    assert damaged not in scan.empty


def test_a_database_that_cannot_be_looked_at_is_due_for_its_visit_tells_why(device):
    place = device.place("a")
    unchanged_databases = UnchangedDatabases(
        DiskHandle(DamagedDisk(place.file())), PERIOD_S, busy_s=BUSY_RECHECK_S
    )
    for _ in range(2):
        unchanged_databases.begin(0)
        due = unchanged_databases.scan(str(device.root), "containers", ["7"], device.now_ns).due
        assert [unit.mark for unit in due if unit.place == place] == [None]
        assert unchanged_databases.due(place, device.now_ns).mark is None
        unchanged_databases.end()


def test_a_change_during_a_visit_leads_to_another(device):
    device.unchanged_databases.begin(0)
    scan = device.unchanged_databases.scan(str(device.root), "containers", ["7"], device.now_ns)
    device.write("a", b"meanwhile")
    device.later(10)
    for unit in scan.due:
        device.unchanged_databases.mark_unchanged(unit, device.now_ns)
    device.unchanged_databases.end()
    assert device.visited() == ["a"]


def test_new_circumstances_make_all_due(device):
    device.visited()
    device.pass_key = 1
    assert device.visited() == ["a", "b"]


def test_every_database_is_due_once_in_a_period_not_all_at_once(device):
    device.visited()
    when = {"a": [], "b": []}
    for step in range(40):
        device.now_ns += int(PERIOD_S / 20 * SECOND)
        for digit in device.visited():
            when[digit].append(step)
    assert [len(steps) for steps in when.values()] == [2, 2]
    assert when["a"] != when["b"]


def test_one_that_changed_a_moment_ago_is_not_believed_to_be_settled(device):
    """Another change in the same step of the clock would not show."""
    device.now_ns = os.stat(f"{device.place('a').directory}/{'a' * 32}.db").st_ctime_ns + SECOND // 2
    assert "a" in device.visited()
    device.later(10)
    assert "a" in device.visited()
    assert device.visited() == []


class Restless(Disk):
    """Every file was changed just now."""

    def __init__(self):
        self.now_ns = 0

    def stat(self, path):
        found = os.stat(path)
        return SimpleNamespace(st_ino=found.st_ino, st_size=found.st_size, st_ctime_ns=self.now_ns)


def test_one_that_is_written_all_the_time_is_visited_first_and_then_now_and_then(device):
    disk = Restless()
    unchanged_databases = UnchangedDatabases(DiskHandle(disk), PERIOD_S, busy_s=BUSY_RECHECK_S)
    visits = []
    for disk.now_ns in range(0, 3000 * SECOND, 10 * SECOND):
        unchanged_databases.begin(0)
        due = unchanged_databases.scan(str(device.root), "containers", ["7"], disk.now_ns).due
        visits += [disk.now_ns // SECOND for _ in due]
        unchanged_databases.end()
    assert visits == [0, 0, 600, 600, 1200, 1200, 1800, 1800, 2400, 2400]


def test_one_that_is_written_all_the_time_is_visited_when_circumstances_change(device):
    disk = Restless()
    unchanged_databases = UnchangedDatabases(DiskHandle(disk), PERIOD_S, busy_s=BUSY_RECHECK_S)
    visits = []
    for disk.now_ns in range(0, 200 * SECOND, 10 * SECOND):
        unchanged_databases.begin(disk.now_ns >= 95 * SECOND)
        due = unchanged_databases.scan(str(device.root), "containers", ["7"], disk.now_ns).due
        visits += [disk.now_ns // SECOND for _ in due]
        unchanged_databases.end()
    assert visits == [0, 0, 100, 100]


def test_one_that_is_written_is_left_alone_until_it_comes_to_rest(device):
    disk = Restless()
    device.unchanged_databases = UnchangedDatabases(
        DiskHandle(disk), PERIOD_S, busy_s=BUSY_RECHECK_S, rest_s=15
    )
    disk.now_ns, device.now_ns = 0, 20 * SECOND
    assert device.visited() == ["a", "b"]
    for _ in range(5):
        disk.now_ns = device.now_ns
        device.now_ns += 10 * SECOND
        assert device.visited() == []
    device.now_ns += 6 * SECOND
    assert device.visited() == ["a", "b"]
    assert device.visited() == []


def test_one_whose_work_cannot_wait_is_visited_while_it_is_written(device):
    disk = Restless()
    device.unchanged_databases = UnchangedDatabases(
        DiskHandle(disk), PERIOD_S, busy_s=BUSY_RECHECK_S, rest_s=15
    )
    disk.now_ns, device.now_ns = 0, 20 * SECOND
    assert device.visited() == ["a", "b"]
    device.unchanged_databases.begin(0)
    device.unchanged_databases.prioritize(device.place("a"), is_urgent=True)
    device.unchanged_databases.end()
    for _ in range(3):
        disk.now_ns = device.now_ns
        device.now_ns += 10 * SECOND
        assert device.visited() == ["a"]
    device.now_ns += 20 * SECOND
    assert device.visited() == ["a", "b"]
    assert device.visited() == []
    disk.now_ns = device.now_ns
    assert device.visited() == ["a"]
    device.unchanged_databases.begin(0)
    device.unchanged_databases.prioritize(device.place("a"), is_urgent=True)
    device.unchanged_databases.prioritize(device.place("a"), is_urgent=False)
    device.unchanged_databases.end()
    assert device.visited() == []


def test_an_eager_daemon_visits_new_databases_although_they_are_written(device):
    disk = Restless()
    device.unchanged_databases = UnchangedDatabases(
        DiskHandle(disk), PERIOD_S, busy_s=BUSY_RECHECK_S, rest_s=15, visits_new=True
    )
    disk.now_ns = device.now_ns = 20 * SECOND
    assert device.visited() == ["a", "b"]
    device.make("c")
    assert device.visited() == ["c"]
    assert device.visited() == []


def test_what_was_in_order_and_is_not_there_any_more_is_gone(device):
    assert device.gone() == set(), "nothing is known yet"
    device.visited()
    assert device.gone() == set()
    device.write("a", b"changed")
    assert device.gone() == set()
    device.later(10)
    device.visited()
    os.unlink(f"{device.place('a').directory}/{'a' * 32}.db")
    assert device.gone() == {7}
    assert device.gone() == set(), "it is told once"
