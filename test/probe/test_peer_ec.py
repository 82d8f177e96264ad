"""Erasure coded objects are shared with the peer: proxies and object servers of both kinds, the same devices.

Needs root, because the peer must see an /etc/swift of its own.
"""

import hashlib
import http.client
import random
import subprocess

import pytest

from swift.aio.supervisor import accepts_connections
from test.support.cluster import Answer, LiveCluster
from test.support.peer import can_hide_etc, environment, needs_peer, peer_command
from test.support.processes import free_ports

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]

SIZES = [0, 1, 70_000, 1_048_576, 2_500_000]


class Mixed(LiveCluster):
    """Our cluster with a proxy of the peer beside ours, and object servers of either kind."""

    def start(self):
        super().start()
        self._peers = []
        [self.peer_port] = free_ports(1)
        conf = self.plan.root / "peer-proxy.conf"
        text = (self.plan.etc / "proxy-server.conf").read_text()
        conf.write_text(text.replace(f"bind_port = {self.plan.proxy_port}", f"bind_port = {self.peer_port}"))
        self._run_peer("swift-proxy-server", conf, self.peer_port)

    def _run_peer(self, command, conf, port):
        words = peer_command(command, conf, "-v", swift_dir=self.plan.etc)
        with open(self.plan.logs / f"peer-{port}.txt", "ab") as log:
            child = subprocess.Popen(words, stdout=log, stderr=log, env=environment(), start_new_session=True)
        self._peers.append(child)
        self.await_true(
            lambda: accepts_connections(self.plan.ip, port) or child.poll() is not None,
            f"{command} answers",
            60,
        )
        assert child.poll() is None, (self.plan.logs / f"peer-{port}.txt").read_text()

    def give_to_peer(self, *nodes):
        """Serve these nodes' devices by the peer's object server."""
        for node in nodes:
            self.kill(f"object-{node}")
            self.start_peer(node)

    def start_peer(self, node):
        """Start the peer's object server on a node without a server."""
        conf = self.plan.etc / "object-server" / f"{node}.conf"
        self._run_peer("swift-object-server", conf, self.plan.port("object", node))

    def by_peer(self, method, path, headers=None, body=None):
        """Send a request to the peer's proxy."""
        connection = http.client.HTTPConnection(self.plan.ip, self.peer_port, timeout=60)
        try:
            merged = {"X-Auth-Token": self.token(), **(headers or {})}
            connection.request(method, f"/v1/AUTH_test/{path}", body=body, headers=merged)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def stop(self):
        for child in self._peers:
            child.terminate()
        for child in self._peers:
            child.wait(20)
        super().stop()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    live = Mixed(tmp_path_factory.mktemp("mixed") / "data", ec="2+1", proxy_workers=0)
    live.start()
    try:
        assert live.request("PUT", "c", {"X-Storage-Policy": "ec"}).status == 201
        yield live
    finally:
        live.stop()


@pytest.fixture(scope="module", params=["our object servers", "a mixture", "the peer's object servers"])
def proxies(request, mixed):
    """Both proxies, over object servers of one kind or the other."""
    mixed.give_to_peer(*{"a mixture": (1, 2), "the peer's object servers": (3, 4)}.get(request.param, ()))
    return {"ours": mixed.request, "theirs": mixed.by_peer}


def facts(answer):
    """Return the parts of a response that must not depend on the server's kind."""
    names = ("etag", "content-length", "content-range", "last-modified", "accept-ranges", "x-timestamp")
    return answer.status, {n: answer.headers.get(n) for n in names}, hashlib.md5(answer.body).hexdigest()


@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("size", SIZES)
def test_both_kinds_of_proxies_read_all_objects_alike(proxies, writer, size):
    body = random.Random(size).randbytes(size)
    path = f"c/{writer}-{size}"
    put = proxies[writer]("PUT", path, {"Content-Type": "text/plain"}, body)
    assert (put.status, put.headers["etag"]) == (201, hashlib.md5(body).hexdigest())
    for method in ("GET", "HEAD"):
        ours, theirs = (proxies[who](method, path) for who in ("ours", "theirs"))
        assert facts(ours) == facts(theirs)
        assert ours.status == 200 and (method == "HEAD" or ours.body == body)
    for text in ("0-9", "-5", "1048570-1048580", f"{size}-", "0-0,3-4"):
        headers = {"Range": f"bytes={text}"}
        ours, theirs = (proxies[who]("GET", path, headers) for who in ("ours", "theirs"))
        assert ours.status == theirs.status
        if "," not in text:
            assert facts(ours) == facts(theirs), text


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_conditions_posts_and_deletions_get_equal_responses(proxies, writer):
    path, etag = f"c/cond-{writer}", hashlib.md5(b"x" * 100).hexdigest()
    assert proxies[writer]("PUT", path, {}, b"x" * 100).status == 201
    for headers in ({"If-None-Match": f'"{etag}"'}, {"If-Match": '"no"'}, {"If-None-Match": "*"}):
        assert {who: ask("GET", path, headers).status for who, ask in proxies.items()} == {
            "ours": (status := 412 if "If-Match" in headers else 304),
            "theirs": status,
        }
    assert proxies[writer]("PUT", path, {"If-None-Match": "*"}, b"y").status == 412
    assert proxies[writer]("PUT", path, {"ETag": "0" * 32}, b"y").status == 422
    assert proxies[writer]("POST", path, {"X-Object-Meta-A": "1"}).status == 202
    assert {ask("HEAD", path).headers["x-object-meta-a"] for ask in proxies.values()} == {"1"}
    assert proxies[writer]("DELETE", path).status == 204
    assert {ask("GET", path).status for ask in proxies.values()} == {404}


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_listings_describe_objects_of_both_kinds_alike(proxies, writer):
    body = b"z" * 12345
    proxies[writer]("PUT", f"c/row-{writer}", {}, body)
    for ask in proxies.values():
        [row] = ask("GET", f"c?format=json&prefix=row-{writer}").json()
        assert (row["bytes"], row["hash"]) == (len(body), hashlib.md5(body).hexdigest())
