"""Replicators skip unchanged databases, and restore databases that a node lost."""

import shutil

import pytest

from swift.account.replicator import KIND as ACCOUNT
from swift.dbsync.daemon import DatabaseReplicator
from swift.runtime.daemon import Runner, Schedule
from swift.telemetry.recon import ReconFile
from test.support.daemons import Replicators
from test.support.disks import AgedDisk


class LongRunning:
    """A replicator of one node whose state survives from pass to pass."""

    def __init__(self, sim, number, tmp_path):
        replicators = Replicators(sim, tmp_path)
        fresh = replicators.task("account", number)
        self.number = number
        self.sim = sim
        self.replicators = replicators
        self.clock = replicators.clock
        self.task = DatabaseReplicator(fresh.context, fresh.ring, ACCOUNT, fresh.settings, disk=AgedDisk())
        self.recon = ReconFile(str(tmp_path), "account", fresh.context.telemetry.log)
        self.telemetry = fresh.context.telemetry

    def run_and_count_requests(self):
        """Run one pass and return the number of its requests."""
        self.sim.transport.requests.clear()
        runner = Runner(self.task, Schedule(30), telemetry=self.telemetry, recon=self.recon, clock=self.clock)
        assert runner.run_once()
        return sum(method == "REPLICATE" for _kind, _node, method, *_rest in self.sim.transport.requests)


@pytest.fixture
def replicator(sim, tmp_path):
    node = sim.primaries("account", "a")[0]
    made = LongRunning(sim, node, tmp_path)
    while made.run_and_count_requests() and not made.task._unchanged[f"sdb{node}"]._known:
        continue
    return made


def test_a_second_pass_sends_no_requests(replicator):
    assert replicator.run_and_count_requests() == 0


def test_a_change_is_replicated_once(replicator, sim):
    assert sim("POST", "/a", {"x-account-meta-colour": "red"}).status == 204
    assert replicator.run_and_count_requests() > 0
    for _ in range(3):
        requests = replicator.run_and_count_requests()
    assert requests == 0


def test_a_new_ring_causes_a_full_comparison(replicator):
    replicator.task.own.forget()
    assert replicator.run_and_count_requests() > 0


def test_a_failed_node_is_retried_until_it_responds(replicator, sim):
    others = sim.primaries("account", "a")[1:]
    with sim.refusing("account", others[0]):
        assert sim("POST", "/a", {"x-account-meta-colour": "blue"}).status == 204
        replicator.run_and_count_requests()
        assert replicator.run_and_count_requests() > 0
    assert replicator.run_and_count_requests() > 0
    for _ in range(3):
        requests = replicator.run_and_count_requests()
    assert requests == 0


@pytest.fixture
def all_three(sim, tmp_path):
    """Return the replicators of an account's nodes once all replicas are in sync."""
    for name in "abc":
        assert sim("POST", f"/{name}", {"x-account-meta-colour": "red"}).status == 204
    numbers = sim.primaries("account", "a")
    for number in numbers:
        (tmp_path / f"own{number}").mkdir()
    made = [LongRunning(sim, number, tmp_path / f"own{number}") for number in numbers]
    while sum(each.run_and_count_requests() for each in made):
        continue
    return made


def files(replicator):
    return replicator.replicators.files("account", replicator.number, "a")


def test_a_replaced_device_gets_unchanged_databases(all_three, sim):
    first, *others = all_three
    shutil.rmtree(sim.root / f"node{first.number}" / f"sdb{first.number}" / "accounts")
    first.run_and_count_requests()
    for _ in range(2):
        for other in others:
            other.run_and_count_requests()
    assert files(first)
    while sum(each.run_and_count_requests() for each in all_three):
        continue


def test_a_database_that_was_moved_away_is_replicated_again(all_three):
    first, *others = all_three
    shutil.rmtree(files(first)[0].parent)
    first.run_and_count_requests()
    for other in others:
        other.run_and_count_requests()
    assert files(first)


def test_a_node_that_missed_the_report_of_a_lost_database_gets_it_later(all_three, sim):
    first, *others = all_three
    shutil.rmtree(files(first)[0].parent)
    with sim.refusing("account", others[0].number), sim.refusing("account", others[1].number):
        first.run_and_count_requests()
    others[0].run_and_count_requests()
    assert not files(first)
    first.run_and_count_requests()
    others[0].run_and_count_requests()
    assert files(first)
