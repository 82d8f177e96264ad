"""Buckets: made, looked at and removed."""

import pytest

from test.support.s3_fixtures import Multipart


def located(text):
    return (
        f"<CreateBucketConfiguration><LocationConstraint>{text}</LocationConstraint></CreateBucketConfiguration>"
    ).encode()


def test_a_bucket_is_there_once_it_was_made(s3):
    assert s3("HEAD", "/other").status == 404
    answer = s3("PUT", "/other")
    assert (answer.status, answer.headers["location"]) == (200, "/other")
    assert s3("HEAD", "/other").headers["x-amz-bucket-region"] == "us-east-1"
    assert s3("PUT", "/other").code == "BucketAlreadyOwnedByYou"


@pytest.mark.parametrize("text", ["eu-west-1", "us-east-1:NONE", ":NONE", ":", "x" * 5000])
def test_a_bucket_is_made_in_no_other_place(s3, text):
    assert s3("PUT", "/other", {}, located(text)).code == "InvalidLocationConstraint"
    assert s3("HEAD", "/other").status == 404


def test_the_region_without_a_name_has_none_in_documents(s3):
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
def test_wishes_for_a_bucket_that_make_no_sense_make_none(s3, headers, code):
    assert s3("PUT", "/other", headers).code == code
    assert s3("HEAD", "/other").status == 404


def test_the_tags_of_a_new_bucket_are_its_own(s3):
    document = (
        b"<CreateBucketConfiguration><Tags><Tag><Key>k</Key><Value>v</Value></Tag></Tags>"
        b"</CreateBucketConfiguration>"
    )
    assert s3("PUT", "/other", {}, document).status == 200
    assert s3("GET", "/other?tagging").texts("Value") == ["v"]


def test_what_has_something_in_it_stays(s3):
    s3("PUT", "/bucket/key", {}, b"")
    answer = s3("DELETE", "/bucket")
    assert (answer.status, answer.code) == (409, "BucketNotEmpty")
    s3("DELETE", "/bucket/key")
    assert s3("DELETE", "/bucket").status == 204
    assert s3("DELETE", "/bucket").code == "NoSuchBucket"


def test_a_bucket_whose_versions_are_hidden_is_not_empty(s3):
    s3.versioning("bucket", "Enabled")
    version = s3("PUT", "/bucket/key", {}, b"").headers["x-amz-version-id"]
    marker = s3("DELETE", "/bucket/key").headers["x-amz-version-id"]
    answer = s3("DELETE", "/bucket")
    assert answer.code == "BucketNotEmpty" and "all versions" in answer.texts("Message")[0]
    for name in (version, marker):
        s3("DELETE", f"/bucket/key?versionId={name}")
    assert s3("DELETE", "/bucket").status == 204


def test_the_parts_of_uploads_that_never_ended_go_with_it(s3):
    upload = Multipart(s3)
    upload.part(1, b"part")
    assert s3("DELETE", "/bucket").status == 204
    assert s3.sim("HEAD", "/AUTH_test/bucket+segments").status == 404


def test_a_removal_that_broke_off_is_ended_by_the_next(s3):
    Multipart(s3).part(1, b"part")
    assert s3.sim("DELETE", "/AUTH_test/bucket").status == 204
    assert s3("DELETE", "/bucket").code == "NoSuchBucket"
    assert s3.sim("HEAD", "/AUTH_test/bucket+segments").status == 404
