"""The body of an upload is held to everything that its sender promised of it."""

from base64 import b64encode
from hashlib import md5

import pytest

from swift.http import fields
from swift.http.body import BytesBody
from swift.s3.core.checksums import ALGORITHMS, encode_checksum
from swift.s3.core.claim import Claim, anonymous_claim
from swift.s3.core.errors import RejectedBody, S3Error
from swift.s3.core.payload import make_upload
from test.support.s3 import signed_headers
from test.support.s3_fixtures import HOST, code_of

SUM = "AAAAAA=="


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
    ],
)
def test_promises_that_nobody_can_keep_are_invalid(front, headers):
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidRequest"


EMPTY_REQUESTS = [
    ("POST", "/bucket/key?uploads", {}),
    ("PUT", "/bucket/key", {"x-amz-copy-source": "/bucket/source"}),
    ("PUT", "/bucket/key?partNumber=1&uploadId=bm9uZQ==", {"x-amz-copy-source": "/bucket/source"}),
]


@pytest.mark.parametrize(("method", "path", "headers"), EMPTY_REQUESTS)
def test_a_request_without_a_body_is_held_to_what_its_headers_state(front, method, path, headers):
    """As OpenStack Swift does; a checksum of the right form is not compared there either."""
    for stated, code in (
        ({"x-amz-content-sha256": "1" * 64}, "XAmzContentSHA256Mismatch"),
        ({"x-amz-checksum-crc32": "junk"}, "InvalidRequest"),
        ({"x-amz-checksum-crc32": SUM, "x-amz-checksum-sha1": "x"}, "InvalidRequest"),
        ({"x-amz-sdk-checksum-algorithm": "CRC32"}, "InvalidRequest"),
        ({"x-amz-trailer": "x-amz-checksum-crc32"}, "MalformedTrailerError"),
    ):
        assert code_of(front(method, path, {**headers, **stated})) == code, stated
    assert front.store.objects == {}


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_malformed_statements_about_a_body_are_refused_on_every_method(front, method):
    path = "/bucket/key?uploads" if method == "POST" else "/bucket/key"
    chunks = {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
    for stated, status in ((chunks, 411), ({"content-md5": "junk"}, 400)):
        assert front(method, path, stated).status == status
    assert front.store.objects == {}


def test_a_trailer_needs_framing(front):
    headers = {"x-amz-trailer": "x-amz-checksum-crc32"}
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "MalformedTrailerError"


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
    good = encode_checksum(running.digest())
    assert front("PUT", "/bucket/key", {algorithm.header: good}, b"data").status == 200
    kept = front.store.objects["bucket", "key"][1]
    assert kept[fields.SYSMETA_S3_CHECKSUM] == f"{algorithm.name} FULL_OBJECT {good}"
    assert code_of(front("PUT", "/bucket/other", {algorithm.header: good}, b"date")) == "BadDigest"
    assert ("bucket", "other") not in front.store.objects


def test_an_sdk_that_names_another_checksum_than_it_brings_is_refused(front):
    headers = {"x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-checksum-crc32c": "m0cB1Q=="}
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidRequest"


@pytest.mark.parametrize("content_md5", [None, "right", "wrong"])
def test_a_text_that_is_no_hash_is_a_mismatch_after_the_md5(content_md5):
    """A presigned or version 2 upload with a senseless x-amz-content-sha256."""
    digest = {None: None, "right": md5(b"data").digest(), "wrong": md5(b"other").digest()}[content_md5]
    headers = {} if digest is None else {"content-md5": b64encode(digest).decode()}
    claim = Claim("key", "", b"", content_sha256="garbage", is_presigned=True)
    with pytest.raises(RejectedBody) as rejected:
        make_upload(BytesBody(b"data"), headers, claim).body.read()
    error = rejected.value.s3_error
    if content_md5 == "wrong":
        assert error.code == "BadDigest"
    else:
        assert error.code == "XAmzContentSHA256Mismatch"
        assert error.details["ClientComputedContentSHA256"] == "garbage"


@pytest.mark.parametrize("text", ["AAAAAB==", "AAAAAA", "AAAAAA=\t=", "AAAA", "AAAAAAAA"])
def test_a_checksum_that_is_no_canonical_base64_of_its_size_is_invalid(text):
    for name in ("crc32", "crc32c"):
        with pytest.raises(S3Error) as refused:
            make_upload(BytesBody(b"data"), {f"x-amz-checksum-{name}": text}, anonymous_claim())
        assert refused.value.code == "InvalidRequest"
        assert f"Value for x-amz-checksum-{name} header is invalid" in str(refused.value)
