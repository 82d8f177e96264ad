"""Encryption headers of the S3 API with and without cluster encryption, and customer keys."""

import base64
import os
from hashlib import md5

import pytest

from test.functional.test_s3 import client_of, refused
from test.support.cluster import LiveCluster

OPTIONS = f"""
[filter:keymaster]
use = egg:swift#keymaster
encryption_root_secret = {base64.b64encode(b"S" * 32).decode()}
"""
KEY, OTHER = b"k" * 32, b"o" * 32
DATA = b"needle in a haystack" * 5000


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    root = tmp_path_factory.mktemp("s3-encrypted") / "data"
    places = {"keymaster": "proxy-logging proxy-server", "encryption": "proxy-logging proxy-server"}
    cluster = LiveCluster(root, nodes=1, replicas=1, places=places, options=OPTIONS)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def s3(cluster):
    client = client_of(cluster)
    client.create_bucket(Bucket="sse")
    return client


@pytest.fixture(scope="module")
def sealing(encrypted):
    client = client_of(encrypted)
    client.create_bucket(Bucket="sse")
    return client


def with_key(key=KEY, prefix="SSECustomer"):
    return {f"{prefix}Algorithm": "AES256", f"{prefix}Key": key}


def with_named_key(key=KEY):
    """Return key parameters for calls in which boto3 does not encode the key."""
    key, digest = (base64.b64encode(part).decode() for part in (key, md5(key).digest()))
    return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key, "SSECustomerKeyMD5": digest}


def default(algorithm="AES256"):
    return {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": algorithm}}]}


# --- keys of the cluster ------------------------------------------------------------------------------


def test_responses_report_encryption_where_all_objects_are_encrypted(sealing):
    assert sealing.put_object(Bucket="sse", Key="a", Body=DATA)["ServerSideEncryption"] == "AES256"
    put = sealing.put_object(Bucket="sse", Key="k", Body=DATA, ServerSideEncryption="AES256")
    assert put["ServerSideEncryption"] == "AES256"
    for response in (sealing.get_object(Bucket="sse", Key="k"), sealing.head_object(Bucket="sse", Key="a")):
        assert response["ServerSideEncryption"] == "AES256"
    copy = sealing.copy_object(Bucket="sse", Key="c", CopySource="sse/k", ServerSideEncryption="AES256")
    assert copy["ServerSideEncryption"] == "AES256"
    upload = sealing.create_multipart_upload(Bucket="sse", Key="m", ServerSideEncryption="AES256")
    assert upload["ServerSideEncryption"] == "AES256"
    with refused("NotImplemented", 501):
        sealing.put_object(Bucket="sse", Key="kms", Body=b"", ServerSideEncryption="aws:kms")


def test_the_default_encryption_of_a_bucket_is_that_of_the_cluster(sealing):
    rules = sealing.get_bucket_encryption(Bucket="sse")["ServerSideEncryptionConfiguration"]["Rules"]
    assert rules[0]["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    sealing.put_bucket_encryption(Bucket="sse", ServerSideEncryptionConfiguration=default())
    sealing.delete_bucket_encryption(Bucket="sse")
    for algorithm, code in (("aws:kms", "NotImplemented"), ("ROT13", "InvalidEncryptionAlgorithmError")):
        with refused(code):
            sealing.put_bucket_encryption(Bucket="sse", ServerSideEncryptionConfiguration=default(algorithm))


# --- keys of customers --------------------------------------------------------------------------------


@pytest.fixture(params=["s3", "sealing"])
def client(request):
    return request.getfixturevalue(request.param)


def test_an_object_encrypted_with_a_customer_key_needs_that_key(client):
    put = client.put_object(Bucket="sse", Key="c", Body=DATA, Metadata={"m": "1"}, **with_key())
    assert put["SSECustomerAlgorithm"] == "AES256"
    assert put["SSECustomerKeyMD5"] == base64.b64encode(md5(KEY).digest()).decode()
    got = client.get_object(Bucket="sse", Key="c", ChecksumMode="ENABLED", **with_key())
    assert (got["Body"].read(), got["Metadata"], got["ETag"]) == (DATA, {"m": "1"}, put["ETag"])
    assert got["ChecksumCRC32"] == put["ChecksumCRC32"]
    part = client.get_object(Bucket="sse", Key="c", Range="bytes=37-4321", **with_key())
    assert part["Body"].read() == DATA[37:4322]
    assert client.head_object(Bucket="sse", Key="c", **with_key())["ContentLength"] == len(DATA)
    with refused("InvalidRequest", 400):
        client.get_object(Bucket="sse", Key="c")
    with refused("400"):
        client.head_object(Bucket="sse", Key="c")
    with refused("AccessDenied", 403):
        client.get_object(Bucket="sse", Key="c", **with_key(OTHER))


def test_a_customer_key_is_refused_for_objects_encrypted_without_one(client):
    client.put_object(Bucket="sse", Key="p", Body=DATA)
    with refused("InvalidRequest", 400):
        client.get_object(Bucket="sse", Key="p", **with_key())


def test_copies_change_keys(client):
    client.put_object(Bucket="sse", Key="from", Body=DATA, **with_key())
    source = {"CopySource": "sse/from", **with_key(prefix="CopySourceSSECustomer")}
    client.copy_object(Bucket="sse", Key="plain", **source)
    assert client.get_object(Bucket="sse", Key="plain")["Body"].read() == DATA
    client.copy_object(Bucket="sse", Key="other", **source, **with_key(OTHER))
    assert client.get_object(Bucket="sse", Key="other", **with_key(OTHER))["Body"].read() == DATA
    with refused("InvalidRequest", 400):
        client.copy_object(Bucket="sse", Key="x", CopySource="sse/from")


def test_parts_are_copied_from_objects_with_customer_keys(client):
    client.put_object(Bucket="sse", Key="from", Body=DATA, **with_key())
    upload = client.create_multipart_upload(Bucket="sse", Key="parts")["UploadId"]
    where = {"Bucket": "sse", "Key": "parts", "UploadId": upload}
    part = client.upload_part_copy(
        PartNumber=1,
        CopySource="sse/from",
        CopySourceRange="bytes=5-4999",
        **where,
        **with_key(prefix="CopySourceSSECustomer"),
    )
    parts = [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]
    client.complete_multipart_upload(MultipartUpload={"Parts": parts}, **where)
    assert client.get_object(Bucket="sse", Key="parts")["Body"].read() == DATA[5:5000]


def test_devices_contain_neither_customer_keys_nor_plain_text(cluster, s3):
    s3.put_object(Bucket="sse", Key="hidden", Body=DATA, **with_key())
    assert b"needle" not in cluster.request("GET", "sse/hidden").body
    names = [KEY, base64.b64encode(KEY), base64.b64encode(md5(KEY).digest())]
    for path in cluster.files("objects*/*/*/*/*.data"):
        held = path.read_bytes() + b"".join(os.getxattr(path, name) for name in os.listxattr(path))
        assert not any(name in held for name in names)
    assert base64.b64encode(KEY).decode() not in cluster.log_text()


# --- parts --------------------------------------------------------------------------------------------

PARTS = [os.urandom(5 << 20), os.urandom((5 << 20) + 7), b"the end"]


def upload_of(client, key, parts=PARTS, **options):
    """Complete an upload whose parts are sent with the key of its initiation."""
    upload = client.create_multipart_upload(Bucket="sse", Key=key, **with_key(), **options)
    assert upload["SSECustomerAlgorithm"] == "AES256"
    where = {"Bucket": "sse", "Key": key, "UploadId": upload["UploadId"]}
    named = []
    for number, body in enumerate(parts, 1):
        # The first upload has other bytes: a part that is sent again must not reuse its key stream.
        for sent in (b"0" * 9, body):
            part = client.upload_part(PartNumber=number, Body=sent, **where, **with_key())
        assert part["SSECustomerKeyMD5"] == base64.b64encode(md5(KEY).digest()).decode()
        sums = {name: part[name] for name in ("ChecksumCRC32",) if "ChecksumAlgorithm" in options}
        named.append({"PartNumber": number, "ETag": part["ETag"], **sums})
    client.complete_multipart_upload(MultipartUpload={"Parts": named}, **where)
    return named


def test_a_multipart_object_is_read_with_its_key_in_any_range(client):
    upload_of(client, "parts/k", ChecksumAlgorithm="CRC32")
    whole = b"".join(PARTS)
    got = client.get_object(Bucket="sse", Key="parts/k", ChecksumMode="ENABLED", **with_key())
    assert got["Body"].read() == whole and got["ChecksumCRC32"].endswith("-3")
    first = len(PARTS[0])
    for start, stop in (
        (0, 1),
        (first - 3, first + 5),
        (first, first + 1),
        (17, 2 * first + 9),
        (2 * first, len(whole)),
    ):
        part = client.get_object(Bucket="sse", Key="parts/k", Range=f"bytes={start}-{stop - 1}", **with_key())
        assert part["Body"].read() == whole[start:stop]
    for number, body in enumerate(PARTS, 1):
        part = client.get_object(Bucket="sse", Key="parts/k", PartNumber=number, **with_key())
        assert part["Body"].read() == body and part["PartsCount"] == 3
    assert client.head_object(Bucket="sse", Key="parts/k", **with_key())["ContentLength"] == len(whole)
    for ask, named in ((client.get_object, with_key), (client.get_object_attributes, with_named_key)):
        asked = {"Bucket": "sse", "Key": "parts/k"}
        if named is with_named_key:
            asked["ObjectAttributes"] = ["ObjectSize"]
        assert ask(**asked, **named())
        with refused("InvalidRequest", 400):
            ask(**asked)
        with refused("AccessDenied", 403):
            ask(**asked, **named(OTHER))


def test_parts_need_the_key_of_their_upload(client):
    sealed = client.create_multipart_upload(Bucket="sse", Key="m", **with_key())["UploadId"]
    plain = client.create_multipart_upload(Bucket="sse", Key="m")["UploadId"]
    client.put_object(Bucket="sse", Key="source", Body=DATA)
    for upload, key in ((sealed, {}), (sealed, with_key(OTHER)), (plain, with_key())):
        where = {"Bucket": "sse", "Key": "m", "UploadId": upload, "PartNumber": 1}
        with refused("InvalidRequest", 400):
            client.upload_part(Body=DATA, **where, **key)
        with refused("InvalidRequest", 400):
            client.upload_part_copy(CopySource="sse/source", **where, **key)
    for upload in (sealed, plain):
        assert "Parts" not in client.list_parts(Bucket="sse", Key="m", UploadId=upload)


def test_multipart_objects_are_copied_with_a_change_of_keys(client):
    upload_of(client, "parts/from")
    whole, first = b"".join(PARTS), len(PARTS[0])
    source = {"CopySource": "sse/parts/from", **with_key(prefix="CopySourceSSECustomer")}
    upload = client.create_multipart_upload(Bucket="sse", Key="parts/to", **with_key(OTHER))["UploadId"]
    where = {"Bucket": "sse", "Key": "parts/to", "UploadId": upload}
    copied = client.upload_part_copy(
        PartNumber=1, CopySourceRange=f"bytes={first - 9}-{2 * first}", **where, **source, **with_key(OTHER)
    )
    parts = [{"PartNumber": 1, "ETag": copied["CopyPartResult"]["ETag"]}]
    client.complete_multipart_upload(MultipartUpload={"Parts": parts}, **where)
    got = client.get_object(Bucket="sse", Key="parts/to", **with_key(OTHER))
    assert got["Body"].read() == whole[first - 9 : 2 * first + 1]
    client.copy_object(Bucket="sse", Key="parts/plain", **source)
    assert client.get_object(Bucket="sse", Key="parts/plain")["Body"].read() == whole
