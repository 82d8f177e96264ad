"""Spans of requests to a server."""

import pytest
from opentelemetry.trace import StatusCode

from swift.green import Killed
from swift.http import environkeys
from swift.http.body import BodyTimeout, ClientDisconnected
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from test.support.spans import SpanMemory

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


def serve(memory, handle, request=None, *, sent=0, complete=True):
    """Serve a request as the HTTP server does; the error that came out."""
    try:
        response = memory.tracing.trace_requests(handle)(request or Request("GET", "/v1/a/c/o"))
    except HTTPError as error:
        response = error.response
    except BaseException as error:
        return error
    assert memory.spans == (), "the body has not been sent"
    response.report_end(sent, complete)
    return None


def raising(error):
    def handle(_request):
        raise error

    return handle


def test_a_span_has_what_is_known_when_the_body_was_sent():
    memory = SpanMemory()

    def handle(request):
        request.env[environkeys.TRANS_ID] = "tx1"
        request.body.read()
        # Filters rewrite methods and paths.
        request.method, request.raw_path = "GET", "/v1/other/c"
        return Response(201)

    headers = {"x-auth-token": "secret", "authorization": "secret", "cookie": "secret"}
    request = Request(
        "PUT", "/v1/a/c/o", headers, b"12345", query="temp_url_sig=secret", remote_addr="1.2.3.4"
    )
    serve(memory, handle, request, sent=7)
    span = memory.span
    assert span.name == "PUT /{version}/{account}/{container}/{object}"
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes) == {
        "http.request.body.size": 5,
        "http.request.method": "PUT",
        "http.response.body.size": 7,
        "http.response.status_code": 201,
        "http.route": "/{version}/{account}/{container}/{object}",
        "network.peer.address": "1.2.3.4",
        "swift.account": "a",
        "swift.container": "c",
        "swift.transaction_id": "tx1",
        "url.path": "/v1/a/c/{object}",
        "url.scheme": "http",
    }
    assert dict(span.resource.attributes)["service.name"] == "swift-proxy-server"


@pytest.mark.parametrize(
    ("handle", "complete", "status", "error"),
    [
        (lambda _: Response(404), True, 404, None),
        (lambda _: Response(503), True, 503, "503"),
        (lambda _: Response(200), False, 200, "incomplete_response"),
        (lambda _: Response(499), True, 499, "client_disconnected"),
        (raising(HTTPError(403)), True, 403, None),
        (raising(HTTPError(507)), True, 507, "507"),
        (raising(ClientDisconnected()), True, 499, "client_disconnected"),
        (raising(BodyTimeout()), True, 408, None),
        (raising(ValueError("secret")), True, 500, "500"),
        (raising(Killed()), True, 500, "500"),
    ],
)
def test_errors_of_the_server_and_ends_before_time_are_errors(handle, complete, status, error):
    memory = SpanMemory()
    serve(memory, handle, complete=complete)
    span = memory.span
    assert span.attributes["http.response.status_code"] == status
    assert span.attributes.get("error.type") == error
    assert (span.status.status_code is StatusCode.ERROR) == (error is not None)
    assert "secret" not in span.to_json()


def test_an_error_of_the_pipeline_stays_what_it_is():
    error = ValueError("secret")
    assert serve(SpanMemory(), raising(error)) is error


@pytest.mark.parametrize(
    ("section", "options", "flags", "is_child"),
    [
        ("proxy-server", {}, "01", False),
        ("proxy-server", {"trace_parent_of_clients": True}, "01", True),
        ("object-server", {}, "01", True),
    ],
)
def test_only_the_cluster_names_traces_unless_an_option_lets_clients(section, options, flags, is_child):
    memory = SpanMemory(section, **options)
    request = Request("GET", "/v1/a", {"traceparent": f"00-{TRACE}-{PARENT}-{flags}"})
    serve(memory, lambda _: Response(200), request)
    found = memory.span.parent
    assert (found is not None) == is_child
    assert not is_child or (f"{found.trace_id:032x}", f"{found.span_id:016x}") == (TRACE, PARENT)


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_a_client_can_neither_force_a_recording_nor_prevent_it(ratio):
    memory = SpanMemory(trace_sample_ratio=ratio)
    flags = "01" if ratio == 0 else "00"
    request = Request("GET", "/v1/a", {"traceparent": f"00-{TRACE}-{PARENT}-{flags}"})
    serve(memory, lambda _: Response(200), request)
    assert len(memory.spans) == ratio


@pytest.mark.parametrize("text", ["", "x", f"00-{TRACE}-{PARENT}", f"00-{'0' * 32}-{PARENT}-01", "\xff" * 55])
def test_a_malformed_parent_begins_a_new_trace(text):
    memory = SpanMemory("object-server")
    serve(memory, lambda _: Response(200), Request("GET", "/sda/7/a", {"traceparent": text}))
    assert memory.span.parent is None


@pytest.mark.parametrize(
    "handle",
    [lambda _: Response(200), raising(HTTPError(403)), raising(BodyTimeout()), raising(ValueError())],
)
def test_nothing_of_a_request_is_kept_after_its_end(handle):
    memory = SpanMemory()
    serve(memory, handle)
    assert len(memory.tracing._active) == 0


def s3(**call):
    def handle(request):
        request.env[environkeys.S3_CALL] = call
        return Response(200)

    return handle


@pytest.mark.parametrize(
    ("path", "handle", "names", "name", "expected"),
    [
        ("/b/k", s3(account="a", bucket="b", key="k", operation="GetObject"), False, "GET /{bucket}/{key}",
         {"swift.account": "a", "swift.container": "b", "swift.s3.operation": "GetObject"}),
        ("/b/k", s3(account="a", bucket="b", key="k"), True, "GET /{bucket}/{key}",
         {"swift.account": "a", "swift.container": "b", "swift.object": "k", "url.path": "/b/k"}),
        # The bucket is in the host's name, and the request was refused before it was known.
        ("/secret", lambda _: Response(403), False, "GET", {}),
        ("/info", lambda _: Response(200), False, "GET", {"url.path": "/info"}),
        ("/auth/v1.0", lambda _: Response(200), False, "GET", {"url.path": "/auth/v1.0"}),
        ("/v1/a/%C3%A4", lambda _: Response(200), False, "GET /{version}/{account}/{container}",
         {"swift.account": "a", "swift.container": "ä", "url.path": "/v1/a/ä"}),
    ],
)  # fmt: skip
def test_what_a_request_is_about_is_known_without_names_of_objects(path, handle, names, name, expected):
    memory = SpanMemory(trace_object_names=names)
    serve(memory, handle, Request("GET", path))
    span = memory.span
    found = {key: value for key, value in span.attributes.items() if key.startswith(("swift.", "url.path"))}
    assert (span.name, found) == (name, expected)


def test_a_storage_server_knows_device_and_partition():
    memory = SpanMemory("container-server")
    serve(memory, lambda _: Response(204), Request("DELETE", "/sda/7/a/c/o", {"x-trans-id": "tx1"}))
    span = memory.span
    assert span.name == "DELETE /{device}/{partition}/{account}/{container}/{object}"
    found = {key: value for key, value in span.attributes.items() if key.startswith("swift.")}
    assert found == {
        "swift.account": "a",
        "swift.container": "c",
        "swift.device": "sda",
        "swift.partition": "7",
        "swift.transaction_id": "tx1",
    }
