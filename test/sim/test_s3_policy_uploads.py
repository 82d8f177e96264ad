"""Policies that ask for headers of an upload judge its parts and its end by how it was created."""

import json

import pytest

from swift.s3.core.call import Features
from test.support.s3_fixtures import Multipart, S3Cluster

CASES = {
    "encryption": (
        {"StringNotEquals": {"s3:x-amz-server-side-encryption": "AES256"}},
        {"x-amz-server-side-encryption": "AES256"},
    ),
    "acl": (
        {"StringNotEquals": {"s3:x-amz-acl": "bucket-owner-full-control"}},
        {"x-amz-acl": "bucket-owner-full-control"},
    ),
    "class": (
        {"StringNotEquals": {"s3:x-amz-storage-class": "STANDARD"}},
        {"x-amz-storage-class": "STANDARD"},
    ),
    "tag": ({"StringNotEquals": {"s3:RequestObjectTag/team": "red"}}, {"x-amz-tagging": "team=red"}),
    "tag keys": ({"Null": {"s3:RequestObjectTagKeys": "true"}}, {"x-amz-tagging": "team=red"}),
}


def deny_puts(s3, condition):
    """Deny uploads that meet a condition."""
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:PutObject",
        "Resource": "arn:aws:s3:::bucket/*",
        "Condition": condition,
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    assert s3("PUT", "/bucket?policy", {}, document.encode()).status == 204


@pytest.fixture
def s3(sim):
    world = S3Cluster(sim, Features(encryption=True))
    assert world("PUT", "/bucket").status == 200
    return world


@pytest.mark.parametrize("case", CASES)
def test_parts_and_completions_have_the_headers_of_their_upload(s3, case):
    condition, headers = CASES[case]
    assert s3("PUT", "/bucket/source", {}, b"1").status == 200
    unmarked = Multipart(s3, "/bucket/other")
    deny_puts(s3, condition)
    assert s3("POST", "/bucket/key?uploads").code == "AccessDenied"
    upload = Multipart(s3, headers=headers)
    assert upload.part(1, b"1").status == 200
    copied = upload.part(2, b"", {"x-amz-copy-source": "/bucket/source"})
    assert copied.status == 200
    for _ in range(2):
        # Repeated, it is judged by the object that it made.
        assert upload.complete((1, b"1"), (2, b"1")).status == 200
    assert s3("GET", "/bucket/key").body == b"11"
    # Headers of a part are not those of its object.
    assert unmarked.part(1, b"1", headers).code == "AccessDenied"
    assert unmarked.complete((1, b"1"), headers=headers).code == "AccessDenied"
    assert s3("PUT", "/bucket/key", {}, b"x").code == "AccessDenied"
    assert s3("PUT", "/bucket/key", headers, b"x").status == 200


def test_uploads_in_parts_can_be_exempt_from_conditional_writes(s3):
    """As AWS documents the enforcement of conditional writes."""
    deny_puts(s3, {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}})
    assert s3("PUT", "/bucket/key", {}, b"x").code == "AccessDenied"
    upload = Multipart(s3)
    assert upload.part(1, b"1").status == 200
    assert upload.complete((1, b"1")).code == "AccessDenied"
    assert upload.complete((1, b"1"), headers={"if-none-match": "*"}).status == 200


@pytest.mark.parametrize("key", ["aws:SourceAccount", "aws:SourceArn"])
def test_keys_of_policies_for_services_are_accepted_and_have_no_value(s3, key):
    value = "arn:aws:s3:::bucket" if key.endswith("Arn") else "111122223333"
    deny_puts(s3, {"StringEquals": {key: value}})
    assert s3("PUT", "/bucket/key", {}, b"x").status == 200
    deny_puts(s3, {"StringNotEquals": {key: value}})
    assert s3("PUT", "/bucket/key", {}, b"x").code == "AccessDenied"
