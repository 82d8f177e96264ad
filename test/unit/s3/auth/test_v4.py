"""Signatures of version 4: what must be signed, and for what a key is."""

import time
from hashlib import sha256

import pytest

from swift.http.request import Request
from swift.middleware.catch_errors import CatchErrors, CatchErrorsSettings
from swift.middleware.gatekeeper import Gatekeeper, GatekeeperSettings
from swift.runtime.wsgi import response_or_error
from swift.telemetry.log import silent_log
from test.support.s3 import signed_headers, stamp_of
from test.support.s3_fixtures import HOST, code_of
from test.support.sim import MemoryCache


def test_headers_that_would_change_what_is_done_must_be_signed(front):
    for name in ("x-amz-copy-source", "x-amz-acl", "x-amz-grant-read", "x-amz-meta-a", "x-amz-tagging"):
        good = signed_headers("PUT", f"{HOST}/bucket/key", body=b"")
        assert code_of(front.raw("PUT", "/bucket/key", {**good, name: "x"})) == "AccessDenied"


@pytest.mark.parametrize("name", ["x-trans-id", "x-openstack-request-id", "x-backend-odd", "x-timestamp"])
def test_headers_of_an_answer_that_a_client_signs_again_are_taken_as_it_sent_them(front, name):
    """s3cmd modifies objects so; the filters in front replace such headers."""
    log = silent_log()
    guarded = Gatekeeper(front.filter, GatekeeperSettings.parse({}))
    app = CatchErrors(guarded, CatchErrorsSettings.parse({}), log)
    signed = signed_headers("PUT", f"{HOST}/bucket/key", {name: "sent"}, b"x")
    for value, status in (("sent", 200), ("other", 403)):
        headers = {
            "host": "h",
            **{n.lower(): v for n, v in signed.items()},
            "content-length": "1",
            name: value,
        }
        env = {"swift.cache": MemoryCache()}
        answer = response_or_error(app.handle, Request("PUT", "/bucket/key", headers, b"x", env=env))
        assert answer.status == status
    sent = front.store.seen[-1].headers
    assert sent.get(name) != "sent"


@pytest.mark.parametrize("seconds", [-1000, 1000])
def test_a_clock_that_differs_too_much_is_told(front, seconds):
    old = signed_headers("GET", f"{HOST}/bucket", {"X-Amz-Date": "x"})
    old["X-Amz-Date"] = stamp_of(time.time() + seconds)
    today = old["Authorization"].partition("/")[2][:8]
    old["Authorization"] = old["Authorization"].replace(today, old["X-Amz-Date"][:8])
    assert code_of(front.raw("GET", "/bucket", old)) == "RequestTimeTooSkewed"


@pytest.mark.parametrize("missing", ["X-Amz-Date", "X-Amz-Content-SHA256"])
def test_what_a_signature_needs_must_be_there(front, missing):
    good = signed_headers("GET", f"{HOST}/bucket")
    del good[missing]
    assert code_of(front.raw("GET", "/bucket", good)) in ("AccessDenied", "InvalidRequest")


@pytest.mark.parametrize(
    "scope",
    [
        "key/20200101/us-east-1/s3/aws4_request",
        "key/{day}/mars/s3/aws4_request",
        "key/{day}/us-east-1/ec2/aws4_request",
    ],
)
def test_a_key_for_something_else_is_malformed(front, scope):
    good = signed_headers("GET", f"{HOST}/bucket")
    day = good["X-Amz-Date"][:8]
    good["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={scope.format(day=day)}, SignedHeaders=host, Signature=0"
    )
    assert code_of(front.raw("GET", "/bucket", good)) == "AuthorizationHeaderMalformed"


@pytest.mark.parametrize(
    "credential, said",
    [
        ("test:tester/{day}/us-east-1/s3/aws_request", 'incorrect terminal "aws_request"'),
        ("test:tester/{day}/us-east-1/ec2/aws4_request", 'incorrect service "ec2"'),
        ("test:tester/{day}/mars/s3/aws4_request", "the region 'mars' is wrong"),
        ("test:tester/2026/us-east-1/s3/aws4_request", 'Invalid credential date "2026"'),
        ("test:tester/20200101/us-east-1/s3/aws4_request", "Invalid credential date"),
    ],
)
def test_what_is_wrong_with_a_credential_is_said(front, credential, said):
    good = signed_headers("GET", f"{HOST}/bucket")
    day = good["X-Amz-Date"][:8]
    start, _, rest = good["Authorization"].partition("Credential=")
    bad = f"{start}Credential={credential.format(day=day)},{rest.partition(',')[2]}"
    response = front.raw("GET", "/bucket", {**good, "Authorization": bad})
    text = response.read_body().decode()
    assert response.status == 400 and said in text.replace("&quot;", '"')


def test_what_is_no_credential_is_malformed(front):
    good = signed_headers("GET", f"{HOST}/bucket")
    for credential in ("x", "a/b/c/d", "/20200101/us-east-1/s3/aws4_request", "a/b/c/d/e/f"):
        bad = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"
        response = front.raw("GET", "/bucket", {**good, "Authorization": bad})
        assert (response.status, code_of(response)) == (400, "AuthorizationHeaderMalformed")
        assert b"Credential is mal-formed" in response.body


@pytest.mark.parametrize("missing", ["Credential", "SignedHeaders", "Signature"])
def test_a_signature_without_a_component_names_it(front, missing):
    good = signed_headers("GET", f"{HOST}/bucket")
    for other in ("Other=", missing + " "):
        bad = good["Authorization"].replace(f"{missing}=", other)
        response = front.raw("GET", "/bucket", {**good, "Authorization": bad})
        assert (response.status, code_of(response)) == (400, "AuthorizationHeaderMalformed")
        assert missing.encode() in response.body
    more = f"{good['Authorization']}, Other=x"
    assert front.raw("GET", "/bucket", {**good, "Authorization": more}).status == 200


def test_a_link_without_a_credential_is_still_of_the_s3_api(front):
    query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0"
    response = front.raw("GET", f"/bucket/key?{query}")
    assert (response.status, code_of(response)) == (400, "AuthorizationQueryParametersError")


def test_the_hash_of_a_body_may_be_written_in_upper_case(front):
    for data, status in ((b"data", 200), (b"other", 400)):
        promise = {"X-Amz-Content-SHA256": sha256(b"data").hexdigest().upper()}
        signed = signed_headers("PUT", f"{HOST}/bucket/k", promise, data)
        assert front.raw("PUT", "/bucket/k", signed, data).status == status
