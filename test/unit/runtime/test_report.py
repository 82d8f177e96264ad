"""What daemons tell while they work: the same numbers everywhere, and no more often than asked for."""

import io
from types import SimpleNamespace

import pytest

from swift.base.clock import ManualClock
from swift.runtime.report import TERMINAL_S, Counters, Progress, PrometheusFile, stream_if_terminal
from swift.telemetry.metrics import CounterMetric, Registry


class Statsd:
    """What was sent."""

    def __init__(self):
        self.sent = []

    def increment(self, name, amount):
        self.sent.append((name, amount))

    def timing(self, name, seconds):
        self.sent.append((name, seconds))


class Lines:
    """A log."""

    def __init__(self):
        self.told = []

    def info(self, line):
        self.told.append(line)

    warning = info


@pytest.fixture
def telemetry():
    return SimpleNamespace(statsd=Statsd(), log=Lines(), metrics=Registry())


@pytest.fixture
def clock():
    return ManualClock(1000.0)


def test_an_event_is_counted_alike_everywhere(telemetry):
    counters = Counters(telemetry, "auditor")
    counters.add("passes")
    counters.add("passes", 2)
    assert counters.counts == {"passes": 3}
    assert sum(amount for _, amount in telemetry.statsd.sent) == 3
    assert 'swift_daemon_events_total{daemon="auditor",event="passes"} 3' in telemetry.metrics.render()


def test_what_was_counted_before_a_restart_is_told_to_nobody_again(telemetry):
    before = {"passes": 5}
    counters = Counters(telemetry, "auditor", before)
    counters.add("passes")
    assert str(counters) == "6 passes"
    assert (telemetry.statsd.sent, before) == ([("passes", 1)], {"passes": 5})


def test_a_count_and_a_time_are_signs_of_life(telemetry):
    counters = Counters(telemetry, "auditor")
    counters.add("failures", 0)
    counters.timing("read", 0.5)
    assert (counters.activity, telemetry.statsd.sent[-1]) == (2, ("read", 0.5))
    assert str(counters) == "0 failures"


def progress(telemetry, clock, **more):
    return Progress(telemetry, clock, title="sda", interval_s=60.0, **more)


def test_the_log_hears_of_a_share_once_an_interval(telemetry, clock):
    made, counters = progress(telemetry, clock), Counters(telemetry, "auditor")
    for _ in range(180):
        clock.advance(1.0)
        made.unit_done(counters)
    assert len(telemetry.log.told) == 3
    assert telemetry.log.told[0] == "sda: 60 done in 60.0s, 1.0/s"


def test_a_share_without_work_ends_in_silence(telemetry, clock):
    progress(telemetry, clock).end(Counters(telemetry, "auditor"))
    assert telemetry.log.told == []


def test_a_share_that_only_failed_is_told_of(telemetry, clock):
    counters = Counters(telemetry, "auditor")
    counters.add("errors")
    progress(telemetry, clock).end(counters)
    assert telemetry.log.told == ["sda: 0 done in 0.0s, 0.0/s; 1 errors; completed"]


def test_work_of_before_a_restart_counts_with_its_time(telemetry, clock):
    made = progress(telemetry, clock, units=10, bytes_read=30_000_000, seconds=5.0)
    clock.advance(5.0)
    made.unit_done(Counters(telemetry, "auditor"))
    made.end(Counters(telemetry, "auditor"))
    assert telemetry.log.told == ["sda: 11 done in 10.0s, 1.1/s, 3.0 MB/s; completed"]


def test_no_time_makes_no_rate(telemetry, clock):
    made = progress(telemetry, clock, bytes_read=5)
    assert made.summary_line(Counters(telemetry, "auditor")) == "sda: 0 done in 0.0s, 0.0/s"


def test_a_line_on_a_terminal_changes_now_and_then_and_fits(telemetry, clock):
    terminal = io.StringIO()
    made, counters = progress(telemetry, clock, terminal=terminal), Counters(telemetry, "auditor")
    counters.add("event " * 50)
    for _ in range(20):
        made.unit_done(counters)
        clock.advance(TERMINAL_S / 9)
    made.end(counters)
    shown = terminal.getvalue().split("\r\x1b[K")[1:]
    assert len(shown) == 4 and shown[-1] == "\r"
    assert all(len(line) <= 111 for line in shown)


def test_only_what_somebody_looks_at_is_a_terminal():
    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    assert (stream_if_terminal(screen), stream_if_terminal(io.StringIO())) == (screen, None)


def test_a_page_tells_of_passes_and_of_what_other_processes_counted(telemetry, tmp_path):
    page = PrometheusFile(telemetry, str(tmp_path), "auditor")
    page.add_counts({"passes": 2})
    page.record_pass(1.5, 99.0, 7)
    page.record_pass(2.5, 199.0, 3)
    page.write()
    text = (tmp_path / "auditor.prom").read_text()
    for line in (
        'swift_daemon_events_total{daemon="auditor",event="passes"} 2',
        'swift_daemon_pass_seconds{daemon="auditor"} 2.5',
        'swift_daemon_passes_total{daemon="auditor"} 2',
        'swift_daemon_units_total{daemon="auditor"} 10',
    ):
        assert line in text


def test_a_page_that_cannot_be_written_is_a_line_in_the_log(telemetry, tmp_path):
    (tmp_path / "auditor.prom").mkdir()
    for folder in (tmp_path, tmp_path / "auditor.prom" / "none", "/dev/null"):
        PrometheusFile(telemetry, str(folder), "auditor").write()
    assert [line.partition(":")[0].split()[:2] for line in telemetry.log.told][0] == ["cannot", "write"]
    assert not [line for line in telemetry.log.told if "Traceback" in line or "None" in line]


def test_no_two_pages_of_a_node_have_the_same_sample(telemetry, tmp_path):
    CounterMetric("swift_client_errors_total", "Failures.").of(telemetry.metrics).inc()
    names = ("object-auditor", "object-auditor-zbf")
    pages = [PrometheusFile(telemetry, str(tmp_path), name) for name in names]
    samples = []
    for page in pages:
        page.record_pass(1.5, 99.0, 7)
    for page in pages:
        page.write()
        lines = (tmp_path / page.path).read_text().splitlines()
        samples.append({line.split()[0] for line in lines if not line.startswith("#")})
    first, second = samples
    assert not first & second
    assert 'swift_client_errors_total{daemon="object-auditor"}' in first
    assert 'swift_daemon_units_total{daemon="object-auditor-zbf"}' in second
