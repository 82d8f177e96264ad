"""A cache tier under load: real servers of several devices and processes, with faults of the SSD.

Every object has one writer, which knows the expected state: its last write, or no object. The clients
ask the object server itself, so nothing of what it says is hidden by other replicas.
"""

import contextlib
import http.client
import io
import json
import mmap
import os
import random
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from swift.aio.xfs import attach_image, detach_image, make_image
from swift.cli.cache import main as cache_command
from swift.store.tier.policy import CLASSES, MODES
from test.support.cluster import LiveCluster, LoneServer
from test.support.tiers import tier_section

DEVICES = ("sda", "sdb", "sdc")
CLIENTS = 4
NAMES = 12


class TieredServer(LoneServer):
    """An object server of two workers and three devices with every class of the tier on."""

    def __init__(self, root, **options):
        super().__init__(root, "object")
        for name in DEVICES:
            (root / "dev" / name).mkdir(exist_ok=True)
        self.ssd = root / "ssd"
        self.ssd.mkdir(exist_ok=True)
        self.base = self.conf.read_text()
        self.configure(**options)

    def configure(self, **options):
        section = tier_section(self.ssd / "cache", self.root / "state", **options)
        self.conf.write_text(f"{self.base}{section}")

    def cache(self, *words):
        """Return the output of ``swift-cache``, run in this process because that is faster."""
        with contextlib.redirect_stdout(io.StringIO()) as said:
            assert cache_command(["--conf", str(self.conf), "--format", "json", *words]) == 0
        return json.loads(said.getvalue())

    def workers(self):
        """Return the pids of the server's processes except the first one."""
        pid = self.process.pid
        return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


class Client(threading.Thread):
    """Changes and reads its own objects until it is stopped."""

    def __init__(self, server, number, stop, *, may_fail=False):
        super().__init__(daemon=True)
        self.server, self.number, self.stopping, self.may_fail = server, number, stop, may_fail
        self.chance = random.Random(number)
        self.known = {}
        self.done = 0
        self.wrong = []
        self.stamp = 1_700_000_000.0 + number / 1000

    def run(self):
        while not self.stopping.is_set() and not self.wrong:
            self.turn(self.chance.randrange(NAMES))

    def path(self, name):
        return f"/{DEVICES[name % 3]}/{name % 2}/a/c/{self.number}-{name}"

    def turn(self, name):
        """Make one change or none, then read the object."""
        path, chance = self.path(name), self.chance.random()
        self.stamp += 1
        headers = {"X-Timestamp": f"{self.stamp:.5f}", "Content-Type": "text/plain"}
        try:
            if chance < 0.3:
                body = self.chance.randbytes(self.chance.choice((10, 3000, 70_000, 2_100_000)))
                self.change("PUT", path, headers, body, 201, name, {body})
            elif chance < 0.4 and self.known.get(name) != {None}:
                self.change("DELETE", path, headers, None, 204, name, {None})
            self.look(name)
        except (OSError, http.client.HTTPException) as error:
            if not self.may_fail:
                self.wrong.append(repr(error))
        self.done += 1

    def change(self, method, path, headers, body, wanted, name, after):
        before = self.known.get(name, {None})
        # Without a response, either state is possible.
        self.known[name] = before | after
        response = self.server.ask(method, path, headers, body)
        if response.status == wanted or (method == "DELETE" and response.status == 404):
            self.known[name] = after
        else:
            self.wrong.append(f"{method} {path}: {response.status}")

    def look(self, name):
        path, allowed = self.path(name), self.known.get(name, {None})
        head, response = self.server.ask("HEAD", path), self.server.ask("GET", path)
        body = response.body if response.status == 200 else None
        length = head.headers.get("content-length") if head.status == 200 else None
        if response.status not in (200, 404) or body not in allowed:
            self.wrong.append(f"GET {path}: {response.status}, not what was written last")
        elif length != (None if body is None else str(len(body))):
            self.wrong.append(f"HEAD {path}: {head.status} {length}")
        # The outcome of a change without a response is known by now.
        self.known[name] = {body}


class Load:
    """Clients of a server; the end of the ``with`` block stops them and fails on wrong responses."""

    def __init__(self, server, first=0, **how):
        self.stop = threading.Event()
        numbers = range(first, first + CLIENTS)
        self.clients = [Client(server, number, self.stop, **how) for number in numbers]

    @property
    def done(self):
        return sum(client.done for client in self.clients)

    @property
    def wrong(self):
        return [text for client in self.clients for text in client.wrong]

    def await_more_turns(self, turns=60):
        """Wait until the clients have made so many more turns."""
        expected = self.done + turns
        LiveCluster.await_true(lambda: self.done >= expected or self.wrong, f"{turns} turns", 60)
        assert not self.wrong

    def __enter__(self):
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_error):
        self.stop.set()
        for client in self.clients:
            client.join(60)
        assert not self.wrong

    def read_all(self):
        """Read every object once more."""
        for client in self.clients:
            for name in range(NAMES):
                client.look(name)
        assert not self.wrong


def failures(server):
    """Return the SSD failures that the server's processes report; needs no access to the SSD."""
    found = set()
    for path in (server.root / "state" / "sessions").iterdir():
        found.add(json.loads(path.read_text() or "{}").get("failure", ""))
    return found


@pytest.fixture()
def server(tmp_path):
    made = TieredServer(tmp_path)
    made.start()
    yield made
    made.kill()
    log = (made.root / "log").read_text()
    assert "Traceback" not in log and "is disabled" not in log, log


@pytest.mark.long
def test_every_mode_of_every_class_works_under_load(server):
    with Load(server) as load:
        load.await_more_turns()
        for of in CLASSES:
            for mode in (*MODES, "off", "on"):
                if mode != "write-back" or of == "hashes":
                    server.cache("mode", of, mode)
                    load.await_more_turns(15)
        server.cache("resize", "32")
        load.await_more_turns()
        found = server.cache("stats")
    load.read_all()
    assert found["failures"] == []
    assert found["classes"]["metadata"]["hits"] > 0
    assert set(found["classes"]["metadata"]["devices"]) >= set(DEVICES)
    assert server.cache("verify", "--rate", "0")["differences"] == []


@pytest.mark.long
def test_a_killed_server_reads_the_disk_instead_of_stale_tier_state(server):
    with Load(server, may_fail=True) as load:
        for _ in range(4):
            load.await_more_turns()
            server.kill()
            server.start()
        load.await_more_turns()
    load.read_all()
    assert server.cache("verify", "--rate", "0")["differences"] == []


def test_a_cleanly_stopped_server_leaves_an_index_that_survives_a_boot(server):
    with Load(server) as load:
        load.await_more_turns()
    server.process.terminate()
    server.process.wait(30)
    assert json.loads((server.ssd / "cache" / "index.json").read_text())["closed"]
    server.start()
    load.read_all()
    assert not json.loads((server.ssd / "cache" / "index.json").read_text())["closed"]


@pytest.mark.long
def test_a_reload_reads_the_section_again_and_no_request_fails(server):
    with Load(server) as load:
        load.await_more_turns()
        before = server.workers()
        server.configure(classes="hashes")
        os.kill(server.process.pid, signal.SIGUSR1)
        server_has_new = lambda: not server.workers() & before  # noqa: E731
        LiveCluster.await_true(server_has_new, "all workers are new", 60)
        load.await_more_turns()
        hits = server.cache("stats")["classes"]
        assert "metadata" not in hits
        server.configure(metadata_mode="pass-through")
        before = server.workers()
        os.kill(server.process.pid, signal.SIGUSR1)
        LiveCluster.await_true(server_has_new, "all workers are new", 60)
        load.await_more_turns()
        hits = server.cache("stats")["classes"]
        assert hits["metadata"]["mode"] == "pass-through" and hits["metadata"]["hits"] == 0
    load.read_all()


@pytest.mark.long
@pytest.mark.parametrize("may", [True, False], ids=["with the capability", "without it"])
def test_a_body_is_opened_by_its_handle_where_that_is_permitted_and_else_by_its_path(tmp_path, may):
    if may and os.geteuid():
        pytest.skip("needs root, who has CAP_DAC_READ_SEARCH")
    server = TieredServer(tmp_path, classes="metadata")
    if not may and not os.geteuid():
        server.before = ("setpriv", "--bounding-set", "-dac_read_search", "--")
    server.start()
    try:
        with Load(server) as load:
            load.await_more_turns()
            hits = lambda: server.cache("stats")["classes"]["metadata"]["hits"]  # noqa: E731
            LiveCluster.await_true(lambda: hits() > 0, "something is found")
        load.read_all()
        assert failures(server) == {""}
        path, text = "/sda/5/a/c/moved", {"Content-Type": "text/plain"}
        assert server.ask("PUT", path, text, b"body").status == 201
        assert server.ask("GET", path).body == b"body"
        (server.device / "objects" / "5").rename(tmp_path / "elsewhere")
        assert server.ask("HEAD", path).status == 200
        assert server.ask("GET", path).status == (200 if may else 404)
    finally:
        server.kill()
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log and "is disabled" not in log, log


# --- the SSD ---------------------------------------------------------------------------------------------


class Pluggable:
    """An SSD that can be removed and inserted: an XFS image on a loop device."""

    def __init__(self, root, target):
        self.target = target
        self.images = (root / f"ssd{number}.img" for number in range(10))
        self.image = self.device = None

    def put_in(self):
        self.image = next(self.images)
        make_image(self.image, 320 << 20)
        self.device = attach_image(self.image)
        subprocess.run(["mount", "-o", "noatime", self.device, self.target], check=True)

    def shut_down(self):
        """Shut the filesystem down, as XFS does when it cannot write its log."""
        subprocess.run(["xfs_io", "-x", "-c", "shutdown", self.target], check=True)

    def refuse_reads(self):
        """Let the device fail every read; the page cache still has earlier reads."""
        with open(self.image, "r+b") as file:
            file.truncate(mmap.PAGESIZE)

    def take_out(self):
        subprocess.run(["umount", "-l", self.target], check=True)
        detach_image(self.device)
        self.device = None


@pytest.fixture()
def plugged(tmp_path):
    if os.geteuid() != 0 or not shutil.which("mkfs.xfs") or not shutil.which("xfs_io"):
        pytest.skip("needs root and XFS tools, for an SSD that can be pulled out")
    made = TieredServer(tmp_path, retry_interval=0.5)
    made.plug = Pluggable(tmp_path, made.ssd)
    made.plug.put_in()
    made.start()
    yield made
    made.kill()
    if made.plug.device is not None:
        made.plug.take_out()
    log = (made.root / "log").read_text()
    assert "Traceback" not in log, log


@pytest.mark.long
@pytest.mark.xfs
def test_a_removed_ssd_fails_no_request_and_ends_no_process(plugged):
    with Load(plugged) as load:
        load.await_more_turns(200)
        before = plugged.workers()
        plugged.plug.shut_down()
        load.await_more_turns(200)
        LiveCluster.await_true(lambda: "" not in failures(plugged), "all go past it")
        plugged.plug.take_out()
        load.await_more_turns(50)
        plugged.plug.put_in()
        load.await_more_turns(50)
        LiveCluster.await_true(lambda: failures(plugged) == {""}, "all use it again")
        load.await_more_turns(200)
    assert plugged.workers() == before
    assert plugged.cache("verify", "--rate", "0")["differences"] == []
    load.read_all()
    told = (plugged.root / "log").read_text()
    assert "is disabled" in told and "works again" in told


@pytest.mark.long
@pytest.mark.xfs
def test_an_unreadable_ssd_ends_no_process(plugged):
    """Reads begin to fail while most of the index is not in memory: LMDB faults in its mapping."""
    with Load(plugged) as load:
        load.await_more_turns(100)
    bodies = {f"/sdb/{number % 8}/a/c/still-{number}": b"%d" % number * 50 for number in range(600)}
    for path, body in bodies.items():
        assert plugged.ask("PUT", path, {"Content-Type": "text/plain"}, body).status == 201
    plugged.kill()
    index = next((plugged.ssd / "cache").glob("*.mdb"))
    with open(index, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    plugged.start()
    first = next(iter(bodies))
    for _ in range(20):
        assert plugged.ask("GET", first).body == bodies[first]
    before = plugged.workers()
    plugged.plug.refuse_reads()
    for path, body in bodies.items():
        assert plugged.ask("GET", path).body == body
    with Load(plugged, first=CLIENTS) as load:
        load.await_more_turns(200)
    assert plugged.workers() == before
    # One worker reads the bad page itself, the other may find a record that the first could not write.
    assert "is disabled: " in (plugged.root / "log").read_text()
