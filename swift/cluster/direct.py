"""Requests of daemons and storage servers to one node, or to every node of an entity.

It builds the path of an entity at a node, quoting, timeouts and the agent. The meaning of a status is up to
the caller; the functions here have the rules that most callers need. ``request_entity`` and
``request_all`` go over the replication network and return None for a node without a response; ``request``
and ``stream`` are for requests of another kind, whose callers handle the error. Unfit for callers that have
to avoid failing nodes: that is ``cluster.collect``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from swift import green
from swift.base.entity import EntityPath
from swift.cluster.transport import (
    BackendResponse,
    Destination,
    NodeRequest,
    NodeTimeouts,
    Timeouts,
    Transport,
    TransportError,
    node_path,
    replication_address,
)
from swift.http.headers import HeaderMap
from swift.ring.device import Node

#: Called with a node that did not respond, and the error.
OnNoResponse = Callable[[str, TransportError], None]


def log_no_response(log: Callable[[str], None]) -> OnNoResponse:
    """Return a function that logs which node did not respond and why."""

    def report(node: str, error: TransportError) -> None:
        log(f"{node}: {error}")

    return report


def _ignore(_node: str, _error: TransportError) -> None:
    return


def count_success(responses: Sequence[BackendResponse | None], *also: int) -> int:
    """Count the responses that are 2xx or have one of the statuses ``also``."""
    return sum(1 for r in responses if r is not None and (r.is_success or r.status in also))


def has_majority(responses: Sequence[BackendResponse | None], *also: int) -> bool:
    """Return True if more than half of the nodes responded with 2xx or one of the statuses ``also``."""
    return 2 * count_success(responses, *also) > len(responses)


def have_status(responses: Sequence[BackendResponse | None], status: int) -> bool:
    """Return True if there are responses and all nodes responded with this status."""
    return bool(responses) and all(r is not None and r.status == status for r in responses)


class DirectClient:
    """Sends requests to nodes for one daemon or server; ``name`` is that of its ``User-Agent``."""

    def __init__(
        self, transport: Transport, name: str, timeouts: Timeouts, *, on_no_response: OnNoResponse = _ignore
    ):
        self._transport = transport
        self._timeouts = timeouts
        self._on_no_response = on_no_response
        self.agent = f"{name} {os.getpid()}"

    def request_entity(
        self, node: Node, part: int, method: str, path: EntityPath, headers: HeaderMap, query: str = ""
    ) -> BackendResponse | None:
        """Request an entity over the replication network; report and return None without a response."""
        target = node_path(node.device, part, path.quoted)
        if query:
            target = f"{target}?{query}"
        sent = {"content-length": "0", "user-agent": self.agent, **headers}
        try:
            return self.request(replication_address(node), method, target, sent)
        except TransportError as error:
            self._on_no_response(node.replication_key, error)
            return None

    def request_all(
        self,
        nodes: Sequence[Node],
        part: int,
        method: str,
        path: EntityPath,
        headers: HeaderMap | Sequence[HeaderMap],
    ) -> list[BackendResponse | None]:
        """Request an entity of nodes at the same time, with the same headers or one set for each.

        The responses are in the order of the nodes, None of one without a response.
        """
        each = [headers] * len(nodes) if isinstance(headers, dict) else headers
        calls = [
            partial(self.request_entity, node, part, method, path, own)
            for node, own in zip(nodes, each, strict=True)
        ]
        return green.gather(calls)

    def request(
        self,
        node: Destination,
        method: str,
        path: str,
        headers: HeaderMap,
        body: bytes = b"",
        *,
        more_time_s: float = 0.0,
    ) -> BackendResponse:
        """Send a small request to a quoted path; raises ``TransportError``.

        The node has ``more_time_s`` longer than usual to respond.
        """
        timeouts = self._timeouts
        if more_time_s:
            timeouts = NodeTimeouts(timeouts.conn_timeout, timeouts.node_timeout + more_time_s)
        return self._transport.request(NodeRequest(node, method, path, headers, body, timeouts))

    def stream(
        self, node: Destination, method: str, path: str, headers: HeaderMap, pieces: Iterable[bytes]
    ) -> BackendResponse:
        """Like ``request``, with a body that is sent as it comes; ``headers`` have its length."""
        exchange = self._transport.stream(NodeRequest(node, method, path, headers, b"", self._timeouts))
        try:
            for piece in pieces:
                exchange.send(piece)
            return exchange.response().read()
        except BaseException:
            exchange.abort()
            raise

    def __repr__(self) -> str:
        return f"<DirectClient {self.agent}>"
