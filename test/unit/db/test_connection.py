"""Connections: chexor, error translation, durable pragmas."""

import os
import resource
import sqlite3
from contextlib import suppress

import pytest

from swift.base.errors import LockTimeout
from swift.db.connection import (
    DatabaseBroken,
    DatabaseFailing,
    DatabaseMissing,
    Transaction,
    Translating,
    chexor,
    connect,
    prepare,
    translate,
)


def test_chexor_equals_the_peers_golden_values():
    assert chexor("0" * 32, "obj", "1402436408.91203") == "b66eb71632f4245c59f4a07372690b9f"
    row = "1402436408.91203-0000000000.00000-5-100"
    assert chexor("0" * 32, "cont", row) == "96ddddd7f3a94d09495f330ee174b8f3"


def test_chexor_twice_is_nothing():
    once = chexor("0" * 32, "objé", "1")
    assert chexor(once, "objé", "1") == "0" * 32


def test_a_missing_file_is_not_created(tmp_path):
    with pytest.raises(DatabaseMissing):
        connect(str(tmp_path / "none.db"))
    assert not list(tmp_path.iterdir())


def test_a_path_may_contain_what_urls_reserve(tmp_path):
    path = str(tmp_path / "a?b#c%20d.db")
    connect(path, create=True).close()
    connect(path).close()


def test_garbage_is_a_broken_database(tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(b"this is not a database, whatever its name says" * 100)
    connection = connect(str(path))
    with pytest.raises(DatabaseBroken), Translating(str(path)):
        connection.execute("SELECT * FROM sqlite_master").fetchall()


@pytest.mark.parametrize(
    ("code", "is_device_error"),
    [
        (sqlite3.SQLITE_IOERR, True),
        (sqlite3.SQLITE_IOERR_READ, True),
        (sqlite3.SQLITE_IOERR_FSYNC, True),
        (sqlite3.SQLITE_CANTOPEN, False),
        (sqlite3.SQLITE_NOMEM, False),
    ],
)
def test_an_error_of_the_device_or_the_process_is_no_broken_database(code, is_device_error):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    found = translate(error, "/srv/x.db")
    assert isinstance(found, DatabaseFailing)
    assert found.is_device_error is is_device_error


def test_a_database_that_the_process_cannot_open_is_not_missing(tmp_path):
    """A 404 would say that there is no container while the process has no descriptor left."""
    path = str(tmp_path / "x.db")
    connect(path, create=True).close()
    (tmp_path / "x.db").write_bytes(b"")
    taken, limits = [], resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        with pytest.raises(DatabaseFailing):
            connect(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in taken:
            os.close(fd)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path)])
def test_what_is_no_file_is_a_broken_database_and_is_not_waited_for(tmp_path, make):
    make(str(tmp_path / "x.db"))
    with pytest.raises(DatabaseBroken, match="in the place of a file"):
        connect(str(tmp_path / "x.db"))


def test_a_locked_database_is_a_lock_timeout(tmp_path):
    path = str(tmp_path / "x.db")
    first = connect(path, create=True)
    first.execute("CREATE TABLE t (a)")
    first.execute("BEGIN EXCLUSIVE")
    second = connect(path, wait_s=0)
    with pytest.raises(LockTimeout), Transaction(second, path):
        pass


def test_commits_are_synced_and_leave_no_log_beside_the_file(tmp_path):
    path = str(tmp_path / "x.db")
    connection = connect(path, create=True)
    prepare(connection, path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    with Transaction(connection, path):
        connection.execute("CREATE TABLE t (a)")
    others = [p.name for p in tmp_path.iterdir() if p.name != "x.db" and p.stat().st_size]
    assert others == []


def test_a_transaction_that_raises_leaves_nothing(tmp_path):
    path = str(tmp_path / "x.db")
    connection = connect(path, create=True)
    connection.execute("CREATE TABLE t (a)")
    with pytest.raises(ZeroDivisionError), Transaction(connection, path):
        connection.execute("INSERT INTO t VALUES (1)")
        raise ZeroDivisionError
    assert connection.execute("SELECT * FROM t").fetchall() == []
    assert not connection.in_transaction


def test_other_sqlite_errors_keep_their_sentence(tmp_path):
    path = str(tmp_path / "x.db")
    connection = connect(path, create=True)
    with pytest.raises(Exception, match="no such table"), Translating(path):
        connection.execute("SELECT * FROM absent")
