"""Names and values of headers between the wire and the services."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.http.headers import (
    has_control_characters,
    headers_from_pairs,
    lower_name,
    title_case,
    upper_name,
    utf8_value,
    wire_value,
    with_prefix,
)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("content-type", "Content-Type"),
        ("etag", "Etag"),
        ("x-object-meta-a1b", "X-Object-Meta-A1B"),
        ("x-amz-meta-mtime", "x-amz-meta-mtime"),
        ("x-object-meta-caf\xc3\xa9s", "X-Object-Meta-Caf\xc3\xa9S"),
        ("", ""),
    ],
)
def test_names_are_printed_as_clients_expect(name, title):
    assert title_case(name) == title


def test_a_client_cannot_fill_memory_with_names():
    for number in range(10_000):
        title_case(f"x-object-meta-{number}")
    assert len(title_case.__self__) <= 5000


@given(st.text(st.characters(max_codepoint=255)))
def test_only_ascii_letters_change_case(name):
    for changed in (lower_name(name), upper_name(name)):
        assert len(changed) == len(name)
        assert all(new == old for new, old in zip(changed, name, strict=True) if ord(old) > 127)
    assert lower_name(upper_name(name)) == lower_name(name)


def test_repeated_names_are_joined():
    assert headers_from_pairs([("Via", "a"), ("VIA", "b"), ("Host", "h")]) == {"via": "a, b", "host": "h"}


def test_a_prefix_alone_is_no_header_of_it():
    headers = {"x-meta-": "", "x-meta-a": "1", "x-other": "2"}
    assert with_prefix(headers, "x-meta-") == {"x-meta-a": "1"}


@given(st.binary())
def test_every_value_of_the_wire_survives_being_text(data):
    value = data.decode("latin-1")
    assert wire_value(utf8_value(value)) == value


def test_text_is_seen_as_its_utf8_bytes():
    assert wire_value("\u0142") == "\xc5\x82"
    assert utf8_value("\xc5\x82") == "\u0142"


@pytest.mark.parametrize(
    ("text", "found"), [("a\tb \xe9\xa0", False), ("", False), *((f"a{c}b", True) for c in "\r\n\0\x1f\x7f")]
)
def test_control_characters_are_found_but_tabs_are_none(text, found):
    assert has_control_characters(text) is found
