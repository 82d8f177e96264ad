"""Buckets: creation, HEAD and deletion."""

import time
from urllib.parse import quote

import pytest

from swift.base.timestamp import Timestamp
from swift.http.response import error_response
from swift.middleware.versioned_writes.names import Version
from test.support.s3_fixtures import Multipart


def located(text):
    return (
        f"<CreateBucketConfiguration><LocationConstraint>{text}</LocationConstraint></CreateBucketConfiguration>"
    ).encode()


def test_a_bucket_exists_after_its_creation(s3):
    assert s3("HEAD", "/other").status == 404
    response = s3("PUT", "/other")
    assert (response.status, response.headers["location"]) == (200, "/other")
    assert s3("HEAD", "/other").headers["x-amz-bucket-region"] == "us-east-1"
    assert s3("PUT", "/other").code == "BucketAlreadyOwnedByYou"


@pytest.mark.parametrize("text", ["eu-west-1", "us-east-1:NONE", ":NONE", ":", "x" * 5000])
def test_a_bucket_in_another_region_is_refused(s3, text):
    assert s3("PUT", "/other", {}, located(text)).code == "InvalidLocationConstraint"
    assert s3("HEAD", "/other").status == 404


def test_the_default_region_is_empty_in_documents(s3):
    assert s3("PUT", "/other", {}, located("us-east-1")).status == 200
    assert s3("GET", "/other?location").tree.text is None


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-amz-object-ownership": "Nobody"}, "InvalidArgument"),
        (
            {"x-amz-object-ownership": "BucketOwnerEnforced", "x-amz-acl": "public-read"},
            "InvalidBucketAclWithObjectOwnership",
        ),
        ({"x-amz-acl": "odd"}, "InvalidArgument"),
    ],
)
def test_invalid_bucket_creations_create_nothing(s3, headers, code):
    assert s3("PUT", "/other", headers).code == code
    assert s3("HEAD", "/other").status == 404


def test_a_new_bucket_has_the_requested_tags(s3):
    document = (
        b"<CreateBucketConfiguration><Tags><Tag><Key>k</Key><Value>v</Value></Tag></Tags>"
        b"</CreateBucketConfiguration>"
    )
    assert s3("PUT", "/other", {}, document).status == 200
    assert s3("GET", "/other?tagging").texts("Value") == ["v"]


def test_a_bucket_that_is_not_empty_cannot_be_deleted(s3):
    s3("PUT", "/bucket/key", {}, b"")
    response = s3("DELETE", "/bucket")
    assert (response.status, response.code) == (409, "BucketNotEmpty")
    s3("DELETE", "/bucket/key")
    assert s3("DELETE", "/bucket").status == 204
    assert s3("DELETE", "/bucket").code == "NoSuchBucket"


def test_a_bucket_whose_versions_are_hidden_is_not_empty(s3):
    s3.versioning("bucket", "Enabled")
    version = s3("PUT", "/bucket/key", {}, b"").headers["x-amz-version-id"]
    marker = s3("DELETE", "/bucket/key").headers["x-amz-version-id"]
    response = s3("DELETE", "/bucket")
    assert response.code == "BucketNotEmpty" and "all versions" in response.texts("Message")[0]
    for name in (version, marker):
        s3("DELETE", f"/bucket/key?versionId={name}")
    assert s3("DELETE", "/bucket").status == 204


def test_deleting_a_bucket_deletes_the_parts_of_incomplete_uploads(s3):
    upload = Multipart(s3)
    upload.part(1, b"part")
    assert s3("DELETE", "/bucket").status == 204
    assert s3.sim("HEAD", "/AUTH_test/bucket+segments").status == 404


def test_an_interrupted_deletion_is_completed_by_the_next(s3):
    Multipart(s3).part(1, b"part")
    assert s3.sim("DELETE", "/AUTH_test/bucket").status == 204
    assert s3("DELETE", "/bucket").code == "NoSuchBucket"
    assert s3.sim("HEAD", "/AUTH_test/bucket+segments").status == 404


@pytest.mark.parametrize("method", ["HEAD", "DELETE"])
@pytest.mark.parametrize("is_versioned", [False, True])
def test_a_bucket_is_deleted_though_a_replica_of_its_listing_is_behind(s3, method, is_versioned):
    if is_versioned:
        s3.versioning("bucket", "Enabled")
    left = [1, 2]

    def instead(request):
        name = "%00versions%00bucket" if is_versioned and method == "HEAD" else "bucket"
        if not left or (request.method, request.raw_path) != (method, f"/v1/AUTH_test/{name}"):
            return None
        left.pop()
        if method == "DELETE":
            return error_response(409)
        response = s3.sim.app.handle(request)
        response.headers["x-container-object-count"] = "1"
        return response

    s3.bottom.instead = instead
    assert s3("DELETE", "/bucket").status == 204
    assert not left


@pytest.mark.parametrize("what", ["object", "version", "delete marker", "dangling link"])
def test_a_bucket_with_anything_in_it_is_not_empty_at_once(s3, what):
    s3.versioning("bucket", "Suspended" if what == "object" else "Enabled")
    version = s3("PUT", "/bucket/key", {}, b"x").headers.get("x-amz-version-id")
    if what == "delete marker":
        s3("DELETE", "/bucket/key")
        assert s3("DELETE", f"/bucket/key?versionId={version}").status == 204
    if what == "dangling link":
        path = f"/AUTH_test/%00versions%00bucket/{quote(Version('key', Timestamp(version)).name)}"
        assert s3.sim("DELETE", path, {"x-backend-allow-reserved-names": "true"}).status == 204
    began_s = time.monotonic()
    assert s3("DELETE", "/bucket").code == "BucketNotEmpty"
    assert time.monotonic() - began_s < 1
