"""Inventory configurations of the S3 API, and reports written by the daemon of a live cluster."""

import csv
import gzip
import json
from hashlib import md5

import pytest

from test.functional.test_s3 import client_of, refused


@pytest.fixture(scope="module")
def s3(cluster):
    made = client_of(cluster)
    made.create_bucket(Bucket="counted")
    made.create_bucket(Bucket="stock")
    return made


def configuration(name="all", bucket="arn:aws:s3:::stock", **changes):
    return {
        "Destination": {"S3BucketDestination": {"Bucket": bucket, "Format": "CSV", "Prefix": "p"}},
        "IsEnabled": True,
        "Id": name,
        "IncludedObjectVersions": "Current",
        "OptionalFields": ["Size", "ETag", "StorageClass"],
        "Schedule": {"Frequency": "Daily"},
        **changes,
    }


def put(s3, config, bucket="counted", name=None):
    s3.put_bucket_inventory_configuration(
        Bucket=bucket, Id=name or config["Id"], InventoryConfiguration=config
    )


def test_inventory_configurations_are_set_and_deleted(s3):
    first, second = configuration("first", IsEnabled=False), configuration("second", IsEnabled=False)
    put(s3, first)
    put(s3, second)
    asked = s3.get_bucket_inventory_configuration(Bucket="counted", Id="first")
    assert asked["InventoryConfiguration"] == first
    listed = s3.list_bucket_inventory_configurations(Bucket="counted")
    assert listed["InventoryConfigurationList"] == [first, second] and not listed["IsTruncated"]
    s3.delete_bucket_inventory_configuration(Bucket="counted", Id="first")
    for act in (s3.get_bucket_inventory_configuration, s3.delete_bucket_inventory_configuration):
        with refused("NoSuchConfiguration", 404):
            act(Bucket="counted", Id="first")


def test_the_daemon_writes_an_inventory(cluster, s3):
    s3.put_object(Bucket="counted", Key="a b", Body=b"xx")
    put(s3, configuration())
    cluster.run_once("s3-lifecycle")
    written = s3.list_objects_v2(Bucket="stock", Prefix="p/counted/all/")["Contents"]
    key = next(row["Key"] for row in written if row["Key"].endswith("manifest.json"))
    manifest = json.loads(s3.get_object(Bucket="stock", Key=key)["Body"].read())
    (file,) = manifest["files"]
    content = s3.get_object(Bucket="stock", Key=file["key"])["Body"].read()
    rows = list(csv.reader(gzip.decompress(content).decode().splitlines()))
    assert rows == [["counted", "a%20b", "2", md5(b"xx").hexdigest(), "STANDARD"]]


def test_an_inventory_cannot_go_to_a_bucket_of_another_owner(cluster, s3):
    other = client_of(cluster, "test2:tester2")
    other.create_bucket(Bucket="theirs")
    for place in ("theirs", "nowhere", "AUTH_test2:theirs"):
        with refused("InvalidS3DestinationBucket", 400):
            put(s3, configuration(bucket=f"arn:aws:s3:::{place}"))
    for act in (
        lambda who: put(who, configuration()),
        lambda who: who.list_bucket_inventory_configurations(Bucket="counted"),
        lambda who: who.delete_bucket_inventory_configuration(Bucket="counted", Id="all"),
    ):
        with refused("AccessDenied", 403):
            act(client_of(cluster, "test:tester3"))


def test_an_invalid_configuration_is_refused(s3):
    with refused("InvalidArgument", 400):
        put(s3, configuration("one"), name="other")
    with refused("NotImplemented", 501):
        put(s3, configuration(OptionalFields=["ChecksumAlgorithm"]))
    with refused("NoSuchBucket", 404):
        put(s3, configuration(), bucket="nothing-there")
