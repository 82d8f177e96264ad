"""Details of the S3 API used by the Go SDK: repeated headers, combined conditions, bucket owners."""

import base64
import datetime
import http.client

import pytest

from swift.base.crc import CRC64NVME
from test.functional.test_s3 import client_of, complete, parts_of, refused
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
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.status == 200, body
    assert b"<ObjectSize>1</ObjectSize>" in body


@pytest.mark.parametrize(
    "conditions, code",
    [
        ({"IfMatch": '"other"', "IfNoneMatch": "same"}, "412"),
        ({"IfMatch": "same", "IfNoneMatch": "same"}, "304"),
        ({"IfMatch": "same", "IfUnmodifiedSince": BEFORE}, None),
        ({"IfNoneMatch": '"other"', "IfModifiedSince": AFTER}, None),
        ({"IfNoneMatch": "same", "IfModifiedSince": BEFORE}, "304"),
        ({"IfNoneMatch": "same", "IfUnmodifiedSince": BEFORE}, "412"),
        ({"IfNoneMatch": "same", "IfUnmodifiedSince": AFTER}, "304"),
    ],
)
def test_if_match_is_evaluated_first_and_etags_before_dates(s3, conditions, code):
    etag = s3.put_object(Bucket="details", Key="k", Body=b"v")["ETag"]
    requested = {name: etag if value == "same" else value for name, value in conditions.items()}
    if code is None:
        assert s3.get_object(Bucket="details", Key="k", **requested)["Body"].read() == b"v"
        s3.head_object(Bucket="details", Key="k", **requested)
        return
    with refused(code):
        s3.head_object(Bucket="details", Key="k", **requested)
    with refused("PreconditionFailed" if code == "412" else code):
        s3.get_object(Bucket="details", Key="k", **requested)


def test_head_of_a_part_of_an_empty_object_is_that_of_the_object(s3):
    s3.put_object(Bucket="details", Key="empty", Body=b"")
    head = s3.head_object(Bucket="details", Key="empty", Range="bytes=-1")
    assert (head["ContentLength"], "ContentRange" in head) == (0, False)


def test_a_range_response_does_not_contain_the_checksum_of_the_object(s3):
    s3.put_object(Bucket="details", Key="summed", Body=b"0123456789", ChecksumAlgorithm="SHA256")
    for ask in (s3.head_object, s3.get_object):
        whole = ask(Bucket="details", Key="summed", ChecksumMode="ENABLED")
        assert "ChecksumSHA256" in whole
        some = ask(Bucket="details", Key="summed", ChecksumMode="ENABLED", Range="bytes=2-4")
        assert (some["ContentLength"], "ChecksumSHA256" in some) == (3, False)


def crc64(data):
    return base64.b64encode(CRC64NVME.compute(data).to_bytes(8, "big")).decode()


@pytest.fixture(scope="module")
def silent(cluster, s3):
    """A client that sends no checksums, as older SDKs did."""
    return client_of(cluster, request_checksum_calculation="when_required")


@pytest.mark.parametrize("body", [b"", b"0123456789", b"z" * 65536])
def test_objects_without_a_checksum_get_the_default_one(silent, body):
    put = silent.put_object(Bucket="details", Key="usual", Body=body)
    assert (put["ChecksumCRC64NVME"], put["ChecksumType"]) == (crc64(body), "FULL_OBJECT")
    head = silent.head_object(Bucket="details", Key="usual", ChecksumMode="ENABLED")
    assert (head["ChecksumCRC64NVME"], head["ContentLength"]) == (crc64(body), len(body))
    assert silent.get_object(Bucket="details", Key="usual")["Body"].read() == body
    copied = silent.copy_object(Bucket="details", Key="copied", CopySource="details/usual")[
        "CopyObjectResult"
    ]
    assert copied["ChecksumCRC64NVME"] == crc64(body)
    asked = silent.get_object_attributes(Bucket="details", Key="copied", ObjectAttributes=["Checksum"])
    assert asked["Checksum"]["ChecksumCRC64NVME"] == crc64(body)


def test_large_objects_without_a_checksum_get_none(silent):
    put = silent.put_object(Bucket="details", Key="large", Body=b"z" * 65537)
    assert not [name for name in put if name.startswith("Checksum")]


def test_a_multipart_upload_with_default_part_checksums_has_a_checksum(silent):
    where = {"Bucket": "details", "Key": "joined"}
    where["UploadId"] = silent.create_multipart_upload(**where)["UploadId"]
    part = silent.upload_part(PartNumber=1, Body=b"0123456789", **where)
    assert part["ChecksumCRC64NVME"] == crc64(b"0123456789")
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    done = silent.complete_multipart_upload(MultipartUpload={"Parts": parts}, **where)
    assert (done["ChecksumCRC64NVME"], done["ChecksumType"]) == (crc64(b"0123456789"), "FULL_OBJECT")
    head = silent.head_object(Bucket="details", Key="joined", ChecksumMode="ENABLED")
    assert head["ChecksumCRC64NVME"] == done["ChecksumCRC64NVME"]


def test_a_multipart_upload_with_mixed_part_checksums_has_none(silent):
    where = {"Bucket": "details", "Key": "mixed"}
    where["UploadId"] = silent.create_multipart_upload(**where)["UploadId"]
    part = silent.upload_part(PartNumber=1, Body=b"x", ChecksumAlgorithm="SHA256", **where)
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    done = silent.complete_multipart_upload(MultipartUpload={"Parts": parts}, **where)
    assert not [name for name in done if name.startswith("Checksum")]


def test_requests_fail_if_the_bucket_owner_is_not_the_expected_one(s3):
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


def test_parts_are_listed_with_their_checksums(s3):
    upload, parts = parts_of(s3, "details", "parts", [b"a" * 10, b"b"], ChecksumAlgorithm="SHA256")
    listed = s3.list_parts(Bucket="details", Key="parts", UploadId=upload)
    assert [p["ChecksumSHA256"] for p in listed["Parts"]] == [p["ChecksumSHA256"] for p in parts]
    s3.abort_multipart_upload(Bucket="details", Key="parts", UploadId=upload)


def test_a_page_of_uploads_that_ends_with_a_common_prefix_continues_after_it(s3):
    s3.create_bucket(Bucket="pages-of-uploads")
    for key in ("abc/1", "foo/a/b", "foo/c", "plain", "xyz/1"):
        s3.create_multipart_upload(Bucket="pages-of-uploads", Key=key)
    seen, marks = [], {}
    while True:
        page = s3.list_multipart_uploads(Bucket="pages-of-uploads", Delimiter="/", MaxUploads=1, **marks)
        seen += [p["Prefix"] for p in page.get("CommonPrefixes", ())]
        seen += [u["Key"] for u in page.get("Uploads", ())]
        if not page["IsTruncated"]:
            break
        marks = {"KeyMarker": page["NextKeyMarker"]}
        if page["NextUploadIdMarker"]:
            marks["UploadIdMarker"] = page["NextUploadIdMarker"]
    assert seen == ["abc/", "foo/", "plain", "xyz/"]
    with refused("InvalidArgument", 400):
        s3.list_multipart_uploads(Bucket="pages-of-uploads", KeyMarker="plain", UploadIdMarker="no/id")


def test_a_completion_is_checked_against_the_values_that_the_client_sent(s3):
    def end(parts, **said):
        return complete(s3, "details", "ended", upload, parts, **said)

    upload, parts = parts_of(s3, "details", "ended", [b"a" * 10], ChecksumAlgorithm="SHA256")
    with refused("InvalidRequest", 400):
        end(parts, MpuObjectSize=11)
    with refused("InvalidRequest", 400):
        end([{"PartNumber": 1, "ETag": parts[0]["ETag"]}])
    with refused("InvalidArgument", 400):
        end([{**parts[0], "ChecksumSHA256": "nothing"}])
    with refused("InvalidArgument", 400):
        end([{**parts[0], "PartNumber": -1}])
    with refused("InvalidRequest", 400):
        end(parts, ChecksumType="FULL_OBJECT")
    with refused("InvalidRequest", 400):
        end(parts, ChecksumSHA256="AAAA")
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket="details", Key="ended")
    end(parts, MpuObjectSize=10)
    assert s3.head_object(Bucket="details", Key="ended")["ContentLength"] == 10


def test_a_bucket_is_created_with_its_tags(s3):
    s3.create_bucket(
        Bucket="made-with-tags", CreateBucketConfiguration={"Tags": [{"Key": "team", "Value": "blue"}]}
    )
    assert s3.get_bucket_tagging(Bucket="made-with-tags")["TagSet"] == [{"Key": "team", "Value": "blue"}]
    with refused("InvalidTag", 400):
        s3.create_bucket(
            Bucket="badly-tagged", CreateBucketConfiguration={"Tags": [{"Key": "a!", "Value": ""}]}
        )
    with refused("404"):
        s3.head_bucket(Bucket="badly-tagged")


def test_a_website_redirect_is_returned_but_not_copied(s3):
    s3.put_object(Bucket="details", Key="moved", Body=b"v", WebsiteRedirectLocation="/new")
    assert s3.head_object(Bucket="details", Key="moved")["WebsiteRedirectLocation"] == "/new"
    s3.copy_object(Bucket="details", Key="copy", CopySource="details/moved")
    assert "WebsiteRedirectLocation" not in s3.head_object(Bucket="details", Key="copy")
    s3.copy_object(
        Bucket="details", Key="moved", CopySource="details/moved", WebsiteRedirectLocation="/newer"
    )
    assert s3.get_object(Bucket="details", Key="moved")["WebsiteRedirectLocation"] == "/newer"
    upload = s3.create_multipart_upload(Bucket="details", Key="large", WebsiteRedirectLocation="/large")
    where = {"Bucket": "details", "Key": "large", "UploadId": upload["UploadId"]}
    etag = s3.upload_part(Body=b"x", PartNumber=1, **where)["ETag"]
    complete(s3, "details", "large", where["UploadId"], [{"PartNumber": 1, "ETag": etag}])
    assert s3.head_object(Bucket="details", Key="large")["WebsiteRedirectLocation"] == "/large"
    s3.put_object_tagging(Bucket="details", Key="moved", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    assert s3.head_object(Bucket="details", Key="moved")["WebsiteRedirectLocation"] == "/newer"


def test_preflight_requests_find_buckets_without_a_known_account(cluster, s3):
    """Two accounts have a bucket of that name, each with its own rules."""
    clients = {"http://one.example": s3, "http://two.example": client_of(cluster, "test2:tester2")}

    def ask(origin, bucket="asked", method="PUT"):
        headers = {
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "authorization",
        }
        return cluster.raw("OPTIONS", f"/{bucket}/k", headers)

    for origin, client in clients.items():
        client.create_bucket(Bucket="asked")
        assert "access-control-allow-origin" not in ask(origin).headers
        rule = {"AllowedOrigins": [origin], "AllowedMethods": ["PUT"], "AllowedHeaders": ["*"]}
        client.put_bucket_cors(Bucket="asked", CORSConfiguration={"CORSRules": [rule]})
        response = ask(origin)
        assert (response.status, response.headers["access-control-allow-origin"]) == (200, origin)
    for origin in clients:
        assert ask(origin).status == 200
        assert ask(origin, method="DELETE").status == 403
        assert "access-control-allow-origin" not in ask(origin, "askedk").headers
    assert ask("http://evil.example").status == 403
    s3.delete_bucket_cors(Bucket="asked")
    assert ask("http://one.example").status == 403 and ask("http://two.example").status == 200


@pytest.mark.parametrize(
    "path", ["/%00%00%00/k", "/asked%2F/k", "/" + "a" * 300, "/%FF%FE%FD/k", "/../../.s3_cors"]
)
def test_a_hostile_preflight_request_causes_no_error(cluster, s3, path):
    headers = {"Origin": "http://x", "Access-Control-Request-Method": "GET"}
    assert cluster.raw("OPTIONS", path, headers).status < 500
