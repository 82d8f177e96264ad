"""Policies, public access blocks and ownership of buckets, and callers without a signature."""

import datetime
import json
from hashlib import md5

import pytest

from test.functional.test_s3 import client_of, complete, parts_of, refused
from test.support.s3 import signed_headers

OTHER, FOREIGN = "test:tester3", "test2:tester2"


@pytest.fixture(scope="module")
def owner(site):
    return client_of(site)


@pytest.fixture(scope="module")
def other(site):
    return client_of(site, OTHER)


@pytest.fixture
def bucket(owner, request):
    name = f"p-{md5(request.node.name.encode()).hexdigest()[:20]}"
    owner.create_bucket(Bucket=name)
    owner.put_object(Bucket=name, Key="k", Body=b"v")
    return name


def statement(bucket, action, *, effect="Allow", who=None, key="*", **more):
    names = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/{key}"]
    who = "*" if who is None else {"AWS": who}
    return {"Effect": effect, "Principal": who, "Action": action, "Resource": names, **more}


def put(owner, bucket, *statements):
    text = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    owner.put_bucket_policy(Bucket=bucket, Policy=text)
    return text


def test_a_policy_is_set_and_deleted(owner, bucket):
    with refused("NoSuchBucketPolicy", 404):
        owner.get_bucket_policy(Bucket=bucket)
    with refused("NoSuchBucketPolicy", 404):
        owner.get_bucket_policy_status(Bucket=bucket)
    text = put(owner, bucket, statement(bucket, "s3:GetObject"))
    assert owner.get_bucket_policy(Bucket=bucket)["Policy"] == text
    assert owner.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"]["IsPublic"] is True
    put(owner, bucket, statement(bucket, "s3:GetObject", who="test:tester3"))
    assert owner.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"]["IsPublic"] is False
    owner.delete_bucket_policy(Bucket=bucket)
    owner.delete_bucket_policy(Bucket=bucket)
    with refused("NoSuchBucketPolicy", 404):
        owner.get_bucket_policy(Bucket=bucket)


def test_a_policy_of_the_maximum_size_is_stored_completely(owner, bucket):
    conditions = {"StringLike": {"s3:prefix": [f"{n * 7919:x}{n * 104729:x}*" for n in range(1050)]}}
    text = put(owner, bucket, statement(bucket, "s3:ListBucket", who=OTHER, Condition=conditions))
    assert 18000 < len(text) <= 20480
    assert owner.get_bucket_policy(Bucket=bucket)["Policy"] == text
    with refused("MalformedPolicy", 400):
        owner.put_bucket_policy(
            Bucket=bucket, Policy=text.replace('"s3:ListBucket"', '"s3:ListBucket"' + " " * 2500)
        )
    assert owner.get_bucket_policy(Bucket=bucket)["Policy"] == text


@pytest.mark.parametrize("text", ["{", "[]", '{"Statement": []}', "[" * 9000, "x" * 60000, "<a/>"])
def test_an_invalid_policy_changes_nothing(owner, bucket, text):
    before = put(owner, bucket, statement(bucket, "s3:GetObject", who=OTHER))
    with refused("MalformedPolicy", 400):
        owner.put_bucket_policy(Bucket=bucket, Policy=text)
    assert owner.get_bucket_policy(Bucket=bucket)["Policy"] == before


def test_a_policy_allows_exactly_its_actions(owner, other, bucket):
    for ask in (
        lambda: other.get_object(Bucket=bucket, Key="k"),
        lambda: other.list_objects_v2(Bucket=bucket),
        lambda: other.get_bucket_policy(Bucket=bucket),
        lambda: put(other, bucket, statement(bucket, "s3:*", who=OTHER)),
        lambda: other.delete_bucket_policy(Bucket=bucket),
    ):
        with refused("AccessDenied", 403):
            ask()
    put(owner, bucket, statement(bucket, ["s3:GetObject", "s3:PutObject"], who=OTHER, key="k*"))
    assert other.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"
    other.put_object(Bucket=bucket, Key="k2", Body=b"theirs")
    for ask in (
        lambda: other.get_object(Bucket=bucket, Key="other"),
        lambda: other.put_object(Bucket=bucket, Key="other", Body=b""),
        lambda: other.delete_object(Bucket=bucket, Key="k"),
        lambda: other.list_objects_v2(Bucket=bucket),
        lambda: other.get_object_tagging(Bucket=bucket, Key="k"),
        lambda: other.get_bucket_policy(Bucket=bucket),
    ):
        with refused("AccessDenied", 403):
            ask()
    owner.delete_bucket_policy(Bucket=bucket)
    with refused("AccessDenied", 403):
        other.get_object(Bucket=bucket, Key="k")


def test_multipart_uploads_need_the_right_to_write(owner, other, bucket):
    put(owner, bucket, statement(bucket, ["s3:PutObject", "s3:GetObject"], who=OTHER))
    upload, parts = parts_of(other, bucket, "large", [b"a" * (5 << 20), b"b"])
    complete(other, bucket, "large", upload, parts)
    assert other.get_object(Bucket=bucket, Key="large", Range="bytes=5242879-")["Body"].read() == b"ab"
    with refused("AccessDenied", 403):
        other.list_multipart_uploads(Bucket=bucket)


def test_a_denial_applies_to_the_owner_except_for_the_policy_itself(owner, bucket):
    put(owner, bucket, statement(bucket, "s3:*", effect="Deny"))
    for ask in (
        lambda: owner.get_object(Bucket=bucket, Key="k"),
        lambda: owner.put_object(Bucket=bucket, Key="k", Body=b"x"),
        lambda: owner.list_objects_v2(Bucket=bucket),
        lambda: owner.delete_bucket(Bucket=bucket),
    ):
        with refused("AccessDenied", 403):
            ask()
    owner.get_bucket_policy(Bucket=bucket)
    owner.delete_bucket_policy(Bucket=bucket)
    assert owner.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"


def test_the_source_of_a_copy_is_authorized_separately(owner, other, bucket):
    owner.create_bucket(Bucket="p-secret")
    owner.put_object(Bucket="p-secret", Key="s", Body=b"secret")
    put(owner, bucket, statement(bucket, "s3:PutObject", who=OTHER))
    for source in ("p-secret/s", f"{bucket}/k"):
        with refused("AccessDenied", 403):
            other.copy_object(Bucket=bucket, Key="copy", CopySource=source)
    put(owner, "p-secret", statement("p-secret", "s3:GetObject", who=OTHER))
    other.copy_object(Bucket=bucket, Key="copy", CopySource="p-secret/s")
    assert owner.get_object(Bucket=bucket, Key="copy")["Body"].read() == b"secret"
    put(owner, "p-secret", statement("p-secret", "s3:GetObject", effect="Deny"))
    with refused("AccessDenied", 403):
        owner.copy_object(Bucket=bucket, Key="copy", CopySource="p-secret/s")


def test_each_key_of_a_bulk_deletion_is_authorized_separately(owner, other, bucket):
    for key in ("a/1", "a/2", "b/1"):
        owner.put_object(Bucket=bucket, Key=key, Body=b"")
    put(
        owner,
        bucket,
        statement(bucket, "s3:DeleteObject", who=OTHER, key="a/*"),
        statement(bucket, "s3:DeleteObject", effect="Deny", key="a/2"),
    )
    keys = [{"Key": key} for key in ("a/1", "a/2", "b/1")]
    response = other.delete_objects(Bucket=bucket, Delete={"Objects": keys})
    assert [row["Key"] for row in response["Deleted"]] == ["a/1"]
    assert {row["Key"]: row["Code"] for row in response["Errors"]} == {
        "a/2": "AccessDenied",
        "b/1": "AccessDenied",
    }
    response = owner.delete_objects(Bucket=bucket, Delete={"Objects": keys})
    assert sorted(row["Key"] for row in response["Deleted"]) == ["a/1", "b/1"]
    assert [row["Key"] for row in response["Errors"]] == ["a/2"]


def test_conditions_refer_to_the_request_and_the_object(site, owner, other, bucket):
    owner.put_object(Bucket=bucket, Key="red", Body=b"r", Tagging="colour=red")
    tagged = {"StringEquals": {"s3:ExistingObjectTag/colour": "red"}}
    home = {"StringLike": {"s3:prefix": "${aws:username}/*"}, "NumericLessThanEquals": {"s3:max-keys": 5}}
    put(
        owner,
        bucket,
        statement(bucket, "s3:GetObject", who=OTHER, Condition=tagged),
        statement(bucket, "s3:ListBucket", who=OTHER, Condition=home),
        statement(bucket, "s3:*", effect="Deny", Condition={"StringLike": {"aws:UserAgent": "*Evil*"}}),
        statement(bucket, "s3:PutObject", effect="Deny", Condition={"Null": {"s3:x-amz-acl": "false"}}),
    )
    assert other.get_object(Bucket=bucket, Key="red")["Body"].read() == b"r"
    with refused("AccessDenied", 403):
        other.get_object(Bucket=bucket, Key="k")
    assert other.list_objects_v2(Bucket=bucket, Prefix="tester3/", MaxKeys=5)["KeyCount"] == 0
    for asked in ({"Prefix": "tester/", "MaxKeys": 5}, {"Prefix": "tester3/", "MaxKeys": 6}, {}):
        with refused("AccessDenied", 403):
            other.list_objects_v2(Bucket=bucket, **asked)
    evil = client_of(site, OTHER, user_agent_extra="Evil/1")
    with refused("AccessDenied", 403):
        evil.get_object(Bucket=bucket, Key="red")
    with refused("AccessDenied", 403):
        owner.put_object(Bucket=bucket, Key="k", Body=b"", ACL="private")


def test_versions_have_separate_actions(owner, other, bucket):
    owner.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = owner.put_object(Bucket=bucket, Key="v", Body=b"old")["VersionId"]
    owner.put_object(Bucket=bucket, Key="v", Body=b"new")
    put(owner, bucket, statement(bucket, "s3:GetObject", who=OTHER))
    assert other.get_object(Bucket=bucket, Key="v")["Body"].read() == b"new"
    with refused("AccessDenied", 403):
        other.get_object(Bucket=bucket, Key="v", VersionId=version)
    put(owner, bucket, statement(bucket, ["s3:GetObjectVersion", "s3:ListBucketVersions"], who=OTHER))
    assert other.get_object(Bucket=bucket, Key="v", VersionId=version)["Body"].read() == b"old"
    assert version in [row["VersionId"] for row in other.list_object_versions(Bucket=bucket)["Versions"]]
    with refused("AccessDenied", 403):
        other.delete_object(Bucket=bucket, Key="v", VersionId=version)
    put(owner, bucket, statement(bucket, "s3:DeleteObjectVersion", who=OTHER))
    other.delete_object(Bucket=bucket, Key="v", VersionId=version)


def test_a_policy_can_grant_bucket_settings_to_another_user(owner, other, bucket):
    put(owner, bucket, statement(bucket, ["s3:*BucketPolicy", "s3:PutBucketCORS", "s3:*Tagging"], who=OTHER))
    other.get_bucket_policy(Bucket=bucket)
    rule = {"AllowedOrigins": ["*"], "AllowedMethods": ["GET"]}
    other.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [rule]})
    with refused("AccessDenied", 403):
        other.get_bucket_cors(Bucket=bucket)
    other.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    with refused("AccessDenied", 403):
        other.get_object(Bucket=bucket, Key="k")
    other.delete_bucket_policy(Bucket=bucket)
    with refused("AccessDenied", 403):
        other.get_object_tagging(Bucket=bucket, Key="k")


def test_the_source_address_is_a_condition(site, owner, bucket):
    here, there = ({"IpAddress": {"aws:SourceIp": net}} for net in ("127.0.0.0/8", "10.0.0.0/8"))
    page = {"StringLike": {"aws:Referer": "http://page.example/*"}}
    put(owner, bucket, statement(bucket, "s3:GetObject", Condition=there))
    assert site.raw("GET", f"/{bucket}/k").status == 403
    put(owner, bucket, statement(bucket, "s3:GetObject", Condition={**here, **page}))
    assert site.raw("GET", f"/{bucket}/k").status == 403
    said = {"Referer": "http://page.example/x", "X-Forwarded-For": "10.0.0.1"}
    assert site.raw("GET", f"/{bucket}/k", said).status == 200


# --- without a signature --------------------------------------------------------------------------------


def test_a_public_policy_applies_to_anonymous_requests(site, owner, bucket):
    path = f"/{bucket}/k"
    assert site.raw("GET", path).status == 403
    put(owner, bucket, statement(bucket, "s3:GetObject"))
    response = site.raw("GET", path)
    assert (response.status, response.body) == (200, b"v")
    assert site.raw("HEAD", path).status == 200
    assert site.raw("GET", f"/AUTH_test:{bucket}/k").body == b"v"
    missing = site.raw("GET", f"/{bucket}/nothing")
    assert (missing.status, b"<Code>NoSuchKey</Code>" in missing.body) == (404, True)
    for method, target in (
        ("GET", f"/{bucket}"),
        ("PUT", path),
        ("DELETE", path),
        ("GET", f"/{bucket}?policy"),
    ):
        response = site.raw(method, target, {"Content-Length": "0"})
        assert (response.status, b"<Code>AccessDenied</Code>" in response.body) == (403, True), (
            method,
            target,
        )


def test_a_public_acl_applies_to_anonymous_requests(site, owner, bucket):
    owner.put_bucket_acl(Bucket=bucket, ACL="public-read")
    assert site.raw("GET", f"/{bucket}/k").body == b"v"
    assert b"<Key>k</Key>" in site.raw("GET", f"/{bucket}?list-type=2").body
    assert site.raw("GET", f"/{bucket}?policy").status == 403
    assert site.raw("PUT", f"/{bucket}/x", {"Content-Length": "0"}).status == 403
    owner.put_bucket_acl(Bucket=bucket, ACL="private")
    assert site.raw("GET", f"/{bucket}/k").status == 403


def test_policies_do_not_affect_the_swift_api(site):
    assert site.raw("GET", "/info").status == 200
    assert site.raw("GET", "/v1/AUTH_test").status == 401
    assert site.raw("GET", "/auth/v1.0").status == 401


# --- other accounts -------------------------------------------------------------------------------------


def test_a_policy_alone_permits_another_account(site, owner, bucket):
    path = f"/AUTH_test%3A{bucket}/k"
    url = f"http://{site.host}{path}"

    def ask(**how):
        return site.raw(
            "GET", path, signed_headers("GET", url, user=FOREIGN, **{"secret": "testing2", **how})
        )

    assert ask().status == 403
    put(owner, bucket, statement(bucket, "s3:GetObject", who="arn:aws:iam::test2:user/tester2"))
    assert (ask().status, ask().body) == (200, b"v")
    assert b"SignatureDoesNotMatch" in ask(secret="wrong").body
    assert site.raw("GET", path).status == 403
    put(owner, bucket, statement(bucket, "s3:GetObject", who="arn:aws:iam::test2:root"))
    assert ask().body == b"v"
    put(owner, bucket, statement(bucket, "s3:GetObject", who="arn:aws:iam::test:root"))
    assert ask().status == 403


# --- public access block --------------------------------------------------------------------------------

BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")


def block(owner, bucket, *names):
    switches = {name: name in names for name in BLOCKS}
    owner.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=switches)
    return switches


def test_a_public_access_block_is_set_and_deleted(owner, other, bucket):
    with refused("NoSuchPublicAccessBlockConfiguration", 404):
        owner.get_public_access_block(Bucket=bucket)
    for names in ((), BLOCKS, BLOCKS[1:3]):
        switches = block(owner, bucket, *names)
        got = owner.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
        assert got == switches
    for ask in (other.get_public_access_block, other.delete_public_access_block):
        with refused("AccessDenied", 403):
            ask(Bucket=bucket)
    owner.delete_public_access_block(Bucket=bucket)
    with refused("NoSuchPublicAccessBlockConfiguration", 404):
        owner.get_public_access_block(Bucket=bucket)


def test_public_acls_and_policies_are_blocked(owner, bucket):
    block(owner, bucket, "BlockPublicAcls", "BlockPublicPolicy")
    with refused("AccessDenied", 403):
        owner.put_bucket_acl(Bucket=bucket, ACL="public-read")
    with refused("AccessDenied", 403):
        owner.put_object(Bucket=bucket, Key="x", Body=b"", ACL="public-read")
    grants = [
        {
            "Grantee": {"Type": "Group", "URI": "http://acs.amazonaws.com/groups/global/AllUsers"},
            "Permission": "READ",
        }
    ]
    with refused("AccessDenied", 403):
        owner.put_bucket_acl(
            Bucket=bucket, AccessControlPolicy={"Owner": {"ID": "test:tester"}, "Grants": grants}
        )
    with refused("AccessDenied", 403):
        put(owner, bucket, statement(bucket, "s3:GetObject"))
    owner.put_bucket_acl(Bucket=bucket, ACL="private")
    put(owner, bucket, statement(bucket, "s3:GetObject", who=OTHER))


def test_public_acls_are_ignored(site, owner, other, bucket):
    owner.put_bucket_acl(Bucket=bucket, ACL="public-read")
    assert other.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"
    block(owner, bucket, "IgnorePublicAcls")
    assert site.raw("GET", f"/{bucket}/k").status == 403
    with refused("AccessDenied", 403):
        other.get_object(Bucket=bucket, Key="k")
    assert owner.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"
    owner.delete_public_access_block(Bucket=bucket)
    assert site.raw("GET", f"/{bucket}/k").status == 200


def test_a_public_policy_is_restricted_to_the_account(site, owner, other, bucket):
    put(owner, bucket, statement(bucket, "s3:GetObject"))
    assert site.raw("GET", f"/{bucket}/k").status == 200
    block(owner, bucket, "RestrictPublicBuckets")
    assert site.raw("GET", f"/{bucket}/k").status == 403
    assert other.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"


# --- ownership controls ---------------------------------------------------------------------------------


def controls(owner, bucket, ownership):
    owner.put_bucket_ownership_controls(
        Bucket=bucket, OwnershipControls={"Rules": [{"ObjectOwnership": ownership}]}
    )


def test_ownership_controls_are_set_and_deleted(owner, bucket):
    with refused("OwnershipControlsNotFoundError", 404):
        owner.get_bucket_ownership_controls(Bucket=bucket)
    for ownership in ("BucketOwnerPreferred", "ObjectWriter", "BucketOwnerEnforced"):
        controls(owner, bucket, ownership)
        got = owner.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]
        assert got["Rules"] == [{"ObjectOwnership": ownership}]
    with refused("MalformedXML", 400):
        controls(owner, bucket, "Nobody")
    owner.delete_bucket_ownership_controls(Bucket=bucket)
    with refused("OwnershipControlsNotFoundError", 404):
        owner.get_bucket_ownership_controls(Bucket=bucket)


def test_acls_have_no_effect_where_ownership_is_enforced(owner, other):
    owner.create_bucket(Bucket="p-enforced", ObjectOwnership="BucketOwnerEnforced")
    owner.put_object(Bucket="p-enforced", Key="k", Body=b"v", ACL="bucket-owner-full-control")
    with refused("AccessControlListNotSupported", 400):
        owner.put_bucket_acl(Bucket="p-enforced", GrantRead=f"id={OTHER}")
    with refused("AccessControlListNotSupported", 400):
        owner.put_object(Bucket="p-enforced", Key="k", Body=b"v", ACL="public-read")
    with refused("AccessDenied", 403):
        other.get_object(Bucket="p-enforced", Key="k")
    put(owner, "p-enforced", statement("p-enforced", "s3:GetObject", who=OTHER))
    assert other.get_object(Bucket="p-enforced", Key="k")["Body"].read() == b"v"


def test_the_right_to_put_the_acl_is_enough_to_open_and_close_the_bucket(owner, other, bucket):
    with refused("AccessDenied", 403):
        other.put_bucket_acl(Bucket=bucket, ACL="public-read")
    put(owner, bucket, statement(bucket, ["s3:PutBucketAcl", "s3:GetBucketAcl"], who=OTHER))
    for canned, count in (("public-read", 2), ("private", 1), ("public-read-write", 3)):
        other.put_bucket_acl(Bucket=bucket, ACL=canned)
        assert len(owner.get_bucket_acl(Bucket=bucket)["Grants"]) == count
        assert len(other.get_bucket_acl(Bucket=bucket)["Grants"]) == count


def test_no_policy_permits_other_users_to_bypass_governance(owner, other):
    bucket = "governed"
    owner.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}
    version = owner.put_object(Bucket=bucket, Key="k", Body=b"v", **lock)["VersionId"]
    gone = {"Bucket": bucket, "Key": "k", "VersionId": version, "BypassGovernanceRetention": True}
    put(owner, bucket, statement(bucket, ["s3:GetObject", "s3:DeleteObject", "s3:DeleteObjectVersion"]))
    with refused("AccessDenied", 403):
        other.delete_object(**gone)
    put(owner, bucket, statement(bucket, "s3:*"))
    with refused("AccessDenied", 403):
        other.delete_object(**gone)
    keys = {"Objects": [{"Key": "k", "VersionId": version}]}
    response = other.delete_objects(Bucket=bucket, Delete=keys, BypassGovernanceRetention=True)
    assert [error["Code"] for error in response["Errors"]] == ["AccessDenied"]
    assert other.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"
    put(owner, bucket, statement(bucket, "s3:BypassGovernanceRetention", effect="Deny"))
    with refused("AccessDenied", 403):
        owner.delete_object(**gone)
    owner.delete_bucket_policy(Bucket=bucket)
    owner.delete_object(**gone)


def test_a_policy_for_put_object_does_not_permit_locking(owner, other):
    bucket = "unlockable"
    owner.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    put(owner, bucket, statement(bucket, ["s3:PutObject"]))
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    other.put_object(Bucket=bucket, Key="free", Body=b"v")
    with refused("AccessDenied", 403):
        other.put_object(
            Bucket=bucket, Key="k", Body=b"v", ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=until
        )
    with refused("AccessDenied", 403):
        other.put_object(Bucket=bucket, Key="k", Body=b"v", ObjectLockLegalHoldStatus="ON")
