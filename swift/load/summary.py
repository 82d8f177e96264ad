"""The figures of a run in rows: what every report shows, whether in a terminal, JSON, CSV or HTML."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, fields

from swift.load.measure import PERCENTILES, OperationResult
from swift.load.runs import LoadRun, PhaseRun


@dataclass(frozen=True)
class OperationRow:
    """One operation of one phase."""

    phase: str
    operation: str
    count: int
    failed: int
    per_second: float
    mb_per_second: float
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    p99_9_ms: float
    max_ms: float
    errors: str


@dataclass(frozen=True)
class PhaseCosts:
    """Resources that one phase took from the servers and from the load generator."""

    phase: str
    seconds: float
    #: CPU seconds of the load, and its share of those of the servers.
    load_cpu_s: float
    load_share: float | None
    server_cpu_s: float | None
    server_memory_mb: float | None
    disk_read_mb: float | None
    disk_written_mb: float | None
    network_mb: float | None
    watts: float | None
    per_cpu_second: float | None
    per_joule: float | None
    per_cost: float | None
    late: int
    latest_s: float


def operation_rows(run: LoadRun) -> list[OperationRow]:
    """Return the rows of all phases."""
    return [
        _operation_row(ran, name, result)
        for ran in run.phases
        for name, result in sorted(ran.result.operations.items())
    ]


def _operation_row(ran: PhaseRun, name: str, result: OperationResult) -> OperationRow:
    seconds = max(ran.result.seconds, 1e-9)
    p50, p90, p95, p99, p99_9, most = (result.latency_ms(percentile) for percentile in (*PERCENTILES, 100))
    return OperationRow(
        ran.phase.name,
        name,
        result.count,
        result.failed,
        result.count / seconds,
        result.bytes / seconds / 1e6,
        result.mean_ms,
        p50,
        p90,
        p95,
        p99,
        p99_9,
        most,
        errors=", ".join(f"{kind}: {count}" for kind, count in result.errors.most_common()),
    )


def phase_costs(run: LoadRun, price_per_hour: float | None) -> list[PhaseCosts]:
    """Return the cost of each phase; ``price_per_hour`` is that of all servers."""
    return [_phase_costs(ran, price_per_hour) for ran in run.phases]


def _phase_costs(ran: PhaseRun, price_per_hour: float | None) -> PhaseCosts:
    result, usage = ran.result, ran.usage
    count = result.count
    cpu_s = usage.cpu_s if usage is not None else None
    cost = None if price_per_hour is None else price_per_hour * result.seconds / 3600
    return PhaseCosts(
        phase=ran.phase.name,
        seconds=result.seconds,
        load_cpu_s=result.load_cpu_s,
        load_share=result.load_cpu_s / cpu_s if cpu_s else None,
        server_cpu_s=cpu_s,
        server_memory_mb=None if usage is None else usage.memory / 1e6,
        disk_read_mb=None if usage is None else usage.disk_read / 1e6,
        disk_written_mb=None if usage is None else usage.disk_written / 1e6,
        network_mb=None if usage is None else usage.network / 1e6,
        watts=None if usage is None or usage.joules is None else usage.joules / max(usage.seconds, 1e-9),
        per_cpu_second=count / cpu_s if cpu_s else None,
        per_joule=count / usage.joules if usage is not None and usage.joules else None,
        per_cost=count / cost if cost else None,
        late=result.late,
        latest_s=result.latest_s,
    )


def to_csv(rows: list[OperationRow]) -> str:
    """Return the rows as CSV, with a line of names."""
    text = io.StringIO()
    table = csv.DictWriter(text, [field.name for field in fields(OperationRow)], lineterminator="\n")
    table.writeheader()
    table.writerows(asdict(row) for row in rows)
    return text.getvalue()


def to_json(run: LoadRun, price_per_hour: float | None) -> dict[str, object]:
    """Return the whole run: the figures, and what they were made of, so that two runs can be compared."""
    return {
        "workload": run.workload.name,
        "description": run.workload.description,
        "interrupted": run.is_interrupted,
        "left": run.left,
        "no_watts": run.no_watts,
        "rows": [asdict(row) for row in operation_rows(run)],
        "costs": [asdict(costs) for costs in phase_costs(run, price_per_hour)],
        "phases": [
            {
                "name": ran.phase.name,
                "kind": ran.phase.kind,
                "clients": ran.phase.clients,
                "rate": ran.phase.rate,
                "measured": ran.result.to_json(),
            }
            for ran in run.phases
        ],
    }
