"""Who gives way when every place for a client connection is taken.

A connection that serves a request keeps its place. One kept open between requests costs its client nothing
but a new connection: the longest idle goes first. After those go heads that do not get finished, of the
address that has most of them, as soon as that is more than its share: so no client can fill all places with
half-sent heads, and others behind the same address are hardly disturbed, because their heads arrive at once.

Deciding only: the server closes what is chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from swift.runtime.connection import Connection

#: A client address may have this part of all places, as one over the number, for incomplete heads.
HEAD_SHARE = 4


def heads_max(places: int) -> int:
    """How many incomplete heads one address may have when all ``places`` are taken."""
    return max(1, places // HEAD_SHARE)


def who_gives_way(connections: Iterable[Connection], places: int) -> Connection | None:
    """The connection to close for a newcomer; None when all are at work or within their share."""
    parked: Connection | None = None
    heads: dict[str, list[Connection]] = defaultdict(list)
    for connection in connections:
        if not connection.head_since:
            continue
        if not connection.is_parked:
            heads[str(connection.peer[0])].append(connection)
        elif parked is None or connection.head_since < parked.head_since:
            parked = connection
    if parked is not None or not heads:
        return parked
    most = max(heads.values(), key=len)
    if len(most) <= heads_max(places):
        return None
    return min(most, key=lambda connection: connection.head_since)
