"""The Transport seam: how one server talks to another.

Everything that sends a request to a node takes a ``Transport``; the real one is ``cluster.client``
(pooled keep-alive connections), a simulation passes one that calls services in memory. Errors are
``TransportError`` only; deciding what an error means (next node, error limiting) is the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from swift.base.errors import SwiftError
from swift.http.body import BodyError, ResponseBody
from swift.http.headers import HeaderMap


class TransportError(SwiftError):
    """No complete answer came from a node: connecting, sending or reading failed or took too long."""


class TimedOut(TransportError):
    """A node did not go on in time: asking it again may cost as much."""


class MalformedAnswer(TransportError):
    """What a node answered is no HTTP. It says nothing of the node's health: the next request may do well."""


class BrokenOff(TransportError, BodyError):
    """An answer's body broke off; whoever only relays bodies sees a ``BodyError``."""


@dataclass(slots=True)
class Reply:
    """A complete small answer."""

    status: int
    headers: HeaderMap = field(default_factory=dict)
    body: bytes = b""
    reason: str = ""

    @property
    def is_success(self) -> bool:
        """2xx."""
        return 200 <= self.status <= 299


@dataclass(slots=True)
class StreamReply:
    """An answer whose body is read as it comes."""

    status: int
    headers: HeaderMap
    #: Reading it raises ``BrokenOff``. Closed after its end, it gives its connection back; else it drops it.
    body: ResponseBody
    reason: str = ""

    def whole(self) -> Reply:
        """The same, its body read to its end, which leaves the connection usable; raises ``BrokenOff``."""
        return Reply(self.status, self.headers, self.body.read_all(), self.reason)


class Exchange(Protocol):
    """A request whose body is sent in pieces, and its answer."""

    def send(self, data: bytes | memoryview) -> None:
        """Send body bytes (framed when the request is chunked)."""

    def finish(self, trailers: HeaderMap | None = None) -> None:
        """End a chunked body, with trailers for a server that reads them; nothing for a counted one."""

    def wait_continue(self) -> StreamReply | None:
        """Wait for ``100 Continue``; None when it came, or the final answer that came instead.

        The headers of the last 100 are in ``continue_headers``.
        """

    continue_headers: HeaderMap

    def begins(self, within_s: float) -> bool:
        """Wait for the beginning of an answer; False when it does not come in that time.

        Nothing is lost then: the next wait goes on, and all of them together take as long as one would.
        Errors are left to the wait for the answer itself.
        """

    def reply(self) -> StreamReply:
        """The final answer."""

    def converse(self, timeout_s: float) -> StreamReply:
        """The answer's head, before the request's body has ended; both bodies go on side by side.

        Every wait for more of the answer takes ``timeout_s`` at most. The connection serves nothing else
        afterwards: ``abort`` ends it, and the body is not read any more then.
        """

    def abort(self) -> None:
        """Drop the connection."""


class Transport(Protocol):
    """Sends requests to nodes by address."""

    def request(
        self,
        ip: str,
        port: int,
        method: str,
        path: str,
        headers: HeaderMap,
        body: bytes = b"",
        *,
        connect_timeout_s: float,
        timeout_s: float,
    ) -> Reply:
        """One small exchange, the answer body read completely.

        ``path`` is quoted and may carry a query. Raises ``TransportError``.
        """

    def open(
        self,
        ip: str,
        port: int,
        method: str,
        path: str,
        headers: HeaderMap,
        body: bytes = b"",
        *,
        connect_timeout_s: float,
        timeout_s: float,
    ) -> Exchange:
        """Connect, send the head and ``body``; ``timeout_s`` is for each later wait.

        A complete ``body`` given here travels with the head and allows a silent second try on a stale
        connection. With ``content-length`` in ``headers`` the body is counted, with
        ``transfer-encoding: chunked`` it is framed (what is given here is all of it: its end goes along),
        with neither there is none. Raises ``TransportError``.
        """
