"""A run, or two, as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape

from swift.load import plots
from swift.load.compare import Difference, change_text
from swift.load.savedruns import SavedPhase, SavedRun
from swift.load.summary import OperationRow, PhaseCosts

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #f5f7f9; margin: 0; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 48px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 32px 0 10px; }
p { margin: 4px 0 12px; color: #4a5764; }
.facts { display: flex; flex-wrap: wrap; gap: 12px; margin: 18px 0; }
.fact { background: #fff; border: 1px solid #dfe5ea; border-radius: 8px;
  padding: 10px 16px; min-width: 110px; }
.fact b { display: block; font-size: 21px; font-variant-numeric: tabular-nums; }
.fact span { color: #6a7784; font-size: 13px; }
.card { background: #fff; border: 1px solid #dfe5ea; border-radius: 8px;
  padding: 12px 16px; overflow-x: auto; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr));
  gap: 14px; margin-top: 14px; }
svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th { text-align: right; font-weight: 600; color: #5a6774; padding: 5px 9px;
  border-bottom: 2px solid #dfe5ea; }
td { text-align: right; border-bottom: 1px solid #edf0f3; padding: 5px 9px; white-space: nowrap; }
th.text, td.text { text-align: left; } tr:last-child td { border-bottom: 0; }
.bad { color: #b3261e; } .good { color: #1c7a45; }
.warn { background: #fff4df; padding: 10px 16px; border-radius: 8px; }
"""
ROW_TITLES = {
    "phase": "phase",
    "operation": "operation",
    "count": "done",
    "failed": "failed",
    "per_second": "ops/s",
    "mb_per_second": "MB/s",
    "mean_ms": "mean ms",
    "p50_ms": "p50",
    "p90_ms": "p90",
    "p95_ms": "p95",
    "p99_ms": "p99",
    "p99_9_ms": "p99.9",
    "max_ms": "max",
    "errors": "errors",
}
COST_TITLES = {
    "phase": "phase",
    "seconds": "seconds",
    "load_cpu_s": "load CPU s",
    "load_share": "of servers'",
    "server_cpu_s": "server CPU s",
    "server_memory_mb": "memory MB",
    "disk_read_mb": "disk read MB",
    "disk_written_mb": "written MB",
    "network_mb": "network MB",
    "watts": "W",
    "per_cpu_second": "ops/CPU s",
    "per_joule": "ops/J",
    "per_cost": "ops/cost",
    "late": "late",
    "latest_s": "latest s",
}


def run_page(saved: SavedRun) -> str:
    """Return the report of one run."""
    parts = [f"<h1>{escape(saved.workload)}</h1><p>{escape(saved.description)}</p>"]
    if saved.is_interrupted:
        parts.append('<p class="warn">Interrupted: the figures are of what was done until then.</p>')
    mains = [phase for phase in saved.phases if phase.kind == "main"]
    parts += [_phase(phase, [row for row in saved.rows if row.phase == phase.name]) for phase in mains]
    parts.append("<h2>All phases</h2>" + _rows(saved.rows))
    parts.append(
        "<h2>What it cost</h2><p>Servers are those that run on the machine of the load; network is that of "
        "all interfaces of the machine; late are operations of an open loop that began after their time.</p>"
    )
    parts.append(_costs(saved.costs))
    return html_page(saved.workload, parts)


def comparison_page(a: SavedRun, b: SavedRun, names: tuple[str, str], found: Sequence[Difference]) -> str:
    """Return the report of two runs side by side."""
    parts = [
        f"<h1>{escape(names[0])} and {escape(names[1])}</h1>",
        f"<p>A is {escape(a.workload)} from {escape(names[0])}, B is {escape(b.workload)} from "
        f"{escape(names[1])}. Changes are relative to A, with their 95 % confidence interval.</p>",
        _differences(found),
    ]
    others = {(phase.name, phase.kind): phase for phase in b.phases}
    for phase in a.phases:
        other = others.get((phase.name, phase.kind))
        if phase.kind == "main" and other is not None:
            both = {f"A {name}": one for name, one in phase.result.operations.items()}
            both |= {f"B {name}": one for name, one in other.result.operations.items()}
            seconds = max(phase.result.seconds, other.result.seconds)
            drawn = (plots.percentile_plot(both), plots.throughput_plot(both, seconds))
            parts.append(f"<h2>{escape(phase.name)}</h2>{plots_html(drawn)}")
    return html_page(f"{names[0]} and {names[1]}", parts)


def html_page(title: str, parts: Iterable[str]) -> str:
    """Return a page of HTML with these parts of its body."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - swift-load</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _phase(phase: SavedPhase, rows: Sequence[OperationRow]) -> str:
    result = phase.result
    loop = "closed loop" if phase.rate is None else f"open loop, {phase.rate:g}/s"
    facts = [
        (f"{sum(row.per_second for row in rows):,.0f}", "operations/s"),
        (f"{sum(row.mb_per_second for row in rows):,.1f}", "MB/s"),
        (f"{max((row.p50_ms for row in rows), default=0):,.1f} ms", "p50 of the slowest operation"),
        (f"{max((row.p99_ms for row in rows), default=0):,.1f} ms", "p99 of the slowest operation"),
        (f"{sum(row.failed for row in rows):,}", "failed"),
        (f"{result.seconds:,.1f} s", f"{phase.clients} clients, {loop}"),
    ]
    shown = "".join(f'<div class="fact"><b>{value}</b><span>{name}</span></div>' for value, name in facts)
    drawn = [
        plots.percentile_plot(result.operations),
        plots.throughput_plot(result.operations, result.seconds),
    ]
    drawn += [
        plots.heat_map(name, one, result.seconds)
        for name, one in sorted(result.operations.items())
        if one.count
    ]
    return f'<h2>{escape(phase.name)}</h2><div class="facts">{shown}</div>{plots_html(drawn)}'


def plots_html(drawn: Iterable[str]) -> str:
    """Return SVGs beside each other."""
    return f'<div class="plots">{"".join(f"<div class=card>{one}</div>" for one in drawn)}</div>'


def _rows(rows: Sequence[OperationRow]) -> str:
    cells = [[getattr(row, field.name) for field in fields(OperationRow)] for row in rows]
    return html_table([ROW_TITLES[field.name] for field in fields(OperationRow)], cells)


def _costs(costs: Sequence[PhaseCosts]) -> str:
    cells = [
        [
            _percent(one.load_share) if field.name == "load_share" else getattr(one, field.name)
            for field in fields(PhaseCosts)
        ]
        for one in costs
    ]
    return html_table([COST_TITLES[field.name] for field in fields(PhaseCosts)], cells)


def _percent(part: float | None) -> str | None:
    return None if part is None else f"{part:.0%}"


def _differences(found: Sequence[Difference]) -> str:
    titles = ("phase", "operation", "figure", "A", "B", "change", "95 % interval", "verdict")
    cells = [
        [
            one.phase,
            one.operation,
            one.figure,
            one.a,
            one.b,
            change_text(one.change),
            f"{change_text(one.low)} to {change_text(one.high)}" if one.low is not None else "-",
            one.verdict,
        ]
        for one in found
    ]
    return html_table(titles, cells)


def html_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; columns that are all text are set to the left."""
    is_text = [all(isinstance(row[at], str) for row in rows) for at in range(len(titles))]
    classes = [' class="text"' if text else "" for text in is_text]
    head = "".join(f"<th{kind}>{escape(title)}</th>" for title, kind in zip(titles, classes, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell(value, kind) for value, kind in zip(row, classes, strict=True))}</tr>"
        for row in rows
    )
    return f'<div class="card"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: object, kind: str) -> str:
    if value in ("better", "worse"):
        kind = f' class="text {"good" if value == "better" else "bad"}"'
    if value is None:
        text = "–"
    elif isinstance(value, float):
        text = f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
    else:
        text = f"{value:,}" if isinstance(value, int) else str(value)
    return f"<td{kind}>{escape(text)}</td>"
