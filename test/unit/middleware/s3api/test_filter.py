"""The S3 filter over tempauth and a store that remembers what it was given: signatures, framings, hostile
bytes.
"""

import random
import sys
import time
import zlib
from base64 import b64encode
from hashlib import md5, sha256
from urllib.parse import quote, urlsplit

import pytest

from swift.http import fields
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.s3api import checksums
from swift.middleware.s3api.checksums import ALGORITHMS, encoded
from swift.middleware.s3api.filter import S3Api
from swift.middleware.s3api.metadata import is_changed_since, reading_headers
from swift.middleware.s3api.settings import S3Settings
from swift.middleware.tempauth.filter import Tempauth
from swift.middleware.tempauth.users import TempauthSettings, parse_users
from swift.runtime.wsgi import answered
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.s3 import chunked, signed_headers, stamp_of
from test.support.sim import MemoryCache

USERS = {"user_test_tester": "testing .admin", "user_test_tester3": "testing3"}
HOST = "http://h"


class Store:
    """Below the filters: PUT keeps a body, GET gives it."""

    def __init__(self):
        self.objects = {}
        self.seen = []

    def handle(self, request):
        authorise = request.env.get("swift.authorize")
        denial = authorise(request) if authorise else None
        if denial is not None:
            return denial
        self.seen.append(request)
        if request.method == "PUT" and request.entity.path.obj is not None:
            data = b"".join(iter(lambda: request.body.read(7000), b""))
            if request.body.length is not None and len(data) != request.body.length:
                return Response(499)
            footers = {}
            if "swift.callback.update_footers" in request.env:
                request.env["swift.callback.update_footers"](footers)
            self.objects[request.entity.path[1:]] = data, {**request.headers, **footers}
            return Response(201, {"etag": md5(data).hexdigest()})
        if request.entity is not None and request.entity.path.obj is not None:
            found = self.objects.get(request.entity.path[1:])
            return Response(404) if found is None else Response(200, {"etag": "x"}, found[0])
        return (
            Response(200, {"content-type": "application/json"}, b"[]")
            if request.method == "GET"
            else Response(204)
        )


class Front:
    def __init__(self, **options):
        self.store = Store()
        told = Telemetry(silent_log())
        auth = Tempauth(self.store, TempauthSettings(), parse_users(USERS), USERS, told)
        self.filter = S3Api(auth, S3Settings.parse(options), told)

    def raw(self, method, path, headers=None, body=b""):
        """A request as it stands."""
        target = urlsplit(path)
        sent = {"host": "h", **{name.lower(): value for name, value in (headers or {}).items()}}
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body)))
        env = {"swift.cache": MemoryCache(), "swift.trans_id": "tx1"}
        return answered(
            self.filter.handle, Request(method, target.path, sent, body, query=target.query, env=env)
        )

    def __call__(self, method, path, headers=None, body=b"", **how):
        """A signed request."""
        return self.raw(method, path, signed_headers(method, HOST + path, headers, body, **how), body)


@pytest.fixture
def front():
    return Front()


def code_of(response):
    assert response.status >= 400, response
    body = response.read_body()
    assert body.startswith(b"<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>")
    return body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()


# --- signatures ---------------------------------------------------------------------------------------


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


def test_headers_that_would_change_what_is_done_must_be_signed(front):
    for name in ("x-amz-copy-source", "x-amz-acl", "x-amz-grant-read", "x-amz-meta-a", "x-amz-tagging"):
        good = signed_headers("PUT", f"{HOST}/bucket/key", body=b"")
        assert code_of(front.raw("PUT", "/bucket/key", {**good, name: "x"})) == "AccessDenied"


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


# --- bodies -------------------------------------------------------------------------------------------

DATA = bytes(n % 251 for n in range(20_000))
SUM = b64encode(zlib.crc32(DATA).to_bytes(4, "big")).decode()
SIGNED, UNSIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def upload(front, kind, pieces, *, trailer=None, change=lambda body: body, announced=None):
    size = sum(map(len, pieces)) if announced is None else announced
    headers = {"X-Amz-Content-SHA256": kind, "X-Amz-Decoded-Content-Length": str(size)}
    if trailer:
        headers["X-Amz-Trailer"] = trailer[0]
    head = signed_headers("PUT", f"{HOST}/bucket/key", {**headers, "Content-Encoding": "aws-chunked"})
    body = change(chunked(pieces, head, signed=kind != UNSIGNED, trailer=trailer))
    return front.raw("PUT", "/bucket/key", {**head, "Content-Length": str(len(body))}, body)


@pytest.mark.parametrize(
    ("kind", "trailer"),
    [
        (SIGNED, None),
        (f"{SIGNED}-TRAILER", ("x-amz-checksum-crc32", SUM)),
        (UNSIGNED, ("x-amz-checksum-crc32", SUM)),
    ],
)
def test_aws_chunked_in_every_form(front, kind, trailer):
    response = upload(front, kind, [DATA[:8192], DATA[8192:16384], DATA[16384:]], trailer=trailer)
    assert response.status == 200, response.read_body()
    data, headers = front.store.objects["bucket", "key"]
    assert data == DATA
    assert headers["content-length"] == str(len(DATA))
    assert "content-encoding" not in headers
    if trailer:
        assert headers["x-object-sysmeta-s3api-checksum"] == f"CRC32 FULL_OBJECT {SUM}"
        assert response.headers["x-amz-checksum-crc32"] == SUM


def test_an_empty_body_in_chunks(front):
    zero = b64encode(bytes(4)).decode()
    assert upload(front, SIGNED, []).status == 200
    assert upload(front, UNSIGNED, [], trailer=("x-amz-checksum-crc32", zero)).status == 200
    assert code_of(upload(front, UNSIGNED, [], trailer=("x-amz-checksum-crc32", SUM))) == "BadDigest"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda body: body.replace(DATA[100:110], b"0123456789"), "SignatureDoesNotMatch"),
        (lambda body: body[:-100], "IncompleteBody"),
        (lambda body: body[:9000], "IncompleteBody"),
        (lambda body: b"zz" + body, "IncompleteBody"),
        (lambda body: body.replace(b";chunk-signature=", b";", 1), "IncompleteBody"),
        (lambda body: b"", "IncompleteBody"),
    ],
)
def test_chunks_that_were_tampered_with_store_nothing(front, change, code):
    assert code_of(upload(front, SIGNED, [DATA[:10000], DATA[10000:]], change=change)) == code
    assert front.store.objects == {}


def test_chunks_cannot_be_moved_left_out_or_repeated(front):
    pieces = [b"a" * 9000, b"b" * 9000, b"c" * 9000]

    def swapped(body):
        size = (len(body) - 86) // 3
        first, second = body[:size], body[size : 2 * size]
        return second + first + body[2 * size :]

    assert code_of(upload(front, SIGNED, pieces, change=swapped)) == "SignatureDoesNotMatch"
    assert code_of(upload(front, SIGNED, pieces[:2], announced=27000)) == "IncompleteBody"
    assert code_of(upload(front, SIGNED, [*pieces, b"d"], announced=27000)) == "IncompleteBody"
    assert front.store.objects == {}


def test_a_trailer_must_be_the_announced_one_and_signed(front):
    kind = f"{SIGNED}-TRAILER"
    good = ("x-amz-checksum-crc32", SUM)
    cut = lambda body: body.replace(b"x-amz-trailer-signature", b"x-amz-trailer-signaturf")  # noqa: E731
    assert code_of(upload(front, kind, [DATA], trailer=good, change=cut)) == "SignatureDoesNotMatch"
    other = lambda body: body.replace(b"checksum-crc32:", b"checksum-sha1:")  # noqa: E731
    assert code_of(upload(front, UNSIGNED, [DATA], trailer=good, change=other)) == "MalformedTrailerError"


def test_small_chunks_may_only_be_the_last(front):
    assert code_of(upload(front, SIGNED, [b"a" * 10, b"b" * 10])) == "InvalidChunkSizeError"


def test_a_body_is_held_to_its_hash(front):
    head = signed_headers("PUT", f"{HOST}/bucket/key", body=b"signed")
    assert code_of(front.raw("PUT", "/bucket/key", head, b"change")) == "XAmzContentSHA256Mismatch"
    assert code_of(front.raw("PUT", "/bucket/key", head, b"")) == "XAmzContentSHA256Mismatch"
    assert front.store.objects == {}
    assert front.raw("PUT", "/bucket/key", head, b"signed").status == 200


@pytest.mark.parametrize("algorithm", ["crc32c", "crc64nvme"])
def test_checksums_that_the_standard_library_lacks(front, algorithm):
    known = {"crc32c": "4waSgw==", "crc64nvme": "rosUhgp5mIg="}[algorithm]
    name = f"x-amz-checksum-{algorithm}"
    response = front("PUT", "/bucket/key", {name: known}, b"123456789")
    assert (response.status, response.headers[name]) == (200, known)
    assert code_of(front("PUT", "/bucket/key", {name: known}, b"123456780")) == "BadDigest"


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-checksum-crc32": SUM, "x-amz-checksum-sha1": "x"},
        {"x-amz-checksum-crc32": "%%%"},
        {"x-amz-checksum-md6": "x"},
        {"x-amz-sdk-checksum-algorithm": "CRC32"},
        {"x-amz-trailer": "x-amz-checksum-crc32"},
    ],
)
def test_promises_that_nobody_can_keep_are_invalid(front, headers):
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidRequest"


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


def test_a_trailing_checksum_that_is_none_is_told_apart_from_a_wrong_one(front):
    for value, code in (("nonsense", "InvalidRequest"), (b64encode(bytes(4)).decode(), "BadDigest")):
        head = {
            "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
            "x-amz-trailer": "x-amz-checksum-crc32",
            "x-amz-decoded-content-length": "4",
        }
        body = f"4\r\ndata\r\n0\r\nx-amz-checksum-crc32:{value}\r\n\r\n".encode()
        signed = signed_headers("PUT", f"{HOST}/bucket/key", head, body)
        assert code_of(front.raw("PUT", "/bucket/key", signed, body)) == code
        assert front.store.objects == {}


@pytest.mark.parametrize("name", ["sha512", "md5", "xxhash64", "xxhash3", "xxhash128"])
def test_checksums_of_the_later_kinds_are_checked_and_kept(front, name):
    algorithm = ALGORITHMS[name.upper()]
    running = algorithm.start()
    running.update(b"data")
    good = encoded(running.digest())
    assert front("PUT", "/bucket/key", {algorithm.header: good}, b"data").status == 200
    kept = front.store.objects["bucket", "key"][1]
    assert kept[fields.SYSMETA_S3_CHECKSUM] == f"{algorithm.name} FULL_OBJECT {good}"
    assert code_of(front("PUT", "/bucket/other", {algorithm.header: good}, b"date")) == "BadDigest"
    assert ("bucket", "other") not in front.store.objects


def test_a_kind_whose_library_is_missing_is_not_implemented(front, monkeypatch):
    monkeypatch.setitem(sys.modules, "xxhash", None)
    headers = {"x-amz-checksum-xxhash64": b64encode(bytes(8)).decode()}
    checksums.xxhash_named.cache_clear()
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "NotImplemented"
    assert front.store.objects == {}


def test_an_sdk_that_names_another_checksum_than_it_brings_is_refused(front):
    headers = {"x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-checksum-crc32c": "m0cB1Q=="}
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidRequest"


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("bytes=0-3", "bytes=0-3"),
        ("bytes=-1", "bytes=-1"),
        ("bytes=2-", "bytes=2-"),
        ("bytes= -1", None),
        ("bytes=0-0,2-2", None),
        ("bytes=\u0661-", None),
        ("items=0-3", None),
    ],
)
def test_one_range_is_asked_for_and_anything_else_is_everything(text, wanted):
    assert reading_headers({"range": text}).get("range") == wanted


@pytest.mark.parametrize("version", ["odd", "1e999", "..", "%00", "-1.5", "1700000000.00000_x"])
def test_what_no_version_is_called_is_an_invalid_argument(front, version):
    front("PUT", "/bucket/key", {}, b"x")
    for method, path in (
        ("GET", "/bucket/key?"),
        ("DELETE", "/bucket/key?"),
        ("GET", "/bucket/key?tagging&"),
    ):
        answer = front(method, f"{path}versionId={version}")
        assert code_of(answer) == "InvalidArgument"
    source = {"x-amz-copy-source": f"/bucket/key?versionId={version}"}
    assert code_of(front("PUT", "/bucket/copy", source)) == "InvalidArgument"
    assert set(front.store.objects) == {("bucket", "key")}


@pytest.mark.parametrize(
    "since, modified, wanted",
    [
        ("Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT", True),
        ("Tue, 02 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT", False),
        ("no date", "Tue, 02 Jan 2024 00:00:00 GMT", False),
        ("Mon, 01 Jan 2024 00:00:00 GMT", "", False),
    ],
)
def test_an_object_is_changed_since_a_date_that_is_one(since, modified, wanted):
    assert is_changed_since({"if-unmodified-since": since}, {"last-modified": modified}) is wanted


@pytest.mark.parametrize(
    "text", ["=", "key%", "key%zz", "a=1&a=2", "&".join(f"k{n}=" for n in range(21)), "k=%ff"]
)
def test_a_header_of_tags_that_is_no_query_is_an_invalid_argument(front, text):
    assert code_of(front("PUT", "/bucket/key", {"x-amz-tagging": text}, b"x")) == "InvalidArgument"
    assert front.store.objects == {}


@pytest.mark.parametrize(
    "credential, said",
    [
        ("test:tester/{day}/us-east-1/s3/extra/aws4_request", "the Credential is mal-formed"),
        ("test:tester/{day}/us-east-1/s3/aws_request", 'incorrect terminal "aws_request"'),
        ("test:tester/{day}/us-east-1/ec2/aws4_request", 'incorrect service "ec2"'),
        ("test:tester/{day}/mars/s3/aws4_request", 'the region "mars" is wrong'),
        ("test:tester/2026/us-east-1/s3/aws4_request", 'incorrect date format "2026"'),
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


@pytest.mark.parametrize("missing", ["Credential", "SignedHeaders", "Signature"])
def test_a_missing_component_of_a_signature_is_named(front, missing):
    good = signed_headers("GET", f"{HOST}/bucket")
    bad = good["Authorization"].replace(f"{missing}=", "Other=")
    response = front.raw("GET", "/bucket", {**good, "Authorization": bad})
    assert f"missing {missing}." in response.read_body().decode()


def test_a_link_without_a_credential_is_still_of_the_s3_api(front):
    query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0"
    assert code_of(front.raw("GET", f"/bucket/key?{query}")) == "AuthorizationQueryParametersError"


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


# --- hosts, names -------------------------------------------------------------------------------------


def test_the_host_may_name_the_bucket():
    front = Front(storage_domain="s3.example.org")
    for host in ("photos.s3.example.org", "photos.s3.example.org:8080"):
        head = signed_headers("PUT", f"http://{host}/key", body=b"x")
        assert front.raw("PUT", "/key", {**head, "host": host}, b"x").status == 200
        assert ("photos", "key") in front.store.objects
        front.store.objects.clear()


@pytest.mark.parametrize(
    "name", ["a", "A" * 9, "a" * 64, "1.2.3.4", "a..b", "-ab", "ab-", "a_b", "\u00fcber"]
)
def test_names_that_no_bucket_has(front, name):
    path = f"/{quote(name)}"
    assert code_of(front("PUT", path)) == "InvalidBucketName"


def test_names_that_no_key_has(front):
    assert code_of(front("PUT", "/bucket/" + "k" * 1025)) == "KeyTooLongError"
    assert front("PUT", "/bucket/" + "k" * 1024).status == 200
    assert code_of(front("GET", "/bucket/%00versions%00x/k")) == "InvalidURI"


def test_dots_in_a_key_leave_the_bucket_alone(front):
    assert front("PUT", "/bucket/../other/key").status in (200, 403)
    assert all(bucket == "bucket" for bucket, _ in front.store.objects)


# --- whatever comes -----------------------------------------------------------------------------------


def test_hostile_heads_get_a_4xx_and_no_traceback(front):
    draw = random.Random(7)
    good = signed_headers("PUT", f"{HOST}/bucket/key?acl", body=b"x")
    letters = "".join(map(chr, range(256))).replace("\r", "").replace("\n", "").replace("\x00", "")
    for _ in range(1500):
        headers = dict(good)
        for _ in range(draw.randint(1, 4)):
            name = draw.choice(
                [*good, "X-Amz-Decoded-Content-Length", "Content-MD5", "X-Amz-Copy-Source", "Date"]
            )
            value = headers.get(name, "")
            place = draw.randint(0, len(value))
            noise = "".join(draw.choices(letters, k=draw.randint(0, 9)))
            headers[name] = value[:place] + noise + value[place + draw.randint(0, 5) :]
        method = draw.choice(["GET", "PUT", "POST", "DELETE", "HEAD", "\xff"])
        query = draw.choice(
            ["", "?acl", "?delete", "?uploads", "?X-Amz-Credential=%ff", "?uploadId=%ff&partNumber=9"]
        )
        response = front.raw(method, "/bucket/key" + query, headers, b"x")
        assert response.status < 500 or response.status == 501, (method, query, headers)


def test_hostile_chunks_get_a_4xx_and_store_nothing(front):
    draw = random.Random(11)

    def garbled(body):
        data = bytearray(body)
        for _ in range(draw.randint(1, 5)):
            place = draw.randrange(len(data))
            data[place : place + draw.randint(0, 3)] = draw.randbytes(draw.randint(1, 4))
        return bytes(data)

    for _ in range(300):
        response = upload(front, SIGNED, [b"a" * 8192, b"b" * 50], change=garbled)
        assert 400 <= response.status < 500 or front.store.objects == {
            ("bucket", "key"): front.store.objects["bucket", "key"]
        }
        if response.status == 200:
            assert front.store.objects["bucket", "key"][0] == b"a" * 8192 + b"b" * 50
            front.store.objects.clear()
    assert front.store.objects == {}


@pytest.mark.parametrize(
    "path",
    [
        *("/bucket?delete", "/bucket?tagging", "/bucket?versioning", "/bucket?acl", "/bucket"),
        *("/bucket?policy", "/bucket?cors", "/bucket?website", "/bucket?publicAccessBlock"),
        *("/bucket?ownershipControls", "/bucket?requestPayment", "/bucket?logging"),
    ],
)
def test_hostile_documents_are_malformed(front, path):
    draw = random.Random(13)
    method = "POST" if path.endswith("delete") else "PUT"
    deep = b"<CORSConfiguration>" + b"<CORSRule>" * 4000, b'{"Statement":' * 4000, b"[" * 60_000
    odd = b"", b"<", b"<a/>", b"\x00" * 50, draw.randbytes(200), b"<!DOCTYPE a>" * 50, b"a" * 70_000
    for body in (*odd, *deep):
        headers = {"Content-MD5": b64encode(md5(body).digest()).decode()}
        response = front(method, path, headers, body)
        assert 200 <= response.status < 500, (body[:20], response.read_body())
        if response.status < 300:
            assert (path, body) == ("/bucket", b"")


def test_the_same_signature_in_the_same_words(front):
    """A vector of AWS's documentation: GET of an object with a range."""
    from swift.middleware.s3api.signature.claim import ClaimV4

    canonical = (
        "GET\n/test.txt\n\nhost:examplebucket.s3.amazonaws.com\nrange:bytes=0-9\n"
        f"x-amz-content-sha256:{sha256(b'').hexdigest()}\nx-amz-date:20130524T000000Z\n\n"
        f"host;range;x-amz-content-sha256;x-amz-date\n{sha256(b'').hexdigest()}"
    )
    claim = ClaimV4(
        "AKIAIOSFODNN7EXAMPLE",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        stamp="20130524T000000Z",
        region="us-east-1",
        canonical=canonical.encode(),
        payload="",
        is_presigned=False,
    )
    assert claim.check("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    assert not claim.check("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEX")
