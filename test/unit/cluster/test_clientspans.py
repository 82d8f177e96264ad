"""Spans of exchanges with nodes."""

import gc
import os

import pytest
from opentelemetry.trace import SpanKind

from swift import green
from swift.cluster.localreads import LocalEndpoint, LocalReads
from swift.cluster.transport import (
    BackendResponse,
    BrokenOff,
    NodeAddress,
    NodeRequest,
    NodeTimeouts,
    TimedOut,
)
from swift.http import environkeys
from swift.http.body import IterableBody, ResponseBody
from swift.http.request import Request
from swift.http.response import Response
from swift.telemetry.metrics import Registry
from test.support.spans import SpanMemory, parent_of, traceparent

TXID = "tx1"
TRACE = "0af7651916cd43dd8448eb211c80319c"


class FakeExchange:
    """Responds as a test says."""

    continue_headers = {"x-a": "b"}

    def __init__(self, response):
        self._response = response
        self.calls = []

    def send(self, data):
        self.calls.append(("send", data))

    def finish(self, trailers=None):
        self.calls.append(("finish", trailers))

    def wait_continue(self):
        return None

    def wait_response_start(self, within_s):
        return True

    def response(self):
        if isinstance(self._response, Exception):
            raise self._response
        return self._response

    duplex = None

    def abort(self):
        self.calls.append(("abort",))


class FakeTransport:
    """Records requests; every node responds alike."""

    def __init__(self, response=None):
        self.response = BackendResponse(201) if response is None else response
        self.requests = []

    def request(self, request):
        green.sleep()
        self.requests.append(request)
        return FakeExchange(self.response).response()

    def stream(self, request):
        self.requests.append(request)
        return FakeExchange(self.response)


def node_request(path="/sda/7/a/c/o", method="PUT", ip="10.0.0.1", **headers):
    sent = {"x-trans-id": TXID, "authorization": "secret"} | headers
    return NodeRequest(NodeAddress(ip, 6200), method, path, sent, b"", NodeTimeouts(1, 1))


def serve(memory, transport, handler, path="/v1/a/c/o", txid=TXID, headers=None):
    """Serve one request with ``handler``, which is handed a traced transport; end its response."""
    traced = memory.tracing.trace_exchanges(transport)

    def handle(request):
        request.env[environkeys.TRANS_ID] = txid
        handler(traced)
        return Response(201)

    response = memory.tracing.trace_requests(handle)(Request("PUT", path, headers))
    response.report_end(0, True)


def read_with(read):
    """A handler that has an exchange and reads its response's body."""

    def handler(transport):
        exchange = transport.stream(node_request(method="GET"))
        read(exchange.response().stream)

    return handler


@pytest.fixture
def memory():
    return SpanMemory()


def test_an_exchange_is_a_child_of_the_request_that_it_is_made_for(memory):
    transport = FakeTransport()
    serve(memory, transport, lambda traced: traced.request(node_request()))
    child, parent = memory.spans
    assert (child.kind, parent.kind) == (SpanKind.CLIENT, SpanKind.SERVER)
    assert parent_of(child) == parent.context.span_id
    assert child.context.trace_id == parent.context.trace_id
    assert child.name == "PUT /{device}/{partition}/{account}/{container}/{object}"
    assert dict(child.attributes) == {
        "http.request.method": "PUT",
        "http.response.status_code": 201,
        "server.address": "10.0.0.1",
        "server.port": 6200,
        "swift.account": "a",
        "swift.container": "c",
        "swift.device": "sda",
        "swift.partition": "7",
        "swift.transaction_id": TXID,
        "url.full": "http://10.0.0.1:6200/sda/7/a/c/{object}",
    }


def test_a_node_is_sent_the_trace_and_the_callers_headers_stay_as_they_are(memory):
    transport, request = FakeTransport(), node_request()
    serve(memory, transport, lambda traced: traced.request(request))
    [sent] = transport.requests
    assert sent.headers == {**request.headers, "traceparent": traceparent(memory.spans[0])}
    assert "traceparent" not in request.headers


def test_a_read_in_the_process_of_the_proxy_has_a_span_like_one_of_another_node(memory):
    class OwnServer:
        def read_hit(self, request, hits):
            return Response(200, {"content-length": "4"}, b"near")

    network, bodies = FakeTransport(), []
    own = LocalReads(network, [LocalEndpoint("10.0.0.1".__eq__, 6200, OwnServer())], Registry())
    serve(memory, own, read_with(lambda stream: bodies.append(b"".join(stream))))
    child, parent = memory.spans
    assert bodies == [b"near"] and not network.requests
    assert parent_of(child) == parent.context.span_id
    assert child.attributes["http.response.status_code"] == 200


def test_a_request_of_no_client_has_neither_span_nor_header(memory):
    transport, request = FakeTransport(), node_request(**{"x-trans-id": "tx-of-a-probe"})
    serve(memory, transport, lambda traced: traced.request(request))
    assert transport.requests == [request]
    assert memory.span.kind is SpanKind.SERVER


def test_a_node_does_not_decide_about_a_trace_that_is_not_recorded():
    memory, transport = SpanMemory(trace_sample_ratio=0.0), FakeTransport()
    serve(memory, transport, lambda traced: traced.request(node_request()))
    assert memory.spans == ()
    flags = transport.requests[0].headers["traceparent"].rpartition("-")[2]
    assert int(flags, 16) & 1 == 0, "not sampled"


def test_exchanges_in_reused_green_threads_belong_to_the_right_requests(memory):
    transport = FakeTransport()

    def ask(txid):
        def three(traced):
            request = node_request(**{"x-trans-id": txid})
            green.gather([lambda: traced.request(request)] * 3)

        serve(memory, transport, three, txid=txid)

    ids = [f"tx{number}" for number in range(8)]
    green.bounded_map(ask, ids, 4)
    roots = {span.attributes["swift.transaction_id"]: span for span in memory.spans if span.parent is None}
    children = [span for span in memory.spans if span.parent is not None]
    assert (sorted(roots), len(children)) == (ids, 24)
    for child in children:
        assert parent_of(child) == roots[child.attributes["swift.transaction_id"]].context.span_id


def test_devices_of_one_server_in_one_transaction_are_told_apart():
    memory = SpanMemory("object-server")
    transport = FakeTransport()
    traced = memory.tracing.trace_exchanges(transport)

    def handle(request):
        green.sleep()
        row = {"x-trans-id": TXID, "referer": f"{request.method} {request.url}"}
        device = request.raw_path.split("/")[1]
        green.gather([lambda: traced.request(node_request(f"/{device}-row/8/a/c/o", **row))])
        return Response(201)

    def put(device):
        request = Request(
            "PUT",
            f"/{device}/7/a/c/o",
            {"x-trans-id": TXID, "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
        )
        memory.tracing.trace_requests(handle)(request).report_end(0, True)

    green.bounded_map(put, ["sda", "sdb", "sdc"], 3)
    servers = {span.context.span_id: span for span in memory.spans if span.kind is SpanKind.SERVER}
    rows = [span for span in memory.spans if span.kind is SpanKind.CLIENT]
    assert len(rows) == 3
    for row in rows:
        assert row.attributes["swift.device"] == f"{servers[parent_of(row)].attributes['swift.device']}-row"
    assert {f"{span.context.trace_id:032x}" for span in memory.spans} == {TRACE}


def _splice(body):
    read, write = os.pipe()
    try:
        while body.splice_into(write, 4):
            os.read(read, 4)
    finally:
        os.close(read)
        os.close(write)


class PipeBody(ResponseBody):
    """Ten bytes that can be read in every way."""

    length = 10

    def __init__(self):
        self.left = 10

    def _take(self, size):
        size = min(size, self.left)
        self.left -= size
        return size

    def read_into(self, buffer):
        return self._take(len(buffer))

    def splice_into(self, pipe, size):
        return os.write(pipe, bytes(self._take(size))) if self.left else 0


READERS = {
    "read": lambda body: [body.read(4) for _ in range(3)],
    "read_into": lambda body: [body.read_into(memoryview(bytearray(4))) for _ in range(3)],
    "read_all": lambda body: body.read_all(),
    "pieces": lambda body: list(body),
    "splice": _splice,
    "close": lambda body: body.close(),
}


@pytest.mark.parametrize("way", READERS)
def test_a_span_ends_with_the_body_however_it_is_read(memory, way):
    def read(body):
        assert memory.spans == ()
        READERS[way](body)
        assert memory.span.status.is_unset

    serve(memory, FakeTransport(BackendResponse(200, stream=PipeBody())), read_with(read))
    assert [span.attributes["http.response.status_code"] for span in memory.spans] == [200, 201]


@pytest.mark.parametrize("way", ["read", "read_into", "read_all", "pieces"])
def test_a_body_that_breaks_off_is_an_error(memory, way):
    def pieces():
        yield b"1234"
        raise BrokenOff("secret")

    def read(body):
        with pytest.raises(BrokenOff):
            READERS[way](body)

    body = IterableBody(pieces(), 10)
    serve(memory, FakeTransport(BackendResponse(200, stream=body)), read_with(read))
    span = memory.spans[0]
    assert span.attributes["error.type"] == "BrokenOff"
    assert not span.status.is_ok and not span.status.is_unset
    assert "secret" not in span.to_json()


def test_a_node_that_fails_is_an_error(memory):
    def handler(traced):
        for ask in (traced.request, lambda request: traced.stream(request).response()):
            with pytest.raises(TimedOut):
                ask(node_request())

    serve(memory, FakeTransport(TimedOut("secret")), handler)
    failed = memory.spans[:2]
    assert [span.attributes["error.type"] for span in failed] == ["TimedOut"] * 2
    assert "secret" not in "".join(span.to_json() for span in failed)


@pytest.mark.parametrize(("end", "error"), [("abort", "aborted"), ("forget", "abandoned")])
def test_an_exchange_without_a_response_is_an_error(memory, end, error):
    def handler(traced):
        exchange = traced.stream(node_request())
        exchange.send(b"half")
        if end == "abort":
            exchange.abort()

    serve(memory, FakeTransport(), handler)
    gc.collect()
    assert memory.spans[0].attributes["error.type"] == error


def test_an_upload_after_100_continue_is_one_span_until_its_response(memory):
    def handler(traced):
        exchange = traced.stream(node_request(expect="100-continue"))
        assert exchange.wait_continue() is None
        assert exchange.continue_headers == {"x-a": "b"}
        exchange.send(b"body")
        exchange.finish({"trailer": "t"})
        assert exchange.wait_response_start(1.0)
        assert memory.spans == ()
        assert exchange.response() is exchange.response()
        exchange.abort()

    serve(memory, FakeTransport(), handler)
    assert memory.spans[0].attributes["http.response.status_code"] == 201
    assert memory.spans[0].status.is_unset


def test_a_refusal_of_a_node_is_an_error(memory):
    serve(memory, FakeTransport(BackendResponse(507)), lambda traced: traced.request(node_request()))
    assert memory.spans[0].attributes["error.type"] == "507"


@pytest.mark.parametrize(
    ("path", "method", "name", "url"),
    [
        (
            "/sda/7/a/c/o?sig=secret",
            "GET",
            "GET /{device}/{partition}/{account}/{container}/{object}",
            "/sda/7/a/c/{object}",
        ),
        ("/sda/7/a", "HEAD", "HEAD /{device}/{partition}/{account}", "/sda/7/a"),
        ("/sda/7/abc-def", "REPLICATE", "REPLICATE /{device}/{partition}", "/sda/7/abc-def"),
        ("/recon/load", "GET", "GET", "/recon/load"),
        ("/sda/7/%FF%ED%A0", "BREW", "HTTP /{device}/{partition}/{account}", "/sda/7/" + 3 * "\ufffd"),
        ("/sda/7/" + "a" * 9999, "GET", "GET /{device}/{partition}/{account}", "/sda/7/" + "a" * 1017),
    ],
)  # fmt: skip
def test_names_are_few_and_paths_are_bounded_text_without_queries(memory, path, method, name, url):
    serve(memory, FakeTransport(), lambda traced: traced.request(node_request(path, method)))
    span = memory.spans[0]
    assert (span.name, span.attributes["url.full"]) == (name, f"http://10.0.0.1:6200{url}")
    assert all(len(str(value)) < 1100 for value in span.attributes.values())


def test_names_of_objects_are_recorded_if_the_operator_wants_them():
    memory = SpanMemory(trace_object_names=True)
    serve(memory, FakeTransport(), lambda traced: traced.request(node_request("/sda/7/a/c/d/o")))
    assert memory.spans[0].attributes["swift.object"] == "d/o"
    assert memory.spans[0].attributes["url.full"].endswith("/sda/7/a/c/d/o")


def test_an_ipv6_address_is_bracketed_in_the_url(memory):
    serve(memory, FakeTransport(), lambda traced: traced.request(node_request(ip="fd00::1")))
    assert memory.spans[0].attributes["server.address"] == "fd00::1"
    assert memory.spans[0].attributes["url.full"].startswith("http://[fd00::1]:6200/")
