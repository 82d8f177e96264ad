"""A replicator asks no node about databases to which nothing has happened."""

import pytest

from swift.account.replicator import KIND as ACCOUNT
from swift.dbsync.daemon import DatabaseReplicator
from swift.runtime.daemon import Runner, Schedule
from swift.telemetry.recon import ReconFile
from test.support.ageddisk import AgedDisk
from test.support.replicators import Replicators


class LongRunning:
    """A replicator of one node that goes on from pass to pass."""

    def __init__(self, sim, number, tmp_path):
        replicators = Replicators(sim, tmp_path)
        fresh = replicators.task("account", number)
        self.sim = sim
        self.clock = replicators.clock
        self.task = DatabaseReplicator(fresh.context, fresh.ring, ACCOUNT, fresh.settings, disk=AgedDisk())
        self.recon = ReconFile(str(tmp_path), "account", fresh.context.telemetry.log)
        self.telemetry = fresh.context.telemetry

    def asks(self):
        """How many requests one pass makes."""
        self.sim.transport.requests.clear()
        runner = Runner(self.task, Schedule(30), telemetry=self.telemetry, recon=self.recon, clock=self.clock)
        assert runner.once()
        return sum(method == "REPLICATE" for _kind, _node, method, *_rest in self.sim.transport.requests)


@pytest.fixture
def replicator(sim, tmp_path):
    node = sim.primaries("account", "a")[0]
    made = LongRunning(sim, node, tmp_path)
    while made.asks() and not made.task._settled[f"sdb{node}"]._known:
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
