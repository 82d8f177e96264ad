"""Brokers: durable rows, other processes, failing disks, broken and vanished files."""

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from swift.base.errors import LockTimeout
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.db import files, pending
from swift.db.broker import Engine
from swift.db.connection import DatabaseBroken, DatabaseMissing, chexor
from swift.db.listing import ListingQuery
from test.support.disks import AgedDisk


def names(broker):
    broker.refresh()
    return [row[0] for row in broker.listing(ListingQuery(10000), 0)]


def test_a_row_is_in_the_listing_of_every_process_at_once(room, row):
    ours, theirs = room.created(), room.broker()
    ours.put_rows([row("a")])
    assert names(theirs) == ["a"]
    theirs.put_rows([row("b")])
    assert names(ours) == ["a", "b"]


def test_rows_wait_in_the_pending_file_until_somebody_reads(room, row):
    broker = room.created()
    broker.put_rows([row("a")])
    assert os.path.getsize(room.place.pending) > 0
    assert broker.info().object_count == 1
    assert os.path.getsize(room.place.pending) == 0


def test_many_pending_rows_are_merged_without_a_reader(room, row, monkeypatch):
    monkeypatch.setattr(pending, "MERGE_AT_BYTES", 1000)
    broker = room.created()
    for n in range(20):
        broker.put_rows([row(f"o{n:02d}")])
    assert os.path.getsize(room.place.pending) <= 1000
    assert len(names(broker)) == 20


@pytest.mark.parametrize("fault", ["fdatasync", "write", "short write"])
def test_a_row_that_could_not_be_synced_is_not_acknowledged_and_not_kept(room, row, fault):
    broker = room.created()
    broker.put_rows([row("before")])
    room.disk.broken.add(fault)
    with pytest.raises(OSError, match="injected"):
        broker.put_rows([row("lost")])
    room.disk.broken.clear()
    broker.put_rows([row("after")])
    assert names(room.broker()) == ["after", "before"]


def test_what_was_acknowledged_survives_a_power_cut_at_any_moment(room, row):
    broker = room.created()
    acknowledged = []
    size = 0
    for n in range(4):
        broker.put_rows([row(f"o{n}")])
        acknowledged.append((os.path.getsize(room.place.pending), f"o{n}"))
    data = pending.read(room.disk, room.place.pending)
    size = len(data)
    for cut in range(0, size + 1, 7):
        with open(room.place.pending, "wb") as file:
            file.write(data[:cut])
        rows = [entry[0] for entry in pending.entries(data[:cut], room.warnings.append)]
        assert rows[: sum(1 for end, _ in acknowledged if end <= cut)] == [
            name for end, name in acknowledged if end <= cut
        ]


def test_a_crash_between_commit_and_clearing_merges_twice_to_the_same(room, row):
    broker = room.created()
    broker.put_rows([row("a"), row("b")])
    left = pending.read(room.disk, room.place.pending)
    assert names(broker) == ["a", "b"]
    before = broker.info()
    with open(room.place.pending, "wb") as file:
        file.write(left)
    other = room.broker()
    assert names(other) == ["a", "b"]
    assert other.info() == before


def test_pending_rows_of_the_peer_are_merged_and_bad_ones_reported(room, row):
    broker = room.created()
    with open(room.place.pending, "ab") as file:
        file.write(pending.encode(row("theirs")[:6]))
        file.write(b":rubbish" + pending.encode(("too", "short")))
        file.write(pending.encode(("x", "no time", 1, "t", "e", 0)))
    assert names(broker) == ["theirs"]
    assert len(room.warnings) == 3


def test_a_replaced_file_is_noticed_by_reads_and_writes(room, row, tmp_path):
    broker = room.created()
    broker.put_rows([row("old")])
    broker.merge_pending()
    copy = tmp_path / "copy.db"
    shutil.copy(broker.newest.path, copy)
    os.replace(copy, broker.newest.path)
    broker.merge_rows([row("new")])
    assert names(broker) == ["new", "old"]


def test_work_alone_is_done_on_the_file_that_is_there(room, row, tmp_path):
    broker = room.created()
    broker.put_rows([row("old")])
    broker.merge_pending()
    copy = tmp_path / "copy.db"
    shutil.copy(broker.newest.path, copy)
    connection = sqlite3.connect(copy)
    connection.create_function("chexor", 3, chexor)
    connection.execute("DELETE FROM object")
    connection.commit()
    connection.close()
    os.replace(copy, broker.newest.path)
    assert broker.alone(lambda c, _disk: c.execute("SELECT name FROM object").fetchall()) == []


def at_rest(room):
    """A created broker that takes every change of its directory for old, and its disk's listings."""
    listings = []

    class CountingDisk(AgedDisk):
        opened = 0
        fault = None

        def open(self, *args, **how):
            self.opened += 1
            return super().open(*args, **how)

        def fdatasync(self, fd):
            if self.fault is not None:
                raise self.fault
            super().fdatasync(fd)

        def listdir(self, path):
            listings.append(path)
            return super().listdir(path)

    engine = Engine(disk=CountingDisk())
    broker = ContainerBroker(room.place, engine, "a", "c")
    broker.create(Timestamp(1), 0, created_at=Timestamp(1))
    broker.merge_rows([])
    broker.refresh()
    return broker, listings


def test_a_directory_at_rest_is_not_listed_again_for_writes_and_reads(room, row):
    broker, listings = at_rest(room)
    broker.put_rows([row("first")])
    assert names(broker) == ["first"]
    # The first merge made a journal.
    broker.refresh()
    listings.clear()
    for n in range(3):
        broker.refresh()
        broker.put_rows([row(f"o{n}")])
        assert len(names(broker)) == n + 2
    assert listings == []


def test_a_file_that_was_replaced_in_a_directory_at_rest_is_noticed(room, row, tmp_path):
    broker, listings = at_rest(room)
    broker.put_rows([row("old")])
    assert names(broker) == ["old"]
    other = tmp_path / "other.db"
    shutil.copy(broker.newest.path, other)
    mark = os.stat(room.place.directory).st_ctime_ns
    while os.stat(room.place.directory).st_ctime_ns == mark:
        spare = tmp_path / "spare.db"
        shutil.copy(other, spare)
        os.replace(spare, broker.newest.path)
    before = broker.newest
    assert names(broker) == ["old"]
    assert broker.newest is not before
    broker.put_rows([row("new")])
    assert names(broker) == ["new", "old"]


def test_rows_are_put_without_refreshing_while_nothing_changes(room, row):
    broker, listings = at_rest(room)
    broker.put_rows([row("a")])
    # Its pending file was new.
    broker.refresh()
    broker.refresh()
    listings.clear()
    for name in "bcd":
        assert broker.freshness.is_fresh
        broker.put_rows([row(name)])
    assert listings == []
    assert names(broker) == ["a", "b", "c", "d"]


def open_files(room):
    """The paths of this process's open files in the hash directory."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        # One is of the listing itself.
        with suppress(FileNotFoundError):
            path = link.readlink()
            if str(path.parent) == room.place.directory:
                found.add(path.name)
    return found


def kept_open(room, row):
    """A broker that put two rows into a directory at rest, the second one in the file that it has."""
    broker, _listings = at_rest(room)
    for name in "abc":
        broker.put_rows([row(name)])
    broker.engine.disk.opened = 0
    broker.put_rows([row("d")])
    assert broker.engine.disk.opened == 0
    return broker


def test_the_files_of_a_directory_at_rest_stay_open_for_rows(room, row):
    broker = kept_open(room, row)
    assert names(room.broker()) == ["a", "b", "c", "d"]
    broker.put_rows([row("e")])
    assert names(broker) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("let_go", ["relax", "close"])
def test_an_idle_broker_lets_go_of_them(room, row, let_go):
    broker = kept_open(room, row)
    assert {".lock", os.path.basename(room.place.pending)} <= open_files(room)
    getattr(broker, let_go)()
    assert not {".lock", os.path.basename(room.place.pending)} & open_files(room)


@pytest.mark.parametrize("path", ["lock", "pending"])
def test_files_that_were_replaced_are_opened_anew(room, row, path):
    broker, path = kept_open(room, row), getattr(room.place, path)
    assert broker.listing(ListingQuery(10000), 0)
    os.rename(path, f"{path}.old")
    broker.put_rows([row("e")])
    assert os.path.exists(path)
    assert names(room.broker()) == ["a", "b", "c", "d", "e"]


def test_a_batch_that_could_not_be_synced_is_cut_off_and_its_files_are_given_up(room, row):
    broker = kept_open(room, row)
    size, disk = os.path.getsize(room.place.pending), broker.engine.disk
    disk.fault = OSError(5, "injected")
    with pytest.raises(OSError, match="injected"):
        broker.put_rows([row("lost")])
    assert os.path.getsize(room.place.pending) == size
    assert ".lock" not in open_files(room)
    disk.fault = None
    broker.put_rows([row("e")])
    assert names(room.broker()) == ["a", "b", "c", "d", "e"]


def test_a_broker_that_is_closed_under_an_abandoned_commit_gives_its_descriptors_to_no_other_file(
    room, row, tmp_path, monkeypatch
):
    broker, other = kept_open(room, row), tmp_path / "other"
    fstat = broker.engine.disk.fstat

    def close_meanwhile(fd):
        monkeypatch.setattr(broker.engine.disk, "fstat", fstat)
        broker.close()
        # New files get the numbers that are free.
        other.write_bytes(b"")
        fds = [os.open(other, os.O_WRONLY) for _ in range(9)]
        status = fstat(fd)
        held.extend(fds)
        return status

    held = []
    monkeypatch.setattr(broker.engine.disk, "fstat", close_meanwhile)
    broker._commit([row("e")])
    for fd in held:
        os.close(fd)
    assert other.read_bytes() == b""
    assert names(room.broker()) == ["a", "b", "c", "d", "e"]


def test_a_lock_that_another_process_holds_is_waited_for(room, row):
    broker = kept_open(room, row)
    with files.locked(broker.engine.disk, room.place), pytest.raises(LockTimeout):
        broker._append_to_kept([row("e")])
    broker.put_rows([row("f")])
    assert names(room.broker()) == ["a", "b", "c", "d", "f"]


def test_a_row_tells_that_another_file_takes_the_place(room, row):
    broker, _listings = at_rest(room)
    broker.put_rows([row("a")])
    broker.refresh()
    broker.refresh()
    assert broker.freshness.is_fresh
    shutil.copy(broker.newest.path, room.place.file("1700000000.00000"))
    broker.put_rows([row("b")])
    assert not broker.freshness.is_fresh
    broker.refresh()
    assert len(broker.databases) == 2


@pytest.mark.parametrize("vanished", ["file", "directory"])
def test_a_row_for_a_database_that_vanished_is_refused_and_the_broker_looks_again(room, row, vanished):
    broker, _listings = at_rest(room)
    broker.put_rows([row("a")])
    broker.refresh()
    broker.refresh()
    assert broker.freshness.is_fresh
    if vanished == "file":
        mark = os.stat(room.place.directory).st_ctime_ns
        os.unlink(broker.newest.path)
        while os.stat(room.place.directory).st_ctime_ns == mark:
            # The time of the directory moves in steps; it is not really at rest.
            os.rename(room.place.lock, f"{room.place.lock}.new")
            os.rename(f"{room.place.lock}.new", room.place.lock)
    else:
        shutil.rmtree(room.place.directory)
    with pytest.raises(DatabaseMissing):
        broker.put_rows([row("lost")])
    assert not broker.freshness.is_fresh
    assert not broker.refresh()


def test_a_closed_broker_is_not_fresh(room, row):
    broker, _listings = at_rest(room)
    broker.refresh()
    broker.refresh()
    assert broker.freshness.is_fresh
    broker.close()
    assert not broker.freshness.is_fresh
    broker.put_rows([row("a")])
    assert not broker.freshness.is_fresh
    assert names(broker) == ["a"]


def test_rows_merged_from_memory_are_those_that_others_would_read(room, row):
    ours = room.created()
    rows = [
        row("a"),
        row("a", time=3, content_type="text/html; swift_bytes=7"),
        row("b", ctype_timestamp=Timestamp(4).internal, meta_timestamp=Timestamp(5).internal),
        row("\u00e9\ufffd", deleted=1, storage_policy_index=3),
    ]
    ours.put_rows(rows[:2])
    ours.put_rows(rows[2:])
    left = pending.read(room.disk, room.place.pending)
    ours.merge_pending()
    expected = ours.read(lambda c: c.execute("SELECT * FROM object ORDER BY name").fetchall())
    shutil.rmtree(room.place.directory)
    theirs = room.created()
    with open(room.place.pending, "wb") as file:
        file.write(left)
    theirs.refresh()
    found = theirs.read(lambda c: c.execute("SELECT * FROM object ORDER BY name").fetchall())
    assert [r[1:] for r in found] == [r[1:] for r in expected]
    assert len(found) == 3


def test_rows_of_two_processes_in_turn_are_all_merged(room, row):
    ours, theirs = room.created(), room.broker()
    for n in range(3):
        ours.put_rows([row(f"ours{n}")])
        theirs.put_rows([row(f"theirs{n}")])
    ours.put_rows([row("ours3")])
    assert len(names(ours)) == 7
    theirs.put_rows([row("theirs3")])
    ours.put_rows([row("ours4")])
    assert len(names(theirs)) == 9
    ours.put_rows([row("ours5")])
    assert len(names(ours)) == 10


def test_a_removed_directory_is_a_missing_database(room, row):
    broker = room.created()
    shutil.rmtree(room.place.directory)
    with pytest.raises(DatabaseMissing):
        broker.put_rows([row("a")])
    with pytest.raises(DatabaseMissing):
        broker.merge_rows([row("a")])
    assert not broker.refresh()
    assert not os.path.exists(room.place.directory)


def test_rows_are_refused_when_only_the_database_file_is_gone(room, row):
    broker = room.created()
    os.unlink(broker.newest.path)
    with pytest.raises(DatabaseMissing):
        broker.put_rows([row("a")])
    assert not os.path.exists(room.place.pending)


def test_a_truncated_database_is_broken(room, row):
    broker = room.created()
    broker.merge_rows([row(f"o{n}") for n in range(500)])
    path = broker.newest.path
    broker.close()
    with open(path, "r+b") as file:
        file.truncate(8192)
    with pytest.raises(DatabaseBroken):
        fresh = room.broker()
        fresh.listing(ListingQuery(1000), 0)


def test_an_empty_file_is_removed_and_no_database(room):
    os.makedirs(room.place.directory)
    open(room.place.file(), "wb").close()
    assert not room.broker().exists
    assert not os.path.exists(room.place.file())


def test_a_database_of_something_else_is_broken(room):
    os.makedirs(room.place.directory)
    connection = sqlite3.connect(room.place.file())
    connection.execute("CREATE TABLE other (a)")
    connection.commit()
    with pytest.raises(DatabaseBroken):
        room.broker()


def test_a_reader_waits_in_a_thread_for_a_locked_file(room, row):
    broker = room.created()
    broker.merge_rows([row("a")])
    blocker = sqlite3.connect(broker.newest.path, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    waited = []

    def run(function, *args):
        waited.append(function)
        blocker.execute("COMMIT")
        return function(*args)

    object.__setattr__(broker.engine, "run", run)
    assert [r[0] for r in broker.listing(ListingQuery(10), 0)] == ["a"]
    assert len(waited) == 1


def test_creating_twice_keeps_the_first(room):
    first = room.created()
    second = room.broker()
    assert not second.create(Timestamp(9), 0, created_at=Timestamp(9))
    assert second.info().id == first.info().id


@pytest.mark.parametrize("fault", ["fsync", "rename"])
def test_a_database_that_cannot_be_made_durable_does_not_exist(room, fault):
    broker = room.broker()
    room.disk.broken.add(fault)
    with pytest.raises(OSError, match="injected"):
        broker.create(Timestamp(1), 0, created_at=Timestamp(1))
    room.disk.broken.clear()
    left = os.listdir(room.place.directory) if os.path.isdir(room.place.directory) else []
    assert not [name for name in left if name.endswith(".tmp")]


def test_a_stale_journal_is_never_replayed_into_a_new_database(room):
    os.makedirs(room.place.directory)
    with open(room.place.file() + "-journal", "wb") as file:
        file.write(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\x00" * 600)
    assert room.created().info().object_count == 0


def test_hash_and_counts_follow_every_row(room, row):
    broker = room.created()
    empty = broker.info().hash
    broker.merge_rows([row("a", size=3), row("b", size=4)])
    info = broker.info()
    assert (info.object_count, info.bytes_used) == (2, 7)
    broker.merge_rows([row("a", time=3, deleted=1, size=0), row("b", time=3, deleted=1, size=0)])
    info = broker.info()
    assert (info.object_count, info.bytes_used) == (0, 0)
    assert info.hash != empty
