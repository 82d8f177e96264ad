"""Names in paths: splitting before decoding, and the reserved namespace."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.entity import (
    BadPath,
    EntityPath,
    NotUTF8,
    decode_path,
    quote_path,
    reserved_name_error,
    split_path,
)


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ("/v1", ["v1", None, None, None]),
        ("/v1/", ["v1", None, None, None]),
        ("/v1/a", ["v1", "a", None, None]),
        ("/v1/a/", ["v1", "a", None, None]),
        ("/v1/a/c/", ["v1", "a", "c", None]),
        ("/v1/a/c/o", ["v1", "a", "c", "o"]),
        ("/v1/a/c/o/", ["v1", "a", "c", "o/"]),
        ("/v1/a/c//o", ["v1", "a", "c", "/o"]),
        ("/v1/a/c/../o/./p", ["v1", "a", "c", "../o/./p"]),
        ("/v1/a/c%2Fd/o", ["v1", "a", "c", "d/o"]),
        ("/v1%2Fa%2Fc", ["v1", "a", "c", None]),
        ("/v1/a/c%2F", ["v1", "a", "c", None]),
        ("/v1/a/c%252Fd", ["v1", "a", "c%2Fd", None]),
        ("/v1/a/%C3%BC/%E2%82%AC", ["v1", "a", "ü", "€"]),
        ("/v1/a/c/100%", ["v1", "a", "c", "100%"]),
    ],
)
def test_request_paths_split_into_their_entities(raw, parts):
    assert split_path(raw, 1, 4, rest_with_last=True) == parts


@pytest.mark.parametrize(
    "raw", ["", "v1/a", "/", "//a", "/v1//", "/v1//c", "/v1/a//", "/v1/a//o", "/v1/a/%2F"]
)
def test_paths_with_holes_are_bad(raw):
    with pytest.raises(BadPath):
        split_path(raw, 1, 4, rest_with_last=True)


def test_more_segments_than_allowed_are_bad_unless_the_rest_goes_with_the_last():
    assert split_path("/a/b/c", 2, 2, rest_with_last=True) == ["a", "b/c"]
    for raw in ("/a/b/c", "/a"):
        with pytest.raises(BadPath):
            split_path(raw, 2, 2)


@pytest.mark.parametrize("raw", ["/%ff", "/\xff", "/%ed%a0%80"])
def test_what_is_not_utf_8_says_so(raw):
    with pytest.raises(NotUTF8):
        decode_path(raw)


@given(st.text("a/.-_~ %\u00e9Z9\n+"))
def test_plain_names_are_quoted_like_all_others(name):
    assert quote_path(name) == quote(name, safe="/~")


@given(st.text(st.characters(blacklist_categories=("Cs",))))
def test_quoting_and_decoding_are_inverse(name):
    assert decode_path(quote_path(name)) == name


@given(st.text(max_size=30))
def test_any_path_splits_or_is_refused_with_a_sentence(text):
    try:
        parts = split_path(text, 1, 4, rest_with_last=True)
    except (BadPath, NotUTF8, UnicodeEncodeError):
        return
    assert len(parts) == 4
    assert parts[0]


def test_an_entity_knows_its_kind_and_parent():
    obj = EntityPath("a", "c", "ö/x")
    assert (obj.kind, obj.parent.kind, obj.parent.parent.kind) == ("object", "container", "account")
    assert (str(obj), obj.quoted) == ("/a/c/ö/x", "/a/c/%C3%B6/x")
    with pytest.raises(ValueError):
        _ = EntityPath("a").parent


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (("a", "c", "o"), None),
        (("a", "\0c", "\0o"), None),
        (("\0a", None, None), None),
        (("a\0", None, None), "Invalid reserved-namespace account"),
        (("a", "c\0", None), "Invalid reserved-namespace container"),
        (("a", "c", "o\0"), "Invalid reserved-namespace object"),
        (("a", "c", "\0o"), "Invalid reserved-namespace object in user-namespace container"),
        (("a", "\0c", "o"), "Invalid user-namespace object in reserved-namespace container"),
        ((".a", "\0c", "o"), None),
    ],
)
def test_reserved_names_keep_to_their_own(path, error):
    assert reserved_name_error(EntityPath(*path)) == error
