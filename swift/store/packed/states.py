"""States of a writer and of its index, as tables: what may happen when, and what follows.

A *writer* holds at most one volume. It writes a batch only when the index has all earlier records of the
volume, acknowledges it only when the index has the batch, and writes nothing behind records that failed.

An *index* is whole when it has every record of processes that ended. One that cannot take those, for want of
room, can be read: they were never acknowledged. Nothing is changed before they are in it.

What a table lacks cannot happen: it raises ``InvalidTransition``, and nothing is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class InvalidTransition(Exception):
    """An event that is impossible in a state: an error of this program."""


class Volume(Enum):
    """States of the volume that a writer appends to."""

    NONE = "none is held"
    READY = "the index has all of its records"
    WRITTEN = "a batch is durable and not in the index"
    BEHIND = "a batch is durable and could not be indexed"


class Event(Enum):
    """Events of the volume that a writer holds."""

    TAKE = "a volume is created or taken over"
    WRITE = "a batch becomes durable"
    REFUSE = "there is no room for a batch, and nothing is left of it"
    FAIL = "a write or a sync fails: records may be durable that must not count"
    PUBLISH = "the index takes the batch"
    MISS = "the index does not take the batch"
    REPLAY = "the index takes what it lacks of the volume"
    LOSE = "the volume lacks what was written to it, or another process closed it"
    LET_GO = "the volume is full, idle, removed or replaced"


class Completeness(Enum):
    """States of an index."""

    CLOSED = "it is not open"
    WHOLE = "it has all records of processes that ended"
    PARTIAL = "it lacks such records, and can be read"


class IndexEvent(Enum):
    """Events of an index."""

    OPEN = "it is opened, and took all of them"
    OPEN_PARTLY = "it is opened, and had no room for all of them"
    CATCH_UP = "it took the rest"
    CLOSE = "it is closed"


WRITER: Mapping[Volume, Mapping[Event, Volume]] = {
    Volume.NONE: {Event.TAKE: Volume.READY},
    Volume.READY: {
        Event.WRITE: Volume.WRITTEN,
        Event.REFUSE: Volume.READY,
        Event.FAIL: Volume.NONE,
        # The index was opened again meanwhile.
        Event.REPLAY: Volume.READY,
        # The index was opened again, and the volume lacks the batch, or another process closed it.
        Event.LOSE: Volume.NONE,
        Event.LET_GO: Volume.NONE,
    },
    Volume.WRITTEN: {
        Event.PUBLISH: Volume.READY,
        Event.MISS: Volume.BEHIND,
        # An index that is opened in the place of one that failed takes it from the volume.
        Event.REPLAY: Volume.READY,
        # The index was opened again, and the volume lacks the batch, or another process closed it.
        Event.LOSE: Volume.NONE,
    },
    Volume.BEHIND: {Event.REPLAY: Volume.READY, Event.LOSE: Volume.NONE},
}
INDEX: Mapping[Completeness, Mapping[IndexEvent, Completeness]] = {
    Completeness.CLOSED: {IndexEvent.OPEN: Completeness.WHOLE, IndexEvent.OPEN_PARTLY: Completeness.PARTIAL},
    # Another index took the place of one that failed.
    Completeness.WHOLE: {
        IndexEvent.OPEN: Completeness.WHOLE,
        IndexEvent.OPEN_PARTLY: Completeness.PARTIAL,
        IndexEvent.CATCH_UP: Completeness.WHOLE,
        IndexEvent.CLOSE: Completeness.CLOSED,
    },
    Completeness.PARTIAL: {
        IndexEvent.OPEN: Completeness.WHOLE,
        IndexEvent.OPEN_PARTLY: Completeness.PARTIAL,
        IndexEvent.CATCH_UP: Completeness.WHOLE,
        IndexEvent.CLOSE: Completeness.CLOSED,
    },
}


def after(volume: Volume, event: Event) -> Volume:
    """Return the state of a writer's volume after an event. Raises ``InvalidTransition``."""
    try:
        return WRITER[volume][event]
    except KeyError:
        raise InvalidTransition(f"{event.value}, but {volume.value}")


def index_after(state: Completeness, event: IndexEvent) -> Completeness:
    """Return the state of an index after an event. Raises ``InvalidTransition``."""
    try:
        return INDEX[state][event]
    except KeyError:
        raise InvalidTransition(f"{event.value}, but {state.value}")
