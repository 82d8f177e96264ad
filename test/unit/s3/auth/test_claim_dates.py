"""When a request was signed: what is a date, in which forms, and what is too far away."""

import calendar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.s3.auth.claim import check_skew, date_seconds, iso_seconds, iso_time, stamp_of, stamp_seconds
from swift.s3.errors import S3Error

SECOND = calendar.timegm((2026, 1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    "text",
    [
        "20260102T030405Z",
        "Fri, 02 Jan 2026 03:04:05 GMT",
        "Fri, 02 Jan 2026 03:04:05 +0000",
        "Fri, 02 Jan 2026 04:04:05 +0100",
        "02 Jan 2026 03:04:05 -0000",
    ],
)
def test_a_date_may_be_written_as_iso_or_as_mail_writes_it(text):
    assert date_seconds(text) == SECOND
    assert stamp_of({"date": text}) == (text if text[8] == "T" else "20260102T030405Z", SECOND)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "20261302T030405Z",
        "20260132T030405Z",
        "20260231T030405Z",
        "20250229T030405Z",
        "20260100T030405Z",
        "20260102T030461Z",
        "20260102T240405Z",
        "20260102T036005Z",
        "19691231T235959Z",
        "20260102T030405",
        "20260102t030405z",
        "２0260102T030405Z",
        "Fri, 02 Jan 99999999999999999999 03:04:05 GMT",
        "Thu, 01 Jan 1960 00:00:00 GMT",
        "\x00",
    ],
)
def test_what_is_no_date_is_denied(text):
    assert date_seconds(text) is None
    with pytest.raises(S3Error) as refused:
        stamp_of({"date": text})
    assert refused.value.code == "AccessDenied"


@given(st.text())
def test_no_text_is_more_than_no_date(text):
    for read in (stamp_seconds, date_seconds, iso_seconds):
        found = read(text)
        assert found is None or isinstance(found, int)


def test_a_leap_day_and_a_leap_second_are_times():
    assert date_seconds("20240229T000000Z") == calendar.timegm((2024, 2, 29, 0, 0, 0))
    assert date_seconds("20161231T235960Z") == calendar.timegm((2017, 1, 1, 0, 0, 0))


def test_the_date_of_amazon_is_believed_before_that_of_http():
    headers = {"date": "Fri, 02 Jan 2026 00:00:00 GMT", "x-amz-date": "20260102T030405Z"}
    assert stamp_of(headers) == ("20260102T030405Z", SECOND)


@pytest.mark.parametrize("apart", [0, 900, -900])
def test_clocks_may_differ_by_the_skew(apart):
    check_skew(SECOND, SECOND + apart, 900)


@pytest.mark.parametrize("apart", [901, -901])
def test_and_by_no_second_more(apart):
    with pytest.raises(S3Error) as refused:
        check_skew(SECOND, SECOND + apart, 900)
    assert refused.value.code == "RequestTimeTooSkewed"


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_iso_dates_are_read_as_they_are_written(second):
    assert iso_seconds(iso_time(second)) == second


def test_an_iso_date_without_a_zone_is_utc():
    assert iso_seconds("2026-01-02T03:04:05.000Z") == iso_seconds("2026-01-02T03:04:05") == SECOND
