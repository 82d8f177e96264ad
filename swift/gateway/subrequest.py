"""Sub-requests: requests that a filter or the proxy makes while it serves another one (spec: proxy.md §3).

    sub = make_subrequest(request, "GET", path, source="SLO")
    with open_response(self.forward, sub, timeout_s=60) as response:
        manifest = response.read_body()

At the end of the block the response is drained, so that its connection is free again, and its observers (the
access log) are called.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from swift import green
from swift.base.documents import JsonObject
from swift.base.entity import Entity
from swift.http import environkeys, fields
from swift.http.body import BodyError, RequestBody, ResponseBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError, Response

#: Environment keys that a sub-request inherits from its parent.
INHERITED_KEYS = (
    environkeys.CACHE,
    environkeys.SOURCE,
    environkeys.TRANS_ID,
    environkeys.AUTHORIZE_OVERRIDE,
    environkeys.AUTHORIZE,
    environkeys.INFOCACHE,
    environkeys.BASE_LABELS,
    environkeys.SHARD_LISTING_HISTORY,
    environkeys.CIPHERTEXT_ACCEPTED,
    environkeys.REMOTE_USER,
    # Without it a sub-request would be judged by ACLs alone.
    environkeys.IDENTITY,
    environkeys.CLIENT_ADDRESS,
)
INHERITED_HEADERS = (
    "host",
    "origin",
    "access-control-request-method",
    "x-user-id",
    "x-project-id",
    "referer",
    "x-trans-id",
)
PRE_AUTHED_USER = ".wsgi.pre_authed"
#: The unread rest of a response is read up to this size to keep its connection; a longer one is closed.
DRAIN_BYTES_MAX = 65536

Forward = Callable[[Request], Response]


def _allow(_request: Request) -> None:
    """Authorize everything: the callback of pre-authorized sub-requests."""


class RequestContent(TypedDict, total=False):
    """Headers, body and query of a sub-request, as keywords."""

    headers: HeaderMap | None
    body: RequestBody | bytes
    query: str


def make_subrequest(
    parent: Request,
    method: str,
    raw_path: str,
    *,
    headers: HeaderMap | None = None,
    body: RequestBody | bytes = b"",
    query: str = "",
    source: str | None = None,
    agent: str = "%(orig)s",
) -> Request:
    """Return a request with its own environment that inherits what proxy.md §3 lists.

    ``agent`` is a template for the User-Agent; ``%(orig)s`` is the parent's. It comes from no client address,
    so that logs do not count it as the client's.
    """
    env: dict[str, Any] = {key: parent.env[key] for key in INHERITED_KEYS if key in parent.env}
    env.setdefault(environkeys.INFOCACHE, parent.env.setdefault(environkeys.INFOCACHE, {}))
    if parent.remote_addr:
        env[environkeys.CLIENT_ADDRESS] = parent.remote_addr
    if source:
        env[environkeys.SOURCE] = source
    merged = {name: parent.headers[name] for name in INHERITED_HEADERS if name in parent.headers}
    user_agent = parent.headers.get("user-agent", "")
    if agent != "%(orig)s":
        user_agent = agent % {"orig": user_agent}
    user_agent = user_agent.strip()
    if user_agent:
        merged["user-agent"] = user_agent
    if headers:
        merged.update(headers)
    request = Request(
        method,
        raw_path,
        merged,
        body,
        query=query,
        env=env,
        scheme=parent.scheme,
    )
    request.http_minor = parent.http_minor
    return request


def preauthorise(request: Request) -> Request:
    """Let a sub-request do more than its user may; return it."""
    request.env[environkeys.AUTHORIZE] = _allow
    request.env[environkeys.AUTHORIZE_OVERRIDE] = True
    request.env[environkeys.REMOTE_USER] = PRE_AUTHED_USER
    request.env[environkeys.OWNER] = True
    return request


def make_privileged_request(
    parent: Request, method: str, entity: Entity, source: str, **content: Unpack[RequestContent]
) -> Request:
    """Return a sub-request with all rights, also for reserved names."""
    sub = make_subrequest(parent, method, entity.raw_path, source=source, **content)
    sub.headers[fields.BACKEND_ALLOW_RESERVED_NAMES] = "true"
    return preauthorise(sub)


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """The change of one object or container by a request that changes several."""

    method: str
    #: The quoted path, as Swift's API names the entity.
    raw_path: str
    status: int
    #: The operation that the change is a part of, e.g. ``bulk-delete``.
    part_of: str
    #: The environment in which the user was identified.
    env: Mapping[str, object]
    bytes_in: int | None = None
    #: The reason of a failure, where the status does not say it.
    reason: str = ""


def report_change(parent: Request, change: ReportedChange) -> None:
    """Have the audit log, if there is one, record a change that ``parent`` requests among others."""
    record: Callable[[ReportedChange], None] | None = parent.env.get(environkeys.AUDIT_CHANGE)
    if record is not None:
        record(change)


class SubrequestTimeout(HTTPError):
    """A sub-request took too long: 503 unless it is caught."""

    def __init__(self, request: Request, timeout_s: float):
        super().__init__(503)
        self.args = (f"{request!r} took longer than {timeout_s:g} s",)


class _CountedBody(ResponseBody):
    """The body of a sub-request's response; counts the bytes read, until the deadline."""

    __slots__ = ("length", "bytes_read", "complete", "_source", "_deadline")

    def __init__(self, source: ResponseBody, deadline: float | None):
        self.length = source.length
        self.bytes_read = 0
        self.complete = False
        self._source = source
        self._deadline = deadline

    def read_into(self, buffer: memoryview) -> int:
        """See ``ResponseBody``; raises ``BodyError`` after the deadline."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise BodyError("the body of a sub-request came too slowly")
        size = self._source.read_into(buffer)
        self.bytes_read += size
        self.complete = not size or self.bytes_read == self.length
        return size

    def drain(self) -> None:
        """Read a short rest."""
        left = DRAIN_BYTES_MAX
        buffer = memoryview(bytearray(DRAIN_BYTES_MAX))
        try:
            while not self.complete and left > 0:
                left -= self.read_into(buffer[:left])
        except BodyError:
            # It is dropped anyway.
            return

    def close(self) -> None:
        """Release the body below."""
        self._source.close()


@contextmanager
def open_response(
    forward: Forward, request: Request, *, timeout_s: float | None = None
) -> Iterator[Response]:
    """Provide the response to a sub-request within a ``with`` block.

    ``timeout_s`` limits the response and its body together. Raises ``SubrequestTimeout`` when no response
    came in time; reading a body that comes too slowly raises ``BodyError``. Unfit for a response that becomes
    the client's: return the result of ``forward`` then.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    response = forward(request) if timeout_s is None else _forward_within(forward, request, timeout_s)
    content = response.body
    if isinstance(content, bytes):
        try:
            yield response
        finally:
            response.report_end(len(content), True)
        return
    body = response.body = _CountedBody(content, deadline)
    try:
        yield response
        body.drain()
    finally:
        body.close()
        response.report_end(body.bytes_read, body.complete)


def _forward_within(forward: Forward, request: Request, timeout_s: float) -> Response:
    """Return the response if it comes in time; a later one is released."""
    outcomes: green.Queue[Response | Exception] = green.Queue()
    late = False

    def ask() -> None:
        outcome: Response | Exception
        try:
            outcome = forward(request)
        except Exception as error:
            # The waiting caller raises it.
            outcome = error
        if not late:
            outcomes.put(outcome)
        elif isinstance(outcome, Response):
            drained(outcome, is_complete=False)

    green.spawn_detached(ask)
    try:
        outcome = outcomes.get(time.monotonic() + timeout_s)
    except green.DeadlineExceeded:
        late = True
        raise SubrequestTimeout(request, timeout_s)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def require_success(forward: Forward, request: Request, *accepted: int) -> Response:
    """Return the head of the response; raises ``HTTPError`` 503 unless it is a success or ``accepted``."""
    with open_response(forward, request) as response:
        if not response.is_success and response.status not in accepted:
            raise HTTPError(503)
        return response


def read_listing(forward: Forward, request: Request) -> list[JsonObject]:
    """Return the rows of a JSON listing, none if there is no such container; raises ``HTTPError`` 503."""
    with open_response(forward, request) as response:
        if response.status == 404:
            return []
        if not response.is_success:
            raise HTTPError(503)
        return list(json.loads(response.read_body() or b"[]"))


def drained(response: Response, *, is_complete: bool = True) -> Response:
    """Drop a response's body and return the response for its head; the end is reported as ``is_complete``."""
    response.discard()
    response.report_end(0, is_complete)
    return response
