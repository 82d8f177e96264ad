"""New timestamps for changes that a newer state would hide, within a bound (doc/howto/operating.md).

Storage servers keep the state with the newest timestamp. When the clock of one proxy is fast, the later
changes of other proxies would be dropped until their clocks pass that date. So a change that a proxy dated
itself, and that nodes refuse for a newer state, is dated just above that state and sent again. A state
further ahead of this proxy's clock than ``restamp_ahead_max`` is not followed: the change is refused.

Changes whose X-Timestamp was given (container sync, the reconciler and other daemons) keep it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, MutableSequence

from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError

#: Maximum number of new timestamps of a change. Of many clients that write one object, one wins each time.
RESTAMPS_MAX = 2
#: Methods whose success an account or container server qualifies by the time of newer metadata.
_MERGING = frozenset(("PUT", "POST"))


class Restamper:
    """Decides if a change is sent again with a newer timestamp; one for each change."""

    def __init__(
        self, request: Request, check_ahead: Callable[[Timestamp], None], now: Callable[[], float] = time.time
    ):
        self._request = request
        self._check_ahead = check_ahead
        self._now = now
        self._left = RESTAMPS_MAX

    def restamp(self, attempts: MutableSequence[HeaderMap], responses: Iterable[BackendResponse]) -> bool:
        """Give the attempts a newer timestamp and return True if nodes know a newer state.

        Raises ``HTTPError`` 503 when that state is too far ahead of this proxy's clock.
        """
        newest = self._newest(responses)
        if newest is None or not self._request.has_generated_timestamp:
            return False
        self._check_ahead(newest)
        if not self._left:
            return False
        self._left -= 1
        attempts[:] = restamped(self._request, attempts, above(newest, self._now()))
        return True

    def _newest(self, responses: Iterable[BackendResponse]) -> Timestamp | None:
        """Return the newest state that made a node refuse the change or a part of it."""
        request = self._request
        merges = request.method in _MERGING and not _is_object_request(request)
        newest: Timestamp | None = None
        for response in responses:
            refused = response.status == 409 or (merges and response.status // 100 == 2)
            if not refused or fields.BACKEND_TIMESTAMP not in response.headers:
                continue
            try:
                stamp = Timestamp(response.headers[fields.BACKEND_TIMESTAMP])
            except InvalidTimestamp:
                continue
            newest = stamp if newest is None else max(newest, stamp)
        return newest if newest is not None and newest >= request.timestamp else None


def _is_object_request(request: Request) -> bool:
    return request.entity is not None and request.entity.path.obj is not None


def above(newest: Timestamp, now_s: float) -> Timestamp:
    """Return the present time if it is later than ``newest``, else a time just above it.

    The random offset separates writers that are refused for the same state. Raises ``HTTPError`` 503 at
    the end of time.
    """
    now = Timestamp(now_s)
    if now > newest:
        return now
    try:
        return Timestamp.from_raw(newest.raw + 1, random.randrange(1, 1 << 32))
    except InvalidTimestamp:
        raise HTTPError(503)


def restamped(request: Request, attempts: Iterable[HeaderMap], stamp: Timestamp) -> list[HeaderMap]:
    """Return the attempts with another timestamp, which is the request's from now on."""
    request.timestamp = stamp
    return [{**headers, "x-timestamp": stamp.internal} for headers in attempts]


def check_ahead(newest: Timestamp, now_s: float, ahead_max_s: float) -> None:
    """Raise ``HTTPError`` 503 if a stored state is too far ahead of the clock to be superseded."""
    ahead_s = newest.seconds - now_s
    if ahead_s > ahead_max_s:
        raise HTTPError(
            503,
            f"Nothing was changed: the stored state is dated {newest.isoformat}, {ahead_s:.0f} s ahead "
            "of this server's clock. The clock of some server is or was wrong.",
            content_type=TEXT,
        )
