"""The S3 filter over tempauth and a store that remembers what it was given: hosts, names, hostile heads."""

import random
from base64 import b64encode
from hashlib import md5
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import response_or_error
from swift.s3.core.settings import S3Settings
from swift.s3.filter import S3Api
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.s3 import signed_headers
from test.support.s3_fixtures import HOST, S3Fixture, code_of


def test_the_host_may_name_the_bucket():
    front = S3Fixture(storage_domain="s3.example.org")
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


def linked(method, url):
    request = AWSRequest(method, url)
    S3SigV4QueryAuth(Credentials("test:tester", "testing"), "s3", "us-east-1", expires=60).add_auth(request)
    return request.url


def test_what_a_link_says_of_metadata_is_stored(front):
    assert front.raw("PUT", linked("PUT", f"{HOST}/bucket/key?x-amz-meta-a=b"), {}, b"x").status == 200
    assert front.store.objects["bucket", "key"][1]["x-object-meta-a"] == "b"


@pytest.mark.parametrize("value", ["a%0D%0AX-Evil%3A1", "a%0AX-Evil%3A1", "a%00", "a%01", "a%7F"])
@pytest.mark.parametrize("name", ["x-amz-meta-a", "x-amz-meta-%0D%0Ax"])
def test_a_link_makes_no_header_with_control_characters(front, name, value):
    answer = front.raw("PUT", linked("PUT", f"{HOST}/bucket/key?{name}={value}"), {}, b"x")
    assert code_of(answer) == "InvalidArgument"
    assert front.store.objects == {}


@pytest.mark.parametrize("query", ["", "?AWSAccessKeyId=test:tester&Signature=x&Expires=9999999999"])
def test_what_a_filter_in_front_has_authorised_is_no_request_of_s3(front, query):
    env = {environkeys.AUTHORIZE_OVERRIDE: True, environkeys.AUTHORIZE: lambda request: None}
    request = Request(
        "GET", "/v1/AUTH_test/c/o", {"authorization": "AWS test:tester:x"}, query=query[1:], env=env
    )
    assert front.filter.handle(request).status == 404
    (seen,) = front.store.seen
    assert seen.entity.path == ("AUTH_test", "c", "o")


@pytest.mark.parametrize("secret", ["testing", "wrong"])
def test_requests_of_s3_are_marked_for_metrics_and_others_are_not(front, secret):
    signed = signed_headers("GET", f"{HOST}/bucket", secret=secret)
    head = {name.lower(): value for name, value in signed.items()}
    requests = [Request("GET", "/bucket", head), Request("GET", "/v1/AUTH_test/c", {"host": "h"})]
    for request in requests:
        front.filter.handle(request)
    assert [environkeys.S3_CALL in request.env for request in requests] == [True, False]


# --- requests without a signature ---------------------------------------------------------------------


class NoSuchPath:
    """What is behind the filter knows none of these paths."""

    def __init__(self, status=412):
        self.status = status

    def handle(self, request):
        return Response(self.status, {"content-type": "text/html; charset=UTF-8"}, b"Bad URL")


def unsigned(method, path, status=412, **headers):
    target = urlsplit(path)
    filter_ = S3Api(NoSuchPath(status), S3Settings.parse({}), Telemetry(silent_log()))
    return response_or_error(
        filter_.handle, Request(method, target.path, {"host": "h", **headers}, query=target.query)
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/bucket/key?partNumber=1&uploadId=x"),
        ("GET", "/bucket/key?uploadId=x"),
        ("DELETE", "/bucket/key?uploadId=x"),
        ("GET", "/bucket?list-type=2"),
        ("POST", "/bucket"),
        ("POST", "/bucket?delete"),
        ("POST", "/bucket/key?uploads"),
    ],
)
def test_what_only_s3_can_mean_is_an_error_of_s3(method, path):
    answer = unsigned(method, path)
    assert (answer.status, code_of(answer)) == (403, "AccessDenied")
    assert "x-amz-request-id" in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/bucket/key", 412),
        ("PUT", "/bucket/key", 412),
        ("POST", "/bucket/key", 400),
        ("POST", "/v1/AUTH_test", 412),
        ("GET", "/v1/a/c?uploadId=x", 412),
        ("POST", "/bucket", 200),
        ("POST", "/Not_a_bucket", 412),
        ("GET", "/info?acl", 412),
    ],
)
def test_what_others_may_mean_is_theirs(method, path, status):
    answer = unsigned(method, path, status)
    assert (answer.status, answer.read_body()) == (status, b"Bad URL")


@pytest.mark.parametrize("header", ["x-auth-token", "x-storage-token"])
@pytest.mark.parametrize("path", ["/bucket", "/v1.1/AUTH_test", "/bucket/key?uploads"])
def test_a_request_with_a_token_of_swift_is_no_unsigned_one_of_s3(path, header):
    assert unsigned("POST", path, **{header: "AUTH_tk"}).status == 412
