"""A client inside the process: requests of daemons and tools to a proxy pipeline of their own.

The pipeline is that of ``internal-client.conf`` (cli-and-config.md §7), loaded by ``compose.internal_client``
without parts for clients: no filter is inserted, no request is authorized, internal headers pass in both
directions, and reserved names are allowed. Names are ``EntityPath`` values, headers plain lower-case
dictionaries.

A call is tried again after server errors (5xx, broken responses), after pauses that double, until its tries
or its time are used up. A status that the caller does not accept is an ``UnexpectedResponse``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from urllib.parse import quote

from swift import green
from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.errors import SwiftError
from swift.base.pages import follow_pages
from swift.gateway.subrequest import Forward, open_response
from swift.http import environkeys, fields
from swift.http.body import BodyError, BytesBody, RequestBody
from swift.http.cryptokeys import is_encrypted_response
from swift.http.headers import HeaderMap, utf8_value
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response

#: The first pause between two tries, seconds; each later one is twice as long.
BACKOFF_S = 2.0
#: Bytes of an unexpected response's body in the error.
ERROR_TEXT_BYTES = 500

_ENCRYPTED = "it is encrypted, and the pipeline has no keymaster and encryption to read it"

#: An upload's bytes, or a function that returns a new body for every try.
Content = bytes | Callable[[], RequestBody]


class UnexpectedResponse(SwiftError):
    """The pipeline responded with a status that is not accepted, or not in time (status 0)."""

    def __init__(self, method: str, path: EntityPath, status: int, text: str):
        super().__init__(f"{method} {path} responded {status or 'nothing'}: {text}")
        self.status = status


class InternalClient:
    """Sends requests to a pipeline; green threads may share it."""

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
        """``timeout_s`` limits each call with all its tries and pauses; None leaves that to the proxy.

        With ``must_decrypt`` a response with an object that is still encrypted is an error.
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
    def request(
        self,
        method: str,
        path: EntityPath,
        headers: Mapping[str, str] | None = None,
        content: Content = b"",
        *,
        query: str = "",
        accept: tuple[int, ...] = (2,),
    ) -> Iterator[Response]:
        """Provide an accepted response within a ``with`` block.

        ``accept`` lists statuses, and classes of them by their first digit. Raises ``UnexpectedResponse``. A
        request is tried again only after 5xx.
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
            request = self._make_request(method, path, headers, content, query)
            with ExitStack() as held:
                response = self._forward_once(request, left_s, held)
                status = response.status
                if status in accept or status // 100 in accept:
                    if self._must_decrypt and is_encrypted_response(response.headers):
                        raise UnexpectedResponse(method, path, status, _ENCRYPTED)
                    yield response
                    return
                text = _text_of(response)
            if status < 500:
                break
        raise UnexpectedResponse(method, path, status, text)

    def _forward_once(self, request: Request, timeout_s: float | None, held: ExitStack) -> Response:
        try:
            return held.enter_context(open_response(self._forward, request, timeout_s=timeout_s))
        except HTTPError as error:
            return error.response
        except BodyError as error:
            return error_response(error.status)

    def _make_request(
        self, method: str, path: EntityPath, headers: Mapping[str, str] | None, content: Content, query: str
    ) -> Request:
        merged: HeaderMap = {**self._headers, **(headers or {})}
        body = BytesBody(content) if isinstance(content, bytes) else content()
        if body.length is None:
            merged["transfer-encoding"] = "chunked"
        elif body.length or method in ("PUT", "POST"):
            merged["content-length"] = str(body.length)
        env = {environkeys.OWNER: True, environkeys.INFOCACHE: {}, environkeys.CIPHERTEXT_ACCEPTED: True}
        request = Request(method, "/v1" + path.quoted, merged, body, query=query, env=env)
        request.received_at = time.time()
        return request

    # any entity

    def head(self, path: EntityPath) -> HeaderMap | None:
        """Return the headers of an account, container or object; None when there is none."""
        with self.request("HEAD", path, accept=(2, 404)) as response:
            return response.headers if response.is_success else None

    def exists(self, path: EntityPath) -> bool:
        """Return True if an account, container or object is there."""
        return self.head(path) is not None

    def metadata(self, path: EntityPath, prefix: str = "") -> dict[str, str] | None:
        """Return the headers with ``prefix`` (lower case), without it, as text; None when nothing is
        there.
        """
        headers = self.head(path)
        if headers is None:
            return None
        return {k[len(prefix) :]: utf8_value(v) for k, v in headers.items() if k.startswith(prefix)}

    def create(self, path: EntityPath, headers: Mapping[str, str] | None = None) -> None:
        """Send a PUT of an account or container; harmless when it exists."""
        with self.request("PUT", path, headers):
            return

    def delete(
        self,
        path: EntityPath,
        headers: Mapping[str, str] | None = None,
        *,
        accept: tuple[int, ...] = (2, 404),
    ) -> int:
        """Delete an account, container or object and return the status; 404 is accepted.

        One that is gone already is as good.
        """
        with self.request("DELETE", path, headers, accept=accept) as response:
            return response.status

    # objects

    @contextmanager
    def get(self, path: EntityPath, headers: Mapping[str, str] | None = None) -> Iterator[Response]:
        """Provide an object within a ``with`` block; its body is read there.

        Raises ``UnexpectedResponse``.
        """
        with self.request("GET", path, headers) as response:
            yield response

    def put(self, path: EntityPath, content: Content, headers: Mapping[str, str] | None = None) -> HeaderMap:
        """Store an object; return the headers of the response, including ``etag``."""
        with self.request("PUT", path, headers, content) as response:
            return response.headers

    # listings

    def containers(self, account: str, **limits: str) -> Iterator[JsonObject]:
        """Return the rows of an account's listing; see ``listing``."""
        return self.listing(EntityPath(account), **limits)

    def objects(self, account: str, container: str, **limits: str) -> Iterator[JsonObject]:
        """Return the rows of a container's listing; see ``listing``."""
        return self.listing(EntityPath(account, container), **limits)

    def listing(self, path: EntityPath, **limits: str) -> Iterator[JsonObject]:
        """Yield all rows of a listing, page after page; none when there is no such account or container.

        Raises ``UnexpectedResponse``, also for a page that breaks off or is no listing.
        ``limits`` are text: ``marker``, ``end_marker``, ``prefix``, ``delimiter``. Rows that come while it is
        read may be in it or not.
        """
        for rows in self.pages(path, size=0, versions=False, **limits):
            yield from rows

    def pages(
        self, path: EntityPath, *, size: int = 0, versions: bool = False, **limits: str
    ) -> Iterator[Sequence[JsonObject]]:
        """Yield the pages of a listing, of ``size`` rows or of as many as a server lists; see ``listing``.

        ``versions``: also the versions of objects, by the right to find archived ones.
        """
        wanted = {"limit": str(size or ""), "versions": "true" if versions else ""}

        def read(position: tuple[str, str]) -> list[JsonObject]:
            marker, version = position
            return self._page(path, {**wanted, **limits, "marker": marker, "version_marker": version})

        def position_of(row: JsonObject) -> tuple[str, str]:
            name = row.get("name") or row["subdir"]
            return str(name), str(row.get("version_id", "null")) if versions else ""

        return follow_pages(read, (limits.get("marker", ""), ""), position_of)

    def _page(self, path: EntityPath, limits: Mapping[str, str]) -> list[JsonObject]:
        query = "format=json"
        for name, text in limits.items():
            if text:
                query += f"&{name}={quote(text, safe='', errors='surrogateescape')}"
        headers = {fields.BACKEND_FIND_ARCHIVED_NULL: "true"} if limits["versions"] else {}
        with self.request("GET", path, headers, query=query, accept=(2, 404)) as response:
            if response.status != 200:
                return []
            try:
                return _rows_of(response.read_body())
            except (BodyError, ValueError, RecursionError) as error:
                raise UnexpectedResponse("GET", path, response.status, str(error))

    def __repr__(self) -> str:
        return f"<InternalClient {self._headers['user-agent']} {self._tries} tries>"


def _rows_of(body: bytes) -> list[JsonObject]:
    """Parse the rows of a page, each with a name or a subdir. Raises ValueError."""
    rows = json.loads(body) if body else []
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and (row.get("name") or row.get("subdir")) for row in rows
    ):
        raise ValueError("the response is not a listing")
    return rows


def _text_of(response: Response) -> str:
    """Return the beginning of an error's text."""
    try:
        return response.read_body()[:ERROR_TEXT_BYTES].decode("utf-8", "replace")
    except (BodyError, ValueError):
        return response.reason
