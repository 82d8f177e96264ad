"""Spans in memory."""

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from swift.config.common import TraceSettings
from swift.runtime.tracing import Tracing, make_provider


class SpanMemory:
    """A ``Tracing`` of a server that records its spans; ``options`` are those of its configuration."""

    def __init__(self, section="proxy-server", **options):
        options = {"trace_sample_ratio": 1.0, **options}
        settings = TraceSettings(**options)
        provider = make_provider(settings, section)
        self._exporter = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider.get_tracer("test"), settings, is_proxy=section == "proxy-server")

    @property
    def spans(self):
        """Return the ended spans, in order of their end."""
        return self._exporter.get_finished_spans()

    @property
    def span(self):
        """Return the only span."""
        [span] = self.spans
        return span


def parent_of(span):
    """Return the id of a span's parent; None for a root."""
    return span.parent and span.parent.span_id


def traceparent(span):
    """Return the traceparent header of a span."""
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"
