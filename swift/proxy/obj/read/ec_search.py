"""Finding enough archives of one upload among the nodes (spec: proxy.md §13).

As many nodes as the object needs archives are asked at once; every response may show that more are needed, or
that a node has another archive besides the one it gave. The rules are ``cluster.fragmentsets``'; here are
the requests, and ``ArchiveSource``, one archive that is being read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from swift.base.ranges import Span
from swift.base.timestamp import Timestamp
from swift.cluster.collect import Arrivals, Until, collect
from swift.cluster.fragmentsets import FragmentSet, FragmentSets, Holding
from swift.cluster.health import SUSPECT_S
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import BackendResponse, TransportError
from swift.http import fields
from swift.http.body import ResponseBody
from swift.http.response import Response, error_response
from swift.proxy.backend import Backends
from swift.proxy.reading import FailedReads, ReadPlan, close_late, rest_headers
from swift.proxy.results import has_timestamp, with_deletion
from swift.proxy.settings import ProxySettings
from swift.ring.device import Node

_CONTENT_RANGE = re.compile(r"bytes (\d{1,20})-(\d{1,20})/(\d{1,20})\Z")


class SourceFailed(TransportError):
    """An archive cannot be read on from this node."""


class ArchiveSource:
    """The answer of a node that has an archive; its body is read in whole fragments."""

    __slots__ = ("node", "status", "headers", "got", "waited_s", "_body", "_position", "_stop", "_total")

    def __init__(self, node: Node, reply: BackendResponse):
        self.node = node
        self.status = reply.status
        self.headers = reply.headers
        #: Bytes that it brought, and seconds that they were waited for; the reader counts them.
        self.got = 0
        self.waited_s = 0.0
        self._body: ResponseBody = reply.stream
        #: Where in the archive the next byte of the body is; -1 when the body is none of the archive.
        self._position, self._stop, self._total = _place(reply)

    def read(self, offset: int, size: int) -> bytes:
        """``size`` bytes of the archive from ``offset`` on; raises ``TransportError``."""
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


def _place(reply: BackendResponse) -> tuple[int, int, int]:
    """Return where a body begins and ends in the archive, and the length of the archive."""
    if reply.status == 200:
        length = int(reply.headers.get("content-length") or 0)
        return 0, length, length
    match = _CONTENT_RANGE.match(reply.headers.get("content-range", "")) if reply.status == 206 else None
    return (int(match[1]), int(match[2]) + 1, int(match[3])) if match else (-1, -1, 0)


def request_archive(
    backends: Backends, plan: ReadPlan, node: Node, preferences: str, byte_range: str | None
) -> BackendResponse | None:
    """Return a node's response about the archive that it prefers; None when it fails."""
    headers = {**plan.headers, fields.BACKEND_FRAGMENT_PREFERENCES: preferences}
    if byte_range is not None:
        headers["range"] = byte_range
    return backends.stream_response(plan.request(node, headers))


def is_archive(reply: BackendResponse) -> bool:
    """Return True if an answer's status is one that a node with the object gives."""
    return 200 <= reply.status < 400 or reply.status == 416


def holding_of(node: Node, reply: BackendResponse) -> Holding[ArchiveSource] | None:
    """Return the archive of a response, None when it is none."""
    return Holding.of(reply.headers, ArchiveSource(node, reply)) if is_archive(reply) else None


def for_rest(plan: ReadPlan) -> ReadPlan:
    """Return the plan of requests for certain bytes, whatever the conditions of the first one were."""
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
        """After ``patience_s`` without a response, other nodes are used for unresponsive ones."""
        self._backends = backends
        self._settings = settings
        self._plan = plan
        self._nodes = nodes
        self._range = byte_range
        self._need = need
        self._patience_s = patience_s
        self._sets: FragmentSets[ArchiveSource] = FragmentSets(need)
        self._arrivals: Arrivals[tuple[Node, BackendResponse | None]] = Arrivals()
        #: Nodes that were asked and have not answered.
        self.pending: list[Node] = []
        #: Ids of the unresponsive nodes among them, for which others were used.
        self._replaced: set[int] = set()
        self._asked = 0
        self._alternates_left = 2 * nodes.primary_count - need
        #: Primaries that have nothing of the object.
        self._absent = 0
        self._failed = FailedReads(settings, nodes.primary_count)

    # asking

    def find(self) -> Archives | None:
        """The upload to read; its sources, and only they, are open."""
        settings = self._settings
        extra = settings.concurrent_ec_extra_requests if settings.concurrent_gets else 0
        for _ in range(self._nodes.primary_count if self._plan.newest else self._need + extra):
            self._launch()
        pause_s, on_quiet = self._patience_s, self._replace_unresponsive
        if settings.concurrent_gets:
            pause_s, on_quiet = settings.concurrency_timeout, self._launch
        for node, reply in collect(self._arrivals, Until(self._is_found), pause_s=pause_s, on_quiet=on_quiet):
            self.pending.remove(node)
            useful = self._take(node, reply)
            if self._sets.complete is None:
                wanted = max(self._sets.shortfall - len(self.pending), 0 if useful else 1)
                for _ in range(wanted):
                    self._launch()
                if not self.pending:
                    self._launch()
        # A later search for another archive has no choice.
        self._nodes.asks_slow = True
        return self._choose()

    def _is_found(self) -> bool:
        return self._sets.complete is not None and not self._plan.newest

    def _ask(self, node: Node, preferences: str) -> tuple[Node, BackendResponse | None]:
        return node, request_archive(self._backends, self._plan, node, preferences, self._range)

    def _launch(self) -> bool:
        """Ask one more node; False when there is none."""
        node = self._next_node()
        if node is None:
            return False
        self._asked += 1
        self.pending.append(node)
        preferences = self._sets.preferences()

        self._arrivals.start(self._ask, node, preferences, otherwise=(node, None))
        return True

    def _replace_unresponsive(self) -> bool:
        """Use one more node for each that is unresponsive now; return True if others may become so."""
        unresponsive = {node.id for node in self.pending if self._backends.is_unresponsive(node)}
        for node in self.pending:
            self._backends.suspect(node)
        for _ in unresponsive - self._replaced:
            self._launch()
        self._replaced |= unresponsive
        return len(unresponsive) < len(self.pending)

    def _next_node(self) -> Node | None:
        """A node that is known to have what is missing, else one that was not asked yet."""
        best = self._sets.best
        if best is not None and best.durable and self._asked >= self._need and self._alternates_left > 0:
            source = best.take_alternate()
            if source is not None:
                self._alternates_left -= 1
                return source.node
        return next(self._nodes, None)

    # judging

    def _take(self, node: Node, reply: BackendResponse | None) -> bool:
        """Judge an answer; True when it brings the search forward."""
        if reply is None:
            self._failed.add_failure()
            return False
        holding = holding_of(node, reply)
        if holding is None:
            self._take_bad(reply, is_handoff=node.index is None)
            return False
        if self._sets.add(holding):
            return True
        reply.stream.close()
        return False

    def _take_bad(self, reply: BackendResponse, *, is_handoff: bool) -> None:
        """Remember an answer that may become the client's; the rules of proxy.md §10."""
        status = self._failed.add(reply, is_handoff=is_handoff)
        if status == 404 and has_timestamp(reply.headers):
            self._sets.deleted_at(Timestamp(reply.headers[fields.BACKEND_TIMESTAMP]))
        if status == 404 and not is_handoff:
            self._absent += 1
            # The others are too few for an object: no need of an avoided one that may only cost a timeout.
            self._nodes.asks_slow = self._nodes.primary_count - self._absent >= self._need

    # the end

    def _choose(self) -> Archives | None:
        """The complete upload with just enough sources open, those that need no computing first."""
        chosen = self._sets.complete
        kept: set[int] = set()
        if chosen is not None:
            superfluous = sorted(chosen.members)[self._need :]
            chosen.spares.extend(chosen.members.pop(index) for index in superfluous)
            close(chosen.spares)
            kept = {id(holding) for holding in chosen.members.values()}
        close(holding for holding in self._sets.holdings() if id(holding) not in kept)
        self._arrivals.abandon(close_late)
        return chosen

    @property
    def is_moving(self) -> bool:
        """Return True if what is there but incomplete may be whole at the next look.

        Archives of other uploads may be replacing it. An archive that a handoff sent home was seen nowhere
        when its primary was asked before that, and the handoff after it.
        """
        ranked = self._sets.ranked()
        return bool(ranked) and ranked[0].durable and (len(ranked) > 1 or self._absent > 0)

    def failure(self) -> Response:
        """The answer when nothing can be read."""
        best = self._sets.best
        if best is not None and best.durable:
            # It is there, and no node without it proves the contrary.
            return error_response(503)
        responses = self._failed.responses
        # Archives that were never committed are as good as none.
        responses += [BackendResponse(404) for holding in self._sets.holdings()]
        response = self._failed.best(is_deleted=any(has_timestamp(r.headers) for r in responses))
        if response.status == 404 and not response.body:
            response = error_response(404)
        return with_deletion(response, responses)


def close(holdings: Iterable[Holding[ArchiveSource]]) -> None:
    """Let the connections of these go."""
    for holding in holdings:
        holding.source.close()
