"""Rows for the same replica of a container travel together, unless the server is of another kind or slow."""

from __future__ import annotations

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.cluster.direct import DirectClient
from swift.cluster.transport import BackendResponse, NodeAddress, NodeTimeouts, TransportError
from swift.obj.rowbatches import PATIENCE_S, RETRY_S, RowBatches
from swift.wire.rowbatch import METHOD, ROWS_MAX, RowAnswer, decode_rows, encode_answers

SERVER, OTHER = NodeAddress("10.0.0.1", 6201), NodeAddress("10.0.0.2", 6201)


class Servers:
    """A transport that answers each row as told; without ``knows_batches`` it is a server of the peer."""

    def __init__(self):
        self.knows_batches = True
        self.status_of = {}
        self.requests = []
        self.trans_ids = []
        #: Called before an answer.
        self.wait = lambda: None
        #: May raise, with a request.
        self.check = lambda _request: None

    def request(self, request):
        self.check(request)
        place = f"{request.node.ip}{request.path}"
        self.trans_ids.append(request.headers["x-trans-id"])
        if request.method != METHOD:
            self.requests.append((place, 1))
            self.wait()
            return BackendResponse(self.status_of.get(request.path, 201))
        rows = decode_rows(request.body)
        self.requests.append((place, len(rows)))
        self.wait()
        if not self.knows_batches:
            return BackendResponse(405)
        assert all("x-trans-id" not in row.headers for row in rows)
        statuses = (self.status_of.get(f"{request.path}/{row.name}", 201) for row in rows)
        return BackendResponse(200, body=encode_answers([RowAnswer(status, {}) for status in statuses]))


class World:
    def __init__(self):
        self.clock = ManualClock(1000.0)
        self.servers = Servers()
        self.batches = RowBatches(DirectClient(self.servers, "test", NodeTimeouts(1.0, 1.0)), self.clock)

    def start(self, *names, server=SERVER, container="/sda/1/a/c"):
        """Send rows at once; the green threads return their statuses, or errors."""

        def send(name):
            headers = {"x-timestamp": "1", "x-trans-id": f"tx{name}"}
            try:
                return self.batches.request(server, container, "PUT", name, headers).status
            except (TransportError, ValueError) as error:
                return str(error)

        return [green.spawn(send, name) for name in names]

    def send(self, *names, **more):
        return [task.wait() for task in self.start(*names, **more)]


@pytest.fixture
def world():
    return World()


def test_rows_of_one_moment_are_one_request_with_an_answer_for_each(world):
    world.servers.status_of["/sda/1/a/c/o2"] = 404
    assert world.send("o1", "o2", "o3") == [201, 404, 201]
    assert world.servers.requests == [("10.0.0.1/sda/1/a/c", 3)]
    assert world.servers.trans_ids == ["txo1,txo2,txo3"]


def test_one_row_is_an_ordinary_request(world):
    assert world.send("o") == [201]
    assert world.servers.requests == [("10.0.0.1/sda/1/a/c/o", 1)]


def test_containers_and_servers_do_not_wait_for_each_other(world):
    tasks = world.start("o1", "o2") + world.start("o3", container="/sda/2/a/d")
    tasks += world.start("o4", server=OTHER)
    assert [task.wait() for task in tasks] == [201] * 4
    assert [place for place, _count in world.servers.requests] == [
        "10.0.0.1/sda/1/a/c",
        "10.0.0.1/sda/2/a/d/o3",
        "10.0.0.2/sda/1/a/c/o4",
    ]


def test_rows_gather_while_a_request_is_under_way(world):
    release = green.Event()
    world.servers.wait = release.wait
    first = world.start("o1")
    green.sleep(0)
    others = world.start(*(f"p{number}" for number in range(ROWS_MAX + 2)))
    green.sleep(0)
    assert len(world.servers.requests) == 1
    release.set()
    assert {task.wait() for task in first + others} == {201}
    assert [count for _place, count in world.servers.requests] == [1, ROWS_MAX, 2]


def test_rows_do_not_wait_long_behind_a_request_without_an_answer(world):
    release = green.Event()
    world.servers.wait = release.wait
    first = world.start("o1")
    green.sleep(0)
    world.servers.wait = lambda: None
    world.clock.advance(2 * PATIENCE_S)
    assert world.send("o2") == [201]
    release.set()
    assert first[0].wait() == 201


def test_a_row_does_not_wait_long_though_no_other_comes_after_it(world):
    release, in_time = green.Event(), []
    world.servers.wait = lambda: in_time.append(release.wait(20 * PATIENCE_S))
    first = world.start("o1")
    green.sleep(0)
    world.servers.wait = lambda: None
    others = world.start(*(f"p{number}" for number in range(ROWS_MAX + 2)))
    assert {task.wait() for task in others} == {201}
    release.set()
    assert first[0].wait() == 201
    assert in_time == [True], "the others were sent before the first had its answer"
    assert [count for _place, count in world.servers.requests] == [1, ROWS_MAX, 2]


def test_a_row_that_cannot_be_sent_leaves_the_others_their_own_failures(world):
    world.servers.knows_batches = False

    def fail(request):
        if request.path.endswith("/odd"):
            raise ValueError("a line break")
        if request.method != METHOD:
            raise TransportError("gone")

    world.servers.check = fail
    assert world.send("o1", "odd", "o2") == ["gone", "a line break", "gone"]


def test_transaction_ids_of_a_batch_fit_into_a_header(world):
    assert set(world.send(*(f"{number:0200}" for number in range(ROWS_MAX)))) == {201}
    assert world.servers.requests == [("10.0.0.1/sda/1/a/c", ROWS_MAX)]
    assert len(world.servers.trans_ids[0]) < 8000


def test_a_server_that_does_not_know_batches_gets_each_row_by_itself_for_a_while(world):
    world.servers.knows_batches = False
    assert world.send("o1", "o2") == [201, 201]
    assert world.send("o3", "o4") == [201, 201]
    assert [count for _place, count in world.servers.requests] == [2, 1, 1, 1, 1]
    world.servers.knows_batches = True
    world.clock.advance(RETRY_S)
    assert world.send("o5", "o6") == [201, 201]
    assert world.servers.requests[-1] == ("10.0.0.1/sda/1/a/c", 2)


def test_every_row_has_the_failure_of_its_batch(world):
    def fail():
        raise TransportError("gone")

    world.servers.wait = fail
    assert world.send("o1", "o2") == ["gone", "gone"]
    world.servers.wait = lambda: None
    assert world.send("o1", "o2") == [201, 201]
