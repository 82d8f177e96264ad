"""Checksums of parts in listings, attributes and responses."""

import zlib
from base64 import b64encode

import pytest

from test.support.s3_fixtures import Multipart

PIECES = b"one", b"second", b"3"


def sum_of(data):
    return b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


SUMS = [sum_of(piece) for piece in PIECES]


@pytest.fixture
def upload(s3):
    made = Multipart(s3, headers={"x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "FULL_OBJECT"})
    for number, piece in enumerate(PIECES, 1):
        made.part(number, piece, {"x-amz-checksum-crc32": sum_of(piece)})
    return made


def test_a_listing_of_parts_contains_their_checksums(s3, upload):
    response = s3("GET", f"/bucket/key?uploadId={upload.id}&max-parts=2")
    assert response.texts("ChecksumCRC32") == SUMS[:2]
    assert (response.texts("ChecksumAlgorithm"), response.texts("ChecksumType")) == (
        ["CRC32"],
        ["FULL_OBJECT"],
    )


def test_object_attributes_contain_the_checksums_of_parts(s3, upload):
    upload.complete(*enumerate(PIECES, 1))
    response = s3("GET", "/bucket/key?attributes", {"x-amz-object-attributes": "ObjectParts"})
    assert response.texts("ChecksumCRC32") == SUMS


def test_a_part_is_read_with_its_own_checksum(s3, upload):
    upload.complete(*enumerate(PIECES, 1))
    for number, piece in enumerate(PIECES, 1):
        response = s3("GET", f"/bucket/key?partNumber={number}", {"x-amz-checksum-mode": "ENABLED"})
        assert (response.status, response.body) == (206, piece)
        assert response.headers["x-amz-checksum-crc32"] == sum_of(piece)
        assert response.headers["x-amz-mp-parts-count"] == "3"
    assert s3("GET", "/bucket/key?partNumber=4").code == "InvalidPartNumber"


def test_an_upload_without_checksums_returns_none(s3):
    upload = Multipart(s3)
    upload.part(1, b"x" * 70_000)
    assert s3("GET", f"/bucket/key?uploadId={upload.id}").texts("ChecksumCRC64NVME") == []
