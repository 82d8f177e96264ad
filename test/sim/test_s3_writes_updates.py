"""Read-modify-write updates of an object's metadata never undo concurrent writes."""

import time

import pytest

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.http.response import error_response
from test.sim.test_s3_objects_tagging import tags
from test.support.s3_fixtures import S3Cluster, interfere_before

KEY = "/v1/AUTH_test/bucket/key"
TAGGING, ACL = ("?tagging", {}, tags(new="1")), ("?acl", {"x-amz-acl": "public-read"}, b"")


@pytest.fixture(params=["plain", "versions"])
def bucket(sim, request):
    """The S3 API over a cluster, with an object in a bucket with or without versioning."""
    world = S3Cluster(sim, s3_acl="true")
    assert world("PUT", "/bucket").status == 200
    if request.param == "versions":
        world.versioning("bucket", "Enabled")
    assert world("PUT", "/bucket/key", {"x-amz-meta-m": "old"}, b"same").status == 200
    return world


@pytest.mark.parametrize(("method", "change"), [("POST", TAGGING), ("PUT", ACL)])
def test_an_update_conflicts_with_an_overwrite_by_identical_bytes(bucket, method, change):
    query, headers, body = change
    interfere_before(
        bucket, method, KEY, lambda: bucket("PUT", "/bucket/key", {"x-amz-meta-m": "new"}, b"same")
    )
    assert bucket("PUT", f"/bucket/key{query}", headers, body).code == "OperationAborted"
    assert bucket("HEAD", "/bucket/key").headers["x-amz-meta-m"] == "new"
    assert bucket("GET", "/bucket/key?tagging").texts("Key") == []


@pytest.mark.parametrize("change", [TAGGING, ACL])
def test_updates_without_conflicts_succeed_repeatedly(bucket, change):
    query, headers, body = change
    for _ in range(2):
        assert bucket("PUT", f"/bucket/key{query}", headers, body).status == 200
    found = bucket("GET", "/bucket/key")
    assert (found.body, found.headers["x-amz-meta-m"]) == (b"same", "old")


def test_an_upload_that_overlaps_a_tagging_keeps_its_metadata(sim):
    world = S3Cluster(sim)
    assert world("PUT", "/bucket").status == 200
    assert world("PUT", "/bucket/key", {"x-amz-meta-m": "old"}, b"same").status == 200
    began = Timestamp(time.time()).internal
    query, headers, body = TAGGING
    assert world("PUT", f"/bucket/key{query}", headers, body).status == 200
    assert world("HEAD", "/bucket/key").headers["x-amz-meta-m"] == "old"
    assert (
        sim("PUT", KEY.removeprefix("/v1"), {"x-timestamp": began, "x-object-meta-m": "new"}, b"same").status
        == 201
    )
    assert world("HEAD", "/bucket/key").headers["x-amz-meta-m"] == "new"


@pytest.mark.parametrize("change", [TAGGING, ACL])
def test_an_object_deleted_during_an_update_gets_no_metadata(bucket, change):
    query, headers, body = change
    assert bucket("DELETE", "/bucket/key").status == 204
    assert bucket("PUT", f"/bucket/key{query}", headers, body).code == "NoSuchKey"


@pytest.mark.parametrize("change", [TAGGING, ACL])
def test_nodes_without_conditional_writes_get_unconditional_requests(bucket, change):
    query, headers, body = change

    def instead(request):
        return error_response(501) if fields.BACKEND_IF_PREDECESSOR in request.headers else None

    bucket.bottom.instead = instead
    assert bucket("PUT", f"/bucket/key{query}", headers, body).status == 200
    assert bucket("GET", "/bucket/key").body == b"same"
