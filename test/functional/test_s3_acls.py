"""The S3 API with ``s3_acl``: ACLs decide, with bucket policies, public access blocks and ownership."""

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config

from test.functional.test_s3 import client_of, complete, parts_of, refused
from test.functional.test_s3_policies import OTHER, block, controls, put, statement
from test.support.s3 import cluster_with

OPTIONS = "[filter:s3api]\nuse = egg:swift#s3api\ns3_acl = true\nanonymous_account = AUTH_test\n"
ALL = "http://acs.amazonaws.com/groups/global/AllUsers"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_with(tmp_path_factory.mktemp("s3acl"), OPTIONS) as live:
        yield live


@pytest.fixture(scope="module")
def owner(cluster):
    return client_of(cluster)


@pytest.fixture(scope="module")
def other(cluster):
    return client_of(cluster, OTHER)


@pytest.fixture(scope="module")
def anonymous(cluster):
    config = Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}, retries={"max_attempts": 1})
    return boto3.client("s3", region_name="us-east-1", endpoint_url=f"http://{cluster.host}", config=config)


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
    requested = {"Owner": policy["Owner"], "Grants": policy["Grants"]}
    owner.put_object_acl(Bucket="objects", Key="k", AccessControlPolicy=requested)
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


def test_a_bucket_without_an_owner_is_inaccessible(cluster, owner):
    cluster.request("PUT", "of-swift")
    with refused("AccessDenied", 403):
        owner.list_objects_v2(Bucket="of-swift")


def test_a_wrong_secret_does_nothing(cluster):
    with refused("SignatureDoesNotMatch", 403):
        client_of(cluster, secret="wrong").get_object(Bucket="objects", Key="k")


# --- policies, public access blocks and ownership -------------------------------------------------------


def test_all_users_and_authenticated_users_are_different_groups(owner, other, anonymous):
    owner.create_bucket(Bucket="groups")
    for acl, may in (("public-read", True), ("authenticated-read", False)):
        owner.put_object(Bucket="groups", Key=acl, Body=b"v", ACL=acl)
        assert other.get_object(Bucket="groups", Key=acl)["Body"].read() == b"v"
        if may:
            assert anonymous.get_object(Bucket="groups", Key=acl)["Body"].read() == b"v"
            continue
        with refused("AccessDenied", 403):
            anonymous.get_object(Bucket="groups", Key=acl)
    for ask in (
        lambda: anonymous.list_objects_v2(Bucket="groups"),
        lambda: anonymous.put_object(Bucket="groups", Key="x", Body=b""),
        lambda: anonymous.get_bucket_acl(Bucket="groups"),
        lambda: anonymous.delete_bucket(Bucket="groups"),
    ):
        with refused("AccessDenied", 403):
            ask()


def test_a_policy_is_evaluated_before_acls(owner, other, anonymous):
    owner.create_bucket(Bucket="before")
    owner.put_object(Bucket="before", Key="k", Body=b"v")
    put(owner, "before", statement("before", ["s3:GetObject", "s3:PutObject"], who=OTHER))
    assert other.get_object(Bucket="before", Key="k")["Body"].read() == b"v"
    other.put_object(Bucket="before", Key="theirs", Body=b"t")
    with refused("AccessDenied", 403):
        other.list_objects_v2(Bucket="before")
    with refused("AccessDenied", 403):
        anonymous.get_object(Bucket="before", Key="k")
    owner.put_object(Bucket="before", Key="open", Body=b"v", ACL="public-read")
    put(owner, "before", statement("before", "s3:GetObject", effect="Deny", key="open"))
    for s3 in (owner, other, anonymous):
        with refused("AccessDenied", 403):
            s3.get_object(Bucket="before", Key="open")


def test_a_copy_needs_rights_to_source_and_target(owner, other):
    for name in ("from", "into"):
        owner.create_bucket(Bucket=f"copy-{name}")
    owner.put_object(Bucket="copy-from", Key="k", Body=b"v")
    put(owner, "copy-into", statement("copy-into", "s3:PutObject", who=OTHER))
    with refused("AccessDenied", 403):
        other.copy_object(Bucket="copy-into", Key="k", CopySource="copy-from/k")
    put(owner, "copy-from", statement("copy-from", "s3:GetObject", who=OTHER))
    other.copy_object(Bucket="copy-into", Key="k", CopySource="copy-from/k")


def test_public_grants_are_ignored(owner, other, anonymous):
    owner.create_bucket(Bucket="ignored")
    owner.put_object(Bucket="ignored", Key="k", Body=b"v", ACL="public-read")
    assert anonymous.get_object(Bucket="ignored", Key="k")["Body"].read() == b"v"
    block(owner, "ignored", "IgnorePublicAcls")
    for s3 in (other, anonymous):
        with refused("AccessDenied", 403):
            s3.get_object(Bucket="ignored", Key="k")
    assert owner.get_object(Bucket="ignored", Key="k")["Body"].read() == b"v"


def test_bucket_owner_preferred_gives_uploads_to_the_bucket_owner(owner, other):
    owner.create_bucket(Bucket="given", GrantWrite=f"id={OTHER}", GrantFullControl="id=test:tester")
    other.put_object(Bucket="given", Key="before", Body=b"v", ACL="bucket-owner-full-control")
    controls(owner, "given", "BucketOwnerPreferred")
    other.put_object(Bucket="given", Key="after", Body=b"v", ACL="bucket-owner-full-control")
    assert owner.get_object_acl(Bucket="given", Key="before")["Owner"]["ID"] == OTHER
    assert owner.get_object_acl(Bucket="given", Key="after")["Owner"]["ID"] == "test:tester"


def test_bucket_owner_enforced_grants_access_only_to_the_owner(owner, other):
    owner.create_bucket(Bucket="own")
    owner.put_object(Bucket="own", Key="k", Body=b"v", ACL="public-read")
    controls(owner, "own", "BucketOwnerEnforced")
    with refused("AccessDenied", 403):
        other.get_object(Bucket="own", Key="k")
    assert owner.get_object(Bucket="own", Key="k")["Body"].read() == b"v"
