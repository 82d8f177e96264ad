"""Conditional changes: one decision for all replicas of an object (decision 0011).

``If-None-Match: *`` creates, ``If-Match`` changes a known version. Nodes reserve the object
(``phases.Reservations``); a majority of the primaries must have reserved it for the same version. PUT does so
in ``write.put``. POST and DELETE (``ConditionalChanger``) have no body and use the method ``RESERVE``. A node
of the peer responds 405 to it and does nothing.

``ReplicaRepair`` brings the nodes of one object to the same version, while none of them is reserved for
another writer. A version that fewer than a majority of the primaries have may be left from a failed write,
and a client may have read it. So it is completed before other changes go on. The nodes get a ``RESERVE`` that
changes nothing, report the version they have, and those that lack the newest one get it from others. Archives
are rebuilt from other archives (``write.restore``). Then the reservations are released, and the change is
tried again (``with_retries``).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from swift import green
from swift.base.entity import EntityPath
from swift.base.errors import SwiftError
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import BackendResponse, NodeRequest, TransportError
from swift.http import fields
from swift.http.body import ResponseBody, iter_body_bytes
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.obj.commit.framing import MultipartFraming
from swift.proxy.obj.commit.phases import (
    REFUSALS,
    RETRY_TIMEOUT_S,
    Reservations,
    UploadVerdict,
    newer_version_of,
    newest_known,
)
from swift.proxy.obj.commit.stored import has_version, reported_version, stored_headers, stored_read_headers
from swift.proxy.obj.commit.targets import TargetOpener, UploadTarget, open_targets
from swift.proxy.obj.location import WriteLocation
from swift.proxy.obj.scheme import match_object_etag
from swift.proxy.restamp import restamped
from swift.ring.device import Node
from swift.wire import reservation

T = TypeVar("T")
#: Maximum number of tries of a change.
TRIES_MAX = 4


class RetryableFailure(SwiftError):
    """A change failed on the nodes, but may succeed at the next try."""

    def __init__(self, reason: str, *, is_early: bool):
        super().__init__(reason)
        #: It was known before anything of the body was read.
        self.is_early = is_early


class NewerVersionKnown(RetryableFailure):
    """A node has a version that is newer than the one to be written.

    Clocks of proxies differ; a later try with a newer timestamp may succeed.
    """

    def __init__(self, newer: Timestamp, *, is_early: bool):
        super().__init__(f"a node knows {newer.internal}", is_early=is_early)
        self.newer = newer


class VersionsDiffer(RetryableFailure):
    """Nodes have different versions, so the condition cannot be evaluated.

    A later try may succeed, after a repair (``ReplicaRepair``).
    """

    def __init__(self, *, is_early: bool):
        super().__init__("nodes know different versions", is_early=is_early)


class TooFewNodes(RetryableFailure):
    """Too many nodes failed before any was told to commit; handoffs may replace them."""

    def __init__(self) -> None:
        super().__init__("too few nodes are left", is_early=False)


def with_retries(
    request: Request,
    attempts: Sequence[HeaderMap],
    run: Callable[[list[HeaderMap]], T],
    agree: Callable[[Sequence[HeaderMap]], None],
    *,
    may_repeat: Callable[[RetryableFailure], bool],
    check_ahead: Callable[[Timestamp], None],
) -> T:
    """Send copies of ``attempts``; later tries have newer timestamps, each its own.

    A node may remove the rest of an earlier try late, and must not confuse it with a later one. Between two
    tries nodes with different versions are made to ``agree``, which helps later requests even if this change
    cannot be repeated. No try begins when all together took ``RETRY_TIMEOUT_S``. ``check_ahead``
    raises for a version that is too far ahead of the clock to be superseded. Raises ``HTTPError`` 503 when
    that does not help, and what ``agree`` raises.
    """
    give_up = time.monotonic() + RETRY_TIMEOUT_S
    for _ in range(TRIES_MAX):
        try:
            return run([dict(headers) for headers in attempts])
        except RetryableFailure as reason:
            failed = reason
        attempts = _restamped(request, attempts, failed, check_ahead)
        if isinstance(failed, VersionsDiffer):
            try:
                agree(attempts)
            except NewerVersionKnown as outdated:
                attempts = _restamped(request, attempts, outdated, check_ahead)
        if not may_repeat(failed) or time.monotonic() >= give_up:
            break
    raise HTTPError(503)


def with_unique_timestamp(request: Request, attempts: Sequence[HeaderMap]) -> list[HeaderMap]:
    """Return the attempts in the same tick of the clock, with an offset that no other writer has.

    An archive is on disk, under a name made of its timestamp, before the nodes decide about its writer.
    Writers with the same timestamp would replace, and at last remove, each other's archives.
    """
    stamp = request.timestamp
    return _stamped(request, attempts, stamp.raw, stamp.offset + random.randrange(1, 1 << 32))


def _restamped(
    request: Request,
    attempts: Sequence[HeaderMap],
    reason: RetryableFailure,
    check_ahead: Callable[[Timestamp], None],
) -> list[HeaderMap]:
    """Return the attempts with a timestamp just above what nodes know; ``HTTPError`` 503 at the end of
    time.
    """
    known = (
        max(reason.newer, request.timestamp) if isinstance(reason, NewerVersionKnown) else request.timestamp
    )
    check_ahead(known)
    # A random offset, unique among writers that learned of the same version; it barely exceeds the clock.
    return _stamped(request, attempts, known.raw + 1, random.randrange(1, 1 << 32))


def _stamped(request: Request, attempts: Sequence[HeaderMap], raw: int, offset: int) -> list[HeaderMap]:
    try:
        return restamped(request, attempts, Timestamp.from_raw(raw, offset))
    except InvalidTimestamp:
        raise HTTPError(503)


#: Headers of a change that a repair's ``RESERVE`` copies.
_COPIED_HEADERS = (fields.BACKEND_STORAGE_POLICY_INDEX, "x-timestamp", "x-trans-id", "user-agent", "referer")


#: Restores archives of a version of an object on nodes that lack it; returns the nodes that have it then.
#: None do if fewer than so many can take it.
Restore = Callable[[WriteLocation, Timestamp, Sequence[Node], int], list[Node]]


class ReplicaRepair:
    """Brings the nodes of an object to the same version."""

    def __init__(self, backends: Backends, restore: Restore):
        self._backends = backends
        self._restore = restore
        #: Objects under repair.
        self._running: dict[EntityPath, green.Event] = {}

    def repair(
        self,
        location: WriteLocation,
        writer: Timestamp,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
    ) -> None:
        """Bring a quorum of nodes to the same version; ``attempts`` are those of a change.

        One request per proxy repairs an object; concurrent requests wait, then retry. Raises ``HTTPError``
        503 when the repair fails, and ``NewerVersionKnown``.
        """
        running = self._running.get(location.path)
        if running is not None:
            running.wait(RETRY_TIMEOUT_S)
            return
        done = self._running[location.path] = green.Event()
        try:
            self._repair(location, writer, attempts, nodes)
        finally:
            del self._running[location.path]
            done.set()

    def _repair(
        self,
        location: WriteLocation,
        writer: Timestamp,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
    ) -> None:
        framing = MultipartFraming(commit=True, reserve=True, has_object=False)
        reserve_headers = [_reserve_headers(headers, framing) for headers in attempts]
        opening = TargetOpener(
            self._backends, location, nodes(), framing, method="RESERVE", stage=framing.opening
        )
        targets, early = open_targets(opening, reserve_headers, location.quorum)
        reservations = Reservations([target for target in targets if target.alive], framing, writer, early)
        try:
            verdict = reservations.await_verdict(location.majority, location.quorum)
            if verdict is UploadVerdict.OUTDATED:
                raise NewerVersionKnown(newest_known([*early, *reservations.refusals]), is_early=False)
            if verdict not in (UploadVerdict.COMMIT, UploadVerdict.DISAGREE):
                raise HTTPError(503)
            self._copy_newest(location, targets)
        finally:
            reservations.abort()
            for target in targets:
                target.abandon()

    def _copy_newest(self, location: WriteLocation, targets: Sequence[UploadTarget]) -> None:
        """Bring the newest version to nodes that reserved the object; raises ``HTTPError`` 503."""
        versions = {
            target.node: target.predecessor
            for target in targets
            if target.alive and target.is_reserved and target.predecessor is not None
        }
        newest = max(versions.values())
        holders = [node for node, version in versions.items() if version == newest]
        # Handoffs need not have the version.
        outdated = [n for n, version in versions.items() if version < newest and n.index is not None]
        missing = location.majority - sum(node.index is not None for node in holders)
        began_s = time.monotonic()
        if outdated and self._copy_to_outdated(location, newest, holders, outdated, missing) < missing:
            raise HTTPError(503)
        if time.monotonic() - began_s >= reservation.LEASE_S:
            raise HTTPError(503)

    def _copy_to_outdated(
        self,
        location: WriteLocation,
        newest: Timestamp,
        holders: Sequence[Node],
        outdated: Sequence[Node],
        missing: int,
    ) -> int:
        """Copy the newest version to nodes that lack it; return how many have it now."""
        if location.policy.is_ec and not self._is_deleted(location, holders[0], newest):
            return len(self._restore(location, newest, outdated, max(missing, 1)))
        return sum(any(self._copy(location, source, node, newest) for source in holders) for node in outdated)

    def _is_deleted(self, location: WriteLocation, node: Node, version: Timestamp) -> bool:
        """Return True if the version that a node has is a tombstone."""
        headers = stored_read_headers(location.policy.index)
        response = self._backends.request(
            self._backends.make_request(node, location.part, "HEAD", location.path, headers)
        )
        return response is not None and response.status == 404 and reported_version(response) == version

    def _copy(self, location: WriteLocation, source: Node, laggard: Node, version: Timestamp) -> bool:
        """Copy a version from one node to another; return True if it is there now."""
        backends, base = self._backends, stored_read_headers(location.policy.index)
        object_path, timeouts = f"{location.part}{location.path.quoted}", backends.write_timeouts
        read_request = NodeRequest(source, "GET", f"/{source.device}/{object_path}", base, b"", timeouts)
        found = backends.stream_response(read_request)
        if found is None:
            return False
        try:
            stamped = {**base, "x-timestamp": version.internal}
            if reported_version(found) != version:
                # The object was changed meanwhile.
                return False
            if found.status == 404:
                deleting = backends.make_request(laggard, location.part, "DELETE", location.path, stamped)
                response = backends.request(deleting)
                return response is not None and has_version(response, version)
            length = found.headers.get("content-length", "0")
            sent = {**stored_headers(found.headers), **stamped, "content-length": length}
            request = NodeRequest(laggard, "PUT", f"/{laggard.device}/{object_path}", sent, b"", timeouts)
            exchange = backends.stream(request)
            if exchange is None:
                return False
            try:
                for piece in _read(found.stream):
                    exchange.send(piece)
            except BaseException:
                exchange.abort()
                raise
            written = backends.response(laggard, exchange, sent)
            return written is not None and has_version(written, version)
        except CopySourceFailed as error:
            backends.record_failure(source, error.reason, base)
            return False
        except TransportError as error:
            backends.record_failure(laggard, error, base)
            return False
        finally:
            found.stream.close()


class CopySourceFailed(Exception):
    """The source of a copy broke off, which is no failure of the node that gets the copy."""

    def __init__(self, reason: TransportError):
        super().__init__(str(reason))
        self.reason = reason


def _read(body: ResponseBody) -> Iterator[bytes]:
    """Yield the pieces of a body; raises ``CopySourceFailed``."""
    try:
        yield from iter_body_bytes(body)
    except TransportError as error:
        raise CopySourceFailed(error)


def _reserve_headers(headers: HeaderMap, framing: MultipartFraming) -> HeaderMap:
    found = {name: headers[name] for name in _COPIED_HEADERS if name in headers}
    found.update(framing.headers(None))
    found[fields.BACKEND_RESERVED_METHOD] = "HEAD"
    return found


#: Statuses of nodes that refuse a change: its condition does not hold, or the object is locked.
EARLY_REFUSALS = (412, 403)


def is_conditional(headers: HeaderMap) -> bool:
    """Return True if a change depends on the present object, or on its lock."""
    return "if-none-match" in headers or _needs_reservations(headers)


def _needs_reservations(headers: HeaderMap) -> bool:
    """Return True if only nodes that make reservations can evaluate the conditions."""
    return not headers.keys().isdisjoint((*reservation.VERSION_HEADERS, fields.BACKEND_OBJECT_LOCK))


def check_reserving(headers: HeaderMap, targets: Sequence[UploadTarget], *, may_be_weak: bool) -> None:
    """Raise 501 for conditions that nodes cannot keep; with ``may_be_weak``, peer nodes may judge ``*``
    alone.
    """
    if all(target.can_reserve for target in targets) or (may_be_weak and not _needs_reservations(headers)):
        return
    raise conditions_unsupported()


def conditions_unsupported() -> HTTPError:
    """Return the 501 for a node that makes no reservations."""
    return HTTPError(501, "Conditional changes need object servers that know them")


def is_from_primary(response: BackendResponse) -> bool:
    """Return True if a primary responded; a handoff that lacks the object proves nothing."""
    return response.node is not None and response.node.index is not None


def check_early(
    early: Sequence[BackendResponse], targets: Sequence[UploadTarget], majority: int, need: int
) -> None:
    """Raise errors that are known before the body is read.

    These are ``HTTPError`` 412 or 403, ``NewerVersionKnown`` and ``VersionsDiffer``. A node of the peer does
    not report its version, and decides alone, as it does for its own proxy. Of our nodes a majority of the
    primaries must have the same version, and no node may have a newer one.
    """
    refused = [
        response for response in early if response.status in EARLY_REFUSALS and is_from_primary(response)
    ]
    versions = [reservation.parse_predecessor(response.headers) for response in refused]
    status = min((response.status for response in refused), default=412)
    if None in versions:
        raise HTTPError(status)
    if any(response.status == 409 and newer_version_of(response) is not None for response in early):
        raise NewerVersionKnown(newest_known(early), is_early=True)
    if not versions:
        return
    taken = [target.predecessor for target in targets if target.node.index is not None]
    newest = max(version for version in (*versions, *taken) if version is not None)
    if versions.count(newest) >= majority:
        raise HTTPError(status)
    if len(targets) < need or versions.count(newest) + taken.count(newest) < majority:
        raise VersionsDiffer(is_early=True)


def commit_conditionally(
    location: WriteLocation,
    targets: Sequence[UploadTarget],
    framing: MultipartFraming,
    *,
    writer: Timestamp,
    early: Sequence[BackendResponse],
    need: int,
    grace_s: float,
) -> list[BackendResponse]:
    """Commit a change, whose data is on its way, when enough nodes reserve the object; return responses.

    These are 4xx if no node can store the change, because of what it is. Raises ``HTTPError`` 412 when the
    condition does not hold, 404 when there is nothing to change, 503 when the outcome is unknown. Raises
    ``NewerVersionKnown``, ``VersionsDiffer`` and ``TooFewNodes`` when nothing was changed.
    """
    reservations = Reservations([target for target in targets if target.alive], framing, writer, early)
    try:
        verdict = reservations.await_verdict(location.majority, need)
        if verdict is UploadVerdict.OUTDATED:
            raise NewerVersionKnown(newest_known([*early, *reservations.refusals]), is_early=False)
        if verdict is UploadVerdict.DISAGREE:
            raise VersionsDiffer(is_early=False)
        if verdict is UploadVerdict.REFUSED:
            raise HTTPError(_refusal_status([*early, *reservations.refusals]))
        if verdict is not UploadVerdict.COMMIT:
            raise TooFewNodes()
        is_stored = reservations.commit_reserved(location.majority, need, grace_s)
        if not is_stored and not reservations.is_rejected_by(need):
            raise HTTPError(503)
    finally:
        reservations.abort()
    return reservations.responses + reservations.refusals


def _refusal_status(responses: Sequence[BackendResponse]) -> int:
    """Return the status with which a node refuses that knows the newest version, or that is the peer's."""
    statuses = {
        reservation.parse_predecessor(response.headers): response.status
        for response in responses
        if response.status in REFUSALS
    }
    if None in statuses:
        return statuses[None]
    return statuses[max(version for version in statuses if version is not None)]


class ConditionalChanger:
    """POST and DELETE with conditions."""

    def __init__(self, context: ProxyContext, backends: Backends, repair: ReplicaRepair):
        self._context = context
        self._backends = backends
        self._repair = repair

    def change(
        self,
        request: Request,
        location: WriteLocation,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
        need: int,
    ) -> tuple[list[HeaderMap], list[BackendResponse]]:
        """Apply the request's method on at least ``need`` nodes; return the attempts and the responses.

        Raises ``HTTPError`` as ``commit_conditionally``, and 501 where nodes cannot make a reservation.
        """
        return with_retries(
            request,
            attempts,
            lambda stamped: (stamped, self._try_once(request, location, stamped, nodes(), need)),
            lambda stamped: self._repair.repair(location, request.timestamp, stamped, nodes),
            may_repeat=lambda _reason: True,
            check_ahead=self._context.check_ahead,
        )

    def _try_once(
        self,
        request: Request,
        location: WriteLocation,
        attempts: list[HeaderMap],
        nodes: NodeIterator,
        need: int,
    ) -> list[BackendResponse]:
        framing = MultipartFraming(commit=True, reserve=True, has_object=False)
        for headers in attempts:
            headers.update(framing.headers(None))
            headers[fields.BACKEND_RESERVED_METHOD] = request.method
            if location.policy.is_ec:
                match_object_etag(headers)
        opening = TargetOpener(
            self._backends, location, nodes, framing, method="RESERVE", stage=framing.opening
        )
        targets, early = open_targets(opening, attempts, need)
        try:
            if any(response.status == 405 for response in early) or not all(
                target.can_reserve for target in targets
            ):
                raise conditions_unsupported()
            return commit_conditionally(
                location,
                targets,
                framing,
                writer=request.timestamp,
                early=early,
                need=need,
                grace_s=self._context.settings.post_quorum_timeout,
            )
        finally:
            for target in targets:
                target.abandon()
