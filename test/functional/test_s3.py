"""The S3 API of a live cluster, used by boto3."""

import io
import socket
import time
import zlib
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import md5

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from test.support.cluster import KEYS
from test.support.s3 import signed_headers


def client_of(cluster, user="test:tester", secret=None, **options):
    config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}, **options)
    return boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url=f"http://{cluster.host}",
        aws_access_key_id=user,
        aws_secret_access_key=KEYS[user] if secret is None else secret,
        config=config,
    )


@pytest.fixture(scope="module")
def s3(cluster):
    return client_of(cluster)


@pytest.fixture
def bucket(s3, request):
    name = f"b-{md5(request.node.name.encode()).hexdigest()[:20]}"
    s3.create_bucket(Bucket=name)
    return name


@contextmanager
def refused(code, status=None, message=""):
    with pytest.raises(ClientError) as caught:
        yield
    response = caught.value.response
    assert response["Error"]["Code"] == code, response
    assert message in response["Error"]["Message"]
    if status is not None:
        assert response["ResponseMetadata"]["HTTPStatusCode"] == status


# --- buckets ------------------------------------------------------------------------------------------


def test_a_bucket_is_created_and_deleted(s3):
    s3.create_bucket(Bucket="coming-and-going")
    s3.head_bucket(Bucket="coming-and-going")
    assert "coming-and-going" in [b["Name"] for b in s3.list_buckets()["Buckets"]]
    with refused("BucketAlreadyOwnedByYou", 409):
        s3.create_bucket(Bucket="coming-and-going")
    assert s3.get_bucket_location(Bucket="coming-and-going")["LocationConstraint"] is None
    s3.delete_bucket(Bucket="coming-and-going")
    with refused("404"):
        s3.head_bucket(Bucket="coming-and-going")
    with refused("NoSuchBucket", 404):
        s3.delete_bucket(Bucket="coming-and-going")


def test_buckets_are_listed_in_pages(s3):
    for n in range(5):
        s3.create_bucket(Bucket=f"paged-{n}")
    first = s3.list_buckets(MaxBuckets=2, Prefix="paged-")
    assert [b["Name"] for b in first["Buckets"]] == ["paged-0", "paged-1"]
    rest = s3.list_buckets(Prefix="paged-", ContinuationToken=first["ContinuationToken"])
    assert [b["Name"] for b in rest["Buckets"]] == ["paged-2", "paged-3", "paged-4"]


@pytest.mark.parametrize("name", ["UPPER", "ab", "a..b", "192.168.1.1", "under_score"])
def test_containers_with_invalid_bucket_names_are_not_buckets(cluster, s3, name):
    cluster.request("PUT", name)
    assert name not in [b["Name"] for b in s3.list_buckets()["Buckets"]]


# --- identity ------------------------------------------------------------------------------------------


def test_a_wrong_secret_is_refused(cluster):
    with refused("SignatureDoesNotMatch", 403):
        client_of(cluster, secret="wrong").list_buckets()


def test_another_account_cannot_access_the_bucket(cluster, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"v")
    other = client_of(cluster, "test2:tester2")
    with refused("NoSuchBucket", 404):
        other.get_object(Bucket=bucket, Key="k")


def test_a_user_without_rights_is_denied(cluster, bucket):
    with refused("AccessDenied", 403):
        client_of(cluster, "test:tester3").list_objects_v2(Bucket=bucket)


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_signatures_in_headers_and_in_links_of_both_versions(cluster, bucket, version):
    s3 = client_of(cluster, signature_version=version)
    s3.put_object(Bucket=bucket, Key="a b/ü+%.txt", Body=b"signed")
    assert s3.get_object(Bucket=bucket, Key="a b/ü+%.txt")["Body"].read() == b"signed"
    parameters = {"Bucket": bucket, "Key": "a b/ü+%.txt", "ResponseContentType": "text/x-shown"}
    url = s3.generate_presigned_url("get_object", Params=parameters, ExpiresIn=60)
    response = cluster.raw("GET", url.removeprefix(f"http://{cluster.host}"), {})
    assert (response.status, response.body) == (200, b"signed")
    assert response.headers["content-type"] == "text/x-shown"
    widened = url.replace("text%2Fx-shown", "text%2Fhtml")
    assert cluster.raw("GET", widened.removeprefix(f"http://{cluster.host}"), {}).status == 403
    assert cluster.raw("DELETE", url.removeprefix(f"http://{cluster.host}"), {}).status == 403


# --- objects ------------------------------------------------------------------------------------------


def test_an_object_is_returned_with_its_metadata(s3, bucket):
    put = s3.put_object(
        Bucket=bucket,
        Key="k",
        Body=b"hello",
        ContentType="text/plain",
        CacheControl="no-cache",
        ContentDisposition="attachment",
        Metadata={"Colour": "red", "under_score": "yes"},
    )
    assert put["ETag"] == f'"{md5(b"hello").hexdigest()}"'
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == b"hello"
    assert got["ETag"] == put["ETag"]
    assert (got["ContentType"], got["CacheControl"]) == ("text/plain", "no-cache")
    assert got["Metadata"] == {"colour": "red", "under_score": "yes"}
    head = s3.head_object(Bucket=bucket, Key="k")
    assert (head["ContentLength"], head["ContentDisposition"]) == (5, "attachment")


def test_ranges_and_conditions_of_reads(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")["ETag"]
    part = s3.get_object(Bucket=bucket, Key="k", Range="bytes=2-4")
    assert (part["Body"].read(), part["ContentRange"]) == (b"234", "bytes 2-4/10")
    with refused("InvalidRange", 416):
        s3.get_object(Bucket=bucket, Key="k", Range="bytes=50-")
    with refused("304"):
        s3.get_object(Bucket=bucket, Key="k", IfNoneMatch=etag)
    with refused("PreconditionFailed", 412):
        s3.get_object(Bucket=bucket, Key="k", IfMatch='"0"')
    assert s3.get_object(Bucket=bucket, Key="k", PartNumber=1)["ResponseMetadata"]["HTTPStatusCode"] == 206
    with refused("InvalidPartNumber", 416):
        s3.get_object(Bucket=bucket, Key="k", PartNumber=2)


def test_errors_name_the_missing_resource(s3, bucket):
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=bucket, Key="nothing")
    with refused("NoSuchBucket", 404):
        s3.get_object(Bucket="no-such-bucket-at-all", Key="k")
    with refused("NoSuchBucket", 404):
        s3.put_object(Bucket="no-such-bucket-at-all", Key="k", Body=b"")
    s3.delete_object(Bucket=bucket, Key="nothing")


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_bodies_of_any_size_in_every_framing(cluster, s3, bucket, size):
    data = bytes(n % 251 for n in range(size))
    s3.put_object(Bucket=bucket, Key="plain", Body=data)
    s3.put_object(Bucket=bucket, Key="trailer", Body=io.BytesIO(data), ChecksumAlgorithm="CRC32")
    for key in ("plain", "trailer"):
        got = s3.get_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        assert got["Body"].read() == data
        assert got["ChecksumCRC32"] == b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
        assert got["ChecksumType"] == "FULL_OBJECT"


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
def test_checksums_are_verified_stored_and_returned(s3, bucket, algorithm):
    put = s3.put_object(Bucket=bucket, Key="k", Body=b"summed", ChecksumAlgorithm=algorithm)
    name = f"Checksum{algorithm}"
    got = s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert got[name] == put[name]
    with refused("BadDigest", 400):
        s3.put_object(Bucket=bucket, Key="bad", Body=b"other", **{name: put[name]})
    with refused("404"):
        s3.head_object(Bucket=bucket, Key="bad")


def test_a_wrong_md5_stores_nothing(s3, bucket):
    with refused("BadDigest", 400):
        s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentMD5=b64encode(md5(b"y").digest()).decode())
    with refused("InvalidDigest", 400):
        s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentMD5="short")
    with refused("404"):
        s3.head_object(Bucket=bucket, Key="k")


def test_conditional_writes(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="lock", Body=b"1", IfNoneMatch="*")["ETag"]
    with refused("PreconditionFailed", 412):
        s3.put_object(Bucket=bucket, Key="lock", Body=b"2", IfNoneMatch="*")
    with refused("PreconditionFailed", 412):
        s3.put_object(Bucket=bucket, Key="lock", Body=b"2", IfMatch='"0123"')
    newer = s3.put_object(Bucket=bucket, Key="lock", Body=b"2", IfMatch=etag)["ETag"]
    with refused("NoSuchKey", 404):
        s3.put_object(Bucket=bucket, Key="nothing", Body=b"2", IfMatch=etag)
    with refused("PreconditionFailed", 412):
        s3.delete_object(Bucket=bucket, Key="lock", IfMatch=etag)
    s3.delete_object(Bucket=bucket, Key="lock", IfMatch=newer)
    with refused("404"):
        s3.head_object(Bucket=bucket, Key="lock")


def test_100_continue_is_sent_even_for_empty_bodies(cluster, bucket):
    ip, _, port = cluster.host.partition(":")
    for size, path, expected in (
        (0, "k", b"100"),
        (1, "k", b"100"),
        (0, "k?nonsense", b"501"),
        (1, "k?nonsense", b"501"),
    ):
        url = f"http://{cluster.host}/{bucket}/{path}"
        head = signed_headers("PUT", url, {"Expect": "100-continue"}, b"x" * size)
        lines = [f"PUT /{bucket}/{path} HTTP/1.1", f"Host: {cluster.host}"]
        lines += [f"{name}: {value}" for name, value in {**head, "Content-Length": size}.items()]
        with socket.create_connection((ip, int(port)), timeout=30) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            told = connection.recv(100)
            assert told.startswith(b"HTTP/1.1 " + expected), told
            if expected == b"100":
                connection.sendall(b"x" * size)
            else:
                # A refused client starts again.
                while connection.recv(65536):
                    continue


# --- listings -----------------------------------------------------------------------------------------


def test_listings_of_both_versions_in_pages(s3, bucket):
    names = ["a", "b/1", "b/2", "c", "d&<é>", "e"]
    for name in names:
        s3.put_object(Bucket=bucket, Key=name, Body=name.encode())
    for verb in ("list_objects", "list_objects_v2"):
        pages = s3.get_paginator(verb).paginate(Bucket=bucket, PaginationConfig={"PageSize": 2})
        rows = [row for page in pages for row in page["Contents"]]
        assert [row["Key"] for row in rows] == names
        assert rows[0]["ETag"] == f'"{md5(b"a").hexdigest()}"'
        assert rows[0]["Size"] == 1
        pages = s3.get_paginator(verb).paginate(
            Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": 1}
        )
        seen = []
        for page in pages:
            seen += [row["Key"] for row in page.get("Contents", [])]
            seen += [row["Prefix"] for row in page.get("CommonPrefixes", [])]
        assert seen == ["a", "b/", "c", "d&<é>", "e"]
    found = s3.list_objects_v2(Bucket=bucket, Prefix="b/", StartAfter="b/1", FetchOwner=True)
    assert [(r["Key"], r["Owner"]["ID"]) for r in found["Contents"]] == [("b/2", "test:tester")]
    assert found["KeyCount"] == 1
    with refused("InvalidArgument", 400):
        s3.list_objects_v2(Bucket=bucket, ContinuationToken="!!")


def test_many_objects_are_deleted_in_one_request(s3, bucket):
    for n in range(5):
        s3.put_object(Bucket=bucket, Key=f"k{n}", Body=b"")
    done = s3.delete_objects(
        Bucket=bucket, Delete={"Objects": [{"Key": f"k{n}"} for n in range(4)] + [{"Key": "none"}]}
    )
    assert [d["Key"] for d in done["Deleted"]] == ["k0", "k1", "k2", "k3", "none"]
    quiet = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k4"}], "Quiet": True})
    assert "Deleted" not in quiet
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


# --- copies -------------------------------------------------------------------------------------------


def test_copies_keep_or_replace_metadata(s3, bucket):
    s3.put_object(Bucket=bucket, Key="from", Body=b"data", Metadata={"a": "1"}, ContentType="x/y")
    source = {"Bucket": bucket, "Key": "from"}
    copied = s3.copy_object(Bucket=bucket, Key="to", CopySource=source)
    assert copied["CopyObjectResult"]["ETag"] == f'"{md5(b"data").hexdigest()}"'
    head = s3.head_object(Bucket=bucket, Key="to")
    assert (head["Metadata"], head["ContentType"]) == ({"a": "1"}, "x/y")
    s3.copy_object(
        Bucket=bucket, Key="from", CopySource=source, MetadataDirective="REPLACE", Metadata={"b": "2"}
    )
    assert s3.head_object(Bucket=bucket, Key="from")["Metadata"] == {"b": "2"}
    with refused("InvalidRequest", 400):
        s3.copy_object(Bucket=bucket, Key="from", CopySource=source)
    with refused("NoSuchKey", 404):
        s3.copy_object(Bucket=bucket, Key="to", CopySource={"Bucket": bucket, "Key": "nothing"})
    with refused("PreconditionFailed", 412):
        s3.copy_object(Bucket=bucket, Key="to", CopySource=source, CopySourceIfMatch='"0"')


# --- multipart ----------------------------------------------------------------------------------------

PART = 5 << 20


def parts_of(s3, bucket, key, pieces, **options):
    summed = {"ChecksumAlgorithm": options["ChecksumAlgorithm"]} if "ChecksumAlgorithm" in options else {}
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]
    parts = []
    for number, piece in enumerate(pieces, 1):
        where = {"Bucket": bucket, "Key": key, "UploadId": upload, "PartNumber": number}
        told = s3.upload_part(Body=piece, **where, **summed)
        sums = {name: value for name, value in told.items() if name.startswith("Checksum")}
        parts.append({"PartNumber": number, "ETag": told["ETag"], **sums})
    return upload, parts


def complete(s3, bucket, key, upload, parts, **options):
    return s3.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}, **options
    )


def test_a_multipart_upload_from_beginning_to_end(cluster, s3, bucket):
    pieces = [b"a" * PART, b"b" * PART, b"tail"]
    upload, parts = parts_of(
        s3, bucket, "dir/big", pieces, ContentType="x/big", Metadata={"m": "1"}, Tagging="a=b"
    )
    assert [u["UploadId"] for u in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == [upload]
    listed = s3.list_parts(Bucket=bucket, Key="dir/big", UploadId=upload, MaxParts=2)
    assert [(p["PartNumber"], p["Size"]) for p in listed["Parts"]] == [(1, PART), (2, PART)]
    assert (listed["IsTruncated"], listed["NextPartNumberMarker"]) == (True, 2)
    etag = f'"{md5(b"".join(md5(p).digest() for p in pieces)).hexdigest()}-3"'
    assert complete(s3, bucket, "dir/big", upload, parts)["ETag"] == etag
    assert complete(s3, bucket, "dir/big", upload, parts)["ETag"] == etag
    with refused("NoSuchUpload", 404):
        complete(s3, bucket, "dir/big", upload, parts[:1])
    got = s3.get_object(Bucket=bucket, Key="dir/big", IfMatch=etag)
    assert got["Body"].read() == b"".join(pieces)
    assert (got["ETag"], got["ContentType"], got["Metadata"]) == (etag, "x/big", {"m": "1"})
    assert s3.list_objects_v2(Bucket=bucket)["Contents"][0]["ETag"] == etag
    second = s3.get_object(Bucket=bucket, Key="dir/big", PartNumber=2)
    assert (second["PartsCount"], second["Body"].read(3)) == (3, b"bbb")
    rows = cluster.request("GET", f"{bucket}?format=json").json()
    assert rows[0]["s3_etag"] == etag
    assert cluster.request("GET", f"{bucket}+segments?format=json").status == 200
    s3.delete_object(Bucket=bucket, Key="dir/big")
    with refused("404"):
        s3.head_object(Bucket=bucket, Key="dir/big")
    s3.delete_bucket(Bucket=bucket)
    assert cluster.request("HEAD", f"{bucket}+segments").status == 404


def test_errors_of_parts_are_reported(s3, bucket):
    upload, parts = parts_of(s3, bucket, "k", [b"small", b"tail"])
    with refused("EntityTooSmall", 400):
        complete(s3, bucket, "k", upload, parts)
    with refused("InvalidPartOrder", 400):
        complete(s3, bucket, "k", upload, parts[::-1])
    with refused("InvalidPart", 400):
        complete(s3, bucket, "k", upload, [{"PartNumber": 1, "ETag": "0" * 32}])
    with refused("InvalidPart", 400):
        complete(s3, bucket, "k", upload, [{"PartNumber": 7, "ETag": parts[0]["ETag"]}])
    with refused("InvalidArgument", 400):
        s3.upload_part(Bucket=bucket, Key="k", UploadId=upload, PartNumber=10001, Body=b"")
    with refused("NoSuchUpload", 404):
        s3.upload_part(Bucket=bucket, Key="k", UploadId="bm9uZQ==", PartNumber=1, Body=b"")
    complete(s3, bucket, "k", upload, parts[:1])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"small"


def test_the_checksum_of_a_completion_is_that_of_the_object(s3, bucket):
    upload, parts = parts_of(s3, bucket, "k", [b"whole"], ChecksumAlgorithm="CRC32")
    composite = b64encode(zlib.crc32(b64decode(parts[0]["ChecksumCRC32"])).to_bytes(4, "big")).decode()
    with refused("BadDigest", 400):
        complete(s3, bucket, "k", upload, parts, ChecksumCRC32="AAAAAA==")
    assert (
        complete(s3, bucket, "k", upload, parts, ChecksumCRC32=composite)["ChecksumCRC32"] == f"{composite}-1"
    )


def test_parts_are_copied_with_ranges_and_conditions(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="from", Body=b"0123456789")["ETag"]
    upload = s3.create_multipart_upload(Bucket=bucket, Key="to")["UploadId"]
    where = {"Bucket": bucket, "Key": "to", "UploadId": upload, "CopySource": f"{bucket}/from"}
    part = s3.upload_part_copy(PartNumber=1, CopySourceRange="bytes=2-5", CopySourceIfMatch=etag, **where)
    with refused("PreconditionFailed", 412):
        s3.upload_part_copy(PartNumber=2, CopySourceIfNoneMatch=etag, **where)
    with refused("InvalidArgument", 400):
        s3.upload_part_copy(PartNumber=2, CopySourceRange="bytes=5-99", **where)
    complete(s3, bucket, "to", upload, [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}])
    assert s3.get_object(Bucket=bucket, Key="to")["Body"].read() == b"2345"


@pytest.mark.parametrize(
    ("algorithm", "kind"), [("CRC32", "COMPOSITE"), ("CRC32", "FULL_OBJECT"), ("SHA256", "COMPOSITE")]
)
def test_checksums_of_multipart_objects(s3, bucket, algorithm, kind):
    pieces = [b"x" * PART, b"yz"]
    upload, parts = parts_of(s3, bucket, "k", pieces, ChecksumAlgorithm=algorithm, ChecksumType=kind)
    done = complete(s3, bucket, "k", upload, parts, ChecksumType=kind)
    head = s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    name = f"Checksum{algorithm}"
    assert (done[name], done["ChecksumType"]) == (head[name], kind)
    assert head["ChecksumType"] == kind
    if kind == "FULL_OBJECT":
        assert done[name] == b64encode(zlib.crc32(b"".join(pieces)).to_bytes(4, "big")).decode()
    else:
        assert done[name].endswith("-2")


def test_parts_have_their_own_checksums(s3, bucket):
    pieces = [b"x" * PART, b"yz"]
    upload, parts = parts_of(s3, bucket, "k", pieces, ChecksumAlgorithm="CRC32", ChecksumType="COMPOSITE")
    complete(s3, bucket, "k", upload, parts, ChecksumType="COMPOSITE")
    for number, piece in enumerate(pieces, 1):
        expected = b64encode(zlib.crc32(piece).to_bytes(4, "big")).decode()
        for ask in (s3.get_object, s3.head_object):
            told = ask(Bucket=bucket, Key="k", PartNumber=number, ChecksumMode="ENABLED")
            assert (told["ChecksumCRC32"], told["ChecksumType"]) == (expected, "COMPOSITE")


def test_conditions_hold_for_multipart_objects_with_versions(s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    upload, parts = parts_of(s3, bucket, "k", [b"1"])
    first = complete(s3, bucket, "k", upload, parts)
    upload, parts = parts_of(s3, bucket, "k", [b"2"])
    with refused("PreconditionFailed", 412):
        complete(s3, bucket, "k", upload, parts, IfMatch='"0123"')
    second = complete(s3, bucket, "k", upload, parts, IfMatch=first["ETag"])
    with refused("PreconditionFailed", 412):
        s3.put_object(Bucket=bucket, Key="k", Body=b"3", IfMatch=first["ETag"])
    assert s3.get_object(Bucket=bucket, Key="k", IfMatch=second["ETag"])["Body"].read() == b"2"
    with refused("304"):
        s3.get_object(Bucket=bucket, Key="k", IfNoneMatch=second["ETag"])
    s3.put_object(Bucket=bucket, Key="k", Body=b"3", IfMatch=second["ETag"])
    assert len(s3.list_object_versions(Bucket=bucket)["Versions"]) == 3


def test_a_completion_can_be_conditional(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"there")
    upload, parts = parts_of(s3, bucket, "k", [b"new"])
    with refused("PreconditionFailed", 412):
        complete(s3, bucket, "k", upload, parts, IfNoneMatch="*")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"there"
    complete(s3, bucket, "k", upload, parts, IfMatch=f'"{md5(b"there").hexdigest()}"')
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"new"


# --- versions -----------------------------------------------------------------------------------------


@pytest.fixture
def versioned(s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return bucket


def versions_of(s3, bucket):
    told = s3.list_object_versions(Bucket=bucket)
    rows = [(r["VersionId"], False, r["IsLatest"]) for r in told.get("Versions", [])]
    return rows + [(r["VersionId"], True, r["IsLatest"]) for r in told.get("DeleteMarkers", [])]


def test_versions_are_created_deleted_and_restored(s3, versioned):
    assert s3.get_bucket_versioning(Bucket=versioned)["Status"] == "Enabled"
    one = s3.put_object(Bucket=versioned, Key="k", Body=b"one")["VersionId"]
    two = s3.put_object(Bucket=versioned, Key="k", Body=b"two")["VersionId"]
    assert s3.get_object(Bucket=versioned, Key="k", VersionId=one)["Body"].read() == b"one"
    assert s3.get_object(Bucket=versioned, Key="k")["VersionId"] == two
    gone = s3.delete_object(Bucket=versioned, Key="k")
    assert gone["DeleteMarker"] is True
    assert set(versions_of(s3, versioned)) == {
        (two, False, False),
        (one, False, False),
        (gone["VersionId"], True, True),
    }
    with refused("NoSuchKey", 404):
        s3.get_object(Bucket=versioned, Key="k")
    with refused("MethodNotAllowed", 405):
        s3.get_object(Bucket=versioned, Key="k", VersionId=gone["VersionId"])
    with refused("NoSuchVersion", 404):
        s3.get_object(Bucket=versioned, Key="k", VersionId="1000000000.00000")
    back = s3.delete_object(Bucket=versioned, Key="k", VersionId=gone["VersionId"])
    assert (back["DeleteMarker"], back["VersionId"]) == (True, gone["VersionId"])
    assert s3.get_object(Bucket=versioned, Key="k")["Body"].read() == b"two"
    s3.delete_object(Bucket=versioned, Key="k", VersionId=two)
    assert s3.get_object(Bucket=versioned, Key="k")["Body"].read() == b"one"
    with refused("BucketNotEmpty", 409):
        s3.delete_bucket(Bucket=versioned)


def test_a_bucket_without_versions_has_none(s3, bucket):
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="k", Body=b"v")
    with refused("NoSuchVersion", 404):
        s3.get_object(Bucket=bucket, Key="k", VersionId="1000000000.00000")
    s3.delete_object(Bucket=bucket, Key="k", VersionId="1000000000.00000")
    assert versions_of(s3, bucket) == [("null", False, True)]


def test_a_multipart_version_keeps_its_parts_until_it_is_deleted(s3, versioned):
    pieces = [b"a" * PART, b"tail"]
    upload, parts = parts_of(s3, versioned, "k", pieces)
    version = complete(s3, versioned, "k", upload, parts)["VersionId"]
    s3.put_object(Bucket=versioned, Key="k", Body=b"newer")
    s3.put_bucket_versioning(Bucket=versioned, VersioningConfiguration={"Status": "Suspended"})
    s3.delete_object(Bucket=versioned, Key="k")
    got = s3.get_object(Bucket=versioned, Key="k", VersionId=version)
    assert got["Body"].read() == b"".join(pieces)
    copied = {"Bucket": versioned, "Key": "k", "VersionId": version}
    s3.copy_object(Bucket=versioned, Key="copy", CopySource=copied)
    assert s3.head_object(Bucket=versioned, Key="copy")["ContentLength"] == PART + 4
    s3.delete_object(Bucket=versioned, Key="k", VersionId=version)
    with refused("404"):
        s3.head_object(Bucket=versioned, Key="k", VersionId=version)


# --- tags, ACLs, attributes ---------------------------------------------------------------------------


def test_tags_of_objects(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"v", Tagging="a=1&b=%C3%BC", Metadata={"m": "kept"})
    assert (
        s3.head_object(Bucket=bucket, Key="k")["ResponseMetadata"]["HTTPHeaders"]["x-amz-tagging-count"]
        == "2"
    )
    assert s3.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == [
        {"Key": "a", "Value": "1"},
        {"Key": "b", "Value": "ü"},
    ]
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": "c", "Value": "d"}]})
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/k")
    assert s3.get_object_tagging(Bucket=bucket, Key="copy")["TagSet"] == [{"Key": "c", "Value": "d"}]
    s3.delete_object_tagging(Bucket=bucket, Key="k")
    assert s3.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == []
    head = s3.head_object(Bucket=bucket, Key="k")
    assert (head["Metadata"], head["ContentType"]) == ({"m": "kept"}, "binary/octet-stream")
    with refused("InvalidArgument", 400):
        s3.put_object(Bucket=bucket, Key="k", Body=b"", Tagging="a=1&a=2")
    with refused("BadRequest", 400):
        s3.put_object(Bucket=bucket, Key="k", Body=b"", Tagging="&".join(f"k{n}=v" for n in range(11)))


def test_tags_of_buckets(s3, bucket):
    with refused("NoSuchTagSet", 404):
        s3.get_bucket_tagging(Bucket=bucket)
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "team", "Value": "x y"}]})
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == [{"Key": "team", "Value": "x y"}]
    s3.delete_bucket_tagging(Bucket=bucket)
    with refused("NoSuchTagSet", 404):
        s3.get_bucket_tagging(Bucket=bucket)


def test_canned_acls_set_the_container_acl(cluster, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"public")
    path = f"/v1/AUTH_test/{bucket}/k"
    assert cluster.raw("GET", path, {}).status == 401
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read")
    assert cluster.raw("GET", path, {}).body == b"public"
    grants = s3.get_bucket_acl(Bucket=bucket)["Grants"]
    assert {g["Permission"] for g in grants} == {"FULL_CONTROL", "READ"}
    s3.put_bucket_acl(Bucket=bucket, ACL="private")
    assert cluster.raw("GET", path, {}).status == 401
    with refused("InvalidArgument", 400):
        s3.put_bucket_acl(Bucket=bucket, ACL="nonsense")
    with refused("NotImplemented", 501):
        s3.put_bucket_acl(Bucket=bucket, ACL="authenticated-read")
    assert s3.get_object_acl(Bucket=bucket, Key="k")["Owner"]["ID"] == "test:tester"


def test_attributes_of_objects(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"12345")
    requested = ["ETag", "Checksum", "ObjectSize", "StorageClass", "ObjectParts"]
    told = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=requested)
    assert (told["ObjectSize"], told["ETag"]) == (5, md5(b"12345").hexdigest())
    assert "ChecksumCRC32" in told["Checksum"]
    assert "ObjectParts" not in told
    upload, parts = parts_of(s3, bucket, "big", [b"a" * PART, b"b"])
    complete(s3, bucket, "big", upload, parts)
    told = s3.get_object_attributes(Bucket=bucket, Key="big", ObjectAttributes=["ObjectParts"])
    assert told["ObjectParts"]["TotalPartsCount"] == 2
    assert [p["Size"] for p in told["ObjectParts"]["Parts"]] == [PART, 1]
    upload, parts = parts_of(s3, bucket, "summed", [b"a" * PART, b"b"], ChecksumAlgorithm="SHA256")
    complete(s3, bucket, "summed", upload, parts)
    told = s3.get_object_attributes(Bucket=bucket, Key="summed", ObjectAttributes=["ObjectParts"])
    sums = [part["ChecksumSHA256"] for part in told["ObjectParts"]["Parts"]]
    assert sums == [part["ChecksumSHA256"] for part in parts]


# --- what clients ask for by default ------------------------------------------------------------------


def test_a_new_cluster_serves_the_default_requests_of_clients(s3, bucket):
    requested = {"ServerSideEncryption": "AES256", "StorageClass": "STANDARD_IA"}
    told = s3.put_object(Bucket=bucket, Key="k", Body=b"data", **requested)
    assert told["ServerSideEncryption"] == "AES256"
    upload = s3.create_multipart_upload(Bucket=bucket, Key="m", **requested)
    part = s3.upload_part(Bucket=bucket, Key="m", UploadId=upload["UploadId"], PartNumber=1, Body=b"data")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(Bucket=bucket, Key="m", UploadId=upload["UploadId"], MultipartUpload=parts)
    for key in ("k", "m"):
        found = s3.get_object(Bucket=bucket, Key=key)
        assert found["Body"].read() == b"data"
        assert (found["ServerSideEncryption"], found["StorageClass"]) == ("AES256", "STANDARD_IA")
    rows = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert {row["StorageClass"] for row in rows} == {"STANDARD_IA"}
    s3.put_object(Bucket=bucket, Key="r", Body=b"data", StorageClass="REDUCED_REDUNDANCY")
    assert s3.head_object(Bucket=bucket, Key="r")["StorageClass"] == "REDUCED_REDUNDANCY"
    s3.put_object(Bucket=bucket, Key="k", Body=b"data", StorageClass="STANDARD")
    assert "StorageClass" not in s3.head_object(Bucket=bucket, Key="k")
    requested = {"Bucket": bucket, "Key": "k", "ObjectAttributes": ["StorageClass"]}
    assert s3.get_object_attributes(**requested)["StorageClass"] == "STANDARD"


# --- emptying versioned buckets -----------------------------------------------------------------------

KEYS_TO_EMPTY, VERSIONS_OF_EACH = 24, 3


def _versions_of(s3, bucket):
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=bucket)
    rows = [row for page in pages for kind in ("Versions", "DeleteMarkers") for row in page.get(kind, ())]
    return [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in rows]


@pytest.mark.long
@pytest.mark.parametrize("way", ["many", "single"])
def test_a_versioned_bucket_is_emptied_by_concurrent_deletions(s3, bucket, way):
    """One request for all versions, the newest first; and three clients that delete one after another."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for number in range(KEYS_TO_EMPTY * VERSIONS_OF_EACH):
        s3.put_object(Bucket=bucket, Key=f"k{number % KEYS_TO_EMPTY}", Body=f"{number}".encode())
    found = _versions_of(s3, bucket)
    assert len(found) == KEYS_TO_EMPTY * VERSIONS_OF_EACH
    if way == "many":
        response = s3.delete_objects(Bucket=bucket, Delete={"Objects": found})
        assert len(response["Deleted"]) == len(found), response.get("Errors")
    else:
        with ThreadPoolExecutor(3) as pool:
            responses = list(pool.map(lambda version: s3.delete_object(Bucket=bucket, **version), found))
        assert len(responses) == len(found)
    # One replica of a listing may get a row a moment after the request.
    give_up = time.monotonic() + 10
    while (found := s3.list_objects_v2(Bucket=bucket))["KeyCount"] and time.monotonic() < give_up:
        time.sleep(0.1)
    assert found["KeyCount"] == 0, [(row["Key"], row["LastModified"]) for row in found["Contents"]]
    assert _versions_of(s3, bucket) == []
    s3.delete_bucket(Bucket=bucket)


def test_racing_deletions_and_uploads_of_one_key_all_succeed(s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    def race(number):
        if number % 2:
            return s3.put_object(Bucket=bucket, Key="k", Body=b"x")["VersionId"]
        return s3.delete_object(Bucket=bucket, Key="k")["VersionId"]

    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(race, range(80)))
    assert {version["VersionId"] for version in _versions_of(s3, bucket)} == made
