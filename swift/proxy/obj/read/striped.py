"""A large replicated object from several nodes at once, by a transfer plan (``proxy.obj.read.plan``).

A green thread for each node fetches units with ranges of their own and leaves them in order for the client.
Every response must be of the same version: ETag, data timestamp and range are compared, and a node with
another version is not used. A node that fails is replaced by the next of the ring, and its units are fetched
by others. When no node has the version any more, because another one was uploaded, the rest comes from the
response that was open first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from swift import green
from swift.base.etag import unquote_etag
from swift.base.ranges import Span
from swift.cluster.placement import NodeIterator
from swift.cluster.transport import BackendResponse, TransportError
from swift.http import fields
from swift.http.body import BodyError, ResponseBody
from swift.http.readahead import PrefetchWindow
from swift.proxy.backend import Backends
from swift.proxy.obj.read.plan import TransferPlan, TransferRates, TransferSchedule, make_plan
from swift.proxy.obj.read.resume import span_of
from swift.proxy.reading import ReadPlan
from swift.proxy.settings import ProxySettings
from swift.ring.device import Node

#: Bytes of a response that are skipped are read in pieces of this size.
SKIP_BYTES = 1 << 20


class StripedBody(ResponseBody):
    """The bytes of a plan, in order."""

    def __init__(
        self,
        backends: Backends,
        plan: ReadPlan,
        transfer: TransferPlan,
        nodes: NodeIterator,
        source: tuple[BackendResponse, Node],
        rates: TransferRates,
    ):
        self.length: int | None = transfer.span.length
        self._backends = backends
        self._plan = plan
        self._nodes = nodes
        self._rates = rates
        self._clock = rates.clock
        self._schedule = TransferSchedule(transfer)
        response, node = source
        self._first_node = node
        self._version = _version_of(response)
        #: The response that was open first, and how far it was read. It is the last resort, because its node
        #: has the version open, whatever is uploaded meanwhile.
        self._stream: ResponseBody | None = response.stream
        self._position = transfer.span.start
        self._window: PrefetchWindow[memoryview] = PrefetchWindow()
        self._rest = memoryview(b"")
        self._workers = 0
        #: Number of workers without a node. Such a worker ends only when all others have none either.
        self._falling_back = 0
        #: The response that was open first is not being read: it may be closed.
        self._is_first_read = False
        self._start(0, partial(self._run_first_worker, node, response))
        for number in range(1, transfer.width):
            self._start(number, partial(self._run_worker, number, None))

    # fetching

    def _start(self, number: int, work: Callable[[], None]) -> None:
        self._workers += 1

        def run() -> None:
            try:
                work()
            finally:
                self._workers -= 1
                self._window.notify()

        if number == 0:
            # The worker with the open response fetches the first unit.
            self._schedule.take(0, self._clock.monotonic())
        green.spawn_detached(run)

    def _run_first_worker(self, node: Node, response: BackendResponse) -> None:
        """Read the first unit from the open response; keep the rest of that response as a last resort."""
        keeps = self._deliver(
            0, 0, node, partial(self._read_first, response.stream, self._schedule.plan.bytes_of(0))
        )
        self._is_first_read = True
        if not keeps or self._window.is_closed:
            self._release_stream()
        self._run_worker(0, node if keeps else None)

    def _run_worker(self, number: int, node: Node | None) -> None:
        """Fetch units until there are none, from one node and, when it fails, from others."""
        while not self._window.is_closed and not self._schedule.is_over:
            unit = self._schedule.take(number, self._clock.monotonic())
            if unit is None:
                self._wait()
                continue
            if node is None:
                node = next(self._nodes, None)
            if node is None:
                self._schedule.failed(number, unit)
                self._fall_back(number)
                return
            span = self._schedule.plan.bytes_of(unit)
            if not self._deliver(number, unit, node, partial(self._fetch, node, span)):
                node = None

    def _fall_back(self, number: int) -> None:
        """Go on with the response that was open first, because no node is left to request.

        Only the last worker without a node does so.
        """
        self._falling_back += 1
        self._window.notify()
        while (
            self._workers > self._falling_back and not self._window.is_closed and not self._schedule.is_over
        ):
            self._wait()
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            while not self._window.is_closed and not self._schedule.is_over:
                unit = self._schedule.take(number, self._clock.monotonic())
                if unit is None:
                    self._wait()
                    continue
                span = self._schedule.plan.bytes_of(unit)
                if not self._deliver(number, unit, self._first_node, partial(self._read_first, stream, span)):
                    return
        finally:
            stream.close()

    def _read_first(self, stream: ResponseBody, span: Span) -> memoryview | None:
        """Return bytes of the response that was open first; None when it is past them."""
        while self._position < span.start:
            skipped = self._read(stream, min(SKIP_BYTES, span.start - self._position))
            if skipped is None:
                return None
            self._position += len(skipped)
        data = self._read(stream, span.length) if self._position == span.start else None
        self._position += span.length
        return data

    def _request_span(self, node: Node, span: Span) -> BackendResponse | None:
        """Request these bytes of the same version from a node; return None when it has none."""
        request = self._plan.request_rest(node, f"bytes={span.start}-{span.stop - 1}")
        response = self._backends.stream_response(request)
        if response is None:
            return None
        if response.status != 206 or _version_of(response) != self._version or span_of(response) != span:
            response.stream.close()
            return None
        return response

    def _fetch(self, node: Node, span: Span) -> memoryview | None:
        """Fetch a unit with a request of its own; return None when the node has none."""
        began = self._clock.monotonic()
        response = self._request_span(node, span)
        if response is None:
            return None
        try:
            data = self._read(response.stream, span.length)
        finally:
            response.stream.close()
        if data is not None:
            self._rates.record(node, span.length, self._clock.monotonic() - began)
        return data

    def _deliver(self, number: int, unit: int, node: Node, read: Callable[[], memoryview | None]) -> bool:
        """Fetch a unit and put it into the window; return False when the node sends nothing more."""
        data: memoryview | None = None
        try:
            data = read()
        except TransportError as error:
            self._backends.record_failure(node, error, self._plan.headers)
        if data is None:
            self._schedule.failed(number, unit)
        elif self._schedule.done(number, unit, self._clock.monotonic()):
            self._window.put(unit, data)
        self._window.notify()
        return data is not None

    def _read(self, body: ResponseBody, size: int) -> memoryview | None:
        """Read exactly so many bytes; return None when the body has fewer, or the client is gone."""
        buffer = memoryview(bytearray(size))
        got = 0
        while got < size:
            more = body.read_into(buffer[got:])
            if not more or self._window.is_closed:
                return None
            got += more
        return buffer

    def _wait(self) -> None:
        self._window.wait(self._schedule.late_s)

    # reading

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer with what is there; 0 at the end; raises ``BodyError``."""
        if not self._rest:
            self._rest = self._next()
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _next(self) -> memoryview:
        """Return the next unit, empty at the end."""
        schedule = self._schedule
        if schedule.is_over:
            return memoryview(b"")
        unit = self._window.get(lambda: self._workers > 0)
        if unit is None:
            raise BodyError(f"no other source after {schedule.consumed} of {schedule.plan.units} units")
        schedule.consume()
        self._window.notify()
        return unit

    def close(self) -> None:
        """Stop the workers after what they are reading."""
        self._window.close()
        self._rest = memoryview(b"")
        if self._is_first_read:
            self._release_stream()

    def _release_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def __repr__(self) -> str:
        return f"<StripedBody {self._schedule}>"


def make_striped_body(
    backends: Backends,
    plan: ReadPlan,
    nodes: NodeIterator,
    source: tuple[BackendResponse, Node],
    settings: ProxySettings,
    rates: TransferRates,
) -> StripedBody | None:
    """Return a striped body for a response; None when one node is as good."""
    response, node = source
    if plan.method != "GET" or plan.newest or _version_of(response) is None:
        return None
    span = span_of(response)
    if span is None:
        return None
    nodes.reorder(lambda others: rates.slow_last(rates.fastest_first(others)))
    # Primaries that were tried before may be replaced by handoffs with unknown rates.
    known: list[float | None] = [rates.rate_of(node), *map(rates.rate_of, nodes.primaries_left)]
    known += [None] * (nodes.primary_count - len(known))
    transfer = make_plan(
        span,
        rates=known[: nodes.primary_count],
        unit=settings.striping_unit,
        memory=settings.striping_memory,
        from_bytes=settings.striping_from,
    )
    if transfer is None:
        return None
    backends.log_debug(lambda: f"{plan.path}: {transfer}", plan.headers)
    return StripedBody(backends, plan, transfer, nodes, source, rates)


def _version_of(response: BackendResponse) -> tuple[str, str] | None:
    """Return the ETag and timestamp of a version; None when a response lacks one."""
    etag = unquote_etag(response.headers.get("etag", ""))
    stamp = response.headers.get(fields.BACKEND_DATA_TIMESTAMP) or response.headers.get("x-timestamp", "")
    return (etag, stamp) if etag and stamp else None
