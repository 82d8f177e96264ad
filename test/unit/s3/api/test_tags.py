"""Tags: what may be one, how they are written, and that they come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.http.storedtags import decode_tags, encode_tags, tags_header
from swift.s3.core.errors import S3Error
from swift.s3.core.tags import (
    BUCKET_TAGS_MAX,
    KEY_MAX,
    OBJECT_TAGS_MAX,
    VALUE_MAX,
    add_tag,
    parse_tag_elements,
    parse_tags_header,
)

CLEAN = st.text(alphabet="abcXYZ019+-=._:/@ äß漢", max_size=20)


@given(st.dictionaries(CLEAN.filter(bool), CLEAN, max_size=OBJECT_TAGS_MAX))
def test_tags_come_back_as_they_were_stored(tags):
    assert decode_tags(encode_tags(tags)) == tags
    assert parse_tags_header(tags_header(tags)) == tags


def test_what_is_stored_is_ascii_without_control_characters():
    text = encode_tags({"k\u00e4": "a&b=c d"})
    assert text.isascii() and text.isprintable() and " " not in text


@pytest.mark.parametrize(
    "text", ["a=1&a=2", "=1", "a=%zz", "a=%", "a=%ff", "&".join(f"k{n}=v" for n in range(500))]
)
def test_a_header_that_is_no_query_is_refused(text):
    with pytest.raises(S3Error):
        parse_tags_header(text)


def test_a_tag_may_have_no_value():
    assert parse_tags_header("a=&b") == {"a": "", "b": ""}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", "v"),
        ("k" * (KEY_MAX + 1), "v"),
        ("k", "v" * (VALUE_MAX + 1)),
        ("aws:k", "v"),
        ("k\n", "v"),
        ("k", "\x00"),
        ("k<", "v"),
        ("k", "\ud800"),
        ("k", "a\u2028b"),
    ],
)
def test_what_cannot_be_a_tag_is_refused(key, value):
    with pytest.raises(S3Error) as refused:
        add_tag({}, key, value)
    assert refused.value.code == "InvalidTag"


def test_the_longest_ones_are_taken():
    tags = {}
    add_tag(tags, "k" * KEY_MAX, "v" * VALUE_MAX)
    assert len(tags) == 1


@pytest.mark.parametrize("most", [OBJECT_TAGS_MAX, BUCKET_TAGS_MAX])
def test_there_may_be_only_so_many(most):
    items = [{"Key": f"k{n}", "Value": ""} for n in range(most + 1)]
    assert len(parse_tag_elements(items[:-1], most)) == most
    with pytest.raises(S3Error) as refused:
        parse_tag_elements(items, most)
    assert refused.value.code == "BadRequest"


def test_a_key_that_is_there_twice_in_a_document_is_refused():
    with pytest.raises(S3Error) as refused:
        parse_tag_elements([{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}], 10)
    assert refused.value.code == "InvalidTag"


@pytest.mark.parametrize("text", [None, "", "&", "a=1&&b=2"])
def test_metadata_without_tags_has_none_and_gaps_do_no_harm(text):
    assert decode_tags(text) == ({"a": "1", "b": "2"} if text and "a" in text else {})


@pytest.mark.parametrize("character", ["a", "\u00fc", "\u4e2d", "\U0001d538"])
def test_tags_at_the_limits_are_stored_in_few_bytes(character):
    tags = {f"{number}{character * 127}": character * 256 for number in range(10)}
    text = encode_tags(tags)
    assert decode_tags(text) == tags
    assert text.isascii() and len(text) < 500


@pytest.mark.parametrize("damage", ["z85:", "z85:!!", "z85:" + "0" * 10])
def test_damaged_tags_are_none(damage):
    assert decode_tags(damage) == {}
