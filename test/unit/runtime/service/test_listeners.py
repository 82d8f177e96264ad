"""Which workers listen where: one port, or the ports of the rings (cli-and-config.md §5)."""

from __future__ import annotations

import pytest

from swift.policy.policy import Policies, Policy
from swift.ring.builder import RingBuilder
from swift.ring.errors import RingFileError
from swift.runtime.service.listeners import PerPortListeners, RingPortFinder, SharedListener


class Socket:
    """Knows whether it is open."""

    def __init__(self, port):
        self.port = port
        self.is_open = True

    def close(self):
        self.is_open = False


class Lines:
    """A log in memory."""

    def __init__(self):
        self.lines = []

    def error(self, text):
        self.lines.append(text)

    notice = error


class Bench:
    """Ports that a test changes, time that it moves."""

    def __init__(self, **options):
        self.now = 0.0
        self.found = frozenset()
        self.taken = set()
        self.log = Lines()
        self.sockets = {}
        options = {"per_port": 2, "interval_s": 15.0, **options}
        self.ports = PerPortListeners(self.find, self.listen, self.log, now=lambda: self.now, **options)

    def find(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def listen(self, port):
        if port in self.taken:
            raise OSError(98, "Address already in use")
        self.sockets[port] = Socket(port)
        return self.sockets[port]

    def look(self, *ports):
        self.found = frozenset(ports)
        self.now += 15.0
        return list(self.ports.slots())


def test_all_workers_of_one_port_share_its_socket():
    listeners = SharedListener("socket", 3)
    assert list(listeners.slots()) == [0, 1, 2]
    assert {listeners.worker_socket(slot) for slot in listeners.slots()} == {"socket"}


def test_every_port_has_its_workers_and_a_worker_only_its_port():
    bench = Bench()
    slots = bench.look(6200, 6201)
    assert len(slots) == len(set(slots)) == 4
    ports = {slot: bench.ports.worker_socket(slot).port for slot in slots[:1]}
    assert list(ports.values()) == [6200]
    assert bench.sockets[6200].is_open
    assert not bench.sockets[6201].is_open


def test_ports_come_and_go_with_the_rings_and_the_others_keep_their_slots():
    bench = Bench()
    bench.look(6200, 6201)
    before = bench.ports.slots()[2:]
    slots = bench.look(6201, 6202)
    assert set(before) < set(slots)
    assert len(slots) == 4
    assert not bench.sockets[6200].is_open
    assert bench.sockets[6201].is_open


def test_the_rings_are_looked_at_only_now_and_then():
    bench = Bench()
    bench.look(6200)
    bench.found = frozenset((6200, 6201))
    bench.now += 14.9
    assert len(bench.ports.slots()) == 2
    bench.now += 0.2
    assert len(bench.ports.slots()) == 4


def test_a_ring_that_cannot_be_read_changes_nothing():
    bench = Bench()
    slots = bench.look(6200)
    bench.found = RingFileError("object.ring.gz", "not a ring")
    bench.now += 15.0
    assert list(bench.ports.slots()) == slots
    assert "cannot look up ports" in bench.log.lines[-1]


def test_a_port_that_is_taken_is_tried_again():
    bench = Bench()
    bench.taken = {6200}
    assert bench.look(6200) == []
    assert "cannot listen on port 6200" in bench.log.lines[0]
    bench.taken = set()
    assert len(bench.look(6200)) == 2


def test_there_are_never_more_slots_than_said():
    bench = Bench(ports_max=2)
    assert len(bench.look(1, 2, 3)) == bench.ports.slots_max == 4
    assert any("too many ports" in line for line in bench.log.lines)


def test_a_node_without_devices_waits_for_one():
    bench = Bench()
    assert bench.look() == []
    assert "no device of this node" in bench.log.lines[0]


# --- the rings --------------------------------------------------------------------------------------


def write_ring(folder, name, *devices):
    builder = RingBuilder(2, 1, 1)
    for number, (ip, port) in enumerate(devices):
        builder.add_device(region=1, zone=1, ip=ip, port=port, device=f"sd{number}", weight=1.0)
    builder.rebalance(seed=1)
    builder.write_ring(str(folder / f"{name}.ring.gz"))


@pytest.fixture
def finder(tmp_path):
    policies = Policies([Policy(0, "gold", is_default=True), Policy(1, "silver"), Policy(2, "new")])
    return RingPortFinder(str(tmp_path), policies, "127.0.0.1")


def test_ports_of_this_node_are_found_in_all_object_rings(tmp_path, finder):
    write_ring(tmp_path, "object", ("127.0.0.1", 6200), ("127.0.0.1", 6201), ("10.9.9.9", 6300))
    write_ring(tmp_path, "object-1", ("127.0.0.1", 6200), ("localhost", 6202))
    assert finder() == {6200, 6201, 6202}


def test_a_new_ring_is_noticed(tmp_path, finder):
    assert finder() == frozenset()
    write_ring(tmp_path, "object", ("127.0.0.1", 6200))
    assert finder() == {6200}
    (tmp_path / "object.ring.gz").write_bytes(b"nonsense")
    with pytest.raises(RingFileError):
        finder()
    write_ring(tmp_path, "object", ("127.0.0.1", 6205))
    assert finder() == {6205}


def test_the_ports_of_a_ring_that_is_gone_are_not_given_up(tmp_path, finder):
    write_ring(tmp_path, "object", ("127.0.0.1", 6200))
    write_ring(tmp_path, "object-1", ("127.0.0.1", 6201))
    assert finder() == {6200, 6201}
    (tmp_path / "object-1.ring.gz").unlink()
    with pytest.raises(RingFileError, match="missing"):
        finder()
