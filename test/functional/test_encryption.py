"""Encryption in a live cluster, right of copy, large objects and versions, in policies of both kinds."""

import base64
import hashlib
import json
import os

import pytest

from test.support.cluster import LiveCluster

OPTIONS = f"""
[filter:keymaster]
use = egg:swift#keymaster
encryption_root_secret = {base64.b64encode(b"S" * 32).decode()}
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    root = tmp_path_factory.mktemp("encrypted") / "data"
    # Before the last proxy-logging: with_filters puts it before the first that it finds.
    places = {"keymaster": "proxy-logging proxy-server", "encryption": "proxy-logging proxy-server"}
    cluster = LiveCluster(root, ec="2+1", places=places, options=OPTIONS)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def listing(live, container):
    return json.loads(live.request("GET", f"{container}?format=json").body)


@pytest.mark.parametrize("policy", ["gold", "ec"])
def test_devices_contain_no_plain_text(live, policy):
    live.request("PUT", f"c-{policy}", {"X-Storage-Policy": policy})
    data = b"needle in a haystack" * 20_000
    sent = {"X-Object-Meta-Secret": "needle-meta"}
    assert live.request("PUT", f"c-{policy}/o", sent, data).status == 201
    response = live.request("GET", f"c-{policy}/o")
    assert (response.body, response.headers["x-object-meta-secret"]) == (data, "needle-meta")
    assert response.headers["etag"] == hashlib.md5(data).hexdigest()
    part = live.request("GET", f"c-{policy}/o", {"Range": "bytes=20-39"})
    assert (part.status, part.body) == (206, data[20:40])
    row = listing(live, f"c-{policy}")[0]
    assert (row["hash"], row["bytes"]) == (hashlib.md5(data).hexdigest(), len(data))
    for path in live.files("objects*/*/*/*/*.data"):
        assert b"needle" not in path.read_bytes()
        values = [os.getxattr(path, name) for name in os.listxattr(path)]
        assert not any(b"needle-meta" in value for value in values)
    several = live.request("GET", f"c-{policy}/o", {"Range": "bytes=0-18,1000-1005"})
    assert (several.status, data[:19] in several.body, data[1000:1006] in several.body) == (206, True, True)
    for body in (b"short", data):
        wrong = live.request("PUT", f"c-{policy}/wrong", {"ETag": hashlib.md5(b"").hexdigest()}, body)
        assert wrong.status == 422
        assert live.request("GET", f"c-{policy}/wrong").status == 404
    condition = {"If-None-Match": response.headers["etag"]}
    assert live.request("GET", f"c-{policy}/o", condition).status == 304


def test_copies_large_objects_and_versions_are_encrypted(live):
    live.request("PUT", "parts")
    live.request("PUT", "big", {"X-Versions-Enabled": "true"})
    pieces = [os.urandom(100_000), os.urandom(5)]
    for number, piece in enumerate(pieces):
        assert live.request("PUT", f"parts/{number}", body=piece).status == 201
    manifest = [
        {"path": f"parts/{number}", "etag": hashlib.md5(piece).hexdigest(), "size_bytes": len(piece)}
        for number, piece in enumerate(pieces)
    ]
    query = "multipart-manifest=put"
    assert live.request("PUT", f"big/slo?{query}", body=json.dumps(manifest).encode()).status == 201
    response = live.request("GET", "big/slo")
    assert response.body == b"".join(pieces)
    assert listing(live, "big")[0]["slo_etag"] == response.headers["etag"]
    assert live.request("GET", "big/slo", {"If-None-Match": response.headers["etag"]}).status == 304
    part = live.request("GET", "big/slo", {"Range": "bytes=99998-100001"})
    assert part.body == b"".join(pieces)[99998:100002]
    copied = live.request("PUT", "big/copy", {"X-Copy-From": "parts/0", "Content-Length": "0"})
    assert copied.status == 201
    assert live.request("PUT", "big/copy", body=b"second").status == 201
    versions = json.loads(live.request("GET", "big?versions&format=json&prefix=copy").body)
    assert [row["hash"] for row in versions] == [
        hashlib.md5(b"second").hexdigest(),
        hashlib.md5(pieces[0]).hexdigest(),
    ]
    first = live.request("GET", f"big/copy?version-id={versions[1]['version_id']}")
    assert first.body == pieces[0]
    assert live.request("POST", "big/copy", {"X-Object-Meta-A": "new"}).status == 202
    head = live.request("HEAD", "big/copy")
    assert (head.headers["x-object-meta-a"], head.headers["content-length"]) == ("new", "6")
    assert "Traceback" not in live.log_text()
