"""PUTs with conditions: one decision for all replicas of an object (decision 0011).

``If-None-Match: *`` creates and ``If-Match`` replaces a known version. Nodes are asked to promise the object
(``Promises``); a majority of the primaries must have promised it for the same version. Where they know
different versions, the newest is first brought to those that lack it: it may be the rest of a write that
failed half-way, which so is done at last, and from then on everybody judges by it. Fragment archives cannot
be copied so; there any node that knows an object is believed.
"""

from __future__ import annotations

from collections.abc import Sequence

from swift.base.timestamp import Timestamp
from swift.cluster.fanout import Answer
from swift.cluster.transport import TransportError
from swift.http import fields
from swift.http.body import chunks_of
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError
from swift.proxy.backend import Backends
from swift.proxy.obj.documents import Documents
from swift.proxy.obj.phases import Promises, Verdict
from swift.proxy.obj.staged import StagedSink
from swift.proxy.obj.target import ObjectTarget
from swift.ring.device import Node
from swift.wire import reservation

#: What a copy of a stored version is not made from.
_NOT_STORED = frozenset(
    (
        *("date", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-ranges"),
        *("last-modified", "x-timestamp", "content-range", "server"),
    )
)


def is_conditional(headers: HeaderMap) -> bool:
    """Whether a PUT asks for what was there before."""
    return "if-none-match" in headers or "if-match" in headers


def check_promising(headers: HeaderMap, sinks: Sequence[StagedSink]) -> None:
    """501 for an If-Match that nodes cannot keep; those of the peer judge ``If-None-Match: *`` as ever."""
    if "if-match" in headers and not all(sink.promises for sink in sinks):
        raise HTTPError(501, "If-Match needs object servers that know it")


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


class Decision:
    """The end of one conditional upload, whose data is on its way to ``sinks``."""

    def __init__(
        self,
        backends: Backends,
        target: ObjectTarget,
        sinks: Sequence[StagedSink],
        documents: Documents,
        *,
        writer: Timestamp,
        early: Sequence[Answer],
        grace_s: float,
    ):
        self._backends = backends
        self._target = target
        self._sinks = sinks
        self._early = early
        self._grace_s = grace_s
        alive = [sink for sink in sinks if sink.alive]
        self._promises = Promises(alive, documents, writer, early)

    def carry_out(self) -> list[Answer]:
        """Commit when enough nodes promise the object; what they answer.

        Raises ``HTTPError`` 412 when the condition does not hold, 503 when that cannot be known now.
        """
        promises, target = self._promises, self._target
        try:
            verdict = promises.agree(target.majority, target.quorum)
            if verdict is Verdict.DISAGREE:
                raise self._resolve()
            if verdict is Verdict.REFUSED:
                raise HTTPError(412)
            if verdict is not Verdict.COMMIT:
                raise HTTPError(503)
            promises.settle(target.quorum, self._grace_s)
        finally:
            promises.drop()
        return promises.answers + promises.refusals

    # versions that only some have

    def _resolve(self) -> HTTPError:
        """Bring the newest version to a majority, and judge by it."""
        versions = self._versions()
        newest = max(version for version, _refused in versions.values())
        refused = any(version == newest and refused for version, refused in versions.values())
        holders = [node for node, (version, _refused) in versions.items() if version == newest]
        if self._target.policy.ec is None:
            for node, (version, _refused) in versions.items():
                lacks = version < newest and node.index is not None
                if lacks and any(self._copy(source, node, newest) for source in holders):
                    holders.append(node)
            if sum(node.index is not None for node in holders) < self._target.majority:
                return HTTPError(503)
        return HTTPError(412 if refused else 503)

    def _versions(self) -> dict[Node, tuple[Timestamp, bool]]:
        """Node → the version that it knows, and whether it refused the write by that."""
        found: dict[Node, tuple[Timestamp, bool]] = {}
        for sink in self._sinks:
            if sink.refusal is None and sink.alive and sink.held and sink.predecessor is not None:
                found[sink.node] = sink.predecessor, False
        refusals = [*self._early, *(sink.refusal for sink in self._sinks if sink.refusal is not None)]
        for answer in refusals:
            version = reservation.predecessor_of(answer.headers)
            if answer.status == 412 and answer.node is not None and version is not None:
                found[answer.node] = version, True
        return {node: known for node, known in found.items() if node.index is not None or known[0]}

    def _copy(self, source: Node, laggard: Node, version: Timestamp) -> bool:
        """Bring a version from one node to another; whether it is there now."""
        target, backends = self._target, self._backends
        base = {
            fields.BACKEND_STORAGE_POLICY_INDEX: str(target.policy.index),
            fields.BACKEND_REPLICATION: "true",
            fields.BACKEND_OPEN_EXPIRED: "true",
        }
        exchange = backends.open(source, target.part, "GET", target.path, dict(base))
        reply = None if exchange is None else backends.reply(source, exchange, base)
        if reply is None:
            return False
        try:
            stamped = {**base, "x-timestamp": version.internal}
            if reply.status == 404:
                answer = backends.small(laggard, target.part, "DELETE", target.path, stamped)
                return answer is not None and answer.status in (204, 404, 409)
            if reply.status != 200:
                return False
            stored = {name: value for name, value in reply.headers.items() if _is_stored(name)}
            length = reply.headers.get("content-length", "0")
            sent = {**stored, **stamped, "content-length": length}
            writing = backends.open(laggard, target.part, "PUT", target.path, sent)
            if writing is None:
                return False
            for piece in chunks_of(reply.body):
                writing.send(piece)
            written = backends.reply(laggard, writing, sent)
            return written is not None and written.status in (201, 409)
        except TransportError as error:
            backends.failed(laggard, error, base)
            return False
        finally:
            reply.body.close()


def _is_stored(name: str) -> bool:
    return name not in _NOT_STORED and not name.startswith(fields.BACKEND)
