"""What a tier costs is counted for all processes of a server, also those that come late."""

import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from swift.base.errors import ConfigError
from tools.bench.tiercost import REQUESTS, TierContestant, _table, processor_ns
from tools.bench.tiersite import PART_POWER


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status = 200
    seen: list = []

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.seen.append((self.command, self.path, self.headers["X-Timestamp"]))
        self.send_response(self.status)
        self.send_header("content-length", "0")
        self.end_headers()

    do_PUT = do_HEAD = do_GET = answer

    def log_message(self, *_words):
        """Nothing is said."""


@pytest.fixture
def server():
    made = HTTPServer(("127.0.0.1", 0), type("Own", (Answering,), {"seen": []}))
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_a_round_is_as_many_requests_as_said_after_one_that_does_not_count(server):
    contestant = TierContestant("untiered", 3, server.server_port, os.getpid())
    contestant.round("PUT", 4096, 7)
    seen = server.RequestHandlerClass.seen
    assert [method for method, _, _ in seen] == ["HEAD", *["PUT"] * REQUESTS]
    assert {stamp for _, _, stamp in seen} == {"1700000007.00000"}
    assert all(path.startswith("/sd3/") and int(path.split("/")[2]) < 1 << PART_POWER for _, path, _ in seen)
    assert contestant.cpu_us["PUT", 4096][0] > 0 and contestant.wall_us["PUT", 4096][0] > 0


def test_an_answer_that_is_an_error_ends_it_with_a_sentence(server):
    server.RequestHandlerClass.status = 507
    with pytest.raises(ConfigError, match="HEAD of metadata was answered 507"):
        TierContestant("metadata", 1, server.server_port, os.getpid()).round("GET", 4096, 1)


def test_time_of_children_counts():
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before = processor_ns([child.pid])
        while processor_ns([child.pid]) < before + 1_000_000:
            time.sleep(0.001)
    finally:
        child.kill()
        child.wait()


def test_the_table_says_how_much_more_than_without_a_tier():
    def contestant(name, cpu, wall):
        return TierContestant(name, 0, 0, 0, {("PUT", 4096): cpu}, {("PUT", 4096): wall})

    lines = list(
        _table([contestant("untiered", [10, 20], [20, 20]), contestant("metadata", [11, 24], [20, 30])])
    )
    assert "| PUT 4 KiB | untiered | 15 | +0.0% | 20 | +0.0% |" in lines
    assert "| PUT 4 KiB | metadata | 18 | +15.0% | 25 | +25.0% |" in lines
    assert lines[-1].endswith(f"2 rounds of {REQUESTS} requests")
