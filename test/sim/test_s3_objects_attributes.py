"""GetObjectAttributes: attributes of an object, and its parts in pages."""

import pytest

from test.support.s3_fixtures import Multipart, etag_of

ALL = {"x-amz-object-attributes": "ETag,Checksum,ObjectParts,StorageClass,ObjectSize"}


def ask(s3, wanted=ALL, path="/bucket/key", more="", **headers):
    given = wanted if isinstance(wanted, dict) else {"x-amz-object-attributes": wanted}
    return s3("GET", f"{path}?attributes{more}", {**given, **headers})


def test_only_the_requested_attributes_are_returned(s3):
    s3("PUT", "/bucket/key", {"x-amz-checksum-crc32": "rfPzYw=="}, b"data")
    response = ask(s3)
    assert response.texts("ETag") == [etag_of(b"data")]
    assert (response.texts("ObjectSize"), response.texts("StorageClass")) == (["4"], ["STANDARD"])
    assert response.texts("ChecksumCRC32") == ["rfPzYw=="] and response.texts("ObjectParts") == []
    assert [element.tag for element in ask(s3, " ObjectSize ,").tree] == ["ObjectSize"]


@pytest.mark.parametrize(
    ("requested", "code"),
    [({}, "InvalidRequest"), ("", "InvalidRequest"), (",", "InvalidRequest"), ("Odd", "InvalidArgument")]
    + [("etag", "InvalidArgument")],
)
def test_unknown_attributes_are_refused(s3, requested, code):
    s3("PUT", "/bucket/key", {}, b"data")
    assert ask(s3, requested).code == code


def test_errors_name_the_missing_resource(s3):
    assert ask(s3).code == "NoSuchKey"
    assert ask(s3, path="/no-bucket/key").code == "NoSuchBucket"
    assert ask(s3, "Odd", path="/no-bucket/key").code == "NoSuchBucket"
    s3.versioning("bucket", "Enabled")
    s3("PUT", "/bucket/key", {}, b"data")
    assert ask(s3, more="&versionId=1700000000.00000").code == "NoSuchVersion"
    assert ask(s3, more="&versionId=odd").code == "InvalidArgument"
    marker = s3("DELETE", "/bucket/key").headers["x-amz-version-id"]
    assert ask(s3, more=f"&versionId={marker}").code == "MethodNotAllowed"


@pytest.fixture
def parts(s3):
    upload = Multipart(s3)
    for number in (1, 2, 3):
        upload.part(number, b"x" * number)
    assert upload.complete(*((n, b"x" * n) for n in (1, 2, 3))).status == 200
    return s3


def test_parts_are_returned_in_pages(parts):
    first = ask(parts, "ObjectParts", **{"x-amz-max-parts": "2"})
    assert (first.texts("PartNumber"), first.texts("Size")) == (["1", "2"], ["1", "2"])
    assert (first.texts("PartsCount"), first.texts("IsTruncated")) == (["3"], ["true"])
    [marker] = first.texts("NextPartNumberMarker")
    rest = ask(parts, "ObjectParts", **{"x-amz-part-number-marker": marker})
    assert (rest.texts("PartNumber"), rest.texts("IsTruncated")) == (["3"], ["false"])


@pytest.mark.parametrize("name", ["x-amz-max-parts", "x-amz-part-number-marker"])
@pytest.mark.parametrize("text", ["x", "-1", "1.5", "", "9" * 5000])
def test_an_invalid_page_is_an_invalid_argument(parts, name, text):
    assert ask(parts, "ObjectParts", **{name: text}).code == "InvalidArgument"
