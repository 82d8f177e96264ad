"""CompleteMultipartUpload: parts, resulting objects, and errors for invalid parts."""

import zlib
from base64 import b64encode
from hashlib import md5

import pytest

from test.support.s3_fixtures import Multipart, etag_of

ONE, TWO = b"first part", b"second"
WHOLE_ETAG = f"{md5(md5(ONE).digest() + md5(TWO).digest()).hexdigest()}-2"
CRC = {"x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "FULL_OBJECT"}


@pytest.fixture
def upload(s3):
    made = Multipart(s3, headers={"content-type": "text/x", "x-amz-meta-a": "1"})
    for number, body in ((1, ONE), (2, TWO)):
        assert made.part(number, body).headers["etag"] == f'"{etag_of(body)}"'
    return made


def sum_of(data):
    return b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def test_the_parts_become_one_object_with_the_metadata_of_the_initiation(s3, upload):
    response = upload.complete((1, ONE), (2, TWO))
    assert (response.status, response.texts("ETag")) == (200, [f'"{WHOLE_ETAG}"'])
    assert response.texts("Location") == ["http://h/bucket/key"]
    found = s3("GET", "/bucket/key")
    assert (found.body, found.headers["etag"]) == (ONE + TWO, f'"{WHOLE_ETAG}"')
    assert (found.headers["content-type"], found.headers["x-amz-meta-a"]) == ("text/x", "1")
    assert sorted(s3.names("bucket+segments")) == [f"key/{upload.id}/1", f"key/{upload.id}/2"]


def test_a_repeated_completion_gets_the_same_response(s3, upload):
    upload.complete((1, ONE), (2, TWO))
    again = upload.complete((1, ONE), (2, TWO))
    assert (again.status, again.texts("ETag")) == (200, [f'"{WHOLE_ETAG}"'])
    assert upload.complete((1, ONE)).code == "NoSuchUpload"


def test_parts_may_be_left_out(s3, upload):
    assert upload.complete((2, TWO)).status == 200
    assert s3("GET", "/bucket/key").body == TWO


def test_the_last_upload_of_a_part_is_used(s3, upload):
    assert upload.part(2, b"other").status == 200
    assert upload.complete((1, ONE), (2, TWO)).code == "InvalidPart"
    assert upload.complete((1, ONE), (2, b"other")).status == 200
    assert s3("GET", "/bucket/key").body == ONE + b"other"


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        (((2, TWO), (1, ONE)), "InvalidPartOrder"),
        (((1, ONE), (1, ONE)), "InvalidPartOrder"),
        (((1, TWO),), "InvalidPart"),
        (((3, ONE),), "InvalidPart"),
        (((1, "x" * 32),), "InvalidPart"),
        (((1, ""),), "InvalidPart"),
        (((0, ONE),), "InvalidArgument"),
        (((-1, ONE),), "InvalidArgument"),
        (((10001, ONE),), "InvalidArgument"),
        ((("one", ONE),), "MalformedXML"),
        ((("\u0661", ONE),), "MalformedXML"),
        ((("9" * 5000, ONE),), "MalformedXML"),
        ((), "MalformedXML"),
    ],
)
def test_invalid_parts_create_no_object_and_keep_the_upload(s3, upload, parts, code):
    assert upload.complete(*parts).code == code
    assert s3("GET", "/bucket/key").code == "NoSuchKey"
    assert upload.complete((1, ONE), (2, TWO)).status == 200


def test_only_the_last_part_can_be_small(sim):
    from test.support.s3_fixtures import S3Cluster

    s3 = S3Cluster(sim, min_segment_size="8")
    s3("PUT", "/bucket")
    upload = Multipart(s3)
    for number, body in ((1, ONE), (2, TWO), (3, TWO)):
        upload.part(number, body)
    assert upload.complete((1, ONE), (2, TWO), (3, TWO)).code == "EntityTooSmall"
    assert upload.complete((1, ONE), (2, TWO)).status == 200


@pytest.mark.parametrize(
    "document",
    ["", "<a/>", "<CompleteMultipartUpload>", "<CompleteMultipartUpload><Part/></CompleteMultipartUpload>"],
)
def test_an_invalid_document_is_malformed_xml(upload, document):
    assert upload.send(document).code in ("MalformedXML", "InvalidRequest", "MissingRequestBodyError")


@pytest.mark.parametrize("upload_id", ["bm9uZQ==", "%00", "x" * 2000, "..", "a%2Fb"])
def test_an_unknown_upload_is_reported(s3, upload, upload_id):
    upload.id = upload_id
    assert upload.complete((1, ONE)).code in ("NoSuchUpload", "InvalidURI", "InvalidArgument")


@pytest.mark.parametrize(("size", "ok"), [(16, True), (15, False), (0, False), ("-1", False), ("x", False)])
def test_the_announced_size_of_the_object_is_verified(s3, upload, size, ok):
    response = upload.complete((1, ONE), (2, TWO), headers={"x-amz-mp-object-size": str(size)})
    assert (response.status == 200) if ok else (response.code == "InvalidRequest", "MissingRequestBodyError")
    assert s3("HEAD", "/bucket/key").status == (200 if ok else 404)


def test_conditions_refer_to_the_object(s3, upload):
    s3("PUT", "/bucket/key", {}, b"there already")
    parts = (1, ONE), (2, TWO)
    assert upload.complete(*parts, headers={"if-none-match": "*"}).code == "PreconditionFailed"
    assert upload.complete(*parts, headers={"if-match": '"0"'}).code == "PreconditionFailed"
    assert s3("GET", "/bucket/key").body == b"there already"
    assert upload.complete(*parts, headers={"if-match": f'"{etag_of(b"there already")}"'}).status == 200


# --- checksums ----------------------------------------------------------------------------------------


def summed(s3, kind="FULL_OBJECT"):
    upload = Multipart(s3, headers={**CRC, "x-amz-checksum-type": kind})
    for number, body in ((1, ONE), (2, TWO)):
        assert upload.part(number, body, {"x-amz-checksum-crc32": sum_of(body)}).status == 200
    return upload


def test_the_objects_checksum_is_computed_from_those_of_the_parts(s3):
    response = summed(s3).complete((1, ONE), (2, TWO))
    assert response.texts("ChecksumCRC32") == [sum_of(ONE + TWO)]
    head = s3("HEAD", "/bucket/key", {"x-amz-checksum-mode": "ENABLED"}).headers
    assert (head["x-amz-checksum-crc32"], head["x-amz-checksum-type"]) == (sum_of(ONE + TWO), "FULL_OBJECT")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-amz-checksum-crc32": sum_of(b"else")}, "BadDigest"),
        ({"x-amz-checksum-crc32": "%%%"}, "InvalidRequest"),
        ({"x-amz-checksum-crc32": f"{sum_of(ONE + TWO)}-2"}, "InvalidRequest"),
        ({"x-amz-checksum-type": "COMPOSITE"}, "InvalidRequest"),
        ({"x-amz-checksum-type": "ODD"}, "InvalidRequest"),
        ({"x-amz-checksum-crc32": sum_of(ONE + TWO), "x-amz-checksum-sha1": "x"}, "InvalidRequest"),
    ],
)
def test_a_wrong_checksum_creates_no_object(s3, headers, code):
    upload = summed(s3)
    assert upload.complete((1, ONE), (2, TWO), headers=headers).code == code
    assert s3("HEAD", "/bucket/key").status == 404
    assert upload.complete((1, ONE), (2, TWO)).status == 200


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("", "InvalidRequest"),
        ("<ChecksumCRC32>x</ChecksumCRC32>", "InvalidArgument"),
        (
            "<ChecksumCRC32>AAAAAA==</ChecksumCRC32><ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>",
            "InvalidArgument",
        ),
        ("<ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>", "BadDigest"),
        ("<ChecksumCRC32>AAAAAA==</ChecksumCRC32>", "InvalidPart"),
    ],
)
def test_a_composite_checksum_needs_that_of_each_part(s3, more, code):
    upload = summed(s3, "COMPOSITE")
    assert upload.complete((1, ONE), more=more).code == code
    good = f"<ChecksumCRC32>{sum_of(ONE)}</ChecksumCRC32>"
    done = upload.complete((1, ONE), more=good)
    composite = sum_of(zlib.crc32(ONE).to_bytes(4, "big"))
    assert done.texts("ChecksumCRC32") == [f"{composite}-1"]


def test_an_upload_whose_marker_remains_is_complete(s3, upload):
    """A completion that dies after storing the object is complete; a repetition gets the same response."""
    upload.complete((1, ONE), (2, TWO))
    assert s3.sim("PUT", f"/AUTH_test/bucket+segments/key/{upload.id}").status == 201
    assert upload.complete((1, ONE), (2, TWO)).texts("ETag") == [f'"{WHOLE_ETAG}"']
    assert s3("GET", "/bucket/key").body == ONE + TWO


@pytest.mark.parametrize("headers", [None, CRC])
def test_each_part_is_checked_once(s3, headers):
    made = Multipart(s3, headers=headers)
    parts = [(number, bytes([number]) * 10) for number in range(1, 6)]
    for number, body in parts:
        assert made.part(number, body).status == 200
    seen = []

    def watch(request):
        if request.method == "HEAD" and request.entity.path.obj is not None:
            seen.append((request.entity.path.container, request.entity.path.obj))

    s3.bottom.instead = watch
    assert made.complete(*parts).status == 200
    assert sorted(seen) == sorted(
        [("bucket", "key"), *(("bucket+segments", f"key/{made.id}/{number}") for number, _ in parts)]
    )
