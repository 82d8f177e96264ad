"""Container sync and expiration in clusters that encrypt all objects."""

import base64
import json
import time
from hashlib import md5

import pytest

from swift.aio.make import make_cluster
from swift.http.headers import lower_name
from test.support.cluster import LiveCluster, with_filters
from test.support.transcripts import Asker

BODY = b"what nobody may read on a disk " * 10
BIG = BODY * 3000
#: Latin-1 views of names that HTTP forbids and OpenStack Swift keeps, and of long ones.
ODD_NAMES = ("\xc3\xa8", "\xc3\x89\xc3\xa8Mixed", "\xff", "a b", 'q"(x)', "n" * 128)
PLACES = {"keymaster": "proxy-server", "encryption": "proxy-server"}


def make_encrypted(root, secret, **choices):
    """Return a cluster, not started yet, whose proxy and daemon pipelines all encrypt."""
    cluster = LiveCluster(root, proxy_workers=0, **choices)
    cluster.plan.root.mkdir()
    make_cluster(cluster.plan)
    key = base64.b64encode(secret * 32).decode()
    keymaster = f"\n[filter:keymaster]\nuse = egg:swift#keymaster\nencryption_root_secret = {key}\n"
    for name in ("proxy-server.conf", "internal-client.conf"):
        conf = cluster.plan.etc / name
        conf.write_text(with_filters(conf.read_text(), PLACES, keymaster))
    return cluster


def check_encrypted(cluster, count):
    """Fail if a stored object contains its plain bytes."""
    stored = cluster.stored()
    assert len(stored) == count
    assert not [each for each in stored if BODY[:16] in each.body()]


def rows(cluster, container):
    response = cluster.request("GET", f"{container}?format=json")
    return {row["name"]: row["hash"] for row in json.loads(response.body)} if response.status == 200 else {}


@pytest.fixture
def clusters(tmp_path):
    """Two clusters with different secrets; container sync copies from the first to the second."""
    options = {"nodes": 1, "replicas": 1}
    near = make_encrypted(tmp_path / "near", b"n", **options)
    far = make_encrypted(tmp_path / "far", b"f", **options)
    realms = f"[team]\nkey = shared\ncluster_far = http://127.0.0.1:{far.plan.proxy_port}/v1/\n"
    try:
        for cluster in (near, far):
            (cluster.plan.etc / "container-sync-realms.conf").write_text(realms)
            cluster.start()
        yield near, far
    finally:
        far.stop()
        near.stop()


@pytest.mark.long
def test_a_container_is_copied_between_clusters_with_different_keys(clusters):
    near, far = clusters
    key = {"X-Container-Sync-Key": "secret"}
    assert far.request("PUT", "copy", headers=key).status == 201
    sync_to = {"X-Container-Sync-To": "//team/far/AUTH_test/copy", **key}
    assert near.request("PUT", "c", headers=sync_to).status == 201
    meta = {"X-Object-Meta-Color": "red", "Content-Type": "text/x"}
    assert near.request("PUT", "c/a b", headers=meta, body=BODY).status == 201
    assert near.request("PUT", "c/big", body=BIG).status == 201
    expected = {"a b": md5(BODY).hexdigest(), "big": md5(BIG).hexdigest()}
    near.await_true(lambda: rows(far, "copy") == expected, "both objects are over there", 60)
    copy = far.request("GET", "copy/a b")
    assert (copy.body, copy.headers["x-object-meta-color"]) == (BODY, "red")
    assert copy.headers["etag"] == md5(BODY).hexdigest()
    assert far.request("GET", "copy/big").body == BIG
    for cluster in clusters:
        check_encrypted(cluster, 2)
    ask_near, ask_far = (Asker(f"127.0.0.1:{cluster.plan.proxy_port}", cluster.token) for cluster in clusters)
    odd = {f"X-Object-Meta-{name}": f"v{number}" for number, name in enumerate(ODD_NAMES)}
    named = {lower_name(name): value for name, value in odd.items()}
    for method, path in (("PUT", "odd"), ("POST", "odd"), ("PUT", "big")):
        assert ask_near(method, f"/v1/AUTH_test/c/{path}", odd, BIG).status in (201, 202)
        told = ask_near("HEAD", f"/v1/AUTH_test/c/{path}").headers
        assert {name: told.get(name) for name in named} == named
    expected["odd"] = md5(BIG).hexdigest()
    near.await_true(lambda: rows(far, "copy") == expected, "the odd one is over there", 60)
    told = ask_far("HEAD", "/v1/AUTH_test/copy/odd").headers
    assert {name: told.get(name) for name in named} == named
    assert near.request("DELETE", "c/odd").status == 204
    assert near.request("POST", "c/a b", headers={"X-Object-Meta-Color": "blue"}).status == 202
    near.await_true(
        lambda: far.request("HEAD", "copy/a b").headers.get("x-object-meta-color") == "blue",
        "the new metadata are over there",
        60,
    )
    assert near.request("DELETE", "c/big").status == 204
    near.await_true(lambda: rows(far, "copy").keys() == {"a b"}, "the deletion has followed", 60)
    assert "Traceback" not in near.log_text() + far.log_text()


@pytest.mark.long
@pytest.mark.parametrize("policy", ["gold", "ec"])
def test_encrypted_objects_expire_and_newer_versions_stay(tmp_path, policy):
    cluster = make_encrypted(tmp_path / "aio", b"x", nodes=3, ec="2+1")
    try:
        cluster.start()
        assert cluster.request("PUT", "c", {"X-Storage-Policy": policy}).status == 201
        soon = {"X-Delete-At": str(int(time.time()) + 4)}
        for name in ("soon", "saved", "written"):
            assert cluster.request("PUT", f"c/{name}", soon, BODY).status == 201
        check_encrypted(cluster, 9)
        assert cluster.request("POST", "c/saved", {"X-Remove-Delete-At": "x"}).status == 202
        assert cluster.request("PUT", "c/written", body=BODY * 2).status == 201
        cluster.await_true(lambda: rows(cluster, "c").keys() == {"saved", "written"}, "it has expired", 60)
        assert cluster.request("GET", "c/soon").status == 404
        assert cluster.request("GET", "c/saved").body == BODY
        assert cluster.request("GET", "c/written").body == BODY * 2
        cluster.await_true(lambda: len(cluster.stored()) == 6, "nothing of it is on a disk", 60)
        assert "Traceback" not in cluster.log_text()
    finally:
        cluster.stop()
