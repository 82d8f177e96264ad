"""Places, what is found in them, and quarantine."""

import os

from swift.db import files
from swift.db.files import DatabasePath
from swift.platform.disk import Disk

HASH = "09010b47702855083de2fff3c370265e"


def place(root):
    return DatabasePath(str(root), "containers", "0", HASH)


def test_paths_are_those_of_the_spec():
    where = DatabasePath("/srv/node/sd2", "containers", "0", HASH)
    assert where.directory == f"/srv/node/sd2/containers/0/65e/{HASH}"
    assert where.file() == f"{where.directory}/{HASH}.db"
    assert where.file("1795228500.98056") == f"{where.directory}/{HASH}_1795228500.98056.db"
    assert where.pending == f"{where.directory}/{HASH}.db.pending"
    assert where.device == "sd2"


def test_a_path_says_which_place_it_belongs_to():
    where = DatabasePath("/srv/node/sd2", "containers", "0", HASH)
    assert DatabasePath.of_file(where.file("1795228500.98056")) == where
    assert where.epoch_of(where.file("1795228500.98056")) == "1795228500.98056"
    assert where.epoch_of(where.file()) is None


def test_files_are_found_from_the_oldest_epoch_on(tmp_path):
    where = place(tmp_path)
    assert files.database_files(Disk(), where) == ()
    os.makedirs(where.directory)
    for name in (
        f"{HASH}_0000000020.00000.db",
        f"{HASH}_0000000003.00000.db",
        f"{HASH}.db",
        ".lock",
        "x.tmp",
    ):
        open(f"{where.directory}/{name}", "wb").close()
    open(f"{where.directory}/{HASH}_notatime.db", "wb").close()
    found = files.database_files(Disk(), where)
    assert [where.epoch_of(path) for path in found] == [
        None,
        "0000000003.00000",
        "0000000020.00000",
    ]
    assert not files.has_pending(Disk(), where)
    with open(where.pending, "wb") as file:
        file.write(b":x")
    assert files.has_pending(Disk(), where)


def test_pending_without_database_counts_for_nothing(tmp_path):
    where = place(tmp_path)
    os.makedirs(where.directory)
    with open(where.pending, "wb") as file:
        file.write(b":x")
    assert files.database_files(Disk(), where) == ()


def test_quarantine_moves_the_directory_and_survives_collisions(tmp_path):
    where = place(tmp_path)
    targets = set()
    for _ in range(3):
        os.makedirs(where.directory)
        open(where.file(), "wb").close()
        targets.add(files.quarantine(Disk(), where, "rot"))
        assert not os.path.exists(where.directory)
    assert f"{tmp_path}/quarantined/containers/{HASH}" in targets
    assert len(targets) == 3
    assert all(os.path.exists(f"{target}/{HASH}.db") for target in targets)


def test_a_directory_that_a_replicator_removes_while_a_database_is_begun_is_made_again(tmp_path):
    where = place(tmp_path)

    class Tidy(Disk):
        times = 2

        def mkdir(self, path):
            os.mkdir(path)
            if path == where.directory and self.times:
                self.times -= 1
                os.rmdir(path)

    assert files.create(Tidy(), where, lambda connection: connection.execute("CREATE TABLE t (a)"))
    assert files.database_files(Disk(), where) == (where.file(),)
