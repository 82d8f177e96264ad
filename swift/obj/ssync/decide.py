"""What a receiver wants of an offered object: decided from times alone (spec: replication.md §3.2).

``Have`` is what is here already; nothing of it is read from disk in this file.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.timestamp import Timestamp
from swift.store.api import DELETED, EXPIRED, LIVE, ObjectState
from swift.wire.ssync import Offer, Want


@dataclass(frozen=True, slots=True)
class Have:
    """When the local object is from; times that mean nothing (a tombstone's metadata) are None."""

    data: Timestamp
    meta: Timestamp | None = None
    ctype: Timestamp | None = None


def have_of(state: ObjectState) -> Have | None:
    """What a local state amounts to; None when there is nothing. Expired objects are there."""
    if state.kind in (LIVE, EXPIRED):
        return Have(state.data_timestamp, state.timestamp, state.ctype_timestamp)
    if state.kind == DELETED:
        return Have(state.timestamp)
    return None


def wanted_of(offer: Offer, have: Have | None) -> Want | None:
    """What to ask for; None when everything offered is here."""
    if have is None:
        return Want(offer.hash, data=True, meta=True)
    data = offer.data > have.data
    meta = have.meta is not None and offer.meta > have.meta
    ctype = have.ctype is not None and offer.ctype > have.ctype and offer.ctype > offer.data
    return Want(offer.hash, data, meta or ctype) if data or meta or ctype else None


def completes(offer: Offer, state: ObjectState, fragment: int) -> bool:
    """Whether the offered archive is here already, but was never committed.

    ``state`` is the object as seen by a reader who welcomes uncommitted archives.
    """
    durable_at = state.durable_timestamp
    if durable_at is not None and offer.data <= durable_at:
        return False
    return any(at == offer.data and fragment in indexes for at, indexes in state.fragments)
