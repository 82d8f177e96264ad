"""Conditions of changes are judged by the ETag that clients know (object-server.md §7)."""

from dataclasses import replace

import pytest

from swift.base.timestamp import Timestamp
from swift.http.response import HTTPError
from swift.obj.request import condition_etag, conditions_of, metadata_value
from swift.store.api import ABSENT, DELETED, LIVE, ObjectState

STAMP, LATER = Timestamp("1795000000.00000"), Timestamp("1795000001.00000")
PROMISED = {"x-backend-reserve": "yes"}
OBJECT = ObjectState(
    LIVE, {"ETag": "own", "X-Object-Sysmeta-Seen": '"seen"'}, timestamp=STAMP, data_timestamp=STAMP
)
MISSING = ObjectState(ABSENT)
GONE = ObjectState(DELETED, timestamp=STAMP)


def holds(state, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return conditions_of({**PROMISED, **named}).hold(state)


def test_a_change_without_conditions_has_none():
    assert conditions_of({}) is None
    assert conditions_of(PROMISED) is None


def test_if_match_means_nothing_where_nobody_promises():
    assert conditions_of({"if-match": "own"}) is None


@pytest.mark.parametrize("state", [MISSING, GONE])
def test_of_what_is_not_there_only_its_absence_holds(state):
    assert holds(state, if_none_match="*")
    assert holds(state, if_none_match="own")
    assert not holds(state, if_match="*")
    assert not holds(state, if_match="own")


def test_an_object_is_judged_by_its_etag():
    assert holds(OBJECT, if_match='"own"')
    assert holds(OBJECT, if_match="*")
    assert not holds(OBJECT, if_match="other")
    assert not holds(OBJECT, if_none_match="own")
    assert holds(OBJECT, if_none_match="other")
    assert not holds(OBJECT, if_match="own", if_none_match="own")


def test_an_object_may_be_meant_by_when_its_data_was_written():
    posted = replace(OBJECT, timestamp=LATER)
    for state in (OBJECT, posted):
        assert holds(state, x_backend_if_predecessor=STAMP.internal)
        assert not holds(state, x_backend_if_predecessor=LATER.internal)
    assert not holds(MISSING, x_backend_if_predecessor=STAMP.internal)
    assert conditions_of({"x-backend-if-predecessor": STAMP.internal}) is None, "nobody promises"


def test_the_etag_may_be_in_metadata():
    names = "X-Object-Sysmeta-Missing, x-object-sysmeta-SEEN"
    assert holds(OBJECT, if_match="seen", x_backend_etag_is_at=names)
    assert not holds(OBJECT, if_match="own", x_backend_etag_is_at=names)
    assert condition_etag("x-object-sysmeta-missing", OBJECT) == "own"
    assert condition_etag("", MISSING) is None


def test_metadata_is_found_in_any_case_and_nothing_has_no_name():
    assert metadata_value(OBJECT, "etag") == "own"
    assert metadata_value(OBJECT, "") is None
    assert metadata_value(OBJECT, "x") is None


@pytest.mark.parametrize(
    ("state", "headers", "status"),
    [
        (MISSING, {"if-match": "own"}, 404),
        (GONE, {"if-none-match": "own"}, 404),
        (OBJECT, {"if-match": "other"}, 412),
        (OBJECT, {"if-match": "own"}, None),
        (MISSING, {"x-backend-if-predecessor": STAMP.internal}, 404),
        (OBJECT, {"x-backend-if-predecessor": LATER.internal}, 412),
    ],
)
def test_what_is_demanded_of_an_object_is_404_without_it_and_412_when_it_does_not_hold(
    state, headers, status
):
    conditions = conditions_of({**PROMISED, **headers})
    if status is None:
        conditions.demand(state)
        return
    with pytest.raises(HTTPError) as raised:
        conditions.demand(state)
    assert raised.value.response.status == status


def test_a_refusal_says_by_which_version_it_was_judged_to_those_who_asked_for_promises():
    asked = conditions_of({**PROMISED, "if-none-match": "*"}).refused(OBJECT)
    plain = conditions_of({"if-none-match": "*"}).refused(OBJECT)
    assert STAMP.internal in asked.response.headers.values()
    assert STAMP.internal not in plain.response.headers.values()
