"""Headers of S3 and those of the store."""

import pytest

from swift.middleware.s3api.metadata import is_changed_since, reading_headers


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("bytes=0-3", "bytes=0-3"),
        ("bytes=-1", "bytes=-1"),
        ("bytes=2-", "bytes=2-"),
        ("bytes= -1", None),
        ("bytes=0-0,2-2", None),
        ("bytes=\u0661-", None),
        ("items=0-3", None),
    ],
)
def test_one_range_is_asked_for_and_anything_else_is_everything(text, wanted):
    assert reading_headers({"range": text}).get("range") == wanted


@pytest.mark.parametrize(
    "since, modified, wanted",
    [
        ("Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT", True),
        ("Tue, 02 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT", False),
        ("no date", "Tue, 02 Jan 2024 00:00:00 GMT", False),
        ("Mon, 01 Jan 2024 00:00:00 GMT", "", False),
    ],
)
def test_an_object_is_changed_since_a_date_that_is_one(since, modified, wanted):
    assert is_changed_since({"if-unmodified-since": since}, {"last-modified": modified}) is wanted
