"""Details of the S3 API that the Go SDK and its users meet: repeated headers, conditions together, owners."""

import datetime
import http.client

import pytest

from test.functional.test_s3 import client_of, refused
from test.support.s3 import signed_headers

BEFORE = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
AFTER = datetime.datetime(2035, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def s3(cluster):
    made = client_of(cluster)
    made.create_bucket(Bucket="details")
    return made


def test_repeated_headers_are_signed_as_one_value_without_spaces(cluster, s3):
    s3.put_object(Bucket="details", Key="twice", Body=b"v")
    path = "/details/twice?attributes"
    signed = signed_headers(
        "GET", f"http://{cluster.host}{path}", {"x-amz-object-attributes": "ETag,ObjectSize"}
    )
    signed.pop("x-amz-object-attributes")
    connection = http.client.HTTPConnection(cluster.host, timeout=30)
    connection.putrequest("GET", path)
    for name, value in signed.items():
        connection.putheader(name, value)
    for value in ("ETag", "ObjectSize"):
        connection.putheader("X-Amz-Object-Attributes", value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200, body
    assert b"<ObjectSize>1</ObjectSize>" in body


@pytest.mark.parametrize(
    "conditions, code",
    [
        ({"IfMatch": '"other"', "IfNoneMatch": "same"}, "412"),
        ({"IfMatch": "same", "IfNoneMatch": "same"}, "304"),
        ({"IfMatch": "same", "IfUnmodifiedSince": BEFORE}, None),
        ({"IfNoneMatch": '"other"', "IfModifiedSince": AFTER}, None),
        ({"IfNoneMatch": "same", "IfModifiedSince": BEFORE}, "304"),
    ],
)
def test_of_several_conditions_if_match_is_first_and_etags_count_before_dates(s3, conditions, code):
    etag = s3.put_object(Bucket="details", Key="k", Body=b"v")["ETag"]
    wanted = {name: etag if value == "same" else value for name, value in conditions.items()}
    if code is None:
        assert s3.get_object(Bucket="details", Key="k", **wanted)["Body"].read() == b"v"
        s3.head_object(Bucket="details", Key="k", **wanted)
        return
    with refused(code):
        s3.head_object(Bucket="details", Key="k", **wanted)
    with refused("PreconditionFailed" if code == "412" else code):
        s3.get_object(Bucket="details", Key="k", **wanted)


def test_a_head_of_a_part_of_nothing_is_that_of_nothing(s3):
    s3.put_object(Bucket="details", Key="empty", Body=b"")
    head = s3.head_object(Bucket="details", Key="empty", Range="bytes=-1")
    assert (head["ContentLength"], "ContentRange" in head) == (0, False)


def test_the_checksum_of_all_is_not_told_of_some_bytes(s3):
    s3.put_object(Bucket="details", Key="summed", Body=b"0123456789", ChecksumAlgorithm="SHA256")
    for ask in (s3.head_object, s3.get_object):
        whole = ask(Bucket="details", Key="summed", ChecksumMode="ENABLED")
        assert "ChecksumSHA256" in whole
        some = ask(Bucket="details", Key="summed", ChecksumMode="ENABLED", Range="bytes=2-4")
        assert (some["ContentLength"], "ChecksumSHA256" in some) == (3, False)


def test_nothing_is_done_in_a_bucket_of_another_owner_than_expected(s3):
    s3.put_object(Bucket="details", Key="mine", Body=b"v")
    for owner in ("test:tester", "AUTH_test"):
        s3.head_object(Bucket="details", Key="mine", ExpectedBucketOwner=owner)
    for act in (
        lambda: s3.get_object(Bucket="details", Key="mine", ExpectedBucketOwner="123456789012"),
        lambda: s3.put_object(Bucket="details", Key="mine", Body=b"w", ExpectedBucketOwner="test2:tester2"),
        lambda: s3.delete_object(Bucket="details", Key="mine", ExpectedBucketOwner="AUTH_test2"),
        lambda: s3.list_objects_v2(Bucket="details", ExpectedBucketOwner="nobody"),
        lambda: s3.copy_object(
            Bucket="details", Key="c", CopySource="details/mine", ExpectedSourceBucketOwner="nobody"
        ),
    ):
        with refused("AccessDenied", 403):
            act()
    assert s3.get_object(Bucket="details", Key="mine")["Body"].read() == b"v"
