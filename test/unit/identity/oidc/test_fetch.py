"""Requests to a provider over real sockets: bounds on time and size, no redirects, verified certificates."""

import contextlib
import shutil
import socket
import threading
import time

import pytest

from swift import green
from swift.cluster.outbound import Outbound
from swift.identity.oidc.errors import OidcError
from swift.identity.oidc.fetch import RESPONSE_BYTES_MAX, HttpFetch
from swift.identity.oidc.provider import Provider
from test.support.oidc import DOCUMENT
from test.support.stub_servers import TlsServer, make_certificate

OK = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\nContent-Length: 2\r\n\r\n{}"


@contextlib.contextmanager
def server(*pieces, pause_s=0.0):
    """Serve one connection: send pieces after its request; yield the port and the requests."""
    requests, listener = [], socket.create_server(("127.0.0.1", 0))

    def serve():
        client, _ = listener.accept()
        with client, contextlib.suppress(OSError):
            head = client.recv(65536)
            while head.startswith(b"POST") and not head.endswith(b"~"):
                head += client.recv(65536)
            requests.append(head)
            for piece in pieces:
                client.sendall(piece)
                time.sleep(pause_s)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        yield listener.getsockname()[1], requests
    thread.join(10)


def fetch_of(port=1, scheme="http", storage=frozenset, timeout_s=5.0, **document):
    issuer = f"{scheme}://127.0.0.1:{port}"
    provider = Provider.from_document({**DOCUMENT, "issuer": issuer, **document})
    return HttpFetch(provider, Outbound(storage, own=frozenset), timeout_s=timeout_s)


def refusal(fetch, url, *form):
    with pytest.raises(OidcError) as caught:
        fetch(url, *form)
    assert caught.value.is_unavailable
    return str(caught.value)


def test_a_document_is_fetched():
    with server(OK) as (port, requests):
        found = fetch_of(port)(f"http://127.0.0.1:{port}/a?b=c")
    assert (found.status, found.headers["cache-control"], found.body) == (200, "max-age=5", b"{}")
    assert requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\n") and b"authorization" not in requests[0].lower()


def test_a_form_is_posted():
    with server(OK) as (port, requests):
        fetch_of(port)(f"http://127.0.0.1:{port}", {"code": "a b&c", "z": "~"}, authorization="Basic eA==")
    assert requests[0].startswith(b"POST / HTTP/1.1\r\n") and requests[0].endswith(
        b"\r\n\r\ncode=a+b%26c&z=~"
    )
    assert b"\r\nauthorization: basic ea==\r\n" in requests[0].lower()


def test_redirects_are_not_followed():
    with server(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n") as (
        port,
        _,
    ):
        assert fetch_of(port)(f"http://127.0.0.1:{port}/").status == 302


def test_a_response_has_a_bounded_size():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with server(head, *[b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 20) as (port, _):
        reason = refusal(fetch_of(port), f"http://127.0.0.1:{port}/")
    assert reason == f"provider main at 127.0.0.1: a response of more than {RESPONSE_BYTES_MAX} bytes"


@pytest.mark.parametrize("piece", [b"H", b"x"])
def test_a_slow_provider_has_a_deadline(piece):
    head = b"" if piece == b"H" else b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    began = time.monotonic()
    with server(head, *[piece] * 8, pause_s=0.05) as (port, _):
        refusal(fetch_of(port, timeout_s=0.2), f"http://127.0.0.1:{port}/")
        assert time.monotonic() - began < 2


def test_a_server_that_does_not_respond_has_a_deadline():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        refusal(fetch_of(port, timeout_s=0.1), f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    "junk", [b"", b"junk\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"SSH-2.0-x\r\n"]
)
def test_other_responses_are_the_providers_fault(junk):
    with server(junk) as (port, _):
        refusal(fetch_of(port), f"http://127.0.0.1:{port}/")


def test_a_name_server_that_does_not_respond_has_a_deadline():
    provider = Provider.from_document(DOCUMENT)
    outbound = Outbound(resolve=lambda *_: green.sleep(30), own=frozenset)
    began = time.monotonic()
    reason = refusal(HttpFetch(provider, outbound, timeout_s=0.1), "https://id.example/keys")
    assert reason == "provider main at id.example: no response within 0.1 s"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "url",
    ["http://id.example/", "http://127.0.0.1/", "https://.example/", "https://id.example/" + "x" * 600, ""],
)
def test_wrong_urls_are_the_providers_fault(url):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        outbound = Outbound(
            resolve=lambda *_: ["127.0.0.1"],
            own=frozenset,
            connect=lambda *_: socket.create_connection(address),
        )
        refusal(HttpFetch(Provider.from_document(DOCUMENT), outbound, timeout_s=0.2), url)


def test_an_absent_provider_is_named():
    assert refusal(fetch_of(), "http://127.0.0.1:1/").startswith("provider main at 127.0.0.1: ")


def test_storage_servers_are_not_reached():
    fetch = fetch_of(6200, storage=lambda: frozenset({("127.0.0.1", 6200)}))
    assert "a storage server" in refusal(fetch, "http://127.0.0.1:6200/")


@pytest.mark.process
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl(1) to make a certificate")
def test_certificates_are_verified(tmp_path):
    certificate, key = make_certificate(tmp_path, "127.0.0.1")
    with server(OK) as (port, _):
        front = TlsServer(("127.0.0.1", port), certificate, key)
        try:
            url = f"https://127.0.0.1:{front.port}/"
            assert "certificate" in refusal(fetch_of(front.port, "https"), url)
            assert "certificate" in refusal(fetch_of(front.port, "https", insecure=True), url)
            assert "ca_file" in refusal(fetch_of(front.port, "https", ca_file=str(tmp_path / "no.pem")), url)
            assert "ca_file" in refusal(fetch_of(front.port, "https", ca_file=str(key)), url)
            assert fetch_of(front.port, "https", ca_file=str(certificate))(url).status == 200
        finally:
            front.stop()
