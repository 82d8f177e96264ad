"""Conditional writes: nodes reserve an object for one writer before any of them stores it.

A PUT that must not replace what others wrote goes in two rounds (``obj.upload``). The proxy offers this
in its head; a node that understands says so in its first ``100 Continue``. Once the body is there the node
tries to reserve the object for this writer, judges the condition, and says in the next ``100`` (``HELD``)
whether this writer has it or which other one, known by the timestamp of its write. The proxy then sends one
of three documents: commit, release (give the object back, keep the body), or reserve (try again). A node of
another make ignores the offer: its ``100`` says nothing, and it judges as ever when the body is there.
"""

from __future__ import annotations

from swift.base.timestamp import ZERO, InvalidTimestamp, Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap

#: In the request: the offer. In the first ``100 Continue``: that it is taken.
OFFER = fields.BACKEND_RESERVE
#: In later ``100 Continue``: "yes", or the timestamp of the other writer that has the object.
HELD = fields.BACKEND_RESERVED
_YES = "yes"
#: In every ``100 Continue`` to a PUT, beside ``HELD``, and in a refusal: the timestamp of the version that
#: the node knows, by which it judges.
PREDECESSOR = fields.BACKEND_PREDECESSOR

#: Conditions about the stored version: reservations enforce them, and a handoff may not know it.
VERSION_HEADERS = ("if-match", fields.BACKEND_IF_PREDECESSOR)

#: ``X-Document`` of the second and later rounds.
COMMIT = "put commit"
RESERVE = "put reserve"
RELEASE = "put release"

#: Lifetime of a reservation, seconds: writers collect no longer, and nodes commit within it.
LEASE_S = 10.0
#: A reservation expires after this time, and the object is free again.
FORGOTTEN_AFTER_S = 2 * LEASE_S


def is_offered(headers: HeaderMap) -> bool:
    """Return True if a request's head, or the first answer to it, speaks of it."""
    return headers.get(OFFER) == _YES


def is_held(continue_headers: HeaderMap) -> bool:
    """Return True if the node reserved the object for this writer."""
    return continue_headers.get(HELD) == _YES


def parse_holder(continue_headers: HeaderMap) -> Timestamp:
    """Return the other writer that has the object; zero when unknown."""
    try:
        return Timestamp(continue_headers.get(HELD, ""))
    except InvalidTimestamp:
        return ZERO


def failure_headers(other_writer: Timestamp | None, predecessor: Timestamp = ZERO) -> HeaderMap:
    """Return a node's response headers after a failed attempt; None: there is no other writer."""
    return {HELD: _YES if other_writer is None else other_writer.internal, **version_headers(predecessor)}


def version_headers(predecessor: Timestamp) -> HeaderMap:
    """Return a node's response headers about the version that it stores."""
    return {PREDECESSOR: predecessor.internal}


def parse_predecessor(headers: HeaderMap) -> Timestamp | None:
    """Return the version that a node compared with; None if its response has none."""
    try:
        return Timestamp(headers[PREDECESSOR])
    except (KeyError, InvalidTimestamp):
        return None
