"""Signatures as they came, checked by whoever knows the secret."""

import calendar
import hmac
import time
from base64 import b64encode
from hashlib import sha1, sha256

import boto3
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from swift.s3.core import claim
from swift.s3.core.claim import (
    Claim,
    ClaimV4,
    amz_date_of_request,
    anonymous_claim,
    iso_time,
    parse_amz_date,
    parse_iso_date,
    parse_request_date,
    validate_access_key,
    validate_clock_skew,
)
from swift.s3.core.errors import S3Error
from test.support.s3 import signed_headers
from test.support.s3_fixtures import HOST, code_of

#: The example of a GET in Amazon's description of version 4 ("Examples: Signature Calculations").
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EMPTY = sha256(b"").hexdigest()
CANONICAL = (
    "GET\n/test.txt\n\nhost:examplebucket.s3.amazonaws.com\nrange:bytes=0-9\n"
    f"x-amz-content-sha256:{EMPTY}\nx-amz-date:20130524T000000Z\n\n"
    f"host;range;x-amz-content-sha256;x-amz-date\n{EMPTY}"
).encode()
SIGNATURE = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


def claim_v4(signature=SIGNATURE, region="us-east-1", **changes):
    given = {
        "stamp": "20130524T000000Z",
        "canonical_request": CANONICAL,
        "content_sha256": EMPTY,
        "is_presigned": False,
    }
    return ClaimV4("AKIAIOSFODNN7EXAMPLE", signature, region=region, **{**given, **changes})


def test_amazons_own_example_is_right():
    assert claim_v4().verify(SECRET)


@pytest.mark.parametrize(
    "wrong",
    [
        {"signature": SIGNATURE[:-1] + "0"},
        {"signature": ""},
        {"signature": "é" * 64},
        {"signature": "\ud800"},
        {"region": "eu-west-1"},
        {"stamp": "20130525T000000Z"},
        {"canonical_request": CANONICAL.replace(b"test.txt", b"test.tx7")},
    ],
)
def test_nothing_that_was_signed_may_be_different(wrong):
    assert not claim_v4(**wrong).verify(SECRET)


def test_another_secret_is_wrong_also_after_the_right_one():
    signed = claim_v4()
    assert signed.verify(SECRET)
    assert not signed.verify(SECRET + "x")
    assert signed.verify(SECRET)


def test_chunks_are_signed_only_by_a_secret_that_was_right():
    signed = claim_v4()
    assert signed.sign_chunk("KIND", "previous", "digests") is None
    assert not signed.verify("guessed")
    assert signed.sign_chunk("KIND", "previous", "digests") is None
    assert signed.verify(SECRET)
    found = signed.sign_chunk("KIND", SIGNATURE, "digests")
    assert found != signed.sign_chunk("KIND", "0" * 64, "digests"), "it hangs on the previous one"
    assert len(found) == 64


def test_version_2_is_an_hmac_of_what_was_signed():
    text = b"GET\n\n\nTue, 27 Mar 2007 19:36:42 +0000\n/awsexamplebucket1/photos/puppy.jpg"
    good = b64encode(hmac.digest(SECRET.encode(), text, sha1)).decode()
    assert Claim("key", good, text, is_presigned=False).verify(SECRET)
    assert not Claim("key", good, text + b"x", is_presigned=False).verify(SECRET)
    assert Claim("key", good, text, is_presigned=True).sign_chunk("", "", "") is None


def test_what_is_told_of_a_wrong_signature_has_no_secret():
    signed = claim_v4()
    signed.verify(SECRET)
    assert SECRET not in repr(signed)
    assert SECRET not in str(signed.error_details)
    assert signed.error_details["CanonicalRequest"] == CANONICAL.decode()


def test_conditions_of_policies_hear_of_the_kind_and_the_age():
    facts = claim_v4(is_presigned=True).condition_values(1369353600.0 + 60)
    assert facts == {
        "s3:authtype": "REST-QUERY-STRING",
        "s3:signatureversion": "AWS4-HMAC-SHA256",
        "s3:signatureage": "60000",
    }
    assert anonymous_claim().condition_values(0) == {}


def test_a_request_without_a_signature_is_nobodys():
    assert anonymous_claim().access_key == ""


def test_signers_of_days_are_bounded():
    for number in range(claim._SIGNERS_MAX + 2):
        claim_v4(region=f"region-{number}").verify(SECRET)
    assert len(claim._signers) <= claim._SIGNERS_MAX


@pytest.mark.parametrize("key", ["", "a/b", "a\nb", "a\x00", "\ud800"])
def test_a_key_that_cannot_stand_in_a_path_is_refused(key):
    with pytest.raises(S3Error) as refused:
        validate_access_key(key)
    assert refused.value.code == "InvalidAccessKeyId"


@pytest.mark.parametrize("key", ["test:tester", "AKIAIOSFODNN7EXAMPLE", "zoë"])
def test_others_are_not(key):
    validate_access_key(key)


# --- when a request was signed: what is a date, in which forms, and what is too far away --------------


SECOND = calendar.timegm((2026, 1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    "text",
    [
        "20260102T030405Z",
        "Fri, 02 Jan 2026 03:04:05 GMT",
        "Fri, 02 Jan 2026 03:04:05 +0000",
        "Fri, 02 Jan 2026 04:04:05 +0100",
        "02 Jan 2026 03:04:05 -0000",
    ],
)
def test_a_date_may_be_written_as_iso_or_as_mail_writes_it(text):
    assert parse_request_date(text) == SECOND
    assert amz_date_of_request({"date": text}) == (text if text[8] == "T" else "20260102T030405Z", SECOND)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "20261302T030405Z",
        "20260132T030405Z",
        "20260231T030405Z",
        "20250229T030405Z",
        "20260100T030405Z",
        "20260102T030461Z",
        "20260102T240405Z",
        "20260102T036005Z",
        "19691231T235959Z",
        "20260102T030405",
        "20260102t030405z",
        "２0260102T030405Z",
        "Fri, 02 Jan 99999999999999999999 03:04:05 GMT",
        "Thu, 01 Jan 1960 00:00:00 GMT",
        "\x00",
    ],
)
def test_what_is_no_date_is_denied(text):
    assert parse_request_date(text) is None
    with pytest.raises(S3Error) as refused:
        amz_date_of_request({"date": text})
    assert refused.value.code == "AccessDenied"


@given(st.text())
def test_no_text_is_more_than_no_date(text):
    for read in (parse_amz_date, parse_request_date, parse_iso_date):
        found = read(text)
        assert found is None or isinstance(found, int)


def test_a_leap_day_and_a_leap_second_are_times():
    assert parse_request_date("20240229T000000Z") == calendar.timegm((2024, 2, 29, 0, 0, 0))
    assert parse_request_date("20161231T235960Z") == calendar.timegm((2017, 1, 1, 0, 0, 0))


def test_the_date_of_amazon_is_believed_before_that_of_http():
    headers = {"date": "Fri, 02 Jan 2026 00:00:00 GMT", "x-amz-date": "20260102T030405Z"}
    assert amz_date_of_request(headers) == ("20260102T030405Z", SECOND)


@pytest.mark.parametrize("apart", [0, 900, -900])
def test_clocks_may_differ_by_the_skew(apart):
    validate_clock_skew(SECOND, SECOND + apart, 900)


@pytest.mark.parametrize("apart", [901, -901])
def test_and_by_no_second_more(apart):
    with pytest.raises(S3Error) as refused:
        validate_clock_skew(SECOND, SECOND + apart, 900)
    assert refused.value.code == "RequestTimeTooSkewed"


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_iso_dates_are_read_as_they_are_written(second):
    assert parse_iso_date(iso_time(second)) == second


def test_an_iso_date_without_a_zone_is_utc():
    assert parse_iso_date("2026-01-02T03:04:05.000Z") == parse_iso_date("2026-01-02T03:04:05") == SECOND


# --- links whose presigner moved headers into the query -----------------------------------------------


MD5 = "XrY7u+Ae7tCTyyK7j1rNww=="
DATA = b"hello world"


def link(version, **params):
    """Return the URL that boto3 makes for an upload."""
    client = boto3.client(
        "s3",
        endpoint_url=HOST,
        aws_access_key_id="test:tester",
        aws_secret_access_key="testing",
        region_name="us-east-1",
        config=Config(signature_version=version, s3={"addressing_style": "path"}),
    )
    return client.generate_presigned_url("put_object", {"Bucket": "bucket", "Key": "key", **params})


def stored(front):
    return front.store.objects["bucket", "key"][1]


@pytest.mark.parametrize("version", ["s3", "s3v4"])
@pytest.mark.parametrize(
    ("params", "headers"),
    [
        ({"ContentType": "text/x"}, {"Content-Type": "text/x"}),
        ({"ContentMD5": MD5}, {"Content-MD5": MD5}),
        ({"Metadata": {"a": "b"}, "ACL": "private"}, {"x-amz-meta-a": "b", "x-amz-acl": "private"}),
    ],
)
def test_a_link_of_boto3_is_good_with_the_headers_it_was_signed_for(front, version, params, headers):
    assert front.raw("PUT", link(version, **params), headers, DATA).status == 200
    assert stored(front)["content-type"] == headers.get("Content-Type", "binary/octet-stream")


def test_version_2_takes_headers_from_the_query_when_they_are_not_sent(front):
    url = link("s3", ContentType="text/x", ContentMD5=MD5, Metadata={"a": "b"})
    assert front.raw("PUT", url, {}, DATA).status == 200
    assert stored(front)["content-type"] == "text/x" and stored(front)["x-object-meta-a"] == "b"


@pytest.mark.parametrize("change", [("text%2Fx", "text%2Fy"), ("meta-a=b", "meta-a=c")])
def test_a_header_in_the_query_of_version_2_is_signed(front, change):
    url = link("s3", ContentType="text/x", Metadata={"a": "b"})
    assert change[0] in url
    assert code_of(front.raw("PUT", url.replace(*change), {}, DATA)) == "SignatureDoesNotMatch"
    assert code_of(front.raw("PUT", f"{url}&x-amz-meta-more=1", {}, DATA)) == "SignatureDoesNotMatch"
    headers = {"Content-Type": "text/z"}
    assert code_of(front.raw("PUT", url, headers, DATA)) == "SignatureDoesNotMatch"
    assert front.store.objects == {}


def test_a_standard_header_in_the_query_of_version_4_wins_over_one_that_was_not_signed(front):
    request = AWSRequest("PUT", f"{HOST}/bucket/key?content-type=text%2Fx&cache-control=no-store")
    S3SigV4QueryAuth(Credentials("test:tester", "testing"), "s3", "us-east-1").add_auth(request)
    assert front.raw("PUT", request.url, {"Content-Type": "text/z"}, DATA).status == 200
    assert stored(front)["content-type"] == "text/x" and stored(front)["cache-control"] == "no-store"


def test_a_content_md5_in_the_query_is_held_against_the_body(front):
    url = link("s3", ContentMD5=MD5)
    front.raw("PUT", url, {}, DATA)
    assert stored(front)["etag"] == "5eb63bbbe01eeed093cb22bb8f5acdc3"


@pytest.mark.parametrize("value", ["a%0D%0AX-Evil%3A1", "a%00"])
def test_a_header_from_the_query_has_no_control_characters(front, value):
    expires = int(time.time()) + 60
    query = f"content-type={value}&AWSAccessKeyId=test:tester&Signature=x&Expires={expires}"
    assert code_of(front.raw("PUT", f"/bucket/key?{query}", {}, DATA)) == "InvalidArgument"


def test_the_path_of_a_bucket_is_signed_by_version_2_with_a_slash_or_without(front):
    def ask(signed_path, path):
        head = signed_headers("GET", HOST + signed_path, version=2)
        return front.raw("GET", path, head).status

    assert ask("/bucket/", "/bucket") == ask("/bucket", "/bucket") == ask("/bucket/", "/bucket/") == 200
    assert ask("/bucket", "/bucket/") == 403
    assert ask("/bucket/key/", "/bucket/key") == 403
