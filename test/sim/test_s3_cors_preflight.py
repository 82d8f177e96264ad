"""CORS preflight requests before signed requests, and CORS headers of responses."""

import pytest

from test.support.s3_fixtures import S3Cluster

ASK = {"origin": "http://a.example", "access-control-request-method": "PUT"}
SIGNED = {**ASK, "access-control-request-headers": "Authorization, X-Amz-Date, authorization"}
LINK = "?X-Amz-Credential=test:tester/20260101/us-east-1/s3/aws4_request"


def rules(origin="http://a.example", method="PUT"):
    return (
        f"<CORSConfiguration><CORSRule><AllowedOrigin>{origin}</AllowedOrigin>"
        f"<AllowedMethod>{method}</AllowedMethod><AllowedHeader>*</AllowedHeader></CORSRule></CORSConfiguration>"
    ).encode()


@pytest.fixture
def open_(sim):
    world = S3Cluster(sim, cors_preflight_allow_origin="http://a.example, http://b.example")
    world("PUT", "/bucket")
    return world


def test_an_origin_of_the_configuration_may_send_signed_requests(open_):
    response = open_.raw("OPTIONS", "/bucket/key", SIGNED)
    assert response.status == 200
    assert response.headers["access-control-allow-origin"] == "http://a.example"
    assert response.headers["access-control-allow-headers"] == "authorization, x-amz-date"


@pytest.mark.parametrize("origin", ["http://c.example", "http://a.example.evil", "", "null"])
def test_other_origins_are_refused(open_, origin):
    response = open_.raw("OPTIONS", "/bucket/key", {**SIGNED, "origin": origin})
    assert response.status == 401 and "access-control-allow-origin" not in response.headers


def test_preflight_requests_for_presigned_urls_are_served(open_):
    assert open_.raw("OPTIONS", "/bucket/key" + LINK, ASK).status == 200
    assert open_.raw("OPTIONS", "/bucket/key?AWSAccessKeyId=a", ASK).status == 200


def test_the_rules_of_a_bucket_take_precedence(s3):
    assert s3("PUT", "/bucket?cors", {}, rules()).status == 200
    response = s3.raw("OPTIONS", "/bucket/key" + LINK, ASK)
    assert (response.status, response.headers["access-control-allow-origin"]) == (200, "http://a.example")
    refused = s3.raw("OPTIONS", "/bucket/key" + LINK, {**ASK, "access-control-request-method": "DELETE"})
    assert refused.status == 403
    assert s3.raw("OPTIONS", "/bucket/key" + LINK, {**ASK, "origin": "http://c.example"}).status == 403


@pytest.mark.parametrize(
    "query",
    [
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=test:tester/20200101/us-east-1/s3/aws4_request"
        "&X-Amz-Date=20200101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=0",
        "AWSAccessKeyId=test:tester&Expires=1&Signature=x",
        "AWSAccessKeyId=test:tester&Expires=1999999999&Signature=x",
        "AWSAccessKeyId=nobody&Expires=1999999999&Signature=x",
    ],
    ids=["expired", "expired v2", "wrong v2", "unknown key"],
)
def test_errors_of_presigned_urls_are_readable_for_allowed_origins(s3, query):
    s3("PUT", "/bucket?cors", {}, rules(method="GET"))
    response = s3.raw("GET", f"/bucket/key?{query}", {"origin": "http://a.example"})
    assert response.status == 403 and response.code
    assert response.headers["access-control-allow-origin"] == "http://a.example"
    other = s3.raw("GET", f"/bucket/key?{query}", {"origin": "http://c.example"})
    assert other.status == 403 and "access-control-allow-origin" not in other.headers


def test_actual_responses_have_the_headers_of_the_rules(s3):
    s3("PUT", "/bucket?cors", {}, rules(method="GET"))
    response = s3("GET", "/bucket/nothing", {"origin": "http://a.example"})
    assert response.code == "NoSuchKey"
    assert response.headers["access-control-allow-origin"] == "http://a.example"
    other = s3("GET", "/bucket/nothing", {"origin": "http://c.example"})
    assert "access-control-allow-origin" not in other.headers
