"""Conditional changes: one decision for all replicas of an object (decision 0011).

``If-None-Match: *`` creates, ``If-Match`` changes a known version. Nodes are asked to reserve the object
(``phases.Reservations``); a majority of the primaries must have reserved it for the same version. PUT goes
this way in ``write.put``. POST and DELETE (``Changer``) have no body and a verb of their own, ``RESERVE``: a
node of another make responds 405 to it, and does nothing.

``Agreement`` brings the nodes of one object to the same version, while none of them is reserved for another
writer. What fewer than a majority of the primaries have may be the rest of a write that failed, which a
client may have read; so it is completed before others go on. The nodes are asked for reservations with a
``RESERVE`` that changes nothing, say which version they know, and those that lack the newest one get it from
others.
Archives are made from other archives (``commit.restore``). Then the reservations are given back, and the
change is tried again (``with_retries``).
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
from swift.http.body import ResponseBody, chunks_of
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.obj.commit.framing import MultipartFraming
from swift.proxy.obj.commit.phases import (
    PATIENCE_S,
    REFUSALS,
    Reservations,
    UploadVerdict,
    newer_version_of,
    newest_known,
)
from swift.proxy.obj.commit.restore import ArchiveRestorer
from swift.proxy.obj.commit.stored import has_version, reported_version, stored_headers, stored_read_headers
from swift.proxy.obj.location import ObjectLocation
from swift.proxy.obj.scheme import judge_by_object_etag
from swift.proxy.obj.write.targets import Opening, UploadTarget, open_targets
from swift.proxy.restamp import restamped
from swift.ring.device import Node
from swift.wire import reservation

T = TypeVar("T")
#: A change is tried so often.
TRIES = 4


class TryAgain(SwiftError):
    """Nodes did not carry out a change, but may do so next time."""

    def __init__(self, reason: str, *, is_early: bool):
        super().__init__(reason)
        #: It was known before anything of the body was read.
        self.is_early = is_early


class Outdated(TryAgain):
    """Some node knows a version that is newer than the one that was to be written.

    Clocks of proxies differ; a later try with a newer timestamp may do.
    """

    def __init__(self, newer: Timestamp, *, is_early: bool):
        super().__init__(f"a node knows {newer.internal}", is_early=is_early)
        self.newer = newer


class Disputed(TryAgain):
    """Nodes judge by different versions, so the condition cannot be judged.

    A later try may do, when they agree (``agreement``).
    """

    def __init__(self, *, is_early: bool):
        super().__init__("nodes know different versions", is_early=is_early)


class Lost(TryAgain):
    """Nodes went away before any was told to commit; others may stand in for them."""

    def __init__(self) -> None:
        super().__init__("too few nodes are left", is_early=False)


def with_retries(
    request: Request,
    attempts: Sequence[HeaderMap],
    carry_out: Callable[[list[HeaderMap]], T],
    agree: Callable[[Sequence[HeaderMap]], None],
    *,
    may_repeat: Callable[[TryAgain], bool],
    check_ahead: Callable[[Timestamp], None],
) -> T:
    """Carry out copies of ``attempts``; in later tries with newer timestamps, each its own.

    What an earlier try left a node may remove late, and must not take for that of a later one. Between two
    tries nodes that judge by different versions are made to ``agree``, for the good of those who come later
    when this change cannot be repeated. No try begins when all together took ``PATIENCE_S``. ``check_ahead``
    raises for a version that is too far ahead of the clock to be superseded. Raises ``HTTPError`` 503 when
    that does not help, and what ``agree`` raises.
    """
    give_up = time.monotonic() + PATIENCE_S
    for _ in range(TRIES):
        try:
            return carry_out([dict(headers) for headers in attempts])
        except TryAgain as reason:
            failed = reason
        attempts = _restamped(request, attempts, failed, check_ahead)
        if isinstance(failed, Disputed):
            try:
                agree(attempts)
            except Outdated as outdated:
                attempts = _restamped(request, attempts, outdated, check_ahead)
        if not may_repeat(failed) or time.monotonic() >= give_up:
            break
    raise HTTPError(503)


def with_own_stamp(request: Request, attempts: Sequence[HeaderMap]) -> list[HeaderMap]:
    """The attempts in the same tick of the clock, with an offset that no other writer has.

    An archive is on disk before its writer is decided upon, under a name that its timestamp makes: writers
    who began in one tick would replace, and at last remove, each other's.
    """
    stamp = request.timestamp
    return _stamped(request, attempts, stamp.raw, stamp.offset + random.randrange(1, 1 << 32))


def _restamped(
    request: Request,
    attempts: Sequence[HeaderMap],
    reason: TryAgain,
    check_ahead: Callable[[Timestamp], None],
) -> list[HeaderMap]:
    """The attempts just after what nodes know, and after themselves; ``HTTPError`` 503 at the end of time."""
    known = max(reason.newer, request.timestamp) if isinstance(reason, Outdated) else request.timestamp
    check_ahead(known)
    # Its own among all who were told of the same version; the clock is hardly left behind by it.
    return _stamped(request, attempts, known.raw + 1, random.randrange(1, 1 << 32))


def _stamped(request: Request, attempts: Sequence[HeaderMap], raw: int, offset: int) -> list[HeaderMap]:
    try:
        return restamped(request, attempts, Timestamp.from_raw(raw, offset))
    except InvalidTimestamp:
        raise HTTPError(503)


#: Headers of a change that those who only want to agree send as well.
_ASKED_WITH = (fields.BACKEND_STORAGE_POLICY_INDEX, "x-timestamp", "x-trans-id", "user-agent", "referer")


class Agreement:
    """Makes nodes agree."""

    def __init__(self, backends: Backends, restorer: ArchiveRestorer):
        self._backends = backends
        self._restorer = restorer
        #: Objects whose nodes are just being made to agree.
        self._reaching: dict[EntityPath, green.Event] = {}

    def reach(
        self,
        location: ObjectLocation,
        writer: Timestamp,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
    ) -> None:
        """A quorum of nodes knew the same version when this returns; ``attempts`` are those of a change.

        Of those who want it at one time one does it; how that went the others see when they go on. Raises
        ``HTTPError`` 503 when it cannot be brought about now, and ``Outdated``.
        """
        running = self._reaching.get(location.path)
        if running is not None:
            running.wait(PATIENCE_S)
            return
        done = self._reaching[location.path] = green.Event()
        try:
            self._reach(location, writer, attempts, nodes)
        finally:
            del self._reaching[location.path]
            done.set()

    def _reach(
        self,
        location: ObjectLocation,
        writer: Timestamp,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
    ) -> None:
        framing = MultipartFraming(commit=True, reserve=True, has_object=False)
        asking = [_reserve_headers(headers, framing) for headers in attempts]
        opening = Opening(self._backends, location, nodes(), framing, method="RESERVE", stage=framing.opening)
        targets, early = open_targets(opening, asking, location.quorum)
        reservations = Reservations([target for target in targets if target.alive], framing, writer, early)
        try:
            verdict = reservations.agree(location.majority, location.quorum)
            if verdict is UploadVerdict.OUTDATED:
                raise Outdated(newest_known([*early, *reservations.refusals]), is_early=False)
            if verdict not in (UploadVerdict.COMMIT, UploadVerdict.DISAGREE):
                raise HTTPError(503)
            self._level(location, targets)
        finally:
            reservations.drop()
            for target in targets:
                target.abandon()

    def _level(self, location: ObjectLocation, targets: Sequence[UploadTarget]) -> None:
        """Bring the newest version to nodes that reserved the object; raises ``HTTPError`` 503."""
        versions = {
            target.node: target.predecessor
            for target in targets
            if target.alive and target.held and target.predecessor is not None
        }
        newest = max(versions.values())
        holders = [node for node, version in versions.items() if version == newest]
        # What a handoff lacks it need not have.
        laggards = [n for n, version in versions.items() if version < newest and n.index is not None]
        missing = location.majority - sum(node.index is not None for node in holders)
        began_s = time.monotonic()
        if laggards and self._spread(location, newest, holders, laggards, missing) < missing:
            raise HTTPError(503)
        if time.monotonic() - began_s >= reservation.LEASE_S:
            raise HTTPError(503)

    def _spread(
        self,
        location: ObjectLocation,
        newest: Timestamp,
        holders: Sequence[Node],
        laggards: Sequence[Node],
        missing: int,
    ) -> int:
        """Bring the newest version to those that lack it; how many have it now."""
        if location.policy.is_ec and not self._is_deleted(location, holders[0], newest):
            return len(self._restorer.restore(location, newest, laggards, max(missing, 1)))
        return sum(any(self._copy(location, source, node, newest) for source in holders) for node in laggards)

    def _is_deleted(self, location: ObjectLocation, node: Node, version: Timestamp) -> bool:
        """Return True if the version that a node has is a tombstone."""
        headers = stored_read_headers(location.policy.index)
        answer = self._backends.request(
            self._backends.make_request(node, location.part, "HEAD", location.path, headers)
        )
        return answer is not None and answer.status == 404 and reported_version(answer) == version

    def _copy(self, location: ObjectLocation, source: Node, laggard: Node, version: Timestamp) -> bool:
        """Bring a version from one node to another; whether it is there now."""
        backends, base = self._backends, stored_read_headers(location.policy.index)
        place, timeouts = f"{location.part}{location.path.quoted}", backends.write_timeouts
        reading = NodeRequest(source, "GET", f"/{source.device}/{place}", base, b"", timeouts)
        reply = backends.stream_response(reading)
        if reply is None:
            return False
        try:
            stamped = {**base, "x-timestamp": version.internal}
            if reported_version(reply) != version:
                # It was changed meanwhile.
                return False
            if reply.status == 404:
                deleting = backends.make_request(laggard, location.part, "DELETE", location.path, stamped)
                answer = backends.request(deleting)
                return answer is not None and has_version(answer, version)
            length = reply.headers.get("content-length", "0")
            sent = {**stored_headers(reply.headers), **stamped, "content-length": length}
            request = NodeRequest(laggard, "PUT", f"/{laggard.device}/{place}", sent, b"", timeouts)
            writing = backends.stream(request)
            if writing is None:
                return False
            try:
                for piece in _read(reply.stream):
                    writing.send(piece)
            except BaseException:
                writing.abort()
                raise
            written = backends.response(laggard, writing, sent)
            return written is not None and has_version(written, version)
        except SourceLost as error:
            backends.failed(source, error.reason, base)
            return False
        except TransportError as error:
            backends.failed(laggard, error, base)
            return False
        finally:
            reply.stream.close()


class SourceLost(Exception):
    """The node that a version is copied from broke off: the one that it is copied to is not to blame."""

    def __init__(self, reason: TransportError):
        super().__init__(str(reason))
        self.reason = reason


def _read(body: ResponseBody) -> Iterator[bytes]:
    """The pieces of a body; raises ``SourceLost``."""
    try:
        yield from chunks_of(body)
    except TransportError as error:
        raise SourceLost(error)


def _reserve_headers(headers: HeaderMap, framing: MultipartFraming) -> HeaderMap:
    asking = {name: headers[name] for name in _ASKED_WITH if name in headers}
    asking.update(framing.headers(None))
    asking[fields.BACKEND_RESERVED_METHOD] = "HEAD"
    return asking


#: With these a node refuses what is there already: its condition does not hold, or it is locked.
UNFIT = (412, 403)


def is_conditional(headers: HeaderMap) -> bool:
    """Return True if a change asks for what was there before, or whether that is locked."""
    return "if-none-match" in headers or _is_strict(headers)


def _is_strict(headers: HeaderMap) -> bool:
    """Return True if only nodes that reserve the object can keep the conditions."""
    return not headers.keys().isdisjoint((*reservation.ABOUT_VERSION, fields.BACKEND_OBJECT_LOCK))


def check_reserving(headers: HeaderMap, targets: Sequence[UploadTarget], *, may_be_weak: bool) -> None:
    """501 for conditions that nodes cannot keep; ``may_be_weak`` lets those of the peer judge ``*`` alone."""
    if all(target.reserves for target in targets) or (may_be_weak and not _is_strict(headers)):
        return
    raise cannot_be_kept()


def cannot_be_kept() -> HTTPError:
    """The answer where a node makes no reservations."""
    return HTTPError(501, "Conditional changes need object servers that know them")


def is_of_primary(answer: BackendResponse) -> bool:
    """Return True if a node answered that should have the object; what others lack proves nothing."""
    return answer.node is not None and answer.node.index is not None


def check_early(
    early: Sequence[BackendResponse], targets: Sequence[UploadTarget], majority: int, need: int
) -> None:
    """Raise what is known before the body is read: ``HTTPError`` 412 or 403, ``Outdated`` or ``Disputed``.

    A node of the peer does not say by which version it judges, and decides alone, as it does for its own
    proxy. Of ours a majority of the primaries must judge by the same one, and no node may know a newer one.
    """
    refused = [answer for answer in early if answer.status in UNFIT and is_of_primary(answer)]
    versions = [reservation.predecessor_of(answer.headers) for answer in refused]
    status = min((answer.status for answer in refused), default=412)
    if None in versions:
        raise HTTPError(status)
    if any(answer.status == 409 and newer_version_of(answer) is not None for answer in early):
        raise Outdated(newest_known(early), is_early=True)
    if not versions:
        return
    taken = [target.predecessor for target in targets if target.node.index is not None]
    newest = max(version for version in (*versions, *taken) if version is not None)
    if versions.count(newest) >= majority:
        raise HTTPError(status)
    if len(targets) < need or versions.count(newest) + taken.count(newest) < majority:
        raise Disputed(is_early=True)


class Decision:
    """The end of one conditional change, whose data, if any, is on its way to ``targets``."""

    def __init__(
        self,
        location: ObjectLocation,
        targets: Sequence[UploadTarget],
        framing: MultipartFraming,
        *,
        writer: Timestamp,
        early: Sequence[BackendResponse],
        need: int,
        grace_s: float,
    ):
        self._location = location
        self._targets = targets
        self._early = early
        self._need = need
        self._grace_s = grace_s
        alive = [target for target in targets if target.alive]
        self._reservations = Reservations(alive, framing, writer, early)

    def carry_out(self) -> list[BackendResponse]:
        """Commit when enough nodes reserve the object; what they answer.

        Raises ``HTTPError`` 412 when the condition does not hold, 404 when there is nothing to change, 503
        when the outcome is unknown; ``Outdated``, ``Disputed`` and ``Lost`` when it was not.
        """
        reservations = self._reservations
        try:
            verdict = reservations.agree(self._location.majority, self._need)
            if verdict is UploadVerdict.OUTDATED:
                raise Outdated(newest_known([*self._early, *reservations.refusals]), is_early=False)
            if verdict is UploadVerdict.DISAGREE:
                raise Disputed(is_early=False)
            if verdict is UploadVerdict.REFUSED:
                raise HTTPError(self._refusal())
            if verdict is not UploadVerdict.COMMIT:
                raise Lost()
            if not reservations.conclude(self._location.majority, self._need, self._grace_s):
                raise HTTPError(503)
        finally:
            reservations.drop()
        return reservations.answers + reservations.refusals

    def _refusal(self) -> int:
        """The status with which a node refuses that knows the newest version, or that is of another make."""
        statuses = {
            reservation.predecessor_of(answer.headers): answer.status
            for answer in (*self._early, *self._reservations.refusals)
            if answer.status in REFUSALS
        }
        if None in statuses:
            return statuses[None]
        return statuses[max(version for version in statuses if version is not None)]


class Changer:
    """POST and DELETE with conditions."""

    def __init__(self, context: ProxyContext, backends: Backends, agreement: Agreement):
        self._context = context
        self._backends = backends
        self._agreement = agreement

    def change(
        self,
        request: Request,
        location: ObjectLocation,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
        need: int,
    ) -> tuple[list[HeaderMap], list[BackendResponse]]:
        """Have the request's method carried out by ``need`` nodes at least: the attempts, and their answers.

        Raises ``HTTPError`` as ``Decision.carry_out``, and 501 where nodes cannot make a reservation.
        """
        return with_retries(
            request,
            attempts,
            lambda stamped: (stamped, self._once(request, location, stamped, nodes(), need)),
            lambda stamped: self._agreement.reach(location, request.timestamp, stamped, nodes),
            may_repeat=lambda _reason: True,
            check_ahead=self._context.check_ahead,
        )

    def _once(
        self,
        request: Request,
        location: ObjectLocation,
        attempts: list[HeaderMap],
        nodes: NodeIterator,
        need: int,
    ) -> list[BackendResponse]:
        framing = MultipartFraming(commit=True, reserve=True, has_object=False)
        for headers in attempts:
            headers.update(framing.headers(None))
            headers[fields.BACKEND_RESERVED_METHOD] = request.method
            if location.policy.is_ec:
                judge_by_object_etag(headers)
        opening = Opening(self._backends, location, nodes, framing, method="RESERVE", stage=framing.opening)
        targets, early = open_targets(opening, attempts, need)
        try:
            if any(answer.status == 405 for answer in early) or not all(
                target.reserves for target in targets
            ):
                raise cannot_be_kept()
            decision = Decision(
                location,
                targets,
                framing,
                writer=request.timestamp,
                early=early,
                need=need,
                grace_s=self._context.settings.post_quorum_timeout,
            )
            return decision.carry_out()
        finally:
            for target in targets:
                target.abandon()
