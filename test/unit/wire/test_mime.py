"""MIME streams are cut into the same documents however the bytes arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.wire.mime import BadMime, DocumentBegins, DocumentData, DocumentEnds, MimeParser

BOUNDARY = "b0undary"


def stream(documents):
    parts = [b"--" + BOUNDARY.encode()]
    for headers, data in documents:
        lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
        parts.append(b"\r\n" + lines + b"\r\n" + data + b"\r\n--" + BOUNDARY.encode())
    return b"".join(parts) + b"--"


def documents_of(events):
    found = []
    for event in events:
        if isinstance(event, DocumentBegins):
            found.append([event.headers, b""])
        elif isinstance(event, DocumentData):
            found[-1][1] += event.data
    return [tuple(each) for each in found]


_HEADERS = st.dictionaries(
    st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True),
    st.from_regex(r"[a-z0-9]{0,8}", fullmatch=True),
    max_size=3,
)
# Data full of what looks like the beginning of a delimiter.
_DATA = st.lists(st.sampled_from([b"\r", b"\n", b"-", b"\r\n--", b"b0und", b"x", b"\r\n--b0undar"])).map(
    b"".join
)


@given(st.lists(st.tuples(_HEADERS, _DATA), min_size=1, max_size=3), st.lists(st.integers(1, 40)))
def test_any_cut_gives_the_same_documents(documents, cuts):
    data = stream(documents)
    parser, events = MimeParser(BOUNDARY), []
    for size in [*cuts, len(data) + 1]:
        events += parser.feed(data[:size])
        data = data[size:]
    assert documents_of(events) == documents
    ends = [event.last for event in events if isinstance(event, DocumentEnds)]
    assert ends == [False] * (len(documents) - 1) + [True]


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"--other\r\n",
        b"--b0undary\r\nno colon\r\n\r\n",
        b"--b0undary\r\n\r\ndata\r\n--b0undary??",
        b"--b0undary\r\nX: " + b"y" * 70_000,
    ],
)
def test_what_is_no_mime_stream_is_refused(data):
    with pytest.raises(BadMime):
        MimeParser(BOUNDARY).feed(data)


@pytest.mark.parametrize("boundary", ["", "x" * 300])
def test_a_boundary_has_a_reasonable_length(boundary):
    with pytest.raises(BadMime):
        MimeParser(boundary)
