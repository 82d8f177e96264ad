"""Connections to nodes: plain and encrypted ones, and the pool of those that are idle.

``IdleConnections`` decides without I/O which idle connection is used again: the most recently used one, which
is most likely alive and warm.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from functools import partial

from swift import green
from swift.base.calls import T
from swift.cluster.hosts import resolve
from swift.cluster.transport import TimedOut, Timeouts, TransportError
from swift.telemetry.metrics import CounterMetric, Registry

_OPENED = CounterMetric("swift_client_connections_total", "Connections opened to nodes.")
_ERRORS = CounterMetric("swift_client_errors_total", "Exchanges with nodes that failed.")

Address = tuple[str, int]

RECV_BYTES = 65536
#: Pause between two tries to reach the only server of a ring.
RESTART_PAUSE_S = 0.05
#: A pooled connection must have been idle this long before it is checked with the kernel.
PEEK_AFTER_S = 1.0


class Connection:
    """One connection to a node."""

    __slots__ = ("sock", "fd", "address", "idle_since", "buffer", "reused")

    def __init__(self, sock: socket.socket, address: Address):
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


class TLSConnection(Connection):
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
        rest = memoryview(data)
        while rest:
            piece = rest[:RECV_BYTES]
            rest = rest[self._retry(partial(self.sock.send, piece), deadline) :]

    def send_parts(self, parts: Sequence[bytes | memoryview], deadline: float) -> None:
        self.send_all(b"".join(parts), deadline)

    def wait_readable(self, deadline: float) -> None:
        """Return at once: decrypted bytes may wait in memory, which the descriptor does not show."""

    def recv(self, deadline: float) -> bytes:
        try:
            return self._retry(partial(self.sock.recv, RECV_BYTES), deadline)
        except ssl.SSLZeroReturnError:
            return b""

    def recv_into(self, buffer: memoryview, deadline: float) -> int:
        data = self._retry(partial(self.sock.recv, len(buffer)), deadline)
        buffer[: len(data)] = data
        return len(data)

    def splice(self, pipe: int, size: int, deadline: float) -> int:
        """Refuse, because encrypted bytes cannot be spliced."""
        raise OSError(errno.EINVAL, "splice of an encrypted connection")


def make_connection(sock: socket.socket, address: Address) -> Connection:
    """Return a connection on a connected socket that does not block."""
    return TLSConnection(sock, address) if isinstance(sock, ssl.SSLSocket) else Connection(sock, address)


class IdleConnections:
    """Idle connections by address, bounded in number and age."""

    def __init__(self, *, per_address_max: int = 64, idle_max_s: float = 30.0):
        self.per_address_max = per_address_max
        self.idle_max_s = idle_max_s
        self._idle: dict[Address, list[Connection]] = {}

    def get(self, address: Address, now: float) -> tuple[Connection | None, list[Connection]]:
        """Return the newest idle connection to ``address`` (or None), and the expired ones, to be closed."""
        stack = self._idle.get(address)
        if not stack:
            return None, []
        newest = stack[-1]
        if now - newest.idle_since > self.idle_max_s:
            self._idle[address] = []
            return None, stack
        return stack.pop(), []

    def put(self, connection: Connection, now: float) -> Connection | None:
        """Keep a connection; return one to close when the address has enough."""
        connection.idle_since = now
        stack = self._idle.setdefault(connection.address, [])
        stack.append(connection)
        return stack.pop(0) if len(stack) > self.per_address_max else None

    def clear(self) -> list[Connection]:
        """Drop all connections, e.g. after a fork; return those to close."""
        everything = [c for stack in self._idle.values() for c in stack]
        self._idle.clear()
        return everything

    def __len__(self) -> int:
        return sum(len(stack) for stack in self._idle.values())

    def __repr__(self) -> str:
        return f"<IdleConnections {len(self)} idle to {len(self._idle)} addresses>"


class ConnectionPool:
    """Connections to any number of nodes, for one process; encrypted if there is a ``tls`` context."""

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
        self._refusals: dict[Address, tuple[float, float]] = {}
        self._idle = IdleConnections(per_address_max=per_address_max, idle_max_s=idle_max_s)
        self._pid = os.getpid()
        self._opened = _OPENED.of(metrics)
        self.errors = _ERRORS.of(metrics)

    def get(self, address: Address, timeouts: Timeouts) -> Connection:
        """Return an idle connection, or a new one; raises ``TransportError``."""
        if self._pid != os.getpid():
            self._idle.clear()
            self._pid = os.getpid()
        now = time.monotonic()
        while True:
            connection, stale = self._idle.get(address, now)
            for old in stale:
                old.close()
            if connection is None:
                return self.connect(address, timeouts)
            if now - connection.idle_since < PEEK_AFTER_S or not connection.is_closed_by_peer():
                connection.reused = True
                return connection
            connection.close()

    def connect(self, address: Address, timeouts: Timeouts) -> Connection:
        """Return a new connection; raises ``TransportError``."""
        ip, port = address
        try:
            sock = self._connected_socket(ip, port, timeouts)
            if self._tls is not None:
                sock = start_tls(sock, ip, timeouts.conn_timeout, self._tls)
        except OSError as error:
            self.errors.inc()
            raise TransportError(f"cannot connect to {ip}:{port}: {error}")
        except green.DeadlineExceeded:
            self.errors.inc()
            raise TimedOut(f"cannot connect to {ip}:{port}: timeout")
        self._opened.inc()
        return make_connection(sock, address)

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

    def _is_down(self, address: Address, now_s: float, limit_s: float) -> bool:
        """Note a refusal; return True if the server has refused for so long that it does not just restart."""
        first_s, last_s = self._refusals.get(address, (now_s, now_s))
        if now_s - last_s > limit_s:
            # There was no request in between: it may have run.
            first_s = now_s
        self._refusals[address] = first_s, now_s
        return now_s - first_s >= limit_s - RESTART_PAUSE_S

    def put(self, connection: Connection) -> None:
        """Take back a connection whose response was read to its exact end."""
        if connection.buffer:
            connection.close()
            return
        extra = self._idle.put(connection, time.monotonic())
        if extra is not None:
            extra.close()


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
