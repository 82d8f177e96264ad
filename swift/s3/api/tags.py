"""Tags of objects and buckets: their text forms and their limits. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, quote, unquote

from swift.s3.errors import S3Error
from swift.s3.xml import Group, Many, Text, Tree, Value, tree_of, trees_of

TAGGING = Group(
    "Tagging",
    Group("TagSet", Many("Tag", Text("Key", required=True), Text("Value", required=True)), required=True),
)
OBJECT_TAGS_MAX, BUCKET_TAGS_MAX = 10, 50
KEY_MAX, VALUE_MAX = 128, 256
#: Every character of a tag, percent-quoted, has room in a header with these.
_PUNCTUATION = frozenset("+-=._:/@ ")

_has_stray_percent = re.compile(r"%(?![0-9A-Fa-f]{2})").search

Tags = dict[str, str]


def tags_of_document(tree: Tree, most: int) -> Tags:
    """Return the tags of a ``Tagging`` document; raise ``S3Error``."""
    return tags_of_items(trees_of(tree_of(tree.get("TagSet")).get("Tag")), most)


def tags_of_items(items: Sequence[Tree], most: int) -> Tags:
    """Return the tags of ``Tag`` elements; raise ``S3Error``."""
    tags: Tags = {}
    for item in items:
        key, value = item.get("Key"), item.get("Value")
        add_tag(tags, key if isinstance(key, str) else "", value if isinstance(value, str) else "")
    return _checked(tags, most)


def tags_of_header(text: str, most: int = OBJECT_TAGS_MAX) -> Tags:
    """Return the tags of ``x-amz-tagging``; raise ``S3Error``."""
    if _has_stray_percent(text):
        raise _bad_header(text)
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=2 * most)
    except ValueError:
        raise _bad_header(text)
    names = [name for name, _ in pairs]
    if "" in names or len(set(names)) != len(names):
        raise _bad_header(text)
    tags: Tags = {}
    for key, value in pairs:
        add_tag(tags, key, value)
    return _checked(tags, most)


def _bad_header(text: str) -> S3Error:
    return S3Error(
        "InvalidArgument",
        "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without "
        "tag name duplicates.",
        details={"ArgumentName": "x-amz-tagging", "ArgumentValue": text},
    )


def add_tag(tags: Tags, key: str, value: str) -> None:
    """Add a tag; raise ``S3Error``."""
    if key in tags:
        raise S3Error("InvalidTag", "Cannot provide multiple Tags with the same key", details={"TagKey": key})
    if not 1 <= len(key) <= KEY_MAX or not _is_clean(key) or key.startswith("aws:"):
        raise S3Error("InvalidTag", "The TagKey you have provided is invalid", details={"TagKey": key})
    if len(value) > VALUE_MAX or not _is_clean(value):
        raise S3Error("InvalidTag", "The TagValue you have provided is invalid", details={"TagKey": key})
    tags[key] = value


def _is_clean(text: str) -> bool:
    return all(c.isalnum() or c in _PUNCTUATION or (ord(c) > 127 and c.isprintable()) for c in text)


def _checked(tags: Tags, most: int) -> Tags:
    if len(tags) > most:
        what = "Object tags" if most == OBJECT_TAGS_MAX else "Bucket tag count"
        raise S3Error("BadRequest", f"{what} cannot be greater than {most}")
    return tags


def stored_tags(tags: Mapping[str, str]) -> str:
    """Return tags as metadata has them: a query."""
    return "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in tags.items())


def parsed_tags(text: str | None) -> Tags:
    """Return tags from metadata."""
    pairs = (pair.partition("=") for pair in (text or "").split("&") if pair)
    return {unquote(key): unquote(value) for key, _, value in pairs}


def tags_document(tags: Mapping[str, str]) -> Value:
    """Return the value of a ``Tagging`` document."""
    return {"TagSet": {"Tag": [{"Key": key, "Value": value} for key, value in tags.items()]}}
