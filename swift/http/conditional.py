"""Conditional requests of GET and HEAD (RFC 9110 §13; spec: public-api.md §10, object-server.md §7).

Deciding only: the caller builds the 304 or 412 from the entity's headers. ``If-Range`` is judged by what
clients see: whatever serves a range asks ``if_range_matches``, and whatever forwards one asks
``is_outdated_range_response`` of the answer.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from swift.base.etag import EtagList, unquote_etag
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import Response

_CONDITIONAL_HEADERS = ("if-none-match", "if-match", "if-modified-since", "if-unmodified-since")


def parse_http_date(text: str) -> int | None:
    """Return the Unix seconds of an HTTP date; None when it is malformed and so must be ignored."""
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
        return int(moment.timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def is_conditional(headers: HeaderMap) -> bool:
    """Return True if any conditional header is present."""
    return not headers.keys().isdisjoint(_CONDITIONAL_HEADERS)


def failed_condition(
    headers: HeaderMap, *, etag: str | None, last_modified_s: int | None, exists: bool = True
) -> int | None:
    """Return 304 or 412 when a condition of the request fails, else None.

    ``etag`` is unquoted; ``last_modified_s`` is the rounded-up second shown as Last-Modified, None if
    unknown. The order is that of RFC 9110 §13.2.2: a condition on dates counts only where none on ETags is
    given. If-Match compares strongly, If-None-Match weakly. What is absent fails ``If-Match: *`` alone.
    """
    if not exists:
        value = headers.get("if-match")
        return 412 if value is not None and "*" in EtagList.parse(value) else None
    match = headers.get("if-match")
    if match is not None:
        if not EtagList.parse(match).matches(etag):
            return 412
    elif _is_before(headers.get("if-unmodified-since"), last_modified_s):
        return 412
    none_match = headers.get("if-none-match")
    if none_match is not None:
        return 304 if EtagList.parse(none_match).matches_weakly(etag) else None
    since = headers.get("if-modified-since")
    if since is None or last_modified_s is None or parse_http_date(since) is None:
        return None
    return None if _is_before(since, last_modified_s) else 304


def _is_before(text: str | None, last_modified_s: int | None) -> bool:
    """Return True if a date is one and earlier than the modification."""
    moment = None if text is None else parse_http_date(text)
    return moment is not None and last_modified_s is not None and moment < last_modified_s


def if_range_matches(headers: HeaderMap, *, etag: str | None, last_modified_s: int | None) -> bool:
    """Return False if the request's If-Range is for another version, so that its Range counts for nothing.

    RFC 9110 §13.1.5. An ETag compares strongly, quotes are optional as in this API's answers; a date must be
    the very Last-Modified.
    """
    value = headers.get("if-range")
    if value is None:
        return True
    value = value.strip()
    if not value.startswith('"'):
        moment = parse_http_date(value)
        if moment is not None:
            return moment == last_modified_s
    return etag is not None and unquote_etag(value) == etag


def is_outdated_range_response(headers: HeaderMap, response: Response) -> bool:
    """Return True if an answer obeys a Range that the request's If-Range forbids."""
    if "if-range" not in headers or response.status not in (206, 416):
        return False
    return not if_range_matches(
        headers,
        etag=client_etag(headers, response.headers),
        last_modified_s=parse_http_date(response.headers.get("last-modified", "")),
    )


def client_etag(headers: HeaderMap, found: HeaderMap) -> str:
    """Return the unquoted ETag by which the client knows the entity.

    That is the first system metadata named in X-Backend-Etag-Is-At, else the answer's ETag.
    """
    for name in headers.get(fields.BACKEND_ETAG_IS_AT, "").lower().split(","):
        value = found.get(name.strip())
        if value is not None:
            return unquote_etag(value)
    return unquote_etag(found.get("etag", ""))
