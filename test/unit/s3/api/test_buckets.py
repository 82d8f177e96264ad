"""CreateBucket on a bucket that exists changes nothing of it."""

import pytest

from swift.http.response import Response
from test.support.s3_fixtures import SECOND, interfere_before

TAGS = (
    b"<CreateBucketConfiguration><Tags><Tag><Key>k</Key><Value>other</Value></Tag></Tags>"
    b"</CreateBucketConfiguration>"
)
SETTINGS = {
    "x-amz-acl": "public-read-write",
    "x-amz-object-ownership": "BucketOwnerPreferred",
    "x-amz-bucket-object-lock-enabled": "true",
}


def state(s3):
    """Return the container's headers that a client can set."""
    headers = s3.sim("HEAD", "/AUTH_test/bucket").headers
    return {
        name: value
        for name, value in headers.items()
        if name.startswith(("x-container-", "x-versions", "x-history")) and "timestamp" not in name
    }


@pytest.mark.parametrize("options", [{}, {"s3_acl": "true"}])
@pytest.mark.parametrize(("user", "code"), [({}, "BucketAlreadyOwnedByYou"), (SECOND, "BucketAlreadyExists")])
def test_an_existing_bucket_keeps_owner_acl_ownership_tags_and_versioning(make_s3, options, user, code):
    s3 = make_s3(**options)
    before = state(s3)
    for headers, body in (({}, b""), (SETTINGS, TAGS)):
        headers = {name: value for name, value in headers.items() if value}
        answer = s3("PUT", "/bucket", headers, body, **user)
        assert answer.code == (code if options else "BucketAlreadyOwnedByYou")
        assert state(s3) == before


def test_a_new_bucket_has_all_its_settings(make_s3):
    s3 = make_s3(s3_acl="true")
    assert s3("PUT", "/other", {"x-amz-acl": "public-read"}, TAGS, **SECOND).status == 200
    assert s3("GET", "/other?acl", **SECOND).texts("ID")[0] == "test:tester2"
    assert s3("GET", "/other?tagging", **SECOND).texts("Value") == ["other"]
    assert s3("GET", "/other?acl").code == "AccessDenied"


def test_a_bucket_whose_settings_cannot_be_stored_is_not_made(make_s3):
    s3 = make_s3(s3_acl="true")

    def instead(request):
        return Response(503) if request.method == "POST" else None

    s3.bottom.instead = instead
    assert s3("PUT", "/other").code == "ServiceUnavailable"
    s3.bottom.instead = lambda request: None
    assert s3.sim("HEAD", "/AUTH_test/other").status == 404
    assert s3("PUT", "/other", **SECOND).status == 200


def test_another_storage_policy_does_not_make_an_existing_bucket_another(make_s3):
    s3 = make_s3()

    def instead(request):
        return Response(409) if request.method == "PUT" else None

    s3.bottom.instead = instead
    assert s3("PUT", "/bucket").code == "BucketAlreadyOwnedByYou"


def test_of_two_creators_at_one_moment_the_first_is_the_owner(make_s3):
    s3 = make_s3(s3_acl="true")
    others = []

    def create():
        others.append(s3("PUT", "/other", {"x-amz-acl": "public-read-write"}, **SECOND))

    interfere_before(s3, "POST", "/v1/AUTH_test/other", create)
    assert s3("PUT", "/other").status == 200
    assert [answer.code for answer in others] == ["BucketAlreadyExists"]
    assert s3("GET", "/other?acl").texts("ID") == ["test:tester", "test:tester"]
