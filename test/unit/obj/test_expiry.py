"""When an object shall expire, by what a request says of it."""

from __future__ import annotations

import pytest

from swift.base.timestamp import Timestamp
from swift.http.response import HTTPError
from swift.obj.request import parse_delete_at

#: When the request was made.
NOW = Timestamp("1000.50000")


def parse(headers, *, may_be_past=False, after=True, **more):
    return parse_delete_at(headers, NOW, may_be_past=may_be_past, after=after, **more)


def refusal(headers, **more):
    with pytest.raises(HTTPError) as told:
        parse(headers, **more)
    assert told.value.response.status == 400
    return told.value.response.read_body().decode()


def test_without_a_word_of_it_an_object_stays():
    assert parse({}) is None
    assert parse({"x-delete-at": ""}) is None


def test_a_moment_is_that_and_a_span_begins_with_the_request():
    assert parse({"x-delete-at": "2000"}) == 2000
    assert parse({"x-delete-after": "5"}) == 1005


def test_a_span_counts_before_a_moment_where_it_counts_at_all():
    both = {"x-delete-at": "2000", "x-delete-after": "5"}
    assert parse(both) == 1005
    assert parse(both, after=False) == 2000
    assert parse({"x-delete-after": "5"}, after=False) is None


@pytest.mark.parametrize("text", ["0", "-1", "1000"])
def test_a_moment_that_is_over_is_refused_unless_it_may_be(text):
    assert refusal({"x-delete-at": text}) == "X-Delete-At in past"
    assert parse({"x-delete-at": text}, may_be_past=True) == max(0, int(text))


@pytest.mark.parametrize("text", ["0", "-1", "-999999"])
def test_a_span_into_the_past_is_refused_whatever_may_be(text):
    for may_be_past in (False, True):
        assert refusal({"x-delete-after": text}, may_be_past=may_be_past) == "X-Delete-After in past"


def test_the_second_of_the_request_is_late_or_not_as_the_verb_has_it():
    whole = Timestamp("1000.00000")
    headers = {"x-delete-at": "1000"}
    with pytest.raises(HTTPError):
        parse_delete_at(headers, whole, may_be_past=False, after=True)
    assert parse_delete_at(headers, whole, may_be_past=False, after=True, equal_is_past=False) == 1000


@pytest.mark.parametrize("name", ["X-Delete-At", "X-Delete-After"])
@pytest.mark.parametrize(
    "text", ["soon", "1.5", "1e3", "0x10", "nan", "inf", "²", "٣٣٣٣", "1 0", "9" * 5000, "-", "\0"]
)
def test_what_is_no_whole_number_is_refused(name, text):
    assert refusal({name.lower(): text}) == f"Non-integer {name}"


def test_an_empty_span_is_refused_and_not_taken_for_none():
    assert refusal({"x-delete-after": ""}) == "Non-integer X-Delete-After"


def test_what_no_clock_shows_is_the_last_moment_that_one_does():
    assert parse({"x-delete-at": "9" * 30}) == 9999999999
    assert parse({"x-delete-after": "9" * 30}) == 9999999999
