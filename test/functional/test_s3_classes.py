"""Storage classes are storage policies, and a bucket has one of them (decision 0018)."""

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


def test_the_objects_of_a_bucket_lie_in_its_policy_and_say_so(front, s3):
    before = len(front.files("objects-1/*/*/*/*.data"))
    s3.put_object(Bucket="cool", Key="k", Body=b"v", StorageClass="STANDARD_IA")
    assert len(front.files("objects-1/*/*/*/*.data")) == before + 3
    for ask in (s3.head_object, s3.get_object):
        assert ask(Bucket="cool", Key="k")["StorageClass"] == "STANDARD_IA"
    wanted = ["StorageClass"]
    told = s3.get_object_attributes(Bucket="cool", Key="k", ObjectAttributes=wanted)
    assert told["StorageClass"] == "STANDARD_IA"
    for listing in (
        s3.list_objects(Bucket="cool")["Contents"],
        s3.list_objects_v2(Bucket="cool")["Contents"],
        s3.list_object_versions(Bucket="cool")["Versions"],
    ):
        assert [row["StorageClass"] for row in listing] == ["STANDARD_IA"]


def test_parts_lie_in_the_policy_of_their_bucket(s3):
    upload, parts = parts_of(s3, "cool", "large", [b"a"], StorageClass="STANDARD_IA")
    assert s3.list_multipart_uploads(Bucket="cool")["Uploads"][0]["StorageClass"] == "STANDARD_IA"
    assert s3.list_parts(Bucket="cool", Key="large", UploadId=upload)["StorageClass"] == "STANDARD_IA"
    complete(s3, "cool", "large", upload, parts)
    assert s3.head_object(Bucket="cool", Key="large")["StorageClass"] == "STANDARD_IA"


def test_a_wish_for_another_class_is_refused(s3):
    s3.put_object(Bucket="usual", Key="k", Body=b"v", StorageClass="STANDARD")
    assert "StorageClass" not in s3.head_object(Bucket="usual", Key="k")
    for bucket, kind in (("usual", "STANDARD_IA"), ("cool", "STANDARD"), ("usual", "GLACIER"), ("cool", "?")):
        for act in (
            lambda **where: s3.put_object(Body=b"w", **where),
            lambda **where: s3.copy_object(CopySource="usual/k", **where),
            s3.create_multipart_upload,
        ):
            with refused("InvalidStorageClass", 400):
                act(Bucket=bucket, Key="refused", StorageClass=kind)
    assert "refused" not in {row["Key"] for row in s3.list_objects_v2(Bucket="usual")["Contents"]}


def test_a_copy_gets_the_class_of_the_bucket_that_it_is_in(s3):
    s3.put_object(Bucket="usual", Key="k", Body=b"v")
    s3.copy_object(Bucket="cool", Key="aged", CopySource="usual/k")
    assert s3.head_object(Bucket="cool", Key="aged")["StorageClass"] == "STANDARD_IA"


@pytest.mark.parametrize("place", ["us-east-1:GLACIER", "us-east-1:", "mars:STANDARD_IA", ":"])
def test_a_bucket_of_a_class_that_there_is_not_is_not_made(s3, place):
    with refused("InvalidLocationConstraint", 400):
        s3.create_bucket(Bucket="nowhere", CreateBucketConfiguration={"LocationConstraint": place})
    with refused("404"):
        s3.head_bucket(Bucket="nowhere")
