"""Hosts are added, drained, lost and doubled by the layout controller, while clients read and write.

Each host has a network namespace, rings of its own, and the layout agent; host 1 has the controller.
"""

import json
import shutil
import threading
import time

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from test.support.cluster import Hosts, can_make_hosts

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not can_make_hosts(), reason="needs root and network namespaces"),
]
RINGS = ("account", "container", "object")
WAIT_S = 240
CONTROLLER = """step_percent = 40
auto_drain = on
dead_after = 12
lease_seconds = 9
"""


class LayoutHosts(Hosts):
    """Some hosts, of which the first three are in the rings."""

    def make(self):
        super().make()
        for name in RINGS:
            path = self.etc(1) / f"{name}.builder"
            builder = RingBuilder.load(str(path))
            builder.min_part_hours = 0
            for device in builder.live_devs:
                if device["zone"] > 3:
                    builder.remove_device(device["id"])
            builder.rebalance(seed=1)
            builder.save(str(path))
            builder.write_ring(str(self.etc(1) / f"{name}.ring.gz"))
            for number in self.numbers[1:]:
                for kind in (".builder", ".ring.gz"):
                    shutil.copy(self.etc(1) / f"{name}{kind}", self.etc(number) / f"{name}{kind}")
        conf = self.etc(1) / "object-server" / "1.conf"
        head, section, tail = conf.read_text().partition("[layout-controller]\n")
        assert section
        conf.write_text(f"{head}{section}{CONTROLLER}{tail}")

    def layout(self, *words, number=1, check=True):
        """Return the output of ``swift-layout`` on a host."""
        done = self.run(number, "-m", "swift.cli.layout", "-d", str(self.etc(number)), *words)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def begin(self):
        """Make the layout, and let all hosts know its key."""
        self.start()
        self.layout("init")
        for number in self.numbers[1:]:
            shutil.copy(self.etc(1) / "layout.pub", self.etc(number) / "layout.pub")

    def shown(self):
        return json.loads(self.layout("--format", "json", "show"))

    def await_rest(self):
        """Wait until all changes have ended, and all hosts have the same rings."""

        def is_at_rest():
            rings = self.shown()["rings"].values()
            return not any(ring["moving"] for ring in rings) and self.agree()

        try:
            self.await_true(is_at_rest, "the change has ended", WAIT_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.layout('show')}\nrings agree: {self.agree()}") from error

    def agree(self):
        """Return whether all hosts that run have the rings of host 1."""
        running = {name.rpartition("-")[2] for name in self._children}
        first = [(self.etc(1) / f"{name}.ring.gz").read_bytes() for name in RINGS]
        return all(
            [(self.etc(number) / f"{name}.ring.gz").read_bytes() for name in RINGS] == first
            for number in self.numbers
            if str(number) in running
        )

    def add(self, number):
        """Stage the device of a host."""
        for kind in RINGS:
            address = f"{self.ip(number)}:{self.plan.port(kind, number)}"
            self.layout("add", f"r1z{number}-{address}/sdb{number}", "100", "--rings", kind)

    def spawn_controller(self, number):
        """Start a controller of its own on a host."""
        conf = self.etc(number) / "object-server" / f"{number}.conf"
        conf.write_text(f"{conf.read_text()}\n[layout-controller]\ninterval = 3\n{CONTROLLER}")
        self._spawn(number, f"controller-{number}", "-m", "swift.cli.daemons", f"layout-controller={conf}")

    def held(self, number, at=1):
        """Return the partitions of objects that are assigned to a host, as host ``at`` knows it."""
        view = RingView(load_table(str(self.etc(at) / "object.ring.gz")))
        return sum(len(view.parts_of(dev.id)) for dev in view.devices if dev and dev.ip == self.ip(number))


class Client(threading.Thread):
    """Writes and reads until it is ended; every acknowledged write must be readable at once."""

    def __init__(self, hosts):
        super().__init__(daemon=True)
        self.hosts = hosts
        self.ended = threading.Event()
        self.known = {}
        self.problems = []

    def run(self):
        number = 0
        while not self.ended.is_set():
            name, body = f"o{number % 40}", f"body {number}".encode()
            number += 1
            try:
                if self.hosts(1, "PUT", f"c/{name}", body=body).status == 201:
                    self.known[name] = body
                response = self.hosts(1, "GET", f"c/{name}", {"X-Newest": "true"})
            except OSError as error:
                self.problems.append(f"{name}: {error!r}")
                continue
            if name in self.known and (response.status, response.body) != (200, self.known[name]):
                self.problems.append(f"{name}: {response.status} {response.body!r}")
            time.sleep(0.02)

    def end(self):
        self.ended.set()
        self.join()


@pytest.fixture
def hosts(tmp_path, request):
    made = LayoutHosts(tmp_path / "data", count=getattr(request, "param", 4))
    try:
        made.make()
        yield made
    finally:
        made.stop()


@pytest.fixture
def client(hosts):
    hosts.begin()
    assert hosts(1, "PUT", "c").status == 201
    made = Client(hosts)
    made.start()
    yield made
    made.end()
    assert not made.problems


def check_all(hosts, client):
    """Check that every acknowledged write is readable from each proxy."""
    for number in hosts.numbers:
        for name, body in dict(client.known).items():
            response = hosts(number, "GET", f"c/{name}", {"X-Newest": "true"})
            assert (response.status, response.body) == (200, body), (number, name)


def test_a_host_is_added_and_drained_and_the_change_is_reverted(hosts, client):
    hosts.add(4)
    hosts.layout("apply")
    hosts.await_rest()
    assert hosts.held(4) > 0
    hosts.layout("drain", hosts.ip(2))
    hosts.layout("apply", "--force")
    hosts.await_rest()
    assert hosts.held(2) == 0
    drained = hosts.plan.device_paths()[1]
    hosts.await_true(lambda: not list(drained.glob("objects/*/*/*/*.data")), "it is empty", WAIT_S)
    hosts.layout("revert")
    hosts.await_rest()
    assert hosts.held(2) > 0
    client.end()
    check_all(hosts, client)


def test_a_dead_host_is_drained_and_taken_back_and_another_controller_takes_over(hosts, client):
    hosts.add(4)
    hosts.layout("apply")
    hosts.await_rest()
    before = [hosts.held(number) for number in hosts.numbers]
    hosts.stop_host(3)
    hosts.await_true(lambda: hosts.held(3) == 0, "the dead host is drained", WAIT_S)
    # The controller dies in the middle; that of another host, which has the key, takes over.
    hosts.kill("daemons-1")
    shutil.copy(hosts.etc(1) / "layout.key", hosts.etc(2) / "layout.key")
    hosts.spawn_controller(2)
    hosts.start_host(3)
    hosts.await_listening()

    def is_back():
        return [hosts.held(number, 2) for number in hosts.numbers] == before

    hosts.await_true(is_back, "the host has its partitions again", WAIT_S)
    client.end()
    check_all(hosts, client)


@pytest.mark.parametrize("hosts", [6], indirect=True)
def test_a_cluster_is_doubled_and_halved(hosts, client):
    for number in (4, 5, 6):
        hosts.add(number)
    hosts.layout("apply")
    hosts.await_rest()
    assert all(hosts.held(number) for number in hosts.numbers)
    for number in (1, 2, 3):
        hosts.layout("remove", hosts.ip(number))
    hosts.layout("apply", "--force")
    hosts.await_rest()
    assert [bool(hosts.held(number)) for number in hosts.numbers] == [False] * 3 + [True] * 3
    client.end()
    check_all(hosts, client)
