"""What a database replicator does in a pass: what is due, and what recon hears of it."""

from __future__ import annotations

import os

import pytest

from swift.account.replicator import KIND
from swift.cluster.transport import TransportError
from swift.dbsync.daemon import RECON_NAMES, DatabaseReplicator
from swift.dbsync.settings import ReplicatorSettings
from swift.runtime.selection import Selection
from test.support.daemons import DaemonFixture, DeviceRing, LogLines
from test.support.databases import Replicas, make_account


class Bench:
    """A node with the databases of some accounts; it has device ``own`` of five."""

    def __init__(self, root, own=0, selection=None, **options):
        self.log = LogLines()
        self.rig = DaemonFixture(root, log=self.log)
        self.device = self.rig.root / "sda"
        self.nodes = Replicas()
        self.ring = DeviceRing(own)
        context = self.ring.context(self.rig, transport=self.nodes)
        settings = ReplicatorSettings(**{"databases_per_second": 0.0, **options})
        self.task = DatabaseReplicator(context, self.ring, KIND, settings, selection=selection)
        self.brokers = []

    def account(self, name, partition="7"):
        """The database of an account, not written lately."""
        made = make_account(self.rig.root, self.rig.context.hasher.hexdigest(name))
        made.write(
            lambda connection: connection.execute("UPDATE account_stat SET account = ?", (name,)).rowcount
        )
        made.close()
        if partition != "7":
            os.makedirs(self.device / "accounts" / partition, exist_ok=True)
            os.rename(made.place.directory, self._moved(made.place, partition))
        return made.place

    def _moved(self, place, partition):
        target = place._replace(partition=partition).directory
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return target

    def run_once(self):
        self.nodes.told.clear()
        assert self.rig.runner(self.task, server_type="account").run_once()
        return self.rig.recon("account").read()["replication_stats"]


@pytest.fixture
def make(tmp_path):
    return lambda *how, **more: Bench(tmp_path, *how, **more)


def test_every_database_is_brought_to_its_nodes_and_recon_hears_of_it(make):
    bench = make()
    for name in "abc":
        bench.account(name)
    stats = bench.run_once()
    assert bench.nodes.asked == [1, 2] * 3
    assert (stats["attempted"], stats["success"], stats["failure"], stats["no_change"]) == (3, 6, 0, 6)
    assert "failure_nodes" not in stats
    assert set(RECON_NAMES.values()) < set(stats) and stats["ts_repl"] == stats["empty"] == 0


def test_the_nodes_that_failed_are_told_by_address_and_device(make):
    bench = make()
    for name in "ab":
        bench.account(name)
    bench.nodes.says = {2: TransportError("away")}
    stats = bench.run_once()
    assert stats["failure"] == 2
    assert stats["failure_nodes"] == {"127.0.0.1": {"d2": 2}}
    bench.nodes.says = {}
    assert "failure_nodes" not in bench.run_once(), "the next pass has no failure"


def test_removals_are_counted_for_all_devices_together(make):
    bench = make(own=4)
    for name in "ab":
        bench.account(name)
    assert bench.run_once()["remove"] == 2
    assert os.listdir(bench.device / "accounts") == []


def test_with_handoffs_only_what_belongs_here_stays_alone(make):
    bench = make(handoffs_only=True)
    bench.account("a")
    assert bench.run_once()["attempted"] == 0
    assert any("handoffs_only is on" in line for line in bench.log.lines)


def test_with_handoffs_only_the_rest_leaves(make, tmp_path):
    bench = make(4, handoffs_only=True)
    bench.account("a")
    assert bench.run_once()["remove"] == 1


def test_a_partition_that_the_ring_does_not_have_is_looked_at_whatever_the_limits(make):
    bench = make(handoffs_only=True)
    bench.account("a", partition="99")
    stats = bench.run_once()
    assert stats["attempted"] == 1 and bench.nodes.asked == [0, 1, 2]


@pytest.mark.parametrize(
    ("selection", "asked"),
    [
        (Selection(devices=frozenset(("sdz",))), []),
        (Selection(partitions=frozenset(("8",))), []),
        (Selection(devices=frozenset(("sda",)), partitions=frozenset(("7",))), [1, 2]),
    ],
)
def test_a_run_by_hand_is_of_what_was_chosen(make, selection, asked):
    bench = make(selection=selection)
    bench.account("a")
    bench.rig.runner(bench.task, server_type="account", is_limited=True).run_once()
    assert bench.nodes.asked == asked


def test_a_node_that_is_not_in_the_ring_says_so_and_does_nothing(make):
    bench = make()
    bench.account("a")
    bench.ring.devices = bench.ring.devices[1:]
    bench.rig.runner(bench.task, server_type="account").run_once()
    assert bench.nodes.told == []
    assert any("Can't find itself in the ring" in line for line in bench.log.lines)


def test_a_device_that_is_away_is_a_failure(make):
    bench = make()
    bench.device.rmdir()
    assert bench.run_once()["failure"] == 1


def test_what_nobody_finished_goes_from_the_temporary_directory_and_empty_directories_go(make):
    bench = make(reclaim_age=100)
    place = bench.account("a")
    (bench.device / "tmp").mkdir(exist_ok=True)
    empty = bench.device / "accounts/7/fff"
    empty.mkdir(parents=True)
    for path, age_s in ((bench.device / "tmp/old", 200), (bench.device / "tmp/new", 50), (empty, 4e9)):
        if not path.exists():
            path.write_bytes(b"x")
        at_s = bench.rig.clock.time() - age_s
        os.utime(path, (at_s, at_s))
    bench.run_once()
    assert os.listdir(bench.device / "tmp") == ["new"]
    assert not empty.exists() and os.path.exists(place.file())


@pytest.mark.parametrize("handoffs_only", [False, True])
def test_things_that_are_no_databases_are_passed_over(make, handoffs_only):
    bench = make(4, handoffs_only=handoffs_only)
    bench.account("a")
    accounts = bench.device / "accounts"
    (accounts / "not a partition").mkdir()
    (accounts / "8").write_text("a file")
    (accounts / "²").mkdir()
    for name in ("short", "z" * 32, "²" * 32, "A" * 32):
        (accounts / "7/abc" / name).mkdir(parents=True)
        (accounts / "7/abc" / name / f"{name}.db").write_bytes(b"x")
    assert bench.run_once()["attempted"] == 1


def test_a_daemon_that_is_to_end_begins_with_no_other_database(make):
    bench = make(concurrency=1)
    for name in "abc":
        bench.account(name)
    bench.nodes.meanwhile = lambda _number, _operation: bench.rig.stop.request()
    bench.rig.runner(bench.task, server_type="account").run_once()
    assert bench.nodes.asked == [1, 2]


def copies(bench):
    bench.run_once()
    facts = bench.rig.recon("account").read()
    assert facts["copy_progress"] == {}
    state = facts["copy_state"]["account"]["devices"]["sda"]
    return {name: state[name] for name in ("ring", "partitions", "misplaced", "missing", "failed", "done")}


def test_recon_hears_of_databases_that_do_not_belong_here_until_they_are_gone(make):
    bench = make(own=4)
    for name in "ab":
        bench.account(name)
    bench.nodes.says = {number: TransportError("away") for number in range(3)}
    left = {"ring": "d1", "partitions": 1, "misplaced": 2, "missing": 0, "failed": 2, "done": 0}
    assert copies(bench) == left
    # They were just changed, so that this pass leaves them alone.
    assert copies(bench) == {**left, "failed": 0}


def test_recon_hears_that_databases_which_did_not_belong_here_are_gone(make):
    bench = make(own=4)
    for name in "ab":
        bench.account(name)
    gone = {"ring": "d1", "partitions": 0, "misplaced": 0, "missing": 0, "failed": 0, "done": 2}
    assert copies(bench) == gone


def test_recon_hears_of_databases_that_others_have_and_this_device_lacks(make):
    bench = make()
    bench.task.missing_databases("sda").lacking = lambda _present: 3
    state = copies(bench)
    assert (state["missing"], state["misplaced"]) == (3, 0)
