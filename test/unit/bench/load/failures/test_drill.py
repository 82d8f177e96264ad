"""A failure comes, goes, and is waited for, beside a load; figures are of the three times."""

import io
import threading

import pytest
from rich.console import Console

from swift.base.errors import ConfigError, SwiftError
from swift.base.timestamp import Timestamp
from swift.bench.load.failures import report
from swift.bench.load.failures.choice import Failure, Victim
from swift.bench.load.failures.copies import Lack
from swift.bench.load.failures.drill import Drill, Times, Trial, windows_of
from swift.bench.load.measure import OperationResult

TIMES = Times(0.05, 0.05, 0.05, 5.0)
KEY = 0, 7, "0" * 32


class Main:
    kind = "main"


class Prepare:
    kind = "prepare"


class Site:
    def __init__(self, error=None):
        self.did = []
        self._error = error

    def fail(self, failure, victims):
        if self._error is not None:
            raise self._error
        self.did.append(("fail", failure.way, list(victims)))

    def mend(self):
        self.did.append("mend")


class Copies:
    """Lacks so many copies at each look."""

    def __init__(self, *lacking):
        self._lacking = list(lacking)

    def versions(self):
        return {KEY: Timestamp("1500000000.00000")}

    def lacking(self, versions):
        copies = self._lacking.pop(0) if len(self._lacking) > 1 else self._lacking[0]
        return Lack(copies, min(copies, 1), len(versions))


@pytest.fixture
def trial():
    return Trial(Failure("nodes", "kill", 25), [Victim(2)])


def drilled(trial, site, copies, phases=(Prepare, Main), times=TIMES):
    seen = []
    drill = Drill(site, copies, trial, times, lambda *words: seen.append(words))
    for phase in phases:
        drill.watch(phase, {}, 0.0)
    drill.finish()
    assert len(seen) == len(phases)
    return trial


def test_it_fails_is_mended_and_is_whole(trial):
    site = Site()
    drilled(trial, site, Copies(0))
    assert site.did == [("fail", "kill", [Victim(2)]), "mend"]
    assert 0.05 <= trial.began_s < trial.mended_s
    assert trial.whole_s is not None and trial.lacked.copies == 0


def test_what_never_becomes_whole_is_given_up_and_said(trial):
    drilled(trial, Site(), Copies(3), times=Times(0.01, 0.01, 0.01, 0.0))
    assert trial.whole_s is None and trial.lacks.copies == 3


def test_a_failure_that_cannot_be_made_is_an_error_at_the_end(trial):
    with pytest.raises(SwiftError, match="25 % of nodes by kill: no such device"):
        drilled(trial, Site(ConfigError("no such device")), Copies(0))


def test_without_a_main_phase_nothing_fails(trial):
    site = Site()
    drilled(trial, site, Copies(0), phases=(Prepare,))
    assert site.did == [] and threading.active_count() < 50


def with_result(trial):
    one = OperationResult()
    for second in range(30):
        for _ in range(5 if 10 <= second < 20 else 10):
            one.add(second + 0.5, 0.010, 1000, None)
        if 10 <= second < 20:
            one.add(second + 0.5, 0.5, 0, "503")
    trial.result.operations["put"] = one
    trial.began_s, trial.mended_s = 10.0, 20.0
    trial.whole_s, trial.lacked = 12.0, Lack(7, 4, 100)
    trial.windows = windows_of(trial, Times(10, 10, 10, 60))
    return trial


def test_figures_are_of_the_time_before_during_and_after(trial):
    windows = with_result(trial).windows
    assert [(w.name, w.per_second, w.failed) for w in windows] == [
        ("before", 10.0, 0),
        ("during", 5.0, 10),
        ("after", 10.0, 0),
    ]
    assert all(10 <= w.p50_ms < 13 for w in windows)
    assert windows[1].mb_per_second == 0.005


def test_the_table_the_page_and_the_json_say_the_same(trial):
    trials, times, facts = [with_result(trial)], Times(10, 10, 10, 60), {"nodes": 4}
    text = io.StringIO()
    report.show(Console(file=text, width=200), trials)
    assert "25 % of nodes by kill" in text.getvalue() and "50%" in text.getvalue()
    page = report.page(trials, times, facts)
    assert "7 copies of 4 of 100 objects are missing" in page and page.count("<svg") == 1
    found = report.to_json(trials, times, facts)
    assert found["trials"][0]["whole_s"] == 12.0 and found["nodes"] == 4
    assert found["trials"][0]["errors"] == {"put": {"503": 10}}


def test_a_cluster_that_is_not_whole_is_not_called_so(trial):
    made = with_result(trial)
    made.whole_s, made.lacks = None, Lack(2, 1, 100)
    assert "not yet: 2 copies of 1 of 100 objects are missing" in report.page([made], TIMES, {})
