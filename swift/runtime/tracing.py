"""Traces of a server process: from its options to spans, and the spans' way to the collector.

Imported only where ``trace_exporter_url`` is set. Two seams take spans, and nothing in between is changed:
the server passes requests through ``TracedRequests``, and a ``TracedTransport`` stands before the connections
to nodes. No implicit context is used, because green threads are reused.

Spans that ended wait in a bounded queue; an operating system thread encodes and sends them. A collector that
does not respond costs spans, which are counted, and never time of a request.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Tracer

from swift import __version__, green
from swift.base.errors import ConfigError
from swift.cluster.clientspans import (
    ActiveSpans,
    TracedTransport,
    transaction_id_of_client,
    transaction_id_of_node,
)
from swift.cluster.transport import Transport
from swift.config.common import TraceSettings
from swift.runtime.serverspans import TracedRequests
from swift.runtime.wsgi import Handle
from swift.telemetry.log import Log
from swift.telemetry.metrics import CounterMetric, Registry
from swift.telemetry.telemetry import Telemetry

_SENT = CounterMetric("swift_trace_spans_sent_total", "Spans that the collector accepted.")
_DROPPED = CounterMetric("swift_trace_spans_dropped_total", "Spans that are missing in traces.", ("reason",))

#: Seconds during which spans are collected for one request to the collector.
INTERVAL_S = 1.0
BATCH_MAX = 512
#: Seconds that the collector has to take a batch.
EXPORT_TIMEOUT_S = 5
#: Seconds that the end of a process waits for the last spans.
FLUSH_S = 2.0

Export = Callable[[Sequence[ReadableSpan]], bool]


class SpanQueue(SpanProcessor):
    """Spans on their way to ``exporter``, at most ``size``; others are dropped and counted.

    ``run`` calls a function in a thread, one call after the other; ``later`` starts a green thread after
    some seconds.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        size: int,
        log: Log,
        metrics: Registry,
        *,
        run: Callable[[Export, Sequence[ReadableSpan]], bool] | None = None,
        later: Callable[[float, Callable[[], None]], object] = green.spawn_after,
    ):
        self._exporter = exporter
        self._size = size
        self._log = log
        self._run: Callable[[Export, Sequence[ReadableSpan]], bool] = (
            run or green.ThreadPool(1, "traces").call
        )
        self._later = later
        self._spans: list[ReadableSpan] = []
        self._in_flight = 0
        self._is_planned = False
        #: The loss that is known was logged; cleared when spans are sent again.
        self._is_logged = False
        self._sent = _SENT.of(metrics)
        self._dropped = {reason: _DROPPED.of(metrics, reason=reason) for reason in ("queue", "export")}

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span; never waits."""
        context = span.context
        if context is None or not context.trace_flags.sampled:
            return
        if len(self._spans) + self._in_flight >= self._size:
            self._dropped["queue"].inc()
            return
        self._spans.append(span)
        if not self._is_planned:
            self._is_planned = True
            self._later(INTERVAL_S, self._drain)

    def _drain(self) -> None:
        """Send until nothing waits."""
        try:
            while self._spans:
                self._send_batch()
        finally:
            self._is_planned = False

    def _send_batch(self) -> None:
        batch, self._spans = self._spans[:BATCH_MAX], self._spans[BATCH_MAX:]
        self._in_flight += len(batch)
        try:
            is_sent = self._run(self._export, batch)
        except RuntimeError:
            # No thread can be started now.
            is_sent = False
        finally:
            self._in_flight -= len(batch)
        if is_sent:
            self._sent.inc(len(batch))
            self._is_logged = False
            return
        self._dropped["export"].inc(len(batch))
        if not self._is_logged:
            self._is_logged = True
            self._log.error("ERROR traces are incomplete: the collector of trace_exporter_url takes no spans")

    def _export(self, batch: Sequence[ReadableSpan]) -> bool:
        """Send a batch; in a thread."""
        try:
            return self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception:
            # Versions of the exporter differ in what they raise; the caller counts and logs the loss.
            return False

    def flush(self) -> None:
        """Send what waits before the process ends, for ``FLUSH_S`` at most."""
        if not self._spans and not self._in_flight:
            return
        done = green.Event()
        green.spawn_detached(self._finish, done)
        done.wait(FLUSH_S)

    def _finish(self, done: green.Event) -> None:
        try:
            while self._spans:
                self._send_batch()
            # The only thread does this after what it was given before.
            self._run(bool, ())
        finally:
            done.set()

    def __repr__(self) -> str:
        return f"<SpanQueue {len(self._spans)} of {self._size}, {self._in_flight} in flight>"


class Tracing:
    """Spans of one server: around its requests and around its exchanges with nodes."""

    def __init__(self, tracer: Tracer, settings: TraceSettings, *, is_proxy: bool):
        self._tracer = tracer
        self._settings = settings
        self._is_proxy = is_proxy
        self._active = ActiveSpans(transaction_id_of_client if is_proxy else transaction_id_of_node)

    def trace_requests(self, handle: Handle) -> Handle:
        """Return ``handle`` with a span for each request."""
        return TracedRequests(
            handle,
            self._tracer,
            self._active,
            is_proxy=self._is_proxy,
            trusts_parent=not self._is_proxy or self._settings.trace_parent_of_clients,
            has_object_names=self._settings.trace_object_names,
        ).handle

    def trace_exchanges(self, transport: Transport) -> Transport:
        """Return ``transport`` with a span for each exchange."""
        return TracedTransport(
            transport, self._tracer, self._active, has_object_names=self._settings.trace_object_names
        )

    def __repr__(self) -> str:
        return f"<Tracing to {self._settings.trace_exporter_url}>"


def make_tracing(
    settings: TraceSettings, section: str, telemetry: Telemetry
) -> tuple[Tracing, Callable[[], None]]:
    """Return the traces of a server, e.g. ``proxy-server``, and what sends the last ones.

    Raises ``ConfigError``. Nothing is started before the first span, so that processes may fork.
    """
    if not _is_http_url(settings.trace_exporter_url):
        raise ConfigError(
            f"option trace_exporter_url must be a URL such as http://127.0.0.1:4318/v1/traces,"
            f" not {settings.trace_exporter_url!r}"
        )
    # Its lines would go to standard error; the queue logs and counts losses.
    library_log = logging.getLogger("opentelemetry")
    library_log.addHandler(logging.NullHandler())
    library_log.propagate = False
    exporter = OTLPSpanExporter(endpoint=settings.trace_exporter_url, timeout=EXPORT_TIMEOUT_S)
    queue = SpanQueue(exporter, settings.trace_queue_size, telemetry.log, telemetry.metrics)
    provider = make_provider(settings, section)
    provider.add_span_processor(queue)
    is_proxy = section == "proxy-server"
    return Tracing(provider.get_tracer("swift", __version__), settings, is_proxy=is_proxy), queue.flush


def _is_http_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def make_provider(settings: TraceSettings, section: str) -> TracerProvider:
    """Return the source of a server's tracer."""
    resource = Resource.create(
        {
            "service.name": f"swift-{section}",
            "service.version": __version__,
            "host.name": socket.gethostname(),
        }
    )
    sampler = ParentBased(TraceIdRatioBased(settings.trace_sample_ratio))
    return TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
