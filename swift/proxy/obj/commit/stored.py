"""The versions of an object that nodes have, and deletions that depend on them.

The expirer deletes an object as of the moment at which it expired, if that is still the object's own. Nodes
judge that by what they have: where a newer version missed all that have the older one, because they were away
and others stood in for them, the older one would match, and a tombstone that may be newer than the newer
version would end that too. So every node that may know of a newer one is asked before (spec: replication.md
§8).
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
from swift.proxy.obj.location import ObjectLocation
from swift.ring.device import Node

#: What belongs to the answer, or to its time.
_NOT_STORED = frozenset(
    (
        *("date", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-ranges"),
        *("last-modified", "x-timestamp", "content-range", "server"),
    )
)


def stored_read_headers(policy_index: int) -> HeaderMap:
    """The headers of requests to nodes that are about what they have, whatever clients would see of it."""
    return {
        fields.BACKEND_STORAGE_POLICY_INDEX: str(policy_index),
        fields.BACKEND_REPLICATION: "true",
        fields.BACKEND_OPEN_EXPIRED: "true",
    }


class Head(Protocol):
    """A node's answer."""

    status: int
    headers: HeaderMap


def reported_version(answer: Head) -> Timestamp | None:
    """The version that a GET or HEAD is about, be it a tombstone; None when the answer is something else."""
    names = {200: fields.BACKEND_DATA_TIMESTAMP, 404: fields.BACKEND_TIMESTAMP}
    try:
        return Timestamp(answer.headers[names[answer.status]])
    except (KeyError, InvalidTimestamp):
        return None


def has_version(answer: Head, version: Timestamp) -> bool:
    """Return True if a node that was sent a version has it now; one that has something newer has not."""
    return answer.status == 201 or answer.headers.get(fields.BACKEND_TIMESTAMP) == version.internal


def stored_headers(answered: HeaderMap) -> HeaderMap:
    """The headers of an object, without those of the answer that brought them."""
    return {
        name: value
        for name, value in answered.items()
        if name not in _NOT_STORED and not name.startswith(fields.BACKEND)
    }


IF_DELETE_AT = "x-if-delete-at"


def check_expiry_unchanged(
    backends: Backends, location: ObjectLocation, nodes: Sequence[Node], headers: HeaderMap
) -> None:
    """Raise ``HTTPError`` 412 when the newest version that a node has is not to expire at X-If-Delete-At."""
    wanted = _moment(headers[IF_DELETE_AT])
    if wanted is None:
        # Object servers say what is wrong with it.
        return
    asking = {**stored_read_headers(location.policy.index), "x-trans-id": headers.get("x-trans-id", "")}
    requests = [backends.make_request(node, location.part, "HEAD", location.path, asking) for node in nodes]
    asked = green.gather([partial(backends.request, request) for request in requests])
    answers = [answer for answer in asked if answer is not None]
    found = [(version, answer) for answer in answers if (version := _version(answer))]
    if not found:
        return
    newest = max(found, key=lambda pair: pair[0])[1]
    if newest.status == 200 and _delete_at(newest.headers) != wanted:
        raise HTTPError(412, "X-If-Delete-At and X-Delete-At do not match", content_type=TEXT)


def _moment(text: str) -> float | None:
    try:
        moment_s = float(text) if len(text) <= 30 and text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return moment_s if math.isfinite(moment_s) else None


def _version(answer: BackendResponse) -> tuple[Timestamp, Timestamp] | None:
    """Return when the object of a node was written, and its metadata; None when it has nothing."""
    written = reported_version(answer)
    if written is None:
        return None
    try:
        return written, Timestamp(answer.headers.get(fields.BACKEND_TIMESTAMP, written.internal))
    except InvalidTimestamp:
        return written, written


def _delete_at(headers: HeaderMap) -> float | None:
    text = headers.get("x-delete-at", "")
    return float(text) if text.isascii() and text.isdigit() else None
