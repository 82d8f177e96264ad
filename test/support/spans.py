"""Spans in memory."""

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from swift.config.common import TraceSettings
from swift.runtime.tracing import Tracing, make_provider


class SpanMemory:
    """A ``Tracing`` of a server whose spans stay here; ``options`` are those of its configuration."""

    def __init__(self, section="proxy-server", **options):
        options = {"trace_sample_ratio": 1.0, **options}
        settings = TraceSettings(**options)
        provider = make_provider(settings, section)
        self._exporter = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider.get_tracer("test"), settings, is_proxy=section == "proxy-server")

    @property
    def spans(self):
        """The spans that have ended, in this order."""
        return self._exporter.get_finished_spans()

    @property
    def span(self):
        """The only span."""
        [span] = self.spans
        return span


def parent_of(span):
    """The id of a span's parent, None of a root."""
    return span.parent and span.parent.span_id


def traceparent(span):
    """The header that names a span."""
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"
