"""What the conditions of a request are compared with (spec: object-server.md §7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swift.base.etag import EtagList, unquote_etag
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError
from swift.store.api import ObjectState
from swift.wire import reservation

#: Raises what is to be answered when an object must not be changed as it is.
Judge = Callable[[ObjectState], None]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a change asks for that the object must or must not be."""

    if_match: EtagList | None
    if_none_match: EtagList | None
    #: X-Backend-Etag-Is-At, see ``condition_etag``.
    etag_is_at: str
    #: The sender asks for promises, and wants to know by which version conditions are judged.
    is_promised: bool
    #: Locks are to be looked at too (``obj.locks``), or alone.
    is_guarded: bool = False
    #: X-Backend-If-Predecessor: when the data that is there must have been written.
    predecessor: Timestamp | None = None

    def hold(self, state: ObjectState) -> bool:
        """Whether they hold for the object as it is."""
        if self.predecessor is not None and self.predecessor != state.write_timestamp:
            return False
        etag = condition_etag(self.etag_is_at, state) if state.exists else None
        if self.if_none_match is not None and state.exists and self.if_none_match.matches(etag):
            return False
        return self.if_match is None or (state.exists and self.if_match.matches(etag))

    def demand(self, state: ObjectState) -> None:
        """Raise ``HTTPError`` 404 when there is no object, and 412 when they do not hold for it."""
        if self.if_match is None and self.if_none_match is None and self.predecessor is None:
            return
        if state.put_away:
            raise self.refused(state, 503)
        if not state.exists:
            raise self.refused(state, 404)
        if not self.hold(state):
            raise self.refused(state)

    def refused(self, state: ObjectState, status: int = 412) -> HTTPError:
        """The answer when they do not hold, or when there is nothing to change."""
        said = reservation.judged_by(state.write_timestamp) if self.is_promised else {}
        return HTTPError(status, headers=said)


def conditions_of(headers: HeaderMap) -> Conditions | None:
    """The conditions of a change, None when there are none; raises ``HTTPError`` 400.

    Those about the version that is there count only when the object is promised to one writer: elsewhere
    they could not be kept.
    """
    is_promised = reservation.is_offered(headers)
    if_none_match = headers.get("if-none-match")
    if_match = headers.get("if-match") if is_promised else None
    is_guarded = is_promised and fields.BACKEND_OBJECT_LOCK in headers
    predecessor = _predecessor(headers) if is_promised else None
    if if_none_match is None and if_match is None and predecessor is None and not is_guarded:
        return None
    return Conditions(
        None if if_match is None else EtagList.parse(if_match),
        None if if_none_match is None else EtagList.parse(if_none_match),
        headers.get(fields.BACKEND_ETAG_IS_AT, ""),
        is_promised,
        is_guarded,
        predecessor,
    )


def _predecessor(headers: HeaderMap) -> Timestamp | None:
    text = headers.get(fields.BACKEND_IF_PREDECESSOR)
    try:
        return None if text is None else Timestamp(text)
    except InvalidTimestamp:
        raise HTTPError(400)


def condition_etag(etag_is_at: str, state: ObjectState) -> str | None:
    """The ETag that clients know: the first metadata named in X-Backend-Etag-Is-At, else the body's own."""
    for name in etag_is_at.split(","):
        value = metadata_value(state, name.strip())
        if value is not None:
            return unquote_etag(value)
    return state.etag


def metadata_value(state: ObjectState, name: str) -> str | None:
    """Stored metadata by its name in any case."""
    if not name:
        return None
    wanted = name.lower()
    return next((value for key, value in state.metadata.items() if key.lower() == wanted), None)
