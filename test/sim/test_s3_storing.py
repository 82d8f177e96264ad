"""What is stored beside an object, and which wishes are refused before anything is."""

import zlib
from base64 import b64encode

import pytest

SUM = b64encode(zlib.crc32(b"data").to_bytes(4, "big")).decode()
SHOW = {"x-amz-checksum-mode": "ENABLED"}


def test_a_checksum_is_told_to_who_asks_and_to_nobody_else(s3):
    s3("PUT", "/bucket/key", {"x-amz-checksum-crc32": SUM}, b"data")
    told = s3("GET", "/bucket/key", SHOW).headers
    assert (told["x-amz-checksum-crc32"], told["x-amz-checksum-type"]) == (SUM, "FULL_OBJECT")
    assert "x-amz-checksum-crc32" not in s3("GET", "/bucket/key").headers


def test_one_that_nobody_can_read_is_none(s3):
    for text in ("CRC32", "MD6 FULL_OBJECT x", "CRC32 FULL_OBJECT", " ", "\u00ff"):
        s3.sim("PUT", "/AUTH_test/bucket/key", {"x-object-sysmeta-s3api-checksum": text}, b"data")
        answer = s3("HEAD", "/bucket/key", SHOW)
        assert answer.status == 200 and not [n for n in answer.headers if "x-amz-checksum" in n]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-amz-request-payer": "somebody"}, "InvalidArgument"),
        ({"x-amz-write-offset-bytes": "5"}, "NotImplemented"),
        ({"x-amz-storage-class": "GLACIER"}, "InvalidStorageClass"),
        ({"x-amz-website-redirect-location": "ftp://x"}, "InvalidRedirectLocation"),
        ({"x-amz-tagging": "a=1&a=2"}, "InvalidArgument"),
    ],
)
def test_a_wish_that_cannot_be_met_stores_nothing(s3, headers, code):
    assert s3("PUT", "/bucket/key", headers, b"data").code == code
    assert s3.names("bucket") == []


def test_metadata_that_is_too_much_is_told_as_such(s3):
    many = {f"x-amz-meta-{n}": "v" * 250 for n in range(60)}
    assert s3("PUT", "/bucket/key", many, b"data").code == "MetadataTooLarge"
    assert s3.names("bucket") == []


def test_the_answer_to_a_write_says_what_was_written(s3):
    s3.versioning("bucket", "Enabled")
    told = s3("PUT", "/bucket/key", {"x-amz-checksum-crc32": SUM}, b"data").headers
    assert told["x-amz-checksum-crc32"] == SUM
    head = s3("HEAD", "/bucket/key").headers
    assert (told["etag"], told["x-amz-version-id"]) == (head["etag"], head["x-amz-version-id"])
