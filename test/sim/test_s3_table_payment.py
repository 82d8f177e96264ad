"""Who pays for requests: said by the owner, and agreed to by requesters."""

import pytest


def payer(text):
    return f"<RequestPaymentConfiguration><Payer>{text}</Payer></RequestPaymentConfiguration>".encode()


def test_the_owner_pays_until_somebody_says_otherwise(s3):
    assert s3("GET", "/bucket?requestPayment").texts("Payer") == ["BucketOwner"]
    assert s3("PUT", "/bucket?requestPayment", {}, payer("Requester")).status == 200
    assert s3("GET", "/bucket?requestPayment").texts("Payer") == ["Requester"]
    assert s3("PUT", "/bucket?requestPayment", {}, payer("BucketOwner")).status == 200
    assert s3("GET", "/bucket?requestPayment").texts("Payer") == ["BucketOwner"]


def test_the_owner_need_not_agree_to_his_own_requests(s3):
    s3("PUT", "/bucket/key", {}, b"x")
    s3("PUT", "/bucket?requestPayment", {}, payer("Requester"))
    assert s3("GET", "/bucket/key").body == b"x"


@pytest.mark.parametrize("text", ["", "requester", "Nobody", "Requester,BucketOwner"])
def test_nobody_else_pays(s3, text):
    assert s3("PUT", "/bucket?requestPayment", {}, payer(text)).code == "MalformedXML"
    assert s3("GET", "/bucket?requestPayment").texts("Payer") == ["BucketOwner"]


def test_a_bucket_that_there_is_not_costs_nobody_anything(s3):
    assert s3("GET", "/no-bucket?requestPayment").code == "NoSuchBucket"
    assert s3("PUT", "/no-bucket?requestPayment", {}, payer("Requester")).code == "NoSuchBucket"
