"""Objects of another storage class than their bucket: their bytes are stored first, in another container."""

import pytest

from swift.http.response import error_response
from swift.s3.core.call import Features
from swift.s3.core.metadata import parse_storage_classes
from test.support.s3_fixtures import S3Cluster

COLD = {"x-amz-storage-class": "COLD"}
DATA = b"the bytes of an object"


@pytest.fixture
def s3(sim):
    default = next(policy.name for policy in sim.policies if policy.is_default)
    features = Features(
        storage_classes=parse_storage_classes((f"STANDARD:{default}", "COLD:ec32"), sim.policies)
    )
    world = S3Cluster(sim, features)
    assert world("PUT", "/bucket").status == 200
    return world


def test_an_object_of_another_class_is_read_like_any_other(s3):
    put = s3("PUT", "/bucket/key", {**COLD, "content-type": "text/x", "x-amz-meta-m": "1"}, DATA)
    got = s3("GET", "/bucket/key")
    assert (got.body, got.headers["etag"]) == (DATA, put.headers["etag"])
    assert got.headers["x-amz-storage-class"] == "COLD"
    assert (got.headers["content-type"], got.headers["x-amz-meta-m"]) == ("text/x", "1")
    assert s3("GET", "/bucket/key", {"range": "bytes=4-8"}).body == DATA[4:9]
    assert s3("GET", "/bucket").texts("StorageClass") == ["COLD"]
    assert len(s3.names("bucket+COLD+segments")) == 1


def test_deleting_an_object_of_another_class_deletes_its_bytes(s3):
    s3("PUT", "/bucket/key", COLD, DATA)
    assert s3("DELETE", "/bucket/key").status == 204
    assert s3("GET", "/bucket/key").code == "NoSuchKey"
    s3("PUT", "/bucket/key", {}, DATA)
    assert "x-amz-storage-class" not in s3("HEAD", "/bucket/key").headers


@pytest.mark.parametrize("name", ["ODD", "cold!", "GLACIER", "\u00e9", "x" * 3000])
def test_an_unknown_storage_class_stores_nothing(s3, name):
    response = s3("PUT", "/bucket/key", {"x-amz-storage-class": name.encode().decode("latin-1")}, DATA)
    assert response.code in ("InvalidStorageClass", "SignatureDoesNotMatch")
    assert s3.names("bucket") == []


@pytest.mark.parametrize(("headers", "status"), [({"if-match": '"0"'}, 404), ({"if-none-match": "*"}, 412)])
def test_bytes_of_a_refused_upload_are_removed(s3, headers, status):
    if status == 412:
        s3("PUT", "/bucket/key", {}, b"there")
    assert s3("PUT", "/bucket/key", {**COLD, **headers}, DATA).status == status
    assert s3.names("bucket+COLD+segments") == []


def test_bytes_of_an_upload_with_an_unknown_outcome_are_kept(s3):
    """After a 5xx the manifest may have been stored."""
    s3.bottom.instead = lambda request: (
        error_response(503)
        if request.method == "PUT" and request.entity.path[1:] == ("bucket", "key")
        else None
    )
    assert s3("PUT", "/bucket/key", COLD, DATA).code == "ServiceUnavailable"
    assert len(s3.names("bucket+COLD+segments")) == 1


def test_deleting_a_bucket_deletes_the_containers_of_all_classes(s3):
    s3("PUT", "/bucket/key", COLD, DATA)
    s3("DELETE", "/bucket/key")
    assert s3("DELETE", "/bucket").status == 204
    assert s3.sim("HEAD", "/AUTH_test/bucket+COLD+segments").status == 404
