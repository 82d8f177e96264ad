"""Database replicas converge although replicators and servers are killed at random moments."""

import json
import random
import sqlite3
import time
from pathlib import Path

import pytest

from swift.base.hashing import PathHasher
from swift.config.cluster import read_cluster_config
from swift.ring.ring import Ring
from test.support.databases import rows_of

ACCOUNT, CONTAINER = "AUTH_test", "torn"
NAMES = (ACCOUNT, CONTAINER)
ROWS = 3000
UNREST_S = 8.0
#: Rows get recent timestamps: tombstones with a fixed date would be reclaimed some day.
BASE_S = int(time.time()) - 3600


class Replicas:
    """The three database replicas of the container."""

    def __init__(self, cluster):
        self.cluster = cluster
        ring = Ring(str(cluster.plan.etc / "container.ring.gz"))
        hasher: PathHasher = read_cluster_config(str(cluster.plan.etc / "swift.conf")).hasher
        self.part, nodes = ring.nodes(hasher.digest(*NAMES))
        self.ports = {node.zone: node.port for node in nodes}
        self.name_hash = hasher.hexdigest(*NAMES)

    @property
    def numbers(self):
        return list(self.ports)

    def folder(self, number):
        device = self.cluster.device_path(number)
        return device / "containers" / str(self.part) / self.name_hash[-3:] / self.name_hash

    def put_rows(self, number, numbers, tick):
        """Put many rows into one replica only."""
        rows = [
            {
                "name": f"o{n:05}",
                "created_at": f"{BASE_S + tick:010d}.{n:05d}",
                "size": n,
                "content_type": "t/p",
                "etag": f"e{n}",
                "deleted": n % 7 == 0,
                "storage_policy_index": 0,
            }
            for n in numbers
        ]
        device = self.cluster.plan.device(number)
        response = self.cluster.raw(
            "UPDATE",
            f"/{device}/{self.part}/{ACCOUNT}/{CONTAINER}",
            {"x-timestamp": f"{BASE_S}.00000"},
            json.dumps(rows),
            port=self.ports[number],
        )
        assert response.status == 202, response

    def states(self):
        """Return rows and hash of each replica, read from its file; None for a missing replica."""
        return [self._state(number) for number in self.numbers]

    def _state(self, number):
        paths = list(self.folder(number).glob("*.db"))
        if not paths:
            return None
        rows = rows_of(paths[0], "SELECT name, created_at, size, etag, deleted FROM object ORDER BY name")
        hashes = rows_of(paths[0], "SELECT hash FROM container_info")
        return (rows, hashes[0][0]) if hashes else None

    def are_equal(self):
        states = self.states()
        return states[0] is not None and all(state == states[0] for state in states)


def shorten_intervals(cluster):
    """Let replicators run passes without pauses, with few rows per request."""
    for number in cluster.plan.node_numbers():
        conf = cluster.plan.etc / "container-server" / f"{number}.conf"
        head, section, tail = conf.read_text().partition("[container-replicator]\n")
        assert section
        conf.write_text(f"{head}{section}per_diff = 40\nmax_diffs = 1000\n{tail.replace('= 5', '= 1')}")
        cluster.kill(f"daemons-{number}")
        cluster.restart(f"daemons-{number}")


@pytest.mark.long
def test_replicas_converge_although_servers_and_daemons_are_killed(own_cluster):
    assert own_cluster.request("PUT", CONTAINER).status == 201
    shorten_intervals(own_cluster)
    replicas = Replicas(own_cluster)
    first, second, third = replicas.numbers
    rng = random.Random(5)
    replicas.put_rows(first, range(ROWS), 10)
    replicas.put_rows(second, range(ROWS // 2, 2 * ROWS, 3), 20)
    end = time.monotonic() + UNREST_S
    while time.monotonic() < end:
        number = rng.choice(replicas.numbers)
        name = rng.choice((f"daemons-{number}", f"daemons-{number}", f"container-{number}"))
        time.sleep(rng.uniform(0, 0.4))
        own_cluster.kill(name)
        own_cluster.restart(name)
    own_cluster.await_true(replicas.are_equal, "the replicas are equal", 60)
    rows, _hash = replicas.states()[0]
    assert len(rows) == len(set(range(ROWS)) | set(range(ROWS // 2, 2 * ROWS, 3)))
    # A replaced device gets all databases back, again while processes are killed.
    own_cluster.kill(f"container-{third}")
    own_cluster.wipe(replicas.folder(third))
    own_cluster.restart(f"container-{third}")
    for _ in range(6):
        time.sleep(rng.uniform(0, 0.5))
        name = rng.choice((f"daemons-{first}", f"daemons-{second}", f"container-{third}"))
        own_cluster.kill(name)
        own_cluster.restart(name)
    own_cluster.await_true(replicas.are_equal, "the replicas are equal again", 60)
    assert replicas.states()[0][0] == rows
    for number in replicas.numbers:
        folder = replicas.folder(number)
        connection = sqlite3.connect(next(folder.glob("*.db")))
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        connection.close()
    assert "Traceback" not in own_cluster.log_text()


def attempted(cluster, number):
    """Return the number of databases that the last pass of a node's container replicator visited."""
    path = Path(cluster.plan.recon(number)) / "container.recon"
    try:
        return json.loads(path.read_text())["replication_stats"]["attempted"]
    except (OSError, ValueError, KeyError):
        return None


@pytest.mark.long
def test_a_wiped_device_gets_unchanged_databases_back(own_cluster):
    names = [f"kept{n}" for n in range(5)]
    for name in names:
        assert own_cluster.request("PUT", name).status == 201
    shorten_intervals(own_cluster)
    numbers = own_cluster.plan.node_numbers()
    own_cluster.await_true(
        lambda: all(attempted(own_cluster, number) == 0 for number in numbers), "all is settled", 60
    )
    folder = own_cluster.device_path(numbers[0]) / "containers"
    had = {path.name for path in folder.rglob("*.db")}
    assert had
    own_cluster.wipe(folder)
    own_cluster.await_true(
        lambda: {path.name for path in folder.rglob("*.db")} == had, "the databases are back", 60
    )
    own_cluster.await_true(
        lambda: all(attempted(own_cluster, number) == 0 for number in numbers), "all is settled again", 60
    )
    assert "Traceback" not in own_cluster.log_text()
