"""Reads of own devices in the proxy's process: what is answered here, and what goes over the network."""

import os
import threading
import time

import pytest

from swift import green
from swift.cluster.localreads import LocalEndpoint, LocalReads
from swift.cluster.transport import (
    BackendResponse,
    BrokenOff,
    NodeAddress,
    NodeRequest,
    NodeTimeouts,
    TransportError,
)
from swift.http.body import BodyError, FileBody, InMemoryBody, IterableBody
from swift.http.response import Response
from swift.platform.disk import Disk
from swift.telemetry.metrics import Registry

OWN = NodeAddress("10.0.0.1", 6200, "10.0.0.1:6200/d1")
OTHER = NodeAddress("10.0.0.2", 6200, "10.0.0.2:6200/d1")
OBJECT = "/d1/7/a/c/o"
TIMEOUTS = NodeTimeouts(1.0, 5.0)


class Network:
    """A transport whose responses have status 299."""

    def __init__(self):
        self.requests = []

    def stream(self, request):
        self.requests.append(request)
        return self

    def request(self, request):
        return self.stream(request).response()

    def wait_response_start(self, _within_s):
        return True

    def response(self):
        return BackendResponse(299, {}, stream=InMemoryBody(b"far"))


class Server:
    """An object server whose responses are scripted."""

    def __init__(self):
        self.make = lambda: Response(200, {"etag": "e"}, b"near")
        self.asked = []

    def read_hit(self, request, hits):
        self.asked.append(request)
        response = self.make()
        return response if response is not None and response.status in hits else None


class Reads:
    def __init__(self, port=6200, is_own="10.0.0.1".__eq__, **times):
        self.network, self.server, self.metrics = Network(), Server(), Registry()
        own = LocalEndpoint(is_own, port, self.server)
        self.transport = LocalReads(self.network, [own], self.metrics, **times)

    def send(self, node=OWN, method="GET", path=OBJECT, headers=None, timeouts=TIMEOUTS):
        return self.transport.stream(NodeRequest(node, method, path, headers or {}, b"", timeouts)).response()


def test_objects_of_own_devices_are_read_here():
    reads = Reads()
    response = reads.send(path=f"{OBJECT}?part=1", headers={"range": "bytes=1-"})
    assert (response.status, response.headers["content-length"]) == (200, "4")
    assert response.read().body == b"near"
    asked = reads.server.asked[0]
    assert (asked.raw_path, asked.query, asked.headers) == (OBJECT, "part=1", {"range": "bytes=1-"})
    assert not reads.network.requests


@pytest.mark.parametrize(
    "asked",
    [
        {"node": OTHER},
        {"node": NodeAddress("10.0.0.1", 6201)},
        {"method": "PUT"},
        {"method": "DELETE"},
        {"path": "/d1/7/a/c"},
        {"headers": {"x-newest": "true"}},
    ],
)
def test_all_else_goes_over_the_network(asked):
    reads = Reads()
    assert reads.send(**asked).status == 299
    assert not reads.server.asked


def test_an_endpoint_without_a_port_has_all_ports_of_its_address():
    assert Reads(port=0).send(NodeAddress("10.0.0.1", 6211)).status == 200


def test_names_of_hosts_are_looked_up_in_threads_and_not_for_long():
    threads = []

    def is_own(ip):
        threads.append(threading.get_ident())
        time.sleep(0.2 if ip == "late" else 0)
        return True

    reads = Reads(wait_s=0.05, is_own=is_own)
    assert reads.send(NodeAddress("node1", 6200)).status == 200
    for _ in range(2):
        assert reads.send(NodeAddress("late", 6200)).status == 299
    assert len(threads) == 2 and threading.get_ident() not in threads


@pytest.mark.parametrize("status", [404, 412, 503, 507, 529])
def test_the_network_answers_whatever_is_no_hit(status):
    reads = Reads()
    reads.server.make = lambda: Response(status)
    assert reads.send().status == 299
    assert len(reads.server.asked) == len(reads.network.requests) == 1


def test_what_is_decided_by_an_object_that_is_there_is_answered_here():
    for status, method in ((304, "GET"), (416, "GET"), (206, "GET"), (200, "HEAD")):
        reads = Reads()
        reads.server.make = lambda status=status: Response(status, {"content-length": "4"}, b"near")
        response = reads.send(method=method)
        assert response.status == status
        assert response.read().body == (b"" if status == 304 or method == "HEAD" else b"near")


def test_a_late_device_is_read_over_the_network_for_a_while():
    reads = Reads(wait_s=0.05, penalty_s=3600.0)
    stuck = green.Event()
    reads.server.make = lambda: stuck.wait(30)
    assert reads.send().status == 299
    assert reads.send().status == 299
    assert len(reads.server.asked) == 1
    # Other devices are not meant.
    reads.server.make = lambda: Response(200, {}, b"near")
    assert reads.send(path="/d2/7/a/c/o").status == 200
    stuck.set()


def test_a_device_that_was_late_is_tried_again():
    reads = Reads(wait_s=0.05, penalty_s=0.0)
    stuck = green.Event()
    reads.server.make = lambda: stuck.wait(30)
    assert reads.send().status == 299
    reads.server.make = lambda: Response(200, {}, b"near")
    assert reads.send().status == 200
    stuck.set()


def test_one_read_tries_a_late_device_while_the_others_take_the_network():
    reads = Reads(wait_s=0.2, penalty_s=0.3)
    stuck, go_on = green.Event(), green.Event()
    reads.server.make = lambda: stuck.wait(30)
    assert reads.send().status == 299
    green.sleep(0.35)

    def answer():
        go_on.wait(30)
        return Response(200, {}, b"near")

    reads.server.make = answer
    trial = green.spawn(lambda: reads.send().status)
    green.sleep(0.01)
    assert reads.send().status == 299
    go_on.set()
    assert trial.wait() == 200
    assert reads.send().status == 200
    assert len(reads.server.asked) == 3
    stuck.set()


def test_a_body_that_breaks_off_is_an_error_of_the_node():
    def pieces():
        yield b"near"
        raise BodyError("damaged")

    reads, closed = Reads(), []
    reads.server.make = lambda: Response(200, {}, IterableBody(pieces(), 8, lambda: closed.append(True)))
    stream = reads.send().stream
    assert stream.read(100) == b"near"
    with pytest.raises(BrokenOff, match=r"10\.0\.0\.1:6200/d1 broke off: damaged"):
        stream.read(100)
    assert closed


def test_a_body_that_ends_early_breaks_off():
    reads = Reads()
    reads.server.make = lambda: Response(200, {}, IterableBody(iter([b"near"]), 8))
    stream = reads.send().stream
    assert stream.read(100) == b"near"
    with pytest.raises(BrokenOff, match="4 bytes missing"):
        stream.read(100)


def test_a_network_that_fails_is_told_by_the_wait_for_the_response():
    def refuse(_request):
        raise TransportError("refused")

    reads = Reads()
    reads.server.make = lambda: Response(404)
    reads.network.stream = refuse
    exchange = reads.transport.stream(NodeRequest(OWN, "GET", OBJECT, {}, b"", TIMEOUTS))
    assert exchange.wait_response_start(1.0)
    with pytest.raises(TransportError, match="refused"):
        exchange.response()


def test_a_body_whose_device_hangs_breaks_off():
    stuck = green.Event()

    def pieces():
        yield b"near"
        stuck.wait(30)

    reads = Reads()
    reads.server.make = lambda: Response(200, {}, IterableBody(pieces(), 8))
    stream = reads.send(timeouts=NodeTimeouts(1.0, 0.05)).stream
    assert stream.read(100) == b"near"
    with pytest.raises(BrokenOff, match="timeout"):
        stream.read(100)
    stuck.set()


def test_ranges_of_files_are_moved_or_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 4096)
    reads, closed = Reads(), []
    fd = os.open(path, os.O_RDONLY)
    ranges = ((100, 500_000), (500_100, 500_000))
    reads.server.make = lambda: Response(
        200,
        {},
        IterableBody(
            (FileBody(fd, start, length, lambda: None) for start, length in ranges),
            1_000_000,
            lambda: closed.append(fd),
        ),
    )
    stream = reads.send().stream
    source, sink = os.pipe()
    moved = stream.splice_into(sink, 5000)
    got = os.read(source, moved)
    while piece := stream.read(100_000):
        got += piece
    assert got == path.read_bytes()[100:1_000_100]
    assert closed == [fd]
    for each in (fd, source, sink):
        os.close(each)


def test_what_is_not_in_memory_is_read_by_a_thread(tmp_path):
    """A slow client comes for bytes that the kernel has dropped meanwhile."""

    class Evicted(Disk):
        def read_cached(self, fd, size_bytes, offset=0):
            return None

    path = tmp_path / "file"
    path.write_bytes(b"x" * 500_000)
    reads = Reads(disk=Evicted())
    with open(path, "rb") as file:
        body = FileBody(file.fileno(), 0, 500_000, lambda: None)
        reads.server.make = lambda: Response(200, {}, IterableBody(iter([body]), 500_000))
        stream = reads.send().stream
        assert stream.splice_into(-1, 1000) == 0
        assert stream.read_all() == b"x" * 500_000


def test_a_file_that_was_cut_is_an_error_of_the_node(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"near")
    with open(path, "rb") as file:
        body = FileBody(file.fileno(), 0, 8, lambda: None)
        reads = Reads()
        reads.server.make = lambda: Response(200, {}, IterableBody(iter([body]), 8))
        stream = reads.send().stream
        assert stream.read(100) == b"near"
        with pytest.raises(BrokenOff, match="cut"):
            stream.read(100)


def test_answers_are_counted_by_place():
    reads = Reads()
    reads.send().stream.close()
    reads.server.make = lambda: Response(404)
    reads.send()
    page = reads.metrics.render()
    assert 'swift_proxy_local_reads_total{answered="here"} 1' in page
    assert 'swift_proxy_local_reads_total{answered="network"} 1' in page
