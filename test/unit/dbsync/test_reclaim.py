"""What is so old that no replica can need it is forgotten; where nothing is, nothing is written."""

from __future__ import annotations

import os

import pytest

from swift.account.replication import ReclaimableAccountRows
from swift.account.rows import ContainerRow
from swift.base.timestamp import Timestamp
from swift.db.broker import Engine
from swift.db.syncpoints import all_syncs, set_sync
from swift.dbsync import reclaim as module
from swift.dbsync.reclaim import ReclaimableRows, age, reclaim, remove_temporary
from swift.platform.disk import Disk
from test.support.databases import make_account

NOW = Timestamp(1_000_000)
AGE_S = 1000.0


def ago(seconds):
    return Timestamp(NOW.seconds - seconds).internal


@pytest.fixture
def broker(tmp_path):
    made = make_account(tmp_path)
    yield made
    made.close()


class SmallPages(ReclaimableAccountRows):
    """Tombstones are looked at two at a time; remembers where each page began."""

    def __init__(self):
        self.pages = []

    def reclaim_rows(self, connection, before, after_name, count):
        assert count == module.PAGE
        self.pages.append(after_name)
        return super().reclaim_rows(connection, before, after_name, 2)


def put(broker, name, deleted_ago=None):
    gone = "0" if deleted_ago is None else ago(deleted_ago)
    broker.put_rows([ContainerRow(name, ago(9000), gone, 0, 0, int(deleted_ago is not None))])


def names(broker):
    return [
        found[0] for found in broker.read(lambda c: c.execute("SELECT name FROM container ORDER BY name"))
    ]


def test_only_tombstones_that_are_old_enough_go(broker):
    put(broker, "here")
    put(broker, "just gone", 999)
    put(broker, "on the border", 1000)
    put(broker, "long gone", 1001)
    reclaim(broker, ReclaimableAccountRows(), NOW, AGE_S)
    assert names(broker) == ["here", "just gone", "on the border"]


def test_tombstones_are_looked_at_page_by_page_to_the_last(broker):
    for number in range(7):
        put(broker, f"{number}", 50 if number % 3 == 0 else 5000)
    old = SmallPages()
    reclaim(broker, old, NOW, AGE_S)
    assert names(broker) == ["0", "3", "6"]
    assert old.pages == ["", "2", "5"]


def test_headers_that_were_removed_go_after_the_age_and_others_never(broker):
    values = {"Kept": ("x", ago(5000)), "Gone": ("", ago(1001)), "Just-Gone": ("", ago(999))}
    broker.update_metadata(
        {f"X-Account-Meta-{name}": pair for name, pair in values.items()}, lambda have: None
    )
    reclaim(broker, ReclaimableAccountRows(), NOW, AGE_S)
    assert sorted(broker.info().metadata) == ["X-Account-Meta-Just-Gone", "X-Account-Meta-Kept"]


def test_replicas_not_heard_of_go_after_twice_the_age(broker):
    for name, seconds in (("lately", 1500), ("long ago", 2500)):

        def remember(connection, name=name, seconds=seconds):
            for incoming, table in ((True, "incoming_sync"), (False, "outgoing_sync")):
                set_sync(connection, name, 5, incoming=incoming)
                connection.execute(f"DROP TRIGGER IF EXISTS {table}_update")
                when = int(NOW.seconds - seconds)
                connection.execute(f"UPDATE {table} SET updated_at = ? WHERE remote_id = ?", (when, name))

        broker.write(remember)
    reclaim(broker, ReclaimableAccountRows(), NOW, AGE_S)
    for incoming in (True, False):
        found = broker.read(lambda c: all_syncs(c, incoming=incoming))  # noqa: B023
        assert [each["remote_id"] for each in found] == ["lately"]


def test_where_nothing_is_old_nothing_is_written(broker):
    put(broker, "just gone", 999)
    broker.info()
    statements = []
    broker.close()
    again = type(broker)(broker.place, Engine(trace=statements.append), "a")
    again.refresh()
    statements.clear()
    reclaim(again, ReclaimableAccountRows(), NOW, AGE_S)
    assert statements and not [text for text in statements if text.startswith(("DELETE", "UPDATE", "BEGIN"))]
    again.close()


def test_a_time_before_all_times_is_the_first_one():
    assert age(Timestamp(5), 10.0) == Timestamp(0)
    assert age(Timestamp(5), float("inf")) == Timestamp(0)
    assert age(Timestamp(15), 10.0) == Timestamp(5)


def test_a_table_without_shard_ranges_has_no_old_ones(broker):
    old = ReclaimableAccountRows()
    assert isinstance(old, ReclaimableRows)
    assert not broker.read(lambda c: old.has_old_ranges(c, NOW))


def test_leftovers_go_by_their_names_and_age_and_the_rest_stays(tmp_path):
    for name in ("old.tmp", "new.tmp", "old.db", "directory.tmp"):
        path = tmp_path / name
        path.mkdir() if name.startswith("d") else path.write_bytes(b"x")
        at_s = 100 if "old" in name or name.startswith("d") else 300
        os.utime(path, (at_s, at_s))
    (tmp_path / "dangling.tmp").symlink_to(tmp_path / "nowhere")
    remove_temporary(Disk(), str(tmp_path), ".tmp", 200.0)
    assert sorted(os.listdir(tmp_path)) == ["dangling.tmp", "directory.tmp", "new.tmp", "old.db"]
    remove_temporary(Disk(), str(tmp_path / "never there"), ".tmp", 200.0)
    remove_temporary(Disk(), str(tmp_path / "old.db"), ".tmp", 200.0)
