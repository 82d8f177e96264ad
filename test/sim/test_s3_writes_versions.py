"""Versions of objects: asked for by name, and what is said when they are not there."""

import pytest


@pytest.fixture
def versions(s3):
    s3.versioning("bucket", "Enabled")
    s3.first = s3("PUT", "/bucket/key", {}, b"1").headers["x-amz-version-id"]
    s3.second = s3("PUT", "/bucket/key", {}, b"2").headers["x-amz-version-id"]
    return s3


def test_each_is_read_by_its_name(versions):
    for name, body in ((versions.first, b"1"), (versions.second, b"2")):
        answer = versions("GET", f"/bucket/key?versionId={name}")
        assert (answer.body, answer.headers["x-amz-version-id"]) == (body, name)
    assert versions("GET", "/bucket/key").headers["x-amz-version-id"] == versions.second


def test_a_version_of_another_key_is_none_of_this_one(versions):
    versions("PUT", "/bucket/other", {}, b"o")
    assert versions("GET", f"/bucket/other?versionId={versions.first}").code == "NoSuchVersion"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("name", ["odd", "", "%00", "..", "1e999", "-1", "x" * 3000])
def test_what_no_version_is_called_is_an_invalid_argument(versions, method, name):
    answer = versions(method, f"/bucket/key?versionId={name}")
    assert answer.status == 400
    if method == "GET":
        assert answer.code == "InvalidArgument"


def test_a_missing_version_names_key_and_version(versions):
    answer = versions("GET", "/bucket/key?versionId=1700000000.00000")
    assert (answer.status, answer.code) == (404, "NoSuchVersion")
    assert (answer.texts("Key"), answer.texts("VersionId")) == (["key"], ["1700000000.00000"])


def test_a_marker_is_told_and_not_read(versions):
    marker = versions("DELETE", "/bucket/key").headers["x-amz-version-id"]
    answer = versions("GET", f"/bucket/key?versionId={marker}")
    assert (answer.status, answer.code) == (405, "MethodNotAllowed")
    assert (answer.headers["x-amz-delete-marker"], answer.headers["x-amz-version-id"]) == ("true", marker)


def test_of_a_bucket_and_a_key_that_are_not_there_the_bucket_is_named(s3):
    assert s3("GET", "/no-bucket/key?versionId=null").code in ("NoSuchBucket", "NoSuchVersion")
    assert s3("GET", "/bucket/nothing").code == "NoSuchKey"
    assert s3("GET", "/no-bucket/key").code == "NoSuchBucket"


def test_all_are_listed_the_newest_first(versions):
    marker = versions("DELETE", "/bucket/key").headers["x-amz-version-id"]
    answer = versions("GET", "/bucket?versions")
    assert answer.texts("VersionId") == [marker, versions.second, versions.first]
    assert answer.texts("IsLatest").count("true") == 1


def test_what_was_there_before_versions_is_null_until_it_is_overwritten(s3):
    s3("PUT", "/bucket/key", {}, b"before")
    s3.versioning("bucket", "Enabled")
    assert s3("GET", "/bucket?versions").texts("VersionId") == ["null"]
    assert s3("GET", "/bucket/key?versionId=null").body == b"before"
    s3("PUT", "/bucket/key", {}, b"new")
    [newest, oldest] = s3("GET", "/bucket?versions").texts("VersionId")
    assert s3("GET", f"/bucket/key?versionId={oldest}").body == b"before"
    assert s3("GET", f"/bucket/key?versionId={newest}").body == b"new"
