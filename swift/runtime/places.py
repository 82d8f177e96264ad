"""Who gives way when every place for a client connection is taken.

In this order:

1. A connection whose refused request is being dropped, the oldest first: it was answered.
2. A connection kept open between requests, the longest idle first: it costs its client only a new one.
3. A head that does not get finished, of the address that has most of them, as soon as that is more than its
   share: one client cannot fill all places, and others behind its address are hardly disturbed, because their
   heads arrive at once.
4. The oldest unfinished head, whatever its address, once it is ``HEAD_GRACE_S`` old.
5. The connection whose client has neither sent nor taken a byte of a body for longest, once that is
   ``STALL_GRACE_S``.

A connection that makes progress keeps its place.

Deciding only: the server closes what is chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from swift.runtime.connection import Connection

#: A client address may have this part of all places, as one over the number, for incomplete heads.
HEAD_SHARE = 4
#: While all places are taken a head has to be complete after so long, seconds.
HEAD_GRACE_S = 1.0
#: While all places are taken a body has to make progress within so long, seconds.
STALL_GRACE_S = 5.0


def heads_max(places: int) -> int:
    """How many incomplete heads one address may have when all ``places`` are taken."""
    return max(1, places // HEAD_SHARE)


def who_gives_way(connections: Collection[Connection], places: int, now_s: float) -> Connection | None:
    """Return the connection to close for a newcomer at ``now_s`` (monotonic); None when all make progress."""
    lingering = [connection for connection in connections if connection.lingering_since]
    if lingering:
        return min(lingering, key=lambda connection: connection.lingering_since)
    parked: Connection | None = None
    stalled: Connection | None = None
    heads: dict[str, list[Connection]] = defaultdict(list)
    for connection in connections:
        if not connection.head_since:
            since = connection.stalled_since
            if since and (stalled is None or since < stalled.stalled_since):
                stalled = connection
            continue
        if not connection.is_parked:
            heads[str(connection.peer[0])].append(connection)
        elif parked is None or connection.head_since < parked.head_since:
            parked = connection
    if parked is not None:
        return parked
    if heads:
        most = max(heads.values(), key=len)
        if len(most) > heads_max(places):
            return min(most, key=_head_since)
        oldest = min((min(some, key=_head_since) for some in heads.values()), key=_head_since)
        if now_s - oldest.head_since >= HEAD_GRACE_S:
            return oldest
    if stalled is not None and now_s - stalled.stalled_since >= STALL_GRACE_S:
        return stalled
    return None


def _head_since(connection: Connection) -> float:
    return connection.head_since
