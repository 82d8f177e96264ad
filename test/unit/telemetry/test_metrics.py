"""The Prometheus page, of one process and of all workers; access lines in batches."""

import logging
import os

import pytest

from swift.runtime.metricspage import SLOT_BYTES, SharedMetricsPage
from swift.telemetry.accesslog import AccessLog, common_log_time
from swift.telemetry.log import Log, silent_log
from swift.telemetry.metrics import CounterMetric, GaugeMetric, HistogramMetric, Registry


def test_counters_keep_every_digit():
    registry = Registry()
    counter = CounterMetric("c_total", "Help.", ("kind",)).of(registry, kind='a"b\\c\nd')
    counter.inc(12_345_678)
    counter.inc()
    assert 'c_total{kind="a\\"b\\\\c\\nd"} 12345679\n' in registry.render()
    GaugeMetric("g", "Help.").of(registry).set(0.25)
    assert "\ng 0.25\n" in registry.render()


def test_a_metric_of_the_same_name_and_labels_is_the_same():
    registry = Registry()
    metric = CounterMetric("c", "h", ("a",))
    assert metric.of(registry, a="1") is metric.of(registry, a="1")
    assert metric.of(registry, a="1") is not metric.of(registry, a="2")
    with pytest.raises(ValueError, match="c has the labels"):
        metric.of(registry, b="1")
    assert registry.render().count("# TYPE c counter") == 1


def test_histogram_buckets_are_cumulative_and_end_with_everything():
    registry = Registry({"pid": "7"})
    histogram = HistogramMetric("h", "Help.").of(registry)
    for seconds in (0.001, 0.002, 0.5, 100.0):
        histogram.observe(seconds)
    lines = registry.render().splitlines()
    counts = [int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("h_bucket")]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (1, 4)
    assert 'h_bucket{pid="7",le="+Inf"} 4' in lines
    assert 'h_count{pid="7"} 4' in lines


@pytest.mark.long
@pytest.mark.process
def test_one_page_shows_the_numbers_of_every_worker():
    board = SharedMetricsPage(3)
    pids = []
    for index in range(2):
        pid = os.fork()
        if pid == 0:
            registry = Registry()
            board.register_worker(index, registry)
            CounterMetric("c_total", "Help.").of(registry).inc(index + 1)
            board.publish()
            os._exit(0)
        pids.append(pid)
        os.waitpid(pid, 0)
    registry = Registry()
    board.register_worker(2, registry)
    CounterMetric("c_total", "Help.").of(registry).inc(10)
    CounterMetric("d_total", "Other.").of(registry).inc()
    page = board.render().decode()
    for pid, value in zip([*pids, os.getpid()], (1, 2, 10), strict=True):
        assert f'c_total{{pid="{pid}"}} {value}\n' in page
    assert page.count("# TYPE c_total counter\n") == 1


@pytest.mark.long
def test_a_page_too_long_for_its_slot_ends_at_a_line():
    board = SharedMetricsPage(1)
    registry = Registry()
    board.register_worker(0, registry)
    for n in range(SLOT_BYTES // 40):
        CounterMetric("c_total", "Help.", ("number",)).of(registry, number=f"{n:020d}").inc()
    last = board.render().decode().splitlines()[-1]
    assert last.endswith("} 1")


def test_lines_leave_in_batches_and_the_rest_at_a_flush():
    read_end, write_end = os.pipe()
    later = []
    log = AccessLog(silent_log(), fd=write_end, name="proxy", schedule=lambda s, call: later.append(call))
    log.write("one")
    log.write("two")
    assert len(later) == 1
    later[0]()
    assert os.read(read_end, 100) == b"proxy: one\nproxy: two\n"
    log.write("three")
    log.flush()
    assert os.read(read_end, 100) == b"proxy: three\n"
    os.close(read_end)
    log.write("lost, and no request fails of it")
    log.flush()
    os.close(write_end)


def test_lines_are_wanted_on_a_console_and_where_events_are_logged():
    quiet, talkative = logging.getLogger("test.access.quiet"), logging.getLogger("test.access.talkative")
    quiet.setLevel(logging.ERROR)
    talkative.setLevel(logging.INFO)
    assert not AccessLog(Log(quiet)).is_wanted
    assert AccessLog(Log(talkative)).is_wanted
    assert AccessLog(Log(quiet), fd=2).is_wanted


def test_times_of_backend_lines_are_utc():
    assert common_log_time(1795227863.9) == "21/Nov/2026:02:24:23 +0000"
