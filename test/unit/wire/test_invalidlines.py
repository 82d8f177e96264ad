"""Header lines that HTTP forbids although they may carry metadata."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.wire.invalidlines import extract_invalid_lines, is_allowed_in_request, is_significant


def head(*lines):
    return b"\r\n".join([b"PUT / HTTP/1.1", *lines, b"", b""])


@pytest.mark.parametrize(
    ("line", "odd"),
    [
        (b"X-Object-Meta-a b: v", (b"X-Object-Meta-a b", b"v")),
        (b'X-Object-Meta-"q": v', (b'X-Object-Meta-"q"', b"v")),
        (b"X-Object-Meta-\xc3\xa9:  v ", (b"X-Object-Meta-\xc3\xa9", b"v")),
        (b"X-Object-Meta-a: v\x01w", (b"X-Object-Meta-a", b"v\x01w")),
        (b"x-amz-meta-a(b)/@: v", (b"x-amz-meta-a(b)/@", b"v")),
    ],
)
def test_odd_lines_are_taken_out_and_the_rest_stays_as_it_is(line, odd):
    rest, found = extract_invalid_lines(head(b"Host: h", line, b"Content-Length: 5"))
    assert rest == head(b"Host: h", b"Content-Length: 5")
    assert found == [odd]


def test_a_regular_head_has_none():
    assert extract_invalid_lines(head(b"Host: h", b"X-Object-Meta-A: b")) is None


@pytest.mark.parametrize(
    "line",
    [
        b"no colon",
        b": no name",
        b" continued: line",
        b"\tcontinued: line",
        b"Content-Length : 5",
        b"Content Length: 5",
        b"Transfer\x00-Encoding: chunked",
        b"\xffHost: h",
        b"Te\x7f: trailers",
    ],
)
def test_what_could_be_about_framing_is_not_let_through(line):
    assert extract_invalid_lines(head(b"Host: h", line)) is None


@given(st.lists(st.binary(max_size=20)))
def test_whatever_comes_what_is_left_has_regular_lines_only(lines):
    found = extract_invalid_lines(head(*(line.replace(b"\r\n", b"") for line in lines)))
    if found is not None:
        assert extract_invalid_lines(found[0]) is None


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        (b"X-Object-Meta-a b", b"v", True),
        (b"X-Object-Meta-a ", b"v", True),
        (b"X-Object-Meta-a\0", b"v\0", True),
        (b"X-Object-Meta-a\nb", b"v", False),
        (b"X-Object-Meta-a", b"v\rw", False),
        (b"X-Other ", b"v", False),
        (b"X-Other", b"v\0", False),
        (b"X-Other\xff", b"v", True),
    ],
)
def test_line_breaks_are_never_asked_and_nul_only_of_metadata(name, value, allowed):
    assert is_allowed_in_request([(name, value)]) is allowed


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (b"Content-Type", True),
        (b"X-Remove-Container-Meta-a b", True),
        (b"X-Object-Meta-\xc3\xa8", True),
        (b"X-Amz-Meta-\xc3\xa8", True),
        (b"X-Account-Sysmeta-\xc3\xa8", True),
        (b"X-Container-Sysmeta-\xc3\xa8", True),
        (b"X-Object-Sysmeta-\xc3\xa8", True),
        (b"X-Object-Transient-Sysmeta-Crypto-Meta-\xc3\xa8", True),
        (b"X-Other a", False),
        (b"X-Object-\xc3\xa8", False),
    ],
)
def test_odd_names_mean_something_as_metadata_only(name, meant):
    assert is_significant(name) is meant
