"""An object server that is killed again and again under load, on a real XFS filesystem.

Every SIGKILL hits the server and its workers at a random point of many requests. What was acknowledged
must be there afterwards with the right bytes, what was not may be there or not, and nothing half-made stays
behind. ``SWIFT_KILLS`` asks for more kills than the default (the proof of record is 500).
"""

import contextlib
import http.client
import os
import random
import shutil
import subprocess
import threading

import pytest

from swift.base.clock import SystemClock
from swift.base.hashing import PathHasher
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.policy.policy import ErasureCode, Policy
from swift.store.api import Location
from swift.store.hashes import SuffixHasher
from swift.store.layout import is_suffix, parse_name, partition_dir
from swift.store.registry import EngineParts, file_store
from test.support.cluster import LoneServer
from test.support.peer import with_ec
from test.support.races import Ledger

KILLS = int(os.environ.get("SWIFT_KILLS", "5"))
THREADS = 4
NAMES = 12
GOLD = Policy(0, "gold", is_default=True)
EC = Policy(1, "ec", ec=ErasureCode("liberasurecode_rs_vand", 4, 2))


class Server(LoneServer):
    """An object server that takes requests by object name."""

    def __init__(self, root):
        super().__init__(root, "object", with_ec(4, 2))

    def ask_of(self, method, name, headers=None, body=None):
        policy = {"X-Backend-Storage-Policy-Index": "1" if name.startswith("ec") else "0"}
        path = f"/sda/{partition_of(name)}/AUTH_a/c/{name}"
        response = self.ask(method, path, {**policy, **(headers or {})}, body)
        if "etag" in response.headers:
            response.headers["etag"] = response.headers["etag"].strip('"')
        return response


def partition_of(name):
    return sum(name.encode()) % 3


class Writer(threading.Thread):
    """Changes its own objects as fast as possible while ``go`` is set."""

    def __init__(self, server, number, go):
        super().__init__(daemon=True)
        self.server = server
        self.go = go
        self.ended = False
        self.idle = threading.Event()
        self.ledger = Ledger()
        self.random = random.Random(number)
        kinds = ("o", "o", "o", "ec")
        self.names = [f"{kinds[i % 4]}{number}-{i}" for i in range(NAMES)]
        self.changes = 0
        self.failure = None

    def run(self):
        try:
            while not self.ended:
                if not self.go.is_set():
                    self.idle.set()
                    self.go.wait(0.05)
                    continue
                self.idle.clear()
                self.change(self.random.choice(self.names))
        except AssertionError as error:
            self.failure = error
            self.idle.set()

    def change(self, name):
        chance, entry = self.random.random(), self.ledger[name]
        colour = f"colour{self.changes}"
        self.changes += 1
        if chance < 0.6:
            size = self.random.choice([10, 5000, 100_000, 700_000])
            body = f"{name} {self.changes} ".encode().ljust(size, b".")
            headers = {"Content-Type": "text/plain", "X-Object-Meta-Colour": colour}
            if name.startswith("ec"):
                headers |= {"X-Object-Sysmeta-Ec-Frag-Index": "2", "X-Object-Sysmeta-Ec-Etag": "e"}
            entry.put(body, colour, self.send(201, "PUT", name, headers, body))
        elif chance < 0.8:
            response = self.send(202, "POST", name, {"X-Object-Meta-Colour": colour}, allowed=(404,))
            if response is not None:
                entry.post(colour, response)
        else:
            entry.delete(self.send(204, "DELETE", name, allowed=(404,)) is not False)

    def send(self, wanted, method, name, headers=None, body=None, allowed=()):
        """Return True when acknowledged, False when the server died, None for an allowed refusal."""
        try:
            response = self.server.ask_of(method, name, headers, body)
        except (OSError, http.client.HTTPException):
            return False
        assert response.status == wanted or response.status in allowed, (method, name, response)
        return True if response.status == wanted else None

    def check(self):
        for name in self.names:
            self.ledger.check(name, self.server.ask_of("GET", name))


@pytest.fixture
def server(tmp_path):
    """A server whose device is an XFS image."""
    if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
        pytest.skip("needs root and mkfs.xfs, for a filesystem of its own")
    made = Server(tmp_path)
    image = tmp_path / "sda.img"
    with open(image, "wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["mkfs.xfs", "-q", "-f", image], check=True)
    done = subprocess.run(["mount", "-o", "loop", image, made.device], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a loop device here: {done.stderr.decode().strip()}")
    try:
        yield made
    finally:
        if made.process is not None:
            made.kill()
        subprocess.run(["umount", made.device], check=True)


@pytest.mark.long
@pytest.mark.xfs
@pytest.mark.timeout(60 + 5 * KILLS)
def test_a_killed_object_server_keeps_acknowledged_writes(server):
    chooser, go = random.Random(KILLS), threading.Event()
    server.start()
    writers = [Writer(server, number, go) for number in range(THREADS)]
    for writer in writers:
        writer.start()
    for _ in range(KILLS):
        server.kill_under(writers, go, chooser.uniform(0.02, 0.4))
        for writer in writers:
            writer.check()
    for writer in writers:
        writer.ended = True
        writer.join(10)
    changes = sum(writer.changes for writer in writers)
    print(f"{KILLS} kills during {changes} changes")
    assert changes > KILLS
    assert "Traceback" not in (server.root / "log").read_text()
    server.kill()
    assert_sound(server)


def assert_sound(server):
    """Fail on damaged, partial or stale files and on wrong suffix hashes."""
    devices = Devices(str(server.root / "dev"), mount_check=False)
    parts = EngineParts(devices=devices, hasher=PathHasher(b"", b"s"), clock=SystemClock())
    store = file_store(parts)
    seen = 0
    for policy in (GOLD, EC):
        for partition in store.partitions("sda", policy):
            for object_hash in store.inventory("sda", partition, policy):
                location = Location("sda", partition, policy, object_hash)
                # Archives of this test are no real fragments: their bytes are checked by reading them.
                full = not policy.is_ec
                report = store.maintenance.audit(
                    location, full=full, pace=lambda _bytes: None, temporary_age_s=1e9
                )
                assert report.quarantined is None, report
                seen += 1
            assert_true_hashes(store, partition, policy)
    assert seen >= NAMES
    for path in server.device.glob("objects*/*/*/*/*"):
        parse_name(path.name, 6 if "#" in path.name else None)
    assert list(server.device.glob("tmp*/*")) == []


def assert_true_hashes(store, partition, policy):
    told = dict(store.hashes("sda", partition, policy))
    path = partition_dir(store.core.devices.path("sda"), policy, partition)
    hasher = SuffixHasher(Disk(), store.core.clock, path, policy, store.core.rules.reclaim)
    true = {}
    for suffix in filter(is_suffix, os.listdir(path)):
        with contextlib.suppress(FileNotFoundError):
            true[suffix] = hasher.hash_suffix(suffix)
    assert told == true


def test_exactly_one_of_two_creators_on_two_workers_gets_success(tmp_path):
    server = Server(tmp_path)
    server.start()
    try:
        for number in range(40):
            gate, statuses = threading.Barrier(2), []

            def create(name=f"race{number}", gate=gate, statuses=statuses):
                gate.wait(10)
                headers = {"If-None-Match": "*", "Content-Type": "t/p"}
                statuses.append(server.ask_of("PUT", name, headers, b"x" * 20).status)

            threads = [threading.Thread(target=create) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert sorted(statuses) == [201, 412]
    finally:
        server.kill()
