"""Lines of SSYNC survive any cutting; offers and wants read back what was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import OFFSET_MAX, RAW_MAX, Timestamp
from swift.wire.ssync import (
    LINE_BYTES_MAX,
    UPDATES_END,
    LineReader,
    Offer,
    SsyncEnded,
    SsyncError,
    SsyncRefused,
    Subrequest,
    UpdatesReader,
    Want,
    WantsReader,
    delete_subrequest,
    encode_line,
    encode_wants,
    error_line,
    post_subrequest,
    put_subrequest,
)

HASH = "85917ea587b9821d397cb2b48d5c81df"
_RAW = st.integers(0, RAW_MAX)
_TIMES = st.builds(Timestamp.from_raw, _RAW, st.one_of(st.just(0), st.integers(0, OFFSET_MAX)))


def ts(text):
    return Timestamp(text)


@pytest.mark.parametrize(
    ("text", "offer"),
    [
        (
            f"{HASH} 5000000003.00000 m:30d40,t:186a0",
            Offer(HASH, ts("5000000003"), ts("5000000005"), ts("5000000004")),
        ),
        (
            f"{HASH} 5000000008.00000_0000000000000001 m:186a0__ab",
            Offer.of(HASH, ts("5000000008_1"), ts("5000000009_ab"), ts("5000000008_1")),
        ),
        (f"{HASH} 5000000030.00000 durable:False", Offer.of(HASH, ts("5000000030"), durable=False)),
        (f"{HASH} 5000000000.00000", Offer.of(HASH, ts("5000000000"))),
    ],
)
def test_recorded_offers_read_and_print_as_they_are(text, offer):
    assert Offer.parse(text) == offer
    assert offer.encode() == text


@given(data=_TIMES, meta=_TIMES, ctype=_TIMES, durable=st.booleans())
def test_what_an_offer_says_is_understood(data, meta, ctype, durable):
    offer = Offer(HASH, data, meta, ctype if meta != data else data, durable)
    back = Offer.parse(offer.encode())
    assert (back.hash, back.data, back.durable) == (HASH, data, durable)
    assert back.meta == meta
    if meta != data:
        assert back.ctype == ctype


def test_unknown_options_are_ignored_and_missing_ones_are_the_data_s():
    offer = Offer.parse(f"{HASH} 5000000000.00000 future:x,nonsense,m:a")
    assert (offer.meta.raw - offer.data.raw, offer.ctype, offer.durable) == (10, offer.data, True)


@pytest.mark.parametrize("text", ["", HASH, f"{HASH} never", f"{HASH} 5 m:xyz", f"{HASH} 5 m:-fffffff"])
def test_malformed_offers_are_refused(text):
    with pytest.raises(SsyncError):
        Offer.parse(text)


def test_wants_read_back_and_old_receivers_mean_the_data():
    for want in (Want(HASH, True, False), Want(HASH, False, True), Want(HASH, True, True)):
        assert Want.parse(want.encode()) == want
    assert Want.parse(HASH) == Want(HASH, True, False)
    with pytest.raises(SsyncError):
        Want.parse("")


class IterableBody:
    """Gives a text cut at chosen places."""

    def __init__(self, data, cuts):
        marks = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
        self.pieces = [data[a:b] for a, b in zip(marks, marks[1:], strict=False) if a != b]

    def __call__(self):
        return self.pieces.pop(0) if self.pieces else b""


@given(cuts=st.lists(st.integers(0, 1000), max_size=30))
def test_updates_are_the_same_however_the_stream_was_cut(cuts):
    put = put_subrequest(
        "/a/c/o", {"Content-Length": "11", "ETag": "e", "X-Timestamp": "1", "name": "/a/c/o"}
    )
    post = post_subrequest("/a/c/o", {"X-Object-Meta-B": "2", "X-Timestamp": "2", "name": "/a/c/o"})
    data = encode_line(":UPDATES: START") + put.encode() + b"hello\r\n\r\nyo" + post.encode()
    data += delete_subrequest("/a/c/p", ts("3")).encode() + encode_line(UPDATES_END)
    lines = LineReader(IterableBody(data, cuts))
    lines.expect(":UPDATES: START")
    first = lines.next_subrequest()
    assert first == put
    body = b""
    while len(body) < first.body_bytes:
        body += lines.take(first.body_bytes - len(body))
    assert body == b"hello\r\n\r\nyo"
    assert lines.next_subrequest() == post
    assert lines.next_subrequest() == Subrequest("DELETE", "/a/c/p", {"x-timestamp": "0000000003.00000"})
    assert lines.next_subrequest() is None
    assert lines.next_line() is None


def test_a_head_is_printed_as_recorded():
    head = put_subrequest(
        "/AUTH_test/c/obj57",
        {
            "X-Timestamp": "5000000003.00000",
            "Content-Type": "text/plain",
            "Content-Length": "10",
            "ETag": "a050cb2baee0ac99dc9e399529d86e21",
            "name": "/AUTH_test/c/obj57",
        },
        durable=False,
    )
    assert head.encode() == (
        b"PUT /AUTH_test/c/obj57\r\nContent-Length: 10\r\nContent-Type: text/plain\r\n"
        b"ETag: a050cb2baee0ac99dc9e399529d86e21\r\nX-Backend-No-Commit: True\r\n"
        b"X-Timestamp: 5000000003.00000\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("first", "headers", "text"),
    [
        ("GET /a/c/o", [], "Invalid subrequest method GET"),
        ("PUT /a/c/o", [], "No content-length sent for PUT /a/c/o"),
        ("PUT /a/c/o", ["Content-Length: -1"], "malformed content-length"),
        ("DELETE /a/c/o", ["Content-Length: 3"], "DELETE subrequest with content-length /a/c/o"),
        ("PUT /a/c/o", ["nonsense"], "malformed header line"),
    ],
)
def test_subrequests_that_must_not_be_carried_out_are_refused(first, headers, text):
    with pytest.raises(SsyncError, match=text):
        Subrequest.parse(first, headers)


def test_a_value_cannot_smuggle_in_another_line():
    with pytest.raises(SsyncError):
        post_subrequest("/a/c/o", {"X-Object-Meta-A": "1\r\nX-Evil: 2"}).encode()


def test_endless_lines_and_heads_are_refused_and_hangups_told_apart():
    with pytest.raises(SsyncError):
        LineReader(lambda: b"x" * 4096).next_line()
    with pytest.raises(SsyncError):
        LineReader(IterableBody(b"x" * LINE_BYTES_MAX + b"\r\n", [])).next_line()
    with pytest.raises(SsyncError):
        LineReader(lambda: b"POST /a/c/o\r\n" + b"a: b\r\n" * 1001).next_subrequest()
    with pytest.raises(SsyncEnded):
        LineReader(lambda: b"").expect(":UPDATES: START")
    with pytest.raises(SsyncEnded):
        LineReader(IterableBody(b"POST /a/c/o\r\nX-Timestamp: 1\r\n", [])).next_subrequest()


def test_heads_are_refused_that_no_object_has_although_each_line_is_short_enough():
    line = b"x-object-meta-" + b"n" * 60_000 + b": v\r\n"
    with pytest.raises(SsyncError, match="too many headers"):
        LineReader(IterableBody(b"POST /a/c/o\r\n" + line * 5 + b"\r\n", [])).next_subrequest()


def test_a_sender_understands_what_a_receiver_says():
    wants = [Want(HASH, True, True), Want(HASH[::-1], False, True)]
    reader = WantsReader()
    lines = LineReader(IterableBody(b"\r\n" + b"".join(encode_wants(wants)), [3, 30]))
    while not reader.finished:
        reader.feed(lines.next_line())
    assert list(reader.wants.values()) == wants
    nothing = WantsReader()
    for text in b"".join(encode_wants([])).decode().split("\r\n"):
        nothing.feed(text)
    assert nothing.finished
    assert nothing.wants == {}


def test_a_refusal_names_its_status_and_surprises_are_errors():
    reader = UpdatesReader()
    with pytest.raises(SsyncRefused, match="ERROR: With") as caught:
        reader.feed(error_line(500, b"ERROR: With :UPDATES: 1 failures to 0 successes").decode())
    assert caught.value.status == 500
    with pytest.raises(SsyncError):
        UpdatesReader().feed("something else")
    reader = UpdatesReader()
    reader.feed(":UPDATES: START")
    with pytest.raises(SsyncError):
        reader.feed("something else")
    reader.feed(":UPDATES: END")
    assert reader.finished
