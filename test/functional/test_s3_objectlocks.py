"""Object lock on a live cluster: set by boto3, and attacked through every other API."""

import datetime
import json
from hashlib import md5

import pytest

from test.functional.test_s3 import client_of, complete, parts_of, refused

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
LATER = NOW + datetime.timedelta(hours=1)
LATEST = NOW + datetime.timedelta(hours=2)


@pytest.fixture(scope="module")
def s3(cluster):
    return client_of(cluster)


@pytest.fixture
def bucket(s3, request):
    name = f"k-{md5(request.node.name.encode()).hexdigest()[:20]}"
    s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    return name


def put_locked(s3, bucket, key="k", mode="COMPLIANCE", until=LATER, **more):
    return s3.put_object(
        Bucket=bucket, Key=key, Body=b"kept", ObjectLockMode=mode, ObjectLockRetainUntilDate=until, **more
    )["VersionId"]


def is_kept(s3, bucket, version, key="k"):
    return s3.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read() == b"kept"


# --- buckets ------------------------------------------------------------------------------------------


def test_versioning_cannot_be_suspended_in_a_bucket_with_object_lock(s3, bucket):
    found = s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]
    assert found == {"ObjectLockEnabled": "Enabled"}
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    with refused("InvalidBucketState", 409):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Versions-Enabled": "false"},
        {"X-Versions-Enabled": ""},
        {"X-Versions-Enabled": "nonsense"},
        {"X-Remove-Versions-Enabled": "x"},
        {"X-Versions-Location": "elsewhere"},
        {"X-History-Location": "elsewhere"},
        {"X-Versions-Location": ""},
        {"X-Remove-Versions-Location": "x"},
        {"X-Remove-History-Location": "x"},
        {"X-Versions-Enabled": "true", "X-Versions-Location": "elsewhere"},
    ],
    ids=str,
)
def test_the_swift_api_cannot_suspend_versioning_of_a_locked_bucket(cluster, s3, bucket, headers):
    for method in ("POST", "PUT"):
        response = cluster.request(method, bucket, headers)
        assert response.status == 409, (method, response)
        strange = cluster.request(method, bucket, headers, user="test:tester3")
        assert strange.status == 403
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    head = cluster.request("HEAD", bucket)
    assert not {"x-versions-location", "x-history-location"} & head.headers.keys()
    assert cluster.request("POST", bucket, {"X-Versions-Enabled": "true"}).status == 204


def test_object_lock_can_be_enabled_later_on_a_versioned_bucket(s3):
    s3.create_bucket(Bucket="locked-later")
    configuration = {
        "ObjectLockEnabled": "Enabled",
        "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}},
    }
    with refused("ObjectLockConfigurationNotFoundError", 404):
        s3.get_object_lock_configuration(Bucket="locked-later")
    with refused("InvalidBucketState", 409):
        s3.put_object_lock_configuration(Bucket="locked-later", ObjectLockConfiguration=configuration)
    with refused("InvalidRequest", 400):
        put_locked(s3, "locked-later")
    s3.put_bucket_versioning(Bucket="locked-later", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object_lock_configuration(Bucket="locked-later", ObjectLockConfiguration=configuration)
    assert s3.get_object_lock_configuration(Bucket="locked-later")["ObjectLockConfiguration"] == configuration
    version = s3.put_object(Bucket="locked-later", Key="k", Body=b"kept")["VersionId"]
    head = s3.head_object(Bucket="locked-later", Key="k")
    assert head["ObjectLockMode"] == "GOVERNANCE"
    assert 86000 < (head["ObjectLockRetainUntilDate"] - NOW).total_seconds() < 90000
    with refused("AccessDenied", 403):
        s3.delete_object(Bucket="locked-later", Key="k", VersionId=version)


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"ObjectLockEnabled": "Disabled"},
        {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE"}}},
        {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "NONE", "Days": 1}}},
        {
            "ObjectLockEnabled": "Enabled",
            "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1, "Years": 1}},
        },
        {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 0}}},
    ],
)
def test_an_invalid_configuration_changes_nothing(s3, bucket, configuration):
    with pytest.raises(s3.exceptions.ClientError) as caught:
        s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert "Rule" not in s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]


def test_other_users_cannot_configure_object_lock(cluster, s3, bucket):
    version = put_locked(s3, bucket, mode="GOVERNANCE")
    cluster.request("POST", bucket, {"X-Container-Write": "test:tester3", "X-Container-Read": "test:tester3"})
    other = client_of(cluster, "test:tester3")
    where = {"Bucket": bucket, "Key": "k"}
    for ask in (
        lambda: other.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}
        ),
        lambda: other.put_object_retention(
            Retention={"Mode": "COMPLIANCE", "RetainUntilDate": LATEST}, **where
        ),
        lambda: other.put_object_legal_hold(LegalHold={"Status": "ON"}, **where),
        lambda: other.delete_object(VersionId=version, BypassGovernanceRetention=True, **where),
    ):
        with refused("AccessDenied", 403):
            ask()
    assert is_kept(s3, bucket, version)


# --- versions -----------------------------------------------------------------------------------------


def test_a_locked_version_is_only_hidden_by_a_delete_marker(s3, bucket):
    version = put_locked(s3, bucket)
    head = s3.head_object(Bucket=bucket, Key="k")
    assert (head["ObjectLockMode"], head["ObjectLockRetainUntilDate"]) == ("COMPLIANCE", LATER)
    found = s3.get_object_retention(Bucket=bucket, Key="k")["Retention"]
    assert found == {"Mode": "COMPLIANCE", "RetainUntilDate": LATER}
    for more in ({}, {"BypassGovernanceRetention": True}):
        with refused("AccessDenied", 403):
            s3.delete_object(Bucket=bucket, Key="k", VersionId=version, **more)
    done = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k", "VersionId": version}]})
    assert [error["Code"] for error in done["Errors"]] == ["AccessDenied"]
    s3.put_object(Bucket=bucket, Key="k", Body=b"newer")
    assert s3.delete_object(Bucket=bucket, Key="k")["DeleteMarker"]
    assert is_kept(s3, bucket, version)


def test_retention_can_be_extended_but_weakened_only_with_a_bypass(s3, bucket):
    version = put_locked(s3, bucket, mode="GOVERNANCE", until=LATEST)
    where = {"Bucket": bucket, "Key": "k", "VersionId": version}
    shorter = {"Mode": "GOVERNANCE", "RetainUntilDate": LATER}
    with refused("AccessDenied", 403):
        s3.put_object_retention(Retention=shorter, **where)
    s3.put_object_retention(Retention=shorter, BypassGovernanceRetention=True, **where)
    assert s3.get_object_retention(**where)["Retention"] == shorter
    s3.put_object_retention(Retention={"Mode": "COMPLIANCE", "RetainUntilDate": LATER}, **where)
    with refused("AccessDenied", 403):
        s3.put_object_retention(Retention=shorter, BypassGovernanceRetention=True, **where)
    with refused("AccessDenied", 403):
        s3.delete_object(BypassGovernanceRetention=True, **where)


def test_versions_in_governance_mode_are_deleted_with_the_bypass(s3, bucket):
    version = put_locked(s3, bucket, mode="GOVERNANCE")
    s3.delete_object(Bucket=bucket, Key="k", VersionId=version, BypassGovernanceRetention=True)
    with refused("404"):
        s3.head_object(Bucket=bucket, Key="k")


def test_a_legal_hold_is_set_returned_and_removed(s3, bucket):
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"kept", Tagging="a=1", Metadata={"m": "1"})[
        "VersionId"
    ]
    where = {"Bucket": bucket, "Key": "k"}
    with refused("NoSuchObjectLockConfiguration", 404):
        s3.get_object_legal_hold(**where)
    s3.put_object_legal_hold(LegalHold={"Status": "ON"}, **where)
    head = s3.head_object(**where)
    assert (head["ObjectLockLegalHoldStatus"], head["Metadata"]) == ("ON", {"m": "1"})
    assert s3.get_object_tagging(**where)["TagSet"] == [{"Key": "a", "Value": "1"}]
    with refused("AccessDenied", 403):
        s3.delete_object(VersionId=version, **where)
    s3.put_object_legal_hold(LegalHold={"Status": "OFF"}, **where)
    assert s3.get_object_legal_hold(**where)["LegalHold"] == {"Status": "OFF"}
    s3.delete_object(VersionId=version, **where)


def test_tags_of_a_locked_version_can_change_and_the_lock_stays(s3, bucket):
    version = put_locked(s3, bucket)
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": "a", "Value": "1"}]})
    head = s3.head_object(Bucket=bucket, Key="k")
    assert (head["ObjectLockMode"], head["ObjectLockRetainUntilDate"]) == ("COMPLIANCE", LATER)
    with refused("AccessDenied", 403):
        s3.delete_object(Bucket=bucket, Key="k", VersionId=version)
    s3.put_object(Bucket=bucket, Key="k", Body=b"the link is free")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"ObjectLockMode": "COMPLIANCE"}, "InvalidArgument"),
        ({"ObjectLockRetainUntilDate": LATER}, "InvalidArgument"),
        (
            {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": NOW - datetime.timedelta(1)},
            "InvalidArgument",
        ),
    ],
)
def test_invalid_lock_headers_store_nothing(s3, bucket, change, code):
    with refused(code, 400):
        s3.put_object(Bucket=bucket, Key="k", Body=b"x", **change)
    with refused("404"):
        s3.head_object(Bucket=bucket, Key="k")


def test_a_refused_condition_leaves_no_locked_version(s3, bucket):
    put_locked(s3, bucket)
    with refused("PreconditionFailed", 412):
        put_locked(s3, bucket, IfNoneMatch="*")
    assert len(s3.list_object_versions(Bucket=bucket)["Versions"]) == 1


def test_copies_have_the_requested_lock(s3, bucket):
    put_locked(s3, bucket)
    s3.copy_object(Bucket=bucket, Key="free", CopySource=f"{bucket}/k")
    assert "ObjectLockMode" not in s3.head_object(Bucket=bucket, Key="free")
    s3.copy_object(
        Bucket=bucket,
        Key="locked",
        CopySource=f"{bucket}/k",
        ObjectLockMode="COMPLIANCE",
        ObjectLockRetainUntilDate=LATER,
    )
    assert s3.head_object(Bucket=bucket, Key="locked")["ObjectLockMode"] == "COMPLIANCE"


# --- multipart ----------------------------------------------------------------------------------------


def test_parts_are_locked_with_their_object(cluster, s3, bucket):
    wish = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": LATER}
    upload, parts = parts_of(s3, bucket, "big", [b"kept"], **wish)
    version = complete(s3, bucket, "big", upload, parts)["VersionId"]
    assert s3.head_object(Bucket=bucket, Key="big")["ObjectLockMode"] == "COMPLIANCE"
    rows = cluster.request("GET", f"{bucket}+segments?format=json").json()
    assert len(rows) == 1
    assert cluster.request("DELETE", f"{bucket}+segments/{rows[0]['name']}").status == 403
    assert cluster.request("PUT", f"{bucket}+segments/{rows[0]['name']}", body=b"").status == 403
    with refused("AccessDenied", 403):
        s3.delete_object(Bucket=bucket, Key="big", VersionId=version)
    assert is_kept(s3, bucket, version, "big")


def test_a_later_lock_covers_the_parts_which_are_deleted_with_the_version(cluster, s3, bucket):
    upload, parts = parts_of(s3, bucket, "big", [b"kept"])
    version = complete(s3, bucket, "big", upload, parts)["VersionId"]
    where = {"Bucket": bucket, "Key": "big", "VersionId": version}
    s3.put_object_retention(Retention={"Mode": "GOVERNANCE", "RetainUntilDate": LATER}, **where)
    row = cluster.request("GET", f"{bucket}+segments?format=json").json()[0]["name"]
    assert cluster.request("DELETE", f"{bucket}+segments/{row}").status == 403
    s3.delete_object(BypassGovernanceRetention=True, **where)
    assert cluster.request("HEAD", f"{bucket}+segments/{row}").status == 404


# --- other doors --------------------------------------------------------------------------------------


def test_no_other_api_can_delete_a_locked_version(cluster, s3, bucket):
    version = put_locked(s3, bucket)
    here = f"{bucket}/k?version-id={version}"
    assert cluster.request("DELETE", here).status == 403
    assert cluster.request("POST", f"{bucket}/k", {"X-Object-Meta-A": "1"}).status == 403
    assert cluster.request("POST", f"{bucket}/k", {"X-Delete-After": "1"}).status == 403
    forged = {"X-Backend-Object-Lock": "bypass,withdraw", "X-Backend-Replication": "true"}
    assert cluster.request("DELETE", here, forged).status == 403
    listed = f"{bucket}/k?version-id={version}\n".encode()
    bulk = cluster.request(
        "POST", "?bulk-delete", {"Content-Type": "text/plain", "Accept": "application/json"}, listed
    )
    assert json.loads(bulk.body)["Number Deleted"] == 0
    # Unlocked objects of its container are deleted; the container stays.
    cluster.request("POST", bucket, {"X-Versions-Enabled": "false"})
    cluster.request("DELETE", f"{bucket}/k")
    assert cluster.request("DELETE", bucket).status == 409
    hidden = f"%00versions%00{bucket}"
    assert cluster.request("DELETE", hidden).status in (400, 404, 412)
    assert cluster.request("GET", here).body == b"kept"
    assert is_kept(s3, bucket, version)


def test_uploads_over_the_swift_api_get_the_default_retention(cluster, s3, bucket):
    rule = {"DefaultRetention": {"Mode": "COMPLIANCE", "Years": 1}}
    s3.put_object_lock_configuration(
        Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
    )
    stored = cluster.request("PUT", f"{bucket}/k", body=b"kept")
    version = stored.headers["x-object-version-id"]
    assert s3.head_object(Bucket=bucket, Key="k")["ObjectLockMode"] == "COMPLIANCE"
    assert cluster.request("DELETE", f"{bucket}/k?version-id={version}").status == 403
    copied = cluster.request("COPY", f"{bucket}/k", {"Destination": f"{bucket}/copy"})
    assert copied.status == 201


def test_tags_of_a_noncurrent_version_can_change_and_its_lock_stays(cluster, s3, bucket):
    tags = [{"Key": "t", "Value": "1"}]
    old = put_locked(s3, bucket, "tagged", Metadata={"m": "1"})
    new = s3.put_object(Bucket=bucket, Key="tagged", Body=b"2")["VersionId"]
    where = {"Bucket": bucket, "Key": "tagged", "VersionId": old}
    assert s3.put_object_tagging(**where, Tagging={"TagSet": tags})["VersionId"] == old
    assert s3.get_object_tagging(**where)["TagSet"] == tags
    assert s3.get_object_tagging(Bucket=bucket, Key="tagged", VersionId=new)["TagSet"] == []
    head = s3.head_object(**where)
    assert (head["Metadata"], head["ObjectLockMode"]) == ({"m": "1"}, "COMPLIANCE")
    s3.delete_object_tagging(**where)
    assert s3.get_object_tagging(**where)["TagSet"] == []
    with refused("AccessDenied", 403):
        other = client_of(cluster, "test:tester3")
        other.put_object_tagging(**where, Tagging={"TagSet": tags})
