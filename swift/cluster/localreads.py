"""Reads of this machine's own devices in the process of the proxy, without the hop to the object server.

``LocalReads`` is a ``Transport`` in front of another one. GET and HEAD of objects on own devices get the
response of the object server's handler, in this process; everything else goes over the network. So does every
local response but a sound hit: absent, damaged and refused objects, unmounted devices, and a device that
takes longer than ``LOCAL_WAIT_S``. The object server then gives the response that counts.

A late device holds the threads of its own pool, never the event loop, and its reads go over the network for
``PENALTY_S``, then all but one until that one is in time. A damaged object is quarantined by the process that
reads it, which may be a proxy worker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from swift import green
from swift.base.truth import is_true
from swift.cluster.transport import (
    BackendResponse,
    BrokenOff,
    Destination,
    Exchange,
    NodeRequest,
    Transport,
    TransportError,
)
from swift.http.body import BodyError, FileBody, InMemoryBody, ResponseBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.platform.disk import Disk
from swift.telemetry.metrics import CounterMetric, Registry

#: The longest wait for a local response, and for each part of its body, seconds.
LOCAL_WAIT_S = 1.0
#: Reads of a device that was late go over the network for so long, seconds.
PENALTY_S = 10.0
#: Distance of the pages that show if a range of a file is in memory, bytes.
_PROBE_EVERY_BYTES = 256 << 10
#: The addresses of this machine are looked up again after so many seconds.
ADDRESSES_S = 60.0
#: For names of hosts, which may take long to be looked up.
_threads = green.ThreadPool(4, "addresses")
_READS = frozenset(("GET", "HEAD"))
#: Statuses of an object that is there.
_HITS = frozenset((200, 206, 304, 416))

_LOCAL = CounterMetric(
    "swift_proxy_local_reads_total", "Reads of own devices, by where they were answered.", ("answered",)
)


class LocalServer(Protocol):
    """The object server of own devices, as far as reads go."""

    def read_hit(self, request: Request, hits: frozenset[int]) -> Response | None:
        """Return the response to a read if its status is one of ``hits``; None, and no trace, otherwise."""


@dataclass(frozen=True)
class LocalEndpoint:
    """An object server of this machine and its address; port 0 is any."""

    is_own_address: Callable[[str], bool]
    port: int
    server: LocalServer


class LocalReads:
    """Answers reads of own devices in this process (``cluster.transport.Transport``)."""

    def __init__(
        self,
        network: Transport,
        endpoints: Sequence[LocalEndpoint],
        metrics: Registry,
        *,
        wait_s: float = LOCAL_WAIT_S,
        penalty_s: float = PENALTY_S,
        disk: Disk | None = None,
    ):
        self.network = network
        self.disk = disk or Disk()
        self.wait_s = wait_s
        self._penalty_s = penalty_s
        self._endpoints = endpoints
        self._servers: dict[tuple[str, int], LocalServer | None] = {}
        self._until_s = 0.0
        #: Path prefix of a device → until when its reads go over the network, monotonic seconds.
        self._late: dict[str, float] = {}
        #: Path prefix of a late device → the read that tries it again.
        self._trials: dict[str, NodeRequest] = {}
        #: Key of a device → the thread of ``threads_of``.
        self._pools: dict[str, green.ThreadPool] = {}
        self.answered_here = _LOCAL.of(metrics, answered="here")
        self.answered_elsewhere = _LOCAL.of(metrics, answered="network")

    def request(self, request: NodeRequest) -> BackendResponse:
        return self.network.request(request)

    def stream(self, request: NodeRequest) -> Exchange:
        if request.method in _READS:
            server = self.server_of(request.node)
            if server is not None and self._is_answered_here(request):
                return LocalExchange(self, request, server)
        return self.network.stream(request)

    def has_endpoint(self, node: Destination) -> bool:
        """Return True if a node is an endpoint of this machine; not for the event loop: it looks up names."""
        return self._find(node.ip, node.port) is not None

    def threads_of(self, node: Destination) -> green.ThreadPool:
        """Return where parts of a device's files are read that are not in memory."""
        pool = self._pools.get(node.key)
        if pool is None:
            pool = self._pools[node.key] = green.ThreadPool(1, f"local-{node.key}")
        return pool

    def is_own(self, node: Destination) -> bool:
        """Return True if a node's devices are read in this process."""
        return self.server_of(node) is not None

    def server_of(self, node: Destination) -> LocalServer | None:
        """Return the object server of this machine at a node's address; None for other machines."""
        address = (node.ip, node.port)
        now = time.monotonic()
        if now > self._until_s:
            self._until_s = now + ADDRESSES_S
            self._servers.clear()
        if address not in self._servers:
            # While this waits another request may clear the table.
            found = self._servers[address] = self._find_in_thread(*address)
            return found
        return self._servers[address]

    def _find_in_thread(self, ip: str, port: int) -> LocalServer | None:
        try:
            with green.Timeout(self.wait_s):
                return _threads.call(self._find, ip, port)
        except green.DeadlineExceeded:
            return None

    def _find(self, ip: str, port: int) -> LocalServer | None:
        for endpoint in self._endpoints:
            if endpoint.port in (0, port) and endpoint.is_own_address(ip):
                return endpoint.server
        return None

    def _is_answered_here(self, request: NodeRequest) -> bool:
        """Return True for objects on devices that are not late; False for reads of the newest.

        After its time a late device gets one read, and the others when that one was in time: calls that
        wait for threads of a device that hangs would pile up.
        """
        if request.path.count("/") < 5 or is_true(request.headers.get("x-newest")):
            return False
        until = self._late.get(_device_of(request)) if self._late else None
        if until is None:
            return True
        if time.monotonic() < until:
            return False
        self.set_late(request)
        self._trials[_device_of(request)] = request
        return True

    def end_trial(self, request: NodeRequest) -> None:
        """Read a device here again if ``request`` has tried it."""
        device = _device_of(request)
        if self._trials.get(device) is request:
            del self._trials[device]
            self._late.pop(device, None)

    def set_late(self, request: NodeRequest) -> None:
        """Send the reads of a request's device over the network for a while."""
        self._late[_device_of(request)] = time.monotonic() + self._penalty_s

    def __repr__(self) -> str:
        return f"LocalReads({self.network!r})"


def _device_of(request: NodeRequest) -> str:
    return request.path[: request.path.index("/", 1)]


class LocalExchange:
    """A read that is answered in this process, else over the network (``cluster.transport.Exchange``)."""

    __slots__ = ("_reads", "_request", "_server", "_response", "_network", "_error")

    def __init__(self, reads: LocalReads, request: NodeRequest, server: LocalServer):
        self._reads = reads
        self._request = request
        self._server = server
        self._response: BackendResponse | None = None
        self._network: Exchange | None = None
        #: Why the network could not be used.
        self._error: TransportError | None = None

    def wait_response_start(self, within_s: float) -> bool:
        self._answer()
        return self._network is None or self._network.wait_response_start(within_s)

    def response(self) -> BackendResponse:
        """Return the response, its body as a stream; raises ``TransportError``."""
        self._answer()
        if self._error is not None:
            raise self._error
        if self._response is None:
            assert self._network is not None
            self._response = self._network.response()
        return self._response

    def _answer(self) -> None:
        """Answer the request here once, or send it over the network."""
        if self._response or self._network or self._error:
            return
        request = self._request
        path, _, query = request.path.partition("?")
        asked = Request(request.method, path, dict(request.headers), query=query)
        asked.remote_addr = request.node.ip
        try:
            with green.Timeout(self._reads.wait_s):
                found = self._server.read_hit(asked, _HITS)
            self._reads.end_trial(request)
        except green.DeadlineExceeded:
            # The thread that reads lets the object go when it returns.
            self._reads.set_late(request)
            found = None
        if found is None:
            self._reads.answered_elsewhere.inc()
            try:
                self._network = self._reads.network.stream(request)
            except TransportError as error:
                # The wait for the response raises it.
                self._error = error
            return
        self._reads.answered_here.inc()
        self._response = _backend_response(request, found, self._reads)

    @property
    def continue_headers(self) -> HeaderMap:
        return {}

    def send(self, data: bytes | memoryview) -> None:
        """Refuse: reads have no body."""
        raise AssertionError("a read has no body")

    def finish(self, trailers: HeaderMap | None = None) -> None:
        """End a body that reads do not have."""

    def wait_continue(self) -> BackendResponse | None:
        return self.response()

    def duplex(self, timeout_s: float) -> BackendResponse:
        """Return the response: the request has no body."""
        return self.response()

    def abort(self) -> None:
        if self._network is not None:
            self._network.abort()
        elif self._response is not None:
            self._response.stream.close()


def _backend_response(request: NodeRequest, found: Response, reads: LocalReads) -> BackendResponse:
    """Return a response of the handler as it would arrive over the network."""
    headers, body = found.headers, found.body
    if "content-length" not in headers:
        empty = found.status == 304
        headers["content-length"] = "0" if empty or not isinstance(body, bytes) else str(len(body))
    if request.method == "HEAD" or found.status == 304:
        found.discard()
        body = b""
    stream = InMemoryBody(body) if isinstance(body, bytes) else LocalBody(request, body, reads)
    return BackendResponse(found.status, headers, b"", found.reason, stream)


class LocalBody(ResponseBody):
    """The body of a local response; a device that is late breaks it off as a node would."""

    __slots__ = ("length", "_request", "_source", "_reads", "_blocks", "_piece", "_left", "_reading")

    def __init__(self, request: NodeRequest, source: ResponseBody, reads: LocalReads):
        self._reads = reads
        #: A thread reads the file.
        self._reading: green.Task[bytes] | None = None
        self.length = source.length
        self._request = request
        self._source = source
        self._blocks: Iterator[bytes | FileBody] = iter(source)
        #: The rest of the piece at hand.
        self._piece: memoryview | FileBody = memoryview(b"")
        self._left = source.length

    def _next(self) -> memoryview | FileBody | None:
        """Return what is left of a piece; None at the end. Raises ``BrokenOff``."""
        piece = self._piece
        if piece.length if isinstance(piece, FileBody) else piece:
            return piece
        if not self._left:
            return None
        try:
            with green.Timeout(self._request.timeouts.node_timeout):
                got = next(self._blocks, b"")
        except green.DeadlineExceeded:
            raise self._broken("timeout")
        except (BodyError, OSError) as error:
            raise self._broken(str(error))
        if isinstance(got, FileBody):
            # A copy: what was sent is cut off.
            self._piece = FileBody(got.fd, got.offset, got.length, _nothing_to_close)
        else:
            self._piece = memoryview(got)
            if not got and self._left:
                raise self._broken(f"{self._left} bytes missing")
            if not got:
                return None
        return self._piece

    def read_into(self, buffer: memoryview) -> int:
        """Fill a buffer with what is there; 0 at the end; raises ``BrokenOff``."""
        piece = self._next()
        if piece is None:
            return 0
        if isinstance(piece, FileBody):
            size = self._read_file(piece, buffer[: piece.length])
            if not size:
                raise self._broken("the file was cut")
            self._take_of_file(piece, size)
            return size
        size = min(len(buffer), len(piece))
        buffer[:size] = piece[:size]
        self._piece = piece[size:]
        self._count(size)
        return size

    def _read_file(self, piece: FileBody, buffer: memoryview) -> int:
        """Fill a buffer from a file, on the event loop if the bytes are in memory; raises ``BrokenOff``."""
        if self._is_at_hand(piece, len(buffer)):
            return os.preadv(piece.fd, [buffer], piece.offset)
        threads = self._reads.threads_of(self._request.node)
        task = self._reading = green.spawn(threads.call, os.pread, piece.fd, len(buffer), piece.offset)
        try:
            with green.Timeout(self._request.timeouts.node_timeout):
                data = task.wait()
        except green.DeadlineExceeded:
            raise self._broken("timeout")
        except OSError as error:
            raise self._broken(str(error))
        buffer[: len(data)] = data
        return len(data)

    def _is_at_hand(self, piece: FileBody, size: int) -> bool:
        """Return True if the bytes of a file are in memory, by a sample of their pages."""
        disk, probes = self._reads.disk, (*range(0, size - 1, _PROBE_EVERY_BYTES), size - 1)
        try:
            return all(disk.read_cached(piece.fd, 1, piece.offset + at) is not None for at in probes)
        except OSError:
            # The thread that reads says what is wrong.
            return False

    def splice_into(self, pipe: int, size: int) -> int:
        """See ``ResponseBody``; ranges of files that are in memory move without being copied."""
        piece = self._next()
        if not isinstance(piece, FileBody):
            return 0
        size = min(size, piece.length)
        if not self._is_at_hand(piece, size):
            return 0
        try:
            moved = os.splice(piece.fd, pipe, size, offset_src=piece.offset)
        except OSError:
            # Some filesystems cannot do it; if the file cannot be read, reading says so.
            return 0
        self._take_of_file(piece, moved)
        return moved

    def _take_of_file(self, piece: FileBody, size: int) -> None:
        piece.offset += size
        piece.length -= size
        self._count(size)

    def _count(self, size: int) -> None:
        if self._left is not None:
            self._left -= size
            if not self._left:
                self.close()

    def _broken(self, reason: str) -> BrokenOff:
        self.close()
        return BrokenOff(f"body from {self._request.node.key} broke off: {reason}")

    def close(self) -> None:
        """Let the object go."""
        self._left = 0
        self._piece = memoryview(b"")
        reading, self._reading = self._reading, None
        if reading is not None and not reading.done:
            # The file stays open for the thread.
            reading.on_exit(self._source.close)
        else:
            self._source.close()


def _nothing_to_close() -> None:
    """Close nothing: the file belongs to the source."""
