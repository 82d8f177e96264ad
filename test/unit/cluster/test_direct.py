"""Asking nodes directly: one, one that a request names, all of an entity; what their answers say together."""

import os

import pytest

from swift.base.entity import EntityPath
from swift.cluster.direct import DirectClient, has_majority, have_status, log_no_response
from swift.cluster.transport import BackendResponse, NodeAddress, NodeTimeouts, TransportError, node_path
from swift.http.body import InMemoryBody
from test.support.daemons import ScriptedNodes, make_node

PATH = EntityPath("a", "c d", "ö")


class Bench:
    def __init__(self):
        self.nodes = ScriptedNodes()
        self.missed = []
        self.client = DirectClient(
            self.nodes,
            "some-daemon",
            NodeTimeouts(1.0, 2.0),
            on_no_response=lambda who, error: self.missed.append((who, str(error))),
        )


@pytest.fixture
def bench():
    return Bench()


def test_a_node_is_asked_over_the_replication_network_with_a_quoted_path(bench):
    response = bench.client.request_entity(make_node(2), 7, "DELETE", PATH, {"x-timestamp": "1"}, "a=b")
    assert response.status == 202
    number, method, path, headers = bench.nodes.requests[0]
    assert (number, method, path) == (2, "DELETE", "/d2/7/a/c%20d/%C3%B6?a=b")
    assert headers["user-agent"] == f"some-daemon {os.getpid()}"
    assert (headers["x-timestamp"], headers["content-length"]) == ("1", "0")


def test_a_node_without_an_answer_is_told_and_is_none(bench):
    bench.nodes.answers[1] = TransportError("refused")
    assert bench.client.request_entity(make_node(1), 7, "HEAD", PATH, {}) is None
    assert bench.missed == [(make_node(1).replication_key, "refused")]


def test_a_log_is_told_which_node_gave_no_answer_and_why():
    lines = []
    log_no_response(lines.append)("r1z1-127.0.0.1:6200/sda", TransportError("timed out"))
    assert lines == ["r1z1-127.0.0.1:6200/sda: timed out"]


def test_all_nodes_are_asked_and_answer_in_their_order(bench):
    bench.nodes.answers = {0: 404, 1: TransportError("slow"), 2: 507}
    responses = bench.client.request_all([make_node(n) for n in range(4)], 7, "DELETE", PATH, {"x-a": "1"})
    assert [response and response.status for response in responses] == [404, None, 507, 202]
    assert len(bench.missed) == 1


def test_every_node_may_get_headers_of_its_own(bench):
    bench.client.request_all([make_node(0), make_node(1)], 7, "PUT", PATH, [{"x-a": "0"}, {"x-a": "1"}])
    assert sorted((number, headers["x-a"]) for number, _m, _p, headers in bench.nodes.requests) == [
        (0, "0"),
        (1, "1"),
    ]


@pytest.mark.parametrize(
    ("statuses", "majority", "with_404", "all_404"),
    [
        ([], False, False, False),
        ([201], True, True, False),
        ([201, 503], False, False, False),
        ([201, 202, None], True, True, False),
        ([404, 404, 404], False, True, True),
        ([404, 204, None], False, True, False),
        ([404, None], False, False, False),
    ],
)
def test_verdicts(statuses, majority, with_404, all_404):
    responses = [None if status is None else BackendResponse(status) for status in statuses]
    assert has_majority(responses) is majority
    assert has_majority(responses, 404) is with_404
    assert have_status(responses, 404) is all_404


def test_a_request_of_its_own_kind_is_sent_as_it_is_and_its_error_is_the_callers(bench):
    address = NodeAddress("127.0.0.1", 6203)
    path = node_path("sd b", 9, "/0123abc")
    assert path == "/sd%20b/9/0123abc"
    assert bench.client.request(address, "REPLICATE", path, {"x-a": "1"}, b"[]").status == 202
    assert bench.nodes.requests == [(3, "REPLICATE", path, {"x-a": "1"})]
    bench.nodes.answers[3] = TransportError("refused")
    with pytest.raises(TransportError):
        bench.client.request(address, "REPLICATE", path, {})
    assert bench.missed == []


def test_a_node_may_be_given_more_time(bench):
    waited = []

    def request(request):
        waited.append(request.timeouts.node_timeout)
        return BackendResponse(200)

    bench.nodes.request = request
    bench.client.request(NodeAddress("127.0.0.1", 6201), "REPLICATE", "/sda/1/h", {}, more_time_s=30.0)
    bench.client.request(NodeAddress("127.0.0.1", 6201), "REPLICATE", "/sda/1/h", {})
    assert waited == [32.0, 2.0]


class Taker:
    """An exchange that takes a body until it breaks."""

    def __init__(self, breaks_after=99):
        self.taken = []
        self.aborted = False
        self.breaks_after = breaks_after

    def send(self, piece):
        if len(self.taken) >= self.breaks_after:
            raise TransportError("broken")
        self.taken.append(piece)

    def response(self):
        return BackendResponse(201, {"x-b": "2"}, stream=InMemoryBody(b"thanks"), reason="Created")

    def abort(self):
        self.aborted = True


def test_a_body_is_sent_as_it_comes_and_the_answer_read_to_its_end(bench):
    taker = Taker()
    bench.nodes.stream = lambda *_args, **_more: taker
    response = bench.client.stream(
        NodeAddress("127.0.0.1", 6201), "REPLICATE", "/sda/1/h", {}, iter([b"a", b"b"])
    )
    assert (response.status, response.body, taker.taken, taker.aborted) == (
        201,
        b"thanks",
        [b"a", b"b"],
        False,
    )


@pytest.mark.parametrize("source", ["node", "pieces"])
def test_an_upload_that_breaks_leaves_no_connection(bench, source):
    taker = Taker(breaks_after=1 if source == "node" else 99)
    bench.nodes.stream = lambda *_args, **_more: taker

    def pieces():
        yield b"a"
        if source == "pieces":
            raise OSError("the file is gone")
        yield b"b"

    with pytest.raises(TransportError if source == "node" else OSError):
        bench.client.stream(NodeAddress("127.0.0.1", 6201), "REPLICATE", "/sda/1/h", {}, pieces())
    assert taker.aborted
