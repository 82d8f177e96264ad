"""ACLs of buckets and objects: told, changed, and what a change leaves as it was (middleware.md §22.3)."""

import pytest

from test.support.s3_fixtures import OTHER, Multipart, interfere_before

KEY = "/v1/AUTH_test/bucket/key"
ALL = "http://acs.amazonaws.com/groups/global/AllUsers"


def document(*grants, owner="test:tester"):
    texts = [
        f'<Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">'
        f"<ID>{who}</ID></Grantee><Permission>{what}</Permission></Grant>"
        for who, what in grants
    ]
    return (
        f"<AccessControlPolicy><Owner><ID>{owner}</ID></Owner>"
        f"<AccessControlList>{''.join(texts)}</AccessControlList></AccessControlPolicy>"
    ).encode()


@pytest.mark.parametrize("path", ["/bucket", "/bucket/key"])
def test_what_is_set_is_told_and_counts(acls, path):
    acls("PUT", "/bucket/key", {"x-amz-meta-m": "1"}, b"data")
    assert acls("GET", path, **OTHER).code == "AccessDenied"
    body = document(("test:tester", "FULL_CONTROL"), ("test:tester3", "READ"))
    assert acls("PUT", f"{path}?acl", {}, body).status == 200
    assert acls("GET", f"{path}?acl").texts("Permission") == ["FULL_CONTROL", "READ"]
    assert acls("GET", path, **OTHER).status == 200
    assert acls("GET", f"{path}?acl", **OTHER).code == "AccessDenied"
    assert acls("PUT", f"{path}?acl", {"x-amz-acl": "private"}, **OTHER).code == "AccessDenied"


def test_an_object_stays_what_it_was(acls):
    said = {"x-amz-meta-m": "1", "content-type": "t/x", "cache-control": "no-store"}
    acls("PUT", "/bucket/key", {**said, "x-amz-tagging": "a=b"}, b"data")
    before = acls("HEAD", "/bucket/key").headers
    assert acls("PUT", "/bucket/key?acl", {"x-amz-acl": "public-read"}).status == 200
    found = acls("GET", "/bucket/key")
    assert found.body == b"data"
    for name in (*said, "etag"):
        assert found.headers[name] == before[name]
    assert acls("GET", "/bucket/key?tagging").texts("Value") == ["b"]


def test_a_multipart_object_stays_one(acls):
    upload = Multipart(acls)
    upload.part(1, b"one"), upload.part(2, b"two")
    assert upload.complete((1, b"one"), (2, b"two")).status == 200
    etag = acls("HEAD", "/bucket/key").headers["etag"]
    assert acls("PUT", "/bucket/key?acl", {"x-amz-acl": "public-read"}).status == 200
    found = acls("GET", "/bucket/key")
    assert (found.body, found.headers["etag"]) == (b"onetwo", etag)
    assert acls("GET", "/bucket").texts("ETag") == [etag]
    assert acls("GET", "/bucket/key?acl").texts("URI") == [ALL]


@pytest.mark.parametrize("large", [False, True])
def test_what_is_written_meanwhile_is_not_lost(acls, large):
    if large:
        upload = Multipart(acls)
        upload.part(1, b"old")
        assert upload.complete((1, b"old")).status == 200
    else:
        acls("PUT", "/bucket/key", {}, b"old")
    # The same bytes, but not the same object.
    interfere_before(acls, "PUT", KEY, lambda: acls("PUT", "/bucket/key", {"x-amz-meta-m": "new"}, b"old"))
    assert acls("PUT", "/bucket/key?acl", {"x-amz-acl": "public-read"}).code == "OperationAborted"
    assert acls("HEAD", "/bucket/key").headers["x-amz-meta-m"] == "new"


def test_what_is_deleted_meanwhile_does_not_come_back(acls):
    acls("PUT", "/bucket/key", {}, b"old")
    interfere_before(acls, "PUT", KEY, lambda: acls("DELETE", "/bucket/key"))
    assert acls("PUT", "/bucket/key?acl", {"x-amz-acl": "public-read"}).code == "OperationAborted"
    assert acls("GET", "/bucket/key").code == "NoSuchKey"


NO_ACLS = [
    ({}, b"", "MissingSecurityHeader"),
    ({"x-amz-acl": "private"}, document(("test:tester", "READ")), "UnexpectedContent"),
    ({"x-amz-acl": "loud"}, b"", "InvalidArgument"),
    ({"x-amz-grant-read": "nobody"}, b"", "InvalidArgument"),
    ({}, b"<AccessControlPolicy/>", "MalformedACLError"),
    ({}, b"\xff", "MalformedACLError"),
    ({}, document(("test:tester", "DREAM")), "MalformedACLError"),
]


def test_what_is_no_acl_changes_nothing(acls):
    acls("PUT", "/bucket/key", {}, b"data")
    for path in ("/bucket", "/bucket/key"):
        before = acls("GET", f"{path}?acl").body
        for headers, body, code in NO_ACLS:
            assert acls("PUT", f"{path}?acl", headers, body).code == code
            assert acls("GET", f"{path}?acl").body == before


def test_an_object_is_not_given_away(acls):
    acls("PUT", "/bucket/key", {}, b"data")
    given = document(("test:tester", "READ"), owner="test:tester3")
    assert acls("PUT", "/bucket/key?acl", {}, given).code == "AccessDenied"


@pytest.mark.long
@pytest.mark.parametrize("path", ["/bucket", "/bucket/key"])
def test_the_right_to_write_an_acl_is_not_the_right_to_take_its_owners_place(acls, path):
    acls("PUT", "/bucket/key", {}, b"data")
    granted = (("test:tester", "FULL_CONTROL"), ("test:tester3", "WRITE_ACP"), ("test:tester3", "READ_ACP"))
    for name in ("/bucket", path):
        assert acls("PUT", f"{name}?acl", {}, document(*granted)).status == 200
    own = document(*granted, owner="test:tester3")
    assert acls("PUT", f"{path}?acl", {}, own, **OTHER).code == "AccessDenied"
    assert acls("PUT", f"{path}?acl", {}, own).code == "AccessDenied"
    assert acls("PUT", f"{path}?acl", {"x-amz-acl": "public-read"}, **OTHER).status == 200
    found = acls("GET", f"{path}?acl")
    assert (found.texts("ID")[0], found.texts("URI")) == ("test:tester", [ALL])


def test_what_is_not_there_has_none(acls):
    for method, headers in (("GET", {}), ("PUT", {"x-amz-acl": "private"})):
        assert acls(method, "/bucket/nothing?acl", headers).code == "NoSuchKey"
        assert acls(method, "/no-bucket?acl", headers).code == "NoSuchBucket"


def test_without_acls_of_s3_a_bucket_has_those_of_swift_and_objects_have_none(s3):
    s3("PUT", "/bucket/key", {}, b"data")
    assert s3("PUT", "/bucket?acl", {"x-amz-acl": "public-read"}).status == 200
    assert s3("GET", "/bucket?acl").texts("URI") == [ALL]
    assert s3.sim("HEAD", "/AUTH_test/bucket").headers["x-container-read"] == ".r:*,.rlistings"
    assert s3("PUT", "/bucket/key?acl", {"x-amz-acl": "public-read"}).code == "NotImplemented"
    assert s3("GET", "/bucket/key?acl").texts("Permission") == ["FULL_CONTROL"]


@pytest.mark.parametrize("name", ["authenticated-read", "log-delivery-write"])
def test_without_acls_of_s3_nothing_is_written_with_an_acl_that_it_cannot_have(s3, name):
    s3("PUT", "/bucket/source", {}, b"x")
    for method, path, headers in (
        ("PUT", "/bucket/key", {}),
        ("POST", "/bucket/key?uploads", {}),
        ("PUT", "/bucket/key", {"x-amz-copy-source": "/bucket/source"}),
    ):
        assert s3(method, path, {**headers, "x-amz-acl": name}).code == "NotImplemented"
    assert s3.names("bucket") == ["source"]


def test_an_acl_that_is_too_long_is_a_malformed_one(s3):
    many = document(*[("test:tester", "READ")] * 1000)
    assert s3("PUT", "/bucket?acl", {}, many).code == "MalformedACLError"


def test_the_acl_of_a_version_is_not_changed(acls):
    acls("PUT", "/bucket/key", {}, b"data")
    answer = acls("PUT", "/bucket/key?acl&versionId=1700000000.00000", {"x-amz-acl": "public-read"})
    assert answer.code == "NotImplemented"
