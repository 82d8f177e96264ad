"""Requests that a filter or the proxy makes on its own while answering another one (spec: proxy.md §3).

    sub = make_subrequest(request, "GET", path, source="SLO")
    with asked(self.forward, sub, timeout_s=60) as response:
        manifest = response.read_body()

Whatever happens in the block, the answer is drained, so that its connection is free again, and its observers
(the access log) are told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from swift import green
from swift.http import environkeys
from swift.http.body import BodyError, RequestBody, ResponseBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError, Response

#: What a sub-request inherits from the environment of its parent.
INHERITED_KEYS = (
    environkeys.CACHE,
    environkeys.SOURCE,
    environkeys.TRANS_ID,
    environkeys.AUTHORIZE_OVERRIDE,
    environkeys.AUTHORIZE,
    environkeys.INFOCACHE,
    environkeys.BASE_LABELS,
    environkeys.SHARD_LISTING_HISTORY,
    environkeys.REMOTE_USER,
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
    """The authorisation callback of pre-authorised sub-requests."""


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
    """A request with its own environment that carries over what proxy.md §3 lists.

    ``agent`` is a template for the User-Agent; ``%(orig)s`` is the parent's. It comes from no client address,
    so that logs do not count it as the client's.
    """
    env: dict[str, Any] = {key: parent.env[key] for key in INHERITED_KEYS if key in parent.env}
    env.setdefault(environkeys.INFOCACHE, parent.env.setdefault(environkeys.INFOCACHE, {}))
    if source:
        env[environkeys.SOURCE] = source
    merged = {name: parent.headers[name] for name in INHERITED_HEADERS if name in parent.headers}
    user_agent = (agent % {"orig": parent.headers.get("user-agent", "")}).strip()
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
    """Let a sub-request do what its originating user may not; returns it."""
    request.env[environkeys.AUTHORIZE] = _allow
    request.env[environkeys.AUTHORIZE_OVERRIDE] = True
    request.env[environkeys.REMOTE_USER] = PRE_AUTHED_USER
    request.env[environkeys.OWNER] = True
    return request


class SubrequestTimeout(HTTPError):
    """A sub-request took too long: 503 unless it is caught."""

    def __init__(self, request: Request, timeout_s: float):
        super().__init__(503)
        self.args = (f"{request!r} took longer than {timeout_s:g} s",)


class _Taken(ResponseBody):
    """The body of a sub-request's answer: counts what is taken of it, until the deadline."""

    __slots__ = ("length", "taken", "complete", "_source", "_deadline")

    def __init__(self, source: ResponseBody, deadline: float | None):
        self.length = source.length
        self.taken = 0
        self.complete = False
        self._source = source
        self._deadline = deadline

    def read_into(self, buffer: memoryview) -> int:
        """See ``ResponseBody``; raises ``BodyError`` after the deadline."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise BodyError("the body of a sub-request came too slowly")
        size = self._source.read_into(buffer)
        self.taken += size
        self.complete = not size or self.taken == self.length
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
def asked(forward: Forward, request: Request, *, timeout_s: float | None = None) -> Iterator[Response]:
    """The answer to a sub-request, for the time of a block.

    ``timeout_s`` is for the answer and its body together: raises ``SubrequestTimeout`` when no answer came in
    time, and reading a body that comes too slowly raises ``BodyError``. Unfit for an answer that becomes the
    client's: return what ``forward`` gives then.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    response = forward(request) if timeout_s is None else _within(forward, request, timeout_s)
    content = response.body
    if isinstance(content, bytes):
        try:
            yield response
        finally:
            response.ended(len(content), True)
        return
    body = response.body = _Taken(content, deadline)
    try:
        yield response
        body.drain()
    finally:
        body.close()
        response.ended(body.taken, body.complete)


def _within(forward: Forward, request: Request, timeout_s: float) -> Response:
    """The answer, if it comes in time; one that comes later is released."""
    box: green.Queue[Response | Exception] = green.Queue()
    late = False

    def ask() -> None:
        answer: Response | Exception
        try:
            answer = forward(request)
        except Exception as error:
            # The waiting caller raises it.
            answer = error
        if not late:
            box.put(answer)
        elif isinstance(answer, Response):
            answer.discard()
            answer.ended(0, False)

    green.spawn_detached(ask)
    try:
        answer = box.get(time.monotonic() + timeout_s)
    except green.DeadlineExceeded:
        late = True
        raise SubrequestTimeout(request, timeout_s)
    if isinstance(answer, Exception):
        raise answer
    return answer


def drained(response: Response) -> Response:
    """A response of which only the head is wanted; its body is dropped."""
    response.discard()
    response.ended(0, True)
    return response
