"""X-Delete-At and X-Delete-After of a request (spec: object-server.md §4.5, §5.1)."""

from __future__ import annotations

from typing import NoReturn

from swift.base.timestamp import Timestamp, normalize_delete_at
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError
from swift.obj.target import PLAIN


def parse_delete_at(
    headers: HeaderMap, timestamp: Timestamp, *, may_be_past: bool, after: bool, equal_is_past: bool = True
) -> int | None:
    """When the object shall expire (Unix seconds), None when never; raises ``HTTPError`` 400.

    ``after`` lets X-Delete-After count; ``equal_is_past`` tells whether the request's own second is late.
    """
    relative = headers.get("x-delete-after") if after else None
    if relative is not None:
        seconds = _integer(relative, "X-Delete-After")
        delete_at = int(timestamp.seconds) + seconds
        if seconds <= 0:
            _refuse("X-Delete-After in past")
    else:
        text = headers.get("x-delete-at")
        if not text:
            return None
        delete_at = _integer(text, "X-Delete-At")
    late = delete_at <= timestamp.seconds if equal_is_past else delete_at < timestamp.seconds
    if late and not may_be_past:
        _refuse("X-Delete-At in past")
    return int(normalize_delete_at(delete_at))


def _integer(text: str, name: str) -> int:
    try:
        if len(text) > 30 or not text.isascii():
            raise ValueError
        return int(text)
    except ValueError:
        raise HTTPError(400, f"Non-integer {name}", content_type=PLAIN)


def _refuse(text: str) -> NoReturn:
    raise HTTPError(400, text, content_type=PLAIN)
