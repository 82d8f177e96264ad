"""Adapters between our filters and foreign WSGI software (PEP 3333).

Between our own filters nothing is converted; these functions run only where a foreign filter stands in the
pipeline, or where it left a callback in the environment. Both see a genuine environ (``http.environ``), and
both may answer with any WSGI application. A foreign filter that passes our response on costs no copy: files
are still sent by sendfile.

Foreign code may block, so it runs in operating system threads: the application itself, each step of the
iterable that it returns, and its callbacks. The rest of the pipeline, the request's body and the memcached
client run in the loop; the thread waits for them (``green.call_in_loop``). A request holds its thread while
the rest of the pipeline runs. The number of threads is therefore not limited here but by the requests that
a worker accepts (``max_clients``): a limit below that would let requests that hold threads wait for each
other.

An authorisation callback (``swift.authorize``) is called with a request by any filter. One of ours is
called with ``Request``, a foreign one with a ``EnvironRequest``, from either side: what crosses the border is
wrapped by ``NativeCallback`` or ``ForeignCallback``, and unwrapped when it comes home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from swift.base.digits import is_digits
from swift.base.errors import SwiftError
from swift.green import ThreadPool, call_in_loop
from swift.http import environkeys
from swift.http.body import BodyError, ResponseBody, iter_body_bytes
from swift.http.environ import (
    apply_environ_changes,
    complete_environ,
    environ_entries,
    environ_key,
    refresh_environ,
    request_from_environ,
)
from swift.http.headers import headers_from_pairs, lower_name, title_case
from swift.http.request import Request, parse_query
from swift.http.response import HTTPError, Response, error_response

_threads = ThreadPool(1 << 20, "foreign-wsgi")

App = WSGIApplication
Handle = Callable[[Request], Response]
Authorise = Callable[[Request], Response | None]


class BadApplication(SwiftError):
    """A foreign WSGI application broke the rules of PEP 3333."""


def handle_of_app(app: App) -> Handle:
    """Return the ``handle`` of one of our apps, or one that calls a foreign WSGI app."""
    handle = getattr(app, "handle", None)
    return handle if handle is not None else lambda request: call_wsgi(app, request)


# --- calling foreign applications -------------------------------------------------------------------


class _StartedResponse:
    """Response of a foreign application's ``start_response``; it may be replaced until the first byte."""

    def __init__(self) -> None:
        self.status = ""
        self.headers: list[tuple[str, str]] = []
        self.written: list[bytes] = []
        self.is_gone = False

    def start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        """Record status and headers, as ``start_response``."""
        if exc_info is not None and self.is_gone:
            raise exc_info[1].with_traceback(exc_info[2])
        if self.status and exc_info is None:
            raise BadApplication("start_response was called twice")
        self.status, self.headers = status, headers
        return self.written.append

    def response(self) -> Response:
        """Return the head; raises ``BadApplication``."""
        code, _, reason = self.status.partition(" ")
        if not (len(code) == 3 and is_digits(code)):
            raise BadApplication(f"no HTTP status: {self.status!r}")
        self.is_gone = True
        return Response(int(code), headers_from_pairs(self.headers), reason=reason)


def call_wsgi(app: App, request: Request) -> Response:
    """Run a foreign WSGI app on our request and collect its answer as a ``Response``.

    What it changed in the environ is seen in the request afterwards. Raises ``BadApplication``.
    """
    environ = complete_environ(request)
    entries = environ_entries(request)
    _wrap_environ_callbacks(environ)
    answer = _StartedResponse()
    try:
        chunks = _threads.call(_start_application, app, environ, answer)
        return _build_response(chunks, answer)
    finally:
        apply_environ_changes(request, entries)
        _unwrap_environ_callbacks(environ)


def _start_application(app: App, environ: WSGIEnvironment, answer: _StartedResponse) -> Iterable[bytes]:
    """Call an application in a thread until it has called ``start_response`` or returned its whole body."""
    chunks = app(environ, answer.start)
    if answer.status or isinstance(chunks, list | tuple):
        return chunks
    # An application may decide while it is iterated over, before its first byte.
    iterator, first = iter(chunks), []
    try:
        while not answer.status and (chunk := next(iterator, None)) is not None:
            first.append(chunk)
    except BaseException:
        _close(chunks)
        raise
    answer.written += first
    return _RemainingChunks(iterator, chunks)


class _RemainingChunks:
    """An iterable after its first items."""

    def __init__(self, iterator: Iterator[bytes], chunks: Iterable[bytes]):
        self._iterator = iterator
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return self._iterator

    def close(self) -> None:
        """Close the iterable, as PEP 3333 requires."""
        _close(self._chunks)


def _close(chunks: Iterable[bytes] | None) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


def _build_response(chunks: Iterable[bytes], answer: _StartedResponse) -> Response:
    if isinstance(chunks, _WsgiIterable) and answer.status and not answer.written:
        # Our own response, passed on: its body goes to the client unchanged.
        return chunks.transfer_body(answer.response())
    if isinstance(chunks, list | tuple) and answer.status:
        response = answer.response()
        response.body = b"".join((*answer.written, *chunks))
        return response
    try:
        response = answer.response()
    except BaseException:
        _threads.call(_close, chunks)
        raise
    length = response.headers.get("content-length", "")
    response.body = _ForeignChunks(answer.written, chunks, int(length) if is_digits(length) else None)
    return response


class _ForeignChunks(ResponseBody):
    """The rest of a foreign app's body, closed as PEP 3333 requires."""

    def __init__(self, first: list[bytes], chunks: Iterable[bytes], length: int | None):
        self.length = length
        self._first = first
        self._chunks: Iterable[bytes] | None = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._first
        if self._chunks is not None:
            iterator = _threads.call(iter, self._chunks)
            while (chunk := _threads.call(next, iterator, None)) is not None:
                yield chunk

    def close(self) -> None:
        """Close the app's iterable."""
        chunks, self._chunks = self._chunks, None
        if getattr(chunks, "close", None) is not None:
            _threads.call(_close, chunks)


# --- serving foreign software -----------------------------------------------------------------------


class _WsgiIterable:
    """Our response body as a WSGI iterable that notifies observers of its end."""

    def __init__(self, response: Response):
        self._response = response
        self._sent = 0
        self._complete = False

    def __iter__(self) -> Iterator[bytes]:
        chunks = call_in_loop(iter_body_bytes, self._response.body)
        while (chunk := call_in_loop(next, chunks, None)) is not None:
            if chunk:
                self._sent += len(chunk)
                yield chunk
        self._complete = True

    def transfer_body(self, head: Response) -> Response:
        """Move body and observers to another head and return it."""
        ours, self._response = self._response, Response()
        head.body, head.on_end, head.close_connection = ours.body, ours.on_end, ours.close_connection
        return head

    def close(self) -> None:
        """Release the body and report."""
        call_in_loop(self._report_end)

    def _report_end(self) -> None:
        self._response.discard()
        self._response.report_end(self._sent, self._complete)


def serve_wsgi(handle: Handle, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Serve a request of foreign software by one of our apps; runs it in the loop."""
    response = call_in_loop(_handle_environ, handle, environ)
    return as_application(response)(environ, start_response)


def _handle_environ(handle: Handle, environ: WSGIEnvironment) -> Response:
    _unwrap_environ_callbacks(environ)
    request = request_from_environ(environ)
    response = response_or_error(handle, request)
    # Foreign software above sees the changes that ours below made.
    refresh_environ(request)
    _wrap_environ_callbacks(environ)
    return response


def as_application(response: Response) -> App:
    """Return a response as the WSGI application that gives it."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        headers = response.headers
        if isinstance(response.body, bytes) and "content-length" not in headers:
            headers["content-length"] = str(len(response.body))
        pairs = [(title_case(name), value) for name, value in headers.items()]
        start_response(f"{response.status} {response.reason}", pairs)
        return _WsgiIterable(response)

    return application


def response_or_error(handle: Handle, request: Request) -> Response:
    """Return the response of ``handle``, responses carried by exceptions included; other exceptions pass."""
    try:
        return handle(request)
    except HTTPError as error:
        return error.response
    except BodyError as error:
        return error_response(error.status)


# --- callbacks --------------------------------------------------------------------------------------


class EnvironRequest:
    """A request as foreign callbacks know it: the environ, and the usual short names for what is in it."""

    def __init__(self, environ: WSGIEnvironment):
        self.environ = environ
        self.headers = _EnvironHeaders(environ)

    @property
    def method(self) -> str:
        """GET, PUT and so on."""
        return self.environ["REQUEST_METHOD"]

    @property
    def path(self) -> str:
        """The quoted path."""
        return request_from_environ(self.environ).raw_path

    @property
    def path_info(self) -> str:
        """The decoded path as WSGI gives it."""
        return self.environ["PATH_INFO"]

    @property
    def params(self) -> dict[str, str]:
        """Decoded query parameters."""
        return parse_query(self.environ.get("QUERY_STRING", ""))

    @property
    def remote_user(self) -> str | None:
        """User that the authentication filter names."""
        return self.environ.get(environkeys.REMOTE_USER)

    @property
    def referer(self) -> str | None:
        """The Referer header."""
        return self.headers.get("Referer")

    @property
    def acl(self) -> str | None:
        """The ACL text of the requested entity (proxy.md §2)."""
        return self.environ.get(environkeys.ACL)

    def split_path(
        self, minsegs: int = 1, maxsegs: int | None = None, rest_with_last: bool = False
    ) -> list[object]:
        """Return the decoded segments of the path; raises ValueError."""
        request = request_from_environ(self.environ)
        return request.split_path(minsegs, maxsegs or minsegs, rest_with_last=rest_with_last)

    def __repr__(self) -> str:
        return f"<ForeignRequest {self.method} {self.path_info}>"


class _EnvironHeaders(MutableMapping[str, str]):
    """The headers in an environ, by names in any case."""

    def __init__(self, environ: WSGIEnvironment):
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        return self._environ[environ_key(lower_name(name))]

    def __setitem__(self, name: str, value: str) -> None:
        self._environ[environ_key(lower_name(name))] = value

    def __delitem__(self, name: str) -> None:
        del self._environ[environ_key(lower_name(name))]

    def __iter__(self) -> Iterator[str]:
        return iter([title_case(name) for name in request_from_environ(self._environ).headers])

    def __len__(self) -> int:
        return len(request_from_environ(self._environ).headers)


class NativeCallback:
    """One of our authorisation callbacks while it is among foreigners: they get a WSGI application back."""

    def __init__(self, callback: Authorise):
        self.callback = callback

    def __call__(self, request: Any) -> Any:
        """Return None if the request is allowed, else the denial as a WSGI application."""
        if isinstance(request, Request):
            return self.callback(request)
        denial = call_in_loop(self.callback, request_from_environ(request.environ))
        return None if denial is None else as_application(denial)


class ForeignCallback:
    """A foreign authorisation callback while it is with us: it gets an environ, and we get a ``Response``."""

    def __init__(self, callback: Callable[[Any], Any]):
        self.callback = callback

    def __call__(self, request: object) -> object:
        """Return None if the request is allowed, else the denial as a ``Response``."""
        if not isinstance(request, Request):
            return self.callback(request)
        environ = complete_environ(request)
        entries = environ_entries(request)
        try:
            denial = _threads.call(self.callback, EnvironRequest(environ))
        finally:
            apply_environ_changes(request, entries)
        return denial if denial is None or isinstance(denial, Response) else call_wsgi(denial, request)


class ForeignCache:
    """The memcached client of a request with the peer's names and arguments, for foreign filters."""

    def __init__(self, cache: Any):
        self.cache = cache

    def get(self, key: str, raise_on_error: bool = False) -> object:
        """Return a value, None when there is none."""
        return call_in_loop(partial(self.cache.get, key, raise_on_error=raise_on_error))

    def set(
        self, key: str, value: object, serialize: bool = True, time: float = 0, raise_on_error: bool = False
    ) -> None:
        """Store a value for ``time`` seconds, 0 for ever; stored as JSON, bytes as text."""
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        call_in_loop(partial(self.cache.set, key, value, ttl_s=time, raise_on_error=raise_on_error))

    def delete(self, key: str, server_key: str | None = None) -> None:
        """Remove a value."""
        call_in_loop(partial(self.cache.delete, key, server_key=server_key))

    def incr(self, key: str, delta: int = 1, time: float = 0) -> int:
        """Add to a counter and return it."""
        return call_in_loop(partial(self.cache.incr, key, delta, ttl_s=time))

    def decr(self, key: str, delta: int = 1, time: float = 0) -> int:
        """Subtract from a counter and return it."""
        return call_in_loop(partial(self.cache.decr, key, delta, ttl_s=time))

    def set_multi(
        self, mapping: Mapping[str, object], server_key: str, serialize: bool = True, time: float = 0
    ) -> None:
        """Store values on the server of ``server_key``."""
        call_in_loop(partial(self.cache.set_multi, mapping, server_key, ttl_s=time))

    def get_multi(self, keys: Sequence[str], server_key: str) -> list[object]:
        """Return the values of the server of ``server_key``, None for each missing one."""
        return call_in_loop(self.cache.get_multi, keys, server_key)


def _wrap_environ_callbacks(environ: WSGIEnvironment) -> None:
    callback = environ.get(environkeys.AUTHORIZE)
    if isinstance(callback, ForeignCallback):
        environ[environkeys.AUTHORIZE] = callback.callback
    elif callback is not None and not isinstance(callback, NativeCallback):
        environ[environkeys.AUTHORIZE] = NativeCallback(callback)
    cache = environ.get(environkeys.CACHE)
    if cache is not None and not isinstance(cache, ForeignCache):
        environ[environkeys.CACHE] = ForeignCache(cache)


def _unwrap_environ_callbacks(environ: WSGIEnvironment) -> None:
    callback = environ.get(environkeys.AUTHORIZE)
    if isinstance(callback, NativeCallback):
        environ[environkeys.AUTHORIZE] = callback.callback
    elif callback is not None and not isinstance(callback, ForeignCallback):
        environ[environkeys.AUTHORIZE] = ForeignCallback(callback)
    cache = environ.get(environkeys.CACHE)
    if isinstance(cache, ForeignCache):
        environ[environkeys.CACHE] = cache.cache
