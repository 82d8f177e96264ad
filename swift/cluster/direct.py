"""The one way to ask one node, or every node of an entity, directly.

It knows the path of an entity at a node, quoting, timeouts and the agent. What a status means is the
caller's; ``Answers`` has the verdicts that most of them need. ``ask`` and its kind go over the replication
network and take a node without an answer as None; ``send`` and ``upload`` are for callers with a request of
their own kind, to whom the error matters. Unfit for whatever has to avoid failing nodes: that is
``cluster.fanout``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from swift import green
from swift.base.entity import EntityPath, quote_path
from swift.cluster.transport import Reply, Transport, TransportError
from swift.http.headers import HeaderMap
from swift.ring.device import Node

#: Told about a node that gave no answer.
Missed = Callable[[str, TransportError], None]


class Timeouts(Protocol):
    """How long a node is waited for, seconds; the settings of servers and daemons say it by these names."""

    @property
    def conn_timeout(self) -> float:
        """For it to take a connection."""

    @property
    def node_timeout(self) -> float:
        """For each piece of its answer."""


class NodeTimeouts(NamedTuple):
    """``Timeouts`` of those that have no settings."""

    conn_timeout: float
    node_timeout: float


def node_path(device: str, part: int | str, below: str) -> str:
    """The quoted path of something at a node; ``below`` is quoted already, and begins with a slash."""
    return f"/{quote_path(device)}/{quote_path(str(part))}{below}"


def missed_by(say: Callable[[str], None]) -> Missed:
    """Says which node gave no answer, and why, e.g. to a level of a log."""

    def missed(node: str, error: TransportError) -> None:
        say(f"{node}: {error}")

    return missed


def _tell_nobody(_who: str, _error: TransportError) -> None:
    return


@dataclass(frozen=True)
class Answers:
    """What nodes said, in the order in which they were named; None of one that gave no answer."""

    replies: tuple[Reply | None, ...]

    @property
    def statuses(self) -> list[int | None]:
        """The status of each, None of one that gave no answer."""
        return [None if reply is None else reply.status for reply in self.replies]

    def count(self, *also: int) -> int:
        """How many succeeded, or gave one of the statuses ``also``."""
        return sum(1 for r in self.replies if r is not None and (r.is_success or r.status in also))

    def has_majority(self, *also: int) -> bool:
        """Whether more than half succeeded, or gave one of the statuses ``also``."""
        return 2 * self.count(*also) > len(self.replies)

    def are_all(self, status: int) -> bool:
        """Whether every node gave this one status; there is at least one."""
        return bool(self.replies) and all(r is not None and r.status == status for r in self.replies)


class DirectClient:
    """Asks nodes for one daemon or server; ``name`` is that of its ``User-Agent``."""

    def __init__(self, transport: Transport, name: str, timeouts: Timeouts, *, missed: Missed = _tell_nobody):
        self._transport = transport
        self._timeouts = timeouts
        self._missed = missed
        self.agent = f"{name} {os.getpid()}"

    def ask(
        self, node: Node, part: int, method: str, path: EntityPath, headers: HeaderMap, query: str = ""
    ) -> Reply | None:
        """A node's answer, whatever its status; None, and ``missed`` is told, when there was none."""
        address = node.replication_ip, node.replication_port
        return self.ask_address(
            address, node.device, str(part), method, path, headers, query=query, who=node.replication_key
        )

    def ask_address(
        self,
        address: tuple[str, int],
        device: str,
        part: str,
        method: str,
        path: EntityPath,
        headers: HeaderMap,
        *,
        query: str = "",
        who: str = "",
    ) -> Reply | None:
        """Like ``ask``, of a node that a request names by its address; ``missed`` is told ``who``."""
        target = node_path(device, part, path.quoted)
        if query:
            target = f"{target}?{query}"
        try:
            sent = {"content-length": "0", "user-agent": self.agent, **headers}
            return self.send(address, method, target, sent)
        except TransportError as error:
            self._missed(who or f"{address[0]}:{address[1]}/{device}", error)
            return None

    def ask_all(
        self,
        nodes: Sequence[Node],
        part: int,
        method: str,
        path: EntityPath,
        headers: HeaderMap | Sequence[HeaderMap],
    ) -> Answers:
        """Ask nodes at the same time; ``headers`` are the same for all, or one for each."""
        each = [headers] * len(nodes) if isinstance(headers, dict) else headers
        calls = [
            partial(self.ask, node, part, method, path, own) for node, own in zip(nodes, each, strict=True)
        ]
        return Answers(tuple(green.gather(calls)))

    def send(
        self,
        address: tuple[str, int],
        method: str,
        target: str,
        headers: HeaderMap,
        body: bytes = b"",
        *,
        more_time_s: float = 0.0,
    ) -> Reply:
        """A small request as it is, to a quoted path; any status is an answer. Raises ``TransportError``.

        ``more_time_s`` is how much longer than usual the node may think about it.
        """
        return self._transport.request(
            *address,
            method,
            target,
            headers,
            body,
            connect_timeout_s=self._timeouts.conn_timeout,
            timeout_s=self._timeouts.node_timeout + more_time_s,
        )

    def upload(
        self,
        address: tuple[str, int],
        method: str,
        target: str,
        headers: HeaderMap,
        pieces: Iterable[bytes],
    ) -> Reply:
        """Like ``send``, with a body that is sent as it comes; ``headers`` say how long it is."""
        exchange = self._transport.open(
            *address,
            method,
            target,
            headers,
            connect_timeout_s=self._timeouts.conn_timeout,
            timeout_s=self._timeouts.node_timeout,
        )
        try:
            for piece in pieces:
                exchange.send(piece)
            return exchange.reply().whole()
        except BaseException:
            exchange.abort()
            raise

    def __repr__(self) -> str:
        return f"<DirectClient {self.agent}>"
