"""swift-reconciler-enqueue, in a process of its own: what is written where, and what is refused."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from test.support.peer import SWIFT_CONF, make_rings, run
from test.support.processes import free_ports

STAMP = "1795228430.52472"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def do_PUT(self):
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Bench:
    def __init__(self, root, servers):
        self.root, self.servers = root, servers

    def run(self, *words):
        return run("swift-reconciler-enqueue", "-d", self.root, *words)


@pytest.fixture
def bench(tmp_path):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    servers, threads = [], []
    for _ in range(2):
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        server.asked, server.status = [], 201
        threads.append(threading.Thread(target=server.serve_forever, args=(0.01,)))
        threads[-1].start()
        servers.append(server)
    # The third server is down.
    ports = [server.server_address[1] for server in servers] + free_ports(1)
    make_rings(
        tmp_path, [("127.0.0.1", port, f"sd{n}") for n, port in enumerate(ports)], names=("container",)
    )
    yield Bench(tmp_path, servers)
    for server, thread in zip(servers, threads, strict=True):
        server.shutdown()
        thread.join()
        server.server_close()


def test_two_of_three_servers_are_enough_and_hear_the_same(bench):
    done = bench.run("1", "/AUTH_test/c/o/with/é", STAMP)
    assert done.returncode == 0 and done.stderr == ""
    container = done.stdout.strip()
    assert container.isdigit()
    for server in bench.servers:
        ((path, headers),) = server.asked
        entity = path.split("/", 3)[3].replace("%3A", ":")
        assert entity == f".misplaced_objects/{container}/1:/AUTH_test/c/o/with/%C3%A9"
        assert headers["x-timestamp"] == STAMP
        assert headers["x-content-type"] == "application/x-put"
        assert headers["x-backend-storage-policy-index"] == "0"


def test_a_deletion_and_a_repeated_order_are_told_apart(bench):
    assert bench.run("1", "/a/c/o", STAMP, "--op", "DELETE", "--force").returncode == 0
    headers = bench.servers[0].asked[0][1]
    assert headers["x-content-type"] == "application/x-delete"
    assert float(headers["x-timestamp"]) > 0 and headers["x-timestamp"] != STAMP


def test_a_minority_is_a_failure(bench):
    bench.servers[0].status = 503
    done = bench.run("1", "/a/c/o", STAMP)
    assert done.returncode == 1 and done.stdout == "" and done.stderr == "ERROR: unable to enqueue!\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("7", "/a/c/o", STAMP), "ERROR: invalid storage policy index: 7"),
        (("-1", "/a/c/o", STAMP), ""),
        (("", "/a/c/o", STAMP), "ERROR: invalid storage policy index"),
        (("²", "/a/c/o", STAMP), "ERROR: invalid storage policy index: ²"),
        (("9" * 5000, "/a/c/o", STAMP), "ERROR: invalid storage policy index"),
        (("1", "/a/c", STAMP), "ERROR: Invalid path: /a/c"),
        (("1", "a/c/o", STAMP), "ERROR: Invalid path"),
        (("1", "", STAMP), "ERROR: Invalid path"),
        (("1", "/a/c/o", "yesterday"), "ERROR: invalid timestamp: yesterday"),
        (("1", "/a/c/o", ""), "ERROR: invalid timestamp"),
    ],
)
def test_what_is_wrong_is_told_and_nobody_is_asked(bench, words, text):
    done = bench.run(*words)
    assert done.returncode != 0 and text in done.stderr and "Traceback" not in done.stderr
    assert [server.asked for server in bench.servers] == [[], []]


@pytest.mark.parametrize("words", [("1",), ("1", "/a/c/o")])
def test_an_argument_that_is_missing_is_an_error_and_not_a_success(bench, words):
    done = bench.run(*words)
    assert done.returncode == 2
    assert "a policy index, a path and a timestamp are needed" in done.stderr
