"""The bridge between our ``Request``/``Response`` and WSGI (PEP 3333), for third-party filters.

Between our own filters nothing is converted; these functions run only where a foreign WSGI app stands
in the pipeline. ``Request.env`` and the WSGI environ share every ``swift.*`` key.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from swift.base.digits import is_digits
from swift.http.body import RequestBody, ResponseBody, chunks_of
from swift.http.headers import HeaderMap, from_pairs, lower_name, title_case, upper_name
from swift.http.request import Request
from swift.http.response import HTTPError, Response

Handle = Callable[[Request], Response]

_BRIDGE_KEY = "swift.bridge.request"


def native(app: Any) -> Handle:
    """The ``handle`` of one of our apps, or one that calls a foreign WSGI app."""
    handle = getattr(app, "handle", None)
    return handle if handle is not None else lambda request: call_wsgi(app, request)


class _Input(io.RawIOBase):
    """``wsgi.input`` over a request body."""

    def __init__(self, body: RequestBody):
        super().__init__()
        self.body = body

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """PEP 3333 read."""
        return self.body.read(-1 if size is None else size)

    def readinto(self, buffer: Any) -> int:
        """For buffered readers on top."""
        data = self.body.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def split_host(host: str) -> tuple[str, str]:
    """Name and port (perhaps empty) of a Host header; an IPv6 address loses its brackets."""
    if host.startswith("["):
        address, _, rest = host[1:].partition("]")
        return address, rest.removeprefix(":")
    name, _, port = host.partition(":")
    return name, port


def environ_of(request: Request) -> dict[str, Any]:
    """The WSGI environ of a request; ``request.env`` becomes that very dictionary."""
    environ = request.env
    for stale in [key for key in environ if key.startswith("HTTP_")]:
        del environ[stale]
    host, port = split_host(request.headers.get("host", "localhost"))
    environ.update(
        {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(request.raw_path).decode("latin-1"),
            "RAW_PATH_INFO": request.raw_path,
            "QUERY_STRING": request.query,
            "SERVER_NAME": host,
            "SERVER_PORT": port or ("443" if request.scheme == "https" else "80"),
            "SERVER_PROTOCOL": f"HTTP/1.{request.http_minor}",
            "REMOTE_ADDR": request.remote_addr,
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": request.scheme,
            "wsgi.input": _Input(request.body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            _BRIDGE_KEY: request,
        }
    )
    for name, value in request.headers.items():
        key = upper_name(name).replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return environ


def request_from_environ(environ: dict[str, Any]) -> Request:
    """A ``Request`` over a WSGI environ that a foreign server or filter hands to one of our apps."""
    headers: HeaderMap = {}
    for key, value in environ.items():
        if key.startswith("HTTP_"):
            headers[lower_name(key[5:].replace("_", "-"))] = value
        elif key in ("CONTENT_TYPE", "CONTENT_LENGTH") and value:
            headers[key.replace("_", "-").lower()] = value
    source = environ.get("wsgi.input")
    body: RequestBody = source.body if isinstance(source, _Input) else _ForeignBody(source, headers)
    raw_path = environ.get("RAW_PATH_INFO")
    info = environ.get("PATH_INFO", "")
    if raw_path is None or unquote_to_bytes(raw_path).decode("latin-1") != info:
        raw_path = quote(info.encode("latin-1"), safe="/~:@!$&'()*+,;=")
    request = Request(
        environ["REQUEST_METHOD"],
        raw_path,
        headers,
        body,
        query=environ.get("QUERY_STRING", ""),
        env=environ,
        remote_addr=environ.get("REMOTE_ADDR", ""),
        scheme=environ.get("wsgi.url_scheme", "http"),
    )
    bridged = environ.get(_BRIDGE_KEY)
    if bridged is not None:
        request.received_at = bridged.received_at
        request.expects_continue = bridged.expects_continue
    return request


class _ForeignBody(RequestBody):
    """A request body over somebody else's ``wsgi.input``."""

    def __init__(self, source: Any, headers: HeaderMap):
        length = headers.get("content-length", "")
        chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self.length: int | None = None if chunked else int(length) if is_digits(length) else 0
        self.received = 0
        self._left = self.length
        self._source = source

    def read(self, size: int = -1) -> bytes:
        """Never more than the announced length: many servers would wait for ever."""
        if self._source is None or self._left == 0:
            return b""
        if self._left is not None:
            size = self._left if size < 0 else min(size, self._left)
        data = self._source.read(size) if size >= 0 else self._source.read()
        if self._left is not None:
            self._left -= len(data)
        self.received += len(data)
        return data


def call_wsgi(app: Any, request: Request) -> Response:
    """Run a foreign WSGI app on our request and collect its answer as a ``Response``."""
    state: dict[str, Any] = {}

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        state["status"], state["headers"] = status, headers
        return lambda _data: None

    chunks = app(environ_of(request), start_response)
    iterator = iter(chunks)
    first = next(iterator, b"") if "status" not in state else None
    code, _, reason = state["status"].partition(" ")
    response = Response(int(code), from_pairs(state["headers"]), reason=reason)
    if isinstance(chunks, list) and first is None:
        response.body = b"".join(chunks)
    else:
        length = response.headers.get("content-length", "")
        response.body = _ForeignChunks(first, iterator, chunks, int(length) if is_digits(length) else None)
    return response


class _ForeignChunks(ResponseBody):
    """The rest of a foreign app's body, closed as PEP 3333 asks."""

    def __init__(self, first: bytes | None, iterator: Iterator[bytes], chunks: Any, length: int | None):
        self.length = length
        self._first = first
        self._iterator = iterator
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        if self._first:
            yield self._first
        yield from self._iterator

    def close(self) -> None:
        """Close the app's iterable."""
        chunks, self._chunks = self._chunks, None
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


class _Served:
    """Our response body as a WSGI iterable that tells the observers when it ends."""

    def __init__(self, response: Response):
        self._response = response
        self._sent = 0
        self._complete = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in chunks_of(self._response.body):
            if chunk:
                self._sent += len(chunk)
                yield chunk
        self._complete = True

    def close(self) -> None:
        """Release the body and report."""
        self._response.discard()
        self._response.ended(self._sent, self._complete)


def serve_wsgi(handle: Handle, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """The WSGI face of one of our apps."""
    request = request_from_environ(environ)
    try:
        response = handle(request)
    except HTTPError as error:
        response = error.response
    headers = response.headers
    if isinstance(response.body, bytes) and "content-length" not in headers:
        headers["content-length"] = str(len(response.body))
    pairs = [(title_case(name), value) for name, value in headers.items()]
    start_response(f"{response.status} {response.reason}", pairs)
    return _Served(response)
