"""The expirer removes expired objects from disks, listings and its queue."""

import json
import time

import pytest

from test.support.cluster import LiveCluster
from test.support.databases import rows_of


@pytest.fixture(scope="module", params=["gold", "ec"])
def cluster(request, tmp_path_factory):
    cluster = LiveCluster(tmp_path_factory.mktemp("expiring"), proxy_workers=1, ec="2+1")
    cluster.start()
    assert cluster.request("PUT", "c", headers={"X-Storage-Policy": request.param}).status == 201
    yield cluster
    cluster.stop()


def names(cluster):
    return [row["name"] for row in cluster.request("GET", "c?format=json").json()]


def queued(cluster):
    """Return the tasks that any server of the expirer's queue still lists."""
    left = []
    for path in cluster.files("containers/*/*/*/*.db"):
        if rows_of(path, "SELECT account FROM container_info") == [(".expiring_objects",)]:
            left += rows_of(path, "SELECT name FROM object WHERE deleted = 0")
    return left


@pytest.mark.long
def test_only_expired_objects_are_deleted(cluster):
    soon = str(int(time.time()) + 3)
    assert cluster.request("PUT", "c/soon ä", headers={"X-Delete-At": soon}, body=b"x").status == 201
    assert cluster.request("PUT", "c/later", headers={"X-Delete-After": "9999"}, body=b"x").status == 201
    assert cluster.request("PUT", "c/saved", headers={"X-Delete-At": soon}, body=b"x").status == 201
    assert cluster.request("POST", "c/saved", headers={"X-Remove-Delete-At": "x"}).status == 202
    assert names(cluster) == ["later", "saved", "soon ä"]
    cluster.await_true(
        lambda: names(cluster) == ["later", "saved"], "the expired object is listed no more", 60
    )
    assert cluster.request("GET", "c/soon%20%C3%A4").status == 404
    assert cluster.request("GET", "c/saved").body == b"x"
    cluster.await_true(
        lambda: not [name for (name,) in queued(cluster) if "soon" in name], "the task has left the queue"
    )
    assert "Traceback" not in cluster.log_text()


@pytest.mark.long
def test_segments_queued_for_the_expirer_are_deleted(cluster):
    assert cluster.request("PUT", "c/segment", body=b"x" * 10).status == 201
    manifest = json.dumps([{"path": "/c/segment"}]).encode()
    assert cluster.request("PUT", "c/large?multipart-manifest=put", body=manifest).status == 201
    assert cluster.request("DELETE", "c/large?multipart-manifest=delete&async=on").status == 204
    # The segment may have been written in the same second as the deletion was requested.
    cluster.await_true(lambda: "segment" not in names(cluster), "the segment is listed no more", 60)
    assert cluster.request("GET", "c/segment").status == 404
