"""Malformed requests over a real socket get the right 4xx, no traceback, and leave nothing behind."""

import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def converse(cluster, data, *, port=None, half_close=True, timeout=15):
    """Send raw bytes; return everything that is received."""
    with socket.create_connection((cluster.plan.ip, port or cluster.plan.proxy_port), timeout) as sock:
        sock.sendall(data)
        if half_close:
            sock.shutdown(socket.SHUT_WR)
        received = b""
        while True:
            try:
                piece = sock.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            received += piece
    return received


def status_of(received):
    return int(received.split(b" ", 2)[1]) if received.startswith(b"HTTP/1.1 ") else None


HOST = b"Host: localhost\r\n"
LAST = HOST + b"Connection: close\r\n\r\n"
CORPUS = [
    ("no version", b"GET /\r\n\r\n", 400),
    ("garbage", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    ("only a space", b" \r\n\r\n", 400),
    ("two spaces in the request line", b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("bare line feeds", b"GET / HTTP/1.1\nHost: x\n\n", 400),
    ("spaces in the target", b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("HTTP/3", b"GET / HTTP/3.0\r\n" + HOST + b"\r\n", 505),
    ("no Host", b"GET /v1/AUTH_test HTTP/1.1\r\n\r\n", 400),
    ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("bad method", b"G{}T / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("asterisk", b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("space before the colon", b"GET / HTTP/1.1\r\n" + HOST + b"X-A : b\r\n\r\n", 400),
    ("folded header", b"GET / HTTP/1.1\r\n" + HOST + b"X-A: b\r\n c\r\n\r\n", 400),
    ("bare CR in a value", b"GET / HTTP/1.1\r\n" + HOST + b"X-A: b\rX-B: c\r\n\r\n", 400),
    ("NUL in a value", b"GET / HTTP/1.1\r\n" + HOST + b"X-A: b\0c\r\n\r\n", 400),
    ("header without colon", b"GET / HTTP/1.1\r\n" + HOST + b"nothing\r\n\r\n", 400),
    (
        "length and chunked",
        b"PUT /v1/AUTH_test/c/o HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    ("two lengths", b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
    ("negative length", b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400),
    ("signed length", b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: +1\r\n\r\na", 400),
    ("hex length", b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 0x1\r\n\r\na", 400),
    ("huge length", b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", 400),
    ("unknown coding", b"PUT / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 400),
    ("two codings", b"PUT / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
    ("unknown expectation", b"PUT / HTTP/1.1\r\n" + HOST + b"Expect: cake\r\nContent-Length: 0\r\n\r\n", 417),
    ("long request line", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    ("endless request line", b"GET /" + b"a" * 20000, 414),
    ("long header", b"GET / HTTP/1.1\r\n" + HOST + b"X-A: " + b"a" * 9000 + b"\r\n\r\n", 400),
    (
        "many headers",
        b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: a\r\n" % i for i in range(300)) + b"\r\n",
        431,
    ),
    (
        "bad escape is a name",
        b"GET /v1/AUTH_test/%zz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
        401,
    ),
    ("not UTF-8", b"GET /v1/AUTH_test/%ff%fe HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 412),
    (
        "raw 8-bit not UTF-8",
        b"GET /v1/AUTH_test/\xff HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
        412,
    ),
    ("NUL in the path", b"GET /v1/AUTH_test/c%00 HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 412),
]


@pytest.mark.parametrize(("data", "expected"), [(d, s) for _, d, s in CORPUS], ids=[n for n, _, _ in CORPUS])
def test_a_malformed_request_gets_a_4xx(cluster, data, expected):
    received = converse(cluster, data)
    assert status_of(received) == expected, received[:300]
    assert b"Traceback" not in received


@pytest.mark.parametrize("kind", ["object", "container", "account"])
def test_storage_servers_refuse_malformed_requests(cluster, kind):
    for name, data, _expected in CORPUS:
        received = converse(cluster, data, port=cluster.plan.port(kind, 1))
        status = status_of(received)
        assert status is not None and (400 <= status < 500 or status in (501, 505, 507)), (
            name,
            received[:200],
        )
        assert b"Traceback" not in received


def upload(cluster, name, framing, body):
    token = cluster.token().encode()
    return (
        b"PUT /v1/AUTH_test/broken/"
        + name
        + b" HTTP/1.1\r\n"
        + HOST
        + b"X-Auth-Token: "
        + token
        + b"\r\nConnection: close\r\n"
        + framing
        + b"\r\n"
        + body
    )


BROKEN_BODIES = [
    ("short", b"Content-Length: 100\r\n", b"only this", 499),
    ("short-large", b"Content-Length: 200000\r\n", b"x" * 100000, 499),
    ("no-last-chunk", b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n", 499),
    ("bad-size", b"Transfer-Encoding: chunked\r\n", b"zz\r\nabc\r\n0\r\n\r\n", 400),
    ("long-size", b"Transfer-Encoding: chunked\r\n", b"1" * 400, 400),
    ("chunk-too-long", b"Transfer-Encoding: chunked\r\n", b"3\r\nabcdef\r\n0\r\n\r\n", 400),
    ("bare-lf", b"Transfer-Encoding: chunked\r\n", b"3\nabc\n0\n\n", 400),
    ("wrong-etag", b"Content-Length: 3\r\nETag: d41d8cd98f00b204e9800998ecf8427e\r\n", b"abc", 422),
    ("no-length", b"", b"", 411),
    ("too-large", b"Content-Length: 5368709123\r\n", b"", 413),
    ("bad-delete-at", b"Content-Length: 0\r\nX-Delete-At: soon\r\n", b"", 400),
    ("past-delete-after", b"Content-Length: 0\r\nX-Delete-After: 0\r\n", b"", 400),
    ("bad-if-none-match", b'Content-Length: 0\r\nIf-None-Match: "abc"\r\n', b"", 400),
    ("empty-meta-name", b"Content-Length: 0\r\nX-Object-Meta-: a\r\n", b"", 400),
    ("long-meta-value", b"Content-Length: 0\r\nX-Object-Meta-A: " + b"a" * 257 + b"\r\n", b"", 400),
    ("reserved-type", b"Content-Length: 0\r\nContent-Type: a/b; swift_x=1\r\n", b"", 400),
    ("n" * 1025, b"Content-Length: 0\r\n", b"", 400),
]


@pytest.mark.parametrize(
    ("name", "framing", "body", "expected"), BROKEN_BODIES, ids=[b[0][:30] for b in BROKEN_BODIES]
)
def test_a_broken_upload_is_refused_and_leaves_no_object(cluster, name, framing, body, expected):
    assert cluster.request("PUT", "broken").status in (201, 202)
    received = converse(cluster, upload(cluster, name.encode(), framing, body))
    if expected == 499:
        # The client that broke off usually does not see its answer; the log does.
        assert status_of(received) in (None, 499), received[:200]
    else:
        assert status_of(received) == expected, received[:300]
    assert cluster.request("GET", f"broken/{name}").status in (404, 400)
    names = cluster.request("GET", "broken").body.decode().split("\n")
    assert name not in names


INNER = b"GET /healthcheck HTTP/1.1\r\nHost: smuggled\r\n\r\n"


@pytest.mark.parametrize(
    "first",
    [b"%x\n" % (5 + len(INNER)), b"zz\r\n", b"5;a\nb\r\n", b"0" * 20 + b"5\r\n", b"3\r\nabcdef\r\n"],
)
def test_a_chunked_body_cannot_smuggle_a_request(cluster, first):
    cluster.request("PUT", "broken")
    head = upload(cluster, b"smuggle", b"Transfer-Encoding: chunked\r\n", b"")
    head = head.replace(b"Connection: close\r\n", b"")
    with socket.create_connection((cluster.plan.ip, cluster.plan.proxy_port), 15) as sock:
        sock.sendall(head + first)
        received = sock.recv(65536)
        assert status_of(received) == 400
        assert b"connection: close" in received.lower()
        # A proxy in front that takes the first line for a chunk size sends these as data of that chunk.
        rest = b""
        try:
            sock.sendall(b"0\r\n\r\n" + INNER)
            while piece := sock.recv(65536):
                rest += piece
        except OSError:
            pass
    assert b"HTTP/1.1" not in rest
    assert cluster.request("GET", "broken/smuggle").status == 404


def test_a_header_cannot_smuggle_another_into_a_response(cluster):
    cluster.request("PUT", "broken")
    response = cluster.request(
        "PUT", "broken/smuggle", {"X-Object-Meta-A": "caf\xc3\xa9%0d%0aX-Evil: 1"}, b"x"
    )
    assert response.status == 201
    response = cluster.request("HEAD", "broken/smuggle")
    assert "x-evil" not in response.headers
    assert response.headers["x-object-meta-a"] == "caf\xc3\xa9%0d%0aX-Evil: 1"


def test_a_copy_request_is_not_treated_as_an_empty_upload(cluster):
    cluster.request("PUT", "broken")
    assert cluster.request("PUT", "broken/source", {}, b"abc").status == 201
    response = cluster.request("PUT", "broken/copy", {"X-Copy-From": "/broken/source", "Content-Length": "0"})
    assert response.status == 201
    assert cluster.request("GET", "broken/copy").body == b"abc"


def test_a_manifest_cannot_make_an_object_parsed_as_a_listing(cluster):
    cluster.request("PUT", "broken")
    assert cluster.request("PUT", "broken/plain", {}, b"no listing").status == 201
    headers = {"X-Object-Manifest": "broken%2Fplain/x"}
    assert cluster.request("PUT", "broken/manifest", headers, b"").status == 201
    assert cluster.request("GET", "broken/manifest").status == 404


def test_dots_are_ordinary_names_and_never_leave_the_container(cluster):
    cluster.request("PUT", "dots")
    for name in ("../../etc/passwd", "..", "a/../b", "./x"):
        token = cluster.token().encode()
        data = (
            b"PUT /v1/AUTH_test/dots/"
            + name.encode()
            + b" HTTP/1.1\r\n"
            + HOST
            + b"X-Auth-Token: "
            + token
            + b"\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
        )
        assert status_of(converse(cluster, data)) == 201
    listed = cluster.request("GET", "dots").body.decode().splitlines()
    assert sorted(listed) == sorted(["../../etc/passwd", "..", "a/../b", "./x"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(
        st.binary(max_size=400),
        st.tuples(
            st.sampled_from([b"GET", b"PUT", b"HEAD", b"POST", b"DELETE", b"COPY", b"OPTIONS", b"X"]),
            st.binary(max_size=60),
            st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/0.9", b""]),
            st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=40)), max_size=5),
            st.binary(max_size=80),
        ).map(
            lambda t: (
                t[0]
                + b" /"
                + t[1]
                + b" "
                + t[2]
                + b"\r\nHost: x\r\n"
                + b"".join(name + b": " + value + b"\r\n" for name, value in t[3])
                + b"\r\n"
                + t[4]
            )
        ),
    )
)
def test_random_bytes_never_cause_a_server_error(cluster, data):
    received = converse(cluster, data)
    status = status_of(received)
    assert status is None or status < 500 or status in (501, 505), (data, received[:300])
    assert b"Traceback" not in received


def test_malformed_requests_leave_no_traceback_in_the_logs(cluster):
    assert "Traceback" not in cluster.log_text()
