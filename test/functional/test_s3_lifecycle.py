"""Bucket lifecycle rules, set by boto3 and applied by the daemon of a live cluster."""

import datetime
from hashlib import md5

import pytest

from test.functional.test_s3 import client_of, refused

PAST = datetime.datetime(2020, 1, 1)
RULE = {"ID": "old/ü", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Date": PAST}}


@pytest.fixture(scope="module")
def s3(cluster):
    return client_of(cluster)


@pytest.fixture
def bucket(s3, request):
    name = f"l-{md5(request.node.name.encode()).hexdigest()[:20]}"
    s3.create_bucket(Bucket=name)
    return name


def set_rules(s3, bucket, *rules):
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": list(rules)})


def test_rules_are_returned_as_they_were_sent(s3, bucket):
    with refused("NoSuchLifecycleConfiguration", 404):
        s3.get_bucket_lifecycle_configuration(Bucket=bucket)
    rules = [
        {"ID": "a", "Status": "Disabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 3}},
        {
            "ID": "b",
            "Status": "Enabled",
            "Filter": {
                "And": {
                    "Prefix": "p",
                    "Tags": [{"Key": "k", "Value": "v"}],
                    "ObjectSizeGreaterThan": 5,
                    "ObjectSizeLessThan": 50,
                }
            },
            "Expiration": {"Days": 1},
            "NoncurrentVersionExpiration": {"NoncurrentDays": 2, "NewerNoncurrentVersions": 3},
        },
        {
            "ID": "c",
            "Status": "Enabled",
            "Filter": {"Prefix": "up/"},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        },
    ]
    set_rules(s3, bucket, *rules)
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == rules
    s3.delete_bucket_lifecycle(Bucket=bucket)
    with refused("NoSuchLifecycleConfiguration", 404):
        s3.get_bucket_lifecycle_configuration(Bucket=bucket)


def test_the_deprecated_operation_accepts_the_old_format(s3, bucket):
    rules = [{"ID": "a", "Prefix": "p", "Status": "Enabled", "Expiration": {"Days": 3}}]
    s3.put_bucket_lifecycle(Bucket=bucket, LifecycleConfiguration={"Rules": rules})
    assert s3.get_bucket_lifecycle(Bucket=bucket)["Rules"] == rules


def test_a_thousand_rules_are_stored(s3, bucket):
    rules = [{**RULE, "ID": f"r{n}", "Filter": {"Prefix": f"folder/{n}/"}} for n in range(1000)]
    set_rules(s3, bucket, *rules)
    assert len(s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]) == 1000


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"Status": "On"}, "MalformedXML"),
        ({"Expiration": {"Days": 0}}, "InvalidArgument"),
        ({"Expiration": {"Date": PAST.replace(hour=1)}}, "InvalidArgument"),
        ({"Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}, "InvalidStorageClass"),
    ],
)
def test_refused_rules_change_nothing(s3, bucket, change, code):
    set_rules(s3, bucket, RULE)
    with refused(code):
        set_rules(s3, bucket, {**RULE, **change})
    assert [r["ID"] for r in s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]] == ["old/ü"]


def test_setting_rules_needs_the_right_to_change_the_bucket(cluster, s3, bucket):
    with refused("AccessDenied", 403):
        set_rules(client_of(cluster, "test:tester3"), bucket, RULE)


def test_responses_contain_the_expiration_of_an_object(s3, bucket):
    rule = {**RULE, "Expiration": {"Days": 1}, "Filter": {"Tag": {"Key": "k", "Value": "v"}}}
    set_rules(s3, bucket, rule)
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
    expected = f'expiry-date="{tomorrow:%a, %d %b %Y} 00:00:00 GMT", rule-id="old%2F%C3%BC"'
    assert s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="k=v")["Expiration"] == expected
    assert s3.head_object(Bucket=bucket, Key="k")["Expiration"] == expected
    assert s3.get_object(Bucket=bucket, Key="k", Range="bytes=0-0")["Expiration"] == expected
    copied = s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/k")
    assert copied["Expiration"] == expected
    assert "Expiration" not in s3.put_object(Bucket=bucket, Key="other", Body=b"x")


def test_the_daemon_expires_objects_that_are_due(cluster, s3, bucket):
    for key in ("tmp/a", "tmp/b", "stays"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    set_rules(s3, bucket, RULE)
    cluster.run_once("s3-lifecycle")
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["stays"]


def test_expiration_in_a_versioned_bucket_leaves_a_delete_marker(cluster, s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = s3.put_object(Bucket=bucket, Key="tmp/a", Body=b"x")["VersionId"]
    set_rules(s3, bucket, RULE)
    cluster.run_once("s3-lifecycle")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    assert s3.get_object(Bucket=bucket, Key="tmp/a", VersionId=version)["Body"].read() == b"x"
    assert len(s3.list_object_versions(Bucket=bucket)["DeleteMarkers"]) == 1
