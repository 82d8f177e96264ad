"""HTTP/1.1 heads, sans I/O: bytes in, values out (RFC 9112; spec: public-api.md §1).

llhttp (``httptools``) does the parsing. This module handles what llhttp treats differently from this API:

- Unknown verbs (REPLICATE, SSYNC, UPDATE, and those that become a 405) are accepted.
- Raw 8-bit bytes in the target are percent-encoded.
- A missing Host in HTTP/1.1 is refused.
- More than one space between the words of the request line is refused: readers of such lines disagree.
- Header names with underscores are dropped: CGI-style names cannot tell them from dashes. Metadata of S3
  clients, which sign it, is kept.
- Metadata with odd names or values is handled in ``wire.invalidlines``.

It refuses to know sockets and bodies.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

import httptools

from swift.base.errors import SwiftError
from swift.base.timestamp import http_date
from swift.http.headers import HeaderMap, title_case
from swift.wire import invalidlines

#: A head longer than this is refused whatever its parts are.
HEAD_BYTES_MAX = 65536

_PARSED_METHODS = frozenset((b"GET", b"HEAD", b"PUT", b"POST", b"DELETE", b"OPTIONS", b"COPY"))
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}\Z")
_VERSION = re.compile(rb"HTTP/(\d)\.(\d)\Z")
_LOWER_NAMES_MAX = 4096
_lower_names: dict[bytes, str] = {}
_LINE_BREAK = re.compile(r"[\r\n]")
#: A head whose header lines are those of RFC 9112, as llhttp demands.
_STRICT_HEAD = re.compile(rb"[^\r\n]*\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n")
#: Releases of httptools before 0.2 have the former http_parser, which accepts header lines that other readers
#: understand differently. Debian 12 has 0.1.1.
_IS_LENIENT = httptools.__version__.startswith("0.1.")
_EIGHT_BIT = re.compile(rb"[\x80-\xff]")


class BadHead(SwiftError):
    """A head that cannot become a request; ``status`` is what to answer before closing."""

    def __init__(self, status: int, text: str = "", body: bytes = b""):
        super().__init__(text or f"malformed request head ({status})")
        self.status = status
        self.body = body


class HeadLimits:
    """Limits of the parts of a head (public-api.md §1)."""

    __slots__ = ("line_bytes", "header_bytes", "header_count")

    def __init__(self, line_bytes: int = 8192, header_bytes: int = 8192, header_count: int = 201):
        self.line_bytes = line_bytes
        self.header_bytes = header_bytes
        self.header_count = header_count


class RequestHead:
    """A parsed request line and headers.

    ``length`` is the announced body size, None when ``chunked``, 0 when there is no body.
    """

    __slots__ = (
        "method",
        "raw_path",
        "query",
        "headers",
        "minor",
        "keep_alive",
        "asks_keep_alive",
        "length",
        "chunked",
        "expects_continue",
        "_url",
        "_broken",
    )

    def __init__(self) -> None:
        self.method = ""
        self.raw_path = ""
        self.query = ""
        self.headers: HeaderMap = {}
        self.minor = 1
        self.keep_alive = True
        #: The client requested keep-alive explicitly; HTTP/1.0 clients need the confirmation.
        self.asks_keep_alive = False
        self.length: int | None = 0
        self.chunked = False
        self.expects_continue = False
        self._url = b""
        self._broken = False

    def on_url(self, url: bytes) -> None:
        """llhttp callback."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """llhttp callback; repeated names are joined as signatures and the peer have them."""
        key = _lower_names.get(name)
        if key is None:
            key = _lower_name(name)
        if not key:
            return
        headers = self.headers
        text = value.decode("latin-1").rstrip(" \t")
        if key in headers:
            if key == "host":
                self._broken = True
            text = f"{headers[key]},{text}"
        headers[key] = text


def _lower_name(name: bytes) -> str:
    key = name.lower().decode("latin-1")
    if "_" in key and not key.startswith("x-amz-meta-"):
        key = ""
    if len(_lower_names) < _LOWER_NAMES_MAX:
        _lower_names[name] = key
    return key


def check_unfinished(buffer: bytes, limits: HeadLimits) -> None:
    """Refuse early a head that can only be refused, although its end has not arrived.

    One with a line that ends in a bare line feed would be waited for in vain.
    """
    if buffer.count(b"\n") != buffer.count(b"\r\n"):
        raise BadHead(400, "a line of the head ends in a bare line feed")
    if len(buffer) > limits.line_bytes and b"\r\n" not in buffer[: limits.line_bytes + 2]:
        raise BadHead(414, "request line too long")
    if len(buffer) > HEAD_BYTES_MAX:
        raise BadHead(431, "request head too long")


def parse_request_head(data: bytes, limits: HeadLimits) -> RequestHead:
    """Parse a complete head, ending with its empty line; raises ``BadHead``."""
    line_end = data.find(b"\r\n")
    if line_end > limits.line_bytes:
        raise BadHead(414, "request line too long")
    if len(data) > HEAD_BYTES_MAX:
        raise BadHead(431, "request head too long")
    space = data.find(b" ")
    method = data[:space]
    is_usual = data.endswith(b" HTTP/1.1", 0, line_end)
    if data.find(b"  ", 0, line_end) >= 0:
        raise BadHead(400, "the words of the request line are separated by more than one space")
    if method not in _PARSED_METHODS or not data[:line_end].isascii():
        data = _replace_method(data, line_end, method)
    _check_sizes(data, limits)
    try:
        head, parser = _parse_with_llhttp(data)
    except httptools.HttpParserError as error:
        if _has_newer_version(data):
            raise BadHead(505, "HTTP version not supported")
        head, parser = _parse_without_invalid_lines(data, error)
    head.method = method.decode("ascii")
    if not is_usual:
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise BadHead(505 if version >= "2" else 400, f"HTTP/{version} is not supported")
        head.minor = 1 if version == "1.1" else 0
    _finish(head)
    return head


def _check_lines(data: bytes) -> None:
    """Refuse lines that llhttp refuses, where the parser is another; raises ``HttpParserError``."""
    if _IS_LENIENT and not has_strict_lines(data):
        raise httptools.HttpParserError("malformed header line")


def has_strict_lines(data: bytes) -> bool:
    """Return True if all header lines of a head have the form of RFC 9112."""
    return _STRICT_HEAD.fullmatch(data) is not None


def _parse_with_llhttp(data: bytes) -> tuple[RequestHead, httptools.HttpRequestParser]:
    head = RequestHead()
    parser = httptools.HttpRequestParser(head)
    _check_lines(data)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        # An offer to switch protocols may be ignored (RFC 9110 §7.8): the request is answered as it is.
        pass
    return head, parser


def _parse_without_invalid_lines(
    data: bytes, error: Exception
) -> tuple[RequestHead, httptools.HttpRequestParser]:
    """Once more without the lines that only metadata excuses; raises ``BadHead`` when it was not for them."""
    taken = invalidlines.extract_invalid_lines(data)
    if taken is None or not invalidlines.is_allowed_in_request(taken[1]):
        raise BadHead(400, str(error))
    try:
        head, parser = _parse_with_llhttp(taken[0])
    except httptools.HttpParserError as other:
        raise BadHead(400, str(other))
    for name, value in taken[1]:
        if invalidlines.is_significant(name):
            head.on_header(name, value)
    return head, parser


def _has_newer_version(data: bytes) -> bool:
    last_word = data[: data.find(b"\r\n")].rsplit(b" ", 1)[-1]
    match = _VERSION.match(last_word)
    return match is not None and int(match[1]) >= 2


def _replace_method(data: bytes, line_end: int, method: bytes) -> bytes:
    """Return the same head with a verb that llhttp knows and an ASCII target."""
    if not _TOKEN.match(method):
        raise BadHead(400, "malformed method")
    target = data[len(method) : line_end]
    target = _EIGHT_BIT.sub(lambda m: b"%%%02X" % m[0][0], target)
    safe = method if method in _PARSED_METHODS else b"POST"
    return safe + target + data[line_end:]


def _check_sizes(data: bytes, limits: HeadLimits) -> None:
    lines = data.count(b"\n") - 2
    if lines > limits.header_count:
        raise BadHead(431, "too many headers", b"<html><h1>Too many headers</h1></html>")
    if len(data) > limits.header_bytes:
        for line in data.split(b"\r\n")[1:]:
            if len(line) > limits.header_bytes:
                raise BadHead(400, "header line too long")


def _finish(head: RequestHead) -> None:
    """Check target, framing and expectations of a head that llhttp accepted."""
    headers = head.headers
    if head._broken or (head.minor == 1 and "host" not in headers):
        raise BadHead(400, "exactly one Host header is required")
    target = head._url.decode("ascii")
    if not target.startswith("/"):
        target = _origin_form(target)
    head.raw_path, _, head.query = target.partition("?")
    coding = headers.get("transfer-encoding")
    if coding is not None:
        _check_coding(head, coding)
        head.length, head.chunked = None, True
    elif "content-length" in headers:
        head.length = int(headers["content-length"])
    _set_keep_alive(head)
    expect = headers.get("expect")
    if expect is not None and head.minor == 1:
        if expect.lower() != "100-continue":
            raise BadHead(417, "unknown expectation")
        head.expects_continue = True


def _set_keep_alive(head: RequestHead) -> None:
    """Set ``keep_alive`` from the head's Connection header and version."""
    wishes = head.headers.get("connection")
    if wishes is None:
        head.keep_alive = head.minor == 1
    else:
        # llhttp has forgotten its own verdict once a request without a body is complete.
        words = {word.strip() for word in wishes.lower().split(",")}
        head.asks_keep_alive = "keep-alive" in words
        head.keep_alive = "close" not in words and (head.minor == 1 or head.asks_keep_alive)
    if head.chunked and head.minor == 0:
        # HTTP/1.0 knows no chunked bodies: a relay may see its end elsewhere (RFC 9112 §6.1).
        head.keep_alive = False


def _check_coding(head: RequestHead, coding: str) -> None:
    if "content-length" in head.headers:
        raise BadHead(400, "both Content-Length and Transfer-Encoding")
    if "," in coding:
        text = b"Unsupported Transfer-Coding header value specified in Transfer-Encoding header"
        raise BadHead(501, "more than one transfer coding", text)
    if coding.strip().lower() != "chunked":
        raise BadHead(400, "unknown transfer coding", b"Invalid Transfer-Encoding header value")


def _origin_form(target: str) -> str:
    """Return the path of an absolute-form target; 400 for anything else that is not a path."""
    for scheme in ("http://", "https://"):
        if target.lower().startswith(scheme):
            slash = target.find("/", len(scheme))
            return target[slash:] if slash > 0 else "/"
    raise BadHead(400, "the request target is not a path")


# --- writing ---------------------------------------------------------------------------------------

_date_second = -1
_date_line = ""


def date_line(now_s: float | None = None) -> str:
    """Return ``Date: …`` with its line end; made once a second."""
    global _date_second, _date_line
    second = int(time.time() if now_s is None else now_s)
    if second != _date_second:
        _date_second, _date_line = second, f"Date: {http_date(second)}\r\n"
    return _date_line


def response_head(status: int, reason: str, headers: Mapping[str, str], extra: str) -> bytes:
    """Status line, Title-Cased headers, ``extra`` complete lines and the empty line, as bytes.

    Line breaks in values, which stored metadata may have, become spaces. Raises ValueError when a name or the
    reason would smuggle in another line.
    """
    lines = [f"HTTP/1.1 {status} {reason}\r\n"]
    for name, value in headers.items():
        lines.append(f"{title_case(name)}: {value}\r\n")
    block = "".join(lines)
    if block.count("\n") != len(lines) or block.count("\r") != len(lines):
        values = [_LINE_BREAK.sub(" ", str(value)) for value in headers.values()]
        lines[1:] = [f"{title_case(n)}: {v}\r\n" for n, v in zip(headers, values, strict=True)]
        block = "".join(lines)
        if block.count("\n") != len(lines) or block.count("\r") != len(lines):
            raise ValueError("a response header contains a line break")
    return (block + extra + "\r\n").encode("latin-1", "replace")


def request_head(method: str, target: str, host: str, headers: Mapping[str, str]) -> bytes:
    """Request line, Host and headers as bytes; raises ValueError like ``response_head``.

    A ``host`` among the headers, which a signature may cover, stands in for the other.
    """
    if "host" in headers:
        host = headers["host"]
        headers = {name: value for name, value in headers.items() if name != "host"}
    lines = [f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n"]
    for name, value in headers.items():
        lines.append(f"{title_case(name)}: {value}\r\n")
    block = "".join(lines)
    if block.count("\n") != len(lines) + 1 or block.count("\r") != len(lines) + 1:
        raise ValueError("a request header contains a line break")
    return (block + "\r\n").encode("latin-1", "replace")


class ResponseHead:
    """A parsed status line and headers of an answer."""

    __slots__ = ("status", "reason", "headers", "keep_alive", "length", "chunked")

    def __init__(self) -> None:
        self.status = 0
        self.reason = ""
        self.headers: HeaderMap = {}
        self.keep_alive = True
        #: Bytes of body; None when chunked or delimited by the connection's end.
        self.length: int | None = 0
        self.chunked = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """llhttp callback; repeated names are joined."""
        key = _lower_names.get(name)
        if key is None:
            key = _lower_name(name)
        if key:
            text = value.decode("latin-1").rstrip(" \t")
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_status(self, reason: bytes) -> None:
        """llhttp callback."""
        self.reason += reason.decode("latin-1")


def _parse_response_with_llhttp(data: bytes) -> tuple[ResponseHead, httptools.HttpResponseParser]:
    head = ResponseHead()
    parser = httptools.HttpResponseParser(head)
    _check_lines(data)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade as error:
        # Our requests offer no protocol switch, so a response with one is malformed.
        raise BadHead(502, f"malformed answer: {error}")
    return head, parser


def parse_response_head(data: bytes, method: str) -> ResponseHead:
    """Parse a complete answer head to a ``method`` request; raises ``BadHead`` with status 502."""
    try:
        head, parser = _parse_response_with_llhttp(data)
    except httptools.HttpParserError as error:
        taken = invalidlines.extract_invalid_lines(data)
        if taken is None:
            raise BadHead(502, f"malformed answer: {error}")
        try:
            head, parser = _parse_response_with_llhttp(taken[0])
        except httptools.HttpParserError as other:
            raise BadHead(502, f"malformed answer: {other}")
        for name, value in taken[1]:
            head.on_header(name, value)
    head.status = parser.get_status_code()
    headers = head.headers
    connection = headers.get("connection")
    is_usual = data.startswith(b"HTTP/1.1") or parser.get_http_version() == "1.1"
    head.keep_alive = is_usual and (connection is None or "close" not in connection.lower())
    if method == "HEAD" or head.status in (204, 304) or 100 <= head.status < 200:
        head.length = 0
    elif "transfer-encoding" in headers:
        head.length, head.chunked = None, True
    elif "content-length" in headers:
        head.length = int(headers["content-length"])
    else:
        head.length, head.keep_alive = None, False
    return head
