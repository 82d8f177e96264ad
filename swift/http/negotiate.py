"""Content negotiation of listings (spec: public-api.md §7.1).

Pure decisions over the query and the Accept header; rendering is ``http.listing``.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from swift.base.entity import NotUTF8
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError


class ListingFormat(Enum):
    """A representation of a listing; the value is its media type."""

    PLAIN = "text/plain"
    JSON = "application/json"
    XML = "application/xml"
    TEXT_XML = "text/xml"

    @property
    def content_type(self) -> str:
        """The Content-Type of the response."""
        return _CONTENT_TYPES[self]

    @property
    def is_xml(self) -> bool:
        """True if the body is XML, whichever name it goes by."""
        return self is ListingFormat.XML or self is ListingFormat.TEXT_XML


_CONTENT_TYPES = {shape: f"{shape.value}; charset=utf-8" for shape in ListingFormat}

_BY_QUERY = {
    "plain": ListingFormat.PLAIN,
    "json": ListingFormat.JSON,
    "xml": ListingFormat.XML,
}

_TOKEN = r"[^\s;,/=\"()<>@:\\\[\]?{}]+"
_PARAMETER = rf";\s*({_TOKEN})\s*=\s*({_TOKEN}|\"(?:\\.|[^\"\\])*\")\s*"
_MEDIA_RANGE = re.compile(rf"\s*({_TOKEN})/({_TOKEN})\s*((?:{_PARAMETER})*)\s*")
_PARAMETERS = re.compile(_PARAMETER)


class _BadAccept(ValueError):
    """The header does not follow the grammar."""


def choose_format(request: Request) -> ListingFormat:
    """Return the listing format that a GET or HEAD of an account or container requests.

    Raises ``HTTPError`` 400 for an Accept header that does not parse or a format that is not UTF-8, and 406
    when nothing in the header can be served.
    """
    try:
        asked = request.param_utf8("format")
    except NotUTF8 as error:
        raise HTTPError(400, str(error), content_type=TEXT)
    if asked:
        return _BY_QUERY.get(asked.lower(), ListingFormat.PLAIN)
    accept = request.headers.get("accept")
    if not accept:
        return ListingFormat.PLAIN
    try:
        chosen = _best_match(accept)
    except _BadAccept:
        raise HTTPError(400, "Invalid Accept header")
    if chosen is None:
        raise HTTPError(406)
    return chosen


def choose_json(request: Request) -> ListingFormat:
    """Return JSON for listings that have no other format; raise 406 if the client does not accept it.

    And 400 as ``choose_format``.
    """
    try:
        asked = request.param_utf8("format")
    except NotUTF8 as error:
        raise HTTPError(400, str(error), content_type=TEXT)
    accept = f"application/{asked.lower()}" if asked else request.headers.get("accept")
    try:
        takes = any(
            quality > 0 and kind in ("*", "application") and name in ("*", "json")
            for kind, name, quality in _media_ranges(accept or "*/*")
        )
    except _BadAccept:
        raise HTTPError(406 if asked else 400, None if asked else "Invalid Accept header")
    if not takes:
        raise HTTPError(406)
    return ListingFormat.JSON


def accepted_format(accept: str | None) -> ListingFormat | None:
    """Return the report format that an Accept header requests; text without one.

    None when it does not parse or wants none of them.
    """
    if not accept:
        return ListingFormat.PLAIN
    try:
        return _best_match(accept)
    except _BadAccept:
        return None


def add_vary(request: Request, headers: HeaderMap) -> None:
    """Add ``Vary: Accept`` to response headers when the query did not fix the format."""
    if "format" in request.params:
        return
    vary = headers.get("vary")
    if vary is None:
        headers["vary"] = "Accept"
    elif "accept" not in [name.strip().lower() for name in vary.split(",")]:
        headers["vary"] = f"{vary}, Accept"


@lru_cache(maxsize=256)
def _best_match(accept: str) -> ListingFormat | None:
    """Return the first format that the preferred media range allows; raises ``_BadAccept``."""
    ranges = _media_ranges(accept)
    ranges.sort(key=lambda r: (-r[2], r[0] == "*", r[1] == "*"))
    for main, sub, _quality in ranges:
        for shape in ListingFormat:
            have_main, have_sub = shape.value.split("/")
            if main in ("*", have_main) and sub in ("*", have_sub):
                return shape
    return None


def _media_ranges(accept: str) -> list[tuple[str, str, float]]:
    """Return type, subtype and quality of each media range, in header order; raises ``_BadAccept``."""
    found, position = [], 0
    while True:
        match = _MEDIA_RANGE.match(accept, position)
        if match is None:
            raise _BadAccept(accept)
        # Types are compared as they are written, as the peer does: clients see 406 from both or from none.
        found.append((match[1], match[2], _quality(match[3])))
        position = match.end()
        if position == len(accept):
            return found
        if accept[position] != ",":
            raise _BadAccept(accept)
        position += 1


def _quality(parameters: str) -> float:
    for parameter in _PARAMETERS.finditer(parameters):
        if parameter[1] == "q":
            try:
                quality = float(parameter[2])
            except ValueError:
                raise _BadAccept(parameters)
            return quality
    return 1.0
