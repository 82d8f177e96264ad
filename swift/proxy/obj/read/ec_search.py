"""The search for enough archives of one upload among the nodes (spec: proxy.md §13).

As many nodes as the object needs archives are requested at once. Every response may show that more are
needed, or that a node has another archive besides the one it sent. The rules are in ``cluster.fragmentsets``.
Here are the requests, and ``ArchiveSource``, one archive that is being read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from swift.base.ranges import Span
from swift.base.timestamp import Timestamp
from swift.cluster.collect import ResultQueue, Until, collect
from swift.cluster.fragmentsets import FoundArchive, FragmentSet, FragmentSets
from swift.cluster.health import SUSPECT_S
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import BackendResponse, TransportError
from swift.http import fields
from swift.http.body import ResponseBody
from swift.http.response import Response, error_response
from swift.proxy.backend import Backends
from swift.proxy.reading import FailedReads, ReadPlan, close_late_response, rest_headers
from swift.proxy.results import has_timestamp, with_deletion_time
from swift.proxy.settings import ProxySettings
from swift.ring.device import Node

_CONTENT_RANGE = re.compile(r"bytes (\d{1,20})-(\d{1,20})/(\d{1,20})\Z")


class SourceFailed(TransportError):
    """An archive cannot be read on from this node."""


class ArchiveSource:
    """The response of a node that has an archive; its body is read in whole fragments."""

    __slots__ = ("node", "status", "headers", "got", "waited_s", "_body", "_position", "_stop", "_total")

    def __init__(self, node: Node, response: BackendResponse):
        self.node = node
        self.status = response.status
        self.headers = response.headers
        #: Bytes received, and seconds of waiting for them; the reader counts them.
        self.got = 0
        self.waited_s = 0.0
        self._body: ResponseBody = response.stream
        #: The position in the archive of the body's next byte; -1 when the body is no part of an archive.
        self._position, self._stop, self._total = _body_position(response)

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of the archive from ``offset`` on; raises ``TransportError``."""
        if not 0 <= self._position <= offset:
            raise SourceFailed(f"{self.node.key} does not send byte {offset} of its archive")
        while self._position < offset:
            self._position += len(self._piece(offset - self._position))
        piece = self._piece(size)
        if len(piece) == size:
            self._position += size
            return piece
        pieces = [piece]
        got = len(piece)
        while got < size:
            piece = self._piece(size - got)
            pieces.append(piece)
            got += len(piece)
        self._position += size
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        piece = self._body.read(size)
        if not piece:
            raise SourceFailed(f"{self.node.key} ended its archive early")
        return piece

    def covers(self, wanted: Span) -> bool:
        """Return True if the body gives these bytes of the archive, as far as the archive goes."""
        return 0 <= self._position <= wanted.start and self._stop >= min(wanted.stop, self._total)

    def close(self) -> None:
        """Let the connection go."""
        self._body.close()

    def __repr__(self) -> str:
        return f"<ArchiveSource {self.node.key} at {self._position}>"


def _body_position(response: BackendResponse) -> tuple[int, int, int]:
    """Return where a body begins and ends in the archive, and the length of the archive."""
    if response.status == 200:
        length = int(response.headers.get("content-length") or 0)
        return 0, length, length
    match = (
        _CONTENT_RANGE.match(response.headers.get("content-range", "")) if response.status == 206 else None
    )
    return (int(match[1]), int(match[2]) + 1, int(match[3])) if match else (-1, -1, 0)


def request_archive(
    backends: Backends, plan: ReadPlan, node: Node, preferences: str, byte_range: str | None
) -> BackendResponse | None:
    """Return a node's response about the archive that it prefers; None when it fails."""
    headers = {**plan.headers, fields.BACKEND_FRAGMENT_PREFERENCES: preferences}
    if byte_range is not None:
        headers["range"] = byte_range
    return backends.stream_response(plan.request(node, headers))


def is_archive(response: BackendResponse) -> bool:
    """Return True if a response's status is that of a node with the object."""
    return 200 <= response.status < 400 or response.status == 416


def found_archive_of(node: Node, response: BackendResponse) -> FoundArchive[ArchiveSource] | None:
    """Return the archive of a response; None when it has none."""
    return FoundArchive.of(response.headers, ArchiveSource(node, response)) if is_archive(response) else None


def unconditional_plan(plan: ReadPlan) -> ReadPlan:
    """Return the plan without the conditions of the first request, for requests of other bytes."""
    return replace(plan, headers=rest_headers(plan.headers))


Archives = FragmentSet[ArchiveSource]


class FragmentSearch:
    """Looks for a durable upload with ``need`` distinct archives."""

    def __init__(
        self,
        backends: Backends,
        settings: ProxySettings,
        plan: ReadPlan,
        nodes: NodeIterator,
        need: int,
        *,
        byte_range: str | None,
        patience_s: float = SUSPECT_S,
    ):
        """Use other nodes for unresponsive ones after ``patience_s`` without a response."""
        self._backends = backends
        self._settings = settings
        self._plan = plan
        self._nodes = nodes
        self._range = byte_range
        self._need = need
        self._patience_s = patience_s
        self._sets: FragmentSets[ArchiveSource] = FragmentSets(need)
        self._arrivals: ResultQueue[tuple[Node, BackendResponse | None]] = ResultQueue()
        #: Nodes that were sent a request and have not responded.
        self.pending: list[Node] = []
        #: Ids of the unresponsive nodes among them that were replaced by others.
        self._suspected: set[int] = set()
        self._replaced: set[int] = set()
        self._request_count = 0
        self._alternates_left = 2 * nodes.primary_count - need
        #: Primaries that have nothing of the object.
        self._absent = 0
        self._failed = FailedReads(settings, nodes.primary_count)

    # asking

    def find(self) -> Archives | None:
        """Return the upload to read; only its sources are open."""
        settings = self._settings
        extra = settings.concurrent_ec_extra_requests if settings.concurrent_gets else 0
        for _ in range(self._nodes.primary_count if self._plan.newest else self._need + extra):
            self._request_next()
        pause_s, on_quiet = self._patience_s, self._replace_unresponsive
        if settings.concurrent_gets:
            pause_s, on_quiet = settings.concurrency_timeout, self._request_next
        for node, response in collect(
            self._arrivals, Until(self._is_found), pause_s=pause_s, on_quiet=on_quiet
        ):
            self.pending.remove(node)
            useful = self._process_response(node, response)
            if self._sets.complete is None:
                wanted = max(self._sets.shortfall - len(self.pending), 0 if useful else 1)
                for _ in range(wanted):
                    self._request_next()
                if not self.pending:
                    self._request_next()
        # A later search for another archive may need slow nodes.
        self._nodes.uses_slow = True
        return self._choose()

    def _is_found(self) -> bool:
        return self._sets.complete is not None and not self._plan.newest

    def _request(self, node: Node, preferences: str) -> tuple[Node, BackendResponse | None]:
        return node, request_archive(self._backends, self._plan, node, preferences, self._range)

    def _request_next(self) -> bool:
        """Request one more node; return False when there is none."""
        node = self._next_node()
        if node is None:
            return False
        self._request_count += 1
        self.pending.append(node)
        preferences = self._sets.preferences()

        self._arrivals.start(self._request, node, preferences, default=(node, None))
        return True

    def _replace_unresponsive(self) -> bool:
        """Use one more node for each that is unresponsive now; return True if others may become so."""
        unresponsive = {node.id for node in self.pending if self._backends.is_unresponsive(node)}
        for node in self.pending:
            self._backends.suspect(node, is_first=node.id not in self._suspected)
            self._suspected.add(node.id)
        for _ in unresponsive - self._replaced:
            self._request_next()
        self._replaced |= unresponsive
        return len(unresponsive) < len(self.pending)

    def _next_node(self) -> Node | None:
        """Return a node that has a missing archive, else one that was not requested yet."""
        best = self._sets.best
        if (
            best is not None
            and best.durable
            and self._request_count >= self._need
            and self._alternates_left > 0
        ):
            source = best.pop_alternate()
            if source is not None:
                self._alternates_left -= 1
                return source.node
        return next(self._nodes, None)

    # judging

    def _process_response(self, node: Node, response: BackendResponse | None) -> bool:
        """Process a response; return True if it brings the search forward."""
        if response is None:
            self._failed.add_failure()
            return False
        archive = found_archive_of(node, response)
        if archive is None:
            self._process_failure(response, is_handoff=node.index is None)
            return False
        if self._sets.add(archive):
            return True
        response.stream.close()
        return False

    def _process_failure(self, response: BackendResponse, *, is_handoff: bool) -> None:
        """Remember a response that may become the client's (proxy.md §10)."""
        status = self._failed.add(response, is_handoff=is_handoff)
        if status == 404 and has_timestamp(response.headers):
            self._sets.record_deletion(Timestamp(response.headers[fields.BACKEND_TIMESTAMP]))
        if status == 404 and not is_handoff:
            self._absent += 1
            # When the other primaries are too few for an object, avoided nodes would only cost a timeout.
            self._nodes.uses_slow = self._nodes.primary_count - self._absent >= self._need

    # the end

    def _choose(self) -> Archives | None:
        """Return the complete upload with just enough sources open; data fragments first."""
        chosen = self._sets.complete
        kept: set[int] = set()
        if chosen is not None:
            superfluous = sorted(chosen.members)[self._need :]
            chosen.spares.extend(chosen.members.pop(index) for index in superfluous)
            close(chosen.spares)
            kept = {id(archive) for archive in chosen.members.values()}
        close(archive for archive in self._sets.archives() if id(archive) not in kept)
        self._arrivals.abandon(close_late_response)
        return chosen

    @property
    def may_appear(self) -> bool:
        """True if an incomplete upload may be complete at the next search.

        Archives of another upload may be replacing it. An archive that moves from a handoff to its primary
        is missed when the primary is requested before the move and the handoff after it.
        """
        ranked = self._sets.ranked()
        return bool(ranked) and ranked[0].durable and (len(ranked) > 1 or self._absent > 0)

    def failure(self) -> Response:
        """Return the response when nothing can be read."""
        best = self._sets.best
        if best is not None and best.durable:
            # The object exists, so 404s of other nodes prove nothing.
            return error_response(503)
        responses = self._failed.responses
        # Archives that were never committed are as good as none.
        responses += [BackendResponse(404) for archive in self._sets.archives()]
        response = self._failed.best(is_deleted=any(has_timestamp(r.headers) for r in responses))
        if response.status == 404 and not response.body:
            response = error_response(404)
        return with_deletion_time(response, responses)


def close(archives: Iterable[FoundArchive[ArchiveSource]]) -> None:
    """Let the connections of these go."""
    for archive in archives:
        archive.source.close()
