"""When a change is dated anew, and above what."""

import pytest

from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.restamp import RESTAMPS_MAX, Restamper, above, check_ahead

NOW = Timestamp("1700000000.00000")
LATER = Timestamp("1700000005.00000")


def answer(status, stamp=None):
    headers = {} if stamp is None else {fields.BACKEND_TIMESTAMP: stamp.internal}
    return BackendResponse(status, headers, b"")


class Change:
    def __init__(self, method="PUT", path="/v1/a/c/o", *, has_generated_timestamp=True):
        self.request = Request(method, path, {"x-timestamp": NOW.internal})
        self.request.has_generated_timestamp = has_generated_timestamp
        self.attempts = [{"x-timestamp": NOW.internal, "x-number": str(n)} for n in range(3)]
        self.restamper = Restamper(self.request, lambda _newest: None, lambda: NOW.seconds)

    def meets(self, *answers):
        return self.restamper.restamp(self.attempts, answers)


def test_a_refused_change_is_dated_above_the_newest_state():
    change = Change()
    assert change.meets(answer(201), answer(409, LATER), answer(409, NOW))
    assert change.request.timestamp > LATER
    stamp = change.request.timestamp.internal
    assert change.attempts == [{"x-timestamp": stamp, "x-number": str(n)} for n in range(3)]


def test_a_state_of_the_same_time_counts_as_newer():
    change = Change()
    assert change.meets(answer(409, NOW))
    assert change.request.timestamp > NOW


@pytest.mark.parametrize(
    "responses",
    [
        [answer(201)] * 3,
        [answer(409)] * 3,
        [answer(201, LATER)] * 3,
        [answer(404, LATER)] * 3,
        [answer(409, Timestamp(5))] * 3,
    ],
    ids=["success", "no time", "success of an object", "absent", "older"],
)
def test_other_answers_change_nothing(responses):
    change = Change()
    assert not change.meets(*responses)
    assert change.request.timestamp == NOW


def test_newer_metadata_of_a_container_counts_though_the_change_succeeded():
    assert Change("POST", "/v1/a/c").meets(answer(204, LATER))
    assert not Change("DELETE", "/v1/a/c").meets(answer(204, LATER))


def test_a_given_timestamp_is_kept():
    assert not Change(has_generated_timestamp=False).meets(answer(409, LATER))


def test_a_change_is_dated_anew_a_few_times_only():
    change = Change()
    for _ in range(RESTAMPS_MAX):
        assert change.meets(answer(409, change.request.timestamp))
    assert not change.meets(answer(409, change.request.timestamp))


def test_the_present_is_taken_once_it_is_later():
    assert above(NOW, LATER.seconds) == LATER
    first, second = above(LATER, NOW.seconds), above(LATER, NOW.seconds)
    assert first > LATER and second > LATER and first != second


def test_a_state_too_far_ahead_of_the_clock_is_an_error_that_names_it():
    check_ahead(LATER, NOW.seconds, 5.0)
    with pytest.raises(HTTPError) as caught:
        check_ahead(LATER, NOW.seconds, 4.0)
    assert caught.value.response.status == 503
    assert b"2023-11-14T22:13:25" in caught.value.response.body
