"""Servers of a live cluster begin to demand signatures, node by node under load, and change the secret."""

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from swift.cluster.serverauth import LOOK_EVERY_S, ServerSecrets, Signer, make_secret
from swift.runtime.notify import READY, reload_address
from swift.wire.http1 import request_head
from test.support.cluster import LiveCluster

KINDS = ("account", "container", "object")
NODES = 3
#: After it all processes use a changed file.
SEEN_S = LOOK_EVERY_S + 0.3


OLD, NEW = f"1 {make_secret()}", f"2 {make_secret()}"
EVERYWHERE = range(NODES + 1)
_COUNTS = re.compile(r'swift_server_auth_requests_total{.*result="(\w+)".*} (\S+)')


class AuthCluster(LiveCluster):
    """A cluster whose nodes and proxy have configuration directories of their own, as on several hosts."""

    def start(self):
        self.folders = {n: self.plan.etc / f"own{n}" for n in (0, *self.plan.node_numbers())}
        super().start()

    def _pack(self, node):
        """Give a node a directory of its own; it keeps the engine."""
        own = self.folders[node]
        own.mkdir(exist_ok=True)
        for path in self.plan.etc.glob("*.ring.gz"):
            if not (own / path.name).exists():
                (own / path.name).symlink_to(path)
        (own / "swift.conf").write_text((self.plan.etc / "swift.conf").read_text())
        for kind in KINDS:
            conf = self.plan.etc / f"{kind}-server" / f"{node}.conf"
            conf.write_text(
                conf.read_text().replace(f"swift_dir = {self.plan.etc}\n", f"swift_dir = {own}\n")
            )
        (self.plan.etc / "server.secret").unlink(missing_ok=True)

    def folder(self, node):
        """Return the directory of a node; 0 is the proxy and the daemons with pipelines."""
        return self.folders[node] if node else self.plan.etc

    def write_secrets(self, node, *lines):
        path = self.folder(node) / "server.secret"
        new = path.with_suffix(".new")
        new.touch(0o600)
        new.write_text("".join(f"{line}\n" for line in lines))
        new.replace(path)

    def set_mode(self, node, mode):
        """Change the mode of a node's servers by a seamless reload."""
        conf = self.folder(node) / "swift.conf"
        conf.write_text(re.sub(r"(?m)^mode = \w+$", f"mode = {mode}", conf.read_text()))
        self.reload(*(f"{kind}-{node}" for kind in KINDS))

    def reload(self, *names):
        """Reload servers at once."""
        with contextlib.ExitStack() as stack:
            sockets = []
            for pid in map(self.pid, names):
                ready = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
                ready.bind(reload_address(pid))
                ready.settimeout(100)
                os.kill(pid, signal.SIGUSR1)
                sockets.append(ready)
            for ready in sockets:
                while ready.recv(256) != READY.encode():
                    continue

    def results(self):
        """Return result → number of requests, of all storage servers."""
        found = Counter()
        for node in self.plan.node_numbers():
            for kind in KINDS:
                page = self.raw("GET", "/metrics", port=self.plan.metrics_port(kind, node)).body.decode()
                for result, count in _COUNTS.findall(page):
                    found[result] += int(float(count))
        return Counter({result: count for result, count in found.items() if count})


class Client(threading.Thread):
    """Writes, reads and removes objects until it is stopped; ``seen`` has what was not as it should be."""

    def __init__(self, cluster, number):
        super().__init__()
        self.cluster, self.number = cluster, number
        self.stopping = threading.Event()
        self.turns = 0
        self.seen = Counter()

    def run(self):
        while not self.stopping.is_set():
            self.turns += 1
            name = f"c/{self.number}-{self.turns % 20}"
            body = b"x" * (1000 if self.turns % 3 else 300_000)
            for method, sent, good in (
                ("PUT", body, 201),
                ("GET", None, 200),
                ("POST", None, 202),
                ("DELETE", None, 204),
            ):
                try:
                    response = self.cluster.request(method, name, {"Content-Type": "a/b"}, sent)
                except (OSError, http.client.HTTPException) as error:
                    self.seen[f"{method}: {error!r}"] += 1
                    continue
                if response.status != good or (method == "GET" and response.body != body):
                    self.seen[f"{method}: {response.status}"] += 1


@contextlib.contextmanager
def running(folder):
    """Run a cluster that authenticates nothing yet."""
    made = AuthCluster(
        folder,
        nodes=NODES,
        ec="2+1",
        server_auth="off",
        storage_workers=2,
        packed_nodes=range(1, NODES + 1),
    )
    made.start()
    try:
        assert made.request("PUT", "c").status == 201
        yield made
    finally:
        made.stop()


@pytest.fixture
def fresh(tmp_path):
    with running(tmp_path / "auth") as made:
        yield made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster that demands signatures."""
    with running(tmp_path_factory.mktemp("auth")) as made:
        for node in EVERYWHERE:
            made.write_secrets(node, OLD)
        time.sleep(SEEN_S)
        for node in made.plan.node_numbers():
            made.set_mode(node, "require")
        yield made


@pytest.fixture
def load(fresh):
    """Return a function that checks what clients under load have seen so far."""
    clients = [Client(fresh, number) for number in range(2)]
    for client in clients:
        client.start()

    def check():
        for client in clients:
            assert not client.seen, client.seen

    yield check
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.join()
    check()
    assert all(client.turns > 5 for client in clients)


@pytest.mark.long
def test_it_is_turned_on_and_the_secret_replaced_under_load_without_a_refused_request(fresh, load):
    for node in EVERYWHERE:
        fresh.write_secrets(node, OLD)
    time.sleep(SEEN_S)
    for node in fresh.plan.node_numbers():
        fresh.set_mode(node, "require")
        load()
    time.sleep(2)
    assert set(fresh.results()) == {"signed"}
    for lines in ((OLD, NEW), (NEW, OLD), (NEW,)):
        for node in EVERYWHERE:
            fresh.write_secrets(node, *lines)
            time.sleep(0.2)
        time.sleep(SEEN_S)
        load()
    assert set(fresh.results()) == {"signed"}


@pytest.mark.long
def test_every_daemon_signs_its_requests(cluster):
    assert cluster.request("PUT", "ec", {"X-Storage-Policy": "ec"}).status in (201, 202)
    for number in range(6):
        for container in ("c", "ec"):
            assert (
                cluster.request("PUT", f"{container}/d{number}", {"X-Delete-After": "1"}, b"x" * 5000).status
                == 201
            )
    cluster.wipe_objects(1)
    for daemon in ("object-replicator", "object-reconstructor", "object-updater", "object-expirer"):
        cluster.run_once(daemon, 2)
    for daemon in (
        "container-replicator",
        "container-updater",
        "container-sharder",
        "account-replicator",
        "account-reaper",
    ):
        cluster.run_once(daemon, 2)
    assert set(cluster.results()) == {"signed"}
    assert "Refused" not in cluster.log_text() and "refused " not in cluster.log_text()


def test_commands_sign_their_requests(cluster):
    assert cluster.request("PUT", "c/audited", None, b"x").status == 201
    done = subprocess.run(
        [sys.executable, "-m", "swift.cli.account_audit", "-r", str(cluster.plan.etc), "AUTH_test/c/audited"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert set(cluster.results()) == {"signed"}


def send(port, head):
    """Send a head to a storage server; return the status line and the body."""
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(head)
        response = http.client.HTTPResponse(sock)
        response.begin()
        return response.status, response.read().decode()


def test_foreign_and_recorded_requests_are_refused(cluster):
    port = cluster.plan.port("container", 1)
    path = f"/{cluster.plan.device(1)}/0/AUTH_test/c"
    host = f"127.0.0.1:{port}"
    status, text = send(port, request_head("GET", path, host, {}))
    assert (status, text) == (403, "Refused: the request has no signature of a server.\n")
    LiveCluster.await_true(lambda: cluster.results()["unsigned"] == 1, "it is counted", 10)
    signer = Signer(ServerSecrets(str(cluster.folder(1) / "server.secret")))
    head = request_head("GET", path, host, {})
    signed = head[:-2] + signer.line(signer.text_of("GET", path, host, {})) + b"\r\n"
    # Connections go to both workers.
    first, *others = [send(port, signed)[0] for _ in range(8)]
    assert first != 403 and others == [403] * 7
    cluster.reload("container-1")
    assert send(port, signed) == (403, "Refused: a request with this signature was served before.\n")
    # The same at another node, and at another server of the same node.
    again = head[:-2] + signer.line(signer.text_of("GET", path, host, {})) + b"\r\n"
    for other in (cluster.plan.port("container", 2), cluster.plan.port("account", 1)):
        assert (
            send(other, again)[1]
            == "Refused: the request is signed for another address than this server's.\n"
        )
    assert send(port, again)[0] != 403
    LiveCluster.await_true(lambda: "refused GET from 127.0.0.1" in cluster.log_text(), "it is logged", 10)


def test_open_pages_need_no_signature(cluster):
    port = cluster.plan.port("object", 1)
    for method, path in (("GET", "/healthcheck"), ("GET", "/recon/version"), ("OPTIONS", "/")):
        assert cluster.raw(method, path, port=port).status == 200, path
    page = cluster.raw("GET", "/recon/serverauth/container", port=cluster.plan.port("container", 1)).json()
    assert (page["mode"], len(page["key_ids"])) == ("require", 1)


@pytest.mark.long
def test_a_proxy_without_the_secret_serves_nothing(cluster):
    """It responds with 503, not with 403 or 404, which would tell something about the object."""
    assert cluster.request("PUT", "c/kept", None, b"x").status == 201
    cluster.write_secrets(0, f"2 {make_secret()}")
    time.sleep(SEEN_S)
    try:
        assert cluster.request("GET", "c/kept").status == 503
        assert cluster.request("PUT", "c/kept", None, b"y").status == 503
    finally:
        cluster.write_secrets(0, OLD)
    time.sleep(SEEN_S)
    LiveCluster.await_true(lambda: cluster.request("GET", "c/kept").body == b"x", "it is served again", 90)
