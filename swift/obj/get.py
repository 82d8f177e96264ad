"""GET and HEAD: from an opened object to a response (spec: object-server.md §3, §6, §7).

A small object that is in memory is read, verified and answered on the event loop; everything else is read
in the device's thread pool, one verified block ahead of what is being sent. A body that turns out to be
damaged is quarantined and never sent to its end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from swift.base.ranges import ByteRanges, Span
from swift.base.truth import is_true
from swift.green import Task, spawn
from swift.http import fields
from swift.http.body import BodyError, FileBody, ResponseBody
from swift.http.conditional import failed_condition, is_conditional
from swift.http.headers import HeaderMap, lower_name
from swift.http.request import Request
from swift.http.response import HTTPError, Response, default_body, error_response
from swift.obj.request import condition_etag, is_flagged, metadata_value
from swift.obj.settings import ObjectSettings
from swift.store.api import ABSENT, ObjectState, StoredObject
from swift.store.errors import CorruptBody
from swift.store.handle import OpenObject
from swift.wire.byteranges import Multipart

#: Objects up to this size are read whole, and on the event loop when they are in memory.
SMALL_BYTES = 65536
GATHER_BYTES = 1 << 20
#: Of a 503 about an object that is there, or was a moment ago.
UNREADABLE: HeaderMap = {fields.BACKEND_UNREADABLE: "true"}
#: Of a 529 about an object that is there and may be an old one.
UNCONFIRMED: HeaderMap = {fields.BACKEND_UNCONFIRMED: "true"}
#: Pieces of a body: bytes, or a range of the open file.
Piece = bytes | FileBody
_METADATA = ("X-Object-Meta-", fields.OBJECT_SYSMETA.title(), fields.OBJECT_TRANSIENT_SYSMETA.title())


def object_headers(state: ObjectState, stored: frozenset[str]) -> HeaderMap:
    """Return the headers of a found object; ``stored`` are the allowed headers in lower case."""
    metadata = state.metadata
    headers: HeaderMap = {"content-type": metadata.get("Content-Type") or "application/octet-stream"}
    for name, value in metadata.items():
        if name.startswith(_METADATA):
            headers[lower_name(name)] = value
        else:
            lower = lower_name(name)
            if lower in stored:
                headers[lower] = value
    timestamp = state.timestamp
    headers["etag"] = f'"{metadata.get("ETag", "")}"'
    headers["last-modified"] = timestamp.http_date
    headers["x-timestamp"] = timestamp.normal
    headers[fields.BACKEND_TIMESTAMP] = timestamp.internal
    headers[fields.BACKEND_DATA_TIMESTAMP] = state.data_timestamp.internal
    if state.durable_timestamp is not None:
        headers[fields.BACKEND_DURABLE_TIMESTAMP] = state.durable_timestamp.internal
    if state.fragments:
        headers[fields.BACKEND_FRAGMENTS] = json.dumps({t.internal: found for t, found in state.fragments})
    return headers


def keeps_cache(request: Request, state: ObjectState, settings: ObjectSettings) -> bool:
    """Return True if the kernel should keep the object in memory after it was read."""
    if state.size > settings.keep_cache_size:
        return False
    headers = request.headers
    if settings.keep_cache_private or ("x-auth-token" not in headers and "x-storage-token" not in headers):
        return True
    return settings.keep_cache_slo_manifest and is_true(state.metadata.get("X-Static-Large-Object"))


def not_found(request: Request, state: ObjectState) -> Response:
    """Return 404 (or 412 for ``If-Match: *``) with the time of a tombstone or an expired object.

    Raises ``HTTPError`` 503 if this request has put files away: the object is not known to be absent.
    """
    if state.quarantine_reason and state.kind == ABSENT:
        raise HTTPError(503, headers=dict(UNREADABLE))
    headers: HeaderMap = {}
    if state.timestamp:
        headers[fields.BACKEND_TIMESTAMP] = state.timestamp.internal
    if failed_condition(request.headers, etag=None, last_modified_s=None, exists=False):
        headers["content-type"] = "text/html; charset=UTF-8"
        return Response(412, headers)
    return error_response(404, headers=headers)


def check_confirmed(request: Request, state: ObjectState) -> None:
    """Raise ``HTTPError`` 529 for an object that may be an old one, unless the request accepts that."""
    if not state.is_unconfirmed:
        return
    accepting = (fields.BACKEND_ACCEPT_UNCONFIRMED, fields.BACKEND_REPLICATION)
    if not any(is_flagged(request.headers, name) for name in accepting):
        # Unlike 503 it does not count against the node, but with proxies of OpenStack Swift.
        raise HTTPError(529, headers=dict(UNCONFIRMED))


def unmet_condition(request: Request, state: ObjectState, headers: HeaderMap) -> Response | None:
    """Return the 304 or 412 that the request's conditions call for."""
    if not is_conditional(request.headers):
        return None
    status = failed_condition(
        request.headers,
        etag=condition_etag(request.headers.get(fields.BACKEND_ETAG_IS_AT, ""), state),
        last_modified_s=state.timestamp.ceil_seconds,
    )
    if status is None:
        return None
    headers["content-length"] = "0"
    return Response(status, headers)


def wanted_ranges(request: Request, state: ObjectState) -> ByteRanges | None:
    """Return the Range header, unless it is malformed or the object's metadata says to ignore it."""
    header = request.headers.get("range")
    if header is None:
        return None
    for name in request.headers.get(fields.BACKEND_IGNORE_RANGE, "").split(","):
        if metadata_value(state, name.strip()) is not None:
            return None
    return ByteRanges.parse(header)


def respond(
    request: Request,
    stored: OpenObject,
    headers: HeaderMap,
    failed: Callable[[OSError], None] = lambda _error: None,
) -> Response:
    """Return the 200, 206 or 416 for an opened object; takes ownership of it.

    Raises ``CorruptBody`` and OSError; ``failed`` is called with an OSError after the response has begun.
    """
    state = stored.state
    size = state.size
    spans = [Span(0, size)]
    ranges = wanted_ranges(request, state)
    status = 200
    if ranges is not None:
        spans = ranges.resolve(size)
        if not spans:
            stored.close()
            headers["content-range"] = f"bytes */{size}"
            return Response(416, headers, default_body(416))
        if size:
            status = 206
    if len(spans) > 1:
        return _multipart(spans, stored, headers, failed)
    span = spans[0]
    if status == 206:
        headers["content-range"] = span.content_range(size)
    headers["content-length"] = str(span.length)
    if size <= SMALL_BYTES:
        data = stored.read_small(SMALL_BYTES)
        return Response(status, headers, data if span.length == size else data[span.start : span.stop])
    body = BlockBody(stored.pieces(span.start, span.stop), span.length, stored, failed)
    return _with_body(Response(status, headers), body)


def _with_body(response: Response, body: BlockBody) -> Response:
    whole = body.only_block()
    response.body = body if whole is None else whole
    return response


def _multipart(
    spans: list[Span],
    stored: OpenObject,
    headers: HeaderMap,
    failed: Callable[[OSError], None],
) -> Response:
    parts = Multipart(spans, stored.state.size, headers["content-type"])
    headers["content-type"] = parts.content_type
    headers["content-length"] = str(parts.length)
    if stored.state.size <= SMALL_BYTES:
        data = stored.read_small(SMALL_BYTES)
        return Response(206, headers, b"".join(parts.body(lambda span: (data[span.start : span.stop],))))

    def arrange(raw: StoredObject) -> Iterator[bytes]:
        return gathered(parts.body(lambda span: raw.blocks(span.start, span.stop)))

    body = BlockBody(stored.transformed(arrange), parts.length, stored, failed)
    return _with_body(Response(206, headers), body)


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Small pieces joined to larger ones, to save a turn of the thread pool for each."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= GATHER_BYTES:
            yield waiting[0] if len(waiting) == 1 else b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


class BlockBody(ResponseBody):
    """A body whose blocks are read in the device's pool, one ahead of what is being sent."""

    def __init__(
        self,
        source: Iterator[Piece],
        length: int,
        stored: OpenObject,
        failed: Callable[[OSError], None] = lambda _error: None,
    ):
        self._failed = failed
        self.length: int | None = length
        self._source = source
        self._left = length
        self._stored = stored
        self._ahead: Task[Piece] | None = None
        self._first: Piece = b""
        self._closed = False

    def _read(self) -> Piece:
        return next(self._source, b"")

    def _take(self) -> Piece:
        """Return the block that is being read, reading it first if need be."""
        task = self._ahead
        if task is None:
            # In a task of its own, because the file must stay open when this green thread is killed.
            task = self._ahead = spawn(self._read)
        block: Piece = task.wait()
        self._ahead = None
        self._left -= block.length if isinstance(block, FileBody) else len(block)
        return block

    def only_block(self) -> bytes | None:
        """Read the first block now, so that damage there can still be answered with a status.

        Returns it when it is everything. Raises ``CorruptBody`` and OSError.
        """
        try:
            self._first = self._take()
        except BaseException:
            self.close()
            raise
        if self._left or isinstance(self._first, FileBody):
            return None
        self.close()
        return self._first

    def __iter__(self) -> Iterator[Piece]:
        block, self._first = self._first, b""
        try:
            while block:
                if self._left:
                    self._ahead = spawn(self._read)
                yield block
                block = self._take() if self._left else b""
        except CorruptBody as error:
            raise BodyError(str(error))
        except OSError as error:
            self._failed(error)
            raise BodyError(f"the file cannot be read: {error.strerror}")

    def close(self) -> None:
        """Release the object, after a read that is still going on."""
        if self._closed:
            return
        self._closed = True
        task, self._ahead = self._ahead, None
        if task is not None and not task.done:
            task.on_exit(self._stored.close)
        else:
            self._stored.close()

    def __repr__(self) -> str:
        return f"<BlockBody {self._left} bytes left>"
