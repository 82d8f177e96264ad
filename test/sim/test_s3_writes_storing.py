"""Metadata stored with an object, and headers that are refused before anything is stored."""

import time
import zlib
from base64 import b64encode

import pytest

from test.support.s3_fixtures import STRANGER, Multipart

SUM = b64encode(zlib.crc32(b"data").to_bytes(4, "big")).decode()
SHOW = {"x-amz-checksum-mode": "ENABLED"}


def test_a_checksum_is_returned_only_on_request(s3):
    s3("PUT", "/bucket/key", {"x-amz-checksum-crc32": SUM}, b"data")
    told = s3("GET", "/bucket/key", SHOW).headers
    assert (told["x-amz-checksum-crc32"], told["x-amz-checksum-type"]) == (SUM, "FULL_OBJECT")
    assert "x-amz-checksum-crc32" not in s3("GET", "/bucket/key").headers


def test_an_unreadable_stored_checksum_is_ignored(s3):
    for text in ("CRC32", "MD6 FULL_OBJECT x", "CRC32 FULL_OBJECT", " ", "\u00ff"):
        s3.sim("PUT", "/AUTH_test/bucket/key", {"x-object-sysmeta-s3api-checksum": text}, b"data")
        response = s3("HEAD", "/bucket/key", SHOW)
        assert response.status == 200 and not [n for n in response.headers if "x-amz-checksum" in n]


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
def test_an_invalid_header_stores_nothing(s3, headers, code):
    assert s3("PUT", "/bucket/key", headers, b"data").code == code
    assert s3.names("bucket") == []


def test_metadata_over_the_limit_is_reported(s3):
    many = {f"x-amz-meta-{n}": "v" * 250 for n in range(60)}
    assert s3("PUT", "/bucket/key", many, b"data").code == "MetadataTooLarge"
    assert s3.names("bucket") == []


def test_the_response_to_a_write_describes_the_object(s3):
    s3.versioning("bucket", "Enabled")
    told = s3("PUT", "/bucket/key", {"x-amz-checksum-crc32": SUM}, b"data").headers
    assert told["x-amz-checksum-crc32"] == SUM
    head = s3("HEAD", "/bucket/key").headers
    assert (told["etag"], told["x-amz-version-id"]) == (head["etag"], head["x-amz-version-id"])


# --- when objects end ---------------------------------------------------------------------------------

COPY = {"x-amz-copy-source": "/bucket/source"}
BAD_ENDS = [
    {"x-delete-at": "nonsense"},
    {"x-delete-at": "1"},
    {"x-delete-at": "4000000000.5"},
    {"x-delete-at": ""},
    {"x-delete-after": "0"},
    {"x-delete-after": "-1"},
    {"x-delete-after": "soon"},
]


def complete(s3, headers, part=b"part"):
    upload = Multipart(s3)
    upload.part(1, part)
    return upload.complete((1, part), headers=headers)


WRITES = {
    "PutObject": lambda s3, headers: s3("PUT", "/bucket/key", headers, b"data"),
    "CopyObject": lambda s3, headers: s3("PUT", "/bucket/key", {**COPY, **headers}),
    "CompleteMultipartUpload": complete,
}
OTHERS = {
    "CreateMultipartUpload": lambda s3, headers: s3("POST", "/bucket/key?uploads", headers),
    "UploadPart": lambda s3, headers: Multipart(s3).part(1, b"part", headers),
    "UploadPartCopy": lambda s3, headers: Multipart(s3).part(1, b"", {**COPY, **headers}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("headers", [{"x-delete-at": "4000000000"}, {"x-delete-after": "1000"}])
def test_an_object_expires_as_its_upload_requested(s3, write, headers):
    s3("PUT", "/bucket/source", {}, b"data")
    assert write(s3, headers).status == 200
    end = int(s3.sim("HEAD", "/AUTH_test/bucket/key").headers["x-delete-at"])
    assert end == 4_000_000_000 or 900 < end - time.time() < 1001
    assert "swift-object-expiration" in s3("HEAD", "/bucket/key").headers["x-amz-expiration"]


@pytest.mark.parametrize("write", {**WRITES, **OTHERS}.values(), ids={**WRITES, **OTHERS})
@pytest.mark.parametrize("headers", BAD_ENDS, ids=str)
def test_an_invalid_expiry_stores_nothing(s3, write, headers):
    s3("PUT", "/bucket/source", {}, b"data")
    response = write(s3, headers)
    assert (response.status, response.code) == (400, "InvalidArgument")
    assert s3.names("bucket") == ["source"]


def test_a_copy_expires_like_its_source_unless_metadata_is_replaced(s3):
    s3("PUT", "/bucket/source", {"x-delete-at": "4000000000"}, b"data")
    for directive, end in (("COPY", "4000000000"), ("REPLACE", None)):
        assert s3("PUT", "/bucket/key", {**COPY, "x-amz-metadata-directive": directive}).status == 200
        assert s3.sim("HEAD", "/AUTH_test/bucket/key").headers.get("x-delete-at") == end


def test_parts_do_not_expire_before_objects_that_may_need_them(s3):
    upload = Multipart(s3)
    assert upload.part(1, b"part", {"x-delete-at": "4000000000"}).status == 200
    part = s3.sim("HEAD", f"/AUTH_test/bucket%2Bsegments/key/{upload.id}/1")
    assert part.status == 200 and "x-delete-at" not in part.headers


def test_tagging_a_version_keeps_the_expiry_of_the_object(s3):
    s3.versioning("bucket", "Enabled")
    s3("PUT", "/bucket/key", {"x-delete-at": "4000000000"}, b"data")
    tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    assert s3("PUT", "/bucket/key?tagging", {}, tags).status == 200
    assert s3.sim("HEAD", "/AUTH_test/bucket/key?symlink=get").headers["x-delete-at"] == "4000000000"


@pytest.mark.parametrize("other", ["theirs", "bucket"])
def test_a_copy_may_have_a_source_of_another_account(s3, other):
    assert s3("PUT", f"/{other}", **STRANGER).status == 200
    assert s3("PUT", f"/{other}/key", {"x-amz-meta-a": "b"}, b"their content", **STRANGER).status == 200
    source = {"x-amz-copy-source": f"/AUTH_test2:{other}/key"}
    assert s3("PUT", "/bucket/copy", source).code == "AccessDenied"
    acl = {"x-container-read": "test:tester"}
    assert s3.sim("POST", f"/AUTH_test2/{other}", acl).status == 204
    s3.sim.cache.values.clear()
    assert s3("PUT", "/bucket/copy", source).status == 200
    found = s3("GET", "/bucket/copy")
    assert (found.body, found.headers["x-amz-meta-a"]) == (b"their content", "b")
    upload = Multipart(s3, "/bucket/large")
    part = s3("PUT", f"/bucket/large?partNumber=1&uploadId={upload.id}", source)
    assert part.status == 200
    [etag] = part.texts("ETag")
    assert upload.complete((1, etag.strip('"'))).status == 200
    assert s3("GET", "/bucket/large").body == b"their content"
    # The response does not tell if a bucket of another account exists.
    assert s3("PUT", "/bucket/copy", {"x-amz-copy-source": "/AUTH_test2:none/key"}).code == "AccessDenied"
