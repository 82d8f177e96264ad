"""Versions of objects: requests by id, and errors for missing versions."""

import pytest

from swift.http.response import error_response


@pytest.fixture
def versions(s3):
    s3.versioning("bucket", "Enabled")
    s3.first = s3("PUT", "/bucket/key", {}, b"1").headers["x-amz-version-id"]
    s3.second = s3("PUT", "/bucket/key", {}, b"2").headers["x-amz-version-id"]
    return s3


def test_each_version_is_read_by_its_id(versions):
    for name, body in ((versions.first, b"1"), (versions.second, b"2")):
        answer = versions("GET", f"/bucket/key?versionId={name}")
        assert (answer.body, answer.headers["x-amz-version-id"]) == (body, name)
    assert versions("GET", "/bucket/key").headers["x-amz-version-id"] == versions.second


def test_a_version_belongs_to_one_key(versions):
    versions("PUT", "/bucket/other", {}, b"o")
    assert versions("GET", f"/bucket/other?versionId={versions.first}").code == "NoSuchVersion"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("name", ["odd", "", "%00", "..", "1e999", "-1", "x" * 3000])
def test_a_malformed_version_id_is_an_invalid_argument(versions, method, name):
    answer = versions(method, f"/bucket/key?versionId={name}")
    assert answer.status == 400
    if method == "GET":
        assert answer.code == "InvalidArgument"


def test_the_error_for_a_missing_version_names_key_and_version(versions):
    answer = versions("GET", "/bucket/key?versionId=1700000000.00000")
    assert (answer.status, answer.code) == (404, "NoSuchVersion")
    assert (answer.texts("Key"), answer.texts("VersionId")) == (["key"], ["1700000000.00000"])


def test_a_delete_marker_is_reported_but_not_readable(versions):
    marker = versions("DELETE", "/bucket/key").headers["x-amz-version-id"]
    answer = versions("GET", f"/bucket/key?versionId={marker}")
    assert (answer.status, answer.code) == (405, "MethodNotAllowed")
    assert (answer.headers["x-amz-delete-marker"], answer.headers["x-amz-version-id"]) == ("true", marker)


def test_a_missing_bucket_is_reported_before_a_missing_key(s3):
    assert s3("GET", "/no-bucket/key?versionId=null").code in ("NoSuchBucket", "NoSuchVersion")
    assert s3("GET", "/bucket/nothing").code == "NoSuchKey"
    assert s3("GET", "/no-bucket/key").code == "NoSuchBucket"


def test_all_versions_are_listed_newest_first(versions):
    marker = versions("DELETE", "/bucket/key").headers["x-amz-version-id"]
    answer = versions("GET", "/bucket?versions")
    assert answer.texts("VersionId") == [marker, versions.second, versions.first]
    assert answer.texts("IsLatest").count("true") == 1


def test_objects_from_before_versioning_have_the_null_version(s3):
    s3("PUT", "/bucket/key", {}, b"before")
    s3.versioning("bucket", "Enabled")
    assert s3("GET", "/bucket?versions").texts("VersionId") == ["null"]
    assert s3("GET", "/bucket/key?versionId=null").body == b"before"
    s3("PUT", "/bucket/key", {}, b"new")
    [newest, oldest] = s3("GET", "/bucket?versions").texts("VersionId")
    assert s3("GET", f"/bucket/key?versionId={oldest}").body == b"before"
    assert s3("GET", f"/bucket/key?versionId={newest}").body == b"new"


# --- names that leave no room for the id of a version ---------------------------------------------------

#: The longest key of a versioned bucket, bytes.
LONGEST = 1006


@pytest.mark.parametrize("size", [LONGEST, LONGEST + 1, 1024])
@pytest.mark.parametrize("metadata", [{}, {"x-amz-meta-a": "1"}])
def test_a_key_that_leaves_no_room_for_version_ids_is_too_long(s3, size, metadata):
    path = f"/bucket/{'k' * size}"
    s3("PUT", path, {}, b"before")
    s3.versioning("bucket", "Enabled")
    answer = s3("PUT", path, metadata, b"after")
    if size == LONGEST:
        assert answer.status == 200
    else:
        assert (answer.status, answer.code) == (400, "KeyTooLongError")
    assert s3("GET", path).body == (b"after" if size == LONGEST else b"before")
    answer = s3("DELETE", path)
    assert (answer.status, "x-amz-version-id" in answer.headers) == (204, size == LONGEST)
    assert s3("GET", path).status == 404
    assert s3("DELETE", path).status == 204


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_refusal_without_a_condition_is_not_a_failed_condition(s3, method):
    """The former object cannot be archived in a bucket with X-Versions-Location."""
    s3.bottom.instead = lambda request: error_response(412) if request.method == method else None
    assert s3(method, "/bucket/key", {}, b"").code == "InvalidBucketState"
    assert s3(method, "/bucket/key", {"if-match": "*"}, b"").code == "NoSuchKey"
