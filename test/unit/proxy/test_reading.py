"""Which of the nodes' answers is the one to give."""

from types import SimpleNamespace
from typing import NamedTuple

import pytest

from swift import green
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse, BrokenOff, NodeTimeouts
from swift.http import fields
from swift.http.body import ResponseBody
from swift.proxy.backend import is_newest
from swift.proxy.obj.read.resume import span_of
from swift.proxy.reading import ReadPlan, SourceSearch
from swift.proxy.settings import ProxySettings

PATH = EntityPath("a", "c", "o")


class Body(ResponseBody):
    """A body that remembers whether it was closed; it breaks off when there is none."""

    def __init__(self, data=b"x"):
        self.data = data
        self.length = None if data is None else len(data)
        self.is_closed = False

    def read_into(self, buffer):
        if self.data is None:
            raise BrokenOff("gone")
        size = min(len(buffer), len(self.data))
        buffer[:size] = self.data[:size]
        self.data = self.data[size:]
        return size

    def close(self):
        self.is_closed = True


def good(at, posted=None, **headers):
    stamps = {"x-backend-data-timestamp": Timestamp(at).internal, "x-timestamp": Timestamp(at).normal}
    if posted is not None:
        stamps["x-backend-timestamp"] = posted if isinstance(posted, str) else Timestamp(posted).internal
    return BackendResponse(200, {**stamps, **headers}, stream=Body())


def missing(at=None, body=b""):
    stamp = {} if at is None else {"x-backend-timestamp": Timestamp(at).internal}
    return BackendResponse(404, stamp, stream=Body(body), reason="Not Found")


TIMEOUTS = NodeTimeouts(1.0, 1.0)


class Nodes:
    """Nodes in their order; the last ``handoffs`` are no primaries."""

    def __init__(self, count, handoffs):
        self.primary_count = count - handoffs
        self.uses_slow = True
        primaries = [SimpleNamespace(number=n, index=n, device="d") for n in range(count - handoffs)]
        self._left = primaries + [
            SimpleNamespace(number=n, index=None, device="d") for n in range(count - handoffs, count)
        ]
        self._passed = []
        self._again = []

    def __iter__(self):
        return self

    def __next__(self):
        if self._left:
            return self._left.pop(0)
        if self._passed and self.uses_slow:
            self._again.append(self._passed.pop(0))
            return self._again[-1]
        raise StopIteration

    def defer(self, node):
        if node in self._again:
            return False
        self._passed.append(node)
        return True


class Unconfirmed(NamedTuple):
    """A node that has an answer, and lost records that may have been newer."""

    answer: BackendResponse


class Answers:
    """What each node answers; None: nothing."""

    def __init__(self, answers, unresponsive=()):
        self.responses = answers
        self.unresponsive = unresponsive
        self.asked = []
        self._awaited = len(answers) - len(unresponsive)
        self.others_responded = green.Queue()

    def stream(self, request):
        self.asked.append(request.node.number)
        self.accepting = fields.BACKEND_ACCEPT_UNCONFIRMED in request.headers
        return request.node

    def stream_response(self, request):
        return self.response(self.stream(request), None, None)

    def is_unresponsive(self, node):
        return node.number in self.unresponsive

    def is_late(self, node, _exchange):
        return self.is_unresponsive(node)

    def log_unresponsive(self, node):
        return

    def response(self, node, _exchange, _headers):
        if self.is_unresponsive(node):
            # It responds after all others did.
            self.others_responded.get()
        else:
            self._awaited -= 1
            if not self._awaited:
                self.others_responded.put(True)
        response = self.responses[node.number]
        if isinstance(response, Unconfirmed):
            return (
                response.answer
                if self.accepting
                else BackendResponse(529, {fields.BACKEND_UNCONFIRMED: "true"}, stream=Body())
            )
        return response


def search(*answers, newest=False, handoffs=0, unresponsive=(), **settings):
    backends = Answers(answers, unresponsive)
    plan = ReadPlan("GET", PATH, 1, {}, "", newest, TIMEOUTS)
    looked = SourceSearch(backends, ProxySettings(**settings), plan, Nodes(len(answers), handoffs))
    found = looked.find()
    return looked, (None if found is None else found[1].number), backends


def test_the_first_good_answer_is_taken():
    _, number, backends = search(missing(), good(1), good(2))
    assert number == 1
    assert backends.asked == [0, 1]


def test_who_wants_the_newest_gets_it_and_the_others_are_let_go():
    responses = [good(1), good(3), good(2)]
    _, number, _ = search(*responses, newest=True)
    assert number == 1
    assert [response.stream.is_closed for response in responses] == [True, False, True]


def test_of_equal_data_the_newest_metadata_counts():
    _, number, _ = search(good(1, posted=5), good(1, posted=7), good(1, posted=6), newest=True)
    assert number == 1


@pytest.mark.parametrize("nonsense", ["nonsense", "-1", "1e99", "nan", "é"])
def test_a_node_that_says_nonsense_about_its_time_does_not_fail_the_read(nonsense):
    _, number, _ = search(good(1, posted=nonsense), good(1, posted=7), good(1, posted=nonsense), newest=True)
    assert number == 1
    odd = BackendResponse(200, {"x-backend-data-timestamp": nonsense, "x-timestamp": "2"}, stream=Body())
    _, number, _ = search(good(1), odd, newest=True)
    assert number == 1, "the next header that says when counts"


def test_a_newer_tombstone_ends_what_was_found():
    found = good(1)
    looked, number, _ = search(found, missing(2), newest=True)
    assert number is None
    assert found.stream.is_closed
    assert looked.failure().status == 404


def test_an_older_one_does_not():
    _, number, _ = search(missing(1), good(2), missing(1), newest=True)
    assert number == 1


def test_what_is_older_than_a_known_tombstone_is_not_given():
    response = good(1)
    looked, number, _ = search(missing(2), response, missing())
    assert number is None
    assert response.stream.is_closed
    assert looked.failure().status == 404


def test_handoffs_that_never_heard_of_it_do_not_say_that_it_is_not_there():
    looked, _, _ = search(None, None, missing(), missing(), handoffs=2)
    assert looked.failure().status == 503


def test_one_tombstone_is_enough_when_no_other_node_has_anything_to_say():
    """OpenStack Swift's response; the handoff would also do if it had the object."""
    looked, number, _ = search(None, None, None, missing(5), missing(), handoffs=2)
    response = looked.failure()
    assert (number, response.status) == (None, 404)
    assert response.headers["x-backend-timestamp"] == "0000000005.00000"


def test_a_container_that_was_only_ever_deleted_is_no_answer():
    nothing = BackendResponse(204, {"x-put-timestamp": "0"}, stream=Body(b""))
    assert search(nothing, nothing)[1] is None


def test_an_error_whose_text_breaks_off_is_an_error_all_the_same():
    looked, number, _ = search(missing(3, body=None), missing(3), missing(3))
    assert number is None
    assert looked.failure().status == 404


def test_other_nodes_are_requested_while_one_is_unresponsive():
    _, taken, backends = search(good(1), good(1), missing(), unresponsive={0})
    assert (taken, backends.asked) == (1, [0, 1])
    _, taken, backends = search(good(1), missing(), None, unresponsive={0})
    assert (taken, backends.asked) == (0, [0, 1, 2])
    looked, taken, backends = search(good(1), missing(), missing(), unresponsive={0})
    assert (taken, backends.asked) == (None, [0, 1, 2]), "a majority of primaries does not have it"
    assert looked.failure().status == 404


def test_slow_nodes_are_asked_again_by_whoever_goes_on_reading():
    backends = Answers([missing(), missing(), missing()])
    nodes = Nodes(3, 0)
    SourceSearch(backends, ProxySettings(), ReadPlan("GET", PATH, 1, {}, "", False, TIMEOUTS), nodes).find()
    assert nodes.uses_slow


@pytest.mark.parametrize(
    ("status", "headers", "span"),
    [
        (200, {"content-length": "5"}, (0, 5)),
        (206, {"content-range": "bytes 2-4/10"}, (2, 5)),
        (200, {}, None),
        (200, {"content-length": "-5"}, None),
        (206, {"content-range": "bytes 2-4/*"}, None),
        (206, {"content-type": "multipart/byteranges"}, None),
        (404, {"content-length": "5"}, None),
    ],
)
def test_which_bytes_an_answer_has(status, headers, span):
    assert span_of(BackendResponse(status, headers, stream=Body())) == span


def test_the_rest_is_asked_for_without_conditions():
    first = {"if-match": "e", "x-a": "b", "range": "bytes=0-"}
    first["x-backend-ignore-range-if-metadata-present"] = "x"
    plan = ReadPlan("GET", PATH, 1, first, "", False, TIMEOUTS)
    requests = plan.request_rest(SimpleNamespace(device="d"), "bytes=5-9").headers
    assert requests == {"x-a": "b", "range": "bytes=5-9"}


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("1", True), ("no", False), ("", False)])
def test_only_a_yes_wants_the_newest(text, expected):
    assert is_newest({"x-newest": text}) is expected


@pytest.mark.parametrize("concurrent", (False, True))
def test_what_may_be_an_old_state_is_read_only_when_no_other_node_has_the_object(concurrent):
    how = {"concurrent_gets": concurrent, "concurrency_timeout": 0.0}
    _, number, _ = search(Unconfirmed(good(1)), Unconfirmed(good(1)), good(2), **how)
    assert number == 2
    looked, number, backends = search(Unconfirmed(good(1)), missing(), Unconfirmed(good(3)), **how)
    assert number == 2 and sorted(backends.asked) == [0, 0, 1, 2, 2]
    assert looked.plan.headers[fields.BACKEND_ACCEPT_UNCONFIRMED] == "true"


def test_a_deletion_that_another_node_knows_outweighs_what_may_be_an_old_state():
    looked, number, _ = search(Unconfirmed(good(1)), missing(2), missing())
    assert number is None and looked.failure().status == 404
    assert search(Unconfirmed(good(3)), missing(2), missing())[1] == 0


def test_whoever_compares_all_states_is_told_those_that_may_be_old():
    _, number, backends = search(Unconfirmed(good(1)), good(3), good(2), newest=True)
    assert number == 1 and backends.asked == [0, 1, 2]
