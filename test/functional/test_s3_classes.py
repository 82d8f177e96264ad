"""Storage classes are storage policies of buckets and of single objects (decision 0018)."""

import datetime
from base64 import b64encode
from hashlib import md5
from zlib import crc32

import pytest

from test.functional.test_s3 import client_of, complete, parts_of, refused
from test.support.s3 import cluster_with

OPTIONS = "[filter:s3api]\nuse = egg:swift#s3api\nstorage_classes = STANDARD:gold, STANDARD_IA:ec\n"


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    with cluster_with(tmp_path_factory.mktemp("s3classes"), OPTIONS, ec="2+1") as live:
        yield live


@pytest.fixture(scope="module")
def s3(front):
    made = client_of(front)
    made.create_bucket(Bucket="usual")
    made.create_bucket(
        Bucket="cool", CreateBucketConfiguration={"LocationConstraint": "us-east-1:STANDARD_IA"}
    )
    return made


def test_objects_are_stored_in_the_policy_of_their_bucket_and_report_its_class(front, s3):
    before = archives(front)
    s3.put_object(Bucket="cool", Key="k", Body=b"v", StorageClass="STANDARD_IA")
    assert archives(front) == before + 3
    for ask in (s3.head_object, s3.get_object):
        assert ask(Bucket="cool", Key="k")["StorageClass"] == "STANDARD_IA"
    requested = ["StorageClass"]
    told = s3.get_object_attributes(Bucket="cool", Key="k", ObjectAttributes=requested)
    assert told["StorageClass"] == "STANDARD_IA"
    for listing in (
        s3.list_objects(Bucket="cool")["Contents"],
        s3.list_objects_v2(Bucket="cool")["Contents"],
        s3.list_object_versions(Bucket="cool")["Versions"],
    ):
        assert [row["StorageClass"] for row in listing] == ["STANDARD_IA"]


def test_parts_are_stored_in_the_policy_of_their_bucket(s3):
    upload, parts = parts_of(s3, "cool", "large", [b"a"], StorageClass="STANDARD_IA")
    assert s3.list_multipart_uploads(Bucket="cool")["Uploads"][0]["StorageClass"] == "STANDARD_IA"
    assert s3.list_parts(Bucket="cool", Key="large", UploadId=upload)["StorageClass"] == "STANDARD_IA"
    complete(s3, "cool", "large", upload, parts)
    assert s3.head_object(Bucket="cool", Key="large")["StorageClass"] == "STANDARD_IA"


@pytest.mark.parametrize(("bucket", "kind"), [("usual", "GLACIER"), ("cool", "?"), ("usual", "A" * 70)])
def test_a_request_for_an_unknown_storage_class_is_refused(s3, bucket, kind):
    s3.put_object(Bucket="usual", Key="k", Body=b"v", StorageClass="STANDARD")
    assert "StorageClass" not in s3.head_object(Bucket="usual", Key="k")
    for act in (
        lambda **where: s3.put_object(Body=b"w", **where),
        lambda **where: s3.copy_object(CopySource="usual/k", **where),
        s3.create_multipart_upload,
    ):
        with refused("InvalidStorageClass", 400):
            act(Bucket=bucket, Key="refused", StorageClass=kind)
    assert "refused" not in {row["Key"] for row in s3.list_objects_v2(Bucket="usual")["Contents"]}


# --- objects of another class than their bucket's ----------------------------------------------------------


@pytest.fixture
def bucket(s3, request):
    name = f"c-{md5(request.node.name.encode()).hexdigest()[:20]}"
    s3.create_bucket(Bucket=name)
    return name


def archives(front):
    """Return the number of archives in the code of the second class."""
    return len(front.stored(policy=1))


def apart(front, bucket):
    """Return the names in the container of the other class."""
    found = front.request("GET", f"{bucket}+STANDARD_IA+segments")
    return found.body.decode().split() if found.status == 200 else []


BODY = bytes(range(256)) * 4


def test_an_object_is_stored_in_the_policy_of_its_storage_class(front, s3, bucket):
    before = archives(front)
    digest = b64encode(crc32(BODY).to_bytes(4, "big")).decode()
    put = s3.put_object(
        Bucket=bucket,
        Key="a/k",
        Body=BODY,
        StorageClass="STANDARD_IA",
        Metadata={"m": "1"},
        ContentType="text/x",
        Tagging="t=1",
        ChecksumAlgorithm="CRC32",
    )
    assert archives(front) == before + 3
    assert put["ETag"] == f'"{md5(BODY).hexdigest()}"' and put["ChecksumCRC32"] == digest
    got = s3.get_object(Bucket=bucket, Key="a/k", ChecksumMode="ENABLED")
    assert got["Body"].read() == BODY
    for told in (got, s3.head_object(Bucket=bucket, Key="a/k", ChecksumMode="ENABLED")):
        assert told["StorageClass"] == "STANDARD_IA" and told["ETag"] == put["ETag"]
        assert told["ContentLength"] == len(BODY) and told["ContentType"] == "text/x"
        assert told["Metadata"] == {"m": "1"} and told["TagCount"] == 1
        assert told["ChecksumCRC32"] == digest and told["ChecksumType"] == "FULL_OBJECT"
    part = s3.get_object(Bucket=bucket, Key="a/k", Range="bytes=3-5")
    assert part["Body"].read() == BODY[3:6] and part["ContentRange"] == f"bytes 3-5/{len(BODY)}"
    first = s3.head_object(Bucket=bucket, Key="a/k", PartNumber=1)
    assert "PartsCount" not in first and first["ContentLength"] == len(BODY)
    with refused("416"):
        s3.head_object(Bucket=bucket, Key="a/k", PartNumber=2)
    requested = ["StorageClass", "ETag", "Checksum", "ObjectSize", "ObjectParts"]
    told = s3.get_object_attributes(Bucket=bucket, Key="a/k", ObjectAttributes=requested)
    assert told["StorageClass"] == "STANDARD_IA" and told["ETag"] == put["ETag"].strip('"')
    assert told["ObjectSize"] == len(BODY) and "ObjectParts" not in told
    s3.put_object(Bucket=bucket, Key="plain", Body=b"v")
    for listing in (
        s3.list_objects(Bucket=bucket)["Contents"],
        s3.list_objects_v2(Bucket=bucket)["Contents"],
        s3.list_object_versions(Bucket=bucket)["Versions"],
    ):
        rows = [(row["Key"], row["StorageClass"], row["Size"]) for row in listing]
        assert rows == [("a/k", "STANDARD_IA", len(BODY)), ("plain", "STANDARD", 1)]
        assert listing[0]["ETag"] == put["ETag"]
    names = [item["Name"] for item in s3.list_buckets()["Buckets"]]
    assert not [name for name in names if "+" in name]


@pytest.mark.parametrize("body", [b"", b"x"])
def test_an_empty_object_of_another_class_is_empty(s3, bucket, body):
    s3.put_object(Bucket=bucket, Key="k", Body=body, StorageClass="STANDARD_IA")
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == body and got["StorageClass"] == "STANDARD_IA"
    assert s3.list_objects_v2(Bucket=bucket)["Contents"][0]["Size"] == len(body)


def test_copies_change_the_storage_class_in_both_directions(front, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=BODY, Metadata={"m": "1"})
    source = {"CopySource": f"{bucket}/k", "Bucket": bucket, "Key": "k"}
    s3.copy_object(**source, StorageClass="STANDARD_IA")
    got = s3.get_object(Bucket=bucket, Key="k")
    assert (
        got["Body"].read() == BODY and got["StorageClass"] == "STANDARD_IA" and got["Metadata"] == {"m": "1"}
    )
    assert len(apart(front, bucket)) == 1
    s3.copy_object(**source, StorageClass="STANDARD")
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == BODY and "StorageClass" not in got
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/k", StorageClass="STANDARD_IA")
    s3.copy_object(Bucket=bucket, Key="again", CopySource=f"{bucket}/copy")
    assert "StorageClass" not in s3.head_object(Bucket=bucket, Key="again")


def test_parts_are_stored_in_the_policy_of_the_uploads_storage_class(front, s3, bucket):
    before = archives(front)
    upload, parts = parts_of(
        s3, bucket, "l/k", [b"a" * (5 << 20), b"b" * (5 << 20)], StorageClass="STANDARD_IA"
    )
    assert archives(front) == before + 6
    s3.create_multipart_upload(Bucket=bucket, Key="other")
    uploads = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [item["StorageClass"] for item in uploads] == ["STANDARD_IA", "STANDARD"]
    listed = s3.list_parts(Bucket=bucket, Key="l/k", UploadId=upload)
    assert listed["StorageClass"] == "STANDARD_IA" and len(listed["Parts"]) == 2
    copied = s3.upload_part_copy(
        Bucket=bucket, Key="l/k", UploadId=upload, PartNumber=3, CopySource="usual/k"
    )["CopyPartResult"]
    assert len(apart(front, bucket)) == 3
    complete(s3, bucket, "l/k", upload, [*parts, {"PartNumber": 3, "ETag": copied["ETag"]}])
    found = s3.head_object(Bucket=bucket, Key="l/k", PartNumber=2)
    assert found["StorageClass"] == "STANDARD_IA" and found["PartsCount"] == 3
    row = s3.list_objects_v2(Bucket=bucket)["Contents"][0]
    assert row["StorageClass"] == "STANDARD_IA" and row["ETag"].endswith('-3"')
    s3.delete_object(Bucket=bucket, Key="l/k")
    front.await_true(lambda: apart(front, bucket) == [], "the parts are gone")


def test_an_aborted_upload_of_another_class_leaves_nothing(front, s3, bucket):
    upload, _ = parts_of(s3, bucket, "k", [b"a"], StorageClass="STANDARD_IA")
    s3.abort_multipart_upload(Bucket=bucket, Key="k", UploadId=upload)
    assert apart(front, bucket) == []


def test_requests_with_failed_conditions_leave_no_bytes(front, s3, bucket):
    put = s3.put_object(Bucket=bucket, Key="k", Body=BODY, StorageClass="STANDARD_IA")
    for conditions in ({"IfNoneMatch": "*"}, {"IfMatch": '"0"'}):
        with refused("PreconditionFailed", 412):
            s3.put_object(Bucket=bucket, Key="k", Body=b"w", StorageClass="STANDARD_IA", **conditions)
    with refused("BadDigest", 400):
        s3.put_object(
            Bucket=bucket,
            Key="k",
            Body=b"w",
            StorageClass="STANDARD_IA",
            ContentMD5="AAAAAAAAAAAAAAAAAAAAAA==",
        )
    assert len(apart(front, bucket)) == 1
    with refused("304"):
        s3.get_object(Bucket=bucket, Key="k", IfNoneMatch=put["ETag"])
    s3.put_object(Bucket=bucket, Key="k", Body=b"w", StorageClass="STANDARD_IA", IfMatch=put["ETag"])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"w"


def test_customer_keys_work_with_other_storage_classes(s3, bucket):
    key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "k" * 32}
    s3.put_object(Bucket=bucket, Key="k", Body=BODY, StorageClass="STANDARD_IA", **key)
    assert s3.get_object(Bucket=bucket, Key="k", Range="bytes=17-99", **key)["Body"].read() == BODY[17:100]
    with refused("400"):
        s3.head_object(Bucket=bucket, Key="k")


def test_versions_have_their_own_classes_and_are_deleted_with_their_bytes(front, s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    old = s3.put_object(Bucket=bucket, Key="k", Body=BODY, StorageClass="STANDARD_IA")["VersionId"]
    new = s3.put_object(Bucket=bucket, Key="k", Body=b"new")["VersionId"]
    rows = s3.list_object_versions(Bucket=bucket)["Versions"]
    assert [(row["VersionId"], row["StorageClass"]) for row in rows] == [
        (new, "STANDARD"),
        (old, "STANDARD_IA"),
    ]
    got = s3.get_object(Bucket=bucket, Key="k", VersionId=old)
    assert got["Body"].read() == BODY and got["StorageClass"] == "STANDARD_IA"
    s3.delete_object(Bucket=bucket, Key="k", VersionId=new)
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == BODY and got["StorageClass"] == "STANDARD_IA"
    row = s3.list_objects_v2(Bucket=bucket)["Contents"][0]
    assert row["StorageClass"] == "STANDARD_IA" and row["ETag"] == f'"{md5(BODY).hexdigest()}"'
    s3.delete_object(Bucket=bucket, Key="k", VersionId=old)
    assert apart(front, bucket) == []


def test_an_object_lock_protects_bytes_in_another_policy(front, s3):
    s3.create_bucket(Bucket="locked-apart", ObjectLockEnabledForBucket=True)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
    version = s3.put_object(Bucket="locked-apart", Key="k", Body=BODY, StorageClass="STANDARD_IA", **lock)[
        "VersionId"
    ]
    with refused("AccessDenied", 403):
        s3.delete_object(Bucket="locked-apart", Key="k", VersionId=version)
    [name] = apart(front, "locked-apart")
    assert front.request("DELETE", f"locked-apart+STANDARD_IA+segments/{name}").status == 403
    assert s3.get_object(Bucket="locked-apart", Key="k", VersionId=version)["Body"].read() == BODY


def test_other_users_and_swift_clients_read_bytes_in_another_policy(front, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=BODY, StorageClass="STANDARD_IA")
    assert front.request("GET", f"{bucket}/k").body == BODY
    policy = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action":'
        f' "s3:GetObject", "Resource": "arn:aws:s3:::{bucket}/*"}}]}}'
    )
    s3.put_bucket_policy(Bucket=bucket, Policy=policy)
    other = client_of(front, user="test:tester3")
    assert other.get_object(Bucket=bucket, Key="k")["Body"].read() == BODY


def test_the_daemon_moves_objects_that_are_due(front, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=BODY, Metadata={"m": "1"})
    rule = {
        "ID": "r",
        "Status": "Enabled",
        "Filter": {"ObjectSizeGreaterThan": 1},
        "Transitions": [{"Date": datetime.datetime(2020, 1, 1), "StorageClass": "STANDARD_IA"}],
    }
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
    [kept] = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert kept["Transitions"][0]["StorageClass"] == "STANDARD_IA"
    front.run_once("s3-lifecycle")
    assert s3.head_object(Bucket=bucket, Key="k").get("StorageClass") == "STANDARD_IA"
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == BODY and got["Metadata"] == {"m": "1"}
    assert got["ETag"] == f'"{md5(BODY).hexdigest()}"'


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("STANDARD", "storage class is already STANDARD"), ("GLACIER", "it has STANDARD, STANDARD_IA")],
)
def test_a_transition_into_the_buckets_own_class_or_none_is_refused(s3, bucket, kind, reason):
    rule = {"ID": "r", "Status": "Enabled", "Filter": {}, "Transitions": [{"Days": 1, "StorageClass": kind}]}
    with refused("InvalidStorageClass", 400, reason):
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
    with refused("NoSuchLifecycleConfiguration", 404):
        s3.get_bucket_lifecycle_configuration(Bucket=bucket)


def test_a_copy_gets_the_class_of_the_bucket_that_it_is_in(s3):
    s3.put_object(Bucket="usual", Key="k", Body=b"v")
    s3.copy_object(Bucket="cool", Key="aged", CopySource="usual/k")
    assert s3.head_object(Bucket="cool", Key="aged")["StorageClass"] == "STANDARD_IA"


@pytest.mark.parametrize("place", ["us-east-1:GLACIER", "us-east-1:", "mars:STANDARD_IA", ":"])
def test_a_bucket_with_an_unknown_storage_class_is_refused(s3, place):
    with refused("InvalidLocationConstraint", 400):
        s3.create_bucket(Bucket="nowhere", CreateBucketConfiguration={"LocationConstraint": place})
    with refused("404"):
        s3.head_bucket(Bucket="nowhere")
