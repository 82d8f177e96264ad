"""Tags of objects and buckets as they are stored in metadata. Pure."""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping
from urllib.parse import quote, unquote

#: Begins compressed tags: zlib of a JSON object, in base 85. A query string has no colon.
_COMPRESSED = "z85:"
_STORED_BYTES_MAX = 1 << 16

Tags = dict[str, str]


def tags_header(tags: Mapping[str, str]) -> str:
    """Return tags as ``x-amz-tagging`` has them: a query string."""
    return "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in tags.items())


def encode_tags(tags: Mapping[str, str]) -> str:
    """Return tags as stored in metadata: a query string, compressed if that is shorter.

    Ten tags of AWS's largest size would not fit into the attributes of a file on ext4 otherwise.
    """
    plain = tags_header(tags)
    text = json.dumps(tags, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    packed = _COMPRESSED + b85encode(zlib.compress(text, 9)).decode("ascii")
    return packed if len(packed) < len(plain) else plain


def decode_tags(text: str | None) -> Tags:
    """Return the tags stored in metadata; none if they are damaged."""
    if text is not None and text.startswith(_COMPRESSED):
        try:
            data = zlib.decompressobj().decompress(b85decode(text[len(_COMPRESSED) :]), _STORED_BYTES_MAX)
            return {str(key): str(value) for key, value in json.loads(data).items()}
        except (ValueError, zlib.error, AttributeError):
            return {}
    pairs = (pair.partition("=") for pair in (text or "").split("&") if pair)
    return {unquote(key): unquote(value) for key, _, value in pairs}
