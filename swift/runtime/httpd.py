"""The HTTP server of every service: one green thread a connection, keep-alive and pipelining.

A request goes head → ``Request`` → the pipeline's ``handle`` → ``Response`` → socket. The server owns
framing, the Date header, HEAD's missing body, and sends each kind of body the cheapest way. Whatever
escapes the pipeline becomes a plain 500 here; a client never sees a traceback.
"""

from __future__ import annotations

import errno
import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from socket import socket
from typing import Any

from swift import green
from swift.config.kinds import IPNetwork
from swift.http.body import BodyError, FileBody, ResponseBody
from swift.http.request import Request
from swift.http.response import HTTPError, Response, default_body, error_response
from swift.runtime.acceptshares import YIELD_S, AcceptShare, AcceptShares
from swift.runtime.connection import (
    LINGER_SHORT,
    LINGER_UPLOAD,
    Connection,
    ConnectionBody,
    ConnectionClosed,
    LingerLimits,
)
from swift.runtime.relay import relay_body
from swift.telemetry.metrics import CounterMetric, GaugeMetric
from swift.telemetry.telemetry import Telemetry
from swift.wire.chunked import LAST_CHUNK, chunk_head
from swift.wire.http1 import BadHead, HeadLimits, RequestHead, date_line, parse_request_head, response_head
from swift.wire.proxyprotocol import TrustedProxies

_OPEN = GaugeMetric("swift_http_connections", "Client connections open now.")
_REFUSED = CounterMetric("swift_http_bad_requests_total", "Requests whose head was refused.")
_DISPLACED = CounterMetric(
    "swift_http_displaced_connections_total",
    "Connections without a complete request that were closed because all places were taken.",
)

Handle = Callable[[Request], Response]

#: A response body up to this size is joined with its head into one send.
COALESCE_BYTES_MAX = 65536
#: An idle server checks for a stop request at this interval, seconds.
RECHECK_S = 10.0
#: While all places are taken: how long it takes at most until another client is looked for to give way.
SLOT_WAIT_S = 0.1


class HttpServer:
    """Serves ``handle`` on listening sockets until ``stop``."""

    def __init__(
        self,
        handle: Handle,
        telemetry: Telemetry,
        *,
        limits: HeadLimits | None = None,
        max_clients: int = 1024,
        client_timeout_s: float = 60.0,
        keepalive_timeout_s: float = 60.0,
        tls: ssl.SSLContext | None = None,
        require_proxy_protocol: bool = False,
        trusted_proxies: Sequence[IPNetwork] = (),
        linger_upload: LingerLimits = LINGER_UPLOAD,
        share: AcceptShare | None = None,
    ):
        self._handle = handle
        self._telemetry = telemetry
        self._limits = limits or HeadLimits()
        self._client_timeout_s = client_timeout_s
        self._keepalive_timeout_s = keepalive_timeout_s
        self._max_clients = max_clients
        self._slots = green.Semaphore(max_clients)
        self._tls = tls
        self._require_proxy_protocol = require_proxy_protocol
        self._trusted_proxies = TrustedProxies(trusted_proxies)
        self._linger_upload = linger_upload
        self._share = share or AcceptShares(1).register_worker(0, ())
        self._connections: set[Connection] = set()
        #: Connections that were accepted and whose green threads have not begun.
        self._arriving = 0
        self._stopping = False
        metrics = telemetry.metrics
        self._open = _OPEN.of(metrics)
        self._refused = _REFUSED.of(metrics)
        self._displaced = _DISPLACED.of(metrics)

    # accepting

    def serve(self, listener: socket) -> None:
        """Accept connections until ``stop``; returns then."""
        while not self._stopping:
            if not self._slots.acquire(0) and not self._acquire_slot(listener):
                continue
            if self._share.is_ahead():
                green.sleep(YIELD_S)
            if self._stopping:
                self._slots.release()
                return
            try:
                sock, peer = listener.accept()
            except BlockingIOError:
                self._slots.release()
                try:
                    green.wait_readable(listener.fileno(), time.monotonic() + RECHECK_S)
                except green.DeadlineExceeded:
                    continue
                continue
            except OSError as error:
                self._slots.release()
                if self._stopping:
                    return
                if error.errno == errno.EINVAL:
                    # The main process has shut the listener down before it stops its workers.
                    green.sleep(0.1)
                    continue
                self._telemetry.log.error(f"cannot accept a connection: {error.strerror}")
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._close_stalled_connection()
                green.sleep(0.1)
                continue
            self._arriving += 1
            self._share.update(len(self._connections) + self._arriving)
            green.spawn_detached(self._accept_connection, sock, peer)
            # One a turn, so that the other workers get their share of a burst.
            green.sleep(0)

    def _acquire_slot(self, listener: socket) -> bool:
        """Wait a moment for a place while all are taken; a client that waits outside may displace another."""
        try:
            green.wait_readable(listener.fileno(), time.monotonic() + 1.0)
        except green.DeadlineExceeded:
            return False
        self._close_stalled_connection()
        return self._slots.acquire(SLOT_WAIT_S)

    def _close_stalled_connection(self) -> None:
        """Close the connection that gives way to a client that waits outside, if there is one."""
        connection = connection_to_close(self._connections, self._max_clients, time.monotonic())
        if connection is not None:
            # Its green thread sees the end, which may take a turn or two: it must not be chosen again.
            self._connections.discard(connection)
            self._displaced.inc()
            connection.shutdown()

    def stop(self, grace_s: float = 30.0, *, idle_s: float = 0.0) -> None:
        """Accept no more, close idle connections, wait up to ``grace_s`` for busy ones.

        A connection counts as idle when nothing came for ``idle_s``: who is about to ask is answered and
        told that the connection ends.
        """
        self._stopping = True
        self._share.leave()
        deadline = time.monotonic() + grace_s
        while (self._connections or self._arriving) and time.monotonic() < deadline:
            quiet_since = time.monotonic() - idle_s
            for connection in [c for c in self._connections if _is_quiet_since(c, quiet_since)]:
                # Its green thread sees the end and closes it. Closing it here would leave that thread
                # waiting for a descriptor that may soon be another connection's.
                connection.shutdown()
                self._connections.discard(connection)
            green.sleep(0.05)

    def _accept_connection(self, sock: socket, peer: tuple[Any, ...]) -> None:
        connection = None
        self._arriving -= 1
        try:
            sock.setblocking(False)
            sock.setsockopt(6, 1, 1)  # IPPROTO_TCP, TCP_NODELAY
            connection = Connection(sock, peer, self._client_timeout_s)
            self._connections.add(connection)
            self._open.inc()
            if self._require_proxy_protocol and not self._read_proxy_header(connection):
                return
            if self._tls is not None:
                tls = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                connection.start_tls(tls)
                green.handshake(tls, time.monotonic() + self._client_timeout_s)
            self._serve_connection(connection)
        except (OSError, ConnectionClosed, green.DeadlineExceeded):
            # The client is gone or too slow; what it asked for has been answered or dropped.
            pass
        except Exception as error:
            self._telemetry.log.exception("ERROR unhandled error of a connection", error)
        finally:
            if connection is not None:
                self._connections.discard(connection)
                self._open.inc(-1)
                connection.close()
            sock.close()
            self._slots.release()
            if not self._stopping:
                self._share.update(len(self._connections) + self._arriving)

    # one connection

    def _read_proxy_header(self, connection: Connection) -> bool:
        """Read the load balancer's header; False when the connection was refused."""
        try:
            connection.read_proxy_header()
        except BadHead as error:
            self._send_rejection(connection, error)
            return False
        return True

    def _serve_connection(self, connection: Connection) -> None:
        idle_timeout_s = self._client_timeout_s
        while True:
            try:
                data = connection.read_head(self._limits, idle_timeout_s)
                if data is None:
                    return
                head = parse_request_head(data, self._limits)
            except BadHead as error:
                self._send_rejection(connection, error)
                return
            except green.DeadlineExceeded:
                self._send_rejection(connection, BadHead(408, "the request head did not arrive in time"))
                return
            if not self._serve_request(connection, head) or self._stopping:
                return
            if connection.buffer:
                # The next request is here already: nothing else would let other connections have their turn.
                green.sleep(0)
            idle_timeout_s = self._keepalive_timeout_s

    def _serve_request(self, connection: Connection, head: RequestHead) -> bool:
        """Respond to one request; return False if the connection must end."""
        body = ConnectionBody(connection, head.length, expects_continue=head.expects_continue)
        request = Request(head.method, head.raw_path, head.headers, body, query=head.query)
        request.remote_addr = connection.peer[0]
        request.remote_port = connection.peer[1]
        request.http_minor = head.minor
        request.expects_continue = head.expects_continue
        request.received_at = time.time()
        if connection.is_tls or connection.is_forwarded_tls:
            request.scheme = "https"
        if self._trusted_proxies and not self._trusted_proxies.includes(connection.peer[0]):
            self._trusted_proxies.drop_headers(request.headers)
        elif self._trusted_proxies:
            client, scheme = self._trusted_proxies.take_headers(request.headers)
            if client:
                request.remote_addr, request.remote_port = client, 0
            request.scheme = scheme or request.scheme
        response = self._respond(request)
        may_keep = head.keep_alive and not response.close_connection and not self._stopping
        # The rest of a refused upload is dropped when it is short, and only after the answer: the client
        # may send it slowly or not at all. Otherwise the connection ends.
        finished = body.finished
        may_keep = may_keep and (finished or body.is_short)
        if head.minor == 0 and not _has_length(response):
            # Such a body ends with the connection.
            may_keep = False
        self._send(connection, head, response, keep=may_keep)
        if finished or body.finished or (may_keep and body.drain()):
            return may_keep
        connection.linger(LINGER_SHORT if body.awaits_continue else self._linger_upload)
        return False

    def _respond(self, request: Request) -> Response:
        try:
            return self._handle(request)
        except HTTPError as error:
            return error.response
        except BodyError as error:
            return error_response(error.status)
        except Exception as error:
            self._telemetry.log.exception(f"ERROR cannot handle {request.method} {request.path_qs}", error)
            return error_response(500, "An error occurred", content_type="text/plain")

    # sending

    def _send(self, connection: Connection, head: RequestHead, response: Response, *, keep: bool) -> None:
        before = connection.sent_bytes
        connection.framing_bytes = 0
        complete = False
        try:
            self._send_parts(connection, head, response, keep)
            complete = True
        except BodyError as error:
            # What was sent before it broke off may be the reason, and must arrive.
            connection.linger(LINGER_SHORT)
            raise ConnectionClosed(str(error))
        except OSError as error:
            raise ConnectionClosed(str(error))
        except ValueError as error:
            self._telemetry.log.exception(f"ERROR unusable response to {head.method} {head.raw_path}", error)
            raise ConnectionClosed(str(error))
        finally:
            if not isinstance(response.body, bytes):
                response.discard()
            if response.on_end is not None:
                response.report_end(
                    max(0, connection.sent_bytes - before - connection.framing_bytes), complete
                )

    def _send_parts(self, connection: Connection, head: RequestHead, response: Response, keep: bool) -> None:
        headers, body = response.headers, response.body
        extra = date_line()
        if "content-length" not in headers:
            if isinstance(body, bytes):
                # A HEAD that fails announces nothing unless it has a text of its own.
                status = response.status
                empty = status in (204, 304) or (
                    head.method == "HEAD" and status >= 400 and body == default_body(status)
                )
                headers["content-length"] = "0" if empty else str(len(body))
            elif body.length is not None:
                headers["content-length"] = str(body.length)
        chunked = head.minor == 1 and "content-length" not in headers
        if chunked and head.method != "HEAD":
            extra += "Transfer-Encoding: chunked\r\n"
        if not keep:
            extra += "Connection: close\r\n"
        elif head.asks_keep_alive:
            extra += "Connection: keep-alive\r\n"
        text = response_head(response.status, response.reason, headers, extra)
        connection.framing_bytes += len(text)
        if head.method == "HEAD" or response.status in (204, 304):
            connection.send_all(text)
            return
        if isinstance(body, bytes):
            if len(body) <= COALESCE_BYTES_MAX:
                connection.send_all(text + body)
            else:
                connection.send_all(text)
                connection.send_all(body)
            return
        connection.send_all(text)
        if chunked:
            _send_chunked(connection, body)
            return
        announced = headers.get("content-length")
        send = relay_body if body.fills_buffers else _send_plain
        send(connection, body, None if announced is None else int(announced))

    def _send_rejection(self, connection: Connection, error: BadHead) -> None:
        self._refused.inc()
        response = error_response(error.status, error.body or None)
        content = response.read_body()
        response.headers["content-length"] = str(len(content))
        extra = date_line() + "Connection: close\r\n"
        text = response_head(error.status, response.reason, response.headers, extra)
        connection.send_all(text + content)
        connection.linger(LINGER_SHORT)


def _is_quiet_since(connection: Connection, quiet_since: float) -> bool:
    """Return True if a connection has nothing to be answered, and was quiet since a time."""
    return connection.lingering_since > 0 or (connection.idle and connection.head_started_at <= quiet_since)


def _has_length(response: Response) -> bool:
    body = response.body
    return "content-length" in response.headers or isinstance(body, bytes) or body.length is not None


def _send_plain(connection: Connection, body: ResponseBody, announced: int | None) -> None:
    """Send a body that is not bytes, exactly the announced number of bytes.

    Raises ``BodyError`` when it has more or less: whatever followed on this connection would be taken
    for something else.
    """
    left = (1 << 63) if announced is None else announced
    for piece in body:
        size = piece.length if isinstance(piece, FileBody) else len(piece)
        if size > left:
            connection.send_all(b"" if isinstance(piece, FileBody) else piece[:left])
            raise BodyError("the body is longer than announced")
        if isinstance(piece, FileBody):
            connection.send_file(piece)
        else:
            connection.send_all(piece)
        left -= size
    if announced is not None and left:
        raise BodyError(f"the body ended {left} bytes early")


def _send_chunked(connection: Connection, body: ResponseBody) -> None:
    """Send a body of unknown length."""
    for piece in body:
        size = piece.length if isinstance(piece, FileBody) else len(piece)
        if not size:
            continue
        start = chunk_head(size)
        connection.framing_bytes += len(start) + 2
        if isinstance(piece, FileBody):
            connection.send_all(start)
            connection.send_file(piece)
            connection.send_all(b"\r\n")
        else:
            connection.send_all(start + piece + b"\r\n")
    connection.framing_bytes += len(LAST_CHUNK)
    connection.send_all(LAST_CHUNK)


# Who gives way when every place for a client connection is taken.
#
# In this order:
#
# 1. A connection whose refused request is being dropped, the oldest first: it was answered.
# 2. A connection kept open between requests, the longest idle first: it costs its client only a new one.
# 3. A head that does not get finished, of the address that has most of them, as soon as that is more than its
# share: one client cannot fill all places, and others behind its address are hardly disturbed, because their
# heads arrive at once.
# 4. The oldest unfinished head, whatever its address, once it is ``HEAD_GRACE_S`` old.
# 5. The connection whose client has neither sent nor taken a byte of a body for longest, once that is
# ``STALL_GRACE_S``.
#
# A connection that makes progress keeps its place.
#
# Deciding only: the server closes what is chosen.


#: A client address may have this part of all places, as one over the number, for incomplete heads.
INCOMPLETE_HEAD_SHARE = 4
#: While all places are taken a head has to be complete after so long, seconds.
HEAD_GRACE_S = 1.0
#: While all places are taken a body has to make progress within so long, seconds.
STALL_GRACE_S = 5.0


def incomplete_heads_max(places: int) -> int:
    """Return the number of incomplete heads that one address may have when all ``places`` are taken."""
    return max(1, places // INCOMPLETE_HEAD_SHARE)


def connection_to_close(connections: Collection[Connection], places: int, now_s: float) -> Connection | None:
    """Return the connection to close for a newcomer at ``now_s`` (monotonic); None when all make progress."""
    lingering = [connection for connection in connections if connection.lingering_since]
    if lingering:
        return min(lingering, key=lambda connection: connection.lingering_since)
    parked: Connection | None = None
    stalled: Connection | None = None
    heads: dict[str, list[Connection]] = defaultdict(list)
    for connection in connections:
        if not connection.head_started_at:
            since = connection.stalled_since
            if since and (stalled is None or since < stalled.stalled_since):
                stalled = connection
            continue
        if not connection.is_parked:
            heads[str(connection.peer[0])].append(connection)
        elif parked is None or connection.head_started_at < parked.head_started_at:
            parked = connection
    if parked is not None:
        return parked
    if heads:
        most = max(heads.values(), key=len)
        if len(most) > incomplete_heads_max(places):
            return min(most, key=_head_started_at)
        oldest = min((min(some, key=_head_started_at) for some in heads.values()), key=_head_started_at)
        if now_s - oldest.head_started_at >= HEAD_GRACE_S:
            return oldest
    if stalled is not None and now_s - stalled.stalled_since >= STALL_GRACE_S:
        return stalled
    return None


def _head_started_at(connection: Connection) -> float:
    return connection.head_started_at
