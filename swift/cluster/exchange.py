"""HTTP to backend nodes over pooled keep-alive connections: the real ``Transport``.

A connection goes back to the pool only after a response was read to its exact end; otherwise it is closed. A
reused connection that turns out dead before a byte of the response came is replaced once by a new one,
because servers may close idle connections at any time.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterator

from swift import green
from swift.cluster.pool import RECV_BYTES, Connection, ConnectionPool, make_connection
from swift.cluster.serverauth import RefusedByServer, Signer, check_refusal
from swift.cluster.transport import (
    BackendResponse,
    BrokenOff,
    MalformedResponse,
    NodeRequest,
    TimedOut,
    TransportError,
)
from swift.http.body import BadFraming, InMemoryBody, ResponseBody
from swift.http.headers import HeaderMap
from swift.wire.chunked import LAST_CHUNK, ChunkDecoder, chunk_head, last_chunk
from swift.wire.http1 import BadHead, ResponseHead, parse_response_head, request_head

#: BackendResponse bodies up to this size are read together with the head and held in memory.
WHOLE_BYTES_MAX = 65536
#: The number of 1xx responses before a final one.
INTERIM_MAX = 16


class HttpExchange:
    """One request and its response on a pooled connection (``cluster.transport.Exchange``)."""

    __slots__ = (
        "_pool",
        "_connection",
        "_request",
        "_head",
        "_body",
        "_signer",
        "_text",
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
        pool: ConnectionPool,
        connection: Connection,
        request: NodeRequest,
        head: bytes,
        body: bytes,
        signer: Signer | None = None,
        text: bytes = b"",
    ):
        """Take the ``head`` and ``body`` that are sent first; each sending signs the ``text`` of the head."""
        self._pool = pool
        self._connection: Connection | None = connection
        self._request = request
        self._head = head
        self._body = body
        self._signer = signer
        self._text = text
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
        self._connection = self._pool.connect(address, self._request.timeouts)
        self._send_head()

    def _send_head(self) -> None:
        head = self._head
        if self._signer is not None and self._text:
            head = b"%b%b\r\n" % (head[:-2], self._signer.line(self._text))
        if self._body:
            self._send(head, self._body)
        else:
            self._send(head)

    def _send(self, *parts: bytes | memoryview) -> None:
        connection = self._connection
        if connection is None:
            raise TransportError("the exchange was aborted")
        deadline = time.monotonic() + self._timeout_s
        try:
            if len(parts) == 1:
                connection.send_all(parts[0], deadline)
            else:
                connection.send_parts(parts, deadline)
        except (OSError, green.DeadlineExceeded) as error:
            raise self._failure("sending", error)

    def _failure(self, doing: str, error: Exception) -> TransportError:
        self._pool.errors.inc()
        if self._connection is None:
            return TransportError("the exchange was aborted")
        ip, port = self._connection.address
        self._connection.close()
        what = f"{doing} {self._request.method} to {ip}:{port}"
        if isinstance(error, green.DeadlineExceeded):
            return TimedOut(f"{what}: timeout")
        if isinstance(error, RefusedByServer):
            return RefusedByServer(f"{what}: {error}")
        return (MalformedResponse if isinstance(error, BadHead) else TransportError)(f"{what}: {error}")

    def send(self, data: bytes | memoryview) -> None:
        self.replayable = False
        if not self.chunked:
            self._send(data)
        elif data:
            self._send(chunk_head(len(data)), data, b"\r\n")

    def finish(self, trailers: HeaderMap | None = None) -> None:
        self.replayable = False
        if self.chunked:
            self._send(last_chunk(trailers) if trailers else LAST_CHUNK)

    def wait_continue(self) -> BackendResponse | None:
        head = self._read_head()
        self.replayable = False
        if head.status == 100:
            self.continue_headers = head.headers
            return None
        self._final = self._stream(head)
        return self._final

    def wait_response_start(self, within_s: float) -> bool:
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
        head = self._read_final_head()
        assert self._connection is not None
        self.replayable = False
        body = ConnectionBody(self._pool, self._connection, head, timeout_s, keep=False)
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
            head = parse_response_head(data[: end + 4], self._request.method)
            if head.status == 403:
                check_refusal(head.status, head.headers)
            return head
        except (OSError, green.DeadlineExceeded, BadHead, RefusedByServer) as error:
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
            self._pool.put(connection)
        else:
            body = ConnectionBody(self._pool, connection, head, self._timeout_s)
            if length is not None and length <= WHOLE_BYTES_MAX:
                body = InMemoryBody(body.read_all(self._timeout_s))
        return BackendResponse(head.status, head.headers, b"", head.reason, body)


class ConnectionBody(ResponseBody):
    """The body of a response, read from its connection as it comes."""

    __slots__ = (
        "length",
        "_pool",
        "_connection",
        "_left",
        "_decoder",
        "_keeps_alive",
        "_timeout_s",
        "_ready",
    )

    def __init__(
        self,
        pool: ConnectionPool,
        connection: Connection,
        head: ResponseHead,
        timeout_s: float,
        *,
        keep: bool = True,
    ):
        """Without ``keep`` the connection is closed at the end in any case."""
        self.length = head.length
        self._pool = pool
        self._connection: Connection | None = connection
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

    def _read_plain(self, connection: Connection, size: int) -> bytes:
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

    def _read_chunked(self, connection: Connection, size: int) -> bytes:
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
            self._pool.put(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Drop the connection unless the body was read to its end."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class HttpTransport:
    """Sends requests to any number of nodes through a pool of connections, signed where there is a signer."""

    def __init__(
        self, pool: ConnectionPool, signer: Signer | None = None, *, body_bytes_max: int | None = None
    ):
        """``request`` takes a body of up to ``body_bytes_max``; None: of any size."""
        self._pool = pool
        self._signer = signer
        self._body_bytes_max = body_bytes_max

    def request(self, request: NodeRequest) -> BackendResponse:
        headers = {**request.headers, "content-length": str(len(request.body))}
        response = self._begin(request, headers).response()
        if self._body_bytes_max is not None:
            response.stream = InMemoryBody(self._read_bounded(request, response.stream, self._body_bytes_max))
        return response.read()

    @staticmethod
    def _read_bounded(request: NodeRequest, stream: ResponseBody, bytes_max: int) -> bytes:
        data = bytearray()
        try:
            while piece := stream.read(RECV_BYTES):
                data += piece
                if len(data) > bytes_max:
                    ip, port = request.node.ip, request.node.port
                    raise BrokenOff(f"body from {ip}:{port} is larger than {bytes_max} bytes")
        finally:
            stream.close()
        return bytes(data)

    def stream(self, request: NodeRequest) -> HttpExchange:
        return self._begin(request, request.headers)

    def _begin(self, request: NodeRequest, headers: HeaderMap) -> HttpExchange:
        node, body = request.node, request.body
        ip, port = node.ip, node.port
        host = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
        if body and "transfer-encoding" in headers:
            body = b"%b%b\r\n%b" % (chunk_head(len(body)), body, LAST_CHUNK)
        head = request_head(request.method, request.path, host, headers)
        signer = self._signer
        text = b"" if signer is None else signer.text_of(request.method, request.path, host, headers)
        connection = self._pool.get((ip, port), request.timeouts)
        exchange = HttpExchange(self._pool, connection, request, head, body, signer, text)
        exchange.begin()
        return exchange

    def stream_on_socket(self, sock: socket.socket, request: NodeRequest, host: str) -> HttpExchange:
        """Send a request on a connected non-blocking socket, plain or encrypted, that is not pooled.

        It goes to another cluster or service and is not signed. Errors name the request's node; the ``Host``
        header is ``host``.
        """
        address = (request.node.ip, request.node.port)
        connection = make_connection(sock, address)
        head = request_head(request.method, request.path, host, request.headers)
        exchange = HttpExchange(self._pool, connection, request, head, request.body)
        exchange.begin()
        return exchange
