"""How one server talks to another: answers and errors."""

import pytest

from swift.cluster.transport import BrokenOff, MalformedAnswer, Reply, TimedOut, TransportError
from swift.http.body import BodyError


@pytest.mark.parametrize(
    ("status", "good"), [(200, True), (299, True), (301, False), (404, False), (199, False)]
)
def test_success_is_2xx(status, good):
    assert Reply(status).is_success is good


@pytest.mark.parametrize("kind", [TimedOut, MalformedAnswer, BrokenOff])
def test_callers_need_to_know_one_error_only(kind):
    assert issubclass(kind, TransportError)


def test_who_only_relays_bodies_knows_a_broken_one():
    assert issubclass(BrokenOff, BodyError)
