"""The figures of a run, in rows, CSV and JSON; also of runs in which nothing was done."""

import csv
import io
import json

import pytest

from swift.load.measure import PhaseResult
from swift.load.runs import LoadRun, PhaseRun
from swift.load.servers import ResourceUsage
from swift.load.summary import operation_rows, phase_costs, to_csv, to_json
from swift.load.workload import parse

WORKLOAD = parse('name = "w"\n[[phase]]\nkind = "main"\nseconds = 2\nmix = {get = 1, put = 1}\n', "w")


def result_of(count=10, seconds=2.0, errors=()):
    result = PhaseResult()
    result.seconds = seconds
    for number in range(count):
        result.of("get").add(number % 2, 0.01, 1000, None)
    for error in errors:
        result.of("get").add(0, 0.5, 0, error)
    return result


def run_of(result, usage=None):
    return LoadRun(WORKLOAD, [PhaseRun(WORKLOAD.phases[0], result, usage)])


def usage(**more):
    facts = {"cpu_s": 4.0, "memory": 5_000_000, "disk_read": 0, "disk_written": 2_000_000, "processes": 3}
    return ResourceUsage(**{"seconds": 2.0, **facts, "network": 7_000_000, "joules": 20.0, **more})


def test_rates_are_by_the_time_of_the_phase_and_failures_apart():
    (row,) = operation_rows(run_of(result_of(errors=["503", "503", "timed out"])))
    assert (row.phase, row.operation, row.count, row.failed) == ("main", "get", 10, 3)
    assert row.per_second == 5.0 and row.mb_per_second == 0.005
    assert row.errors == "503: 2, timed out: 1"
    assert 9 < row.p50_ms <= row.p90_ms <= row.p99_ms <= row.max_ms < 11


@pytest.mark.parametrize("result", [PhaseResult(), result_of(0, 0.0, ["refused"])])
def test_a_phase_without_time_or_success_has_figures_too(result):
    run = run_of(result)
    found = to_json(run, 1.0)
    json.dumps(found, allow_nan=False)
    assert all(row.count == 0 == row.p99_ms for row in operation_rows(run))
    assert to_csv(operation_rows(run)).startswith("phase,operation,count,")


def test_costs_are_by_what_servers_used():
    (one,) = phase_costs(run_of(result_of(), usage()), 3600.0)
    assert (one.server_cpu_s, one.watts, one.per_cpu_second, one.per_joule) == (4.0, 10.0, 2.5, 0.5)
    assert one.per_cost == pytest.approx(5.0)
    assert (one.server_memory_mb, one.disk_written_mb, one.network_mb) == (5.0, 2.0, 7.0)


@pytest.mark.parametrize("seen", [None, usage(cpu_s=0.0, joules=None, seconds=0.0)])
def test_what_nobody_knows_is_left_open(seen):
    (one,) = phase_costs(run_of(result_of(), seen), None)
    assert (one.watts, one.per_cpu_second, one.per_joule, one.per_cost, one.load_share) == (None,) * 5


def test_a_price_of_a_phase_without_time_is_no_division_by_zero():
    (one,) = phase_costs(run_of(result_of(0, 0.0)), 5.0)
    assert one.per_cost is None


def test_csv_is_read_back_whatever_errors_say():
    text = to_csv(operation_rows(run_of(result_of(errors=['a "quoted", thing\nand more']))))
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["errors"] == 'a "quoted", thing\nand more: 1' and row["count"] == "10"
