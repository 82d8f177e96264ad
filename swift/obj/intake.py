"""How a body gets from the network into a draft.

A small body is read whole. A large one is received into two buffers in turn: while a thread writes and
checksums one, the other fills from the socket, so no byte is copied on its way and memory stays bounded.
One that may be small gets a small buffer first: a hundred small archives at once are not to take a hundred
megabytes.
"""

from __future__ import annotations

import re
import time

from swift.green import Task, spawn
from swift.http.body import BodyTimeout, ClientDisconnected, RequestBody
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError
from swift.platform.buffers import Buffers
from swift.store.handle import OpenDraft
from swift.wire import etagtrailer

#: Bodies up to this size are held in memory and written in one go.
SMALL_BYTES = 256 << 10
#: What a large body is handed to the disk in.
BATCH_BYTES = 512 << 10
#: What a body that may be small is received in first.
FIRST_BYTES = 64 << 10

_buffers = Buffers(BATCH_BYTES, kept_max=16)

_MD5 = re.compile(r"[0-9a-f]{32}\Z")


def read_small(body: RequestBody, size: int) -> bytes:
    """All ``size`` bytes of a body; raises ``ClientDisconnected`` when there are fewer or more."""
    data = body.read(size) if size else b""
    if len(data) != size:
        pieces = [data]
        got = len(data)
        while got < size:
            piece = body.read(size - got)
            if not piece:
                raise ClientDisconnected(f"{got} of {size} bytes came")
            pieces.append(piece)
            got += len(piece)
        data = b"".join(pieces)
    if body.length != size and body.read(1):
        raise ClientDisconnected(f"more than the announced {size} bytes came")
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


class _Turns:
    """The buffers of a body: a small one where that may do, then two large ones in turn, made when needed."""

    def __init__(self, size: int | None):
        self._may_be_small = size is None or size <= FIRST_BYTES
        self._large: list[memoryview] = []
        self._number = 0

    def next(self) -> memoryview:
        """The buffer to fill; that of the turn before may still be in use, no earlier one."""
        if self._may_be_small:
            self._may_be_small = False
            return memoryview(bytearray(FIRST_BYTES))
        if len(self._large) < 2:
            self._large.append(_buffers.take())
        self._number += 1
        return self._large[(self._number - 1) % 2]

    def end(self) -> None:
        """Nobody uses any. Not after an error: a thread may still write from one of them."""
        _buffers.give(*self._large)


def receive_all(
    body: RequestBody, writer: DraftWriter, *, size: int | None, size_max: int, deadline: float
) -> None:
    """Receive and write a body of ``size`` bytes, or of at most ``size_max`` when nobody knows.

    Raises ``HTTPError`` 413, ``ClientDisconnected`` for another size than announced, ``BodyTimeout`` after
    ``deadline`` (monotonic seconds), and what the draft raises.
    """
    turns = _Turns(size)
    limit = size_max if size is None else size
    at_end = False
    while not at_end:
        buffer = turns.next()
        batch = _fill(body, buffer, deadline)
        at_end = len(batch) < len(buffer)
        if writer.size + len(batch) > limit:
            if size is None:
                raise HTTPError(413, "Your request is too large.", content_type="text/plain")
            raise ClientDisconnected(f"more than the announced {limit} bytes came")
        if batch:
            # Waits for the batch before, whose buffer is the next to be filled.
            writer.write(batch)
    writer.wait()
    turns.end()
    if size is not None and writer.size != size:
        raise ClientDisconnected(f"{writer.size} of {size} bytes came")


def receive_exactly(body: RequestBody, writer: DraftWriter, size: int, deadline: float) -> None:
    """Receive and write the next ``size`` bytes of a body; raises as ``receive_all``."""
    turns, left = _Turns(size), size
    while left:
        batch = _fill(body, turns.next()[:left], deadline)
        if not batch:
            raise ClientDisconnected(f"{size - left} of {size} bytes came")
        writer.write(batch)
        left -= len(batch)
    writer.wait()
    turns.end()


def _fill(body: RequestBody, buffer: memoryview, deadline: float) -> memoryview:
    """The part of the buffer that was filled: all of it, but at the end of the body."""
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
        raise ClientDisconnected("the promised trailers did not come")
    if not _MD5.match(etag) or not draft.accept_etag(etag, sums):
        raise HTTPError(422)
