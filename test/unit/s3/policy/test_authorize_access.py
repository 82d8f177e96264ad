"""What ACLs of S3 let others do, operation by operation, and what new things get (middleware.md §22.3)."""

import json

import pytest

from swift.s3.core.errors import S3Error
from swift.s3.core.router import PathLevel
from swift.s3.core.session import AclScope
from swift.s3.policy.acls import Acl, private_acl
from swift.s3.policy.authorize import (
    BUCKET_OWNER,
    REQUIRED_PERMISSIONS,
    RequiredPermission,
    require_permission,
)
from test.support.s3_fixtures import OTHER, SECOND

TRIES = {
    "READ": [
        ("GET", "/bucket"),
        ("HEAD", "/bucket"),
        ("GET", "/bucket?versions"),
        ("GET", "/bucket?uploads"),
    ],
    "WRITE": [("PUT", "/bucket/new"), ("DELETE", "/bucket/new"), ("POST", "/bucket/new?uploads")],
    "READ_ACP": [("GET", "/bucket?acl")],
}


def may(answer):
    """Whether a request was let in; what is refused must be refused as such."""
    return answer.status < 400 or not (answer.status == 403 and b"AccessDenied" in answer.body)


@pytest.mark.parametrize("granted", ["READ", "WRITE", "READ_ACP", None])
def test_a_grant_of_a_bucket_allows_what_it_says_and_no_more(acls, granted):
    if granted:
        name = f"x-amz-grant-{granted.lower().replace('_', '-')}"
        assert acls("PUT", "/bucket?acl", {name: 'id="test:tester3"'}).status == 200
    for permission, tries in TRIES.items():
        for method, path in tries:
            answer = acls(method, path, **OTHER)
            if method == "HEAD":
                assert (answer.status == 200) == (permission == granted), path
            else:
                assert may(answer) == (permission == granted), (method, path)


def test_nobody_but_the_owner_does_what_no_grant_speaks_of(acls):
    full = {"x-amz-grant-full-control": 'id="test:tester3"'}
    acls("PUT", "/bucket?acl", full)
    for method, path in (("DELETE", "/bucket"), ("GET", "/bucket?policy"), ("PUT", "/bucket?versioning")):
        assert acls(method, path, **OTHER).code == "AccessDenied"
    # Who may write the ACL might give itself anything, but not what is the owner's.
    assert may(acls("GET", "/bucket?acl", **OTHER))


def test_who_may_not_list_does_not_learn_what_is_missing(acls):
    for path in ("/bucket/nothing", "/bucket/nothing?acl"):
        assert acls("GET", path, **OTHER).code == "AccessDenied"
        assert acls("GET", path).code == "NoSuchKey"
    acls("PUT", "/bucket?acl", {"x-amz-grant-read": 'id="test:tester3"'})
    assert acls("GET", "/bucket/nothing", **OTHER).code == "NoSuchKey"


def test_what_others_put_is_theirs_and_the_buckets_owner_may_be_given_it(acls):
    acls("PUT", "/bucket?acl", {"x-amz-grant-write": 'id="test:tester3"'})
    acls("PUT", "/bucket/theirs", {}, b"x", **OTHER)
    assert acls("GET", "/bucket/theirs").code == "AccessDenied"
    acls("PUT", "/bucket/given", {"x-amz-acl": "bucket-owner-full-control"}, b"x", **OTHER)
    assert acls("GET", "/bucket/given").body == b"x"
    assert acls("GET", "/bucket/given?acl").texts("Permission") == ["FULL_CONTROL", "FULL_CONTROL"]


def test_an_acl_that_makes_no_sense_stores_nothing(acls):
    for headers in ({"x-amz-acl": "loud"}, {"x-amz-acl": "private", "x-amz-grant-read": 'id="a:b"'}):
        assert acls("PUT", "/bucket/key", headers, b"x").status == 400
        assert acls("PUT", "/other", headers).status == 400
    assert acls("GET", "/bucket/key").code == "NoSuchKey"
    assert acls("GET", "/other").code == "NoSuchBucket"


# --- one decision ---------------------------------------------------------------------------------------


class Call:
    """Who asks, where."""

    def __init__(self, user, rights=AclScope.ALL, allow_no_owner=False):
        self.session = self.settings = self
        self.user_id, self.acl_scope, self.allow_no_owner = user, rights, allow_no_owner


def allowed(call, acl, permission):
    try:
        require_permission(call, acl, permission)
    except S3Error as error:
        assert error.code == "AccessDenied"
        return False
    return True


PUBLIC = Acl("ann", (*private_acl("ann").grants, *private_acl("bob").grants))


@pytest.mark.parametrize("permission", ["READ", "WRITE", "READ_ACP", "WRITE_ACP", BUCKET_OWNER])
def test_an_owner_may_all_and_a_stranger_nothing(permission):
    assert allowed(Call("ann"), private_acl("ann"), permission)
    assert not allowed(Call("eve"), private_acl("ann"), permission)


def test_full_control_is_not_ownership():
    assert allowed(Call("bob"), PUBLIC, "WRITE_ACP")
    assert not allowed(Call("bob"), PUBLIC, BUCKET_OWNER)


def test_where_ownership_is_enforced_grants_count_for_nothing():
    assert not allowed(Call("bob", AclScope.OWN), PUBLIC, "READ")
    assert allowed(Call("ann", AclScope.OWN), PUBLIC, "READ")


def test_what_has_no_owner_is_nobodys_unless_that_is_wanted():
    assert not allowed(Call("ann"), None, "READ")
    assert allowed(Call("ann", allow_no_owner=True), None, "READ")


def test_an_operation_that_is_not_named_is_the_owners():
    assert (
        REQUIRED_PERMISSIONS.get("PutBucketPolicy") is None and "PutBucketPolicy" not in REQUIRED_PERMISSIONS
    )
    assert REQUIRED_PERMISSIONS["GetObject"] == RequiredPermission(PathLevel.OBJECT, "READ")


# --- reads are authorized on their own answer -----------------------------------------------------------


def requests_of(s3, ask):
    """The requests for the object below the filters while something is asked."""
    seen = []

    def watch(request):
        if request.entity is not None and request.entity.path.obj is not None:
            seen.append(request.method)

    s3.bottom.instead = watch
    answer = ask()
    s3.bottom.instead = lambda request: None
    return answer, seen


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_read_is_one_request_whether_its_acl_allows_it_or_not(acls, method):
    grants = {"x-amz-grant-read": 'id="test:tester2"', "x-amz-grant-full-control": 'id="test:tester"'}
    acls("PUT", "/bucket/key", grants, b"secret")
    for user, status in (({}, 200), (SECOND, 200), (OTHER, 403)):
        answer, seen = requests_of(acls, lambda user=user: acls(method, "/bucket/key", **user))
        assert (answer.status, seen) == (status, [method])
        assert (answer.body == b"secret") == (status == 200 and method == "GET")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"range": "bytes=0-1"}, 206),
        ({"range": "bytes=99-"}, 416),
        ({"if-none-match": "*"}, 304),
        ({"if-match": '"other"'}, 412),
    ],
    ids=str,
)
def test_a_condition_tells_nothing_of_an_object_that_may_not_be_read(acls, headers, status):
    acls("PUT", "/bucket/key", {}, b"secret")
    for method in ("GET", "HEAD"):
        assert acls(method, "/bucket/key", headers).status == status
        assert acls(method, "/bucket/key", headers, **OTHER).status == 403


@pytest.mark.parametrize("query", ["partNumber=0", "versionId=", "versionId=x", "partNumber=1"])
def test_a_caller_without_rights_learns_nothing_of_a_bad_read(acls, query):
    acls("PUT", "/bucket/key", {}, b"secret")
    refused = acls("GET", f"/bucket/key?{query}", **OTHER)
    assert refused.code == ("InvalidArgument" if "versionId" in query else "AccessDenied")


@pytest.mark.parametrize("s3_acl", ["true", "false"])
def test_a_policy_on_tags_of_the_object_needs_no_request_of_its_own(make_s3, s3_acl):
    s3 = make_s3(s3_acl=s3_acl, anonymous_account="AUTH_test")
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::bucket/*",
        "Condition": {"StringEquals": {"s3:ExistingObjectTag/kind": "open"}},
    }
    denied = {**statement, "Effect": "Deny", "Principal": {"AWS": "test:tester"}}
    denied["Condition"] = {"StringEquals": {"s3:ExistingObjectTag/kind": "closed"}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement, denied]})
    for kind in ("open", "closed"):
        assert s3("PUT", f"/bucket/{kind}", {"x-amz-tagging": f"kind={kind}"}, kind.encode()).status == 200
    assert s3("PUT", "/bucket?policy", {}, document.encode()).status == 204
    for ask in (lambda key: s3("GET", key), lambda key: s3.raw("GET", key)):
        answer, seen = requests_of(s3, lambda ask=ask: ask("/bucket/open"))
        assert (answer.status, answer.body, seen) == (200, b"open", ["GET"])
    answer, seen = requests_of(s3, lambda: s3("GET", "/bucket/closed"))
    assert (answer.code, seen) == ("AccessDenied", ["GET"])
    # Where the policy is silent the ACLs decide.
    assert s3.raw("GET", "/bucket/closed").code == "AccessDenied"
