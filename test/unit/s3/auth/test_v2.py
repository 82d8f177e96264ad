"""Signatures of version 2: what is signed, and what is said of those that are none."""

import time
import zlib
from base64 import b64encode
from email.utils import formatdate
from hashlib import sha256

import pytest

from swift.http.request import Request
from swift.s3.auth import v2
from swift.s3.core.errors import S3Error
from swift.s3.core.router import OPERATIONS, PathLevel
from swift.s3.core.settings import S3Settings
from test.support.s3 import hand_linked_v2, signed_headers
from test.support.s3_fixtures import HOST, code_of

NOW = 1_800_000_000.0
DATE = formatdate(NOW, usegmt=True)


def signed_text(method, target, headers, host_bucket=""):
    path, _, query = target.partition("?")
    request = Request(method, path, {"authorization": "AWS k:s", **headers}, query=query)
    settings = S3Settings.parse({})
    return v2.claim_from_header(request, "AWS k:s", host_bucket, settings, NOW).string_to_sign.decode()


def linked(**params):
    query = "&".join(f"{name}={value}" for name, value in params.items())
    return v2.claim_from_query(Request("GET", "/b/k", {}, query=query), "", NOW)


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


LATER = ("attributes", "encryption", "legal-hold", "ownershipControls", "policyStatus", "retention")


@pytest.mark.parametrize("name", LATER)
def test_sub_resources_that_sdks_do_not_sign_may_be_left_out_in_headers_but_not_in_links(front, name):
    path = f"/bucket/key?{name}"
    assert code_of(front("GET", path, version=2)) != "SignatureDoesNotMatch"
    assert code_of(front("GET", path, version=2, secret="wrong")) == "SignatureDoesNotMatch"
    # Signed by an SDK for the object alone.
    link = hand_linked_v2("GET", "/bucket/key") + f"&{name}"
    assert code_of(front.raw("GET", link)) == "SignatureDoesNotMatch"


@pytest.mark.parametrize("name", LATER)
def test_an_overheard_write_cannot_be_repeated_as_another(front, name):
    signed = signed_headers("PUT", f"{HOST}/bucket/key", version=2)
    assert code_of(front.raw("PUT", f"/bucket/key?{name}", signed)) == "SignatureDoesNotMatch"


def test_an_older_sub_resource_is_signed(front):
    signed = signed_headers("GET", f"{HOST}/bucket/key", version=2)
    assert code_of(front.raw("GET", "/bucket/key?acl", signed)) == "SignatureDoesNotMatch"


@pytest.mark.parametrize("value", ["AWS ", "AWS k", "AWS :s"])
def test_a_header_without_key_or_signature_is_denied(value):
    with pytest.raises(S3Error) as refused:
        v2.claim_from_header(Request("GET", "/b", {"date": DATE}), value, "", S3Settings.parse({}), NOW)
    assert refused.value.code == "AccessDenied"


def test_a_key_may_have_colons():
    claim = v2.claim_from_header(
        Request("GET", "/b", {"date": DATE}), "AWS a:b:c", "", S3Settings.parse({}), NOW
    )
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


# --- what the holder of a link may not change ---------------------------------------------------------

_PATHS = {PathLevel.SERVICE: "/", PathLevel.BUCKET: "/b", PathLevel.OBJECT: "/b/k"}
#: Parameters of the listing's form, which SDKs do not sign.
_OF_LISTINGS = {"list-type", "max-directory-buckets"}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_what_chooses_an_operation_version_part_or_response_is_signed(operation):
    path = _PATHS[operation.level]
    chosen = operation.selectors | {
        name
        for name in operation.params
        if name in ("versionId", "partNumber") or name.startswith("response-")
    }
    for name in chosen:
        text = signed_text(operation.method, f"{path}?{name}=1", {"date": DATE})
        assert text.endswith(path if name in _OF_LISTINGS else f"{path}?{name}=1"), name


# --- what is promised of the body ---------------------------------------------------------------------

DATA = b"data"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def put(front, promise, body=DATA, **headers):
    sent = {"x-amz-content-sha256": promise, **{name.replace("_", "-"): v for name, v in headers.items()}}
    signed = signed_headers("PUT", f"{HOST}/bucket/k", sent, body, version=2)
    return front.raw("PUT", "/bucket/k", signed, body)


@pytest.mark.parametrize("change", [str, str.upper])
def test_the_hash_of_a_body_is_checked(front, change):
    assert put(front, change(sha256(DATA).hexdigest())).status == 200
    assert front.store.objects["bucket", "k"][0] == DATA
    assert code_of(put(front, change(sha256(b"other").hexdigest()))) == "XAmzContentSHA256Mismatch"
    assert put(front, "UNSIGNED-PAYLOAD").status == 200


@pytest.mark.parametrize(
    ("promise", "code"),
    [
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "InvalidRequest"),
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "InvalidRequest"),
        ("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "NotImplemented"),
        ("garbage", "XAmzContentSHA256Mismatch"),
        ("", "InvalidArgument"),
    ],
)
def test_a_promise_that_version_2_cannot_keep_is_refused(front, promise, code):
    assert code_of(put(front, promise, x_amz_decoded_content_length="4")) == code
    assert not front.store.objects


@pytest.mark.parametrize(("change", "code"), [(0, ""), (1, "BadDigest")])
def test_the_framing_of_an_unsigned_stream_is_no_part_of_the_object(front, change, code):
    checksum = b64encode((zlib.crc32(DATA) ^ change).to_bytes(4, "big"))
    body = b"4\r\ndata\r\n0\r\nx-amz-checksum-crc32:" + checksum + b"\r\n\r\n"
    headers = {"x_amz_decoded_content_length": "4", "x_amz_trailer": "x-amz-checksum-crc32"}
    answer = put(front, UNSIGNED_TRAILER, body, content_encoding="aws-chunked", **headers)
    if code:
        assert code_of(answer) == code
    else:
        assert answer.status == 200 and front.store.objects["bucket", "k"][0] == DATA


def test_a_get_has_no_body_of_which_anything_is_promised():
    request = Request("GET", "/b/k", {"date": DATE, "x-amz-content-sha256": "garbage"})
    assert v2.claim_from_header(request, "AWS k:s", "", S3Settings.parse({}), NOW).content_sha256 == ""
