"""Spans on their way to the collector, and the options of traces."""

import socket
import subprocess
import sys
import threading
import time

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from swift import green
from swift.base.errors import ConfigError
from swift.compose import Process, start_tracing
from swift.runtime.tracing import BATCH_MAX, FLUSH_S, SpanQueue
from swift.telemetry.log import silent_log
from swift.telemetry.metrics import CounterMetric, Registry
from swift.telemetry.telemetry import Telemetry
from test.support.collector import Collector


class Exporter(SpanExporter):
    """Takes batches as a test says."""

    def __init__(self, results=()):
        self.results = list(results)
        self.batches = []

    def export(self, spans):
        self.batches.append(len(spans))
        result = self.results.pop(0) if self.results else SpanExportResult.SUCCESS
        if isinstance(result, Exception):
            raise result
        return result


class Hanging(SpanExporter):
    """A collector that does not respond."""

    def __init__(self):
        self.begun, self.released = threading.Event(), threading.Event()

    def export(self, spans):
        self.begun.set()
        self.released.wait(60)
        return SpanExportResult.FAILURE


class Queued:
    """A queue with its tracer; ``later`` has the calls that it plans."""

    def __init__(self, exporter, size=10_000, **options):
        self.metrics = Registry()
        self.later = []
        options = {"later": lambda _seconds, call: self.later.append(call), **options}
        self.queue = SpanQueue(exporter, size, silent_log(), self.metrics, **options)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(self.queue)
        self._tracer = provider.get_tracer("test")

    def make(self, count):
        for _ in range(count):
            self._tracer.start_span("x").end()

    def value(self, name, **labels):
        return (
            CounterMetric(f"swift_trace_spans_{name}_total", "", tuple(labels))
            .of(self.metrics, **labels)
            .value
        )


def test_spans_are_sent_in_batches_after_a_while():
    exporter = Exporter()
    queued = Queued(exporter)
    queued.make(BATCH_MAX + 3)
    assert exporter.batches == []
    [drain] = queued.later
    drain()
    assert exporter.batches == [BATCH_MAX, 3]
    assert queued.value("sent") == BATCH_MAX + 3
    queued.make(1)
    assert len(queued.later) == 2


def test_a_full_queue_drops_spans_and_counts_them():
    queued = Queued(Exporter(), size=5)
    queued.make(8)
    assert queued.value("dropped", reason="queue") == 3
    queued.later[0]()
    assert queued.value("sent") == 5


@pytest.mark.parametrize("result", [SpanExportResult.FAILURE, OSError("no route")])
def test_spans_that_the_collector_refuses_are_counted_and_later_ones_sent(result):
    queued = Queued(Exporter([result]))
    queued.make(2)
    queued.later[0]()
    queued.make(3)
    queued.later[1]()
    assert (queued.value("dropped", reason="export"), queued.value("sent")) == (2, 3)


def test_spans_are_counted_as_lost_when_no_thread_can_be_started():
    def run(_export, _batch):
        raise RuntimeError("can't start new thread")

    queued = Queued(Exporter(), run=run)
    queued.make(2)
    queued.later[0]()
    assert queued.value("dropped", reason="export") == 2


@pytest.mark.long
def test_a_collector_that_hangs_delays_neither_requests_nor_the_end_of_the_process():
    exporter = Hanging()
    queued = Queued(exporter, size=5, later=green.spawn_after)
    queued.make(3)
    try:
        while not exporter.begun.is_set():
            green.sleep(0.01)
        started = time.monotonic()
        queued.make(10_000)
        assert queued.value("dropped", reason="queue") == 10_000 - 2, "those in flight count"
        queued.queue.flush()
        assert FLUSH_S - 0.5 < time.monotonic() - started < FLUSH_S + 5
    finally:
        exporter.released.set()


def test_a_flush_sends_what_waits():
    exporter = Exporter()
    queued = Queued(exporter)
    queued.make(BATCH_MAX + 1)
    queued.queue.flush()
    assert exporter.batches == [BATCH_MAX, 1]
    started = time.monotonic()
    queued.queue.flush()
    assert time.monotonic() - started < FLUSH_S / 2


def tracing_of(**conf):
    process = Process()
    start_tracing(process, conf, Telemetry(), section="proxy-server")
    return process


def test_without_a_collector_there_are_no_traces():
    process = tracing_of(trace_sample_ratio="1")
    assert (process.tracing, process.at_exit) == (None, [])


@pytest.mark.parametrize(
    ("conf", "text"),
    [
        ({"trace_exporter_url": "collector:4318"}, "trace_exporter_url must be a URL"),
        ({"trace_exporter_url": "grpc://collector:4317"}, "trace_exporter_url must be a URL"),
        ({"trace_exporter_url": "http://[::1/v1/traces"}, "trace_exporter_url must be a URL"),
        ({"trace_exporter_url": "http://c", "trace_sample_ratio": "2"}, "trace_sample_ratio"),
        ({"trace_exporter_url": "http://c", "trace_queue_size": "0"}, "trace_queue_size"),
    ],
)
def test_bad_options_are_refused_by_name(conf, text):
    with pytest.raises(ConfigError, match=text):
        tracing_of(**conf)


def test_spans_arrive_at_a_collector_as_otlp():
    with Collector() as collector:
        process = tracing_of(trace_exporter_url=collector.url, trace_sample_ratio="1")
        from swift.http.request import Request
        from swift.http.response import Response

        handle = process.tracing.trace_requests(lambda _request: Response(204))
        handle(Request("HEAD", "/v1/a")).report_end(0, True)
        [finish] = process.at_exit
        finish()
        [span] = collector.spans
        assert (span.service, span.name) == ("swift-proxy-server", "HEAD /{version}/{account}")


@pytest.mark.long
def test_a_collector_that_is_not_there_is_counted():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    telemetry = Telemetry()
    process = Process()
    conf = {"trace_exporter_url": f"http://127.0.0.1:{port}/v1/traces", "trace_sample_ratio": "1"}
    start_tracing(process, conf, telemetry, section="object-server")
    from swift.http.request import Request
    from swift.http.response import Response

    handle = process.tracing.trace_requests(lambda _request: Response(204))
    handle(Request("HEAD", "/sda/1/a")).report_end(0, True)
    started = time.monotonic()
    process.at_exit[0]()
    assert time.monotonic() - started < FLUSH_S + 2


SERVER = """
import sys
{before}
from swift.runtime.service.serve import run_server
print("status", run_server("object-server", [sys.argv[1], "-t"]), file=sys.stderr)
print(sorted(name for name in sys.modules if name.split(".")[0] == "opentelemetry" or "spans" in name))
"""


def run_config_test(tmp_path, options, before=""):
    """Test the configuration of an object server in a process of its own."""
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    (tmp_path / "devices").mkdir(exist_ok=True)
    conf = tmp_path / "object-server.conf"
    conf.write_text(
        f"[DEFAULT]\nswift_dir = {tmp_path}\ndevices = {tmp_path}/devices\nmount_check = false\n"
        f"recon_cache_path = {tmp_path}\nuser = root\nbind_port = 6200\n{options}\n[pipeline:main]\n"
        "pipeline = object-server\n[app:object-server]\nuse = egg:swift#object\n"
    )
    words = [sys.executable, "-c", SERVER.format(before=before), str(conf)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)


@pytest.mark.process
def test_a_server_without_traces_imports_nothing_for_them(tmp_path):
    done = run_config_test(tmp_path, "")
    assert "status 0" in done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.process
def test_a_server_without_the_library_says_what_to_install(tmp_path):
    done = run_config_test(
        tmp_path,
        "trace_exporter_url = http://127.0.0.1:4318/v1/traces",
        "sys.modules['opentelemetry'] = None",
    )
    assert "status 1" in done.stderr
    assert "option trace_exporter_url needs more packages" in done.stderr
    assert " -m pip install '" in done.stderr
