"""The lines of swift-recon: figures of those who gave them, and times that may be any number."""

import pytest

from swift.operations.recon.client import Host, ReconReply
from swift.operations.recon.report import ReconReport, age_text, clock_text, size_text, statistics

HOST = Host("10.0.0.1", 6200)


@pytest.fixture
def lines(capsys):
    return lambda: capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01 00:00:00"),
        (1402436408.9, "2014-06-10 21:40:08"),
        (-1, "1969-12-31 23:59:59"),
        (1e17, "1e+17 s"),
        (-1e300, "-1e+300 s"),
        (float("inf"), "inf s"),
        (float("nan"), "nan s"),
    ],
)
def test_a_moment_in_any_year(seconds, text):
    assert clock_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "-5 seconds ago"),
        (0.9, "0 seconds ago"),
        (59.9, "59 seconds ago"),
        (60, "1 minutes ago"),
        (3599, "59 minutes ago"),
        (86399, "23 hours ago"),
        (172800, "2 days ago"),
    ],
)
def test_an_age_is_told_in_the_greatest_unit_that_fits(seconds, text):
    assert age_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_999_999, "1 MB"), (10**30, "1000000 YB")],
)
def test_sizes_are_told_in_units_of_a_thousand(count, text):
    assert size_text(count) == text


def test_figures_are_of_those_who_gave_them():
    assert statistics([1, None, 4.5]) == {
        "low": 1,
        "high": 4.5,
        "average": 2.75,
        "total": 5.5,
        "perc_none": pytest.approx(100 / 3),
        "number_none": 1,
        "reported": 2,
    }
    assert statistics([]) is statistics([None]) is None


def test_a_line_of_figures(lines):
    report = ReconReport(prints=True)
    report.stats("a", [1, None, 4.5], key="b")
    report.stats("c", [None])
    assert lines() == [
        "[a] low: 1, high: 4, avg: 2.8, total: 5, Failed: 33.3%, no_result: 1, reported: 2",
        "[c] - No hosts returned valid data.",
    ]
    assert (report.facts["b"]["total"], report.facts["c"]) == (5.5, None)


@pytest.mark.parametrize(("options", "told"), [({}, 1), ({"suppress": True}, 0), ({"verbose": True}, 2)])
def test_errors_are_told_unless_they_are_not_wanted_and_kept_anyway(lines, options, told):
    report = ReconReport(prints=True, **options)
    good = ReconReply(HOST, "http://a", {"x": 1})
    assert report.record([ReconReply(HOST, "http://b", error="gone"), good]) == [good]
    assert (len(lines()), report.facts) == (told, {"errors": {"http://b": "gone"}})


def test_who_completed_longest_ago_and_who_never(lines):
    report = ReconReport(prints=True)
    report.completions({})
    assert (lines(), report.facts) == ([], {})
    report.completions({"a": 0, "b": 1402436408.9, "c": 5.0})
    oldest, newest = lines()
    assert oldest == "Oldest completion was NEVER by a."
    assert newest.startswith("Most recent completion was 2014-06-10 21:40:08 (") and newest.endswith(" by b.")
    ReconReport(prints=True).completions({"a": 1e17})
    assert "1e+17 s" in lines()[0]


def test_a_report_for_programs_prints_nothing(lines):
    report = ReconReport(prints=False, verbose=True)
    report.print_heading("x")
    report.print_verbose("y")
    report.matched(1, 2, 1, "ok")
    report.print_rule()
    assert (lines(), report.facts) == ([], {"hosts": {"ok": 1, "of": 2, "errors": 1}})
