"""The Transport seam: requests from one server to another, and their responses, as values.

Everything that sends a request to a node takes a ``Transport``; the real one is ``cluster.exchange``
(pooled keep-alive connections), a simulation passes one that calls services in memory. A ``NodeRequest`` is
responded to by a ``BackendResponse``; errors are ``TransportError`` only, and their meaning (next node, error
limiting) is up to the caller. There is one verb for each kind of sending: ``request`` for a complete body and
response, ``request_all`` for many nodes at once, ``stream`` for bodies that are sent and read as they come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from swift.base.entity import quote_path
from swift.base.errors import SwiftError
from swift.http.body import BodyError, InMemoryBody, ResponseBody
from swift.http.headers import HeaderMap
from swift.ring.device import Device, Node


class TransportError(SwiftError):
    """A node gave no complete response: connecting, sending or reading failed or timed out."""


class TimedOut(TransportError):
    """A node timed out; another request to it may time out too."""


class MalformedResponse(TransportError):
    """A response that is not HTTP. It proves nothing about the node's health."""


class BrokenOff(TransportError, BodyError):
    """A response's body broke off; code that only relays bodies sees a ``BodyError``."""


class Timeouts(Protocol):
    """The longest waits for a node, seconds; the settings of servers and daemons have these names."""

    @property
    def conn_timeout(self) -> float:
        """The longest wait for a connection."""

    @property
    def node_timeout(self) -> float:
        """The longest wait for each part of a response."""


class NodeTimeouts(NamedTuple):
    """``Timeouts`` of callers without settings."""

    conn_timeout: float
    node_timeout: float


class Destination(Protocol):
    """The network address of a node; a ``Device`` is one, on the network of clients."""

    @property
    def ip(self) -> str:
        """An address or a host name."""

    @property
    def port(self) -> int:
        """The port of the server."""

    @property
    def key(self) -> str:
        """``ip:port/device``, by which node health is recorded."""


class NodeAddress(NamedTuple):
    """A ``Destination`` by its address."""

    ip: str
    port: int
    key: str = ""


def replication_address(node: Device) -> NodeAddress:
    """Return a device's address on the replication network."""
    return NodeAddress(node.replication_ip, node.replication_port, node.key)


def node_path(device: str, part: int | str, below: str) -> str:
    """Return the quoted path of an entity at a node; ``below`` is quoted and begins with a slash."""
    return f"/{quote_path(device)}/{quote_path(str(part))}{below}"


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A request to one node."""

    node: Destination
    method: str
    #: Quoted, with the query if there is one.
    path: str
    #: With ``content-length`` the body is counted, with ``transfer-encoding: chunked`` it is framed.
    headers: HeaderMap
    #: The complete body, or what is sent of it together with the head.
    body: bytes
    timeouts: Timeouts

    @classmethod
    def with_length(
        cls,
        node: Destination,
        method: str,
        path: str,
        headers: HeaderMap,
        body: bytes,
        timeouts: Timeouts,
    ) -> NodeRequest:
        """Return a request with the length of its complete body as a header."""
        return cls(node, method, path, {**headers, "content-length": str(len(body))}, body, timeouts)


#: The stream of a response that was read completely.
_ENDED = InMemoryBody(b"")


@dataclass(slots=True)
class BackendResponse:
    """A node's response: head, and a complete body or a stream."""

    status: int
    headers: HeaderMap = field(default_factory=dict)
    #: The complete body; empty until ``read`` where ``stream`` has it.
    body: bytes = b""
    reason: str = ""
    #: The body as it arrives. Reading raises ``BrokenOff``. Closed after its end it gives its connection
    #: back; closed before, it drops the connection.
    stream: ResponseBody = _ENDED
    #: The node that responded, where a caller sends to several.
    node: Node | None = None
    #: The headers of the attempt that this responds to, the very object.
    attempt: HeaderMap | None = None

    @property
    def is_success(self) -> bool:
        """Return True for 2xx."""
        return 200 <= self.status <= 299

    def read(self) -> BackendResponse:
        """Read the stream into ``body``, which leaves the connection usable; raises ``BrokenOff``."""
        if self.stream is not _ENDED:
            self.body, self.stream = self.stream.read_all(), _ENDED
        return self


class Exchange(Protocol):
    """A request whose body is sent in pieces, and its response."""

    def send(self, data: bytes | memoryview) -> None:
        """Send body bytes (framed when the request is chunked)."""

    def finish(self, trailers: HeaderMap | None = None) -> None:
        """End a chunked body, with trailers for a server that reads them; nothing for a counted one."""

    def wait_continue(self) -> BackendResponse | None:
        """Wait for ``100 Continue``; return None, or the final response that came instead.

        The headers of the last 100 are in ``continue_headers``.
        """

    @property
    def continue_headers(self) -> HeaderMap:
        """The headers of the last ``100 Continue``."""

    def wait_response_start(self, within_s: float) -> bool:
        """Wait for the beginning of a response; return False when it does not come in that time.

        The next wait then continues; all waits together take as long as one would. Errors are raised by the
        wait for the response itself.
        """

    def response(self) -> BackendResponse:
        """Return the final response, its body as a stream."""

    def duplex(self, timeout_s: float) -> BackendResponse:
        """Return the response's head before the request's body has ended; both bodies go on side by side.

        Every wait for more of the response takes ``timeout_s`` at most. The connection serves nothing else
        afterwards: ``abort`` ends it, and the stream is not read any more then.
        """

    def abort(self) -> None:
        """Drop the connection."""


class Transport(Protocol):
    """Sends requests to nodes."""

    def request(self, request: NodeRequest) -> BackendResponse:
        """Send a request with a complete body and read the whole response; raises ``TransportError``."""

    def stream(self, request: NodeRequest) -> Exchange:
        """Connect and send the head with what there is of the body; raises ``TransportError``.

        A complete ``body`` is sent with the head and allows a second try when a pooled connection is dead.
        For a chunked request a given ``body`` is complete: its end is sent too.
        """
