"""One database file, open in this process, while others may replace it."""

import os
import shutil
import sqlite3

import pytest

from swift.container.broker import ContainerBroker
from swift.db.connection import DatabaseBroken, DatabaseMissing
from swift.db.database import Database, Replaced
from swift.db.files import locked


@pytest.fixture
def database(room):
    """An open database of a container."""
    room.created()
    path = f"{room.place.directory}/{room.place.name_hash}.db"
    opened = Database(path, room.place, room.disk, ContainerBroker.dialect)
    opened.open()
    yield opened
    opened.close()


def count(connection):
    return connection.execute("SELECT count(*) FROM object").fetchone()[0]


def test_an_open_database_is_the_one_at_its_path(database):
    assert database.is_open and database.is_current
    assert count(database.reader) == 0


def test_a_file_put_in_its_place_is_noticed_before_anything_is_written(database, room, tmp_path):
    other = tmp_path / "other.db"
    shutil.copy(database.path, other)
    os.rename(other, database.path)
    assert database.is_open and not database.is_current
    ran = []
    with locked(room.disk, room.place), pytest.raises(Replaced):
        database.write_locked(ran.append)
    assert ran == []


def test_a_file_that_went_away_is_not_current(database):
    os.unlink(database.path)
    assert not database.is_current


def test_a_change_that_raises_leaves_nothing(database, room):
    def change(connection):
        connection.execute("INSERT INTO policy_stat (storage_policy_index) VALUES (7)")
        raise ZeroDivisionError

    with locked(room.disk, room.place), pytest.raises(ZeroDivisionError):
        database.write_locked(change)
    policies = database.reader.execute("SELECT storage_policy_index FROM policy_stat").fetchall()
    assert (7,) not in policies


def connections(database):
    """How often the file is open in this process."""
    path = os.path.realpath(database.path)
    return sum(os.path.realpath(f"/proc/self/fd/{fd}") == path for fd in os.listdir("/proc/self/fd"))


def test_there_is_no_second_connection_until_something_is_written(database, room):
    light, before = database.weight, connections(database)
    with locked(room.disk, room.place):
        database.write_locked(count)
    assert connections(database) == before + 1 and database.weight > light


def test_a_relaxed_database_reads_on_at_once_and_writes_again(database, room):
    with locked(room.disk, room.place):
        light, before = database.weight, connections(database)
        database.write_locked(count)
        database.relax()
        assert (database.weight, connections(database)) == (light, before)
        assert count(database.reader) == 0
        assert database.write_locked(count) == 0


def test_a_patient_read_waits_for_whoever_holds_the_file(database):
    assert database.read_with_retry(count) == 0


def test_a_closed_database_answers_nothing(database):
    database.close()
    assert not database.is_open
    with pytest.raises(DatabaseMissing):
        _ = database.reader
    with pytest.raises(Replaced):
        database.query_locked(count)
    database.close()


@pytest.fixture
def stranger(room):
    """A database that is not open yet, at a path where anything may lie."""
    os.makedirs(room.place.directory)
    path = f"{room.place.directory}/{room.place.name_hash}.db"
    return Database(path, room.place, room.disk, ContainerBroker.dialect)


def test_a_file_that_is_not_there_is_missing(stranger):
    with pytest.raises(DatabaseMissing):
        stranger.open()


def test_an_empty_file_never_was_a_database_and_goes(stranger):
    open(stranger.path, "wb").close()
    with pytest.raises(DatabaseMissing, match="empty"):
        stranger.open()
    assert not os.path.exists(stranger.path)


def test_a_database_of_another_kind_is_refused_and_stays(stranger):
    connection = sqlite3.connect(stranger.path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(DatabaseBroken, match="not a database of containers"):
        stranger.open()
    assert os.path.exists(stranger.path) and not stranger.is_open
