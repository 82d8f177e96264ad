"""Tags of objects and buckets: their text forms and their limits. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from swift.http.storedtags import Tags
from swift.s3.core.errors import S3Error, argument_error
from swift.s3.core.xml import Group, RepeatedGroup, Text, Tree, Value, tree_of, trees_of

TAGGING = Group(
    "Tagging",
    Group(
        "TagSet",
        RepeatedGroup("Tag", Text("Key", required=True), Text("Value", required=True)),
        required=True,
    ),
)
OBJECT_TAGS_MAX, BUCKET_TAGS_MAX = 10, 50
KEY_MAX, VALUE_MAX = 128, 256
#: Every character of a tag, percent-quoted, has room in a header with these.
_PUNCTUATION = frozenset("+-=._:/@ ")

_has_stray_percent = re.compile(r"%(?![0-9A-Fa-f]{2})").search


def parse_tags_document(tree: Tree, most: int) -> Tags:
    """Return the tags in a ``Tagging`` document; raise ``S3Error``."""
    return parse_tag_elements(trees_of(tree_of(tree.get("TagSet")).get("Tag")), most)


def parse_tag_elements(items: Sequence[Tree], most: int) -> Tags:
    """Return the tags in ``Tag`` elements; raise ``S3Error``."""
    tags: Tags = {}
    for item in items:
        key, value = item.get("Key"), item.get("Value")
        add_tag(tags, key if isinstance(key, str) else "", value if isinstance(value, str) else "")
    return _validate_count(tags, most)


def parse_tags_header(text: str, most: int = OBJECT_TAGS_MAX) -> Tags:
    """Return the tags in ``x-amz-tagging``; raise ``S3Error``."""
    if _has_stray_percent(text):
        raise _invalid_header(text)
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=2 * most)
    except ValueError:
        raise _invalid_header(text)
    names = [name for name, _ in pairs]
    if "" in names or len(set(names)) != len(names):
        raise _invalid_header(text)
    tags: Tags = {}
    for key, value in pairs:
        add_tag(tags, key, value)
    return _validate_count(tags, most)


def _invalid_header(text: str) -> S3Error:
    return argument_error(
        "x-amz-tagging",
        text,
        "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without "
        "tag name duplicates.",
    )


def add_tag(tags: Tags, key: str, value: str) -> None:
    """Add a tag; raise ``S3Error``."""
    if key in tags:
        raise S3Error("InvalidTag", "Cannot provide multiple Tags with the same key", details={"TagKey": key})
    if not 1 <= len(key) <= KEY_MAX or not _has_allowed_characters(key) or key.startswith("aws:"):
        raise S3Error("InvalidTag", "The TagKey you have provided is invalid", details={"TagKey": key})
    if len(value) > VALUE_MAX or not _has_allowed_characters(value):
        raise S3Error("InvalidTag", "The TagValue you have provided is invalid", details={"TagKey": key})
    tags[key] = value


def _has_allowed_characters(text: str) -> bool:
    return all(c.isalnum() or c in _PUNCTUATION or (ord(c) > 127 and c.isprintable()) for c in text)


def _validate_count(tags: Tags, most: int) -> Tags:
    if len(tags) > most:
        what = "Object tags" if most == OBJECT_TAGS_MAX else "Bucket tag count"
        raise S3Error("BadRequest", f"{what} cannot be greater than {most}")
    return tags


def render_tags(tags: Mapping[str, str]) -> Value:
    """Return the value of a ``Tagging`` document."""
    return {"TagSet": {"Tag": [{"Key": key, "Value": value} for key, value in tags.items()]}}
