"""An object server with separate workers for every port of its devices in the rings."""

import contextlib
import http.client
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from swift.aio.supervisor import accepts_connections
from swift.base.hashing import PathHasher
from swift.ring.builder import RingBuilder
from test.support.object_servers import LoadClient
from test.support.processes import free_ports

#: The directory of installed commands: swift-reload identifies servers by command names.
BIN = Path(sys.executable).parent


def partition_of(name):
    """Return the partition of ``/a/c/<name>`` in the rings below."""
    return PathHasher(b"", b"s").digest("a", "c", name)[0] >> 6


class Node:
    """The files of a node and its server process."""

    def __init__(self, root):
        self.root = root
        self.ports = free_ports(4)
        (root / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
        user = pwd.getpwuid(os.geteuid()).pw_name
        self.conf = root / "object-server.conf"
        self.conf.write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {self.ports[3]}\nuser = {user}\n"
            f"swift_dir = {root}\ndevices = {root}/dev\nmount_check = false\n"
            "servers_per_port = 2\nring_check_interval = 0.2\n"
            "[pipeline:main]\npipeline = object-server\n[app:object-server]\nuse = egg:swift#object\n"
        )
        for name in "abc":
            (root / "dev" / name).mkdir(parents=True)
        self.write_ring(2)
        with open(root / "log", "wb") as log:
            command = [BIN / "swift-object-server", str(self.conf), "-v"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def write_ring(self, count):
        builder = RingBuilder(2, 1, 1)
        for name, port in list(zip("abc", self.ports, strict=False))[:count]:
            builder.add_device(region=1, zone=1, ip="127.0.0.1", port=port, device=name, weight=1.0)
        builder.rebalance(seed=1)
        builder.write_ring(str(self.root / "object.ring.gz"))

    def workers(self):
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in path.read_text().split()]

    def await_true(self, condition, what):
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {(self.root / 'log').read_text()}"
            time.sleep(0.05)

    def serves(self, number):
        return accepts_connections("127.0.0.1", self.ports[number])

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(15)


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    yield made
    made.stop()


@pytest.mark.long
def test_every_port_of_the_rings_is_served_by_its_own_workers(node):
    node.await_true(lambda: node.serves(0) and node.serves(1), "both ports answer")
    node.await_true(lambda: len(node.workers()) == 4, "two workers a port")
    assert not node.serves(3), "bind_port counts for nothing"
    connection = http.client.HTTPConnection("127.0.0.1", node.ports[0], timeout=30)
    headers = {"X-Timestamp": "1.0", "Content-Type": "t/p"}
    connection.request("PUT", f"/a/{partition_of('o')}/a/c/o", b"x", headers)
    assert connection.getresponse().status == 201
    connection.close()

    node.write_ring(3)
    node.await_true(lambda: node.serves(2), "a new port answers")
    node.await_true(lambda: len(node.workers()) == 6, "it has two workers")

    victims = node.workers()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    node.await_true(
        lambda: len(set(node.workers()) - set(victims)) == 6 and node.serves(0), "workers are replaced"
    )

    node.write_ring(1)
    node.await_true(lambda: not node.serves(1) and not node.serves(2), "ports that are gone are closed")
    node.await_true(lambda: len(node.workers()) == 2, "their workers have ended")
    assert node.serves(0)


@pytest.mark.long
def test_a_reload_loses_no_request_at_any_port(node):
    node.await_true(lambda: node.serves(0) and node.serves(1), "both ports answer")
    node.await_true(lambda: len(node.workers()) == 4, "two workers a port")
    stop = threading.Event()
    clients = [
        LoadClient(port, stop, device=device, keeps=keeps, partition_of=partition_of)
        for port, device in zip(node.ports[:2], "ab", strict=True)
        for keeps in (False, True)
    ]
    for client in clients:
        client.start()
    try:
        for _ in range(2):
            before = set(node.workers())
            words = [BIN / "swift-reload", str(node.process.pid)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            node.await_true(lambda before=before: not before & set(node.workers()), "the former ones end")
            counts = [client.seen.total() for client in clients]
            node.await_true(
                lambda counts=counts: all(
                    client.seen.total() > count + 10 for client, count in zip(clients, counts, strict=True)
                ),
                "the new workers answer at both ports",
            )
    finally:
        stop.set()
        for client in clients:
            client.join(60)
    seen = sum((client.seen for client in clients), Counter())
    assert set(seen) == {200, 201}, seen
    assert node.process.poll() is None, "the master keeps its pid"
    node.await_true(lambda: len(node.workers()) == 4, "two workers a port again")
    node.write_ring(3)
    node.await_true(lambda: node.serves(2), "it still follows the rings")
