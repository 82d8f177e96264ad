"""What becomes of one database: whom it is brought to, whether it may leave, and what is wrong with it."""

from __future__ import annotations

import os
import shutil
import sqlite3

import pytest

from swift.account.replicator import KIND
from swift.account.rows import ContainerRow
from swift.base.timestamp import Timestamp
from swift.cluster.transport import TransportError
from swift.dbsync.daemon import DatabaseReplicator
from swift.dbsync.device import DeviceReplication
from swift.dbsync.settings import ReplicatorSettings
from test.support.daemons import DaemonFixture, DeviceRing, LogLines
from test.support.databases import Replicas, make_account

AWAY = TransportError("away")


class Bench:
    """Device ``own`` of five has an account's database; the first three are where it belongs."""

    def __init__(self, root, own=0, **options):
        self.log = LogLines()
        self.rig = DaemonFixture(root, log=self.log)
        self.nodes = Replicas()
        ring = DeviceRing(own)
        context = ring.context(self.rig, transport=self.nodes)
        task = DatabaseReplicator(context, ring, KIND, ReplicatorSettings(**options))
        self.pass_context = self.rig.pass_context()
        self.device = DeviceReplication(task.replication, "sda", self.pass_context)
        self.broker = make_account(self.rig.root, self.hash_of("a"))
        self.place = self.broker.place

    def hash_of(self, name):
        return self.rig.context.hasher.hexdigest(name)

    def replicate(self, place=None):
        return self.device.replicate(place or self.place)

    @property
    def counts(self):
        return self.pass_context.counters.counts

    @property
    def is_here(self):
        return os.path.exists(self.place.file())

    @property
    def quarantined(self):
        folder = self.rig.root / "sda/quarantined/accounts"
        return os.listdir(folder) if folder.exists() else []


@pytest.fixture
def make(tmp_path):
    made = []

    def make(own=0, **options):
        made.append(Bench(tmp_path, own, **options))
        return made[-1]

    yield make
    for bench in made:
        bench.broker.close()


# --- a database that belongs here


def test_the_other_primaries_are_told_beginning_with_the_next_one(make):
    bench = make(own=1)
    assert bench.replicate()
    assert bench.nodes.asked == [2, 0]
    assert bench.counts == {"attempts": 1, "no_changes": 2, "successes": 2}
    assert bench.is_here


@pytest.mark.parametrize("said", [AWAY, 500, 400])
def test_a_node_that_fails_is_counted_and_the_next_one_told_all_the_same(make, said):
    bench = make()
    bench.nodes.says = {1: said}
    assert not bench.replicate()
    assert bench.nodes.asked == [1, 2]
    assert (bench.counts["failures"], bench.counts["successes"]) == (1, 1)
    assert bench.device.failed == {"127.0.0.1": {"d1": 1}}


def test_for_every_unmounted_device_another_handoff_stands_in(make):
    bench = make()
    bench.nodes.says = {1: 507, 2: 507}
    assert not bench.replicate()
    assert bench.nodes.asked == [1, 2, 3, 4]
    assert bench.counts["successes"] == 2


def test_when_no_handoff_is_left_that_is_the_end(make):
    bench = make()
    bench.nodes.says = dict.fromkeys(range(1, 5), 507)
    assert not bench.replicate()
    assert bench.nodes.asked == [1, 2, 3, 4]


def test_a_database_that_is_not_there_is_nothing(make):
    bench = make()
    assert not bench.replicate(bench.place._replace(name_hash="f" * 32))
    assert bench.nodes.told == [] and bench.counts == {}


# --- one that does not


def test_a_handoff_goes_when_all_primaries_have_everything(make):
    bench = make(own=4)
    assert not bench.replicate()
    assert bench.nodes.asked == [0, 1, 2]
    assert not bench.is_here and bench.counts["removes.sda"] == 1


@pytest.mark.parametrize("said", [AWAY, 507, 500])
def test_a_handoff_stays_while_a_primary_does_not_have_it(make, said):
    bench = make(own=4)
    bench.nodes.says = {1: said}
    bench.replicate()
    assert bench.is_here and "removes.sda" not in bench.counts


@pytest.mark.parametrize(
    ("handoff_delete", "away", "goes"), [(2, 1, True), (2, 2, False), (1, 2, True), (9, 0, True)]
)
def test_so_many_copies_are_enough_as_is_said(make, handoff_delete, away, goes):
    bench = make(own=4, handoff_delete=handoff_delete)
    bench.nodes.says = dict.fromkeys(range(away), AWAY)
    bench.replicate()
    assert bench.is_here != goes


def test_a_handoff_does_not_stand_in_for_others_while_it_is_one_itself(make):
    bench = make(own=3)
    bench.nodes.says = {0: 507}
    bench.replicate()
    assert bench.nodes.asked == [0, 1, 2, 4]
    assert bench.is_here


def test_what_is_written_while_it_is_brought_home_keeps_it(make):
    bench = make(own=4)

    def write(number, _operation):
        if number == 2:
            bench.broker.put_rows([ContainerRow("late", Timestamp(9).internal, "0", 1, 1)])

    bench.nodes.meanwhile = write
    bench.replicate()
    assert bench.is_here


def test_one_in_the_directory_of_another_partition_goes_to_all_primaries_and_then_away(make):
    bench = make()
    wrong = bench.place._replace(partition="3")
    os.makedirs(os.path.dirname(wrong.directory))
    os.rename(bench.place.directory, wrong.directory)
    bench.replicate(wrong)
    assert bench.nodes.asked == [0, 1, 2], "this device's own server among them"
    assert not os.path.exists(wrong.file())
    assert any("should be on partition 7" in line for line in bench.log.lines)


# --- one that is deleted, broken or another's


def test_one_that_was_deleted_long_ago_goes_without_a_word(make):
    bench = make()
    bench.broker.delete(Timestamp(6))
    assert not bench.replicate()
    assert not bench.is_here and bench.nodes.told == []


def test_one_that_was_deleted_lately_is_brought_to_the_others(make):
    bench = make(reclaim_age=1e10)
    bench.broker.delete(Timestamp(6))
    assert bench.replicate()
    assert bench.is_here and bench.nodes.asked == [1, 2]


@pytest.mark.parametrize("damage", ["garbage", "nobody's"])
def test_one_that_is_broken_is_quarantined(make, damage):
    bench = make()
    bench.broker.close()
    if damage == "garbage":
        with open(bench.place.file(), "wb") as file:
            file.write(b"\xff" * 8192)
    else:
        with sqlite3.connect(bench.place.file()) as connection:
            connection.execute("UPDATE account_stat SET account = NULL")
        connection.close()
    assert not bench.replicate()
    assert bench.quarantined == [bench.place.name_hash]
    assert bench.counts["failures"] == 1 and bench.nodes.told == []


def test_one_under_a_wrong_name_is_quarantined_only_once_another_fits(make):
    """Else the hash path settings are wrong, and nothing fits."""
    bench = make()
    wrong = bench.place._replace(name_hash="0" * 29 + "abc")
    os.makedirs(os.path.dirname(wrong.directory), exist_ok=True)
    shutil.copytree(bench.place.directory, wrong.directory)
    os.rename(f"{wrong.directory}/{bench.place.name_hash}.db", wrong.file())
    bench.replicate(wrong)
    assert bench.quarantined == [] and bench.nodes.told == []
    assert any("hash path settings" in line for line in bench.log.lines)
    bench.replicate()
    bench.replicate(wrong)
    assert bench.quarantined == [wrong.name_hash]


def test_files_that_nobody_finished_go_with_time(make):
    bench = make(reclaim_age=100)
    for name, age_s in (("old.tmp", 200), ("new.tmp", 50), ("old.other", 200)):
        path = f"{bench.place.directory}/{name}"
        open(path, "w").close()
        at_s = bench.rig.clock.time() - age_s
        os.utime(path, (at_s, at_s))
    bench.replicate()
    assert {"new.tmp", "old.other"} < set(os.listdir(bench.place.directory))
    assert "old.tmp" not in os.listdir(bench.place.directory)
