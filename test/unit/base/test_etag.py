"""Entity tags, quotes optional."""

import pytest

from swift.base.etag import EtagList, unquote_etag


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("abc", "abc"),
        ('"abc"', "abc"),
        (' "abc" ', "abc"),
        ('"abc', '"abc'),
        ('abc"', 'abc"'),
        ('"', '"'),
        ('""', ""),
        ('""abc""', '"abc"'),
        ("", ""),
    ],
)
def test_one_pair_of_quotes_is_taken_off(text, tag):
    assert unquote_etag(text) == tag


@pytest.mark.parametrize(
    ("header", "etag", "matches"),
    [
        ('"a", "b"', "b", True),
        ("a,b", "c", False),
        ("*", "whatever", True),
        ("*", None, True),
        ("a", None, False),
        (" , ,", "", False),
        ('W/"a"', "a", False),
    ],
)
def test_a_list_names_what_is_meant(header, etag, matches):
    assert EtagList.parse(header).matches(etag) is matches
