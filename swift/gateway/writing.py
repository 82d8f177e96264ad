"""The meaning of the proxy's 202 to the PUT of an object: a newer state exists, nothing was stored.

Filters that report more than a status to clients must treat it neither as success nor as failure:

- A write that began during the request overtook it. That equals a write which succeeded and was replaced at
  once: 201, with the ETag of the bytes that the client sent.
- The timestamp of the newer state is ahead of this host's clock, or cannot be read. Clocks disagree and the
  write is lost: ``WriteNotStored``, a 503, which clients repeat.
"""

from __future__ import annotations

import time
from hashlib import md5

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.subrequest import Forward, drained, make_subrequest, open_response, preauthorise
from swift.http import environkeys, fields
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response

_READ_BYTES = 65536
NOT_STORED = (
    "The object was not stored: its present state has a timestamp ahead of this server's clock. "
    "Please try again later."
)


class WriteNotStored(HTTPError):
    """A write lost to a state from the future: 503."""

    def __init__(self) -> None:
        super().__init__(503, NOT_STORED, content_type=TEXT)


def forward_write(forward: Forward, request: Request) -> Response:
    """Return the response to a request; for the PUT of an object that got 202, the response to its client.

    Raises ``WriteNotStored``, and ``BodyError`` if an unread body is not what its sender promised.
    """
    entity, body = request.entity, request.body
    response = forward(request)
    if response.status != 202 or request.method != "PUT" or entity is None or entity.path.obj is None:
        return response
    # Authentication may have given the request its account.
    owner = request.entity or entity
    newest_s = _newest_timestamp_s(forward, request, entity.path._replace(account=owner.path.account))
    if newest_s is None or newest_s > time.time():
        drained(response)
        raise WriteNotStored
    drained(response)
    headers: HeaderMap = {name: text for name, text in response.headers.items() if name in _COPIED_HEADERS}
    if "etag" not in headers:
        headers["etag"] = _etag_of(body)
        if unquote_etag(request.headers.get("etag", "")) not in ("", headers["etag"]):
            return error_response(422)
    return error_response(201, headers=headers)


_COPIED_HEADERS = ("etag", "last-modified", "x-object-version-id")


def _newest_timestamp_s(forward: Forward, request: Request, path: EntityPath) -> float | None:
    """Return the Unix time of the object's newest state, deletions included; None if no server knows it."""
    headers: HeaderMap = {"x-newest": "true", fields.BACKEND_ALLOW_RESERVED_NAMES: "true"}
    sub = make_subrequest(request, "HEAD", "/v1" + path.quoted, headers=headers)
    sub.headers.pop("origin", None)
    sub.env.update({environkeys.ACCESS_LOG_MADE: True, environkeys.SYMLINK_OVERRIDE: True})
    with open_response(forward, preauthorise(sub)) as response:
        found = response.headers
    try:
        stamps = [Timestamp(found[name]) for name in _TIMES if name in found]
    except InvalidTimestamp:
        return None
    return max(stamps).seconds if stamps else None


_TIMES = (fields.BACKEND_TIMESTAMP, fields.BACKEND_DATA_TIMESTAMP)


def _etag_of(body: RequestBody) -> str:
    """Return the MD5 of a body that was refused unread; raises ``HTTPError`` 503 if a part of it was read."""
    if body.received:
        raise HTTPError(503)
    digest = md5(usedforsecurity=False)
    while data := body.read(_READ_BYTES):
        digest.update(data)
    return digest.hexdigest()
