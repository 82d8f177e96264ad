"""Conditional requests of GET and HEAD (spec: public-api.md §10, object-server.md §7).

Deciding only: the caller builds the 304 or 412 from the entity's headers.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from swift.base.etag import EtagList
from swift.http.headers import HeaderMap

_CONDITIONAL_HEADERS = ("if-none-match", "if-match", "if-modified-since", "if-unmodified-since")


def parse_http_date(text: str) -> int | None:
    """Unix seconds of an HTTP date; None when it does not parse and so must be ignored."""
    try:
        moment = parsedate_to_datetime(text)
        return int(moment.timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def is_conditional(headers: HeaderMap) -> bool:
    """Whether any conditional header is present."""
    return not headers.keys().isdisjoint(_CONDITIONAL_HEADERS)


def failed_condition(
    headers: HeaderMap, *, etag: str | None, last_modified_s: int | None, exists: bool = True
) -> int | None:
    """304 or 412 when a condition of the request decides so, else None.

    ``etag`` is unquoted; ``last_modified_s`` is the rounded-up second shown as Last-Modified. Order, first
    hit wins: If-None-Match, If-Match, absent entity with ``If-Match: *``, If-Modified-Since,
    If-Unmodified-Since.
    """
    if not exists:
        value = headers.get("if-match")
        return 412 if value is not None and "*" in EtagList.parse(value) else None
    value = headers.get("if-none-match")
    if value is not None and EtagList.parse(value).matches(etag):
        return 304
    value = headers.get("if-match")
    if value is not None and not EtagList.parse(value).matches(etag):
        return 412
    if last_modified_s is None:
        return None
    value = headers.get("if-modified-since")
    if value is not None:
        since = parse_http_date(value)
        if since is not None and since >= last_modified_s:
            return 304
    value = headers.get("if-unmodified-since")
    if value is not None:
        since = parse_http_date(value)
        if since is not None and since < last_modified_s:
            return 412
    return None
