"""Writes and reads succeed while storage servers are restarted one at a time."""

import os
import random
import threading
import time
from collections import Counter

import pytest

from test.support.cluster import LiveCluster

#: Each server of four nodes is killed once.
SERVERS = [f"{kind}-{node}" for kind in ("object", "container", "account") for node in range(1, 5)]
WRITERS = 3
SIZES = (1, 4096, 65_537, 150_000)


@pytest.fixture(scope="module")
def restless(tmp_path_factory):
    live = LiveCluster(tmp_path_factory.mktemp("restless") / "data", ec="2+1")
    live.start()
    yield live
    live.stop()


class Writer(threading.Thread):
    """Writes objects one after the other and reads each back immediately."""

    def __init__(self, cluster, container, number, stop):
        super().__init__()
        self._cluster = cluster
        self._prefix = f"{container}/{number}"
        self._random = random.Random(number)
        self._stop_event = stop
        self.bodies = {}
        self.puts = Counter()
        self.gets = Counter()

    def run(self):
        while not self._stop_event.is_set():
            name = f"{self._prefix}-{self.puts.total()}"
            body = os.urandom(self._random.choice(SIZES))
            status = self._cluster.request("PUT", name, body=body).status
            self.puts[status] += 1
            if status == 201:
                self.bodies[name] = body
                name = self._random.choice(list(self.bodies))
                found = self._cluster.request("GET", name)
                right = found.status != 200 or found.body == self.bodies[name]
                self.gets[found.status if right else "wrong"] += 1


def write_while_servers_die(cluster, container):
    """Kill and restart one server after the other; return the writers."""
    stop = threading.Event()
    writers = [Writer(cluster, container, number, stop) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        for name in random.Random(11).sample(SERVERS, len(SERVERS)):
            cluster.kill(name)
            # The pause is the fault: the server is down for this long.
            time.sleep(0.5)
            cluster.restart(name)
            # Test servers start at once; production servers need half a second more.
            time.sleep(0.8)
    finally:
        stop.set()
        for writer in writers:
            writer.join(60)
    return writers


@pytest.mark.long
@pytest.mark.parametrize("policy", ["gold", "ec"])
def test_writes_continue_while_servers_restart(restless, policy):
    assert restless.request("PUT", policy, {"X-Storage-Policy": policy}).status == 201
    writers = write_while_servers_die(restless, policy)
    puts = sum((writer.puts for writer in writers), Counter())
    gets = sum((writer.gets for writer in writers), Counter())
    assert set(gets) == {200}, gets
    if policy == "gold":
        assert puts[201] >= 0.99 * puts.total(), puts
    else:
        # This code needs all archives: the archive sent to a dying node is lost with it.
        assert puts.total() - puts[201] <= len(SERVERS) * WRITERS, puts
        assert puts[201] >= 0.9 * puts.total(), puts
    for writer in writers:
        for name, body in writer.bodies.items():
            assert restless.request("GET", name).body == body
