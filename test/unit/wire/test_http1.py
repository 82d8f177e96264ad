"""Heads: whatever bytes come, there is a head or a BadHead, and framing is never ambiguous."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swift.wire.http1 import (
    HEAD_BYTES_MAX,
    BadHead,
    HeadLimits,
    check_unfinished,
    date_line,
    has_strict_lines,
    parse_request_head,
    parse_response_head,
    request_head,
    response_head,
)

LIMITS = HeadLimits()


def parse(text):
    return parse_request_head(text, LIMITS)


def head(line=b"GET /a HTTP/1.1", *headers, host=b"Host: x"):
    return b"\r\n".join([line, *([host] if host else []), *headers, b"", b""])


def refusal(data, limits=LIMITS):
    with pytest.raises(BadHead) as caught:
        parse_request_head(data, limits)
    return caught.value.status


_LINE = st.binary(max_size=40).map(lambda b: b.replace(b"\r\n", b""))


@settings(max_examples=400)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(lambda b: b + b"\r\n\r\n"),
        st.tuples(
            st.sampled_from([b"GET ", b"PUT ", b"SSYNC ", b"M-SEARCH ", b"CONNECT ", b"x "]),
            _LINE,
            st.sampled_from([b" HTTP/1.1", b" HTTP/1.0", b" HTTP/2.0", b" HTTP/0.9", b""]),
            st.lists(
                st.tuples(
                    st.sampled_from(
                        [
                            b"Host",
                            b"Content-Length",
                            b"Transfer-Encoding",
                            b"Connection",
                            b"Upgrade",
                            b"Expect",
                        ]
                    ),
                    _LINE | st.sampled_from([b"", b"3", b"chunked", b"close", b"h2c", b"100-continue"]),
                ),
                max_size=5,
            ),
        ).map(lambda t: t[0] + t[1] + t[2] + b"\r\n" + b"".join(b"%s: %s\r\n" % p for p in t[3]) + b"\r\n"),
    )
)
@example(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n")
@example(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: \t \r\n\r\n")
@example(b"GET / HTTP/1.1\r\nHost: x\n\nGET /smuggled HTTP/1.1\r\nHost: y\r\n\r\n")
def test_arbitrary_bytes_become_a_head_or_a_bad_head(data):
    try:
        parsed = parse(data)
    except BadHead as error:
        assert error.status in (400, 414, 417, 431, 501, 505)
        return
    assert parsed.raw_path.startswith("/")
    assert (parsed.length is None) == parsed.chunked
    assert parsed.length is None or parsed.length >= 0


@given(st.binary(max_size=300).map(lambda b: b + b"\r\n\r\n"), st.sampled_from(["GET", "HEAD", "PUT"]))
@example(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", "GET")
@example(b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "GET")
def test_arbitrary_answers_become_a_head_or_a_bad_head(data, method):
    try:
        parse_response_head(data, method)
    except BadHead as error:
        assert error.status == 502


def test_a_head_is_values():
    parsed = parse(
        head(b"GET /v1/a%20b?x=y&z HTTP/1.1", b"X-Object-Meta-A: caf\xc3\xa9 ", b"X-A: 1", b"x-a: 2")
    )
    assert (parsed.method, parsed.raw_path, parsed.query) == ("GET", "/v1/a%20b", "x=y&z")
    assert parsed.headers == {"host": "x", "x-object-meta-a": "caf\xc3\xa9", "x-a": "1,2"}
    assert (parsed.minor, parsed.keep_alive, parsed.length, parsed.chunked) == (1, True, 0, False)


@pytest.mark.parametrize("verb", ["REPLICATE", "SSYNC", "UPDATE", "COPY", "BREW"])
def test_verbs_that_the_parser_does_not_know_keep_their_names(verb):
    assert parse(head(f"{verb} /x HTTP/1.1".encode())).method == verb


def test_raw_eight_bit_targets_arrive_percent_encoded():
    assert parse(head(b"GET /\xc3\xa9 HTTP/1.1")).raw_path == "/%C3%A9"


def test_header_names_with_underscores_are_dropped():
    assert parse(head(b"GET / HTTP/1.1", b"X_Auth: 1", b"Content_Length: 9")).headers == {"host": "x"}


def test_but_not_those_of_the_metadata_that_s3_clients_sign():
    assert parse(head(b"GET / HTTP/1.1", b"X-Amz-Meta-A_b: 1")).headers["x-amz-meta-a_b"] == "1"


@pytest.mark.parametrize(
    ("line", "headers", "keep"),
    [
        (b"GET / HTTP/1.1", [], True),
        (b"GET / HTTP/1.1", [b"Connection: close"], False),
        (b"GET / HTTP/1.0", [], False),
        (b"GET / HTTP/1.0", [b"Connection: keep-alive"], True),
    ],
)
def test_who_may_keep_the_connection(line, headers, keep):
    assert parse(head(line, *headers)).keep_alive is keep


def test_http_1_0_needs_no_host_and_1_1_exactly_one():
    assert parse(head(b"GET / HTTP/1.0", host=None)).minor == 0
    assert refusal(head(host=None)) == 400
    assert refusal(head(b"GET / HTTP/1.1", b"Host: y")) == 400


def test_absolute_targets_are_reduced_to_their_path():
    assert parse(head(b"GET http://h/p?q HTTP/1.1")).raw_path == "/p"
    assert parse(head(b"GET http://h HTTP/1.1")).raw_path == "/"
    assert refusal(head(b"GET ftp://h/p HTTP/1.1")) == 400
    assert refusal(head(b"OPTIONS * HTTP/1.1")) == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([b"Content-Length: 3", b"Transfer-Encoding: chunked"], 400),
        ([b"Transfer-Encoding: gzip"], 400),
        ([b"Transfer-Encoding: gzip, chunked"], 501),
        ([b"Content-Length: 3", b"Content-Length: 3"], 400),
        ([b"Content-Length: 3, 3"], 400),
        ([b"Content-Length: -3"], 400),
        ([b"Content-Length: +3"], 400),
        ([b"Expect: cake"], 417),
        ([b"X: a\rY: b"], 400),
        ([b"X: a\nY: b"], 400),
        ([b"X : a"], 400),
        ([b"X: a", b" folded"], 400),
    ],
)
def test_ambiguous_framing_is_refused(headers, status):
    assert refusal(head(b"PUT / HTTP/1.1", *headers)) == status


def test_expectations_are_for_http_1_1_only():
    assert parse(head(b"PUT / HTTP/1.1", b"Expect: 100-Continue", b"Content-Length: 1")).expects_continue
    assert not parse(head(b"PUT / HTTP/1.0", b"Expect: 100-continue", b"Content-Length: 1")).expects_continue


def test_each_size_limit_has_its_status():
    limits = HeadLimits(line_bytes=100, header_bytes=100, header_count=4)
    assert refusal(b"GET /" + b"a" * 100 + b" HTTP/1.1\r\nHost: x\r\n\r\n", limits) == 414
    assert refusal(head(b"GET / HTTP/1.1", b"X: " + b"a" * 100), limits) == 400
    assert refusal(head(b"GET / HTTP/1.1", *[b"X: a"] * 4), limits) == 431
    parse_request_head(head(b"GET / HTTP/1.1", *[b"X: a"] * 3), limits)
    assert refusal(head(b"GET / HTTP/1.1", *[b"X: " + b"a" * 8000] * 10)) == 431


def test_heads_that_grow_too_long_are_refused_before_their_end():
    check_unfinished(b"GET /" + b"a" * 8000, LIMITS)
    for data, status in ((b"a" * 9000, 414), (b"GET / HTTP/1.1\r\n" + b"a" * HEAD_BYTES_MAX, 431)):
        with pytest.raises(BadHead) as caught:
            check_unfinished(data, LIMITS)
        assert caught.value.status == status


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb"])
def test_responses_cannot_smuggle_header_lines(value):
    lines = response_head(200, "OK", {"x-a": value, "x-b": "c"}, "").split(b"\r\n")
    assert [line.partition(b":")[0] for line in lines] == [b"HTTP/1.1 200 OK", b"X-A", b"X-B", b"", b""]
    assert not any(b"\r" in line or b"\n" in line for line in lines)
    with pytest.raises(ValueError):
        response_head(200, "OK", {f"x-a{value}": ""}, "")
    with pytest.raises(ValueError):
        response_head(200, f"OK{value}", {}, "")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb"])
def test_requests_cannot_smuggle_header_lines(value):
    with pytest.raises(ValueError):
        request_head("GET", "/", "h", {"x-a": value})
    with pytest.raises(ValueError):
        request_head("GET", f"/{value}", "h", {})


def test_what_is_written_reads_back():
    wire = response_head(206, "Partial Content", {"etag": "x", "content-length": "3"}, date_line(0))
    parsed = parse_response_head(wire, "GET")
    assert (parsed.status, parsed.reason, parsed.length) == (206, "Partial Content", 3)
    assert parsed.headers["date"] == "Thu, 01 Jan 1970 00:00:00 GMT"
    assert b"Etag: x\r\n" in wire


@pytest.mark.parametrize(
    ("text", "method", "length", "chunked", "keep"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 5, False, True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", 0, False, True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "GET", 0, False, True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", 0, False, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", None, True, True),
        (b"HTTP/1.1 200 OK\r\n\r\n", "GET", None, False, False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", "GET", 5, False, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 5, False, False),
    ],
)
def test_the_framing_of_answers(text, method, length, chunked, keep):
    parsed = parse_response_head(text, method)
    assert (parsed.length, parsed.chunked, parsed.keep_alive) == (length, chunked, keep)


# --- odd lines ----------------------------------------------------------------------------------------

ODD = [
    (b"X-Object-Meta-\xc3\xbc", b"v"),
    (b"X-Account-Meta-a b", b"v"),
    (b"X-Container-Meta-a(b", b"v"),
    (b"X-Remove-Container-Meta-a,b", b"v"),
    (b"X-Object-Meta-a\x01b ", b"v"),
    (b"X-Object-Meta-\0", b"\0"),
    (b"X-Object-Meta-A", b"v\x01w"),
    (b"X-Object-Meta-A", b"\x7f"),
    (b"Content-Disposition", b"v\x0bw"),
]


@pytest.mark.parametrize(("name", "value"), ODD)
def test_odd_metadata_is_taken_from_requests_and_answers_and_written_again(name, value):
    key, text = name.lower().decode("latin-1"), value.decode("latin-1")
    line = name + b": " + value
    headers = parse(head(b"GET / HTTP/1.1", b"X-B: c", line, b"X-D: e")).headers
    assert headers == {"host": "x", "x-b": "c", key: text, "x-d": "e"}
    response = parse_response_head(b"HTTP/1.1 200 OK\r\nX-B: c\r\n" + line + b"\r\n\r\n", "GET")
    assert (response.status, response.headers) == (200, {"x-b": "c", key: text})
    for written in (request_head("GET", "/", "x", {key: text}), response_head(200, "OK", {key: text}, "")):
        assert b"\r\n" + name.title() + b": " + value + b"\r\n" in written


@pytest.mark.parametrize("name", ["a(b)", "a/b@c", 'a"b', "a b", "\u00c3\u00a9"])
def test_metadata_of_s3_is_taken_under_the_name_that_its_client_signed(name):
    line = f"X-Amz-Meta-{name}: v".encode("latin-1")
    assert parse(head(b"GET / HTTP/1.1", line)).headers == {"host": "x", f"x-amz-meta-{name}": "v"}


def test_odd_names_that_are_no_metadata_are_ignored():
    assert parse(head(b"GET / HTTP/1.1", b"x y: z", b"\xfc: z")).headers == {"host": "x"}


def test_repeated_odd_lines_are_joined():
    headers = parse(head(b"GET / HTTP/1.1", b"X-Object-Meta-a b: 1", b"x-object-meta-A B: 2")).headers
    assert headers["x-object-meta-a b"] == "1,2"


@pytest.mark.parametrize(
    "line",
    [
        b"Content-Length : 3",
        b"Content-Length\x0b: 3",
        b"\xffContent-Length: 3",
        b"Transfer-Encoding\0: chunked",
        b"Host : y",
        b"Content-Length: 3\x01",
        b"Transfer-Encoding: \x0bchunked",
        b"Transfer-Encoding: chunked\x7f",
        b"X-Object-Meta-A: v\nContent-Length: 3",
        b"X-Object-Meta-A: v\rContent-Length: 3",
        b"X-Object-Meta-a\rb: v",
        b"X-Object-Meta-A: v\r\n folded",
        b" X-Object-Meta-A: v",
        b"X-Object-Meta-A B",
        b": v",
        b"X-A : v",
        b"X-A: \0",
    ],
)
def test_nothing_odd_is_taken_that_could_be_framing(line):
    assert refusal(head(b"GET / HTTP/1.1", line)) == 400
    assert refusal(head(b"GET / HTTP/1.1", b"X-Object-Meta-a b: c", line)) == 400


@pytest.mark.parametrize(
    ("lines", "is_strict"),
    [
        ([], True),
        ([b"Host: x", b"X-Empty:", b"X-Eight: \xff\x80\t~"], True),
        ([b"Content-Length : 3"], False),
        ([b"X: a\nTransfer-Encoding: chunked"], False),
        ([b"X: a\rY: b"], False),
        ([b"X: a", b" folded"], False),
        ([b"X: a", b"\tfolded"], False),
        ([b"X-A: \0"], False),
        ([b"X-A: \x7f"], False),
        ([b": v"], False),
        ([b"no colon"], False),
    ],
)
def test_parsers_of_former_releases_get_strict_lines_only(lines, is_strict):
    assert has_strict_lines(head(b"GET / HTTP/1.1", *lines)) == is_strict
    assert has_strict_lines(b"\r\n".join((b"HTTP/1.1 200 OK", *lines, b"", b""))) == is_strict


def test_odd_lines_excuse_nothing_else():
    odd = b"X-Object-Meta-a b: c"
    assert refusal(head(b"GET / HTTP/1.1", odd, b"Content-Length: 3", b"Transfer-Encoding: chunked")) == 400
    assert refusal(head(b"GET / HTTP/1.1", odd, b"Content-Length: x")) == 400
    assert refusal(head(b"GET / HTTP/9.1", odd)) == 505
    with pytest.raises(BadHead):
        parse_response_head(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\nX-A B: c\r\n\r\n", "GET")


def test_line_breaks_in_stored_values_become_spaces():
    written = response_head(200, "OK", {"x-object-meta-a": "v\nContent-Length: 3\r\n w"}, "")
    assert b"\r\nX-Object-Meta-A: v Content-Length: 3   w\r\n\r\n" in written
    with pytest.raises(ValueError, match="line break"):
        response_head(200, "OK\r\nx: y", {}, "")
