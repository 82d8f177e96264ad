"""One client connection: reading heads and bodies, sending responses, with every wait bounded.

The connection knows framing and time, not requests: ``runtime.httpd`` decides what to do with a head.
Slow clients are cut by deadlines: a head must be complete ``client_timeout`` seconds after its first
byte, empty lines before it included, and each piece of a body within as much.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable
from socket import SHUT_RDWR, SHUT_WR, socket
from typing import Any, NamedTuple

from swift.green import DeadlineExceeded, sleep, wait_readable, wait_writable
from swift.http.body import BodyError, BodyTimeout, ClientDisconnected, FileBody, RequestBody
from swift.wire import proxyprotocol
from swift.wire.chunked import ChunkDecoder
from swift.wire.http1 import HeadLimits, check_unfinished, response_head

RECV_BYTES = 65536
#: An unread request body up to this size is read and dropped to keep the connection.
DRAIN_BYTES_MAX = 65536
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


#: Bytes that are dropped in a row before other connections have their turn.
_DISCARD_BUFFER_BYTES = 1 << 20
#: More chunks than this in what arrived at once are tiny: other connections have their turn.
_TINY_CHUNKS_MAX = 64


class LingerLimits(NamedTuple):
    """Limits of the bytes that are dropped after the last answer, before the socket is closed.

    Closing it with unread bytes would reset the connection and destroy the answer, which many clients read
    only after they have sent their whole body.
    """

    total_s: float
    #: Seconds without a byte.
    idle_s: float
    bytes_max: int


#: After the refusal of an upload; the times are nginx's, the size is that of the largest object.
LINGER_UPLOAD = LingerLimits(total_s=30.0, idle_s=5.0, bytes_max=5 << 30)
#: After any other end: nothing is expected to come.
LINGER_SHORT = LingerLimits(total_s=1.0, idle_s=1.0, bytes_max=64 << 20)


class ConnectionClosed(Exception):
    """The peer went away or fell silent; nothing more can be sent or read."""


class Connection:
    """A non-blocking client socket with what was read too much."""

    __slots__ = (
        "sock",
        "fd",
        "peer",
        "is_tls",
        "is_forwarded_tls",
        "buffer",
        "client_timeout_s",
        "idle",
        "head_started_at",
        "stalled_since",
        "lingering_since",
        "sent_bytes",
        "framing_bytes",
    )

    def __init__(self, sock: socket, peer: tuple[Any, ...], client_timeout_s: float):
        self.sock = sock
        self.fd = sock.fileno()
        self.peer = peer
        self.is_tls = isinstance(sock, ssl.SSLSocket)
        #: True if a load balancer reports that its client speaks TLS.
        self.is_forwarded_tls = False
        self.buffer = b""
        self.client_timeout_s = client_timeout_s
        #: Waiting for the next request; such connections may be closed at any time.
        self.idle = True
        #: When the wait for a head began, monotonic seconds; 0.0 while a request is being answered.
        self.head_started_at = time.monotonic()
        #: Since when this side waits for the client to send or take something, monotonic seconds; or 0.0.
        self.stalled_since = 0.0
        #: Since when the rest of a refused request is dropped, monotonic seconds; or 0.0.
        self.lingering_since = 0.0
        self.sent_bytes = 0
        #: Bytes of the response being sent that are not body.
        self.framing_bytes = 0

    @property
    def is_parked(self) -> bool:
        """True if an answered client keeps the connection for a request that has not begun."""
        return self.idle and self.sent_bytes > 0

    def start_tls(self, sock: socket) -> None:
        """Go on with an encrypted socket over the same descriptor."""
        self.sock, self.is_tls = sock, True

    # reading

    def read_proxy_header(self) -> None:
        """Read what a load balancer sends first, and take the client's address from it.

        Raises ``wire.http1.BadHead``, ``DeadlineExceeded`` and OSError.
        """
        deadline = time.monotonic() + self.client_timeout_s
        data = b""
        while missing := proxyprotocol.bytes_needed(data):
            try:
                more = self.sock.recv(missing)
            except BlockingIOError:
                self._wait(wait_readable, deadline)
                continue
            if not more:
                raise ConnectionClosed("the load balancer closed the connection inside its header")
            data += more
        forwarded = proxyprotocol.parse(data)
        if forwarded is not None:
            self.peer = (forwarded.address, forwarded.port)
            self.is_forwarded_tls = forwarded.is_tls

    def _recv(self, deadline: float) -> bytes:
        """Return some bytes, empty at the end of the stream; raises ``DeadlineExceeded`` or OSError."""
        while True:
            try:
                return self.sock.recv(RECV_BYTES)
            except ssl.SSLWantWriteError:
                self._wait(wait_writable, deadline)
            except _WOULD_BLOCK:
                self._wait(wait_readable, deadline)

    def _wait(self, wait: Callable[[int, float], None], deadline: float) -> None:
        """Wait for the client; raises ``DeadlineExceeded`` and OSError."""
        self.stalled_since = time.monotonic()
        wait(self.fd, deadline)
        self.stalled_since = 0.0

    def read_head(self, limits: HeadLimits, idle_timeout_s: float) -> bytes | None:
        """Return the bytes of the next request head; None when the client is done.

        Raises ``wire.http1.BadHead`` for one that is too long, ``DeadlineExceeded`` for a slow one.
        """
        data = self.buffer.lstrip(b"\r\n") if self.buffer[:1] in (b"\r", b"\n") else self.buffer
        self.head_started_at = now = time.monotonic()
        deadline = now + (self.client_timeout_s if data else idle_timeout_s)
        self.idle = not data
        searched = 0
        # After an answer the next request is hardly ever here already: look first only at a new connection.
        await_first = self.sent_bytes > 0 and not data
        while True:
            if data:
                end = data.find(b"\r\n\r\n", searched)
                if end >= 0:
                    self.buffer = data[end + 4 :]
                    self.head_started_at = 0.0
                    return data[: end + 4]
                check_unfinished(data, limits)
                searched = max(0, len(data) - 3)
            try:
                if await_first and not self.is_tls:
                    await_first = False
                    wait_readable(self.fd, deadline)
                more = self._recv(deadline)
            except DeadlineExceeded:
                if not data:
                    return None
                raise
            except OSError:
                return None
            if not more:
                return None
            if self.idle:
                self.idle = False
                deadline = time.monotonic() + self.client_timeout_s
            data = data + more if data else more.lstrip(b"\r\n")

    def read_available(self) -> bytes:
        """Return body bytes: what is buffered, else what arrives next.

        Raises ``BodyTimeout`` or ``ClientDisconnected``.
        """
        if self.buffer:
            data, self.buffer = self.buffer, b""
            return data
        try:
            data = self._recv(time.monotonic() + self.client_timeout_s)
        except DeadlineExceeded:
            raise BodyTimeout(f"no data from the client for {self.client_timeout_s:g} s")
        except OSError as error:
            raise ClientDisconnected(str(error))
        if not data:
            raise ClientDisconnected("the client closed the connection inside the body")
        return data

    def receive_into(self, view: memoryview) -> int:
        """Fill ``view`` with what is there, waiting for the first byte; raises like ``read_available``.

        Only for an empty ``buffer``.
        """
        filled = self._receive_once(view)
        while filled < len(view):
            try:
                more = self.sock.recv_into(view[filled:])
            except _WOULD_BLOCK:
                break
            except OSError as error:
                raise ClientDisconnected(str(error))
            if not more:
                # What came before the end is worth reporting; the next call meets the end again.
                break
            filled += more
        return filled

    def _receive_once(self, view: memoryview) -> int:
        deadline = time.monotonic() + self.client_timeout_s
        while True:
            try:
                filled: int = self.sock.recv_into(view)
                break
            except ssl.SSLWantWriteError:
                wait = wait_writable
            except _WOULD_BLOCK:
                wait = wait_readable
            except OSError as error:
                raise ClientDisconnected(str(error))
            try:
                self._wait(wait, deadline)
            except DeadlineExceeded:
                raise BodyTimeout(f"no data from the client for {self.client_timeout_s:g} s")
            except OSError as error:
                raise ClientDisconnected(str(error))
        if not filled:
            raise ClientDisconnected("the client closed the connection inside the body")
        return filled

    # writing

    def send_all(self, data: bytes | memoryview) -> None:
        """Send every byte; raises ``ConnectionClosed``."""
        try:
            sent = self.sock.send(data)
        except _WOULD_BLOCK:
            sent = 0
        except OSError as error:
            raise ConnectionClosed(str(error))
        self.sent_bytes += sent
        if sent < len(data):
            self._send_rest(memoryview(data)[sent:])

    def _send_rest(self, rest: memoryview) -> None:
        while rest:
            self._wait_writable()
            try:
                sent = self.sock.send(rest)
            except _WOULD_BLOCK:
                continue
            except OSError as error:
                raise ConnectionClosed(str(error))
            self.sent_bytes += sent
            rest = rest[sent:]

    def _wait_writable(self) -> None:
        try:
            self._wait(wait_writable, time.monotonic() + self.client_timeout_s)
        except DeadlineExceeded:
            raise ConnectionClosed("the client does not take its response")
        except OSError as error:
            raise ConnectionClosed(str(error))

    def send_file(self, body: FileBody) -> None:
        """Send a file range without copying it through this process; raises ``ConnectionClosed``."""
        offset, left = body.offset, body.length
        while left:
            if self.is_tls:
                try:
                    piece = os.pread(body.fd, min(left, RECV_BYTES), offset)
                except OSError as error:
                    raise ConnectionClosed(str(error))
                self.send_all(piece)
                sent = len(piece)
            else:
                sent = self._sendfile_once(body.fd, offset, left)
            if not sent:
                raise ConnectionClosed("the file ended before its announced length")
            offset += sent
            left -= sent

    def _sendfile_once(self, fd: int, offset: int, left: int) -> int:
        while True:
            try:
                sent = os.sendfile(self.fd, fd, offset, min(left, 1 << 30))
            except BlockingIOError:
                self._wait_writable()
                continue
            except OSError as error:
                raise ConnectionClosed(str(error))
            self.sent_bytes += sent
            return sent

    def send_pipe(self, pipe: int, length: int) -> None:
        """Send what a pipe holds, ``length`` bytes, without copying it; raises ``ConnectionClosed``."""
        while length:
            try:
                sent = os.splice(pipe, self.fd, length, flags=os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE)
            except BlockingIOError:
                self._wait_writable()
                continue
            except OSError as error:
                raise ConnectionClosed(str(error))
            self.sent_bytes += sent
            length -= sent

    def linger(self, limits: LingerLimits) -> None:
        """End sending, and drop what the client still sends within ``limits``."""
        self.lingering_since = now = time.monotonic()
        deadline, left, turn = now + limits.total_s, limits.bytes_max, _DISCARD_BUFFER_BYTES
        try:
            self.sock.shutdown(SHUT_WR)
            while left > 0 and now < deadline:
                size = len(self._recv(min(deadline, now + limits.idle_s)))
                if not size:
                    return
                left -= size
                turn -= size
                if turn <= 0:
                    turn = _DISCARD_BUFFER_BYTES
                    sleep(0)
                now = time.monotonic()
        except (OSError, DeadlineExceeded):
            # Gone already, or still sending after its time: either way the socket is closed next.
            return

    def shutdown(self) -> None:
        """End the conversation in both directions; a wait for the client ends with EOF."""
        try:
            # Not the method of an encrypted socket: that forgets the encryption, in which its reader waits.
            socket.shutdown(self.sock, SHUT_RDWR)
        except OSError:
            # The client was faster.
            return

    def close(self) -> None:
        """Close the socket; harmless when it is closed."""
        try:
            self.sock.close()
        except OSError:
            # The peer closed its end: it needs no more.
            return

    def __repr__(self) -> str:
        return f"<Connection from {self.peer[0]} {'idle' if self.idle else 'busy'}>"


class ConnectionBody(RequestBody):
    """The body of the current request on a connection."""

    __slots__ = (
        "length",
        "received",
        "_connection",
        "_left",
        "_decoder",
        "_ready",
        "_must_continue",
        "_broken",
        "may_wait",
    )

    def __init__(self, connection: Connection, length: int | None, *, expects_continue: bool):
        self.length = length
        #: Bytes handed out so far.
        self.received = 0
        self._connection = connection
        self._left = 0 if length is None else length
        self._decoder = ChunkDecoder() if length is None else None
        self._ready: list[bytes] = []
        self._must_continue = expects_continue
        #: Reading failed: the start of the next request is unknown.
        self._broken = False
        self.may_wait = expects_continue

    @property
    def finished(self) -> bool:
        """True if every byte has been read."""
        if self._broken:
            return False
        if self._decoder is None:
            return self._left == 0
        return self._decoder.finished and not self._ready

    @property
    def is_short(self) -> bool:
        """True if the rest may be worth reading to keep the connection.

        Never when the client may still wait for 100 Continue: a body may never come. Never
        after an error of reading, framing errors above all: what follows must not be taken for a request.
        """
        if self._must_continue or self._broken:
            return False
        return self._decoder is not None or self._left <= DRAIN_BYTES_MAX

    @property
    def awaits_continue(self) -> bool:
        """Return True if the client may still wait for 100 Continue before it sends the body."""
        return self._must_continue

    def send_continue(self, headers: dict[str, str]) -> None:
        """Send ``100 Continue`` with extra headers, if the client waits for it."""
        if self.may_wait:
            self._must_continue = False
            try:
                self._connection.send_all(response_head(100, "Continue", headers, ""))
            except ConnectionClosed as error:
                raise ClientDisconnected(str(error))

    def begin_next_body(self) -> None:
        """Expect another chunked body of the same request."""
        self._decoder = ChunkDecoder()
        self._ready = []

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, everything when negative; see ``RequestBody``."""
        if self._must_continue:
            self.send_continue({})
        if size < 0:
            pieces = []
            while piece := self.read(1 << 20):
                pieces.append(piece)
            return b"".join(pieces)
        if self._broken:
            raise ClientDisconnected("the body broke off before")
        try:
            return self._read_counted(size) if self._decoder is None else self._read_chunked(size)
        except BodyError:
            self._broken = True
            raise

    @property
    def trailers(self) -> dict[str, str]:
        """Trailers after the last chunk, once they are read."""
        return {} if self._decoder is None else self._decoder.trailers

    def read_into(self, view: memoryview) -> int:
        decoder = self._decoder
        room = self._left if decoder is None else decoder.chunk_bytes_left
        if self._connection.buffer or self._ready or self._must_continue or self._broken or not room:
            data = self.read(len(view))
            view[: len(data)] = data
            return len(data)
        try:
            size = self._connection.receive_into(view[:room])
        except BodyError:
            self._broken = True
            raise
        if decoder is None:
            self._left -= size
        else:
            decoder.count_received(size)
        self.received += size
        return size

    def _read_counted(self, size: int) -> bytes:
        want = min(size, self._left)
        if want <= 0:
            return b""
        data = self._connection.read_available()
        if len(data) > want:
            self._connection.buffer = data[want:]
            data = data[:want]
        self._left -= len(data)
        self.received += len(data)
        return data

    def _read_chunked(self, size: int) -> bytes:
        decoder = self._decoder
        assert decoder is not None
        while not self._ready and not decoder.finished:
            data = self._connection.read_available()
            pieces, used = decoder.feed(data)
            # Chunks of a few bytes would each be sent to all nodes; and they keep this process busy for so
            # long that the client has always sent more, so that other connections would never have a turn.
            self._ready = [b"".join(pieces)] if len(pieces) > 1 else pieces
            if len(pieces) > _TINY_CHUNKS_MAX:
                sleep(0)
            if used < len(data):
                self._connection.buffer = data[used:]
        if not self._ready:
            return b""
        piece = self._ready.pop(0)
        if len(piece) > size:
            self._ready.insert(0, piece[size:])
            piece = piece[:size]
        self.received += len(piece)
        return piece

    def drain(self) -> bool:
        """Read and drop a short rest; False when the connection cannot be kept."""
        dropped = 0
        try:
            while dropped <= DRAIN_BYTES_MAX:
                piece = self.read(RECV_BYTES)
                if not piece:
                    return self.finished
                dropped += len(piece)
        except BodyError:
            return False
        return False
