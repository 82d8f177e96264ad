"""What a request for an object wants of its bytes, and whether it changed since a date."""

import pytest

from swift.s3.api.metadata import is_changed_since, reading_headers, stored_headers
from swift.s3.errors import S3Error


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


@pytest.mark.parametrize(
    ("name", "is_stored"),
    [("a.b", True), ("\u00c3\u00a9", True), ("a(b)", False), ("a b", False), ("a\x00", False)],
)
def test_metadata_whose_name_swift_cannot_store_is_left_out(name, is_stored):
    assert (f"x-object-meta-{name}" in stored_headers({f"x-amz-meta-{name}": "v"})) is is_stored


def test_metadata_without_a_name_is_refused():
    with pytest.raises(S3Error) as refused:
        stored_headers({"x-amz-meta-": "v"})
    assert refused.value.code == "InvalidRequest"
