"""One fragment archive being read, and how to ask a node for one (spec: proxy.md §13)."""

from __future__ import annotations

import re
from dataclasses import replace

from swift.base.ranges import Span
from swift.cluster.fragmentsets import Holding
from swift.cluster.transport import BackendResponse, TransportError
from swift.http import fields
from swift.http.body import ResponseBody
from swift.proxy.backend import Backends
from swift.proxy.reading import ReadPlan, rest_headers
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
        #: Bytes that it brought, and seconds that they were waited for; whoever reads counts.
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
        """Whether the body gives these bytes of the archive, as far as the archive goes."""
        return 0 <= self._position <= wanted.start and self._stop >= min(wanted.stop, self._total)

    def close(self) -> None:
        """Let the connection go."""
        self._body.close()

    def __repr__(self) -> str:
        return f"<ArchiveSource {self.node.key} at {self._position}>"


def _place(reply: BackendResponse) -> tuple[int, int, int]:
    """Where a body begins and ends in the archive, and how long that is."""
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
    """Whether an answer's status is one that a node with the object gives."""
    return 200 <= reply.status < 400 or reply.status == 416


def holding_of(node: Node, reply: BackendResponse) -> Holding[ArchiveSource] | None:
    """What an answer offers, None when it is no archive."""
    return Holding.of(reply.headers, ArchiveSource(node, reply)) if is_archive(reply) else None


def for_rest(plan: ReadPlan) -> ReadPlan:
    """Return the plan of requests for certain bytes, whatever the conditions of the first one were."""
    return replace(plan, headers=rest_headers(plan.headers))
