"""What is stored with an object, and which wishes are refused rather than ignored."""

import pytest

from swift.http import fields
from test.support.s3_fixtures import code_of


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-server-side-encryption": "aws:kms"},
        {"x-amz-server-side-encryption-aws-kms-key-id": "k"},
        {"x-amz-mfa": "1"},
        {"x-amz-if-match-size": "1"},
        {"if-match": '"a"', "if-none-match": "*"},
    ],
)
def test_wishes_that_cannot_be_met_are_not_ignored(front, headers):
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "NotImplemented"
    assert not front.store.objects


@pytest.mark.parametrize("name", ["standard", "", "GLACIER", " "])
def test_a_storage_class_is_named_exactly(front, name):
    assert code_of(front("PUT", "/bucket/key", {"x-amz-storage-class": name}, b"x")) == "InvalidStorageClass"
    assert not front.store.objects


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-server-side-encryption-customer-algorithm": "AES256"},
        {"x-amz-object-lock-mode": "GOVERNANCE"},
        {"x-amz-object-lock-legal-hold": "MAYBE"},
    ],
)
def test_wishes_that_are_half_said_are_refused(front, headers):
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidArgument"
    assert not front.store.objects
    assert front.store.objects == {}


@pytest.mark.parametrize("place", ["/elsewhere", "http://a.test/", "https://a.test/b"])
def test_where_a_web_site_sends_its_visitors_is_kept_with_the_object(front, place):
    assert front("PUT", "/bucket/key", {"x-amz-website-redirect-location": place}, b"x").status == 200
    kept = front.store.objects["bucket", "key"][1]
    assert kept[fields.SYSMETA_S3_REDIRECT] == place


@pytest.mark.parametrize("place", ["ftp://a.test/", "", "a.test", "/" + "x" * 2048, "javascript:x"])
def test_visitors_are_sent_to_no_other_kind_of_place(front, place):
    headers = {"x-amz-website-redirect-location": place}
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidRedirectLocation"
    assert front.store.objects == {}


@pytest.mark.parametrize(
    "text", ["=", "key%", "key%zz", "a=1&a=2", "&".join(f"k{n}=" for n in range(21)), "k=%ff"]
)
def test_a_header_of_tags_that_is_no_query_is_an_invalid_argument(front, text):
    assert code_of(front("PUT", "/bucket/key", {"x-amz-tagging": text}, b"x")) == "InvalidArgument"
    assert front.store.objects == {}
