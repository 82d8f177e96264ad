"""Responses as values, the one error type that carries one, and status codes (spec: public-api.md §3).

The texts of the status codes are part of the observable interface: clients and log tools match them.
"""

from __future__ import annotations

from collections.abc import Callable

from swift.base.errors import SwiftError
from swift.http.body import ResponseBody, iter_body_bytes
from swift.http.headers import HeaderMap

#: code → (reason, explanation); an empty explanation means an empty default body.
STATUS: dict[int, tuple[str, str]] = {
    100: ("Continue", ""),
    200: ("OK", ""),
    201: ("Created", ""),
    202: ("Accepted", "The request is accepted for processing."),
    204: ("No Content", ""),
    206: ("Partial Content", ""),
    301: ("Moved Permanently", "The resource has moved permanently."),
    302: ("Found", "The resource has moved temporarily."),
    303: ("See Other", "The response to the request can be found under a different URI."),
    304: ("Not Modified", ""),
    307: ("Temporary Redirect", "The resource has moved temporarily."),
    400: (
        "Bad Request",
        "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    ),
    401: (
        "Unauthorized",
        "This server could not verify that you are authorized to access the document you requested.",
    ),
    402: ("Payment Required", "Access was denied for financial reasons."),
    403: ("Forbidden", "Access was denied to this resource."),
    404: ("Not Found", "The resource could not be found."),
    405: ("Method Not Allowed", "The method is not allowed for this resource."),
    406: ("Not Acceptable", "The resource is not available in a format acceptable to your browser."),
    408: ("Request Timeout", "The server has waited too long for the request to be sent by the client."),
    409: ("Conflict", "There was a conflict when trying to complete your request."),
    410: ("Gone", "This resource is no longer available."),
    411: ("Length Required", "Content-Length header required."),
    412: ("Precondition Failed", "A precondition for this request was not met."),
    413: ("Request Entity Too Large", "The body of your request was too large for this server."),
    414: ("Request URI Too Long", "The request URI was too long for this server."),
    415: ("Unsupported Media Type", "The request media type is not supported by this server."),
    416: ("Requested Range Not Satisfiable", "The Range requested is not available."),
    417: ("Expectation Failed", "Expectation failed."),
    422: ("Unprocessable Entity", "Unable to process the contained instructions"),
    431: ("Too many headers", "The request has too many headers or one that is too long."),
    499: ("Client Disconnect", "The client was disconnected during request."),
    500: (
        "Internal Error",
        "The server has either erred or is incapable of performing the requested operation.",
    ),
    501: ("Not Implemented", "The requested method is not implemented by this server."),
    502: ("Bad Gateway", "Bad gateway."),
    503: (
        "Service Unavailable",
        "The server is currently unavailable. Please try again at a later time.",
    ),
    504: ("Gateway Timeout", "A timeout has occurred speaking to a backend server."),
    505: ("HTTP Version Not Supported", "This server speaks HTTP/1.0 and HTTP/1.1."),
    507: ("Insufficient Storage", "There was not enough space to save the resource. Drive: {drive}"),
    529: (
        "Too Many Backend Requests",
        "The server is incapable of performing the requested operation due to too many requests. Slow down.",
    ),
}


def reason_phrase(code: int) -> str:
    """Return the reason phrase of a status code."""
    return STATUS[code][0] if code in STATUS else "Unknown"


def default_body(code: int, drive: str = "") -> bytes:
    """Return the HTML body of a response that has none of its own; empty for 2xx-style codes without text."""
    reason, explanation = STATUS.get(code, ("", ""))
    if not explanation:
        return b""
    if code == 507:
        explanation = explanation.format(drive=drive)
    return f"<html><h1>{reason}</h1><p>{explanation}</p></html>".encode()


def is_success(code: int) -> bool:
    """Return True for 2xx."""
    return 200 <= code <= 299


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
        self.reason = reason or reason_phrase(status)
        self.headers: HeaderMap = {} if headers is None else headers
        self.body = body
        self.on_end: list[EndObserver] | None = None
        self.close_connection = False

    @property
    def is_success(self) -> bool:
        """2xx."""
        return 200 <= self.status <= 299

    def on_response_end(self, observer: EndObserver) -> None:
        """Have ``observer(bytes_sent, complete)`` called when the body ended or broke off."""
        if self.on_end is None:
            self.on_end = [observer]
        else:
            self.on_end.append(observer)

    def report_end(self, sent_bytes: int, complete: bool) -> None:
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
        """Return the whole body in memory; raises ValueError when it is larger than ``limit_bytes``."""
        body = self.body
        if not isinstance(body, bytes):
            pieces: list[bytes] = []
            size = 0
            try:
                for piece in iter_body_bytes(body):
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
    """Return a response with the default HTML body of ``status``, or with ``text`` as its body.

    ``content_type`` defaults to HTML, the peer's default for texts too; callers pass ``TEXT`` where the
    spec says text/plain.
    """
    if text is None:
        body = default_body(status, drive)
    else:
        body = _encode_text(text) if isinstance(text, str) else text
    merged: HeaderMap = {"content-type": content_type or HTML}
    if headers:
        merged.update(headers)
    return Response(status, merged, body)


def _encode_text(text: str) -> bytes:
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
