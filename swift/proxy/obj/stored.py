"""What nodes say of the version of an object that they have, and which headers make a copy of it."""

from __future__ import annotations

from typing import Protocol

from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap

#: What belongs to the answer, or to its time.
_NOT_STORED = frozenset(
    (
        *("date", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-ranges"),
        *("last-modified", "x-timestamp", "content-range", "server"),
    )
)


def about_what_is_stored(policy_index: int) -> HeaderMap:
    """The headers of requests to nodes that are about what they have, whatever clients would see of it."""
    return {
        fields.BACKEND_STORAGE_POLICY_INDEX: str(policy_index),
        fields.BACKEND_REPLICATION: "true",
        fields.BACKEND_OPEN_EXPIRED: "true",
    }


class Said(Protocol):
    """A node's answer."""

    status: int
    headers: HeaderMap


def said_version(answer: Said) -> Timestamp | None:
    """The version that a GET or HEAD is about, be it a tombstone; None when the answer is something else."""
    names = {200: fields.BACKEND_DATA_TIMESTAMP, 404: fields.BACKEND_TIMESTAMP}
    try:
        return Timestamp(answer.headers[names[answer.status]])
    except (KeyError, InvalidTimestamp):
        return None


def has_version(answer: Said, version: Timestamp) -> bool:
    """Whether a node that was sent a version has it now; one that has something newer has not."""
    return answer.status == 201 or answer.headers.get(fields.BACKEND_TIMESTAMP) == version.internal


def stored_headers(answered: HeaderMap) -> HeaderMap:
    """The headers of an object, without those of the answer that brought them."""
    return {
        name: value
        for name, value in answered.items()
        if name not in _NOT_STORED and not name.startswith(fields.BACKEND)
    }
