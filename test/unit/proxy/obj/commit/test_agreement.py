"""Who is to blame when a version could not be brought from one node to another."""

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse, BrokenOff, NodeRequest, NodeTimeouts, TransportError
from swift.http.body import ResponseBody
from swift.proxy.obj.commit.conditional import ReplicaRepair
from test.support.daemons import make_node

VERSION = Timestamp(5)


class Body(ResponseBody):
    def __init__(self, pieces):
        self.length = None
        self._pieces = iter(pieces)
        self.is_closed = False

    def __iter__(self):
        for piece in self._pieces:
            if piece is None:
                raise BrokenOff("the source is gone")
            yield piece

    def close(self):
        self.is_closed = True


class Writing:
    def __init__(self, takes):
        self._takes = takes
        self.got = b""
        self.is_aborted = False

    def send(self, data):
        if len(self.got) + len(data) > self._takes:
            raise TransportError("the laggard is gone")
        self.got += bytes(data)

    def abort(self):
        self.is_aborted = True


class Backends:
    """A source that gives these pieces (None: it breaks off), and a laggard that takes so many bytes."""

    def __init__(self, pieces, *, takes=100, status=200):
        stamp = "x-backend-data-timestamp" if status == 200 else "x-backend-timestamp"
        self.body = Body(pieces)
        self.found = BackendResponse(
            status, {stamp: VERSION.internal, "content-length": "6"}, stream=self.body
        )
        self.writing = Writing(takes)
        self.blamed = []
        self.deleted = []

    write_timeouts = NodeTimeouts(1.0, 1.0)

    def stream(self, request):
        return self.writing

    def stream_response(self, request):
        return self.found

    def response(self, node, _exchange, _headers):
        return BackendResponse(201, {}, stream=Body([]))

    def make_request(self, node, part, method, path, headers):
        return NodeRequest(node, method, "", headers, b"", self.write_timeouts)

    def request(self, request):
        self.deleted.append((request.node, request.method, request.headers["x-timestamp"]))
        return BackendResponse(404, headers={"x-backend-timestamp": VERSION.internal})

    def record_failure(self, node, _error, _headers):
        self.blamed.append(node)


SOURCE, LAGGARD = make_node(1), make_node(2)


class Target:
    part = 1
    path = EntityPath("a", "c", "o")
    policy = type("P", (), {"index": 0})


def copied(backends):
    return ReplicaRepair(backends, None)._copy(Target, SOURCE, LAGGARD, VERSION)


def test_a_version_is_brought_whole():
    backends = Backends([b"abc", b"def"])
    assert copied(backends)
    assert backends.writing.got == b"abcdef"
    assert backends.body.is_closed
    assert not backends.blamed


@pytest.mark.parametrize(("pieces", "takes", "blamed"), [([b"abc", None], 100, 1), ([b"abc", b"def"], 4, 2)])
def test_the_node_that_broke_off_is_blamed_and_nothing_is_kept(pieces, takes, blamed):
    backends = Backends(pieces, takes=takes)
    assert not copied(backends)
    assert [node.id for node in backends.blamed] == [blamed]
    assert backends.writing.is_aborted
    assert backends.body.is_closed


def test_a_tombstone_is_brought_as_one():
    backends = Backends([], status=404)
    assert copied(backends)
    assert backends.deleted == [(LAGGARD, "DELETE", VERSION.internal)]


def test_what_changed_meanwhile_is_left_alone():
    backends = Backends([b"abc"])
    backends.found.headers["x-backend-data-timestamp"] = Timestamp(6).internal
    assert not copied(backends)
    assert backends.body.is_closed
    assert not backends.writing.got
