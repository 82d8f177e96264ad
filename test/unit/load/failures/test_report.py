"""Failures as a table, as JSON and as a page: the same figures, and names that cannot break the page."""

import io
import json

import pytest
from rich.console import Console

from swift.load.failures import report
from swift.load.failures.copies import MissingReplicas
from swift.load.failures.scenario import FaultResult, PhaseDurations, Window
from swift.load.failures.targets import Failure, Target
from test.support.load_runs import with_result

TIMES = PhaseDurations(10, 10, 10, 60)


@pytest.fixture
def trial():
    return FaultResult(Failure("nodes", "kill", 25), [Target(2)])


def test_the_table_the_page_and_the_json_say_the_same(trial):
    trials, times, facts = [with_result(trial)], PhaseDurations(10, 10, 10, 60), {"nodes": 4}
    text = io.StringIO()
    report.print_table(Console(file=text, width=200), trials)
    assert "25 % of nodes by kill" in text.getvalue() and "50%" in text.getvalue()
    page = report.failures_page(trials, times, facts)
    assert "7 copies of 4 of 100 objects are missing" in page and page.count("<svg") == 1
    found = report.to_json(trials, times, facts)
    assert found["trials"][0]["whole_s"] == 12.0 and found["nodes"] == 4
    assert found["trials"][0]["errors"] == {"put": {"503": 10}}


def test_a_cluster_that_is_not_whole_is_not_called_so(trial):
    made = with_result(trial)
    made.whole_s, made.lacks = None, MissingReplicas(2, 1, 100)
    assert "not yet: 2 copies of 1 of 100 objects are missing" in report.failures_page([made], TIMES, {})


def test_a_failure_has_a_row_for_each_time_and_is_named_once(trial):
    rows = report.table_rows([with_result(trial)])
    assert [row[0] for row in rows] == ["25 % of nodes by kill", "", ""]
    assert [row[3] for row in rows] == ["100%", "50%", "100%"]
    assert all(len(row) == len(report.TITLES) for row in rows)


def test_where_nothing_was_done_before_nothing_is_compared(trial):
    trial.windows = [
        Window(name, 1.0, rate, 0.0, 0, 0.0, 0.0) for name, rate in (("before", 0.0), ("after", 5.0))
    ]
    assert [row[3] for row in report.table_rows([trial])] == ["", ""]
    assert report.table_rows([trial])[-1][-1] == "unknown"
    json.dumps(report.to_json([trial], TIMES, {}))


def test_names_on_the_page_are_text(trial):
    page = report.failures_page([with_result(trial)], TIMES, {"<script>": "<b>"})
    assert "&lt;script&gt; &lt;b&gt;" in page and "<script>" not in page


def test_no_trials_make_an_empty_table():
    text = io.StringIO()
    report.print_table(Console(file=text, width=200), [])
    assert "failures under load" in text.getvalue()
    assert "<tbody></tbody>" in report.failures_page([], TIMES, {})
