"""Responses as values, and the one error type that carries one."""

from __future__ import annotations

from collections.abc import Callable

from swift.base.errors import SwiftError
from swift.http.body import ResponseBody, chunks_of
from swift.http.headers import HeaderMap
from swift.http.status import default_body, reason_of

HTML = "text/html; charset=UTF-8"
TEXT = "text/plain"

#: Called once after a response body ended: bytes of body sent, whether it was sent completely.
EndObserver = Callable[[int, bool], None]


class Response:
    """A status, headers (lower-case names) and a body of one of the kinds in ``http.body``.

    ``content-length`` is derived for ``bytes`` bodies when absent. A body of unknown
    length that has no ``content-length`` header is sent chunked.
    """

    __slots__ = ("status", "reason", "headers", "body", "on_end", "close_connection")

    def __init__(
        self,
        status: int = 200,
        headers: HeaderMap | None = None,
        body: bytes | ResponseBody = b"",
        *,
        reason: str | None = None,
    ):
        self.status = status
        self.reason = reason or reason_of(status)
        self.headers: HeaderMap = {} if headers is None else headers
        self.body = body
        self.on_end: list[EndObserver] | None = None
        self.close_connection = False

    @property
    def is_success(self) -> bool:
        """2xx."""
        return 200 <= self.status <= 299

    def observe_end(self, observer: EndObserver) -> None:
        """Have ``observer(bytes_sent, complete)`` called when the body ended or broke off."""
        if self.on_end is None:
            self.on_end = [observer]
        else:
            self.on_end.append(observer)

    def ended(self, sent_bytes: int, complete: bool) -> None:
        """Tell the observers; called after the body is sent or discarded."""
        observers, self.on_end = self.on_end, None
        for observer in observers or ():
            observer(sent_bytes, complete)

    def discard(self) -> None:
        """Release the body without sending it."""
        body, self.body = self.body, b""
        if not isinstance(body, bytes):
            body.close()

    def read_body(self, limit_bytes: int = 64 << 20) -> bytes:
        """The whole body in memory; raises ValueError when it is larger than ``limit_bytes``."""
        body = self.body
        if not isinstance(body, bytes):
            pieces: list[bytes] = []
            size = 0
            try:
                for piece in chunks_of(body):
                    size += len(piece)
                    if size > limit_bytes:
                        raise ValueError(f"body larger than {limit_bytes} bytes")
                    pieces.append(piece)
            finally:
                self.discard()
            self.body = body = b"".join(pieces)
        return body

    def __repr__(self) -> str:
        return f"<Response {self.status} {self.reason}>"


def error_response(
    status: int,
    text: str | bytes | None = None,
    headers: HeaderMap | None = None,
    *,
    content_type: str | None = None,
    drive: str = "",
) -> Response:
    """A response with the default HTML body of ``status``, or with ``text`` as its body.

    ``content_type`` defaults to HTML, the peer's default for texts too; callers pass ``TEXT`` where the
    spec says text/plain.
    """
    if text is None:
        body = default_body(status, drive)
    else:
        body = _encoded(text) if isinstance(text, str) else text
    merged: HeaderMap = {"content-type": content_type or HTML}
    if headers:
        merged.update(headers)
    return Response(status, merged, body)


def _encoded(text: str) -> bytes:
    """Return a text as bytes; half of a surrogate pair, which JSON of clients may have, as an escape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


class HTTPError(SwiftError):
    """Raised anywhere below a handler to answer with ``response`` at once."""

    def __init__(
        self,
        status: int,
        text: str | bytes | None = None,
        headers: HeaderMap | None = None,
        *,
        content_type: str | None = None,
        drive: str = "",
    ):
        self.response = error_response(status, text, headers, content_type=content_type, drive=drive)
        super().__init__(f"{status} {self.response.reason}")

    @classmethod
    def of(cls, response: Response) -> HTTPError:
        """Wrap an existing response."""
        self = cls.__new__(cls)
        SwiftError.__init__(self, f"{response.status} {response.reason}")
        self.response = response
        return self
