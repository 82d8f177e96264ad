"""Changes with conditions: one decision for all replicas of an object (decision 0011).

``If-None-Match: *`` creates, ``If-Match`` changes a known version. Nodes are asked to promise the object
(``Promises``); a majority of the primaries must have promised it for the same version. Where they know
different versions, the newest is first brought to those that lack it: it may be the rest of a write that
failed half-way, which so is done at last, and from then on everybody judges by it. Fragment archives are made
from the others (``ec.restore``), which nodes keep whose writer vanished before it told them to commit.

PUT goes this way in ``proxy.obj.put``. POST and DELETE (``Changer``) have no body and are asked for by a verb
of their own, ``RESERVE``: a node of another make answers 405 to it, and does nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from swift.base.errors import SwiftError
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.fanout import Answer
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import TransportError
from swift.http import fields
from swift.http.body import chunks_of
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.obj.documents import Documents
from swift.proxy.obj.ec.restore import ArchiveRestorer
from swift.proxy.obj.ec.scheme import judge_by_object_etag
from swift.proxy.obj.phases import REFUSALS, Promises, Verdict, newer_version_of
from swift.proxy.obj.sinks import Opening, Sink, open_sinks
from swift.proxy.obj.stored import has_version, said_version, stored_headers
from swift.proxy.obj.target import ObjectTarget
from swift.ring.device import Node
from swift.wire import reservation

T = TypeVar("T")


class Outdated(SwiftError):
    """Some node knows a version that is newer than the one that was to be written.

    Clocks of proxies differ; a later try with a newer timestamp may do.
    """

    def __init__(self, newer: Timestamp, *, is_early: bool):
        super().__init__(f"a node knows {newer.internal}")
        self.newer = newer
        #: It was said before anything of the body was read.
        self.is_early = is_early


def is_conditional(headers: HeaderMap) -> bool:
    """Whether a change asks for what was there before."""
    return "if-none-match" in headers or "if-match" in headers


def with_newer_stamp(
    request: Request,
    attempts: Sequence[HeaderMap],
    carry_out: Callable[[list[HeaderMap]], T],
    *,
    may_repeat: Callable[[Outdated], bool],
) -> T:
    """What comes of copies of ``attempts``; once more with a newer timestamp when nodes know a newer version.

    Raises ``HTTPError`` 503 when that does not help.
    """
    try:
        return carry_out([dict(headers) for headers in attempts])
    except Outdated as outdated:
        if not may_repeat(outdated):
            raise HTTPError(503)
        try:
            # Its own among all who were told of the same version; the clock is hardly left behind by it.
            stamp = Timestamp.from_raw(outdated.newer.raw + 1, random.randrange(1, 1 << 32))
        except InvalidTimestamp:
            raise HTTPError(503)
    request.timestamp = stamp
    try:
        return carry_out([{**headers, "x-timestamp": stamp.internal} for headers in attempts])
    except Outdated:
        raise HTTPError(503)


def check_promising(headers: HeaderMap, sinks: Sequence[Sink], *, may_be_weak: bool) -> None:
    """501 for conditions that nodes cannot keep; ``may_be_weak`` lets those of the peer judge ``*`` alone."""
    if all(sink.promises for sink in sinks) or (may_be_weak and "if-match" not in headers):
        return
    raise cannot_be_kept()


def cannot_be_kept() -> HTTPError:
    """The answer where a node promises nothing."""
    return HTTPError(501, "Conditional changes need object servers that know them")


def is_of_primary(answer: Answer) -> bool:
    """Whether a node answered that should have the object; what others lack proves nothing."""
    return answer.node is not None and answer.node.index is not None


def refused_everywhere(early: Sequence[Answer], majority: int) -> None:
    """412 before the body is read, when a majority of the primaries judges so by the same version.

    A node of the peer does not say by which, and decides alone, as it does for its own proxy.
    """
    refused = [answer for answer in early if answer.status == 412 and is_of_primary(answer)]
    versions = [reservation.predecessor_of(answer.headers) for answer in refused]
    if None in versions or any(versions.count(version) >= majority for version in versions):
        raise HTTPError(412)


def check_current(early: Sequence[Answer]) -> None:
    """Raise ``Outdated`` when a node that refused the body knows a newer version."""
    newer = _newest_of(early)
    if newer is not None:
        raise Outdated(newer, is_early=True)


def _newest_of(answers: Sequence[Answer]) -> Timestamp | None:
    """The newest version for which one of the answers is 409."""
    versions = [newer_version_of(answer) for answer in answers if answer.status == 409]
    return max((version for version in versions if version is not None), default=None)


class Decision:
    """The end of one conditional change, whose data, if any, is on its way to ``sinks``."""

    def __init__(
        self,
        backends: Backends,
        restorer: ArchiveRestorer,
        target: ObjectTarget,
        sinks: Sequence[Sink],
        documents: Documents,
        *,
        writer: Timestamp,
        early: Sequence[Answer],
        need: int,
        grace_s: float,
    ):
        self._backends = backends
        self._restorer = restorer
        self._target = target
        self._sinks = sinks
        self._early = early
        self._need = need
        self._grace_s = grace_s
        alive = [sink for sink in sinks if sink.alive]
        self._promises = Promises(alive, documents, writer, early)

    def carry_out(self) -> list[Answer]:
        """Commit when enough nodes promise the object; what they answer.

        Raises ``HTTPError`` 412 when the condition does not hold, 404 when there is nothing to change, 503
        when that cannot be known now; and ``Outdated``.
        """
        promises = self._promises
        try:
            verdict = promises.agree(self._target.majority, self._need)
            if verdict is Verdict.OUTDATED:
                newer = _newest_of([*self._early, *promises.refusals])
                assert newer is not None, "somebody said so"
                raise Outdated(newer, is_early=False)
            if verdict is Verdict.DISAGREE:
                raise self._resolve()
            if verdict is Verdict.REFUSED:
                raise HTTPError(self._refusal())
            if verdict is not Verdict.COMMIT:
                raise HTTPError(503)
            if not promises.settle(self._target.majority, self._need, self._grace_s):
                raise HTTPError(503)
        finally:
            promises.drop()
        return promises.answers + promises.refusals

    def _refusal(self) -> int:
        """The status with which the newest version, or a node of another make, refuses."""
        refusals = [answer for answer in self._refusals() if answer.status in REFUSALS]
        versions = self._versions()
        newest = max((version for version, _status in versions.values()), default=None)
        for answer in refusals:
            if reservation.predecessor_of(answer.headers) in (newest, None):
                return answer.status
        return 412

    def _refusals(self) -> list[Answer]:
        return [*self._early, *(sink.refusal for sink in self._sinks if sink.refusal is not None)]

    # versions that only some have

    def _resolve(self) -> HTTPError:
        """Bring the newest version to a majority, and judge by it."""
        versions = self._versions()
        newest = max(version for version, _status in versions.values())
        refusals = [status for version, status in versions.values() if version == newest and status]
        holders = [node for node, (version, _status) in versions.items() if version == newest]
        # Only where the object is promised to us: another writer may have judged by what is elsewhere.
        laggards = [
            node
            for node, (version, status) in versions.items()
            if version < newest and not status and node.index is not None
        ]
        missing = self._target.majority - sum(node.index is not None for node in holders)
        began_s = time.monotonic()
        if len(laggards) < missing or self._spread(newest, holders, laggards, missing) < missing:
            return HTTPError(503)
        if time.monotonic() - began_s >= reservation.LEASE_S:
            return HTTPError(503)
        return HTTPError(refusals[0] if refusals else 503)

    def _spread(
        self, newest: Timestamp, holders: Sequence[Node], laggards: Sequence[Node], missing: int
    ) -> int:
        """Bring the newest version to those that lack it; how many have it now."""
        if self._target.policy.is_ec and not self._is_deleted(holders[0], newest):
            return len(self._restorer.restore(self._target, newest, laggards, missing))
        return sum(any(self._copy(source, node, newest) for source in holders) for node in laggards)

    def _is_deleted(self, node: Node, version: Timestamp) -> bool:
        """Whether the version that a node has is a tombstone."""
        target = self._target
        answer = self._backends.small(node, target.part, "HEAD", target.path, self._asking())
        return answer is not None and answer.status == 404 and said_version(answer) == version

    def _asking(self) -> HeaderMap:
        """The headers of requests that are about what is stored, whatever clients would see of it."""
        return {
            fields.BACKEND_STORAGE_POLICY_INDEX: str(self._target.policy.index),
            fields.BACKEND_REPLICATION: "true",
            fields.BACKEND_OPEN_EXPIRED: "true",
        }

    def _versions(self) -> dict[Node, tuple[Timestamp, int]]:
        """Node → the version that it knows, and the status with which it refused the change by that, or 0."""
        found: dict[Node, tuple[Timestamp, int]] = {}
        for sink in self._sinks:
            if sink.refusal is None and sink.alive and sink.held and sink.predecessor is not None:
                found[sink.node] = sink.predecessor, 0
        for answer in self._refusals():
            version = reservation.predecessor_of(answer.headers)
            if answer.status in REFUSALS and answer.node is not None and version is not None:
                found[answer.node] = version, answer.status
        return {node: known for node, known in found.items() if node.index is not None or known[0]}

    def _copy(self, source: Node, laggard: Node, version: Timestamp) -> bool:
        """Bring a version from one node to another; whether it is there now."""
        target, backends = self._target, self._backends
        base = self._asking()
        exchange = backends.open(source, target.part, "GET", target.path, dict(base))
        reply = None if exchange is None else backends.reply(source, exchange, base)
        if reply is None:
            return False
        try:
            stamped = {**base, "x-timestamp": version.internal}
            if said_version(reply) != version:
                # It was changed meanwhile.
                return False
            if reply.status == 404:
                answer = backends.small(laggard, target.part, "DELETE", target.path, stamped)
                return answer is not None and has_version(answer, version)
            stored = stored_headers(reply.headers)
            length = reply.headers.get("content-length", "0")
            sent = {**stored, **stamped, "content-length": length}
            writing = backends.open(laggard, target.part, "PUT", target.path, sent)
            if writing is None:
                return False
            try:
                for piece in chunks_of(reply.body):
                    writing.send(piece)
            except BaseException:
                writing.abort()
                raise
            written = backends.reply(laggard, writing, sent)
            return written is not None and has_version(written, version)
        except TransportError as error:
            backends.failed(laggard, error, base)
            return False
        finally:
            reply.body.close()


class Changer:
    """POST and DELETE with conditions."""

    def __init__(self, context: ProxyContext, backends: Backends, restorer: ArchiveRestorer):
        self._context = context
        self._backends = backends
        self._restorer = restorer

    def change(
        self,
        request: Request,
        target: ObjectTarget,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
        need: int,
    ) -> tuple[list[HeaderMap], list[Answer]]:
        """Have the request's method carried out by ``need`` nodes at least: the attempts, and their answers.

        Raises ``HTTPError`` as ``Decision.carry_out``, and 501 where nodes cannot keep a promise.
        """
        return with_newer_stamp(
            request,
            attempts,
            lambda stamped: (stamped, self._once(request, target, stamped, nodes(), need)),
            may_repeat=lambda _outdated: True,
        )

    def _once(
        self,
        request: Request,
        target: ObjectTarget,
        attempts: list[HeaderMap],
        nodes: NodeIterator,
        need: int,
    ) -> list[Answer]:
        documents = Documents(commit=True, reserve=True, has_object=False)
        for headers in attempts:
            headers.update(documents.headers(None))
            headers[fields.BACKEND_RESERVED_METHOD] = request.method
            if target.policy.is_ec:
                judge_by_object_etag(headers)
        opening = Opening(self._backends, target, nodes, documents, method="RESERVE", stage=documents.opening)
        sinks, early = open_sinks(opening, attempts, need)
        try:
            if any(answer.status == 405 for answer in early) or not all(sink.promises for sink in sinks):
                raise cannot_be_kept()
            decision = Decision(
                self._backends,
                self._restorer,
                target,
                sinks,
                documents,
                writer=request.timestamp,
                early=early,
                need=need,
                grace_s=self._context.settings.post_quorum_timeout,
            )
            return decision.carry_out()
        finally:
            for sink in sinks:
                sink.abandon()
