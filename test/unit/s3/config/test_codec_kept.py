"""Documents that a bucket keeps, and what they make of its rules."""

import json
import random

import pytest

from swift.http import fields
from swift.s3.config.codec import LIFECYCLE, POLICY, WEBSITE, DamagedConfiguration
from swift.s3.errors import S3Error
from swift.s3.policy.context import BucketRules, rules_of


def sysmeta(headers):
    return {name.removeprefix(fields.CONTAINER_SYSMETA): text for name, text in headers.items() if text}


@pytest.mark.parametrize("size", [1, 100, 6000, 20480])
def test_a_document_comes_back_as_it_went(size):
    for document in (b"x" * size, random.Random(size).randbytes(size)):
        headers = POLICY.encode(document)
        assert max(len(name) + len(text) for name, text in headers.items()) < 8000
        assert POLICY.decode(sysmeta(headers)) == document


def test_a_shorter_document_leaves_nothing_of_a_longer_one():
    long, short = POLICY.encode(random.Random(1).randbytes(20000)), POLICY.encode(b"short")
    assert long.keys() == short.keys()
    assert POLICY.decode(sysmeta({**long, **short})) == b"short"
    assert POLICY.decode(sysmeta({**long, **POLICY.encode(b"")})) == b""


def test_what_is_too_large_is_refused():
    for document in (b"x" * (200 << 10), random.Random(1).randbytes(30_000)):
        with pytest.raises(S3Error) as caught:
            POLICY.encode(document)
        assert caught.value.status == 400


@pytest.mark.parametrize("text", ["x", "eA==", "\xff"])
def test_what_cannot_be_read_forbids_everything(text):
    with pytest.raises(S3Error) as caught:
        rules_of({"s3api-policy": text}, "bucket")
    assert (caught.value.status, caught.value.text) == (500, "The bucket's policy configuration is damaged.")


@pytest.mark.parametrize("text", ["x", "eA==", "\xff"])
def test_every_kind_of_configuration_fails_closed_and_says_which(text):
    for codec, key in ((WEBSITE, "s3api-website"), (LIFECYCLE, "s3api-lifecycle-0")):
        with pytest.raises(DamagedConfiguration) as caught:
            codec.decode({key: text})
        assert f"bucket's {codec.name} configuration is damaged" in caught.value.text


def test_a_policy_of_another_age_forbids_everything():
    kept = sysmeta(POLICY.encode(b'{"Statement": "later"}'))
    with pytest.raises(S3Error):
        rules_of(kept, "bucket")


def test_a_bucket_without_rules_costs_nothing():
    assert rules_of({"s3api-acl": "x", "versions-enabled": "true"}, "bucket") is None
    assert rules_of({"s3api-public-access-block": "none"}, "bucket") == BucketRules()
    found = rules_of({"s3api-public-access-block": "BlockPublicAcls,Odd"}, "bucket")
    assert found.blocks == {"BlockPublicAcls"}


def test_a_policy_is_parsed_once():
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::bucket"}
    kept = sysmeta(POLICY.encode(json.dumps({"Statement": statement}).encode()))
    assert rules_of(kept, "bucket").policy is rules_of(dict(kept), "bucket").policy
    assert rules_of(kept, "bucket").is_public
