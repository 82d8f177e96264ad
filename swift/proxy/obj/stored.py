"""Which headers of a stored object's answer make a copy of it when they are sent again."""

from __future__ import annotations

from swift.http import fields
from swift.http.headers import HeaderMap

#: What belongs to the answer, or to its time.
_NOT_STORED = frozenset(
    (
        *("date", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-ranges"),
        *("last-modified", "x-timestamp", "content-range", "server"),
    )
)


def stored_headers(answered: HeaderMap) -> HeaderMap:
    """The headers of an object, without those of the answer that brought them."""
    return {
        name: value
        for name, value in answered.items()
        if name not in _NOT_STORED and not name.startswith(fields.BACKEND)
    }
