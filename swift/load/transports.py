"""Transports of the load's requests: the servers' own pooled connections, or TLS."""

from __future__ import annotations

import http.client
import ssl
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from swift.cluster.client import HttpTransport
from swift.cluster.transport import (
    BrokenOff,
    Exchange,
    Reply,
    StreamReply,
    TimedOut,
    Transport,
    TransportError,
)
from swift.green import ThreadPool
from swift.http.body import WholeBody
from swift.http.headers import HeaderMap
from swift.load.endpoint import LoadEndpoint, tls_context
from swift.telemetry.metrics import Registry

T = TypeVar("T")
#: As many connections may be idle as a process has clients.
CONNECTIONS = 4096
THREADS = 64


def transport_for(endpoint: LoadEndpoint) -> Transport:
    """The transport of an endpoint's scheme."""
    if endpoint.is_tls:
        return TlsTransport(tls_context(endpoint.cacert))
    return HttpTransport(Registry(), per_address_max=CONNECTIONS)


class TlsTransport:
    """``Transport`` over https: every exchange in a thread, answers in memory.

    Dearer than plain connections (a thread's switch and Python's own HTTP client); the cost of the load is
    printed with every run.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._threads = ThreadPool(THREADS, "tls")
        self._idle: defaultdict[tuple[str, int], list[http.client.HTTPSConnection]] = defaultdict(list)

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
        """See ``Transport``."""
        exchange = self.open(
            ip, port, method, path, headers, body, connect_timeout_s=connect_timeout_s, timeout_s=timeout_s
        )
        return exchange.reply().whole()

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
        """See ``Transport``."""
        connection = (
            idle.pop()
            if (idle := self._idle[ip, port])
            else http.client.HTTPSConnection(ip, port, timeout=timeout_s, context=self._context)
        )
        exchange = TlsExchange(self, connection)
        exchange.call(lambda: _begin(connection, method, path, headers, body))
        return exchange

    def call(self, function: Callable[[], T]) -> T:
        """In a thread; failures as ``TransportError``."""
        try:
            found: T = self._threads.call(function)
            return found
        except TimeoutError as error:
            raise TimedOut(str(error))
        except (OSError, http.client.HTTPException) as error:
            raise BrokenOff(str(error) or type(error).__name__)

    def give_back(self, connection: http.client.HTTPSConnection) -> None:
        """A connection that can be used again."""
        self._idle[connection.host, connection.port].append(connection)


def _begin(
    connection: http.client.HTTPSConnection, method: str, path: str, headers: HeaderMap, body: bytes
) -> None:
    connection.putrequest(method, path, skip_host="host" in headers, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(body or None)


class TlsExchange:
    """``Exchange`` over https."""

    def __init__(self, transport: TlsTransport, connection: http.client.HTTPSConnection):
        self._transport = transport
        self._connection = connection
        self.continue_headers: HeaderMap = {}

    def call(self, function: Callable[[], T]) -> T:
        """In a thread; a connection that failed is not used again."""
        try:
            return self._transport.call(function)
        except TransportError:
            self._connection.close()
            raise

    def send(self, data: bytes | memoryview) -> None:
        """See ``Exchange``."""
        self.call(lambda: self._connection.send(data))

    def finish(self, trailers: HeaderMap | None = None) -> None:
        """See ``Exchange``; bodies of a load are counted."""

    def wait_continue(self) -> StreamReply | None:
        """See ``Exchange``; a load asks for none."""
        return None

    def begins(self, within_s: float) -> bool:
        """See ``Exchange``; a load has nobody else to ask."""
        return True

    def reply(self) -> StreamReply:
        """See ``Exchange``."""
        answer, body = self.call(self._read)
        headers = {name.lower(): value for name, value in answer.getheaders()}
        if not answer.will_close:
            self._transport.give_back(self._connection)
        return StreamReply(answer.status, headers, WholeBody(body), answer.reason)

    def _read(self) -> tuple[http.client.HTTPResponse, bytes]:
        answer = self._connection.getresponse()
        return answer, answer.read()

    def converse(self, timeout_s: float) -> StreamReply:
        """See ``Exchange``; a load sends all before it reads."""
        raise TransportError("an answer beside the request's body is not had over TLS")

    def abort(self) -> None:
        """See ``Exchange``."""
        self._connection.close()
