"""Delivery of buckets' access logs: lines are gathered for a while and become an object of the target bucket.

Best effort, as AWS has it: what cannot be stored, or is too much, is dropped and counted, and what a worker
has gathered when it ends is lost. Nothing waits for it.
"""

from __future__ import annotations

import time
from typing import NamedTuple
from uuid import uuid4

from swift import green
from swift.base.entity import EntityPath
from swift.gateway.subrequest import drained, make_subrequest, preauthorise
from swift.http import environkeys
from swift.http.request import Request
from swift.runtime.wsgi import Handle
from swift.s3.hidden import SOURCE
from swift.s3.serverlog import LogTarget
from swift.telemetry.log import Log
from swift.telemetry.statsd import Statsd

#: Bytes that all logs of a worker may hold, and after which one is stored early.
HELD_MAX, EARLY_BYTES = 16 << 20, 1 << 20


class LogPlace(NamedTuple):
    """A log: whose account it is in, and where there."""

    account: str
    target: LogTarget


class LogDelivery:
    """Gathers lines and stores them; safe to be shared by green threads."""

    def __init__(self, forward: Handle, log: Log, statsd: Statsd, interval_s: float):
        self._forward = forward
        self._log = log
        self._statsd = statsd
        self._interval_s = interval_s
        self._lines: dict[LogPlace, list[str]] = {}
        self._sizes: dict[LogPlace, int] = {}
        #: Logs that somebody will store when the time has come.
        self._awaited: set[LogPlace] = set()
        self._held = 0

    @property
    def held_bytes(self) -> int:
        """What is gathered and not stored yet."""
        return self._held

    def add(self, place: LogPlace, line: str, cache: object) -> None:
        """Keep a line until its log is stored; ``cache`` is that of the request."""
        if self._held + len(line) > HELD_MAX:
            self._statsd.increment("s3api.logs.dropped")
            return
        self._lines.setdefault(place, []).append(line)
        self._sizes[place] = self._sizes.get(place, 0) + len(line)
        self._held += len(line)
        if self._sizes[place] >= EARLY_BYTES:
            self.store(place, cache)
        elif place not in self._awaited:
            self._awaited.add(place)
            green.spawn_detached(self._later, place, cache)

    def _later(self, place: LogPlace, cache: object) -> None:
        green.sleep(self._interval_s)
        self._awaited.discard(place)
        self._stored(place, cache)

    def store(self, place: LogPlace, cache: object) -> None:
        """Store what there is of a log, beside the request that asks for it."""
        green.spawn_detached(self._stored, place, cache)

    def _stored(self, place: LogPlace, cache: object) -> None:
        lines = self._lines.pop(place, [])
        self._held -= self._sizes.pop(place, 0)
        if not lines:
            return
        try:
            status = self._put(place, "".join(lines).encode("ascii", "replace"), cache)
        except Exception as error:
            # Nobody waits for this green thread.
            self._log.exception(f"the log of {place.account} was not delivered", error)
            status = 500
        if not 200 <= status <= 299:
            self._statsd.increment("s3api.logs.dropped", len(lines))
            self._log.warning(
                f"{len(lines)} lines of a log for {place.account}/{place.target.bucket} are lost: {status}"
            )

    def _put(self, place: LogPlace, content: bytes, cache: object) -> int:
        stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())
        name = f"{place.target.prefix}{stamp}-{uuid4().hex[:16].upper()}"
        path = EntityPath(place.account, place.target.bucket, name)
        parent = Request("PUT", "/", {}, env={} if cache is None else {environkeys.CACHE: cache})
        headers = {"content-length": str(len(content)), "content-type": "text/plain"}
        where = "/v1" + path.quoted
        sub = make_subrequest(parent, "PUT", where, headers=headers, body=content, source=SOURCE)
        sub.env[environkeys.ACCESS_LOG_MADE] = True
        return drained(self._forward(preauthorise(sub))).status
