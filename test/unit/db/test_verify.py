"""Whether a database file is sound."""

import os
import sqlite3

import pytest

from swift.base.calls import run_inline
from swift.db import verify as verifying
from swift.db.connection import DatabaseBroken, DatabaseMissing
from swift.db.files import DatabasePath
from swift.db.verify import differences, quarantine_broken, verify
from swift.platform.disk import Disk

ROWS = 12_000


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a database of several hundred pages."""
    path = tmp_path_factory.mktemp("sound") / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE thing (name TEXT, deleted INTEGER, storage_policy_index INTEGER)")
    connection.execute("CREATE INDEX of_names ON thing (deleted, name)")
    connection.executemany(
        "INSERT INTO thing VALUES (?, 0, 0)", ((f"name-{n:06d}" * 3,) for n in range(ROWS))
    )
    connection.commit()
    connection.close()
    return path.read_bytes()


@pytest.fixture(params=[1 << 30, 0], ids=["in one go", "in pieces"])
def checked(request, tmp_path):
    """Checks a file of these bytes: small files in one go, large ones in pieces."""

    def check(data, totals=lambda connection: []):
        path = tmp_path / "x.db"
        path.write_bytes(data)
        return verify(str(path), "thing", totals, run_inline, whole_bytes_max=request.param)

    return check


def test_a_sound_file_is_read_to_its_end(checked, sound):
    assert checked(sound) == []


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_page_that_rotted_is_found(checked, sound, part):
    page = int(len(sound) * part) // 4096 * 4096
    with pytest.raises(DatabaseBroken):
        checked(sound[:page] + b"\xa5" * 4096 + sound[page + 4096 :])


def test_a_file_that_was_cut_off_is_found(checked, sound):
    with pytest.raises(DatabaseBroken):
        checked(sound[: len(sound) // 2])


class Place:
    """A database in its hash directory, and what happened to it."""

    def __init__(self, root, data):
        self.place = DatabasePath(str(root), "containers", "7", "0123456789abcdef0123456789abcdef")
        os.makedirs(self.place.directory)
        self.path = self.place.file()
        with open(self.path, "wb") as file:
            file.write(data)

    def quarantine(self, *, is_proven=False):
        error = DatabaseBroken(self.path, "malformed", is_proven=is_proven)
        return quarantine_broken(Disk(), self.place, error)

    @property
    def stays(self):
        return os.path.exists(self.path)


def test_a_database_that_is_sound_on_a_second_reading_stays(tmp_path, sound):
    found = Place(tmp_path, sound)
    assert found.quarantine() is None
    assert found.stays


def test_a_database_that_stays_broken_is_moved_away(tmp_path, sound):
    found = Place(tmp_path, sound[:4096] + b"\xa5" * 40960 + sound[45056:])
    assert os.path.isdir(found.quarantine())
    assert not found.stays


def test_a_database_that_cannot_be_read_again_stays(tmp_path, sound):
    found = Place(tmp_path, sound)
    os.unlink(found.path)
    os.mkdir(f"{found.path}-journal")
    with pytest.raises(DatabaseMissing):
        found.quarantine()
    assert os.path.isdir(found.place.directory)


def test_what_is_proven_is_not_read_again(tmp_path, sound):
    found = Place(tmp_path, sound)
    assert os.path.isdir(found.quarantine(is_proven=True))


def test_a_file_that_is_gone_is_missing(tmp_path):
    with pytest.raises(DatabaseMissing):
        verify(str(tmp_path / "none.db"), "thing", lambda connection: [], run_inline)


def test_totals_are_asked_in_one_transaction_of_a_small_file(tmp_path, sound):
    (tmp_path / "x.db").write_bytes(sound)

    def totals(connection):
        assert connection.in_transaction
        return ["they differ"]

    assert verify(str(tmp_path / "x.db"), "thing", totals, run_inline) == ["they differ"]


def test_a_large_file_is_never_held_for_more_than_a_piece(tmp_path, sound):
    (tmp_path / "x.db").write_bytes(sound)
    calls = []

    def run(function, *args):
        calls.append(function)
        return function(*args)

    verify(str(tmp_path / "x.db"), "thing", lambda connection: [], run, whole_bytes_max=0)
    assert len(calls) >= 2 * ROWS // verifying.PIECE_ROWS


def test_a_sentence_for_each_total_that_is_wrong():
    stored = {0: (3, 30), 1: (1, 5), 2: (0, 0)}
    counted = {0: (3, 30), 1: (2, 9), 3: (1, 1)}
    assert differences("policy", stored, counted) == [
        "policy 1 counts (1, 5), its rows say (2, 9)",
        "policy 3 counts (0, 0), its rows say (1, 1)",
    ]
