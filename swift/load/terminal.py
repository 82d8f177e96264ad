"""The live table of a run, and the table at its end."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.live import Live
from rich.table import Table

from swift.load.compare import Difference, change_text
from swift.load.runs import LoadRun
from swift.load.summary import OperationRow, PhaseCosts, operation_rows, phase_costs
from swift.load.workerpool import Summaries
from swift.load.workload import Phase, Workload


class RunProgress:
    """Shows how far a run is; on anything but a terminal one line a phase."""

    def __init__(self, console: Console, workload: Workload):
        self._console = console
        self._workload = workload
        self._live: Live | None = None
        self._phase: Phase | None = None

    def __enter__(self) -> RunProgress:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, phase: Phase, summaries: Summaries, seconds: float) -> None:
        """Show the progress of the workers."""
        if self._live is not None:
            self._live.update(self._table(phase, _sum_summaries(summaries), seconds))
        elif phase is not self._phase:
            self._console.print(f"{self._workload.name}: {phase.name} ...")
        self._phase = phase

    def _table(self, phase: Phase, added: Mapping[str, list[float]], seconds: float) -> Table:
        title = (
            f"{self._workload.name}: {phase.name}, {seconds:.0f} s{self._time_left(phase, added, seconds)}"
        )
        table = Table(title=title)
        for name in ("operation", "done", "failed", "ops/s", "MB/s", "p50 ms", "p99 ms"):
            table.add_column(name, justify="left" if name == "operation" else "right")
        for name, (count, size, failed, p50, p99) in sorted(added.items()):
            rate = max(seconds, 1e-9)
            table.add_row(
                name,
                f"{count:.0f}",
                f"{failed:.0f}",
                f"{count / rate:.1f}",
                f"{size / rate / 1e6:.2f}",
                f"{p50:.1f}",
                f"{p99:.1f}",
            )
        return table

    def _time_left(self, phase: Phase, added: Mapping[str, list[float]], seconds: float) -> str:
        """Return the time that is left, as far as it can be known."""
        done = sum(one[0] + one[2] for one in added.values())
        total = self._workload.objects.count if phase.kind in ("prepare", "cleanup") else phase.operations
        estimates = []
        if phase.kind == "main" and phase.seconds is not None:
            estimates.append(phase.seconds - seconds)
        if total is not None and done:
            estimates.append((total - done) * seconds / done)
        return f", about {max(0.0, min(estimates)):.0f} s left" if estimates else ""


def _sum_summaries(summaries: Summaries) -> dict[str, list[float]]:
    """Return the sum over all workers; of their latencies the largest, as an estimate until the end."""
    found: dict[str, list[float]] = {}
    for one in summaries.values():
        for name, (count, size, failed, p50, p99) in one.items():
            sums = found.setdefault(name, [0.0] * 5)
            sums[:3] = [sums[0] + count, sums[1] + size, sums[2] + failed]
            sums[3:] = [max(sums[3], p50), max(sums[4], p99)]
    return found


def print_tables(console: Console, run: LoadRun, price_per_hour: float | None) -> None:
    """Print the tables at the end."""
    console.print(_rows_table(run.workload, operation_rows(run)))
    console.print(_costs_table(phase_costs(run, price_per_hour)))
    if run.no_watts:
        console.print(f"no watts: {run.no_watts}")
    if run.is_interrupted:
        console.print("interrupted: the figures are of what was done until then")
    if run.left:
        console.print(f"left in the store: containers {run.left}-*")


#: Below each table: the meaning of its columns.
ROWS_EXPLAINED = (
    "done, failed: requests. ops/s: done a second. MB/s: millions of bytes of bodies a second. "
    "mean, p50 … max: milliseconds from a request to the last byte of its answer; "
    "p90: 90 % of the requests took less"
)
COSTS_EXPLAINED = (
    "load CPU s: CPU seconds of this program, and their share of those of the servers. "
    "server CPU s, memory (peak), read, written, network: of the servers. W: mean power. "
    "ops/CPU s, ops/J, ops/cost: operations for a CPU second of the servers, a joule, a unit of --price. "
    "late: requests sent after their time. -: not known"
)


def _rows_table(workload: Workload, rows: list[OperationRow]) -> Table:
    table = Table(
        title=f"{workload.name}: {workload.description}", caption=ROWS_EXPLAINED, caption_justify="left"
    )
    for name in ("phase", "operation"):
        table.add_column(name)
    for name in ("done", "failed", "ops/s", "MB/s", "mean ms", "p50", "p90", "p99", "p99.9", "max"):
        table.add_column(name, justify="right")
    table.add_column("errors")
    for row in rows:
        latencies = (row.mean_ms, row.p50_ms, row.p90_ms, row.p99_ms, row.p99_9_ms, row.max_ms)
        table.add_row(
            row.phase,
            row.operation,
            str(row.count),
            str(row.failed),
            f"{row.per_second:.1f}",
            f"{row.mb_per_second:.2f}",
            *(f"{latency:.1f}" for latency in latencies),
            row.errors,
        )
    return table


def _costs_table(costs: list[PhaseCosts]) -> Table:
    table = Table(
        title="cost; of servers those on this machine", caption=COSTS_EXPLAINED, caption_justify="left"
    )
    table.add_column("phase")
    for name in (
        *("seconds", "load CPU s", "of servers", "server CPU s", "memory MB", "read MB", "written MB"),
        *("network MB", "W", "ops/CPU s", "ops/J", "ops/cost", "late"),
    ):
        table.add_column(name, justify="right")
    for one in costs:
        table.add_row(
            one.phase,
            f"{one.seconds:.1f}",
            f"{one.load_cpu_s:.1f}",
            "-" if one.load_share is None else f"{one.load_share:.0%}",
            *map(
                _format_or_dash,
                (one.server_cpu_s, one.server_memory_mb, one.disk_read_mb, one.disk_written_mb),
            ),
            *map(_format_or_dash, (one.network_mb, one.watts)),
            *map(_format_or_dash, (one.per_cpu_second, one.per_joule, one.per_cost)),
            f"{one.late} (to {one.latest_s:.2f} s)" if one.late else "0",
        )
    return table


def _format_or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def show_differences(console: Console, names: tuple[str, str], found: list[Difference]) -> None:
    """Print two runs side by side."""
    table = Table(title=f"A: {names[0]}   B: {names[1]}", caption="95 % confidence intervals of the change")
    for name in ("phase", "operation", "figure"):
        table.add_column(name)
    for name in ("A", "B", "change", "from", "to"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for one in found:
        changes = map(change_text, (one.change, one.low, one.high))
        figures = (f"{one.a:.2f}", f"{one.b:.2f}")
        table.add_row(one.phase, one.operation, one.figure, *figures, *changes, one.verdict)
    console.print(table)
