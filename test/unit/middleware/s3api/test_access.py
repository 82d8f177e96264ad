"""What ACLs of S3 let others do, operation by operation, and what new things get (middleware.md §22.3)."""

import pytest

from swift.middleware.s3api.access import ACCESS, OWNER, Need, demand
from swift.middleware.s3api.account import Rights
from swift.middleware.s3api.acls import Acl, private_acl
from swift.middleware.s3api.errors import S3Error
from swift.middleware.s3api.router import PathLevel
from test.support.s3_fixtures import OTHER

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

    def __init__(self, user, rights=Rights.ALL, allow_no_owner=False):
        self.account = self.settings = self
        self.owner, self.rights, self.allow_no_owner = user, rights, allow_no_owner


def allowed(call, acl, permission):
    try:
        demand(call, acl, permission)
    except S3Error as error:
        assert error.code == "AccessDenied"
        return False
    return True


PUBLIC = Acl("ann", (*private_acl("ann").grants, *private_acl("bob").grants))


@pytest.mark.parametrize("permission", ["READ", "WRITE", "READ_ACP", "WRITE_ACP", OWNER])
def test_an_owner_may_all_and_a_stranger_nothing(permission):
    assert allowed(Call("ann"), private_acl("ann"), permission)
    assert not allowed(Call("eve"), private_acl("ann"), permission)


def test_full_control_is_not_ownership():
    assert allowed(Call("bob"), PUBLIC, "WRITE_ACP")
    assert not allowed(Call("bob"), PUBLIC, OWNER)


def test_where_ownership_is_enforced_grants_count_for_nothing():
    assert not allowed(Call("bob", Rights.OWN), PUBLIC, "READ")
    assert allowed(Call("ann", Rights.OWN), PUBLIC, "READ")


def test_what_has_no_owner_is_nobodys_unless_that_is_wanted():
    assert not allowed(Call("ann"), None, "READ")
    assert allowed(Call("ann", allow_no_owner=True), None, "READ")


def test_an_operation_that_is_not_named_is_the_owners():
    assert ACCESS.get("PutBucketPolicy") is None and "PutBucketPolicy" not in ACCESS
    assert ACCESS["GetObject"] == Need(PathLevel.OBJECT, "READ")
