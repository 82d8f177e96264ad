"""Delivering one update to every replica of its container (spec: replication.md §6).

``deliver`` asks all replicas that do not have the update yet at the same time, follows one redirect to a
shard, and returns the pending as it should be remembered; it touches no file.

A kept update goes to its container, or to the shard that stands in for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from swift import green
from swift.base.clock import Clock
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import ZERO
from swift.cluster.direct import DirectClient, Timeouts
from swift.cluster.health import NodeHealth
from swift.cluster.redirect import Redirect, redirect_of
from swift.cluster.transport import BackendResponse, TimedOut, Transport, TransportError
from swift.http import fields
from swift.http.headers import HeaderMap, lower_name, wire_value
from swift.ring.device import Node
from swift.ring.ring import Ring
from swift.runtime.report import Counters
from swift.store.api import PendingUpdate
from swift.telemetry.log import Log
from swift.telemetry.repeatederrors import RepeatedErrorLog


def container_of(pending: PendingUpdate) -> str:
    """``account/container`` of where it goes: the container, or the shard that stands in for it."""
    update = pending.update
    return update.container_path or f"{update.path.account}/{update.path.container}"


def redirected(pending: PendingUpdate, container: str) -> PendingUpdate:
    """Return the same on its way to another container; in a circle it starts over at the object's own."""
    update = pending.update
    if container in pending.redirects:
        return replace(pending, update=update._replace(container_path=None), successes=(), redirects=())
    return replace(
        pending,
        update=update._replace(container_path=container),
        successes=(),
        redirects=(*pending.redirects, container),
    )


@dataclass(frozen=True)
class DeliveryOutcome:
    """Outcome of a delivery attempt."""

    pending: PendingUpdate
    #: Every replica has it.
    is_complete: bool
    #: The pending differs from what is on disk.
    is_changed: bool


class Deliverer:
    """Sends updates for one process."""

    def __init__(
        self,
        ring: Ring,
        hasher: PathHasher,
        transport: Transport,
        clock: Clock,
        log: Log,
        timeouts: Timeouts,
    ):
        self._ring = ring
        self._hasher = hasher
        self._clock = clock
        self._log = log
        self._failures = RepeatedErrorLog(log, clock)
        self._health = NodeHealth(clock, patience_s=timeouts.node_timeout)
        self._direct = DirectClient(transport, "object-updater", timeouts, on_no_response=self._log_failure)

    def deliver(self, pending: PendingUpdate, counters: Counters) -> DeliveryOutcome:
        """Try once, and at once again where a redirect points to."""
        before = pending
        for _ in range(2):
            pending, is_complete, redirect = self._attempt(pending, counters)
            if redirect is None:
                break
            counters.add("redirects")
            pending = redirected(pending, redirect.container)
        return DeliveryOutcome(pending, is_complete and redirect is None, pending != before)

    def _attempt(
        self, pending: PendingUpdate, counters: Counters
    ) -> tuple[PendingUpdate, bool, Redirect | None]:
        account, _, container = container_of(pending).partition("/")
        part, nodes = self._ring.nodes(self._hasher.digest(account, container))
        asked = [node for node in nodes if node.id not in pending.successes]
        target = EntityPath(account, container, pending.update.path.obj)
        headers = self._headers(pending)
        replies = green.gather(
            [
                partial(self._request, node, part, target, pending.update.op, headers, counters)
                for node in asked
            ]
        )
        done = tuple(n.id for n, r in zip(asked, replies, strict=True) if r is not None and r.is_success)
        redirects = [found for reply in replies if (found := redirect_of(reply)) is not None]
        newest = max(redirects, key=lambda redirect: redirect.timestamp, default=None)
        path = pending.update.path
        own = f"{path.account}/{path.container}"
        is_gone = bool(replies) and all(reply is not None and reply.status == 404 for reply in replies)
        if is_gone and container_of(pending) != own:
            # The shard is deleted: its container knows which shard has the names now.
            newest = Redirect(ZERO, own)
        if done:
            pending = replace(pending, successes=pending.successes + done)
        return pending, len(done) == len(asked), newest

    def _headers(self, pending: PendingUpdate) -> HeaderMap:
        headers = {lower_name(name): wire_safe(value) for name, value in pending.update.headers.items()}
        # What is kept names the server that kept it.
        headers.pop("user-agent", None)
        headers.setdefault(fields.BACKEND_STORAGE_POLICY_INDEX, str(pending.ref.policy.index))
        headers.setdefault(fields.BACKEND_ACCEPT_REDIRECT, "true")
        headers.setdefault(fields.BACKEND_ACCEPT_QUOTED_LOCATION, "true")
        return headers

    def _request(
        self, node: Node, part: int, target: EntityPath, op: str, headers: HeaderMap, counters: Counters
    ) -> BackendResponse | None:
        """Return a replica's answer, None when there was none; an unresponsive one is probed now and then."""
        started_s, place = self._clock.monotonic(), node.replication_key
        if self._health.is_unresponsive(place) and not self._health.is_probe_due(place):
            return None
        self._health.requested(place, started_s)
        reply = self._direct.request_entity(node, part, op, target, headers)
        if reply is not None:
            self._health.responded(place)
        status = 500 if reply is None else reply.status
        counters.timing(f"updater.timing.status.{status}", self._clock.monotonic() - started_s)
        if reply is not None and not reply.is_success and reply.status != 301:
            self._log.debug(f"{op} {target} on {node.replication_key}: status {reply.status}")
        return reply

    def _log_failure(self, place: str, error: TransportError) -> None:
        if not isinstance(error, TimedOut):
            self._health.responded(place)
        self._failures.error(f"ERROR with remote server {place}: {error}")


def wire_safe(value: str) -> str:
    """Return a stored header value as the wire takes it: Latin-1, without line breaks."""
    if value.isascii():
        text = value
    else:
        try:
            value.encode("latin-1")
            text = value
        except UnicodeEncodeError:
            text = wire_value(value)
    return text.replace("\r", " ").replace("\n", " ")
