"""A client inside the process: requests of daemons and tools to a proxy pipeline of their own.

The pipeline is that of ``internal-client.conf`` (cli-and-config.md §7), loaded by ``compose.internal_client``
without what would only be in the way: nothing is inserted, no request is authorized, internal headers pass in
both directions, and reserved names are allowed. Names are ``EntityPath`` values, headers plain lower-case
dictionaries.

A call is tried again when the servers are to blame (5xx, broken answers), after pauses that double, until
its tries or its time are used up. What the caller did not say it accepts is ``UnexpectedAnswer``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from urllib.parse import quote

from swift import green
from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.errors import SwiftError
from swift.gateway.subrequest import Forward, asked
from swift.http import environkeys, fields
from swift.http.body import BodyError, BytesBody, RequestBody
from swift.http.cryptokeys import is_sealed
from swift.http.headers import HeaderMap, utf8_value
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response

#: The first pause between two tries, seconds; each later one is twice as long.
BACKOFF_S = 2.0
#: How much of an unexpected answer's body is told.
TOLD_BYTES = 500

_SEALED = "it is encrypted, and the pipeline has no keymaster and encryption to read it"

#: An upload's bytes, or what makes its body anew for every try.
Content = bytes | Callable[[], RequestBody]


class UnexpectedAnswer(SwiftError):
    """The pipeline answered something else than the caller accepts, or nothing in time (status 0)."""

    def __init__(self, method: str, path: EntityPath, status: int, text: str):
        super().__init__(f"{method} {path} answered {status or 'nothing'}: {text}")
        self.status = status


class InternalClient:
    """Asks a pipeline; safe to be shared by green threads."""

    def __init__(
        self,
        forward: Forward,
        agent: str,
        *,
        tries: int = 3,
        timeout_s: float | None = None,
        use_replication_network: bool = False,
        must_decrypt: bool = False,
        backoff_s: float = BACKOFF_S,
    ):
        """``timeout_s`` bounds each call with all its tries and pauses; None leaves that to the proxy's.

        With ``must_decrypt`` an object that the pipeline shows as it is stored, encrypted, is no answer.
        """
        if tries < 1:
            raise ValueError("a request must be tried once at least")
        self._forward = forward
        self._tries = tries
        self._timeout_s = timeout_s
        self._must_decrypt = must_decrypt
        self._backoff_s = backoff_s
        self._headers = {"user-agent": agent, fields.BACKEND_ALLOW_RESERVED_NAMES: "true"}
        if use_replication_network:
            self._headers[fields.BACKEND_USE_REPLICATION_NETWORK] = "true"

    # one request

    @contextmanager
    def ask(
        self,
        method: str,
        path: EntityPath,
        headers: Mapping[str, str] | None = None,
        content: Content = b"",
        *,
        query: str = "",
        accept: tuple[int, ...] = (2,),
    ) -> Iterator[Response]:
        """The accepted answer, for the time of a block.

        ``accept`` lists statuses and, by their first digit, classes of them. Raises ``UnexpectedAnswer``; one
        that does not come from the servers' state (below 500) is not tried again.
        """
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        pause_s, status, text = self._backoff_s, 0, "no try was in time"
        for number in range(self._tries):
            if number:
                if deadline is not None and time.monotonic() + pause_s >= deadline:
                    break
                green.sleep(pause_s)
                pause_s *= 2
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            request = self._request(method, path, headers, content, query)
            with ExitStack() as held:
                response = self._answer(request, left_s, held)
                status = response.status
                if status in accept or status // 100 in accept:
                    if self._must_decrypt and is_sealed(response.headers):
                        raise UnexpectedAnswer(method, path, status, _SEALED)
                    yield response
                    return
                text = _text_of(response)
            if status < 500:
                break
        raise UnexpectedAnswer(method, path, status, text)

    def _answer(self, request: Request, timeout_s: float | None, held: ExitStack) -> Response:
        try:
            return held.enter_context(asked(self._forward, request, timeout_s=timeout_s))
        except HTTPError as error:
            return error.response
        except BodyError as error:
            return error_response(error.status)

    def _request(
        self, method: str, path: EntityPath, headers: Mapping[str, str] | None, content: Content, query: str
    ) -> Request:
        merged: HeaderMap = {**self._headers, **(headers or {})}
        body = BytesBody(content) if isinstance(content, bytes) else content()
        if body.length is None:
            merged["transfer-encoding"] = "chunked"
        elif body.length or method in ("PUT", "POST"):
            merged["content-length"] = str(body.length)
        env = {environkeys.OWNER: True, environkeys.INFOCACHE: {}}
        request = Request(method, "/v1" + path.quoted, merged, body, query=query, env=env)
        request.received_at = time.time()
        return request

    # any entity

    def head(self, path: EntityPath) -> HeaderMap | None:
        """The headers of an account, container or object; None when there is none."""
        with self.ask("HEAD", path, accept=(2, 404)) as response:
            return response.headers if response.is_success else None

    def exists(self, path: EntityPath) -> bool:
        """Return True if an account, container or object is there."""
        return self.head(path) is not None

    def metadata(self, path: EntityPath, prefix: str = "") -> dict[str, str] | None:
        """The headers with ``prefix`` (lower case), without it, as text; None when nothing is there."""
        headers = self.head(path)
        if headers is None:
            return None
        return {k[len(prefix) :]: utf8_value(v) for k, v in headers.items() if k.startswith(prefix)}

    def create(self, path: EntityPath, headers: Mapping[str, str] | None = None) -> None:
        """PUT an account or container; harmless when it is there."""
        with self.ask("PUT", path, headers):
            return

    def delete(
        self,
        path: EntityPath,
        headers: Mapping[str, str] | None = None,
        *,
        accept: tuple[int, ...] = (2, 404),
    ) -> int:
        """DELETE an account, container or object; the status. One that is gone already is as good."""
        with self.ask("DELETE", path, headers, accept=accept) as response:
            return response.status

    # objects

    @contextmanager
    def get(self, path: EntityPath, headers: Mapping[str, str] | None = None) -> Iterator[Response]:
        """An object, for the time of a block; its body is read there. Raises ``UnexpectedAnswer``."""
        with self.ask("GET", path, headers) as response:
            yield response

    def put(self, path: EntityPath, content: Content, headers: Mapping[str, str] | None = None) -> HeaderMap:
        """Store an object; the headers of the answer, ``etag`` among them."""
        with self.ask("PUT", path, headers, content) as response:
            return response.headers

    # listings

    def containers(self, account: str, **limits: str) -> Iterator[JsonObject]:
        """The rows of an account's listing; see ``listing``."""
        return self.listing(EntityPath(account), **limits)

    def objects(self, account: str, container: str, **limits: str) -> Iterator[JsonObject]:
        """The rows of a container's listing; see ``listing``."""
        return self.listing(EntityPath(account, container), **limits)

    def listing(self, path: EntityPath, **limits: str) -> Iterator[JsonObject]:
        """All rows of a listing, page after page; none when there is no such account or container.

        Raises ``UnexpectedAnswer``, also for a page that breaks off or is no listing.
        ``limits`` are text: ``marker``, ``end_marker``, ``prefix``, ``delimiter``. Rows that come while it is
        read may be in it or not.
        """
        marker = limits.pop("marker", "")
        while rows := self._page(path, {**limits, "marker": marker}):
            yield from rows
            marker = rows[-1].get("name") or rows[-1]["subdir"]

    def _page(self, path: EntityPath, limits: Mapping[str, str]) -> list[JsonObject]:
        wanted = {"format": "json", **{name: text for name, text in limits.items() if text}}
        query = "&".join(f"{name}={quote(text, safe='')}" for name, text in wanted.items())
        with self.ask("GET", path, query=query, accept=(2, 404)) as response:
            if response.status != 200:
                return []
            try:
                return _rows_of(response.read_body())
            except (BodyError, ValueError, RecursionError) as error:
                raise UnexpectedAnswer("GET", path, response.status, str(error))

    def __repr__(self) -> str:
        return f"<InternalClient {self._headers['user-agent']} {self._tries} tries>"


def _rows_of(body: bytes) -> list[JsonObject]:
    """The rows of a page, each with a name or a subdir. Raises ValueError."""
    rows = json.loads(body) if body else []
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and (row.get("name") or row.get("subdir")) for row in rows
    ):
        raise ValueError("it is no listing")
    return rows


def _text_of(response: Response) -> str:
    """The beginning of an error's text."""
    try:
        return response.read_body()[:TOLD_BYTES].decode("utf-8", "replace")
    except (BodyError, ValueError):
        return response.reason
