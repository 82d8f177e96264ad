"""A container is copied to another cluster, whose proxy is ours or the peer's, in both styles of signing."""

import hashlib
import json
import subprocess

import pytest

from swift.aio.make import make_cluster
from swift.aio.supervisor import accepts_connections
from test.support.cluster import LiveCluster
from test.support.peer import can_hide_etc, environment, needs_peer, peer_command
from test.support.processes import free_ports

BIG = b"0123456789" * 50_000
ETAG = hashlib.md5(b"target").hexdigest()


class DestinationCluster(LiveCluster):
    """The destination cluster, with a proxy of the peer on demand."""

    child = None

    def start_peer(self):
        """Start a proxy of the peer and return its port."""
        (port,) = free_ports(1)
        conf = self.plan.root / "peer-proxy.conf"
        text = (self.plan.etc / "proxy-server.conf").read_text()
        conf.write_text(text.replace(f"bind_port = {self.plan.proxy_port}", f"bind_port = {port}"))
        words = peer_command("swift-proxy-server", conf, "-v", swift_dir=self.plan.etc)
        with open(self.plan.logs / "peer-proxy.txt", "ab") as log:
            self.child = subprocess.Popen(
                words, stdout=log, stderr=log, env=environment(), start_new_session=True
            )
        self.await_true(lambda: accepts_connections(self.plan.ip, port), "the peer's proxy answers", 60)
        return port

    def stop(self):
        if self.child is not None:
            self.child.terminate()
            self.child.wait(20)
        super().stop()


@pytest.fixture
def clusters(tmp_path):
    """Two clusters, not started yet."""
    options = {"nodes": 1, "replicas": 1, "proxy_workers": 0}
    near, far = LiveCluster(tmp_path / "near", **options), DestinationCluster(tmp_path / "far", **options)
    for cluster in (near, far):
        cluster.plan.root.mkdir()
        make_cluster(cluster.plan)
    yield near, far
    far.stop()
    near.stop()


def write_realms(near, far, port):
    text = f"[team]\nkey = shared\ncluster_far = http://127.0.0.1:{port}/v1/\n"
    for cluster in (near, far):
        (cluster.plan.etc / "container-sync-realms.conf").write_text(text)


def names(cluster):
    response = cluster.request("GET", "copy?format=json")
    return [row["name"] for row in json.loads(response.body)] if response.status == 200 else []


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        "ours",
        pytest.param(
            "peer",
            marks=[
                pytest.mark.peer,
                needs_peer,
                pytest.mark.skipif(
                    not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"
                ),
            ],
        ),
    ],
)
def test_a_container_is_copied_and_stays_in_sync(clusters, kind):
    near, far = clusters
    write_realms(near, far, far.plan.proxy_port)
    far.start()
    port = far.start_peer() if kind == "peer" else far.plan.proxy_port
    write_realms(near, far, port)
    near.start()
    key = {"X-Container-Sync-Key": "secret"}
    assert far.request("PUT", "copy", headers=key).status == 201
    sync_to = {"X-Container-Sync-To": "//team/far/AUTH_test/copy", **key}
    assert near.request("PUT", "c", headers=sync_to).status == 201
    link = {"X-Symlink-Target": "plain/%C3%A9", "X-Symlink-Target-Etag": ETAG}
    assert near.request("PUT", "plain").status == 201
    assert near.request("PUT", "plain/é", body=b"target").status == 201
    assert near.request("PUT", "c/static", headers=link, body=b"").status == 201
    near.await_true(lambda: names(far) == ["static"], "the link is over there", 60)
    copied = far.request("HEAD", "copy/static?symlink=get").headers
    expected = {name.lower(): value for name, value in link.items()}
    assert {name: copied.get(name) for name in expected} == expected
    assert near.request("DELETE", "c/static").status == 204
    meta = {"X-Object-Meta-Color": "red", "Content-Type": "text/x"}
    assert near.request("PUT", "c/a b", headers=meta, body=b"hello").status == 201
    assert near.request("PUT", "c/big", body=BIG).status == 201
    near.await_true(lambda: names(far) == ["a b", "big"], "both objects are over there", 60)
    copy = far.request("GET", "copy/a b")
    assert (copy.body, copy.headers["x-object-meta-color"]) == (b"hello", "red")
    assert copy.headers["content-type"] == "text/x"
    assert copy.headers["x-timestamp"] == near.request("GET", "c/a b").headers["x-timestamp"]
    assert far.request("GET", "copy/big").body == BIG
    assert near.request("DELETE", "c/big").status == 204
    near.await_true(lambda: names(far) == ["a b"], "the deletion has followed", 60)
    assert near.request("POST", "c/a b", headers={"X-Object-Meta-Color": "blue"}).status == 202
    near.await_true(
        lambda: far.request("HEAD", "copy/a b").headers.get("x-object-meta-color") == "blue",
        "the new metadata are over there",
        60,
    )
    assert "Traceback" not in near.log_text() + far.log_text()
