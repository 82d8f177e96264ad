"""Bodies in aws-chunked framing: nothing is left out, moved or added (middleware.md §22.1)."""

import pytest

from swift.http.body import RequestBody
from swift.s3.core.chunked import CHUNK_BYTES_MIN, ChunkedPayload
from swift.s3.core.claim import SIGNED_CHUNKS_TRAILER, UNSIGNED_TRAILER, ClaimV4
from swift.s3.core.errors import RejectedBody
from test.support.s3 import chunked

STAMP = "20130524T000000Z"
SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
BIG = bytes(range(256)) * (CHUNK_BYTES_MIN // 256)
CHECKSUM = ("x-amz-checksum-crc32", "AAAAAA==")


class Source(RequestBody):
    """Bytes as they arrive, so many at a time at most."""

    received = 0

    def __init__(self, data, step):
        self.data, self.step = data, step
        self.length = len(data)

    def read(self, size=-1):
        size = self.step if size < 0 else min(size, self.step)
        data, self.data = self.data[:size], self.data[size:]
        return data


def claim_of(payload=SIGNED):
    """A signature that was right, so that its secret is known."""
    canonical = b"PUT\n/bucket/key\n\n\n\n"
    given = {"stamp": STAMP, "canonical_request": canonical, "region": "us-east-1", "content_sha256": payload}
    first = ClaimV4("key", "", is_presigned=False, **given)
    made = ClaimV4("key", first._sign("testing", first.string_to_sign), is_presigned=False, **given)
    assert made.verify("testing")
    return made


def framed(*pieces, payload=SIGNED, trailer=None):
    head = {"X-Amz-Date": STAMP, "Authorization": f"Signature={claim_of(payload).signature}"}
    return chunked(pieces, head, signed=payload != UNSIGNED_TRAILER, trailer=trailer)


def body_of(data, size, payload=SIGNED, step=1 << 20, announced=()):
    return ChunkedPayload(Source(data, step), claim_of(payload), size, announced)


def refusal(data, size, payload=SIGNED, step=1 << 20, announced=()):
    """The error, before which the last byte must not be handed out."""
    body, got = body_of(data, size, payload, step, announced), 0
    with pytest.raises(RejectedBody) as caught:
        while piece := body.read(1000):
            got += len(piece)
    assert got < size or not size, "the last bytes are handed on when all was right"
    return caught.value.s3_error


def refused(*words, **how):
    return refusal(*words, **how).code


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize("pieces", [(), (b"x",), (BIG,), (BIG, BIG, b"end")], ids=len)
def test_what_was_framed_comes_out_however_it_arrives(pieces, step):
    whole = b"".join(pieces)
    assert body_of(framed(*pieces), len(whole), step=step).read() == whole
    body = body_of(framed(*pieces), len(whole), step=step)
    assert b"".join(iter(lambda: body.read(5000), b"")) == whole
    assert body.read(1) == b""


@pytest.mark.parametrize("payload", [SIGNED_CHUNKS_TRAILER, UNSIGNED_TRAILER])
def test_trailers_are_told_when_all_was_read(payload):
    body = body_of(framed(b"data", payload=payload, trailer=CHECKSUM), 4, payload, announced=CHECKSUM[:1])
    assert body.read() == b"data"
    assert body.trailers == dict([CHECKSUM])


def test_the_announced_size_is_the_length_but_nothing_has_to_be_read_to_its_end():
    assert body_of(framed(b"data"), 4).length == 4
    assert body_of(framed(), 0).length is None


GOOD = framed(BIG, BIG, b"end")
#: Without the line of the chunk of no bytes, and the empty one.
FIRST = framed(BIG)[: -len(b"0;chunk-signature=") - 64 - 4]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (GOOD.replace(b"end", b"eNd"), "SignatureDoesNotMatch"),
        (GOOD[len(FIRST) :], "SignatureDoesNotMatch"),
        (FIRST + FIRST + GOOD[2 * len(FIRST) :], "SignatureDoesNotMatch"),
        (FIRST + GOOD[2 * len(FIRST) :], "SignatureDoesNotMatch"),
        (GOOD[:-8] + b"0000\r\n\r\n", "SignatureDoesNotMatch"),
        (GOOD[:-90], "IncompleteBody"),
        (GOOD[:100], "IncompleteBody"),
        (b"", "IncompleteBody"),
    ],
    ids=[
        "changed",
        "first left out",
        "first twice",
        "second left out",
        "last signature",
        "no end",
        "cut",
        "none",
    ],
)
def test_a_body_that_was_meddled_with_is_refused(data, code):
    assert refused(data, 2 * len(BIG) + 3) == code
    assert refused(data, 2 * len(BIG) + 3, step=999) == code


@pytest.mark.parametrize("size", [0, 3, 5, 1 << 60])
def test_another_size_than_the_announced_one_is_refused(size):
    problem = refusal(framed(b"data"), size)
    assert problem.code == "IncompleteBody"
    assert problem.details == {"NumberBytesExpected": size, "NumberBytesProvided": 4}


def test_a_chunk_below_the_least_size_must_be_the_last():
    problem = refusal(framed(b"small", BIG), len(BIG) + 5)
    assert problem.code == "InvalidChunkSizeError"
    assert problem.details == {"Chunk": 2, "BadChunkSize": 5}
    assert body_of(framed(BIG, b"small"), len(BIG) + 5).read() == BIG + b"small"


HEAD = b"4;chunk-signature=" + b"0" * 64


@pytest.mark.parametrize(
    "data",
    [
        b"4\r\ndata\r\n0\r\n\r\n",
        HEAD[:-1] + b"\r\ndata\r\n",
        HEAD[:-1] + b"g\r\ndata\r\n",
        b"-" + HEAD + b"\r\ndata\r\n",
        b"0x" + HEAD + b"\r\ndata\r\n",
        b"f" * 13 + HEAD[1:] + b"\r\ndata\r\n",
        HEAD + b";more=1\r\ndata\r\n",
        HEAD + b"\ndata\n",
        HEAD + b"\r\ndata+\r\n",
        HEAD + b"\r\ndata\n\n",
        b"\xff\xfe\r\n",
        b"\r\n\r\n",
        b"4" * 70000,
    ],
)
def test_framing_that_is_none_is_refused(data):
    assert refused(data, 4) in ("IncompleteBody", "SignatureDoesNotMatch")


@pytest.mark.parametrize("old", [b"\r\ndata", b";chunk", b"=", b"4;"])
def test_blanks_around_the_parts_of_a_head_do_no_harm(old):
    for new in (b" " + old, b"\t" + old, old.replace(b";", b"; ").replace(b"=", b"= ")):
        if old != b"\r\ndata" or new[:1] in b" \t":
            assert body_of(framed(b"data").replace(old, new, 1), 4).read() == b"data"


@pytest.mark.parametrize("head", [b"4;a=b", b"4 ; x", b"4;", b" 4", b"4;chunk-signature=0"])
def test_an_extension_of_an_unsigned_chunk_is_ignored(head):
    assert body_of(head + b"\r\ndata\r\n0\r\n\r\n", 4, UNSIGNED_TRAILER).read() == b"data"


_DIGITS = b"0" * 64


@pytest.mark.parametrize(
    "extension",
    [
        *(b"", b"x=1", b"CHUNK-SIGNATURE=" + _DIGITS, b"chunk-signature=", b"chunk-signature= "),
        b"chunk-signature=" + _DIGITS + b";chunk-signature=" + _DIGITS,
        b"chunk-signature=" + _DIGITS + b";a=b",
    ],
)
def test_an_extension_that_is_not_one_signature_is_malformed(extension):
    assert refused(b"4;" + extension + b"\r\ndata\r\n0\r\n\r\n", 4) == "IncompleteBody"


@pytest.mark.parametrize("signature", [b"0", _DIGITS, "\u00e9".encode()])
def test_a_wrong_signature_of_a_chunk_is_denied_with_the_access_key(signature):
    head = b"4;chunk-signature=" + signature
    with pytest.raises(RejectedBody) as rejected:
        body_of(head + b"\r\ndata\r\n0\r\n\r\n", 4).read()
    error = rejected.value.s3_error
    assert (error.code, error.details["AWSAccessKeyId"]) == ("SignatureDoesNotMatch", claim_of().access_key)


def test_a_line_that_does_not_end_is_not_kept_in_memory():
    source = Source(b"4" * 10_000_000, 1 << 16)
    with pytest.raises(RejectedBody):
        ChunkedPayload(source, claim_of(), 4).read()
    assert len(source.data) > 9_000_000


def with_trailer(lines, payload):
    return framed(b"data", payload=payload)[:-2] + lines


@pytest.mark.parametrize("payload", [SIGNED, UNSIGNED_TRAILER])
def test_a_trailer_that_nobody_announced_is_refused(payload):
    line = f"{CHECKSUM[0]}:{CHECKSUM[1]}\r\n".encode()
    for lines in (line, b"x-foo:bar\r\n"):
        assert refused(with_trailer(lines + b"\r\n", payload), 4, payload) == "IncompleteBody"
    for lines in (line + b"x-foo:bar\r\n", line.upper()):
        data = with_trailer(lines + b"\r\n", payload)
        assert refused(data, 4, payload, announced=CHECKSUM[:1]) == "MalformedTrailerError"


def test_a_signed_trailer_that_nobody_announced_is_refused():
    data = framed(b"data", payload=SIGNED_CHUNKS_TRAILER, trailer=CHECKSUM)
    assert refused(data, 4, SIGNED_CHUNKS_TRAILER) == "MalformedTrailerError"
    data = framed(b"data", payload=SIGNED_CHUNKS_TRAILER)
    assert refused(data, 4, SIGNED_CHUNKS_TRAILER, announced=CHECKSUM[:1]) == "IncompleteBody"


@pytest.mark.parametrize(
    "lines", [b"nonsense\r\n\r\n", b"a:" + b"x" * 20000 + b"\r\n\r\n", b"a:1\r\n" * 6000]
)
def test_trailers_that_are_none_or_too_many_are_refused(lines):
    assert refused(with_trailer(lines, UNSIGNED_TRAILER), 4, UNSIGNED_TRAILER) == "MalformedTrailerError"


def test_trailers_may_be_missing_at_the_end_of_a_body_without_signatures():
    body = body_of(b"4\r\ndata\r\n0\r\n", 4, UNSIGNED_TRAILER)
    assert (body.read(), body.trailers) == (b"data", {})


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"AAAAAA==", b"AAAAAB=="),
        lambda data: data.partition(b"x-amz-trailer-signature")[0] + b"\r\n",
        lambda data: data[:-6] + b"0000\r\n",
        lambda data: data.partition(b"signature:")[0] + b"signature:\xc3\xa9\xff\r\n\r\n",
        lambda data: data.partition(b"signature:")[0] + b"signature:\r\n\r\n",
    ],
    ids=["changed", "unsigned", "another signature", "no text", "empty"],
)
def test_signed_trailers_are_held_to_their_signature(change):
    data = framed(b"data", payload=SIGNED_CHUNKS_TRAILER, trailer=CHECKSUM)
    code = refused(change(data), 4, SIGNED_CHUNKS_TRAILER, announced=CHECKSUM[:1])
    assert code == "SignatureDoesNotMatch"


def test_who_does_not_know_the_secret_cannot_check_chunks():
    canonical = {"stamp": STAMP, "canonical_request": b"", "region": "us-east-1", "content_sha256": SIGNED}
    claim = ClaimV4("key", "0" * 64, is_presigned=False, **canonical)
    with pytest.raises(RejectedBody) as caught:
        ChunkedPayload(Source(framed(b"data"), 100), claim, 4).read()
    assert caught.value.s3_error.code == "NotImplemented"


@pytest.mark.parametrize(
    "data", [b"4\r\ndata+\r\n0\r\n\r\n", b"4\r\ndat\r\n0\r\n\r\n", b"0x4\r\ndata\r\n0\r\n\r\n"]
)
def test_framing_without_signatures_is_held_to_its_sizes(data):
    assert refused(data, 4, UNSIGNED_TRAILER) == "IncompleteBody"


def test_what_follows_the_end_is_read_and_not_given():
    source = Source(framed(b"data") + b"\r\nmore", 3)
    assert ChunkedPayload(source, claim_of(), 4).read() == b"data"
    assert source.data == b""
