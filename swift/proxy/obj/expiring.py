"""Deleting what has expired, and nothing that was written since (spec: replication.md §8).

The expirer deletes an object as of the moment at which it expired, if that is still the object's own. Nodes
judge that by what they have: where a newer version missed all that have the older one, because they were away
and others stood in for them, the older one would match, and a tombstone that may be newer than the newer
version would end that too. So whoever may know of a newer one is asked before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from swift import green
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import TEXT, HTTPError
from swift.proxy.backend import Backends
from swift.proxy.obj.stored import about_what_is_stored, said_version
from swift.proxy.obj.target import ObjectTarget
from swift.ring.device import Node

IF_DELETE_AT = "x-if-delete-at"


def check_still_meant(
    backends: Backends, target: ObjectTarget, nodes: Sequence[Node], headers: HeaderMap
) -> None:
    """Raise ``HTTPError`` 412 when the newest version that a node has is not to expire at X-If-Delete-At."""
    wanted = _moment(headers[IF_DELETE_AT])
    if wanted is None:
        # Object servers say what is wrong with it.
        return
    asking = {**about_what_is_stored(target.policy.index), "x-trans-id": headers.get("x-trans-id", "")}
    requests = [backends.make_request(node, target.part, "HEAD", target.path, asking) for node in nodes]
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
    """When what a node has was written, and when its metadata was; None when it has nothing."""
    written = said_version(answer)
    if written is None:
        return None
    try:
        return written, Timestamp(answer.headers.get(fields.BACKEND_TIMESTAMP, written.internal))
    except InvalidTimestamp:
        return written, written


def _delete_at(headers: HeaderMap) -> float | None:
    text = headers.get("x-delete-at", "")
    return float(text) if text.isascii() and text.isdigit() else None
