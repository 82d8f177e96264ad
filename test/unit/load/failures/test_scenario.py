"""A failure comes, goes, and is waited for, beside a load; figures are of the three times."""

import threading

import pytest

from swift.base.errors import ConfigError, SwiftError
from swift.base.timestamp import Timestamp
from swift.load.failures.copies import MissingReplicas
from swift.load.failures.scenario import FaultResult, FaultScenario, PhaseDurations
from swift.load.failures.targets import Failure, Target
from test.support.load_runs import with_result

TIMES = PhaseDurations(0.05, 0.05, 0.05, 5.0)
KEY = 0, 7, "0" * 32


class Main:
    kind = "main"


class Prepare:
    kind = "prepare"


class Site:
    def __init__(self, error=None):
        self.did = []
        self._error = error

    def fail(self, failure, targets):
        if self._error is not None:
            raise self._error
        self.did.append(("fail", failure.way, list(targets)))

    def repair(self):
        self.did.append("repair")


class Copies:
    """Lacks so many copies at each look."""

    def __init__(self, *lacking):
        self._lacking = list(lacking)

    def versions(self):
        return {KEY: Timestamp("1500000000.00000")}

    def missing_replicas(self, versions):
        copies = self._lacking.pop(0) if len(self._lacking) > 1 else self._lacking[0]
        return MissingReplicas(copies, min(copies, 1), len(versions))


@pytest.fixture
def trial():
    return FaultResult(Failure("nodes", "kill", 25), [Target(2)])


def run_scenario(trial, site, copies, phases=(Prepare, Main), times=TIMES):
    seen = []
    scenario = FaultScenario(site, copies, trial, times, lambda *words: seen.append(words))
    for phase in phases:
        scenario.watch(phase, {}, 0.0)
    scenario.finish()
    assert len(seen) == len(phases)
    return trial


def test_it_fails_is_repaired_and_is_whole(trial):
    site = Site()
    run_scenario(trial, site, Copies(0))
    assert site.did == [("fail", "kill", [Target(2)]), "repair"]
    assert 0.05 <= trial.began_s < trial.repaired_s
    assert trial.whole_s is not None and trial.lacked.copies == 0


def test_what_never_becomes_whole_is_given_up_and_said(trial):
    run_scenario(trial, Site(), Copies(3), times=PhaseDurations(0.01, 0.01, 0.01, 0.0))
    assert trial.whole_s is None and trial.lacks.copies == 3


def test_a_failure_that_cannot_be_made_is_an_error_at_the_end(trial):
    with pytest.raises(SwiftError, match="25 % of nodes by kill: no such device"):
        run_scenario(trial, Site(ConfigError("no such device")), Copies(0))


def test_without_a_main_phase_nothing_fails(trial):
    site = Site()
    run_scenario(trial, site, Copies(0), phases=(Prepare,))
    assert site.did == [] and threading.active_count() < 50


def test_figures_are_of_the_time_before_during_and_after(trial):
    windows = with_result(trial).windows
    assert [(w.name, w.per_second, w.failed) for w in windows] == [
        ("before", 10.0, 0),
        ("during", 5.0, 10),
        ("after", 10.0, 0),
    ]
    assert all(10 <= w.p50_ms < 13 for w in windows)
    assert windows[1].mb_per_second == 0.005
