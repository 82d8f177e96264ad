"""Links signed by version 4, and the words that are signed."""

import pytest

from swift.http.request import Request
from swift.s3.auth import v4
from swift.s3.core.errors import S3Error
from swift.s3.core.settings import S3Settings
from test.support.s3 import signed_headers, stamp_of
from test.support.s3_fixtures import HOST, code_of

NOW = 1_800_000_000
STAMP = stamp_of(NOW)


def linked(*, method="GET", headers=None, more="", **changes):
    scope = f"key/{STAMP[:8]}/us-east-1/s3/aws4_request"
    params = {"Algorithm": v4.ALGORITHM, "Credential": scope, "Date": STAMP, "Expires": "60"}
    params |= {"SignedHeaders": "host", "Signature": "0" * 64, **changes}
    query = "&".join(f"X-Amz-{name}={value}" for name, value in params.items() if value is not None)
    request = Request(method, "/b/k", {"host": "h", **(headers or {})}, query=query + more)
    return v4.claim_from_query(request, S3Settings.parse({}), NOW)


def test_a_link_covers_everything_but_its_own_signature():
    claim = linked()
    assert claim.is_presigned and claim.content_sha256 == "UNSIGNED-PAYLOAD"
    text = claim.canonical_request.decode()
    assert "X-Amz-Expires=60" in text and "X-Amz-Signature=" not in text
    assert text.endswith("\nhost:h\n\nhost\nUNSIGNED-PAYLOAD")


@pytest.mark.parametrize(
    "missing", ["Algorithm", "Credential", "Date", "SignedHeaders", "Signature", "Expires"]
)
def test_a_link_needs_all_of_its_parameters_and_names_the_missing_one(missing):
    for value in (None, ""):
        with pytest.raises(S3Error) as refused:
            linked(**{missing: value})
        assert (refused.value.status, refused.value.code) == (400, "AuthorizationQueryParametersError")
        assert str(refused.value).endswith(f"missing: X-Amz-{missing}")


def test_a_link_of_an_unknown_algorithm_is_malformed():
    with pytest.raises(S3Error) as refused:
        linked(Algorithm="AWS4-HMAC-SHA1")
    assert refused.value.code == "AuthorizationQueryParametersError"


@pytest.mark.parametrize("text", ["soon", "-1", "604801", "1e3", "9" * 5000, "%D9%A1", "1.5"])
def test_a_link_that_lasts_for_no_time_is_malformed(text):
    with pytest.raises(S3Error) as refused:
        linked(Expires=text)
    assert refused.value.code == "AuthorizationQueryParametersError"


@pytest.mark.parametrize(
    ("signed_at", "expires", "said"),
    [(NOW - 61, "60", "expired"), (NOW + 901, "60", "not yet valid"), (NOW - 1, "0", "expired")],
)
def test_a_link_out_of_its_time_is_denied(signed_at, expires, said):
    stamp = stamp_of(signed_at)
    scope = f"key/{stamp[:8]}/us-east-1/s3/aws4_request"
    with pytest.raises(S3Error) as refused:
        linked(Date=stamp, Credential=scope, Expires=expires)
    assert refused.value.code == "AccessDenied" and said in str(refused.value)


@pytest.mark.parametrize("signed_at", [NOW - 60, NOW + 900])
def test_a_link_is_good_to_its_last_second(signed_at):
    stamp = stamp_of(signed_at)
    assert linked(Date=stamp, Credential=f"key/{stamp[:8]}/us-east-1/s3/aws4_request").stamp == stamp


@pytest.mark.parametrize("date", ["20260231T000000Z", "20260102", "%00"])
def test_a_link_of_no_day_is_malformed(date):
    with pytest.raises(S3Error) as refused:
        linked(Date=date, Credential=f"key/{date[:8]}/us-east-1/s3/aws4_request")
    assert refused.value.code == "AuthorizationQueryParametersError"


# --- the canonical words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "canonical"),
    [
        ("", ""),
        ("b=2&a=1", "a=1&b=2"),
        ("acl", "acl="),
        ("a=b+c&d=%7e%2F", "a=b%20c&d=~%2F"),
        ("a=1&&b", "a=1&b="),
        ("k=\xff", "k=%FF"),
        ("a=x%3Dy", "a=x%3Dy"),
    ],
)
def test_parameters_are_quoted_in_one_way_and_sorted(query, canonical):
    assert v4.canonical_query(query) == canonical


@pytest.mark.parametrize(
    ("path", "canonical"),
    [("/b/a%2bc", "/b/a%2Bc"), ("/b/a+c", "/b/a%2Bc"), ("/b/%7E//..", "/b/~//.."), ("/b/\xfc", "/b/%FC")],
)
def test_a_path_is_quoted_in_one_way_and_its_dots_and_slashes_stay(path, canonical):
    assert v4.canonical_path(path) == canonical


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "NotImplemented"),
        ("STREAMING-", "InvalidArgument"),
        ("", "InvalidArgument"),
        ("0" * 63, "InvalidArgument"),
        ("g" * 64, "InvalidArgument"),
        ("unsigned-payload", "InvalidArgument"),
    ],
)
def test_a_promise_of_the_body_that_is_none_is_refused(front, payload, code):
    good = signed_headers("PUT", f"{HOST}/bucket/key", body=b"x")
    assert code_of(front.raw("PUT", "/bucket/key", {**good, "X-Amz-Content-SHA256": payload}, b"x")) == code
    assert front.store.objects == {}


def test_a_signature_that_leaves_out_the_host_is_denied(front):
    good = signed_headers("GET", f"{HOST}/bucket")
    bad = good["Authorization"].replace("SignedHeaders=host;", "SignedHeaders=")
    answer = front.raw("GET", "/bucket", {**good, "Authorization": bad})
    assert b"<HeadersNotSigned>host</HeadersNotSigned>" in answer.read_body()


# --- headers that were not signed ---------------------------------------------------------------------

HASH, OTHER_HASH = "0" * 64, "1" * 64
PAYLOAD = "x-amz-content-sha256"


@pytest.mark.parametrize(
    "name",
    [
        "x-amz-acl",
        "x-amz-checksum-crc32",
        "x-amz-checksum-algorithm",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-meta-a",
        "x-amz-expected-bucket-owner",
        "x-amz-anything-new",
    ],
)
def test_the_holder_of_a_link_adds_no_header_of_s3(name):
    for method in ("GET", "PUT"):
        with pytest.raises(S3Error) as refused:
            linked(method=method, headers={name: "x"})
        assert refused.value.code == "AccessDenied" and refused.value.details == {"HeadersNotSigned": name}
        assert linked(method=method, headers={name: "x"}, SignedHeaders=f"host%3B{name}")


@pytest.mark.parametrize("name", ["x-amz-date", "x-amz-user-agent", "range", "if-match"])
def test_headers_that_mean_nothing_to_s3_or_are_the_readers_may_be_added(name):
    assert linked(headers={name: "x"}).content_sha256 == "UNSIGNED-PAYLOAD"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_link_to_read_ignores_a_hash_that_was_not_signed(method):
    for value in (HASH, "garbage"):
        assert linked(method=method, headers={PAYLOAD: value}).content_sha256 == "UNSIGNED-PAYLOAD"
        assert (
            linked(method=method, more=f"&X-Amz-Content-SHA256={value}").content_sha256 == "UNSIGNED-PAYLOAD"
        )
    signed = linked(method=method, headers={PAYLOAD: HASH}, SignedHeaders=f"host%3B{PAYLOAD}")
    assert signed.content_sha256 == HASH


def test_a_link_to_write_holds_its_body_to_the_hash():
    claim = linked(method="PUT", headers={PAYLOAD: HASH})
    assert claim.content_sha256 == HASH and claim.canonical_request.endswith(b"\n" + HASH.encode())
    assert linked(method="PUT", more=f"&X-Amz-Content-SHA256={OTHER_HASH}").content_sha256 == OTHER_HASH
