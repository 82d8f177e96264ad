"""Versions of objects: requests by id, and errors for missing versions."""

from hashlib import md5

import pytest

from swift.http import fields
from swift.http.response import error_response
from test.support.s3_fixtures import interfere_before


@pytest.fixture
def versions(s3):
    s3.versioning("bucket", "Enabled")
    s3.first = s3("PUT", "/bucket/key", {}, b"1").headers["x-amz-version-id"]
    s3.second = s3("PUT", "/bucket/key", {}, b"2").headers["x-amz-version-id"]
    return s3


def test_each_version_is_read_by_its_id(versions):
    for name, body in ((versions.first, b"1"), (versions.second, b"2")):
        response = versions("GET", f"/bucket/key?versionId={name}")
        assert (response.body, response.headers["x-amz-version-id"]) == (body, name)
    assert versions("GET", "/bucket/key").headers["x-amz-version-id"] == versions.second


def test_a_version_belongs_to_one_key(versions):
    versions("PUT", "/bucket/other", {}, b"o")
    assert versions("GET", f"/bucket/other?versionId={versions.first}").code == "NoSuchVersion"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("name", ["odd", "", "%00", "..", "1e999", "-1", "x" * 3000])
def test_a_malformed_version_id_is_an_invalid_argument(versions, method, name):
    response = versions(method, f"/bucket/key?versionId={name}")
    assert response.status == 400
    if method == "GET":
        assert response.code == "InvalidArgument"


def test_the_error_for_a_missing_version_names_key_and_version(versions):
    response = versions("GET", "/bucket/key?versionId=1700000000.00000")
    assert (response.status, response.code) == (404, "NoSuchVersion")
    assert (response.texts("Key"), response.texts("VersionId")) == (["key"], ["1700000000.00000"])


def test_a_delete_marker_is_reported_but_not_readable(versions):
    marker = versions("DELETE", "/bucket/key").headers["x-amz-version-id"]
    response = versions("GET", f"/bucket/key?versionId={marker}")
    assert (response.status, response.code) == (405, "MethodNotAllowed")
    assert (response.headers["x-amz-delete-marker"], response.headers["x-amz-version-id"]) == ("true", marker)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_key_whose_current_version_is_a_delete_marker_says_so(versions, method):
    versions("PUT", "/bucket/key0", {}, b"other")
    assert "x-amz-delete-marker" not in versions(method, "/bucket/ke").headers
    marker = versions("DELETE", "/bucket/key").headers["x-amz-version-id"]
    response = versions(method, "/bucket/key")
    assert response.status == 404
    assert response.headers["x-amz-delete-marker"] == "true"
    assert response.headers["x-amz-version-id"] == marker


def test_a_missing_bucket_is_reported_before_a_missing_key(s3):
    assert s3("GET", "/no-bucket/key?versionId=null").code in ("NoSuchBucket", "NoSuchVersion")
    assert s3("GET", "/bucket/nothing").code == "NoSuchKey"
    assert s3("GET", "/no-bucket/key").code == "NoSuchBucket"


def test_all_versions_are_listed_newest_first(versions):
    marker = versions("DELETE", "/bucket/key").headers["x-amz-version-id"]
    response = versions("GET", "/bucket?versions")
    assert response.texts("VersionId") == [marker, versions.second, versions.first]
    assert response.texts("IsLatest").count("true") == 1


# --- objects from before versioning ---------------------------------------------------------------------


@pytest.fixture
def archived(s3):
    """A key with an object from before versioning and a version."""
    s3("PUT", "/bucket/key", {}, b"before")
    s3("PUT", "/bucket/key0", {}, b"other")
    s3.versioning("bucket", "Enabled")
    assert s3("GET", "/bucket?versions").texts("VersionId") == ["null", "null"]
    assert s3("GET", "/bucket/key?versionId=null").body == b"before"
    s3.newer = s3("PUT", "/bucket/key", {}, b"new").headers["x-amz-version-id"]
    return s3


def test_an_object_from_before_versioning_keeps_the_id_null(archived):
    assert archived("GET", "/bucket?versions&prefix=key").texts("VersionId") == [
        archived.newer,
        "null",
        "null",
    ]
    for method in ("GET", "HEAD"):
        response = archived(method, "/bucket/key?versionId=null")
        assert (response.status, response.headers["x-amz-version-id"]) == (200, "null")
    assert archived("GET", "/bucket/key?versionId=null").body == b"before"
    assert archived("GET", f"/bucket/key?versionId={archived.newer}").body == b"new"
    copied = archived("PUT", "/bucket/copy", {"x-amz-copy-source": "/bucket/key?versionId=null"})
    assert (copied.status, copied.headers["x-amz-copy-source-version-id"]) == (200, "null")
    assert archived("GET", "/bucket/copy").body == b"before"
    tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    assert archived("PUT", "/bucket/key?tagging&versionId=null", {}, tags).status == 200
    assert archived("GET", "/bucket/key?tagging&versionId=null").texts("Value") == ["b"]
    assert archived("GET", "/bucket/key?tagging").texts("Value") == []


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pages_of_versions_continue_after_an_object_from_before_versioning(archived, size):
    found, place = [], ""
    while True:
        response = archived("GET", f"/bucket?versions&max-keys={size}{place}")
        page = list(zip(response.texts("Key"), response.texts("VersionId"), strict=True))
        assert page, response.body
        found += page
        if response.texts("IsTruncated") == ["false"]:
            break
        assert len(found) <= 3
        key, version = found[-1]
        place = f"&key-marker={key}&version-id-marker={version}"
    assert found == [("key", archived.newer), ("key", "null"), ("key0", "null")]


def test_an_archived_object_from_before_versioning_is_deleted_by_the_id_null(archived):
    response = archived("DELETE", "/bucket/key?versionId=null")
    assert (response.status, response.headers["x-amz-version-id"]) == (204, "null")
    assert archived("GET", "/bucket/key?versionId=null").code == "NoSuchVersion"
    assert archived("GET", "/bucket?versions&prefix=key").texts("VersionId") == [archived.newer, "null"]
    assert archived("DELETE", "/bucket/key?versionId=null").status == 204
    assert archived("GET", "/bucket/key").body == b"new"


def test_an_archived_object_from_before_versioning_becomes_the_current_one_again(archived):
    assert archived("DELETE", f"/bucket/key?versionId={archived.newer}").status == 204
    response = archived("GET", "/bucket/key")
    assert (response.body, response.headers["x-amz-version-id"]) == (b"before", "null")
    assert archived("GET", "/bucket?versions&prefix=key").texts("IsLatest") == ["true", "true"]
    assert archived("DELETE", "/bucket/key?versionId=null").status == 204
    assert archived("GET", "/bucket/key").status == 404
    assert archived.names("bucket") == ["key0"]


def test_nodes_without_conditions_delete_the_version_null_too(versions):
    versions.versioning("bucket", "Suspended")
    versions("PUT", "/bucket/key", {}, b"plain")
    versions.bottom.instead = lambda request: (
        error_response(501) if fields.BACKEND_IF_PREDECESSOR in request.headers else None
    )
    assert versions("DELETE", "/bucket/key?versionId=null").status == 204
    assert versions("GET", "/bucket/key").headers["x-amz-version-id"] == versions.second


def test_the_version_null_that_is_archived_before_its_deletion_is_found_again(s3):
    s3("PUT", "/bucket/key", {}, b"before")
    s3.versioning("bucket", "Enabled")
    interfere_before(s3, "DELETE", "/v1/AUTH_test/bucket/key", lambda: s3("PUT", "/bucket/key", {}, b"newer"))
    assert s3("DELETE", "/bucket/key?versionId=null").status == 204
    assert s3("GET", "/bucket/key").body == b"newer"
    assert len(s3("GET", "/bucket?versions").texts("VersionId")) == 1


def test_the_deletion_of_a_current_object_without_an_id_restores_the_newest_version(versions):
    versions.versioning("bucket", "Suspended")
    versions("PUT", "/bucket/key", {}, b"plain")
    assert versions("GET", "/bucket/key?versionId=null").body == b"plain"
    assert versions("DELETE", "/bucket/key?versionId=null").status == 204
    assert versions("GET", "/bucket/key").headers["x-amz-version-id"] == versions.second


# --- conditions -----------------------------------------------------------------------------------------

CONDITIONS = [
    ("if-match", "x"),
    ("if-none-match", "*"),
    ("if-unmodified-since", "Fri, 01 Jan 2027 00:00:00 GMT"),
]


@pytest.mark.parametrize(("name", "value"), CONDITIONS)
def test_a_condition_on_a_version_to_delete_is_never_ignored(versions, name, value):
    code = "NotImplemented" if name == "if-unmodified-since" else "PreconditionFailed"
    marker = versions("DELETE", "/bucket/key").headers["x-amz-version-id"]
    for version in (versions.first, versions.second, marker):
        assert versions("DELETE", f"/bucket/key?versionId={version}", {name: value}).code == code
    assert versions("GET", "/bucket?versions").texts("VersionId") == [marker, versions.second, versions.first]
    missing = versions("DELETE", "/bucket/key?versionId=1700000000.00000", {"if-match": "x"})
    assert missing.code == "NoSuchVersion"


def test_a_version_is_deleted_if_it_meets_the_condition(versions):
    for name, body in ((versions.first, b"1"), (versions.second, b"2")):
        found = {"if-match": md5(body).hexdigest()}
        assert versions("DELETE", f"/bucket/key?versionId={name}", found).status == 204
    assert versions("GET", "/bucket?versions").texts("VersionId") == []


def test_an_object_to_be_deleted_on_a_condition_leaves_no_delete_marker(versions):
    assert versions("DELETE", "/bucket/key", {"if-match": "x"}).code == "PreconditionFailed"
    assert versions("GET", "/bucket?versions").texts("VersionId") == [versions.second, versions.first]
    assert versions("GET", "/bucket/key").body == b"2"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/bucket?versioning"),
        ("PUT", "/bucket/key?tagging"),
        ("POST", "/bucket/key?uploads"),
        ("PUT", "/bucket/key?partNumber=1&uploadId=x"),
        ("DELETE", "/bucket/key?uploadId=x"),
        ("DELETE", "/bucket/key?tagging"),
        ("POST", "/bucket?delete"),
        ("DELETE", "/bucket"),
    ],
)
@pytest.mark.parametrize(("name", "value"), CONDITIONS)
def test_changes_that_evaluate_no_condition_refuse_it(s3, method, path, name, value):
    response = s3(method, path, {name: value})
    assert (response.status, response.code) == (501, "NotImplemented")
    assert response.texts("Header") == [name]


# --- names that leave no room for the id of a version ---------------------------------------------------

#: The longest key of a versioned bucket, bytes.
LONGEST = 1006


@pytest.mark.parametrize("size", [LONGEST, LONGEST + 1, 1024])
@pytest.mark.parametrize("metadata", [{}, {"x-amz-meta-a": "1"}])
def test_a_key_that_leaves_no_room_for_version_ids_is_too_long(s3, size, metadata):
    path = f"/bucket/{'k' * size}"
    s3("PUT", path, {}, b"before")
    s3.versioning("bucket", "Enabled")
    response = s3("PUT", path, metadata, b"after")
    if size == LONGEST:
        assert response.status == 200
    else:
        assert (response.status, response.code) == (400, "KeyTooLongError")
    assert s3("GET", path).body == (b"after" if size == LONGEST else b"before")
    response = s3("DELETE", path)
    assert (response.status, "x-amz-version-id" in response.headers) == (204, size == LONGEST)
    assert s3("GET", path).status == 404
    assert s3("DELETE", path).status == 204


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_refusal_without_a_condition_is_not_a_failed_condition(s3, method):
    """The former object cannot be archived in a bucket with X-Versions-Location."""
    s3.bottom.instead = lambda request: error_response(412) if request.method == method else None
    assert s3(method, "/bucket/key", {}, b"").code == "InvalidBucketState"
    assert s3(method, "/bucket/key", {"if-match": "*"}, b"").code == "NoSuchKey"
