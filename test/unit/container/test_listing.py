"""Listings as JSON: the quick text equals encoding the rows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.container.listing import as_json, as_rows, as_text, shown_type

types = st.sampled_from(["a/b", "text/plain; charset=utf8", 'x/y; q="a; b"', "a/b;swift_bytes=77", "é/ü", ""])
times = st.sampled_from(
    ["1402436408.91203", "1402436408.91203+1a8fd+3d090", "1402436408.91203_f0", "0000000010.00000", "1.5"]
)
rows = st.tuples(
    st.text(max_size=5), times, st.integers(min_value=0), types, st.text(max_size=3), st.none() | st.text()
)


@given(st.lists(rows, max_size=6))
def test_the_text_is_the_encoding_of_the_rows(page):
    assert as_json(page) == json.dumps(as_rows(page)).encode("ascii")


def test_a_row_has_the_shape_of_the_spec():
    page = [("o1", "1795227324.60467", 5, "text/plain", "5d41", None), ("a/x", "1", 1, "t", "e", "a/")]
    assert as_json(page) == (
        b'[{"bytes": 5, "hash": "5d41", "name": "o1", "content_type": "text/plain", '
        b'"last_modified": "2026-11-21T02:15:24.604670"}, {"subdir": "a/"}]'
    )
    assert as_text(page) == b"o1\na/\n"
    assert as_json([]) == b"[]" and as_text([]) == b""


def test_the_newest_time_is_shown():
    page = [("o", "1402436408.91203+1a8fd+3d090", 1, "t", "e", None)]
    assert as_rows(page)[0]["last_modified"] == "2014-06-10T21:40:12.500000"


@pytest.mark.parametrize(
    "stored, shown, size",
    [
        ("text/plain", "text/plain", None),
        ("text/plain; charset=utf8; foo=bar", "text/plain;charset=utf8;foo=bar", None),
        ('t/p; charset="a; b"; foo=bar;swift_bytes=99', 't/p;charset="a; b";foo=bar', 99),
        ('t/p; x="a\\"; b" ; y=1', 't/p;x="a\\"; b";y=1', None),
        ("a/b;swift_bytes=x", "a/b", None),
        ("text/plain ; charset = utf-8", "text/plain ;charset=utf-8", None),
        ("text/html;charset", "text/html;charset=", None),
        ("a/b;", "a/b", None),
        (";", "", None),
    ],
)
def test_what_is_shown_of_a_content_type(stored, shown, size):
    assert shown_type(stored) == (shown, size)


def test_a_long_page_is_one_json_text():
    page = [(f"o{number}", "1700000000.00000", number, "text/plain", "e", None) for number in range(2345)]
    assert as_json(page) == json.dumps(as_rows(page)).encode("ascii")


def test_text_needs_no_column_but_the_name():
    assert as_text([("o1", None), ("a/b", "a/")]) == b"o1\na/\n"
