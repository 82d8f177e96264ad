"""Bucket policies, public access blocks and ownership with ``s3_acl``."""

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config

from test.functional.test_s3 import client_of, refused
from test.functional.test_s3_policies import OTHER, block, controls, put, statement
from test.support.s3 import cluster_with

OPTIONS = """[filter:s3api]
use = egg:swift#s3api
s3_acl = true
anonymous_account = AUTH_test
"""


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    with cluster_with(tmp_path_factory.mktemp("s3aclpolicy"), OPTIONS) as live:
        yield live


@pytest.fixture(scope="module")
def owner(front):
    return client_of(front)


@pytest.fixture(scope="module")
def other(front):
    return client_of(front, OTHER)


@pytest.fixture(scope="module")
def nobody(front):
    config = Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}, retries={"max_attempts": 1})
    return boto3.client("s3", region_name="us-east-1", endpoint_url=f"http://{front.host}", config=config)


def test_all_users_and_authenticated_users_are_different_groups(owner, other, nobody):
    owner.create_bucket(Bucket="groups")
    for acl, may in (("public-read", True), ("authenticated-read", False)):
        owner.put_object(Bucket="groups", Key=acl, Body=b"v", ACL=acl)
        assert other.get_object(Bucket="groups", Key=acl)["Body"].read() == b"v"
        if may:
            assert nobody.get_object(Bucket="groups", Key=acl)["Body"].read() == b"v"
            continue
        with refused("AccessDenied", 403):
            nobody.get_object(Bucket="groups", Key=acl)
    for ask in (
        lambda: nobody.list_objects_v2(Bucket="groups"),
        lambda: nobody.put_object(Bucket="groups", Key="x", Body=b""),
        lambda: nobody.get_bucket_acl(Bucket="groups"),
        lambda: nobody.delete_bucket(Bucket="groups"),
    ):
        with refused("AccessDenied", 403):
            ask()


def test_a_policy_is_evaluated_before_acls(owner, other, nobody):
    owner.create_bucket(Bucket="before")
    owner.put_object(Bucket="before", Key="k", Body=b"v")
    put(owner, "before", statement("before", ["s3:GetObject", "s3:PutObject"], who=OTHER))
    assert other.get_object(Bucket="before", Key="k")["Body"].read() == b"v"
    other.put_object(Bucket="before", Key="theirs", Body=b"t")
    with refused("AccessDenied", 403):
        other.list_objects_v2(Bucket="before")
    with refused("AccessDenied", 403):
        nobody.get_object(Bucket="before", Key="k")
    owner.put_object(Bucket="before", Key="open", Body=b"v", ACL="public-read")
    put(owner, "before", statement("before", "s3:GetObject", effect="Deny", key="open"))
    for s3 in (owner, other, nobody):
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


def test_public_grants_are_ignored(owner, other, nobody):
    owner.create_bucket(Bucket="ignored")
    owner.put_object(Bucket="ignored", Key="k", Body=b"v", ACL="public-read")
    assert nobody.get_object(Bucket="ignored", Key="k")["Body"].read() == b"v"
    block(owner, "ignored", "IgnorePublicAcls")
    for s3 in (other, nobody):
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
