"""Header names and values between the wire and the services.

Inside this project a set of headers is a plain ``dict[str, str]`` (``HeaderMap``): names in **lower
case**, values as Latin-1 views of the wire bytes. Plain dictionaries keep the hot path free of method
calls; the wire writer prints names Title-Cased through the memo below, as clients of the API expect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from swift.base.memo import Memo

HeaderMap = dict[str, str]

_find_control_character = re.compile("[\x00-\x08\x0a-\x1f\x7f]").search

#: Names that are remembered; bounded, because a client chooses them.
_TITLES_MAX = 4096


def _title_name(name: str) -> str:
    if name.startswith("x-amz-"):
        # Clients of S3 read the names of metadata as they stand.
        return name
    # Bytes, because a Latin-1 view of UTF-8 must not be changed outside ASCII.
    return name.encode("latin-1", "replace").title().decode("latin-1")


#: ``x-object-meta-a1b`` → ``X-Object-Meta-A1B``: every letter after a non-letter is a capital.
title_case: Callable[[str], str] = Memo(_title_name, _TITLES_MAX, {"etag": "Etag"}).__getitem__


def lower_name(name: str) -> str:
    """Return a header name in lower case; bytes outside ASCII stay as they are."""
    if name.isascii():
        return name.lower()
    return name.encode("latin-1", "replace").lower().decode("latin-1")


def upper_name(name: str) -> str:
    """Return a header name in upper case; bytes outside ASCII stay as they are."""
    if name.isascii():
        return name.upper()
    return name.encode("latin-1", "replace").upper().decode("latin-1")


def has_control_characters(text: str) -> bool:
    """Return True if a text has control characters, which headers must not have (RFC 9110, 5.5)."""
    return not text.isprintable() and _find_control_character(text) is not None


def headers_from_pairs(pairs: Iterable[tuple[str, str]]) -> HeaderMap:
    """Return a HeaderMap from pairs in any case; repeated names are joined with ``, ``."""
    headers: HeaderMap = {}
    for name, value in pairs:
        key = lower_name(name)
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def with_prefix(headers: HeaderMap, prefix: str) -> HeaderMap:
    """Return the headers whose lower-case name starts with ``prefix`` and has something after it."""
    size = len(prefix)
    return {name: value for name, value in headers.items() if name.startswith(prefix) and len(name) > size}


def utf8_value(text: str) -> str:
    """Return a Latin-1 header value seen as UTF-8 text; undecodable bytes become surrogate escapes."""
    if text.isascii():
        return text
    return text.encode("latin-1", "replace").decode("utf-8", "surrogateescape")


def wire_value(text: str) -> str:
    """Return decoded text as the Latin-1 view of its UTF-8 bytes, ready for a HeaderMap."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("latin-1")
