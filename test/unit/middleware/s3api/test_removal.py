"""Removing one object: plain ones, uploads with their parts, versions and the markers of deletions."""

import pytest

from test.support.s3_fixtures import Multipart


def put(s3, body):
    return s3("PUT", "/bucket/key", {}, body).headers.get("x-amz-version-id", "")


def large(s3):
    upload = Multipart(s3)
    upload.part(1, b"part")
    assert upload.complete((1, b"part")).status == 200
    return upload


def test_what_is_not_there_is_removed_already(s3):
    assert s3("DELETE", "/bucket/nothing").status == 204
    assert s3("DELETE", "/no-bucket/key").code == "NoSuchBucket"


def test_an_upload_goes_with_its_parts(s3):
    large(s3)
    assert s3.names("bucket+segments") != []
    assert s3("DELETE", "/bucket/key").status == 204
    assert s3.names("bucket") == []


def test_conditions_guard_the_parts_too(s3):
    large(s3)
    parts = s3.names("bucket+segments")
    assert s3("DELETE", "/bucket/key", {"if-match": '"0"'}).code == "PreconditionFailed"
    assert s3("GET", "/bucket/key").body == b"part" and s3.names("bucket+segments") == parts
    etag = s3("HEAD", "/bucket/key").headers["etag"]
    assert s3("DELETE", "/bucket/key", {"if-match": etag}).status == 204
    assert s3.names("bucket+segments") == []
    assert s3("DELETE", "/bucket/key", {"if-match": etag}).code == "NoSuchKey"


def test_a_marker_hides_what_stays_and_goes_by_its_name(s3):
    s3.versioning("bucket", "Enabled")
    first = put(s3, b"1")
    answer = s3("DELETE", "/bucket/key")
    marker = answer.headers["x-amz-version-id"]
    assert answer.headers["x-amz-delete-marker"] == "true" and marker != first
    assert s3("GET", "/bucket/key").code == "NoSuchKey"
    assert s3("GET", f"/bucket/key?versionId={first}").body == b"1"
    assert s3("GET", f"/bucket/key?versionId={marker}").code == "MethodNotAllowed"
    answer = s3("DELETE", f"/bucket/key?versionId={marker}")
    assert answer.headers["x-amz-delete-marker"] == "true"
    assert s3("GET", "/bucket/key").body == b"1"


def test_the_newest_that_is_left_becomes_the_current_one(s3):
    s3.versioning("bucket", "Enabled")
    first, second = put(s3, b"1"), put(s3, b"2")
    assert s3("DELETE", f"/bucket/key?versionId={second}").status == 204
    assert s3("GET", "/bucket/key").body == b"1"
    assert s3("DELETE", f"/bucket/key?versionId={first}").status == 204
    assert s3("GET", "/bucket/key").code == "NoSuchKey"
    assert s3("DELETE", f"/bucket/key?versionId={first}").status == 204


def test_parts_stay_as_long_as_a_version_needs_them(s3):
    s3.versioning("bucket", "Enabled")
    large(s3)
    parts = s3.names("bucket+segments")
    version = s3("HEAD", "/bucket/key").headers["x-amz-version-id"]
    marker = s3("DELETE", "/bucket/key").headers["x-amz-version-id"]
    assert s3.names("bucket+segments") == parts
    assert s3("GET", f"/bucket/key?versionId={version}").body == b"part"
    s3("DELETE", f"/bucket/key?versionId={marker}")
    s3("DELETE", f"/bucket/key?versionId={version}")
    assert s3.names("bucket+segments") == []


@pytest.mark.parametrize("version", ["odd", "1e999", "%00", "..", "-1", ""])
def test_what_no_version_is_called_removes_nothing(s3, version):
    s3.versioning("bucket", "Enabled")
    put(s3, b"1")
    assert s3("DELETE", f"/bucket/key?versionId={version}").code == "InvalidArgument"
    assert s3("GET", "/bucket/key").body == b"1"


def test_where_there_never_were_versions_there_is_null_and_no_other(s3):
    put(s3, b"1")
    assert s3("DELETE", "/bucket/key?versionId=1700000000.00000").status == 204
    assert s3("GET", "/bucket/key").body == b"1"
    assert s3("DELETE", "/bucket/key?versionId=null").status == 204
    assert s3("GET", "/bucket/key").code == "NoSuchKey"
