"""Requests as our filters and services see them.

A ``Request`` is made once by the HTTP server (or from a WSGI environ when a third-party filter sits in
front) and passes every filter by reference. ``env`` is the shared environment of proxy.md §3
(``swift.*`` keys); it is the same dictionary that a third-party WSGI filter would see as its environ.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import WSGIEnvironment

from swift.base.entity import (
    BadPath,
    Entity,
    NotUTF8,
    decode_path,
    decode_path_lossily,
    normalize_path_quoting,
    split_path,
)
from swift.base.timestamp import Timestamp
from swift.http.body import BytesBody, RequestBody
from swift.http.headers import HeaderMap

_EMPTY_BODY = BytesBody()


class Request:
    """A method, a still quoted path, a raw query, headers with lower-case names, and a body."""

    __slots__ = (
        "method",
        "raw_path",
        "query",
        "headers",
        "body",
        "env",
        "remote_addr",
        "remote_port",
        "scheme",
        "http_minor",
        "expects_continue",
        "received_at",
        "acl",
        "_params",
        "_entity",
        "_entity_raw_path",
        "_timestamp",
        "has_generated_timestamp",
    )

    def __init__(
        self,
        method: str,
        raw_path: str,
        headers: HeaderMap | None = None,
        body: RequestBody | bytes = b"",
        *,
        query: str = "",
        env: WSGIEnvironment | None = None,
        remote_addr: str = "",
        scheme: str = "http",
    ):
        self.method = method
        self.raw_path = raw_path
        self.query = query
        self.headers: HeaderMap = {} if headers is None else headers
        self.body: RequestBody = BytesBody(body) if isinstance(body, bytes) else body
        self.env: WSGIEnvironment = {} if env is None else env
        self.remote_addr = remote_addr
        self.remote_port = 0
        self.scheme = scheme
        self.http_minor = 1
        self.expects_continue = False
        #: Unix seconds when the head had arrived; 0.0 when unknown.
        self.received_at = 0.0
        #: The ACL text that the authorisation callback looks at (proxy.md §2).
        self.acl: str | None = None
        self._params: dict[str, str] | None = None
        self._entity: Entity | None = None
        #: The raw path that ``_entity`` is of.
        self._entity_raw_path: str | None = None
        self._timestamp: Timestamp | None = None
        #: True if the proxy dated the request, which may then be dated anew.
        self.has_generated_timestamp = False

    @property
    def path(self) -> str:
        """The decoded path; raises ``NotUTF8``."""
        return decode_path(self.raw_path)

    @property
    def lossy_path(self) -> str:
        """The decoded path with bytes that are not UTF-8 as surrogate escapes."""
        return decode_path_lossily(self.raw_path)

    @property
    def entity(self) -> Entity | None:
        """The API version and the account, container or object that the path names; None when it names none.

        Parsed once for all filters; setting ``raw_path`` changes it.
        """
        raw_path = self.raw_path
        if self._entity_raw_path is not raw_path:
            try:
                self._entity = Entity.parse(raw_path)
            except (BadPath, NotUTF8):
                self._entity = None
            self._entity_raw_path = raw_path
        return self._entity

    def set_entity(self, entity: Entity) -> None:
        """Let the path name something, which need not be parsed then."""
        self.raw_path = self._entity_raw_path = entity.raw_path
        self._entity = entity

    @property
    def path_qs(self) -> str:
        """The raw path with ``?query`` when there is one."""
        return f"{self.raw_path}?{self.query}" if self.query else self.raw_path

    def split_path(self, minimum: int, maximum: int, *, rest_with_last: bool = False) -> list[Any]:
        """Split the path of this request as ``base.entity.split_path`` does."""
        return split_path(self.raw_path, minimum, maximum, rest_with_last=rest_with_last)

    @property
    def params(self) -> dict[str, str]:
        """Decoded query parameters, the last of a repeated name; values are Latin-1 views."""
        params = self._params
        if params is None:
            params = self._params = parse_query(self.query) if self.query else {}
        return params

    def param_utf8(self, name: str) -> str | None:
        """Return a query parameter as text, None when absent; raises ``NotUTF8`` naming it."""
        value = self.params.get(name)
        if value is None or value.isascii():
            return value
        try:
            return value.encode("latin-1").decode("utf-8")
        except UnicodeError:
            raise NotUTF8(f'"{name}" parameter not valid UTF-8')

    def set_query(self, query: str) -> None:
        """Replace the raw query string."""
        self.query = query
        self._params = None

    @property
    def timestamp(self) -> Timestamp:
        """The request's X-Timestamp; raises ``InvalidTimestamp`` when missing or malformed."""
        if self._timestamp is None:
            self._timestamp = Timestamp(self.headers.get("x-timestamp"))
        return self._timestamp

    @timestamp.setter
    def timestamp(self, stamp: Timestamp) -> None:
        self._timestamp = stamp
        self.headers["x-timestamp"] = stamp.internal

    @property
    def url(self) -> str:
        """The full URL the client named, for Referer lines; its path quoted in our way."""
        path = normalize_path_quoting(self.raw_path)
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.headers.get('host', 'localhost')}{path}{query}"

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.path_qs}>"


def parse_query(query: str) -> dict[str, str]:
    """Parse a raw query to name → value; both are Latin-1 views of the decoded bytes."""
    if "%" not in query and "+" not in query and query.isascii():
        pairs = (part.partition("=") for part in query.split("&") if part)
        return {name: value for name, _, value in pairs}
    return dict(parse_qsl(query, keep_blank_values=True, encoding="latin-1"))
