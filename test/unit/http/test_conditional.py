"""Conditional requests of GET and HEAD."""

import pytest

from swift.http.conditional import failed_condition, is_conditional, parse_http_date

OLD, DATE, NEW = (
    "Fri, 01 Jan 2021 00:00:00 GMT",
    "Sat, 01 Jan 2022 00:00:00 GMT",
    "Sun, 01 Jan 2023 00:00:00 GMT",
)
MOMENT = 1640995200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, None),
        ({"if-none-match": "e"}, 304),
        ({"if-none-match": "*"}, 304),
        ({"if-none-match": '"x", "e"'}, 304),
        ({"if-none-match": "x"}, None),
        ({"if-match": "e"}, None),
        ({"if-match": "*"}, None),
        ({"if-match": "x"}, 412),
        ({"if-modified-since": OLD}, None),
        ({"if-modified-since": DATE}, 304),
        ({"if-modified-since": NEW}, 304),
        ({"if-unmodified-since": OLD}, 412),
        ({"if-unmodified-since": DATE}, None),
        ({"if-modified-since": "yesterday"}, None),
        ({"if-unmodified-since": "yesterday"}, None),
        ({"if-none-match": "e", "if-match": "x"}, 412),
        ({"if-match": "x", "if-modified-since": NEW}, 412),
        ({"if-modified-since": NEW, "if-unmodified-since": OLD}, 412),
    ],
)
def test_the_first_condition_that_fails_decides(headers, status):
    assert failed_condition(headers, etag="e", last_modified_s=MOMENT) == status


def test_dates_say_nothing_about_what_has_none():
    headers = {"if-modified-since": NEW, "if-unmodified-since": OLD}
    assert failed_condition(headers, etag="e", last_modified_s=None) is None


@pytest.mark.parametrize(("value", "status"), [("*", 412), ("e", None)])
def test_only_any_match_fails_where_nothing_is(value, status):
    assert failed_condition({"if-match": value}, etag=None, last_modified_s=None, exists=False) == status


@pytest.mark.parametrize("name", ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"])
def test_conditional_headers_are_known(name):
    assert is_conditional({name: ""}) and not is_conditional({"range": "", "if-range": ""})


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        (DATE, MOMENT),
        ("Saturday, 01-Jan-22 00:00:00 GMT", MOMENT),
        ("Sat, 01 Jan 2022 01:00:00 +0100", MOMENT),
        ("", None),
        ("Sat, 99 Jan 2022 00:00:00 GMT", None),
        ("Sat, 01 Jan 99999999999999 00:00:00 GMT", None),
        ("\x00\xff", None),
    ],
)
def test_dates_that_do_not_parse_are_ignored(text, moment):
    assert parse_http_date(text) == moment
