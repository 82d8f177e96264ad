"""Redirects of container servers: from a sharded container to its shard (spec: object-server.md §13)."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.base.truth import is_true
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.headers import utf8_value


class Redirect(NamedTuple):
    """A shard (``account/container``) that replaced a container, and the time of that."""

    timestamp: Timestamp
    container: str


def redirect_of(response: BackendResponse | None) -> Redirect | None:
    """Return the destination of a 301; None when it is none or not usable."""
    if response is None or response.status != 301:
        return None
    location = response.headers.get("location", "")
    if is_true(response.headers.get(fields.BACKEND_LOCATION_IS_QUOTED)):
        location = unquote(location)
    else:
        location = utf8_value(location)
    parts = location.lstrip("/").split("/", 2)
    if len(parts) < 2 or not all(parts[:2]):
        return None
    try:
        timestamp = Timestamp(response.headers.get(fields.BACKEND_REDIRECT_TIMESTAMP))
    except InvalidTimestamp:
        return None
    return Redirect(timestamp, f"{parts[0]}/{parts[1]}")
