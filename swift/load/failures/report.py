"""Failures in a table, as JSON, and as one page of HTML with plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from rich.console import Console
from rich.table import Table

from swift.load import plots
from swift.load.failures.scenario import FaultResult, MissingReplicas, PhaseDurations
from swift.load.report import html_page, html_table, plots_html

TITLES = (
    *("failure", "", "ops/s", "of before", "MB/s", "failed", "p50 ms", "p99 ms"),
    *("lacked when mended", "whole after"),
)


def table_rows(trials: Sequence[FaultResult]) -> list[list[object]]:
    """Return the cells of the table, three rows a failure."""
    found: list[list[object]] = []
    for trial in trials:
        before = trial.windows[0].per_second
        for window in trial.windows:
            is_first, is_last = window is trial.windows[0], window is trial.windows[-1]
            found.append(
                [
                    str(trial.failure) if is_first else "",
                    window.name,
                    window.per_second,
                    f"{window.per_second / before:.0%}" if before else "",
                    window.mb_per_second,
                    window.failed,
                    window.p50_ms,
                    window.p99_ms,
                    str(trial.lacked) if is_last and trial.lacked else "",
                    _time_until_whole(trial) if is_last else "",
                ]
            )
    return found


def _time_until_whole(trial: FaultResult) -> str:
    if trial.whole_s is not None:
        return f"{trial.whole_s:.0f} s"
    return f"not yet: {trial.lacks}" if trial.lacks else "unknown"


def print_table(console: Console, trials: Sequence[FaultResult]) -> None:
    """Print the table on a terminal."""
    table = Table(title="failures under load")
    for title in TITLES:
        table.add_column(title, justify="left" if title in TITLES[:2] else "right")
    for row in table_rows(trials):
        cells = [f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row]
        table.add_row(*cells, end_section=row[1] == "after")
    console.print(table)


def to_json(
    trials: Sequence[FaultResult], times: PhaseDurations, facts: dict[str, object]
) -> dict[str, object]:
    """Return all results for programs."""

    def lack(found: MissingReplicas | None) -> object:
        return None if found is None else asdict(found)

    return {
        **facts,
        "times": asdict(times),
        "trials": [
            {
                "failure": asdict(trial.failure),
                "victims": [str(target) for target in trial.targets],
                "windows": [asdict(window) for window in trial.windows],
                "began_s": trial.began_s,
                "mended_s": trial.repaired_s,
                "lacked": lack(trial.lacked),
                "lacks": lack(trial.lacks),
                "whole_s": trial.whole_s,
                "errors": {name: dict(one.errors) for name, one in trial.result.operations.items()},
                "seconds": {
                    name: {at: [s.count, s.bytes, s.failed] for at, s in sorted(one.seconds.items())}
                    for name, one in trial.result.operations.items()
                },
            }
            for trial in trials
        ],
    }


def failures_page(trials: Sequence[FaultResult], times: PhaseDurations, facts: dict[str, object]) -> str:
    """Return the report as one self-contained page."""
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    drawn = [
        plots.failure_plot(
            trial.result.operations, times.load, (trial.began_s, trial.repaired_s), f"{trial.failure}"
        )
        for trial in trials
    ]
    title = "Failures under load"
    times_told = f"{times.before:g} s before, {times.during:g} s during, {times.after:g} s after"
    return html_page(
        title,
        [
            f"<h1>{title}</h1><p>{escape(told)}; {times_told}</p>",
            html_table(TITLES, table_rows(trials)),
            plots_html(drawn),
        ],
    )
