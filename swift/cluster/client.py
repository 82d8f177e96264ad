"""HTTP to backend nodes over pooled keep-alive connections: the real ``Transport``.

A connection goes back to the pool only after a response was read to its exact end; otherwise it is closed.
``ConnectionPool`` decides without I/O which idle connection is used again: the most recently used one, which
is most likely alive and warm. A reused connection that turns out dead before a byte of the response came is
replaced once by a new one, because servers may close idle connections at any time.
"""

from __future__ import annotations

import errno
import math
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from swift import green
from swift.base.calls import T
from swift.cluster.hosts import resolve
from swift.cluster.transport import (
    BackendResponse,
    BrokenOff,
    MalformedResponse,
    NodeRequest,
    TimedOut,
    Timeouts,
    TransportError,
)
from swift.http.body import BadFraming, InMemoryBody, ResponseBody
from swift.http.headers import HeaderMap
from swift.telemetry.metrics import CounterMetric, Registry
from swift.wire.chunked import LAST_CHUNK, ChunkDecoder, chunk_head, last_chunk
from swift.wire.http1 import BadHead, ResponseHead, parse_response_head, request_head

_OPENED = CounterMetric("swift_client_connections_total", "Connections opened to nodes.")
_ERRORS = CounterMetric("swift_client_errors_total", "Exchanges with nodes that failed.")

Address = tuple[str, int]


class IdleConnection(Protocol):
    """The attributes of a connection that the pool uses."""

    address: Address
    idle_since: float


C = TypeVar("C", bound=IdleConnection)


class ConnectionPool(Generic[C]):
    """Idle connections by address, bounded in number and age."""

    def __init__(self, *, per_address_max: int = 64, idle_max_s: float = 30.0):
        self.per_address_max = per_address_max
        self.idle_max_s = idle_max_s
        self._idle: dict[Address, list[C]] = {}

    def get(self, address: Address, now: float) -> tuple[C | None, list[C]]:
        """Return the newest idle connection to ``address`` (or None), and the expired ones, to be closed."""
        stack = self._idle.get(address)
        if not stack:
            return None, []
        newest = stack[-1]
        if now - newest.idle_since > self.idle_max_s:
            self._idle[address] = []
            return None, stack
        return stack.pop(), []

    def put(self, connection: C, now: float) -> C | None:
        """Keep a connection; return one to close when the address has enough."""
        connection.idle_since = now
        stack = self._idle.setdefault(connection.address, [])
        stack.append(connection)
        return stack.pop(0) if len(stack) > self.per_address_max else None

    def clear(self) -> list[C]:
        """Drop all connections, e.g. after a fork; return those to close."""
        everything = [c for stack in self._idle.values() for c in stack]
        self._idle.clear()
        return everything

    def __len__(self) -> int:
        return sum(len(stack) for stack in self._idle.values())

    def __repr__(self) -> str:
        return f"<ConnectionPool {len(self)} idle to {len(self._idle)} addresses>"


RECV_BYTES = 65536
#: BackendResponse bodies up to this size are read together with the head and held in memory.
WHOLE_BYTES_MAX = 65536
#: The number of 1xx responses before a final one.
INTERIM_MAX = 16
#: Pause between two tries to reach the only server of a ring.
RESTART_PAUSE_S = 0.05
#: A pooled connection must have been idle this long before it is checked with the kernel.
PEEK_AFTER_S = 1.0


class _Connection:
    """One connection to a node."""

    __slots__ = ("sock", "fd", "address", "idle_since", "buffer", "reused")

    def __init__(self, sock: socket.socket, address: tuple[str, int]):
        self.sock = sock
        self.fd = sock.fileno()
        self.address = address
        self.idle_since = 0.0
        self.buffer = b""
        self.reused = False

    def is_closed_by_peer(self) -> bool:
        """Return True if the server has closed the connection, or sent bytes without a request."""
        try:
            # An ``SSLSocket`` refuses to peek.
            socket.socket.recv(self.sock, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def send_all(self, data: bytes | memoryview, deadline: float) -> None:
        """Send everything or raise OSError / ``DeadlineExceeded``."""
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            return
        rest = memoryview(data)[sent:]
        while rest:
            green.wait_writable(self.fd, deadline)
            try:
                rest = rest[self.sock.send(rest) :]
            except BlockingIOError:
                continue

    def send_parts(self, parts: Sequence[bytes | memoryview], deadline: float) -> None:
        """Like ``send_all`` for several pieces in a row, without copying them together."""
        try:
            sent = self.sock.sendmsg(parts)
        except BlockingIOError:
            sent = 0
        for part in parts:
            if sent >= len(part):
                sent -= len(part)
            else:
                self.send_all(memoryview(part)[sent:], deadline)
                sent = 0

    def wait_readable(self, deadline: float) -> None:
        """Wait until there is something to read; raises ``DeadlineExceeded``."""
        green.wait_readable(self.fd, deadline)

    def recv(self, deadline: float) -> bytes:
        """Return some bytes, empty at the end; raises OSError / ``DeadlineExceeded``."""
        while True:
            try:
                return self.sock.recv(RECV_BYTES)
            except BlockingIOError:
                green.wait_readable(self.fd, deadline)

    def recv_into(self, buffer: memoryview, deadline: float) -> int:
        """Like ``recv`` into a buffer."""
        while True:
            try:
                return self.sock.recv_into(buffer)
            except BlockingIOError:
                green.wait_readable(self.fd, deadline)

    def splice(self, pipe: int, size: int, deadline: float) -> int:
        """Like ``recv_into`` into an empty pipe."""
        while True:
            try:
                return os.splice(self.fd, pipe, size, flags=os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE)
            except BlockingIOError:
                green.wait_readable(self.fd, deadline)

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


class _TLSConnection(_Connection):
    """An encrypted connection; the handshake is done."""

    __slots__ = ()
    sock: ssl.SSLSocket

    def _retry(self, call: Callable[[], T], deadline: float) -> T:
        """Repeat a call until the encryption needs nothing more; raises OSError and ``DeadlineExceeded``."""
        while True:
            try:
                return call()
            except ssl.SSLWantReadError:
                green.wait_readable(self.fd, deadline)
            except ssl.SSLWantWriteError:
                green.wait_writable(self.fd, deadline)

    def send_all(self, data: bytes | memoryview, deadline: float) -> None:
        """See ``_Connection``."""
        rest = memoryview(data)
        while rest:
            piece = rest[:RECV_BYTES]
            rest = rest[self._retry(partial(self.sock.send, piece), deadline) :]

    def send_parts(self, parts: Sequence[bytes | memoryview], deadline: float) -> None:
        """See ``_Connection``."""
        self.send_all(b"".join(parts), deadline)

    def wait_readable(self, deadline: float) -> None:
        """See ``_Connection``; decrypted bytes may wait in memory, which the descriptor does not show."""

    def recv(self, deadline: float) -> bytes:
        """See ``_Connection``."""
        try:
            return self._retry(partial(self.sock.recv, RECV_BYTES), deadline)
        except ssl.SSLZeroReturnError:
            return b""

    def recv_into(self, buffer: memoryview, deadline: float) -> int:
        """See ``_Connection``."""
        data = self._retry(partial(self.sock.recv, len(buffer)), deadline)
        buffer[: len(data)] = data
        return len(data)

    def splice(self, pipe: int, size: int, deadline: float) -> int:
        """Refuse, because encrypted bytes cannot be spliced."""
        raise OSError(errno.EINVAL, "splice of an encrypted connection")


def _make_connection(sock: socket.socket, address: tuple[str, int]) -> _Connection:
    return _TLSConnection(sock, address) if isinstance(sock, ssl.SSLSocket) else _Connection(sock, address)


class HttpTransport:
    """Pooled connections to any number of nodes, for one process; encrypted if there is a ``tls`` context."""

    def __init__(
        self,
        metrics: Registry,
        *,
        per_address_max: int = 64,
        idle_max_s: float = 30.0,
        tls: ssl.SSLContext | None = None,
        is_only_server: Callable[[str, int], bool] = lambda _ip, _port: False,
    ):
        """``is_only_server`` tells if no other server could respond in the place of this one.

        Such a server is waited for while it restarts: until it has refused for ``node_timeout``, whichever
        requests waited. After that it is down, and all are refused at once.
        """
        self._tls = tls
        self._is_only_server = is_only_server
        #: Address of an only server that refuses → when it began to, and when it did last.
        self._refusals: dict[tuple[str, int], tuple[float, float]] = {}
        self._pool: ConnectionPool[_Connection] = ConnectionPool(
            per_address_max=per_address_max, idle_max_s=idle_max_s
        )
        self._pid = os.getpid()
        self._opened = _OPENED.of(metrics)
        self._errors = _ERRORS.of(metrics)

    # connections

    def _get_connection(self, address: tuple[str, int], timeouts: Timeouts) -> _Connection:
        if self._pid != os.getpid():
            self._pool.clear()
            self._pid = os.getpid()
        now = time.monotonic()
        while True:
            connection, stale = self._pool.get(address, now)
            for old in stale:
                old.close()
            if connection is None:
                return self._connect(address, timeouts)
            if now - connection.idle_since < PEEK_AFTER_S or not connection.is_closed_by_peer():
                connection.reused = True
                return connection
            connection.close()

    def _connect(self, address: tuple[str, int], timeouts: Timeouts) -> _Connection:
        ip, port = address
        try:
            sock = self._connected_socket(ip, port, timeouts)
            if self._tls is not None:
                sock = start_tls(sock, ip, timeouts.conn_timeout, self._tls)
        except OSError as error:
            self._errors.inc()
            raise TransportError(f"cannot connect to {ip}:{port}: {error}")
        except green.DeadlineExceeded:
            self._errors.inc()
            raise TimedOut(f"cannot connect to {ip}:{port}: timeout")
        self._opened.inc()
        return _make_connection(sock, address)

    def _connected_socket(self, ip: str, port: int, timeouts: Timeouts) -> socket.socket:
        while True:
            now_s = time.monotonic()
            try:
                sock = green.connect(resolve(ip, port), port, now_s + timeouts.conn_timeout)
            except ConnectionRefusedError:
                if not self._is_only_server(ip, port) or self._is_down(
                    (ip, port), now_s, timeouts.node_timeout
                ):
                    raise
            else:
                self._refusals.pop((ip, port), None)
                return sock
            green.sleep(RESTART_PAUSE_S)

    def _is_down(self, address: tuple[str, int], now_s: float, limit_s: float) -> bool:
        """Note a refusal; return True if the server has refused for so long that it does not just restart."""
        first_s, last_s = self._refusals.get(address, (now_s, now_s))
        if now_s - last_s > limit_s:
            # There was no request in between: it may have run.
            first_s = now_s
        self._refusals[address] = first_s, now_s
        return now_s - first_s >= limit_s - RESTART_PAUSE_S

    def _return_connection(self, connection: _Connection) -> None:
        if connection.buffer:
            connection.close()
            return
        extra = self._pool.put(connection, time.monotonic())
        if extra is not None:
            extra.close()

    # the Transport interface

    def request(self, request: NodeRequest) -> BackendResponse:
        """See ``Transport.request``."""
        headers = {**request.headers, "content-length": str(len(request.body))}
        return self._begin(request, headers).response().read()

    def stream(self, request: NodeRequest) -> HttpExchange:
        """See ``Transport.stream``; ``body`` is sent in the same write as the head."""
        return self._begin(request, request.headers)

    def _begin(self, request: NodeRequest, headers: HeaderMap) -> HttpExchange:
        node, body = request.node, request.body
        ip, port = node.ip, node.port
        host = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
        if body and "transfer-encoding" in headers:
            body = b"%b%b\r\n%b" % (chunk_head(len(body)), body, LAST_CHUNK)
        head = request_head(request.method, request.path, host, headers)
        connection = self._get_connection((ip, port), request.timeouts)
        exchange = HttpExchange(self, connection, request, head, body)
        exchange.begin()
        return exchange

    def stream_on_socket(self, sock: socket.socket, request: NodeRequest, host: str) -> HttpExchange:
        """Send a request on a connected non-blocking socket, plain or encrypted, that is not pooled.

        Errors name the request's node; the ``Host`` header is ``host``.
        """
        address = (request.node.ip, request.node.port)
        connection = _make_connection(sock, address)
        head = request_head(request.method, request.path, host, request.headers)
        exchange = HttpExchange(self, connection, request, head, request.body)
        exchange.begin()
        return exchange


class HttpExchange:
    """One request and its response on a pooled connection (``cluster.transport.Exchange``)."""

    __slots__ = (
        "_transport",
        "_connection",
        "_request",
        "_head",
        "_body",
        "_timeout_s",
        "chunked",
        "replayable",
        "continue_headers",
        "_final",
        "_deadline",
        "_has_begun",
    )

    def __init__(
        self,
        transport: HttpTransport,
        connection: _Connection,
        request: NodeRequest,
        head: bytes,
        body: bytes,
    ):
        """Take the ``head`` and ``body`` that are sent first."""
        self._transport = transport
        self._connection: _Connection | None = connection
        self._request = request
        self._head = head
        self._body = body
        self._timeout_s = request.timeouts.node_timeout
        self.chunked = "transfer-encoding" in request.headers
        #: Nothing but head and small body was sent and nothing came back, so they can be sent again.
        self.replayable = True
        self.continue_headers: HeaderMap = {}
        self._final: BackendResponse | None = None
        #: The deadline of the response that is awaited; None: it is not awaited yet.
        self._deadline: float | None = None
        #: There are bytes to read.
        self._has_begun = False

    def begin(self) -> None:
        """Send the head (and the small body that came with it)."""
        try:
            self._send_head()
        except TransportError:
            connection = self._connection
            if connection is None or not connection.reused:
                raise
            self._reconnect()

    def _reconnect(self) -> None:
        """Send the request again on a new connection, because the reused one was dead."""
        assert self._connection is not None
        address = self._connection.address
        self._connection.close()
        self._connection = self._transport._connect(address, self._request.timeouts)
        self._send_head()

    def _send_head(self) -> None:
        if self._body:
            self._send_parts((self._head, self._body))
        else:
            self._send(self._head)

    def _send(self, data: bytes | memoryview) -> None:
        connection = self._live_connection()
        try:
            connection.send_all(data, time.monotonic() + self._timeout_s)
        except (OSError, green.DeadlineExceeded) as error:
            raise self._failure("sending", error)

    def _send_parts(self, parts: Sequence[bytes | memoryview]) -> None:
        connection = self._live_connection()
        try:
            connection.send_parts(parts, time.monotonic() + self._timeout_s)
        except (OSError, green.DeadlineExceeded) as error:
            raise self._failure("sending", error)

    def _live_connection(self) -> _Connection:
        if self._connection is None:
            raise TransportError("the exchange was aborted")
        return self._connection

    def _failure(self, doing: str, error: Exception) -> TransportError:
        self._transport._errors.inc()
        if self._connection is None:
            return TransportError("the exchange was aborted")
        ip, port = self._connection.address
        self._connection.close()
        what = f"{doing} {self._request.method} to {ip}:{port}"
        if isinstance(error, green.DeadlineExceeded):
            return TimedOut(f"{what}: timeout")
        return (MalformedResponse if isinstance(error, BadHead) else TransportError)(f"{what}: {error}")

    def send(self, data: bytes | memoryview) -> None:
        """Send body bytes; see ``Exchange.send``."""
        self.replayable = False
        if not self.chunked:
            self._send(data)
        elif data:
            self._send_parts((chunk_head(len(data)), data, b"\r\n"))

    def finish(self, trailers: HeaderMap | None = None) -> None:
        """End a chunked body; see ``Exchange.finish``."""
        self.replayable = False
        if self.chunked:
            self._send(last_chunk(trailers) if trailers else LAST_CHUNK)

    def wait_continue(self) -> BackendResponse | None:
        """See ``Exchange.wait_continue``."""
        head = self._read_head()
        self.replayable = False
        if head.status == 100:
            self.continue_headers = head.headers
            return None
        self._final = self._stream(head)
        return self._final

    def wait_response_start(self, within_s: float) -> bool:
        """See ``Exchange.wait_response_start``."""
        connection, now = self._connection, time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._timeout_s
        if connection is None or connection.buffer or self._has_begun:
            return True
        try:
            green.wait_readable(connection.fd, min(now + within_s, self._deadline))
        except green.DeadlineExceeded:
            return time.monotonic() >= self._deadline
        except OSError:
            return True
        self._has_begun = True
        return True

    def response(self) -> BackendResponse:
        """Return the final response; 1xx responses are skipped."""
        if self._final is not None:
            return self._final
        self._final = self._stream(self._read_final_head())
        return self._final

    def duplex(self, timeout_s: float) -> BackendResponse:
        """See ``Exchange.duplex``."""
        head = self._read_final_head()
        assert self._connection is not None
        self.replayable = False
        body = ConnectionBody(self._transport, self._connection, head, timeout_s, keep=False)
        return BackendResponse(head.status, head.headers, b"", head.reason, body)

    def abort(self) -> None:
        """Drop the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _read_final_head(self) -> ResponseHead:
        """Skip 1xx responses, which do not extend the time of the final one."""
        deadline = self._deadline or time.monotonic() + self._timeout_s
        for _ in range(INTERIM_MAX):
            self._deadline = deadline
            head = self._read_head()
            if not 100 <= head.status < 200:
                return head
        raise self._failure("response to", BadHead(502, "too many 1xx responses"))

    def _read_head(self) -> ResponseHead:
        connection = self._connection
        if connection is None:
            raise TransportError("the exchange was aborted")
        data = connection.buffer
        deadline, self._deadline = self._deadline or time.monotonic() + self._timeout_s, None
        has_begun, self._has_begun = self._has_begun, False
        try:
            if not data and not has_begun:
                # A node cannot have responded before the event loop ran once.
                connection.wait_readable(deadline)
            while (end := data.find(b"\r\n\r\n")) < 0:
                more = connection.recv(deadline)
                if not more:
                    raise ConnectionResetError("closed before a response")
                data = data + more if data else more
                if len(data) > 1 << 20:
                    raise BadHead(502, "response head too long")
            connection.buffer = data[end + 4 :]
            return parse_response_head(data[: end + 4], self._request.method)
        except (OSError, green.DeadlineExceeded, BadHead) as error:
            if isinstance(error, OSError) and not data and connection.reused and self.replayable:
                self._reconnect()
                return self._read_head()
            raise self._failure("response to", error)

    def _stream(self, head: ResponseHead) -> BackendResponse:
        connection = self._connection
        assert connection is not None
        self._connection = None
        length = head.length
        body: InMemoryBody | ConnectionBody
        if length is not None and length == len(connection.buffer) and head.keep_alive:
            # All of it came with the head.
            body, connection.buffer = InMemoryBody(connection.buffer), b""
            self._transport._return_connection(connection)
        else:
            body = ConnectionBody(self._transport, connection, head, self._timeout_s)
            if length is not None and length <= WHOLE_BYTES_MAX:
                body = InMemoryBody(body.read_all(self._timeout_s))
        return BackendResponse(head.status, head.headers, b"", head.reason, body)


class ConnectionBody(ResponseBody):
    """The body of a response, read from its connection as it comes."""

    __slots__ = (
        "length",
        "_transport",
        "_connection",
        "_left",
        "_decoder",
        "_keeps_alive",
        "_timeout_s",
        "_ready",
    )

    def __init__(
        self,
        transport: HttpTransport,
        connection: _Connection,
        head: ResponseHead,
        timeout_s: float,
        *,
        keep: bool = True,
    ):
        """Without ``keep`` the connection is closed at the end in any case."""
        self.length = head.length
        self._transport = transport
        self._connection: _Connection | None = connection
        self._left = head.length
        self._decoder = ChunkDecoder() if head.chunked else None
        self._keeps_alive = keep and head.keep_alive
        self._timeout_s = timeout_s
        self._ready: list[bytes] = []

    def read_all(self, within_s: float = math.inf) -> bytes:
        """Return everything; raises ``TransportError``, also when bytes still come after ``within_s``."""
        if self.length == 0:
            self._release()
            return b""
        deadline = time.monotonic() + within_s
        pieces = []
        for piece in self:
            pieces.append(piece)
            self._check_time(deadline)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _check_time(self, deadline: float) -> None:
        """Close the body and raise ``BrokenOff`` if it has not ended by ``deadline``, monotonic seconds."""
        connection = self._connection
        if connection is not None and time.monotonic() > deadline:
            self.close()
            raise BrokenOff(f"body from {connection.address[0]}:{connection.address[1]} takes too long")

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, empty at the end; raises ``TransportError``."""
        connection = self._connection
        if connection is None:
            return b""
        try:
            if self._decoder is not None:
                return self._read_chunked(connection, size)
            return self._read_plain(connection, size)
        except (OSError, green.DeadlineExceeded, BadFraming) as error:
            self.close()
            reason = "timeout" if isinstance(error, green.DeadlineExceeded) else str(error)
            raise BrokenOff(f"body from {connection.address[0]}:{connection.address[1]} broke off: {reason}")

    def _read_plain(self, connection: _Connection, size: int) -> bytes:
        want = size if self._left is None else min(size, self._left)
        data = connection.buffer
        if data:
            connection.buffer = data[want:]
            data = data[:want]
        else:
            data = connection.recv(time.monotonic() + self._timeout_s)
            if len(data) > want:
                connection.buffer = data[want:]
                data = data[:want]
        self._count(len(data))
        return data

    def _count(self, size: int) -> None:
        if self._left is None:
            if not size:
                self.close()
            return
        if not size:
            raise ConnectionResetError(f"{self._left} bytes missing")
        self._left -= size
        if not self._left:
            self._release()

    def _read_chunked(self, connection: _Connection, size: int) -> bytes:
        decoder = self._decoder
        assert decoder is not None
        while not self._ready and not decoder.finished:
            data, connection.buffer = (
                connection.buffer or connection.recv(time.monotonic() + self._timeout_s),
                b"",
            )
            if not data:
                raise ConnectionResetError("closed inside a chunked body")
            pieces, used = decoder.feed(data)
            self._ready = [b"".join(pieces)] if len(pieces) > 1 else pieces
            connection.buffer = data[used:]
        if not self._ready:
            self._release()
            return b""
        piece = self._ready.pop(0)
        if len(piece) > size:
            self._ready.insert(0, piece[size:])
            piece = piece[:size]
        return piece

    def read_into(self, buffer: memoryview) -> int:
        """Fill a buffer with what is there; 0 at the end; raises ``TransportError``."""
        connection = self._connection
        if connection is None or connection.buffer or self._decoder or self._left is None:
            data = self.read(len(buffer))
            buffer[: len(data)] = data
            return len(data)
        try:
            size = connection.recv_into(buffer[: self._left], time.monotonic() + self._timeout_s)
            self._count(size)
            return size
        except (OSError, green.DeadlineExceeded) as error:
            self.close()
            raise BrokenOff(f"body from {connection.address[0]}:{connection.address[1]} broke off: {error}")

    def splice_into(self, pipe: int, size: int) -> int:
        """See ``ResponseBody``; raises ``TransportError``."""
        connection, left = self._connection, self._left
        if connection is None or connection.buffer or self._decoder or not left:
            return 0
        try:
            moved = connection.splice(pipe, min(size, left), time.monotonic() + self._timeout_s)
            self._count(moved)
            return moved
        except (OSError, green.DeadlineExceeded) as error:
            self.close()
            raise BrokenOff(f"body from {connection.address[0]}:{connection.address[1]} broke off: {error}")

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read(RECV_BYTES):
            yield piece

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._keeps_alive:
            self._transport._return_connection(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Drop the connection unless the body was read to its end."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def start_tls(
    sock: socket.socket, host: str, timeout_s: float, context: ssl.SSLContext | None
) -> ssl.SSLSocket:
    """Return the socket after the TLS handshake; closes it on an error, an OSError."""
    try:
        chosen = context or ssl.create_default_context()
        tls = chosen.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        sock = tls
        green.handshake(tls, time.monotonic() + timeout_s)
        return tls
    except green.DeadlineExceeded:
        sock.close()
        raise TimeoutError("the TLS handshake timed out")
    except BaseException:
        sock.close()
        raise


def make_transport(
    metrics: Registry, is_only_server: Callable[[str, int], bool] = lambda _ip, _port: False
) -> HttpTransport:
    """Return the transport of a process, with counters in ``metrics``; see ``HttpTransport``."""
    return HttpTransport(metrics, is_only_server=is_only_server)
