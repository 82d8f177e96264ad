"""The tables of a run: what is in brackets is shown, and nothing that is not known is made up."""

import io

import pytest
from rich.console import Console

from swift.load.commands import _console
from swift.load.compare import Difference
from swift.load.measure import PhaseResult
from swift.load.runs import LoadRun, PhaseRun
from swift.load.terminal import RunProgress, print_tables, show_differences
from swift.load.workload import parse

TEXT = """
name = "w[/w]"
description = "all [of] it [/it]"
[objects]
containers = 2
per_container = 50
[[phase]]
kind = "prepare"
[[phase]]
name = "m[/m]"
kind = "main"
seconds = 60
mix = {get = 1}
"""
WORKLOAD = parse(TEXT, "t")
PREPARE, MAIN = WORKLOAD.phases


def run_of(errors=(), **more):
    result = PhaseResult()
    result.seconds = 2.0
    result.of("get").add(0, 0.01, 1000, None)
    for error in errors:
        result.of("get").add(0, 0.01, 0, error)
    return LoadRun(WORKLOAD, [PhaseRun(MAIN, result)], **more)


def shown(run, price=None):
    text = io.StringIO()
    print_tables(Console(file=text, width=220, markup=False), run, price)
    return text.getvalue()


def test_names_and_errors_in_brackets_are_shown_as_they_are(capsys):
    # As the command makes its console: words in brackets are no markup there.
    print_tables(_console(True), run_of(["[Errno 111] [/refused]"]), None)
    text = capsys.readouterr().out
    assert "[Errno 111] [/refused]: 1" in text and "w[/w]: all [of] it [/it]" in text and "m[/m]" in text


def test_what_was_left_or_interrupted_or_is_not_known_is_said():
    text = shown(run_of(is_interrupted=True, left="load-1234", no_watts="nobody may read them"))
    assert "interrupted: the figures are of what was done until then" in text
    assert "left in the store: containers load-1234-*" in text
    assert "no watts: nobody may read them" in text
    assert "interrupted" not in shown(run_of()) and "left in" not in shown(run_of())


def test_costs_that_nobody_knows_are_dashes():
    line = next(line for line in shown(run_of()).splitlines() if "m[/m]" in line and " - " in line)
    assert line.count(" - ") >= 9


def test_every_column_is_explained():
    text = shown(run_of())
    for name in ("ops/s", "MB/s", "p50", "ops/CPU s", "ops/J", "W", "late"):
        assert f"{name}:" in text or f"{name}," in text or f"{name} …" in text, name


def test_where_there_is_no_terminal_each_phase_is_one_line():
    text = io.StringIO()
    with RunProgress(Console(file=text, width=220, markup=False), WORKLOAD) as progress:
        for phase in (PREPARE, PREPARE, MAIN, MAIN):
            progress(phase, {}, 1.0)
    assert text.getvalue().splitlines() == ["w[/w]: prepare ...", "w[/w]: m[/m] ..."]


@pytest.mark.parametrize(
    ("phase", "seconds", "left"),
    [(MAIN, 20.0, "about 40 s left"), (MAIN, 99.0, "about 0 s left"), (PREPARE, 10.0, "about 30 s left")],
)
def test_on_a_terminal_all_workers_are_added_up_and_the_rest_is_estimated(phase, seconds, left):
    text = io.StringIO()
    console = Console(file=text, width=220, markup=False, force_terminal=True)
    summaries = {0: {"get": [10.0, 5e6, 2.0, 1.0, 9.0]}, 1: {"get": [10.0, 5e6, 3.0, 2.0, 8.0]}}
    progress = RunProgress(console, WORKLOAD)
    with progress:
        progress(phase, summaries, seconds)
        progress(phase, {}, 0.0)
        progress(phase, summaries, seconds)
    assert left in text.getvalue()
    assert " 20 " in text.getvalue() and " 5 " in text.getvalue() and "9.0" in text.getvalue()


def test_two_runs_stand_side_by_side():
    text = io.StringIO()
    one = Difference("m", "get", "ops/s", 100.0, 150.0, 0.5, 0.4, 0.6)
    show_differences(Console(file=text, width=220, markup=False), ("[a]", "[/b]"), [one])
    assert "A: [a]   B: [/b]" in text.getvalue() and "better" in text.getvalue()
    assert "100.00" in text.getvalue() and "50" in text.getvalue()
