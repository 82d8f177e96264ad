"""Requester pays: configured by the owner, confirmed by requesters."""

import pytest


def payer(text):
    return f"<RequestPaymentConfiguration><Payer>{text}</Payer></RequestPaymentConfiguration>".encode()


def test_the_bucket_owner_pays_by_default(s3):
    assert s3("GET", "/bucket?requestPayment").texts("Payer") == ["BucketOwner"]
    assert s3("PUT", "/bucket?requestPayment", {}, payer("Requester")).status == 200
    assert s3("GET", "/bucket?requestPayment").texts("Payer") == ["Requester"]
    assert s3("PUT", "/bucket?requestPayment", {}, payer("BucketOwner")).status == 200
    assert s3("GET", "/bucket?requestPayment").texts("Payer") == ["BucketOwner"]


def test_the_owner_needs_no_request_payer_header(s3):
    s3("PUT", "/bucket/key", {}, b"x")
    s3("PUT", "/bucket?requestPayment", {}, payer("Requester"))
    assert s3("GET", "/bucket/key").body == b"x"


@pytest.mark.parametrize("text", ["", "requester", "Nobody", "Requester,BucketOwner"])
def test_an_invalid_payer_is_refused(s3, text):
    assert s3("PUT", "/bucket?requestPayment", {}, payer(text)).code == "MalformedXML"
    assert s3("GET", "/bucket?requestPayment").texts("Payer") == ["BucketOwner"]


def test_a_missing_bucket_has_no_payer(s3):
    assert s3("GET", "/no-bucket?requestPayment").code == "NoSuchBucket"
    assert s3("PUT", "/no-bucket?requestPayment", {}, payer("Requester")).code == "NoSuchBucket"
