"""The versions of an object that nodes have, and deletions that depend on them.

The expirer deletes an object as of its expiry time, if the object still has that expiry time. Nodes evaluate
this by their own version. Suppose that a newer version was written only to handoffs, because the primaries
were down. The older version on the primaries would match, and the tombstone could hide the newer version too.
So every node that may have a newer version is requested before (spec: replication.md §8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from swift import green
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import TEXT, HTTPError
from swift.proxy.backend import Backends
from swift.proxy.obj.location import WriteLocation
from swift.ring.device import Node

#: Headers that belong to the response or to its time.
_NOT_STORED = frozenset(
    (
        *("date", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-ranges"),
        *("last-modified", "x-timestamp", "content-range", "server"),
    )
)


def stored_read_headers(policy_index: int) -> HeaderMap:
    """Return request headers for reading what a node has stored, even if clients could not see it."""
    return {
        fields.BACKEND_STORAGE_POLICY_INDEX: str(policy_index),
        fields.BACKEND_REPLICATION: "true",
        fields.BACKEND_OPEN_EXPIRED: "true",
    }


class Head(Protocol):
    """The head of a node's response."""

    status: int
    headers: HeaderMap


def reported_version(response: Head) -> Timestamp | None:
    """Return the version that a GET or HEAD reports, which may be a tombstone; None for other responses."""
    names = {200: fields.BACKEND_DATA_TIMESTAMP, 404: fields.BACKEND_TIMESTAMP}
    try:
        return Timestamp(response.headers[names[response.status]])
    except (KeyError, InvalidTimestamp):
        return None


def has_version(response: Head, version: Timestamp) -> bool:
    """Return True if a node that was sent a version has stored it; False if the node has something newer."""
    return response.status == 201 or response.headers.get(fields.BACKEND_TIMESTAMP) == version.internal


def stored_headers(headers: HeaderMap) -> HeaderMap:
    """Return the headers of an object, without those of the response that carried them."""
    return {
        name: value
        for name, value in headers.items()
        if name not in _NOT_STORED and not name.startswith(fields.BACKEND)
    }


IF_DELETE_AT = "x-if-delete-at"


def check_expiry_unchanged(
    backends: Backends, location: WriteLocation, nodes: Sequence[Node], headers: HeaderMap
) -> None:
    """Raise ``HTTPError`` 412 when the newest version that a node has is not to expire at X-If-Delete-At."""
    wanted = _parse_seconds(headers[IF_DELETE_AT])
    if wanted is None:
        # Object servers respond with the error.
        return
    read_headers = {**stored_read_headers(location.policy.index), "x-trans-id": headers.get("x-trans-id", "")}
    requests = [
        backends.make_request(node, location.part, "HEAD", location.path, read_headers) for node in nodes
    ]
    outcomes = green.gather([partial(backends.request, request) for request in requests])
    responses = [response for response in outcomes if response is not None]
    found = [(version, response) for response in responses if (version := _version(response))]
    if not found:
        return
    newest = max(found, key=lambda pair: pair[0])[1]
    if newest.status == 200 and _delete_at(newest.headers) != wanted:
        raise HTTPError(412, "X-If-Delete-At and X-Delete-At do not match", content_type=TEXT)


def _parse_seconds(text: str) -> float | None:
    try:
        moment_s = float(text) if len(text) <= 30 and text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return moment_s if math.isfinite(moment_s) else None


def _version(response: BackendResponse) -> tuple[Timestamp, Timestamp] | None:
    """Return when a node's object and its metadata were written; None if the node has nothing."""
    written = reported_version(response)
    if written is None:
        return None
    try:
        return written, Timestamp(response.headers.get(fields.BACKEND_TIMESTAMP, written.internal))
    except InvalidTimestamp:
        return written, written


def _delete_at(headers: HeaderMap) -> float | None:
    text = headers.get("x-delete-at", "")
    return float(text) if text.isascii() and text.isdigit() else None
