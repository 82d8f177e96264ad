"""Large objects, copies and links of real sizes over real processes."""

import hashlib
import json
import os
import socket
import threading
import time

import pytest

from test.support.cluster import LiveCluster

MIB = 1 << 20
PIECES = [os.urandom(size) for size in (5 * MIB, 1, 3 * MIB + 7, 100, 6 * MIB)]
WHOLE = b"".join(PIECES)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    live = LiveCluster(tmp_path_factory.mktemp("large") / "data", ec="2+1", rest_s=LiveCluster.AT_REST_S)
    live.start()
    try:
        yield live
        assert "Traceback" not in live.log_text()
    finally:
        live.stop()


@pytest.fixture(scope="module", params=["gold", "ec"])
def manifest(cluster, request):
    """Return the path of a manifest whose segments have one policy."""
    policy = request.param
    cluster.request("PUT", f"seg-{policy}", {"X-Storage-Policy": policy})
    entries = []
    for number, piece in enumerate(PIECES):
        path = f"seg-{policy}/{number}"
        assert cluster.request("PUT", path, body=piece).status == 201
        entries.append({"path": path, "etag": hashlib.md5(piece).hexdigest(), "size_bytes": len(piece)})
    path = f"seg-{policy}/manifest"
    response = cluster.request("PUT", f"{path}?multipart-manifest=put", body=json.dumps(entries))
    assert response.status == 201
    return path


def test_a_large_object_is_the_concatenation_of_its_segments(cluster, manifest):
    response = cluster.request("GET", manifest)
    assert response.headers["content-length"] == str(len(WHOLE))
    assert response.body == WHOLE


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 0), (5 * MIB - 1, 5 * MIB + 1), (1, len(WHOLE) - 2), (8 * MIB, 8 * MIB + 300), (9 * MIB, 11 * MIB)],
)
def test_a_range_across_segment_boundaries(cluster, manifest, first, last):
    response = cluster.request("GET", manifest, {"Range": f"bytes={first}-{last}"})
    assert (response.status, response.body) == (206, WHOLE[first : last + 1])


def test_a_copy_contains_the_whole_large_object(cluster, manifest):
    cluster.request("PUT", "copies")
    assert cluster.request("COPY", manifest, {"Destination": "copies/flat"}).status == 201
    response = cluster.request("GET", "copies/flat")
    assert response.body == WHOLE
    assert response.headers["etag"].strip('"') == hashlib.md5(WHOLE).hexdigest()
    assert cluster.request("PUT", "copies/link", {"X-Symlink-Target": manifest}, b"").status == 201
    assert cluster.request("GET", "copies/link").body == WHOLE


def test_an_aborted_download_leaves_no_connection_open(cluster, manifest):
    head = f"GET /v1/AUTH_test/{manifest} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {cluster.token()}\r\n\r\n"

    def leave():
        with socket.create_connection((cluster.plan.ip, cluster.plan.proxy_port), timeout=30) as connection:
            connection.sendall(head.encode())
            connection.recv(1000)

    threads = [threading.Thread(target=leave) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cluster.request("GET", manifest).body == WHOLE


@pytest.mark.long
def test_many_tiny_segments_are_rate_limited_without_delaying_others(cluster):
    cluster.request("PUT", "tiny")
    cluster.request("PUT", "tiny/one", body=b"abcdefghij")
    entries = [{"path": "tiny/one", "range": f"{n % 10}-{n % 10}"} for n in range(1000)]
    path = "tiny/manifest"
    assert cluster.request("PUT", f"{path}?multipart-manifest=put", body=json.dumps(entries)).status == 201
    responses = []
    reader = threading.Thread(
        target=lambda: responses.append(cluster.request("GET", path, {"Range": "bytes=0-13"})), daemon=True
    )
    started = time.monotonic()
    reader.start()
    assert cluster.request("GET", "tiny/one").body == b"abcdefghij"
    assert time.monotonic() - started < 2
    reader.join(30)
    assert responses[0].body == b"abcdefghijabcd"
    assert time.monotonic() - started > 2, "ten are free, then one a second"


def test_multipart_manifest_deletion_deletes_the_segments(cluster):
    cluster.request("PUT", "gone")
    for number in range(30):
        cluster.request("PUT", f"gone/{number}", body=b"x")
    entries = [{"path": f"gone/{number}"} for number in range(30)]
    cluster.request("PUT", "gone/manifest?multipart-manifest=put", body=json.dumps(entries))
    response = cluster.request("DELETE", "gone/manifest?multipart-manifest=delete")
    assert b"Number Deleted: 31\n" in response.body
    cluster.await_true(lambda: cluster.request("GET", "gone").status == 204, "the container is empty")
    assert cluster.request("DELETE", "gone").status == 204


@pytest.mark.parametrize(
    "body",
    [b"[" * 4_000_000, b'{"a":' * 1_000_000, b'[{"path":"/a/b"},' * 400_000, b"\x00" * MIB],
    ids=["deep list", "deep object", "long", "zeros"],
)
def test_hostile_manifests_are_refused_at_once(cluster, body):
    cluster.request("PUT", "hostile")
    started = time.monotonic()
    response = cluster.request("PUT", "hostile/m?multipart-manifest=put", body=body)
    assert response.status in (400, 413)
    assert time.monotonic() - started < 5
    assert cluster.request("HEAD", "hostile/m").status == 404
