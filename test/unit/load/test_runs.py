"""A run goes phase by phase, ends early when somebody asks for it, and removes what it made."""

import os
import signal

import pytest

from swift.load.endpoint import LoadEndpoint
from swift.load.measure import PhaseResult
from swift.load.runs import LoadRunner, RunFailed, RunPlan
from swift.load.servers import LocalServers
from swift.load.workload import parse

TEXT = """
[objects]
containers = 1
per_container = 2
[[phase]]
kind = "init"
[[phase]]
kind = "prepare"
[[phase]]
name = "reading"
kind = "main"
seconds = 5
mix = {get = 1}
[[phase]]
kind = "cleanup"
"""


class Workers:
    """Do what a table says, and remember what they were asked."""

    def __init__(self, shares=2, failing=(), during=None):
        self.shares, self.failing, self.during = shares, failing, during or {}
        self.ran, self.ended = [], 0

    def __len__(self):
        return self.shares

    def run(self, jobs, watch):
        assert [(job.share, job.shares) for job in jobs] == [(n, self.shares) for n in range(self.shares)]
        kind = jobs[0].workload.phases[jobs[0].phase].kind
        self.ran.append(kind)
        watch({})
        for _ in range(self.during.get(kind, 0)):
            os.kill(os.getpid(), signal.SIGINT)
        result = PhaseResult()
        result.seconds = 1.0
        error = "503" if kind in self.failing else None
        result.of({"main": "get"}.get(kind, kind)).add(0, 0.01, 10, error)
        return result

    def end_phase(self):
        self.ended += 1


def runner(workers, *, keep=False, watched=None):
    workload = parse(TEXT, "t")
    # Port 9 of an address for documentation: no servers are seen there.
    plan = RunPlan(workload, TEXT, {}, LoadEndpoint("http://192.0.2.1:9/v1/a", "t"), keep)
    seen = [] if watched is None else watched
    return LoadRunner(
        plan, workers, LocalServers(plan.endpoint), lambda phase, _s, at_s: seen.append((phase.kind, at_s))
    )


def test_all_phases_run_in_order_and_are_watched():
    workers, watched = Workers(), []
    done = runner(workers, watched=watched).run()
    assert workers.ran == ["init", "prepare", "main", "cleanup"]
    assert [ran.phase.kind for ran in done.phases] == workers.ran == [kind for kind, _ in watched]
    assert all(at_s >= 0 for _, at_s in watched)
    assert not done.is_interrupted and done.left == ""


def test_two_runs_use_containers_of_different_names():
    names = {runner(Workers(), keep=True).run().left for _ in range(20)}
    assert len(names) == 20 and all(name.startswith("load-") for name in names)


def test_what_is_to_be_kept_is_not_removed_and_named():
    workers = Workers()
    done = runner(workers, keep=True).run()
    assert "cleanup" not in workers.ran and done.left


def test_what_could_not_be_removed_is_named():
    assert runner(Workers(failing=["cleanup"])).run().left


def test_without_a_container_nothing_else_is_tried():
    workers = Workers(failing=["init"])
    with pytest.raises(RunFailed, match="no container can be made: 503"):
        runner(workers).run()
    assert workers.ran == ["init"]


def test_an_interrupt_ends_the_phase_skips_the_rest_and_still_removes():
    workers = Workers(during={"prepare": 1})
    done = runner(workers).run()
    assert workers.ended == 1 and workers.ran == ["init", "prepare", "cleanup"]
    assert done.is_interrupted and done.left == ""


def test_an_interrupt_of_the_removal_lets_it_go_on():
    workers = Workers(during={"cleanup": 1})
    done = runner(workers).run()
    assert workers.ended == 0 and done.is_interrupted and done.left == ""


def test_a_second_interrupt_ends_all():
    with pytest.raises(KeyboardInterrupt):
        runner(Workers(during={"main": 2})).run()


def test_signals_are_afterwards_handled_as_before():
    before = signal.getsignal(signal.SIGINT)
    runner(Workers()).run()
    with pytest.raises(RunFailed):
        runner(Workers(failing=["init"])).run()
    assert signal.getsignal(signal.SIGINT) is before
