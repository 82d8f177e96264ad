"""Removing databases that are not needed on a device any more."""

import os

import pytest

from swift.dbsync.handoffs import EMPTY_FOR_S, clean_temporary, remove, remove_empty
from swift.platform.disk import Disk
from test.support.databases import make_container

NOW_S = 1_700_000_000.0


@pytest.fixture
def broker(tmp_path):
    made = make_container(tmp_path)
    yield made
    made.close()


def test_a_database_goes_with_its_directories(broker, tmp_path):
    assert remove(broker, lambda connection: True)
    assert os.listdir(tmp_path / "sda" / "containers") == []
    assert os.listdir(tmp_path / "sda" / "tmp") == []


def test_a_database_that_may_not_go_stays_as_it_is(broker):
    assert not remove(broker, lambda connection: False)
    assert broker.info().container == "c"


def test_who_is_asked_sees_the_rows_of_the_last_moment(broker):
    def is_empty(connection):
        return connection.execute("SELECT count(*) FROM object").fetchone()[0] == 0

    assert remove(broker, is_empty)


def test_directories_in_which_others_live_stay(broker, tmp_path):
    other = tmp_path / "sda" / "containers" / "7" / "abc" / ("1" * 29 + "abc")
    other.mkdir()
    assert remove(broker, lambda connection: True)
    assert other.is_dir()


def aged(path, seconds):
    os.utime(path, (NOW_S - seconds, NOW_S - seconds))


def test_an_empty_directory_goes_when_nobody_is_about_to_use_it(tmp_path):
    for name, age_s in (("fresh", EMPTY_FOR_S / 2), ("old", EMPTY_FOR_S * 2), ("full", EMPTY_FOR_S * 2)):
        (tmp_path / name).mkdir()
        if name == "full":
            (tmp_path / name / "x").write_bytes(b"")
        aged(tmp_path / name, age_s)
        remove_empty(Disk(), str(tmp_path / name), NOW_S)
    remove_empty(Disk(), str(tmp_path / "never there"), NOW_S)
    assert sorted(os.listdir(tmp_path)) == ["fresh", "full"]


def test_only_old_things_go_from_a_temporary_directory(tmp_path):
    (tmp_path / "old file").write_bytes(b"")
    (tmp_path / "old folder").mkdir()
    (tmp_path / "old folder" / "x").write_bytes(b"")
    (tmp_path / "new file").write_bytes(b"")
    aged(tmp_path / "old file", 10)
    aged(tmp_path / "old folder", 10)
    clean_temporary(Disk(), str(tmp_path), NOW_S - 5)
    clean_temporary(Disk(), str(tmp_path / "never there"), NOW_S)
    assert os.listdir(tmp_path) == ["new file"]
