"""A collector of traces: receives OTLP over HTTP and shows the spans as a tree."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


class ReceivedSpan:
    """A span as the collector has received it."""

    def __init__(self, service, span):
        self.service = service
        self.name = span.name
        self.kind = Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower()
        self.trace = span.trace_id.hex()
        self.id = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.failed = span.status.code == Status.STATUS_CODE_ERROR
        self.attributes = {
            each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes
        }

    def __repr__(self):
        return f"<{self.service} {self.kind} {self.name} {self.attributes}>"


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.collector.take(self.path, body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Collector:
    """Listens on a free port until the end of its ``with`` block."""

    def __init__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.collector = self
        self._changed = threading.Condition()
        self.spans = []
        self.received = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1/traces"

    def take(self, path, body):
        assert path == "/v1/traces", path
        message = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            self.received.append(body)
            for group in message.resource_spans:
                labels = {each.key: each.value.string_value for each in group.resource.attributes}
                for scope in group.scope_spans:
                    self.spans += [ReceivedSpan(labels["service.name"], span) for span in scope.spans]
            self._changed.notify_all()

    def wait(self, condition, seconds=30):
        """Wait until ``condition(spans)`` is true and return its value."""
        with self._changed:
            found = self._changed.wait_for(lambda: condition(self.spans), seconds)
            assert found, f"not within {seconds} s; there are {len(self.spans)} spans"
            return found

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def tree(spans, parent=""):
    """Return (service, kind, name, children) of the spans below a parent, in a fixed order."""
    return sorted(
        (span.service.removeprefix("swift-"), span.kind, span.name, tree(spans, span.id))
        for span in spans
        if span.parent == parent
    )
