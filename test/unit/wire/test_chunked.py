"""Chunked bodies decode the same however the network cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.http.body import BadFraming
from swift.wire.chunked import LAST_CHUNK, SIZE_LINE_MAX, TRAILERS_MAX, ChunkDecoder, chunk_head, last_chunk


def encode(pieces, extension=b"", trailers=b""):
    body = b"".join(
        chunk_head(len(p)).replace(b"\r\n", extension + b"\r\n") + p + b"\r\n" for p in pieces if p
    )
    return body + (b"0\r\n" + trailers + b"\r\n" if trailers else LAST_CHUNK)


def decode(stream):
    """(body, bytes used, finished) of a stream given as pieces."""
    decoder, body, used = ChunkDecoder(), b"", 0
    for piece in stream:
        pieces, size = decoder.feed(piece)
        body += b"".join(pieces)
        used += size
        if decoder.finished:
            break
    return body, used, decoder.finished


@given(
    pieces=st.lists(st.binary(max_size=300), max_size=8),
    cuts=st.lists(st.integers(0, 3000), max_size=20),
    extension=st.sampled_from([b"", b";a=b", b' ;x="y"']),
    trailers=st.sampled_from([b"", b"X-A: b\r\n", b"A: 1\r\nB: 2\r\n"]),
    rest=st.binary(max_size=50),
)
def test_any_cutting_of_the_stream_gives_the_same_body_and_leaves_what_follows(
    pieces, cuts, extension, trailers, rest
):
    encoded = encode(pieces, extension, trailers)
    wire = encoded + rest
    edges = sorted({0, len(wire), *(c % (len(wire) + 1) for c in cuts)})
    stream = [wire[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    assert decode(stream) == (b"".join(pieces), len(encoded), True)


@given(pieces=st.lists(st.binary(min_size=1, max_size=20), max_size=4), data=st.data())
def test_a_truncated_stream_never_looks_finished(pieces, data):
    encoded = encode(pieces)
    body, _used, finished = decode([encoded[: data.draw(st.integers(0, len(encoded) - 1))]])
    assert not finished
    assert b"".join(pieces).startswith(body)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_decode_or_are_bad_framing(data):
    try:
        decode([data])
    except BadFraming:
        return


@pytest.mark.parametrize(
    "wire",
    [
        b"zz\r\n",
        b"\r\n",
        b"-1\r\n",
        b"+1\r\na\r\n",
        b"0x1\r\na\r\n",
        b"1 1\r\na\r\n",
        b"f" * 16 + b"\r\n",
        b"1\na\n",
        b"1\r\nab\r\n",
        b"1\r\na\n",
        b"a" * (SIZE_LINE_MAX + 1),
        b"1;" + b"e" * SIZE_LINE_MAX + b"\r\n",
        b"0\r\n" + b"x" * (TRAILERS_MAX + 1),
        b"0\r\n" + b"A: b\r\n" * (TRAILERS_MAX // 3),
        b"0\r\nA: b\n\n",
    ],
)
def test_malformed_framing_is_refused(wire):
    with pytest.raises(BadFraming):
        decode([wire])


def test_trailers_are_known_once_the_body_is_finished():
    decoder = ChunkDecoder()
    for piece in (b"3\r\nabc\r\n0\r\nX-Bo", b"dy-Etag:  e1 \r\nBroken\r\n", b"B: 2\r\n\r\n"):
        assert not decoder.finished
        decoder.feed(piece)
    assert decoder.finished
    assert decoder.trailers == {"x-body-etag": "e1", "b": "2"}


def test_names_of_trailers_keep_what_is_not_ascii():
    decoder = ChunkDecoder()
    decoder.feed(b"0\r\nX-Meta-\xc3\x89A: v\r\n\r\n")
    assert decoder.trailers == {"x-meta-\xc3\x89a": "v"}


def test_trailers_written_are_read_back():
    decoder = ChunkDecoder()
    decoder.feed(last_chunk({"x-a": "1", "x-b": "two words"}))
    assert (decoder.finished, decoder.trailers) == (True, {"x-a": "1", "x-b": "two words"})


@pytest.mark.parametrize("value", ["1\r\nx-c: 2", "1\n", "\r"])
def test_a_trailer_cannot_smuggle_in_another_line(value):
    with pytest.raises(ValueError, match="line break"):
        last_chunk({"x-a": value})


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=5), st.data())
def test_data_received_past_the_decoder_is_counted_like_data_that_was_fed(pieces, data):
    wire, position, body = encode(pieces), 0, b""
    decoder = ChunkDecoder()
    while not decoder.finished:
        if decoder.chunk_bytes_left:
            size = data.draw(st.integers(1, decoder.chunk_bytes_left))
            body += wire[position : position + size]
            decoder.count_received(size)
        else:
            size = data.draw(st.integers(1, 9))
            found, size = decoder.feed(wire[position : position + size])
            body += b"".join(found)
        position += size
    assert (body, position) == (b"".join(pieces), len(wire))
