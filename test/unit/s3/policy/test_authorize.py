"""What the rules of a bucket forbid and allow, whoever asks and however."""

import json

import pytest

from swift.http import fields
from swift.http.response import Response
from swift.s3.core.codec import POLICY
from test.support.s3 import signed_headers
from test.support.s3_fixtures import HOST, OTHER, S3Backend, S3Fixture, code_of


class Buckets(S3Backend):
    """A store whose buckets have rules; links of it lead elsewhere."""

    def __init__(self):
        super().__init__()
        self.rules = {}
        self.links = {}
        self.heads = 0

    def handle(self, request):
        entity = request.entity
        if request.method == "HEAD" and entity is not None and entity.path.obj is None:
            self.heads += 1
        response = super().handle(request)
        if entity is not None and entity.path.kind == "container" and response.status == 204:
            response.headers.update(self.rules.get(entity.path.container, {}))
        link = self.links.get(entity.path[1:]) if entity is not None else None
        if link is not None and response.status < 300:
            request.raw_path = link
            return super().handle(request)
        return response


@pytest.fixture
def front():
    found = S3Fixture(anonymous_account="AUTH_test")
    found.store = found.filter.app.app = Buckets()
    found.filter.app.forward = found.store.handle
    for bucket in ("bucket", "other"):
        found.store.objects[bucket, "key"] = b"data", {}
    return found


def policy(front, *statements, bucket="bucket"):
    items = [
        {"Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"], "Principal": "*", **item}
        for item in statements
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": items}).encode()
    front.store.rules[bucket] = POLICY.encode(document)


def test_a_policy_allows_and_denies(front):
    assert code_of(front("GET", "/bucket/key", **OTHER)) == "AccessDenied"
    policy(front, {"Effect": "Allow", "Action": "s3:GetObject"})
    assert front("GET", "/bucket/key", **OTHER).read_body() == b"data"
    assert code_of(front("PUT", "/bucket/key", **OTHER)) == "AccessDenied"
    policy(front, {"Effect": "Deny", "Action": "s3:GetObject"})
    assert code_of(front("GET", "/bucket/key")) == "AccessDenied"
    assert front("PUT", "/bucket/key").status == 200


def test_a_wrong_signature_learns_nothing_of_a_policy(front):
    for effect in ("Allow", "Deny"):
        policy(front, {"Effect": effect, "Action": "s3:*"})
        for _ in range(2):
            assert code_of(front("GET", "/bucket/key", secret="wrong")) == "SignatureDoesNotMatch"
            assert front("GET", "/bucket/key").status in (200, 403)
    policy(front, {"Effect": "Allow", "Action": "s3:*"})
    assert code_of(front("GET", "/bucket/key", user="no:body")) == "SignatureDoesNotMatch"


def test_a_policy_is_no_reason_to_follow_a_link_out_of_the_bucket(front):
    policy(front, {"Effect": "Allow", "Action": "s3:GetObject"})
    front.store.links["bucket", "key"] = "/v1/AUTH_test/other/key"
    assert code_of(front("GET", "/bucket/key", **OTHER)) == "AccessDenied"
    assert front.raw("GET", "/bucket/key").status == 403
    assert front("GET", "/bucket/key").read_body() == b"data"
    front.store.links["bucket", "key"] = "/v1/AUTH_victim/other/key"
    assert code_of(front("GET", "/bucket/key")) == "AccessDenied"


def test_rules_that_nobody_can_read_forbid_everything(front):
    front.store.rules["bucket"] = {fields.SYSMETA_S3_BUCKET_POLICY: "garbage"}
    assert front("GET", "/bucket/key").status == 500
    assert front.raw("GET", "/bucket/key").status == 500


def test_when_nobody_knows_what_a_bucket_forbids_nothing_is_done(front):
    whole = front.store.handle

    def broken(request):
        if request.method == "HEAD" and request.entity.path.kind == "container":
            return Response(503)
        return whole(request)

    assert front("GET", "/bucket/key").status == 200
    front.filter.app.forward = broken
    assert code_of(front("GET", "/bucket/key")) == "ServiceUnavailable"


def test_nobody_may_what_nobody_was_allowed(front):
    for path in ("/bucket/key", "/AUTH_test:bucket/key", "/AUTH_victim:bucket/key"):
        assert code_of(front.raw("GET", path)) == "AccessDenied"
    policy(front, {"Effect": "Allow", "Action": "s3:GetObject"})
    assert front.raw("GET", "/bucket/key").read_body() == b"data"
    assert code_of(front.raw("PUT", "/bucket/key", body=b"x")) == "AccessDenied"
    assert front.store.objects["bucket", "key"][0] == b"data"


def test_a_request_without_a_signature_is_swifts_unless_it_names_an_account():
    front = S3Fixture()
    for path in ("/bucket/key", "/bucket", "/info", "/v1/AUTH_test/c/o"):
        assert front.raw("GET", path).status in (401, 404, 412), path
    assert code_of(front.raw("GET", "/AUTH_test:bucket/key")) == "AccessDenied"


def test_one_pass_of_the_pipeline_answers_a_get(front):
    front("GET", "/bucket/key")
    before = len(front.store.seen)
    assert front("GET", "/bucket/key").status == 200
    asked = [(r.method, r.entity.path.kind) for r in front.store.seen[before:]]
    # A store of tests has no cache of its facts but the one of the request.
    assert [one for one in asked if one[0] != "HEAD"] == [("GET", "object")]


def test_conditions_know_the_request(front):
    secure = {"Bool": {"aws:SecureTransport": "false"}}
    mine = {"StringEquals": {"aws:username": "tester3"}, "Null": {"s3:ExistingObjectTag/a": "true"}}
    policy(front, {"Effect": "Allow", "Action": "s3:*", "Condition": {**secure, **mine}})
    assert front("GET", "/bucket/key", **OTHER).status == 200
    kind = {"StringEquals": {"s3:authType": "REST-HEADER", "s3:signatureversion": "AWS"}}
    policy(front, {"Effect": "Allow", "Action": "s3:*", "Condition": kind})
    assert front("GET", "/bucket/key", version=2, **OTHER).status == 200
    assert front("GET", "/bucket/key", **OTHER).status == 403


def test_hostile_paths_and_origins_get_an_answer(front):
    for path in (
        "/%FF:bucket/k",
        "/a:b:c/k",
        "/:bucket/k",
        "/AUTH_test:/k",
        "/AUTH_test:UPPER/k",
        "/..:bucket/k",
    ):
        for method in ("GET", "PUT", "OPTIONS", "POST", "\xff"):
            headers = {"Origin": "http://\xff", "Access-Control-Request-Method": "GET"}
            assert front.raw(method, path, headers).status < 500, (method, path)
            signed = signed_headers("GET", HOST + path)
            assert front.raw(method, path, {**headers, **signed}).status < 500, (method, path)
