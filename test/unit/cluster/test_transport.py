"""How one server talks to another: answers and errors."""

import pytest

from swift.cluster.transport import BackendResponse, BrokenOff, MalformedResponse, TimedOut, TransportError
from swift.http.body import BodyError, InMemoryBody


@pytest.mark.parametrize(
    ("status", "good"), [(200, True), (299, True), (301, False), (404, False), (199, False)]
)
def test_success_is_2xx(status, good):
    assert BackendResponse(status).is_success is good


@pytest.mark.parametrize("kind", [TimedOut, MalformedResponse, BrokenOff])
def test_callers_need_to_know_one_error_only(kind):
    assert issubclass(kind, TransportError)


def test_who_only_relays_bodies_knows_a_broken_one():
    assert issubclass(BrokenOff, BodyError)


def test_an_answer_can_be_read_as_a_whole():
    response = BackendResponse(200, {"a": "b"}, stream=InMemoryBody(b"body"), reason="OK").read()
    assert response == BackendResponse(200, {"a": "b"}, b"body", "OK")
