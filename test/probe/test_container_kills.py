"""A container server that is killed again and again under load loses no row that it acknowledged.

Every SIGKILL hits the server and its workers at a random point of many row updates, listings and merges. A
row that was acknowledged must be listed afterwards as it was last put (or not, when it was last deleted); one
that was under way may be there or not; the database is sound. ``SWIFT_KILLS`` asks for more kills than the
default.
"""

import http.client
import os
import random
import sqlite3
import threading

import pytest

from swift.base.hashing import PathHasher
from swift.db.connection import chexor
from test.support.cluster import LoneServer

KILLS = int(os.environ.get("SWIFT_KILLS", "5"))
THREADS = 6
NAMES = 25
CONTAINER = "/sda/3/AUTH_a/c"


def database_of(server):
    digest = PathHasher(b"", b"s").hexdigest("AUTH_a", "c")
    return server.device / "containers/3" / digest[-3:] / digest / f"{digest}.db"


class Writer(threading.Thread):
    """Puts and deletes its own rows while ``go`` is set, and requests listings in between."""

    def __init__(self, server, number, go):
        super().__init__(daemon=True)
        self.server = server
        self.go = go
        self.ended = False
        self.idle = threading.Event()
        self.random = random.Random(number)
        self.names = [f"w{number}-{n:03}" for n in range(NAMES)]
        #: Name → ETags that a listing may show now; None: the name may be missing.
        self.possible = {name: {None} for name in self.names}
        self.acknowledged = 0
        self.failure = None

    def run(self):
        while not self.ended:
            if not self.go.is_set():
                self.idle.set()
                self.go.wait(0.05)
                continue
            self.idle.clear()
            try:
                self.change(self.random.choice(self.names))
            except (OSError, http.client.HTTPException):
                continue
            except AssertionError as error:
                self.failure = error
                self.ended = True
        self.idle.set()

    def change(self, name):
        chance = self.random.random()
        if chance < 0.05:
            page = self.server.ask("GET", f"{CONTAINER}?format=json&limit=10&prefix={name[:3]}")
            assert page.status in (200, 204)
            return
        etag = None if chance < 0.25 else f"e{self.acknowledged}-{self.random.random()}"
        self.possible[name].add(etag)
        headers = {"X-Size": "5", "X-Etag": etag or "", "X-Content-Type": "text/plain"}
        method = "DELETE" if etag is None else "PUT"
        status = self.server.ask(method, f"{CONTAINER}/{name}", headers).status
        assert status == (204 if etag is None else 201), status
        self.possible[name] = {etag}
        self.acknowledged += 1

    def check(self, listed):
        for name, possible in self.possible.items():
            assert listed.get(name) in possible, (name, listed.get(name), possible)
            # The listing can no longer change without a request.
            self.possible[name] = {listed.get(name)}


def assert_sound(path):
    """Fail unless the totals and the hash of the database match its rows."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    total, alive = "0" * 32, 0
    for name, created_at, deleted in connection.execute("SELECT name, created_at, deleted FROM object"):
        total = chexor(total, name, created_at)
        alive += not deleted
    assert connection.execute("SELECT hash FROM container_info").fetchone() == (total,)
    assert connection.execute("SELECT sum(object_count) FROM policy_stat").fetchone() == (alive,)
    connection.close()


@pytest.mark.long
@pytest.mark.timeout(60 + 5 * KILLS)
def test_a_killed_container_server_keeps_acknowledged_rows(tmp_path):
    server, chooser, go = LoneServer(tmp_path, "container"), random.Random(KILLS), threading.Event()
    server.start()
    writers = [Writer(server, number, go) for number in range(THREADS)]
    try:
        assert server.ask("PUT", CONTAINER).status == 201
        for writer in writers:
            writer.start()
        for _ in range(KILLS):
            server.kill_under(writers, go, chooser.uniform(0.02, 0.4))
            page = server.ask("GET", f"{CONTAINER}?format=json")
            assert page.status == 200
            listed = {row["name"]: row["hash"] for row in page.json()}
            for writer in writers:
                writer.check(listed)
            assert_sound(database_of(server))
    finally:
        for writer in writers:
            writer.ended = True
        if server.process is not None:
            server.kill()
    acknowledged = sum(writer.acknowledged for writer in writers)
    print(f"{KILLS} kills, {acknowledged} rows acknowledged")
    assert acknowledged > KILLS
    assert "Traceback" not in (tmp_path / "log").read_text()
