"""PUT sessions: reception of a request body into a draft, and the stages around it.

A small body is read whole. A large one is received into two buffers in turn: while a thread writes and
checksums one, the other fills from the socket, so no byte is copied on its way and memory stays bounded.
One that may be small gets a small buffer first: a hundred small archives at once are not to take a hundred
megabytes.

Multi-stage PUT: footers after the body, and a commit in a second round (spec: object-server.md §10).

The body is a MIME stream: the object, then a JSON document of footers; with two-phase commit the client
waits for a second ``100 Continue``, which says that the object is on disk, before it confirms. Until the
confirmation a fragment archive is not durable.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import md5
from typing import Any, TypeVar

from swift.base.etag import unquote_etag
from swift.green import DeadlineExceeded, Task, Timeout, spawn
from swift.http import fields
from swift.http.body import BodyTimeout, ClientDisconnected, RequestBody
from swift.http.headers import HeaderMap, lower_name, title_case, wire_value
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.obj.put import (
    USER_PREFIXES,
    PutPlan,
    PutResult,
    refusal,
    store_commit,
    store_draft,
    store_small,
)
from swift.obj.request import is_flagged
from swift.obj.reserved import ReservedChange, ReservedPut
from swift.obj.settings import ObjectSettings
from swift.platform.buffers import BufferPool
from swift.store.api import ObjectKey, ObjectState, ReadOptions
from swift.store.handle import OpenDraft, StoreHandle
from swift.wire import etagtrailer, reservation
from swift.wire.mime import BadMime, DocumentBegins, DocumentData, DocumentEnds, Event, MimeParser

R = TypeVar("R")

#: Bodies up to this size are held in memory and written in one go.
SMALL_BYTES = 256 << 10
#: Size of the pieces in which a large body is written to the disk.
BATCH_BYTES = 512 << 10
#: Size of the first receive buffer of a body that may be small.
FIRST_BYTES = 64 << 10

_buffers = BufferPool(BATCH_BYTES, kept_max=16)

_MD5 = re.compile(r"[0-9a-f]{32}\Z")


def read_small(body: RequestBody, size: int) -> bytes:
    """Read a body of ``size`` bytes; raises ``ClientDisconnected`` when there are fewer or more."""
    data = body.read(size) if size else b""
    if len(data) != size:
        pieces = [data]
        got = len(data)
        while got < size:
            piece = body.read(size - got)
            if not piece:
                raise ClientDisconnected(f"received {got} of {size} bytes")
            pieces.append(piece)
            got += len(piece)
        data = b"".join(pieces)
    if body.length != size and body.read(1):
        raise ClientDisconnected(f"received more than the announced {size} bytes")
    return data


class DraftWriter:
    """Feeds a draft from the event loop: one batch is written and hashed while the next one arrives.

    Writes run in tasks of their own, so that a killed request cannot close a file that a thread is
    still writing to.
    """

    def __init__(self, draft: OpenDraft):
        self.draft = draft
        self.size = 0
        self._task: Task[None] | None = None

    def write(self, batch: bytes | memoryview) -> None:
        """Hand over a batch, left alone until the next call returns; raises an earlier one's error."""
        self.size += len(batch)
        self.wait()
        self._task = spawn(self.draft.write, batch)

    def wait(self) -> None:
        """Wait until everything is written; raises the error of the last write."""
        task = self._task
        if task is not None:
            task.wait()
            self._task = None

    def abandon(self) -> None:
        """Discard the draft, after a write that is still going on."""
        task, self._task = self._task, None
        if task is not None and not task.done:
            task.on_exit(self.draft.discard)
        else:
            self.draft.discard()


class _DoubleBuffer:
    """The buffers of a body: a small one where that may do, then two large ones in turn, made when needed."""

    def __init__(self, size: int | None):
        self._may_be_small = size is None or size <= FIRST_BYTES
        self._large: list[memoryview] = []
        self._number = 0

    def next(self) -> memoryview:
        """Return the buffer to fill; that of the turn before may still be in use, no earlier one."""
        if self._may_be_small:
            self._may_be_small = False
            return memoryview(bytearray(FIRST_BYTES))
        if len(self._large) < 2:
            self._large.append(_buffers.acquire())
        self._number += 1
        return self._large[(self._number - 1) % 2]

    def end(self) -> None:
        """Return the buffers to the pool. Not after an error: a thread may still write from one of them."""
        _buffers.release(*self._large)


def receive_all(
    body: RequestBody, writer: DraftWriter, *, size: int | None, size_max: int, deadline: float
) -> None:
    """Receive and write a body of ``size`` bytes, or of at most ``size_max`` if the size is unknown.

    Raises ``HTTPError`` 413, ``ClientDisconnected`` for another size than announced, ``BodyTimeout`` after
    ``deadline`` (monotonic seconds), and what the draft raises.
    """
    buffers = _DoubleBuffer(size)
    limit = size_max if size is None else size
    at_end = False
    while not at_end:
        buffer = buffers.next()
        batch = _fill(body, buffer, deadline)
        at_end = len(batch) < len(buffer)
        if writer.size + len(batch) > limit:
            if size is None:
                raise HTTPError(413, "Your request is too large.", content_type="text/plain")
            raise ClientDisconnected(f"received more than the announced {limit} bytes")
        if batch:
            # Waits for the batch before, whose buffer is the next to be filled.
            writer.write(batch)
    writer.wait()
    buffers.end()
    if size is not None and writer.size != size:
        raise ClientDisconnected(f"received {writer.size} of {size} bytes")


def receive_exactly(body: RequestBody, writer: DraftWriter, size: int, deadline: float) -> None:
    """Receive and write the next ``size`` bytes of a body; raises as ``receive_all``."""
    buffers, left = _DoubleBuffer(size), size
    while left:
        batch = _fill(body, buffers.next()[:left], deadline)
        if not batch:
            raise ClientDisconnected(f"received {size - left} of {size} bytes")
        writer.write(batch)
        left -= len(batch)
    writer.wait()
    buffers.end()


def _fill(body: RequestBody, buffer: memoryview, deadline: float) -> memoryview:
    """Return the part of the buffer that was filled: all of it, but at the end of the body."""
    filled = 0
    while filled < len(buffer) and (got := body.read_into(buffer[filled:])):
        filled += got
        if time.monotonic() > deadline:
            raise BodyTimeout("the upload takes too long")
    return buffer[:filled]


def accept_trailers(draft: OpenDraft, trailers: HeaderMap) -> None:
    """Take the sender's MD5 from trailers or footers (``wire.etagtrailer``).

    Raises ``ClientDisconnected`` when it sent none, ``HTTPError`` 422 when other bytes arrived than it sent.
    """
    etag, sums = trailers.get(etagtrailer.ETAG), trailers.get(etagtrailer.SUMS)
    if not etag or not sums:
        raise ClientDisconnected("the announced trailers are missing")
    if not _MD5.match(etag) or not draft.accept_etag(etag, sums):
        raise HTTPError(422)


FOOTER_BYTES_MAX = 1 << 20
_ORDERS = frozenset((reservation.RESERVE, reservation.RELEASE))


@dataclass(frozen=True, slots=True)
class PutStages:
    """Stages of a PUT."""

    boundary: str
    footers: bool
    commit: bool
    #: The object is reserved before it is stored (``wire.reservation``).
    reserve: bool = False
    #: The footers bring the object document's MD5 (``wire.etagtrailer``).
    etag_follows: bool = False

    @property
    def continue_headers(self) -> HeaderMap:
        """Headers of both ``100 Continue`` responses; they tell the client which stages the server
        supports.
        """
        headers: HeaderMap = {reservation.OFFER: "yes"} if self.reserve else {}
        if self.etag_follows:
            headers[etagtrailer.OFFER] = etagtrailer.CRC32
        if self.commit:
            headers["x-obj-multiphase-commit"] = "yes"
        if self.footers:
            headers["x-obj-metadata-footer"] = "yes"
        return headers


def parse_stages(request: Request) -> PutStages | None:
    """Return the stages a request asks for, None for an ordinary PUT; raises ``HTTPError`` 400."""
    headers = request.headers
    if (
        fields.BACKEND_OBJ_METADATA_FOOTER not in headers
        and fields.BACKEND_OBJ_MULTIPHASE_COMMIT not in headers
    ):
        return None
    footers = is_flagged(headers, fields.BACKEND_OBJ_METADATA_FOOTER)
    commit = is_flagged(headers, fields.BACKEND_OBJ_MULTIPHASE_COMMIT)
    if not footers and not commit:
        return None
    boundary = headers.get(fields.BACKEND_OBJ_BOUNDARY)
    if not boundary:
        raise HTTPError(400, "no MIME boundary")
    return PutStages(
        boundary,
        footers,
        commit,
        # Both need a sender that hears what the 100s say.
        reserve=commit and request.expects_continue and reservation.is_offered(headers),
        etag_follows=footers and request.expects_continue and etagtrailer.is_offered(headers),
    )


class MimeBody:
    """The documents of a request body, one after the other."""

    def __init__(self, body: RequestBody, stages: PutStages, *, chunk_bytes: int, deadline: float):
        self._body = body
        self._stages = stages
        self._chunk = chunk_bytes
        self._deadline = deadline
        self._events: deque[Event] = deque()
        try:
            self._parser = MimeParser(stages.boundary)
        except BadMime as error:
            raise HTTPError(400, str(error))

    def _next(self) -> Event | None:
        """Return the next event.

        None at the end of the (current) body. Raises ``HTTPError`` and body errors.
        """
        while not self._events:
            piece = self._body.read(self._chunk)
            if not piece:
                return None
            if time.monotonic() > self._deadline:
                raise BodyTimeout("the upload takes too long")
            try:
                self._events.extend(self._parser.feed(piece))
            except BadMime as error:
                raise HTTPError(400, str(error))
        return self._events.popleft()

    def begin(self) -> HeaderMap | None:
        """Return the headers of the next document; None when there is none in this body."""
        event = self._next()
        return event.headers if isinstance(event, DocumentBegins) else None

    def receive(self, size: int, writer: DraftWriter) -> bool:
        """Write the document, which has ``size`` bytes; whether another one follows.

        The end is not parsed before these bytes. Raises ``ClientDisconnected`` when it is longer.
        """
        left = size
        while self._events and isinstance(event := self._events[0], DocumentData):
            self._events.popleft()
            writer.write(event.data)
            left -= len(event.data)
        if not self._events and left > 0:
            writer.write(held := self._parser.take(left))
            receive_exactly(self._body, writer, left - len(held), self._deadline)

        def refuse(_batch: bytes) -> None:
            raise ClientDisconnected(f"received more than the announced {size} bytes")

        return self.copy(refuse)

    def copy(self, write: Callable[[bytes], None]) -> bool:
        """Pass the document's bytes on in batches; whether another document follows."""
        waiting: list[bytes] = []
        size = 0
        while not isinstance(event := self._next(), DocumentEnds):
            if not isinstance(event, DocumentData):
                raise ClientDisconnected("the body ended inside a MIME document")
            waiting.append(event.data)
            size += len(event.data)
            if size >= BATCH_BYTES:
                write(b"".join(waiting))
                waiting, size = [], 0
        if waiting:
            write(b"".join(waiting))
        return not event.last

    def read(self, size_max: int) -> bytes:
        """Return a whole small document; 400 when it is larger than ``size_max`` bytes."""
        pieces: list[bytes] = []

        def keep(piece: bytes) -> None:
            pieces.append(piece)
            if sum(map(len, pieces)) > size_max:
                raise HTTPError(400, "MIME document too large")

        self.copy(keep)
        return b"".join(pieces)

    def await_command(self, headers: HeaderMap) -> str:
        """Send the state of this round, wait for the next document, and return its X-Document, lower-case.

        Raises ``HTTPError`` 400 for a document that means nothing here, and body errors.
        """
        while self.begin() is not None:
            # Parts of the body before it are ignored, but must be read to their end.
            self.read(FOOTER_BYTES_MAX)
        self._body.send_continue({**self._stages.continue_headers, **headers})
        self._body.begin_next_body()
        found = self.begin()
        if found is None:
            raise ClientDisconnected("the commit document is missing")
        command = found.get("x-document", "").lower()
        if command != reservation.COMMIT and not (self._stages.reserve and command in _ORDERS):
            raise HTTPError(400, "not a put commit document")
        self.read(FOOTER_BYTES_MAX)
        return command


def receive(documents: MimeBody, stages: PutStages, plan: PutPlan, writer: DraftWriter, limit: int) -> None:
    """Read the object and its footers into the draft and the plan; raises ``HTTPError``."""
    if documents.begin() is None:
        raise ClientDisconnected("the object document is missing")

    def write(batch: bytes) -> None:
        check_size(writer.size + len(batch))
        writer.write(batch)

    def check_size(size: int) -> None:
        if size > limit:
            raise HTTPError(413, "Your request is too large.", content_type="text/plain")

    if plan.size is None:
        more = documents.copy(write)
    else:
        check_size(plan.size)
        more = documents.receive(plan.size, writer)
    if stages.footers:
        add_footers(plan, _read_footers(documents, more=more))
    writer.wait()
    if plan.size is not None and writer.size != plan.size:
        raise ClientDisconnected(f"received {writer.size} of {plan.size} bytes")
    if stages.etag_follows:
        accept_trailers(writer.draft, plan.footers)


def _read_footers(documents: MimeBody, *, more: bool) -> HeaderMap:
    headers = documents.begin() if more else None
    if headers is None or headers.get("x-document", "").lower() != "object metadata":
        raise HTTPError(400, "couldn't find footer MIME doc")
    expected = headers.get("content-md5")
    if not expected:
        raise HTTPError(400, "no Content-MD5 in footer")
    data = documents.read(FOOTER_BYTES_MAX)
    if md5(data, usedforsecurity=False).hexdigest() != expected:
        raise HTTPError(422, "footer MD5 mismatch")
    try:
        loaded: Any = json.loads(data)
        return {lower_name(_text(name)): _text(value) for name, value in loaded.items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise HTTPError(400, "invalid JSON for footer doc")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a footer is not text")
    # Proxies put Latin-1 views of the wire bytes into the document; anything wider is decoded text.
    return value if all(letter < "\u0100" for letter in value) else wire_value(value)


def add_footers(plan: PutPlan, footers: HeaderMap) -> None:
    """Footers override headers: metadata is stored, Etag is what the body must have."""
    plan.footers = footers
    for name, value in footers.items():
        if name.startswith(USER_PREFIXES):
            plan.copied[title_case(name)] = value
    if footers.get("etag"):
        plan.etag = unquote_etag(footers["etag"])


# --- the stages of a PUT -----------------------------------------------------------------------------------


class PutSession:
    """One PUT whose head was checked: ``run`` passes the stages of its way in ``_STAGES``."""

    #: Set by the stages: the object before the PUT, the draft, and the documents of a body in rounds.
    _before: ObjectState
    _writer: DraftWriter
    _etag_follows: bool
    _documents: MimeBody
    result: PutResult

    def __init__(
        self,
        request: Request,
        store: StoreHandle,
        key: ObjectKey,
        options: ReadOptions,
        plan: PutPlan,
        settings: ObjectSettings,
        size_max: int,
    ):
        self._request = request
        self._object = (store, key, options, plan)
        self._plan = plan
        self._settings = settings
        self._size_max = size_max
        self._rounds = parse_stages(request)
        #: The draft is open and not stored yet.
        self._has_draft = False

    def run(self) -> PutResult:
        """Receive and store the object; raises ``HTTPError``, body errors and what engines raise."""
        try:
            for stage in _STAGES[self._way()]:
                stage(self)
        except BaseException:
            if self._has_draft:
                self._writer.abandon()
            raise
        return self.result

    def _way(self) -> str:
        rounds, size = self._rounds, self._plan.size
        if rounds is not None:
            return "reserved" if rounds.reserve else "two rounds" if rounds.commit else "footers"
        fits = size is not None and size <= SMALL_BYTES
        return "small" if fits and not self._request.expects_continue else "stream"

    def _put_small(self) -> None:
        """Read the body, and check and store the object in one call."""
        self.result = store_small(*self._object, read_small(self._request.body, self._plan.size or 0))

    def _open(self) -> None:
        """Open a draft of an object that may be replaced; raises ``HTTPError`` if it must not be."""
        store, key, options, plan = self._object
        self._before = store.stat(key, options)
        refused = refusal(self._before, plan)
        if refused is not None:
            raise refused
        rounds, request = self._rounds, self._request
        is_framed = request.body.length is None and request.expects_continue
        offers_etag = is_framed and etagtrailer.is_offered(request.headers)
        self._etag_follows = rounds.etag_follows if rounds is not None else offers_etag
        self._writer = DraftWriter(store.draft(key, plan.size, etag_follows=self._etag_follows))
        self._has_draft = True

    def _receive(self) -> None:
        """Receive a body that is just the object."""
        if self._etag_follows:
            self._request.body.send_continue({etagtrailer.OFFER: etagtrailer.CRC32})
        deadline = time.monotonic() + self._settings.max_upload_time
        receive_all(
            self._request.body, self._writer, size=self._plan.size, size_max=self._size_max, deadline=deadline
        )
        if self._etag_follows:
            accept_trailers(self._writer.draft, self._request.body.trailers)

    def _receive_documents(self) -> None:
        """Receive the object and its footers."""
        rounds = self._rounds
        assert rounds is not None
        known = reservation.version_headers(self._before.write_timestamp) if rounds.reserve else {}
        self._documents = begin_documents(self._request.body, rounds, self._settings, known)
        receive(self._documents, rounds, self._plan, self._writer, self._size_max)
        # Known only now, from the footers; refused before anything is stored.
        self._plan.fragment(self._object[1])

    def _store(self) -> None:
        """Store the object; a fragment archive is not durable before the sender confirms."""
        self._has_draft = False
        store, key, options, plan = self._object
        commit = self._rounds is None or not self._rounds.commit
        self.result = store_draft(store, key, options, plan, self._writer.draft, commit)

    def _confirm(self) -> None:
        """Make it durable when the sender confirms."""
        self._documents.await_command({})
        store_commit(*self._object)

    def _follow_writer(self) -> None:
        """Reserve the object, and store it as its writer commands."""
        self._has_draft = False
        self.result = follow_commands(ReservedPut(*self._object, self._writer.draft), self._documents)


#: The stages of each way, in order.
_STAGES: dict[str, tuple[Callable[[PutSession], None], ...]] = {
    "small": (PutSession._put_small,),
    "stream": (PutSession._open, PutSession._receive, PutSession._store),
    "footers": (PutSession._open, PutSession._receive_documents, PutSession._store),
    "two rounds": (PutSession._open, PutSession._receive_documents, PutSession._store, PutSession._confirm),
    "reserved": (PutSession._open, PutSession._receive_documents, PutSession._follow_writer),
}


def begin_documents(
    body: RequestBody, stages: PutStages, settings: ObjectSettings, known: HeaderMap
) -> MimeBody:
    """Tell the sender which stages are supported, and what is ``known``; return the body's documents."""
    body.send_continue({**stages.continue_headers, **known})
    deadline = time.monotonic() + settings.max_upload_time
    return MimeBody(body, stages, chunk_bytes=settings.network_chunk_size, deadline=deadline)


def follow_commands(change: ReservedChange[R], documents: MimeBody) -> R:
    """Reserve the object for its writer and follow the writer's commands, until the change is applied.

    A writer whose reservation expires is disconnected.
    """
    try:
        command = reservation.RESERVE
        while command != reservation.COMMIT:
            headers: HeaderMap = {}
            if command == reservation.RESERVE:
                headers = reservation.failure_headers(change.reserve(), change.predecessor)
            else:
                change.release()
            try:
                with Timeout(reservation.FORGOTTEN_AFTER_S):
                    command = documents.await_command(headers)
            except DeadlineExceeded:
                raise BodyTimeout("the writer sent no command in time")
        return change.commit()
    finally:
        change.forget()
