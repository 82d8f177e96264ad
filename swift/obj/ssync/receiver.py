"""The receiving end of SSYNC: a response body that reads the request while it is sent.

The conversation is a generator: what it yields goes to the sender at once, and it reads the sender's lines
from the request's body in between. It holds a place of the server and the partition's replication lock
from the first line to the last, whatever ends it. Subrequests are carried out by the object server's own
verbs, so an object that arrives this way is stored like any other; one that breaks off leaves nothing.

Errors end the conversation: told as ``:ERROR:`` when the sender still listens, then the connection is
closed without a last chunk (spec: replication.md §3.4).
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache

from swift import green
from swift.base.errors import LockTimeout, SwiftError
from swift.http import fields
from swift.http.body import BodyError, BodyTimeout, BytesBody, ClientDisconnected, IterableBody, RequestBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTML, HTTPError, Response
from swift.obj.put import NAMES_MAX
from swift.obj.settings import ObjectSettings
from swift.obj.ssync.decide import completes_commit, local_version, parts_to_request
from swift.platform.slots import SharedSlots
from swift.policy.policy import Policy
from swift.store.api import Location, ObjectStore, ReadOptions
from swift.store.calls import Effort
from swift.store.errors import FilesChanged
from swift.store.handle import StoreHandle
from swift.telemetry.log import Log
from swift.wire import ssync
from swift.wire.ssync import LineReader, Offer, SsyncEnded, SsyncError, Subrequest, Want

#: Offers that are compared with the disk in one turn of the thread pool.
BATCH = 100
READ_BYTES = 65536
#: Unreadable objects in a session after which the device counts as failing and the session ends. A
#: sender accepts more: its other objects may have no other copy.
UNREADABLE_MAX = 10
#: Bodies of at most so many bytes are read before they are stored.
SMALL_BYTES = 65536
_LOCK_PAUSE_S = 0.05
#: Not stored as metadata: one is computed, the other a wish about this request.
_NOT_COPIED = frozenset(("etag", fields.BACKEND_NO_COMMIT))
#: Headers that senders must not set: conditions, other framing, and targets of updates. A replicated object
#: sends no updates.
_NOT_TAKEN = (
    "if-",
    fields.BACKEND,
    "x-container-",
    "x-account-",
    "x-delete-at-",
    "transfer-encoding",
    "expect",
)
_BREAKS = re.compile(r"[\0\r\n]")


@dataclass(frozen=True, slots=True)
class SsyncHead:
    """Parsed head of an SSYNC request."""

    device: str
    partition: str
    policy: Policy
    #: Erasure coding: the index of the archives that belong here.
    fragment: int | None


@dataclass(frozen=True, slots=True)
class SsyncContext:
    """Object server's context for a receiver."""

    settings: ObjectSettings
    #: Its calls run beside the ones of ordinary requests.
    store: StoreHandle
    #: Carries out a subrequest as the server would.
    execute: Callable[[Request], Response]
    slots: SharedSlots
    now_s: Callable[[], float]
    log: Log


class Aborted(SwiftError):
    """The conversation ends with this ``:ERROR:`` line."""

    def __init__(self, status: int, message: str | bytes):
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else message
        super().__init__(f"{status} {text}")
        self.line = ssync.error_line(status, message)


def serve_ssync(request: Request, session: SsyncHead, context: SsyncContext) -> Response:
    """Return the response whose body is the conversation."""
    request.body.send_continue({})
    headers = {"content-type": HTML, fields.BACKEND_ACCEPT_NO_COMMIT: "True"}
    conversation = SsyncReceiver(request, session, context).serve()
    return Response(200, headers, IterableBody(conversation, on_close=conversation.close))


class SsyncReceiver:
    """One conversation."""

    def __init__(self, request: Request, session: SsyncHead, context: SsyncContext):
        self._request = request
        self._session = session
        self._context = context
        self._lines = LineReader(lambda: request.body.read(READ_BYTES))
        self.successes = 0
        self.failures = 0
        #: Number of offered objects that could not be read here.
        self._unreadable = 0

    def serve(self) -> Generator[bytes, None, None]:
        """Yield the bytes to send to the sender.

        Raises ``BodyError`` when the connection must be closed.
        """
        # The sender waits for this before it says anything.
        yield b"\r\n"
        error_line = b""
        with ExitStack() as held:
            try:
                self._acquire(held)
                yield from self._missing_check()
                yield from self._updates()
                return
            except (ClientDisconnected, SsyncEnded) as error:
                self._log(f"the sender hung up: {error}")
                raise ClientDisconnected(str(error))
            except Exception as error:
                error_line = self._error_line(error)
        # Locks are given back first: the sender may come again as soon as it heard this.
        yield error_line
        raise BodyError("the conversation was ended")

    def _error_line(self, error: Exception) -> bytes:
        if isinstance(error, Aborted):
            self._log(str(error))
            return error.line
        if isinstance(error, BodyTimeout):
            self._log(str(error))
            return ssync.error_line(408, str(error))
        if isinstance(error, HTTPError):
            self._log(str(error))
            return ssync.error_line(error.response.status, error.response.read_body())
        if isinstance(error, LockTimeout):
            text = f"{error.seconds:g} seconds: {error.path}"
            self._log(text)
            return ssync.error_line(0, text)
        if isinstance(error, SwiftError | OSError):
            self._log(str(error))
            return ssync.error_line(0, str(error))
        self._context.log.exception(f"ERROR cannot serve SSYNC {self._request.raw_path}", error)
        return ssync.error_line(0, "an error occurred")

    def _log(self, text: str) -> None:
        who = self._request.remote_addr or "-"
        self._context.log.warning(f"SSYNC {self._request.raw_path} from {who}: {text}")

    # --- holding -------------------------------------------------------------------------------------

    def _acquire(self, held: ExitStack) -> None:
        """Take a place of the server and the partition's lock until ``held`` is left."""
        place = self._context.slots.take()
        if place is None:
            raise Aborted(503, "busy: as many are under way as replication_concurrency allows")
        held.callback(place.close)
        self._lock(held)

    def _lock(self, held: ExitStack) -> None:
        """Take the partition's lock; polled, so that no thread of the pool waits in it."""
        session, context = self._session, self._context
        timeout_s = context.settings.replication_lock_timeout
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                held.enter_context(context.store.replication_lock(session.partition, session.policy, 0.0))
                return
            except LockTimeout as error:
                if time.monotonic() >= deadline:
                    raise LockTimeout(error.path, timeout_s)
            green.sleep(_LOCK_PAUSE_S)

    # --- the missing check ---------------------------------------------------------------------------

    def _missing_check(self) -> Iterator[bytes]:
        lines = self._lines
        lines.expect(ssync.MISSING_START)
        wants: list[Want] = []
        batch: list[Offer] = []
        while (text := lines.next_line()) is not None and text.strip() != ssync.MISSING_END:
            batch.append(Offer.parse(text))
            if len(batch) >= BATCH:
                wants.extend(self._context.store.call(Effort.SSYNC, self._compare, batch))
                batch = []
        if text is None:
            raise SsyncEnded("the stream ended inside the missing check")
        if batch:
            wants.extend(self._context.store.call(Effort.SSYNC, self._compare, batch))
        yield from ssync.encode_wants(wants)

    def _compare(self, engine: ObjectStore, offers: list[Offer]) -> list[Want]:
        """Return what is wanted of these offers."""
        wants = []
        for offer in offers:
            try:
                want = self._wanted(engine, offer)
            except (FilesChanged, OSError) as error:
                want = self._request_unreadable(offer, error)
            if want is not None:
                wants.append(want)
        return wants

    def _request_unreadable(self, offer: Offer, error: Exception) -> Want:
        """Request an object that cannot be read here, so that only this object fails.

        Without a request the sender would count the object as received. Raises ``error`` if there are more
        than ``UNREADABLE_MAX``.
        """
        self._unreadable += 1
        if self._unreadable > UNREADABLE_MAX:
            raise error
        self._log(f"cannot read object {offer.hash}: {error}")
        return Want(offer.hash, data=True, meta=True)

    def _wanted(self, engine: ObjectStore, offer: Offer) -> Want | None:
        session = self._session
        if not _is_hash(offer.hash):
            raise SsyncError(f"{offer.hash!r} is no object hash")
        location = Location(session.device, session.partition, session.policy, offer.hash)
        now_s = self._context.now_s()
        options = ReadOptions(now_s, open_expired=True, fragment=session.fragment)
        local = local_version(engine.maintenance.find(location, options).state)
        if session.policy.is_ec and session.fragment is not None:
            found = engine.maintenance.find(location, ReadOptions(now_s, open_expired=True, preferences=[]))
            if found.key is not None and completes_commit(offer, found.state, session.fragment):
                if not offer.durable:
                    # What is offered is here; that neither side knows of a commit changes nothing.
                    return None
                with engine.edit(found.key, options, create=True) as edit:
                    edit.commit(offer.data, session.fragment)
                local = local_version(engine.maintenance.find(location, options).state)
        return parts_to_request(offer, local)

    # --- updates -------------------------------------------------------------------------------------

    def _updates(self) -> Iterator[bytes]:
        self._lines.expect(ssync.UPDATES_START)
        together = self._context.store.capabilities.changes_together
        under_way: deque[tuple[Subrequest, green.Task[str | None]]] = deque()
        try:
            while (subrequest := self._lines.next_subrequest()) is not None:
                is_small = together > 1 and subrequest.body_bytes <= SMALL_BYTES
                if not is_small or any(each.path == subrequest.path for each, _ in under_way):
                    # Changes of one object keep their order.
                    self._await(under_way)
                body = SubrequestBody(self._lines, subrequest.body_bytes)
                if is_small:
                    under_way.append((subrequest, green.spawn(self._apply, subrequest, _in_memory(body))))
                    self._await(under_way, together - 1)
                else:
                    reason = self._apply(subrequest, body)
                    body.finish()
                    self._count(subrequest, reason)
            self._await(under_way)
        finally:
            # The locks are held until the last of them has ended.
            for _, task in under_way:
                task.wait()
        if self.failures:
            text = f"ERROR: With :UPDATES: {self.failures} failures to {self.successes} successes"
            raise Aborted(500, text.encode())
        yield ssync.encode_line(ssync.UPDATES_START)
        yield ssync.encode_line(ssync.UPDATES_END)

    def _await(self, under_way: deque[tuple[Subrequest, green.Task[str | None]]], left: int = 0) -> None:
        """Wait until only so many subrequests are under way."""
        while len(under_way) > left:
            subrequest, task = under_way.popleft()
            self._count(subrequest, task.wait())

    def _apply(self, subrequest: Subrequest, body: RequestBody) -> str | None:
        """Carry out a subrequest; return the reason if it failed."""
        reason = _malformation(subrequest)
        if reason is None:
            response = self._execute(subrequest, body)
            if not (response.is_success or response.status == 404 or _has_metadata(subrequest, response)):
                reason = f"was answered {response.status}"
        return reason

    def _count(self, subrequest: Subrequest, reason: str | None) -> None:
        if reason is None:
            self.successes += 1
            return
        self.failures += 1
        self._log(f"{subrequest.method} {subrequest.path} {reason}")
        settings = self._context.settings
        if self.failures >= settings.replication_failure_threshold and (
            not self.successes or self.failures / self.successes > settings.replication_failure_ratio
        ):
            raise SsyncError(f"Too many {self.failures} failures to {self.successes} successes")

    def _execute(self, subrequest: Subrequest, body: RequestBody) -> Response:
        session = self._session
        path = f"/{session.device}/{session.partition}{subrequest.path}"
        request = Request(subrequest.method, path, self._headers_of(subrequest), body)
        request.remote_addr = self._request.remote_addr
        response = self._context.execute(request)
        response.discard()
        return response

    def _headers_of(self, subrequest: Subrequest) -> HeaderMap:
        session, sent = self._session, subrequest.headers
        taken, copied = _taken_names(tuple(sent))
        headers = {name: sent[name] for name in taken}
        headers[fields.BACKEND_STORAGE_POLICY_INDEX] = str(session.policy.index)
        headers[fields.BACKEND_REPLICATION] = "True"
        headers[fields.BACKEND_REPLICATION_HEADERS] = copied
        if session.fragment is not None:
            headers[fields.BACKEND_SSYNC_FRAG_INDEX] = str(session.fragment)
        trans_id = self._request.headers.get("x-trans-id")
        if trans_id is not None:
            headers.setdefault("x-trans-id", trans_id)
        return headers

    def __repr__(self) -> str:
        return f"<Receiver {self._session} {self.successes} taken, {self.failures} failed>"


@lru_cache(maxsize=NAMES_MAX)
def _taken_names(names: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the headers of a subrequest that are passed on, and those of them that are stored, joined."""
    taken = tuple(name for name in names if name in _NOT_COPIED or not name.startswith(_NOT_TAKEN))
    return taken, " ".join(name for name in taken if name not in _NOT_COPIED)


def _malformation(subrequest: Subrequest) -> str | None:
    """Why a subrequest must not be carried out; None when it may."""
    if not subrequest.path.startswith("/"):
        # The end of the partition's number would be its beginning.
        return "names no path below the partition"
    headers = subrequest.headers
    if _BREAKS.search("".join((*headers, *headers.values()))):
        return "has a NUL or a line break in a header"
    return None


def _has_metadata(subrequest: Subrequest, response: Response) -> bool:
    """Return True if a POST was refused because its metadata is already stored.

    The metadata of an object can remain after its data was lost. SSYNC then sends both.
    """
    newest = response.headers.get(fields.BACKEND_TIMESTAMP)
    is_refused = subrequest.method == "POST" and response.status == 409 and newest is not None
    return is_refused and newest == subrequest.headers.get("x-timestamp")


def _is_hash(text: str) -> bool:
    return len(text) == 32 and all(c in "0123456789abcdef" for c in text)


def _in_memory(body: SubrequestBody) -> BytesBody:
    """Return a body that was read to its end. Raises ``BodyError``."""
    data = BytesBody(body.read())
    body.finish()
    return data


class SubrequestBody(RequestBody):
    """The body of a subrequest: the next ``length`` bytes of the conversation."""

    def __init__(self, lines: LineReader, length: int):
        self.length: int | None = length
        self.received = 0
        self._lines = lines
        self._left = length
        self._failure: BodyError | None = None

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(READ_BYTES), b""))
        if not self._left or not size:
            return b""
        try:
            data = self._lines.take(min(size, self._left))
            if not data:
                raise ClientDisconnected(f"the sender hung up {self._left} bytes before the end of a body")
        except BodyError as error:
            self._failure = error
            raise
        self._left -= len(data)
        self.received += len(data)
        return data

    def finish(self) -> None:
        """Skip unread bytes; raises the error that ended the body early, even if a caller caught it."""
        if self._failure is not None:
            raise self._failure
        while self.read(READ_BYTES):
            continue
