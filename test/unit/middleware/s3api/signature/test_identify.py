"""Which requests are signed, by which version, and which signatures are none."""

import pytest

from test.support.s3 import signed_headers
from test.support.s3_fixtures import HOST, code_of


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize(
    "path", ["/bucket/key", "/bucket/a%20b%2Bc~%C3%BC", "/bucket/k?partNumber=1", "/bucket?location"]
)
def test_a_signature_of_each_version_is_good(front, version, path):
    assert front("GET", path, version=version).status in (200, 404)


@pytest.mark.parametrize("version", [2, 4])
def test_any_change_makes_it_bad(front, version):
    good = signed_headers("GET", f"{HOST}/bucket/key", version=version)
    assert code_of(front.raw("GET", "/bucket/other", good)) == "SignatureDoesNotMatch"
    assert code_of(front.raw("DELETE", "/bucket/key", good)) == "SignatureDoesNotMatch"
    assert code_of(front.raw("GET", "/bucket/key?versionId=1", good)) == "SignatureDoesNotMatch"
    meta = {**good, "X-Amz-Meta-A": "1"}
    assert code_of(front.raw("GET", "/bucket/key", meta)) in ("SignatureDoesNotMatch", "AccessDenied")
    assert code_of(front("GET", "/bucket/key", secret="other", version=version)) == "SignatureDoesNotMatch"
    assert code_of(front("GET", "/bucket/key", user="no:body", version=version)) == "SignatureDoesNotMatch"
    assert front.store.seen == []


def test_a_signature_in_the_header_and_one_in_the_query_are_one_too_many(front):
    good = signed_headers("GET", f"{HOST}/bucket")
    assert code_of(front.raw("GET", "/bucket?AWSAccessKeyId=a", good)) == "InvalidArgument"


def test_a_secret_is_in_no_answer_and_in_no_text_of_ours(front):
    bad = signed_headers("GET", f"{HOST}/bucket", secret="other")
    response = front.raw("GET", "/bucket", bad)
    assert b"testing" not in response.read_body()
    assert "testing" not in repr(response)


@pytest.mark.parametrize(
    "value", ["", "Basic dXNlcg==", "AWS", "AWS x", "AWS4-HMAC-SHA256", "AWS4-ECDSA x", "\xff" * 40]
)
def test_other_authorisations_are_refused(front, value):
    assert front.raw("GET", "/bucket", {"authorization": value}).status in (400, 403)
