"""A replicator asks nobody about databases to which nothing has happened, and brings what a node lost."""

import shutil

import pytest

from swift.account.replicator import KIND as ACCOUNT
from swift.dbsync.daemon import DatabaseReplicator
from swift.runtime.daemon import Runner, Schedule
from swift.telemetry.recon import ReconFile
from test.support.daemons import Replicators
from test.support.disks import AgedDisk


class LongRunning:
    """A replicator of one node that goes on from pass to pass."""

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

    def asks(self):
        """How many requests one pass makes."""
        self.sim.transport.requests.clear()
        runner = Runner(self.task, Schedule(30), telemetry=self.telemetry, recon=self.recon, clock=self.clock)
        assert runner.run_once()
        return sum(method == "REPLICATE" for _kind, _node, method, *_rest in self.sim.transport.requests)


@pytest.fixture
def replicator(sim, tmp_path):
    node = sim.primaries("account", "a")[0]
    made = LongRunning(sim, node, tmp_path)
    while made.asks() and not made.task._unchanged[f"sdb{node}"]._known:
        continue
    return made


def test_the_second_pass_asks_nobody(replicator):
    assert replicator.asks() == 0


def test_a_change_is_brought_to_the_others_and_then_all_is_quiet_again(replicator, sim):
    assert sim("POST", "/a", {"x-account-meta-colour": "red"}).status == 204
    assert replicator.asks() > 0
    for _ in range(3):
        asked = replicator.asks()
    assert asked == 0


def test_a_new_ring_has_everything_compared(replicator):
    replicator.task.own.forget()
    assert replicator.asks() > 0


def test_a_node_that_failed_is_asked_again_until_it_answers(replicator, sim):
    others = sim.primaries("account", "a")[1:]
    with sim.refusing("account", others[0]):
        assert sim("POST", "/a", {"x-account-meta-colour": "blue"}).status == 204
        replicator.asks()
        assert replicator.asks() > 0
    assert replicator.asks() > 0
    for _ in range(3):
        asked = replicator.asks()
    assert asked == 0


@pytest.fixture
def all_three(sim, tmp_path):
    """The replicators of an account's nodes when all is quiet."""
    for name in "abc":
        assert sim("POST", f"/{name}", {"x-account-meta-colour": "red"}).status == 204
    numbers = sim.primaries("account", "a")
    for number in numbers:
        (tmp_path / f"own{number}").mkdir()
    made = [LongRunning(sim, number, tmp_path / f"own{number}") for number in numbers]
    while sum(each.asks() for each in made):
        continue
    return made


def files(replicator):
    return replicator.replicators.files("account", replicator.number, "a")


def test_an_exchanged_device_gets_its_databases_although_nothing_happens_to_them(all_three, sim):
    first, *others = all_three
    shutil.rmtree(sim.root / f"node{first.number}" / f"sdb{first.number}" / "accounts")
    first.asks()
    for _ in range(2):
        for other in others:
            other.asks()
    assert files(first)
    while sum(each.asks() for each in all_three):
        continue


def test_a_database_that_was_moved_away_is_brought_again(all_three):
    first, *others = all_three
    shutil.rmtree(files(first)[0].parent)
    first.asks()
    for other in others:
        other.asks()
    assert files(first)


def test_a_node_that_did_not_hear_of_a_loss_hears_it_later(all_three, sim):
    first, *others = all_three
    shutil.rmtree(files(first)[0].parent)
    with sim.refusing("account", others[0].number), sim.refusing("account", others[1].number):
        first.asks()
    others[0].asks()
    assert not files(first)
    first.asks()
    others[0].asks()
    assert files(first)
