"""Selection of the parts of an offered object to request, from timestamps alone (spec: replication.md §3.2).

``LocalVersion`` is what is here already; nothing of it is read from disk in this file.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.timestamp import Timestamp
from swift.store.api import DELETED, EXPIRED, LIVE, ObjectState
from swift.wire.ssync import Offer, Want


@dataclass(frozen=True, slots=True)
class LocalVersion:
    """Timestamps of the local object; meaningless ones (a tombstone's metadata) are None."""

    data: Timestamp
    meta: Timestamp | None = None
    ctype: Timestamp | None = None


def local_version(state: ObjectState) -> LocalVersion | None:
    """Return a local object's timestamps for ssync; None if it is absent.

    Expired objects count as present. Expired objects are there.
    """
    if state.kind in (LIVE, EXPIRED):
        return LocalVersion(state.data_timestamp, state.timestamp, state.ctype_timestamp)
    if state.kind == DELETED:
        return LocalVersion(state.timestamp)
    return None


def parts_to_request(offer: Offer, local: LocalVersion | None) -> Want | None:
    """Return the parts to request; None if everything offered is present."""
    if local is None:
        return Want(offer.hash, data=True, meta=True)
    data = offer.data > local.data
    if local.meta is None or local.ctype is None:
        # A tombstone goes when the data comes: metadata posted since then is lacking as well.
        return Want(offer.hash, data=True, meta=has_posted_metadata(offer)) if data else None
    meta = offer.meta > local.meta
    ctype = offer.ctype > local.ctype and offer.ctype > offer.data
    return Want(offer.hash, data, meta or ctype) if data or meta or ctype else None


def has_posted_metadata(offer: Offer) -> bool:
    """Return True if the offered object has metadata that is newer than its data."""
    return offer.meta > offer.data or offer.ctype > offer.data


def completes_commit(offer: Offer, state: ObjectState, fragment: int) -> bool:
    """Return True if the offered archive is present but not committed.

    ``state`` is the object as seen by a reader who welcomes uncommitted archives.
    """
    durable_at = state.durable_timestamp
    if durable_at is not None and offer.data <= durable_at:
        return False
    return any(at == offer.data and fragment in indexes for at, indexes in state.fragments)
