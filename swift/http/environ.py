"""Our ``Request`` and the WSGI environ (PEP 3333) of the same request, kept equal.

``Request.env`` is the environ: a genuine dictionary that foreign software shares with ours. What WSGI wants
in it is written only before foreign software reads it (``complete_environ``), and changes are taken back into
the request (``apply_environ_changes``). Our own filters never pay for either.
"""

from __future__ import annotations

import io
import sys
from typing import Any
from urllib.parse import quote, unquote_to_bytes
from wsgiref.types import WSGIEnvironment

from swift.base.digits import is_digits
from swift.green import call_in_loop
from swift.http import environkeys
from swift.http.body import RequestBody
from swift.http.headers import HeaderMap, lower_name, upper_name
from swift.http.request import Request

#: Headers without prefix in WSGI.
_UNPREFIXED_HEADERS = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
_UNPREFIXED_KEYS = frozenset(_UNPREFIXED_HEADERS.values())
_HEADER_PREFIX = "HTTP_"


def environ_key(name: str) -> str:
    """Return the environ key of a header's lower-case name."""
    return _UNPREFIXED_HEADERS.get(name) or _HEADER_PREFIX + upper_name(name).replace("-", "_")


def _is_header(key: str) -> bool:
    return key.startswith(_HEADER_PREFIX) or key in _UNPREFIXED_KEYS


def environ_entries(request: Request) -> WSGIEnvironment:
    """Return the parts of a request that foreign software may change through the environ.

    Headers with an underscore in their name are left out: they would come back with a hyphen.
    """
    entries = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(request.raw_path.encode("latin-1")).decode("latin-1"),
        "RAW_PATH_INFO": request.raw_path,
        "QUERY_STRING": request.query,
    }
    for name, value in request.headers.items():
        if "_" not in name:
            entries[environ_key(name)] = value
    if request.acl is not None:
        entries[environkeys.ACL] = request.acl
    return entries


def refresh_environ(request: Request) -> None:
    """Bring what foreign software may change in the environ of a request up to date."""
    environ = request.env
    entries = environ_entries(request)
    for stale in [key for key in environ if _is_header(key) and key not in entries]:
        del environ[stale]
    environ.update(entries)
    if request.acl is None:
        environ.pop(environkeys.ACL, None)


def complete_environ(request: Request) -> WSGIEnvironment:
    """Return the environ of a request, which is ``request.env``, complete and up to date."""
    environ = request.env
    refresh_environ(request)
    host, port = split_host(request.headers.get("host", "localhost"))
    environ.update(
        {
            "SERVER_NAME": host,
            "SERVER_PORT": port or ("443" if request.scheme == "https" else "80"),
            "SERVER_PROTOCOL": f"HTTP/1.{request.http_minor}",
            "REMOTE_ADDR": request.remote_addr,
            "REMOTE_PORT": str(request.remote_port),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": request.scheme,
            "wsgi.input": _WsgiInput(request.body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            environkeys.BRIDGED_REQUEST: request,
        }
    )
    return environ


def apply_environ_changes(request: Request, entries: WSGIEnvironment) -> None:
    """Take what foreign software changed in the environ since ``entries`` was shown into the request."""
    environ = request.env
    request.method = environ["REQUEST_METHOD"]
    if any(environ.get(key) != entries[key] for key in ("SCRIPT_NAME", "PATH_INFO", "RAW_PATH_INFO")):
        request.raw_path = _raw_path(environ)
    if environ.get("QUERY_STRING", "") != request.query:
        request.set_query(environ.get("QUERY_STRING", ""))
    headers = request.headers
    for key in {key for key in (*entries, *environ) if _is_header(key)}:
        value = environ.get(key)
        if value == entries.get(key):
            continue
        if value is None:
            headers.pop(_header_name(key), None)
        else:
            headers[_header_name(key)] = value
    request.acl = environ.get(environkeys.ACL)


def request_from_environ(environ: WSGIEnvironment) -> Request:
    """Return a ``Request`` over the WSGI environ of a foreign server or filter."""
    headers: HeaderMap = {
        _header_name(key): value
        for key, value in environ.items()
        # keystonemiddleware sets headers that it knows nothing for to None.
        if (key.startswith(_HEADER_PREFIX) and value is not None) or (key in _UNPREFIXED_KEYS and value)
    }
    source = environ.get("wsgi.input")
    body: RequestBody = source.body if isinstance(source, _WsgiInput) else WsgiInputBody(source, headers)
    request = Request(
        environ["REQUEST_METHOD"],
        _raw_path(environ),
        headers,
        body,
        query=environ.get("QUERY_STRING", ""),
        env=environ,
        remote_addr=environ.get("REMOTE_ADDR", ""),
        scheme=environ.get("wsgi.url_scheme", "http"),
    )
    request.http_minor = 0 if environ.get("SERVER_PROTOCOL") == "HTTP/1.0" else 1
    request.acl = environ.get(environkeys.ACL)
    ours = environ.get(environkeys.BRIDGED_REQUEST)
    if isinstance(ours, Request):
        request.received_at = ours.received_at
        request.remote_port = ours.remote_port
        request.expects_continue = ours.expects_continue
    return request


def _header_name(key: str) -> str:
    return lower_name(key.removeprefix(_HEADER_PREFIX).replace("_", "-"))


def _raw_path(environ: WSGIEnvironment) -> str:
    """Return the quoted path in the client's spelling, unless a filter changed it."""
    raw: str | None = environ.get("RAW_PATH_INFO")
    path: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    if raw is not None and unquote_to_bytes(raw.encode("latin-1")).decode("latin-1") == path:
        return raw
    return quote(path.encode("latin-1"), safe="/~:@!$&'()*+,;=")


def split_host(host: str) -> tuple[str, str]:
    """Split a Host header into name and port, which may be empty; an IPv6 address loses its brackets."""
    if host.startswith("["):
        address, _, rest = host[1:].partition("]")
        return address, rest.removeprefix(":")
    name, _, port = host.partition(":")
    return name, port


class _WsgiInput(io.RawIOBase):
    """``wsgi.input`` over a request body; foreign software reads it in a thread."""

    def __init__(self, body: RequestBody):
        super().__init__()
        self.body = body

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Read as PEP 3333 requires."""
        return call_in_loop(self.body.read, -1 if size is None else size)

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, for buffered readers."""
        return call_in_loop(self.body.read_into, memoryview(buffer).cast("B"))


class WsgiInputBody(RequestBody):
    """A request body over a foreign ``wsgi.input``."""

    __slots__ = ("length", "received", "_left", "_source")

    def __init__(self, source: Any, headers: HeaderMap):
        length = headers.get("content-length", "")
        chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self.length: int | None = None if chunked else int(length) if is_digits(length) else 0
        self.received = 0
        self._left = self.length
        self._source = source

    def read(self, size: int = -1) -> bytes:
        """Read at most the announced length: many servers would wait for more forever."""
        if self._source is None or self._left == 0:
            return b""
        if self._left is not None:
            size = self._left if size < 0 else min(size, self._left)
        data: bytes = self._source.read(size) if size >= 0 else self._source.read()
        if self._left is not None:
            self._left -= len(data)
        self.received += len(data)
        return data
