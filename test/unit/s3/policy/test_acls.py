"""ACLs of S3: who may do what, how it is said and stored, and what of it Swift's own ACLs can say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.s3.core.errors import S3Error
from swift.s3.policy.acls import (
    CANNED_ACLS,
    GRANTS_MAX,
    GROUP_URIS,
    PERMISSIONS,
    Acl,
    Grant,
    acl_from_swift,
    canned_acl,
    grants_public_access,
    parse_acl_document,
    parse_acl_headers,
    parse_stored_acl,
    private_acl,
    swift_acl_of_canned,
    swift_acl_of_document,
)

GRANTEES = st.sampled_from(["owner", "other", "AllUsers", "AuthenticatedUsers", "LogDelivery", "zoë"])
ACLS = st.builds(
    Acl,
    st.just("owner"),
    st.lists(st.builds(Grant, GRANTEES, st.sampled_from(PERMISSIONS)), max_size=6).map(tuple),
)


@given(ACLS)
def test_an_acl_comes_back_as_it_was_stored(acl):
    assert parse_stored_acl(acl.to_json()) == acl


@pytest.mark.long
@given(ACLS)
def test_and_as_its_document_says_it(acl):
    assert parse_acl_document(acl.to_document()) == acl


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        '{"Owner":"","Grant":[]}',
        '{"Owner":"a","Grant":[1]}',
        '{"Owner":"a","Grant":[{}]}',
        "1",
    ],
)
def test_what_cannot_be_read_is_no_acl(text):
    assert parse_stored_acl(text) is None


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_nobody_and_strangers_may_do_nothing_with_what_is_private(permission):
    acl = private_acl("owner")
    assert acl.allows("owner", permission)
    assert not acl.allows("other", permission)
    assert not acl.allows("", permission)
    assert acl.is_private
    assert not acl.is_public


def test_an_owner_without_grants_may_still_change_them():
    bare = Acl("owner", ())
    assert bare.allows("owner", "WRITE_ACP") and bare.allows("owner", "READ_ACP")
    assert not bare.allows("owner", "READ")


def test_authenticated_users_are_those_with_a_key():
    acl = canned_acl("authenticated-read", "owner", "owner")
    assert acl.allows("other", "READ")
    assert not acl.allows("", "READ")
    assert not acl.allows("other", "WRITE")
    assert acl.is_public


def test_grants_to_everybody_can_be_left_out():
    acl = canned_acl("public-read-write", "owner", "owner")
    assert acl.allows("", "WRITE")
    assert not acl.allows("", "WRITE", include_public=False)
    assert not acl.allows("other", "READ", include_public=False)


def test_a_user_who_is_called_like_a_group_is_not_the_group():
    acl = Acl("owner", (Grant("AllUsers", "READ"),))
    assert acl.allows("AllUsers", "READ", include_public=False), "by name it is what was granted"
    assert not private_acl("owner").allows("AllUsers", "READ")


def test_the_owner_of_the_bucket_is_granted_once():
    assert canned_acl("bucket-owner-full-control", "a", "a") == private_acl("a")
    assert canned_acl("bucket-owner-read", "a", "b").allows("b", "READ")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-amz-acl": "everything"}, "InvalidArgument"),
        ({"x-amz-acl": "private", "x-amz-grant-read": "id=a"}, "InvalidRequest"),
        ({"x-amz-grant-read": "uri=http://example.com/"}, "InvalidArgument"),
        ({"x-amz-grant-read": "id="}, "InvalidArgument"),
        ({"x-amz-grant-read": ""}, "InvalidArgument"),
        ({"x-amz-grant-read": "name=a"}, "InvalidArgument"),
        ({"x-amz-grant-read": "emailAddress=a@example.com"}, "NotImplemented"),
        ({"x-amz-grant-read": "id=.r:*"}, "InvalidArgument"),
        ({"x-amz-grant-read": "id=AllUsers"}, "InvalidArgument"),
    ],
)
def test_headers_that_say_nothing_that_can_be_kept_are_refused(headers, code):
    with pytest.raises(S3Error) as refused:
        parse_acl_headers(headers, "owner", "owner")
    assert refused.value.code == code


def test_headers_grant_to_keys_and_groups():
    uri = GROUP_URIS["AllUsers"]
    headers = {"x-amz-grant-read": f'id="a", uri={uri}', "x-amz-grant-write-acp": "id=b"}
    acl = parse_acl_headers(headers, "owner", "owner")
    assert set(acl.grants) == {Grant("a", "READ"), Grant("AllUsers", "READ"), Grant("b", "WRITE_ACP")}
    assert grants_public_access(headers)
    assert parse_acl_headers({}, "owner", "owner") is None
    assert not grants_public_access({"x-amz-acl": "private", "x-amz-grant-read": "id=a"})


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"Owner": {"ID": ""}},
        {"Owner": {"ID": "a"}, "AccessControlList": {"Grant": [{"Permission": "READ"}]}},
        {"Owner": {"ID": "a"}, "AccessControlList": {"Grant": [{"Grantee": {}, "Permission": "EVERYTHING"}]}},
        {
            "Owner": {"ID": "a"},
            "AccessControlList": {
                "Grant": [{"Grantee": {"type": "CanonicalUser", "ID": "b"}, "Permission": "READ"}]
                * (GRANTS_MAX + 1)
            },
        },
    ],
)
def test_documents_that_are_none_are_refused(tree):
    with pytest.raises(S3Error) as refused:
        parse_acl_document(tree)
    assert refused.value.code == "MalformedACLError"


@pytest.mark.parametrize("name", [*GROUP_URIS, ".r:*", ".rlistings", "*", "*:*", "a:b,.r:*"])
def test_a_user_is_not_called_like_a_group_or_an_element_of_swift_acls(name):
    """Else it would be public where the bucket blocks public ACLs."""
    grant = {"Grantee": {"type": "CanonicalUser", "ID": name}, "Permission": "READ"}
    with pytest.raises(S3Error) as refused:
        parse_acl_document({"Owner": {"ID": "a"}, "AccessControlList": {"Grant": [grant]}})
    assert (refused.value.code, refused.value.details["ArgumentValue"]) == ("InvalidArgument", name)


@pytest.mark.parametrize("name", CANNED_ACLS)
def test_swift_says_of_canned_ones_what_it_can(name):
    if name in ("authenticated-read", "log-delivery-write"):
        with pytest.raises(S3Error) as refused:
            swift_acl_of_canned(name)
        assert refused.value.code == "NotImplemented"
        return
    said = swift_acl_of_canned(name)
    looks = acl_from_swift("owner", said)
    assert looks.allows("", "READ") == name.startswith("public-read")
    assert looks.allows("", "WRITE") == (name == "public-read-write")


def test_grants_to_keys_are_swift_acls_and_look_the_same_again():
    acl = Acl("owner", (*private_acl("owner").grants, Grant("a:b", "READ"), Grant("AllUsers", "WRITE")))
    assert acl_from_swift("owner", swift_acl_of_document(acl)) == acl


@pytest.mark.parametrize("grant", [Grant("AuthenticatedUsers", "READ"), Grant("a", "READ_ACP")])
def test_what_swift_cannot_say_is_not_implemented(grant):
    with pytest.raises(S3Error) as refused:
        swift_acl_of_document(Acl("owner", (grant,)))
    assert refused.value.code == "NotImplemented"


def test_referrers_and_listings_of_swift_are_no_grants_to_keys():
    looks = acl_from_swift("owner", {"x-container-read": ".r:*.example.com,.rlistings, a:b ,"})
    assert looks.grants[1:] == (Grant("a:b", "READ"),)


@pytest.mark.parametrize("make", [swift_acl_of_canned, lambda name: canned_acl(name, "a", "a")])
def test_an_unsupported_canned_acl_is_named_with_those_that_are_supported(make):
    with pytest.raises(S3Error, match="aws-exec-read.*private.*public-read") as caught:
        make("aws-exec-read")
    assert caught.value.code == "InvalidArgument"
