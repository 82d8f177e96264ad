"""The S3 API with ``s3_acl``: only the ACLs of buckets and objects decide."""

import pytest

from test.functional.test_s3 import client_of, complete, parts_of, refused
from test.support.s3 import cluster_with

OPTIONS = "[filter:s3api]\nuse = egg:swift#s3api\ns3_acl = true\n"
OTHER = "test:tester3"
ALL = "http://acs.amazonaws.com/groups/global/AllUsers"


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    with cluster_with(tmp_path_factory.mktemp("s3acl"), OPTIONS) as live:
        yield live


@pytest.fixture(scope="module")
def owner(front):
    return client_of(front)


@pytest.fixture(scope="module")
def other(front):
    return client_of(front, OTHER)


def test_new_resources_are_private_to_their_creator(owner, other):
    owner.create_bucket(Bucket="private")
    owner.put_object(Bucket="private", Key="k", Body=b"mine")
    assert owner.get_object(Bucket="private", Key="k")["Body"].read() == b"mine"
    for ask in (
        lambda: other.head_object(Bucket="private", Key="k"),
        lambda: other.head_bucket(Bucket="private"),
    ):
        with refused("403"):
            ask()
    for ask in (
        lambda: other.list_objects_v2(Bucket="private"),
        lambda: other.get_object(Bucket="private", Key="k"),
        lambda: other.get_object(Bucket="private", Key="nothing"),
        lambda: other.put_object(Bucket="private", Key="x", Body=b""),
        lambda: other.delete_object(Bucket="private", Key="k"),
        lambda: other.get_bucket_acl(Bucket="private"),
        lambda: other.put_bucket_acl(Bucket="private", ACL="public-read"),
        lambda: other.delete_bucket(Bucket="private"),
        lambda: other.put_bucket_versioning(Bucket="private", VersioningConfiguration={"Status": "Enabled"}),
        lambda: other.get_object_tagging(Bucket="private", Key="k"),
        lambda: other.copy_object(Bucket="private", Key="x", CopySource="private/k"),
    ):
        with refused("AccessDenied", 403):
            ask()


def test_bucket_grants_allow_exactly_the_granted_actions(owner, other):
    owner.create_bucket(Bucket="granted", GrantRead=f"id={OTHER}", GrantFullControl="id=test:tester")
    owner.put_object(Bucket="granted", Key="k", Body=b"v")
    assert [r["Key"] for r in other.list_objects_v2(Bucket="granted")["Contents"]] == ["k"]
    with refused("AccessDenied", 403):
        other.get_object(Bucket="granted", Key="k")
    with refused("NoSuchKey", 404):
        other.get_object(Bucket="granted", Key="nothing")
    with refused("AccessDenied", 403):
        other.put_object(Bucket="granted", Key="x", Body=b"")
    owner.put_bucket_acl(Bucket="granted", GrantWrite=f"id={OTHER}", GrantFullControl="id=test:tester")
    other.put_object(Bucket="granted", Key="theirs", Body=b"t")
    assert other.get_object(Bucket="granted", Key="theirs")["Body"].read() == b"t"
    with refused("AccessDenied", 403):
        owner.get_object(Bucket="granted", Key="theirs")
    with refused("AccessDenied", 403):
        other.list_objects_v2(Bucket="granted")


def test_an_object_has_its_own_acl(owner, other):
    owner.create_bucket(Bucket="objects")
    owner.put_object(Bucket="objects", Key="k", Body=b"v", ACL="public-read", Metadata={"m": "1"})
    assert other.get_object(Bucket="objects", Key="k")["Body"].read() == b"v"
    owner.put_object_acl(Bucket="objects", Key="k", ACL="private")
    with refused("AccessDenied", 403):
        other.get_object(Bucket="objects", Key="k")
    assert owner.head_object(Bucket="objects", Key="k")["Metadata"] == {"m": "1"}
    policy = owner.get_object_acl(Bucket="objects", Key="k")
    policy["Grants"].append({"Grantee": {"Type": "Group", "URI": ALL}, "Permission": "READ_ACP"})
    wanted = {"Owner": policy["Owner"], "Grants": policy["Grants"]}
    owner.put_object_acl(Bucket="objects", Key="k", AccessControlPolicy=wanted)
    assert other.get_object_acl(Bucket="objects", Key="k")["Grants"] == policy["Grants"]
    with refused("InvalidRequest", 400):
        owner.put_object_acl(Bucket="objects", Key="k", ACL="private", GrantRead=f"id={OTHER}")


def test_a_multipart_object_gets_the_acl_of_its_initiation(owner, other):
    owner.create_bucket(Bucket="multipart")
    upload, parts = parts_of(owner, "multipart", "k", [b"all"], ACL="public-read")
    etag = complete(owner, "multipart", "k", upload, parts)["ETag"]
    assert other.get_object(Bucket="multipart", Key="k")["Body"].read() == b"all"
    owner.put_object_acl(Bucket="multipart", Key="k", ACL="private")
    with refused("AccessDenied", 403):
        other.get_object(Bucket="multipart", Key="k")
    got = owner.get_object(Bucket="multipart", Key="k")
    assert (got["Body"].read(), got["ETag"]) == (b"all", etag)
    assert owner.list_objects_v2(Bucket="multipart")["Contents"][0]["ETag"] == etag


def test_a_bucket_without_an_owner_is_inaccessible(front, owner):
    front.request("PUT", "of-swift")
    with refused("AccessDenied", 403):
        owner.list_objects_v2(Bucket="of-swift")


def test_a_wrong_secret_does_nothing(front):
    with refused("SignatureDoesNotMatch", 403):
        client_of(front, secret="wrong").get_object(Bucket="objects", Key="k")
