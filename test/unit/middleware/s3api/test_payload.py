"""Bodies of uploads: framings, hashes and checksums are held to what was said of them."""

import random
import sys
import zlib
from base64 import b64encode

import pytest

from swift.http import fields
from swift.middleware.s3api import checksums
from swift.middleware.s3api.checksums import ALGORITHMS, encoded
from test.support.s3 import chunked, signed_headers
from test.support.s3front import HOST, code_of

DATA = bytes(n % 251 for n in range(20_000))
SUM = b64encode(zlib.crc32(DATA).to_bytes(4, "big")).decode()
SIGNED, UNSIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def upload(front, kind, pieces, *, trailer=None, change=lambda body: body, announced=None):
    size = sum(map(len, pieces)) if announced is None else announced
    headers = {"X-Amz-Content-SHA256": kind, "X-Amz-Decoded-Content-Length": str(size)}
    if trailer:
        headers["X-Amz-Trailer"] = trailer[0]
    head = signed_headers("PUT", f"{HOST}/bucket/key", {**headers, "Content-Encoding": "aws-chunked"})
    body = change(chunked(pieces, head, signed=kind != UNSIGNED, trailer=trailer))
    return front.raw("PUT", "/bucket/key", {**head, "Content-Length": str(len(body))}, body)


@pytest.mark.parametrize(
    ("kind", "trailer"),
    [
        (SIGNED, None),
        (f"{SIGNED}-TRAILER", ("x-amz-checksum-crc32", SUM)),
        (UNSIGNED, ("x-amz-checksum-crc32", SUM)),
    ],
)
def test_aws_chunked_in_every_form(front, kind, trailer):
    response = upload(front, kind, [DATA[:8192], DATA[8192:16384], DATA[16384:]], trailer=trailer)
    assert response.status == 200, response.read_body()
    data, headers = front.store.objects["bucket", "key"]
    assert data == DATA
    assert headers["content-length"] == str(len(DATA))
    assert "content-encoding" not in headers
    if trailer:
        assert headers["x-object-sysmeta-s3api-checksum"] == f"CRC32 FULL_OBJECT {SUM}"
        assert response.headers["x-amz-checksum-crc32"] == SUM


def test_an_empty_body_in_chunks(front):
    zero = b64encode(bytes(4)).decode()
    assert upload(front, SIGNED, []).status == 200
    assert upload(front, UNSIGNED, [], trailer=("x-amz-checksum-crc32", zero)).status == 200
    assert code_of(upload(front, UNSIGNED, [], trailer=("x-amz-checksum-crc32", SUM))) == "BadDigest"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda body: body.replace(DATA[100:110], b"0123456789"), "SignatureDoesNotMatch"),
        (lambda body: body[:-100], "IncompleteBody"),
        (lambda body: body[:9000], "IncompleteBody"),
        (lambda body: b"zz" + body, "IncompleteBody"),
        (lambda body: body.replace(b";chunk-signature=", b";", 1), "IncompleteBody"),
        (lambda body: b"", "IncompleteBody"),
    ],
)
def test_chunks_that_were_tampered_with_store_nothing(front, change, code):
    assert code_of(upload(front, SIGNED, [DATA[:10000], DATA[10000:]], change=change)) == code
    assert front.store.objects == {}


def test_chunks_cannot_be_moved_left_out_or_repeated(front):
    pieces = [b"a" * 9000, b"b" * 9000, b"c" * 9000]

    def swapped(body):
        size = (len(body) - 86) // 3
        first, second = body[:size], body[size : 2 * size]
        return second + first + body[2 * size :]

    assert code_of(upload(front, SIGNED, pieces, change=swapped)) == "SignatureDoesNotMatch"
    assert code_of(upload(front, SIGNED, pieces[:2], announced=27000)) == "IncompleteBody"
    assert code_of(upload(front, SIGNED, [*pieces, b"d"], announced=27000)) == "IncompleteBody"
    assert front.store.objects == {}


def test_a_trailer_must_be_the_announced_one_and_signed(front):
    kind = f"{SIGNED}-TRAILER"
    good = ("x-amz-checksum-crc32", SUM)
    cut = lambda body: body.replace(b"x-amz-trailer-signature", b"x-amz-trailer-signaturf")  # noqa: E731
    assert code_of(upload(front, kind, [DATA], trailer=good, change=cut)) == "SignatureDoesNotMatch"
    other = lambda body: body.replace(b"checksum-crc32:", b"checksum-sha1:")  # noqa: E731
    assert code_of(upload(front, UNSIGNED, [DATA], trailer=good, change=other)) == "MalformedTrailerError"


def test_small_chunks_may_only_be_the_last(front):
    assert code_of(upload(front, SIGNED, [b"a" * 10, b"b" * 10])) == "InvalidChunkSizeError"


def test_a_body_is_held_to_its_hash(front):
    head = signed_headers("PUT", f"{HOST}/bucket/key", body=b"signed")
    assert code_of(front.raw("PUT", "/bucket/key", head, b"change")) == "XAmzContentSHA256Mismatch"
    assert code_of(front.raw("PUT", "/bucket/key", head, b"")) == "XAmzContentSHA256Mismatch"
    assert front.store.objects == {}
    assert front.raw("PUT", "/bucket/key", head, b"signed").status == 200


@pytest.mark.parametrize("algorithm", ["crc32c", "crc64nvme"])
def test_checksums_that_the_standard_library_lacks(front, algorithm):
    known = {"crc32c": "4waSgw==", "crc64nvme": "rosUhgp5mIg="}[algorithm]
    name = f"x-amz-checksum-{algorithm}"
    response = front("PUT", "/bucket/key", {name: known}, b"123456789")
    assert (response.status, response.headers[name]) == (200, known)
    assert code_of(front("PUT", "/bucket/key", {name: known}, b"123456780")) == "BadDigest"


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-checksum-crc32": SUM, "x-amz-checksum-sha1": "x"},
        {"x-amz-checksum-crc32": "%%%"},
        {"x-amz-checksum-md6": "x"},
        {"x-amz-sdk-checksum-algorithm": "CRC32"},
        {"x-amz-trailer": "x-amz-checksum-crc32"},
    ],
)
def test_promises_that_nobody_can_keep_are_invalid(front, headers):
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidRequest"


def test_a_trailing_checksum_that_is_none_is_told_apart_from_a_wrong_one(front):
    for value, code in (("nonsense", "InvalidRequest"), (b64encode(bytes(4)).decode(), "BadDigest")):
        head = {
            "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
            "x-amz-trailer": "x-amz-checksum-crc32",
            "x-amz-decoded-content-length": "4",
        }
        body = f"4\r\ndata\r\n0\r\nx-amz-checksum-crc32:{value}\r\n\r\n".encode()
        signed = signed_headers("PUT", f"{HOST}/bucket/key", head, body)
        assert code_of(front.raw("PUT", "/bucket/key", signed, body)) == code
        assert front.store.objects == {}


@pytest.mark.parametrize("name", ["sha512", "md5", "xxhash64", "xxhash3", "xxhash128"])
def test_checksums_of_the_later_kinds_are_checked_and_kept(front, name):
    algorithm = ALGORITHMS[name.upper()]
    running = algorithm.start()
    running.update(b"data")
    good = encoded(running.digest())
    assert front("PUT", "/bucket/key", {algorithm.header: good}, b"data").status == 200
    kept = front.store.objects["bucket", "key"][1]
    assert kept[fields.SYSMETA_S3_CHECKSUM] == f"{algorithm.name} FULL_OBJECT {good}"
    assert code_of(front("PUT", "/bucket/other", {algorithm.header: good}, b"date")) == "BadDigest"
    assert ("bucket", "other") not in front.store.objects


def test_a_kind_whose_library_is_missing_is_not_implemented(front, monkeypatch):
    monkeypatch.setitem(sys.modules, "xxhash", None)
    headers = {"x-amz-checksum-xxhash64": b64encode(bytes(8)).decode()}
    checksums.xxhash_named.cache_clear()
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "NotImplemented"
    assert front.store.objects == {}


def test_an_sdk_that_names_another_checksum_than_it_brings_is_refused(front):
    headers = {"x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-checksum-crc32c": "m0cB1Q=="}
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidRequest"


def test_hostile_chunks_get_a_4xx_and_store_nothing(front):
    draw = random.Random(11)

    def garbled(body):
        data = bytearray(body)
        for _ in range(draw.randint(1, 5)):
            place = draw.randrange(len(data))
            data[place : place + draw.randint(0, 3)] = draw.randbytes(draw.randint(1, 4))
        return bytes(data)

    for _ in range(300):
        response = upload(front, SIGNED, [b"a" * 8192, b"b" * 50], change=garbled)
        assert 400 <= response.status < 500 or front.store.objects == {
            ("bucket", "key"): front.store.objects["bucket", "key"]
        }
        if response.status == 200:
            assert front.store.objects["bucket", "key"][0] == b"a" * 8192 + b"b" * 50
            front.store.objects.clear()
    assert front.store.objects == {}
