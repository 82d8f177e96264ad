"""When a change with conditions is tried again (decision 0011)."""

import pytest

from swift.base.timestamp import Timestamp
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.obj.commit.conditional import (
    TRIES_MAX,
    NewerVersionKnown,
    TooFewNodes,
    VersionsDiffer,
    with_retries,
    with_unique_timestamp,
)

NOW = Timestamp("1500000000.00000")
LATER = Timestamp("1500000009.00000")


class Change:
    """Fails for the given reasons, one after the other, and then succeeds."""

    def __init__(self, *reasons, repeatable=True):
        self._reasons = list(reasons)
        self._repeatable = repeatable
        self.stamps = []
        self.agreed = 0

    def _carry_out(self, attempts):
        self.stamps.append(Timestamp(attempts[0]["x-timestamp"]))
        if self._reasons:
            raise self._reasons.pop(0)
        return "done"

    def _agree(self, _attempts):
        self.agreed += 1

    def _check_ahead(self, newest):
        if newest.seconds > NOW.seconds + 1000:
            raise HTTPError(503, "too far ahead")

    def run(self):
        request = Request("PUT", "/v1/a/c/o", {"x-timestamp": NOW.internal})
        return with_retries(
            request,
            [{"x-timestamp": NOW.internal}],
            self._carry_out,
            self._agree,
            may_repeat=lambda reason: self._repeatable or reason.is_early,
            check_ahead=self._check_ahead,
        )


def status(change):
    with pytest.raises(HTTPError) as caught:
        change.run()
    return caught.value.response.status


def test_a_change_is_repeated_with_a_stamp_just_after_what_a_node_knows():
    change = Change(NewerVersionKnown(LATER, is_early=True))
    assert change.run() == "done"
    assert change.stamps[0] == NOW
    assert LATER < change.stamps[1] < Timestamp("1500000009.00002")


def test_nodes_that_are_apart_agree_before_the_next_try():
    change = Change(VersionsDiffer(is_early=False))
    assert (change.run(), change.agreed, len(change.stamps)) == ("done", 1, 2)


def test_nodes_that_went_away_are_replaced_by_others():
    change = Change(TooFewNodes())
    assert (change.run(), change.agreed, len(change.stamps)) == ("done", 0, 2)


def test_each_try_has_a_stamp_of_its_own():
    change = Change(TooFewNodes(), VersionsDiffer(is_early=True), NewerVersionKnown(NOW, is_early=True))
    change.run()
    assert change.stamps == sorted(set(change.stamps)) and len(change.stamps) == 4


def test_writers_of_one_tick_get_stamps_of_their_own_within_it():
    requests = [Request("PUT", "/v1/a/c/o", {"x-timestamp": NOW.internal}) for _ in range(2)]
    stamps = {with_unique_timestamp(each, [{}])[0]["x-timestamp"] for each in requests}
    assert stamps == {each.timestamp.internal for each in requests} and len(stamps) == 2
    assert {each.timestamp.raw for each in requests} == {NOW.raw}


def test_nodes_agree_for_the_next_one_when_the_body_is_gone():
    change = Change(VersionsDiffer(is_early=False), repeatable=False)
    assert (status(change), change.agreed, len(change.stamps)) == (503, 1, 1)


def test_what_was_known_before_the_body_was_read_can_be_repeated():
    assert Change(VersionsDiffer(is_early=True), repeatable=False).run() == "done"


def test_it_is_not_tried_for_ever():
    change = Change(*(TooFewNodes() for _ in range(99)))
    assert (status(change), len(change.stamps)) == (503, TRIES_MAX)


def test_there_is_no_stamp_after_the_end_of_time():
    change = Change(NewerVersionKnown(Timestamp("9999999999.99999"), is_early=True))
    assert status(change) == 503
