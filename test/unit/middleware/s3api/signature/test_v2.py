"""Signatures of version 2: what is signed, and what is said of those that are none."""

import time
from email.utils import formatdate

import pytest

from swift.http.request import Request
from swift.middleware.s3api.errors import S3Error
from swift.middleware.s3api.settings import S3Settings
from swift.middleware.s3api.signature import v2
from test.support.s3front import code_of

NOW = 1_800_000_000.0
DATE = formatdate(NOW, usegmt=True)


def signed_text(method, target, headers, host_bucket=""):
    path, _, query = target.partition("?")
    request = Request(method, path, {"authorization": "AWS k:s", **headers}, query=query)
    settings = S3Settings.parse({})
    return v2.from_header(request, "AWS k:s", host_bucket, settings, NOW).string_to_sign.decode()


def linked(**params):
    query = "&".join(f"{name}={value}" for name, value in params.items())
    return v2.from_query(Request("GET", "/b/k", {}, query=query), "", NOW)


def test_what_is_signed_is_what_amazon_describes():
    """An upload of "Signing and authenticating REST requests", Amazon S3 API reference."""
    headers = {
        "content-md5": "4gJE4saaMU4BqNR0kLY+lw==",
        "content-type": "application/x-download",
        "date": DATE,
    }
    headers |= {"x-amz-meta-reviewedby": "joe", "x-amz-acl": "public-read", "x-other": "unsigned"}
    assert signed_text("PUT", "/db-backup.dat.gz", headers, "static.example.com") == (
        f"PUT\n4gJE4saaMU4BqNR0kLY+lw==\napplication/x-download\n{DATE}\n"
        "x-amz-acl:public-read\nx-amz-meta-reviewedby:joe\n/static.example.com/db-backup.dat.gz"
    )


def test_a_date_of_amazon_stands_among_the_headers_and_leaves_its_line_empty():
    text = signed_text("GET", "/b/k", {"date": DATE, "x-amz-date": DATE})
    assert text == f"GET\n\n\n\nx-amz-date:{DATE}\n/b/k"


@pytest.mark.parametrize(
    ("query", "signed"),
    [
        ("prefix=a&max-keys=1", ""),
        ("uploads", "?uploads"),
        ("uploads=", "?uploads"),
        ("versionId=1&acl", "?acl&versionId=1"),
        ("response-content-type=text%2Fplain&x=1", "?response-content-type=text/plain"),
    ],
)
def test_only_parameters_that_change_what_is_asked_are_signed_unquoted_and_sorted(query, signed):
    assert signed_text("GET", f"/b/k?{query}", {"date": DATE}).endswith(f"\n/b/k{signed}")


@pytest.mark.parametrize("value", ["AWS ", "AWS k", "AWS k:", "AWS :s", "AWS ::"])
def test_a_header_without_key_or_signature_is_denied(value):
    with pytest.raises(S3Error) as refused:
        v2.from_header(Request("GET", "/b", {"date": DATE}), value, "", S3Settings.parse({}), NOW)
    assert refused.value.code == "AccessDenied"


def test_a_key_may_have_colons():
    claim = v2.from_header(Request("GET", "/b", {"date": DATE}), "AWS a:b:c", "", S3Settings.parse({}), NOW)
    assert (claim.access_key, claim.signature) == ("a:b", "c")


@pytest.mark.parametrize("headers", [{}, {"date": "today"}, {"x-amz-date": "", "date": ""}])
def test_who_signs_without_a_date_is_denied(headers):
    with pytest.raises(S3Error) as refused:
        signed_text("GET", "/b", headers)
    assert refused.value.code == "AccessDenied"


def test_an_old_signature_is_told_so():
    with pytest.raises(S3Error) as refused:
        signed_text("GET", "/b", {"date": formatdate(NOW - 901, usegmt=True)})
    assert refused.value.code == "RequestTimeTooSkewed"


def test_a_link_is_good_to_its_last_second():
    claim = linked(AWSAccessKeyId="k", Signature="s", Expires=int(NOW))
    assert claim.is_presigned and claim.string_to_sign == f"GET\n\n\n{int(NOW)}\n/b/k".encode()
    with pytest.raises(S3Error) as refused:
        linked(AWSAccessKeyId="k", Signature="s", Expires=int(NOW) - 1)
    assert refused.value.code == "AccessDenied" and "expired" in str(refused.value)


@pytest.mark.parametrize("text", ["soon", "-1", "1e9", "%D9%A1", "9" * 11, 1 << 31, "9" * 5000])
def test_a_link_that_ends_at_no_time_is_denied(text):
    with pytest.raises(S3Error) as refused:
        linked(AWSAccessKeyId="k", Signature="s", Expires=text)
    assert refused.value.code == "AccessDenied"


@pytest.mark.parametrize("missing", ["AWSAccessKeyId", "Signature", "Expires"])
def test_a_link_needs_all_of_its_parameters(front, missing):
    params = {"AWSAccessKeyId": "test:tester", "Signature": "s", "Expires": int(time.time()) + 60}
    del params[missing]
    query = "&".join(f"{name}={value}" for name, value in params.items())
    answer = front.raw("GET", f"/bucket/key?{query}")
    assert answer.status >= 400 and front.store.seen == []
    if missing != "AWSAccessKeyId":
        assert code_of(answer) == "AccessDenied"
