"""Bringing the nodes of one object to the same version, while none of them is promised to anybody else.

What fewer than a majority of the primaries have may be the rest of a write that failed, which somebody may
have read; so it is done at last, before others go on (decision 0011). The nodes are asked for promises with a
``RESERVE`` that changes nothing, say which version they know, and those that lack the newest one get it from
the others. Fragment archives are made from other archives (``ec.restore``), which nodes keep whose writer
vanished before it told them to commit. Then the promises are given back, and whoever found them apart tries
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from swift import green
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import NodeRequest, TransportError
from swift.http import fields
from swift.http.body import ResponseBody, chunks_of
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError
from swift.proxy.backend import Backends
from swift.proxy.obj.documents import Documents
from swift.proxy.obj.ec.restore import ArchiveRestorer
from swift.proxy.obj.phases import Promises, UploadVerdict, newest_known
from swift.proxy.obj.retries import PATIENCE_S, Outdated
from swift.proxy.obj.sinks import Opening, Sink, open_sinks
from swift.proxy.obj.stored import about_what_is_stored, has_version, said_version, stored_headers
from swift.proxy.obj.target import ObjectTarget
from swift.ring.device import Node
from swift.wire import reservation

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
        target: ObjectTarget,
        writer: Timestamp,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
    ) -> None:
        """A quorum of nodes knew the same version when this returns; ``attempts`` are those of a change.

        Of those who want it at one time one does it; how that went the others see when they go on. Raises
        ``HTTPError`` 503 when it cannot be brought about now, and ``Outdated``.
        """
        running = self._reaching.get(target.path)
        if running is not None:
            running.wait(PATIENCE_S)
            return
        done = self._reaching[target.path] = green.Event()
        try:
            self._reach(target, writer, attempts, nodes)
        finally:
            del self._reaching[target.path]
            done.set()

    def _reach(
        self,
        target: ObjectTarget,
        writer: Timestamp,
        attempts: Sequence[HeaderMap],
        nodes: Callable[[], NodeIterator],
    ) -> None:
        documents = Documents(commit=True, reserve=True, has_object=False)
        asking = [_asking_for_promise(headers, documents) for headers in attempts]
        opening = Opening(
            self._backends, target, nodes(), documents, method="RESERVE", stage=documents.opening
        )
        sinks, early = open_sinks(opening, asking, target.quorum)
        promises = Promises([sink for sink in sinks if sink.alive], documents, writer, early)
        try:
            verdict = promises.agree(target.majority, target.quorum)
            if verdict is UploadVerdict.OUTDATED:
                raise Outdated(newest_known([*early, *promises.refusals]), is_early=False)
            if verdict not in (UploadVerdict.COMMIT, UploadVerdict.DISAGREE):
                raise HTTPError(503)
            self._level(target, sinks)
        finally:
            promises.drop()
            for sink in sinks:
                sink.abandon()

    def _level(self, target: ObjectTarget, sinks: Sequence[Sink]) -> None:
        """Bring the newest version to nodes that promised the object; raises ``HTTPError`` 503."""
        versions = {
            sink.node: sink.predecessor
            for sink in sinks
            if sink.alive and sink.held and sink.predecessor is not None
        }
        newest = max(versions.values())
        holders = [node for node, version in versions.items() if version == newest]
        # What a handoff lacks it need not have.
        laggards = [n for n, version in versions.items() if version < newest and n.index is not None]
        missing = target.majority - sum(node.index is not None for node in holders)
        began_s = time.monotonic()
        if laggards and self._spread(target, newest, holders, laggards, missing) < missing:
            raise HTTPError(503)
        if time.monotonic() - began_s >= reservation.LEASE_S:
            raise HTTPError(503)

    def _spread(
        self,
        target: ObjectTarget,
        newest: Timestamp,
        holders: Sequence[Node],
        laggards: Sequence[Node],
        missing: int,
    ) -> int:
        """Bring the newest version to those that lack it; how many have it now."""
        if target.policy.is_ec and not self._is_deleted(target, holders[0], newest):
            return len(self._restorer.restore(target, newest, laggards, max(missing, 1)))
        return sum(any(self._copy(target, source, node, newest) for source in holders) for node in laggards)

    def _is_deleted(self, target: ObjectTarget, node: Node, version: Timestamp) -> bool:
        """Whether the version that a node has is a tombstone."""
        headers = about_what_is_stored(target.policy.index)
        answer = self._backends.request(
            self._backends.make_request(node, target.part, "HEAD", target.path, headers)
        )
        return answer is not None and answer.status == 404 and said_version(answer) == version

    def _copy(self, target: ObjectTarget, source: Node, laggard: Node, version: Timestamp) -> bool:
        """Bring a version from one node to another; whether it is there now."""
        backends, base = self._backends, about_what_is_stored(target.policy.index)
        place, timeouts = f"{target.part}{target.path.quoted}", backends.write_timeouts
        reading = NodeRequest(source, "GET", f"/{source.device}/{place}", base, b"", timeouts)
        reply = backends.stream_response(reading)
        if reply is None:
            return False
        try:
            stamped = {**base, "x-timestamp": version.internal}
            if said_version(reply) != version:
                # It was changed meanwhile.
                return False
            if reply.status == 404:
                deleting = backends.make_request(laggard, target.part, "DELETE", target.path, stamped)
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


def _asking_for_promise(headers: HeaderMap, documents: Documents) -> HeaderMap:
    asking = {name: headers[name] for name in _ASKED_WITH if name in headers}
    asking.update(documents.headers(None))
    asking[fields.BACKEND_RESERVED_METHOD] = "HEAD"
    return asking
