"""Uploads as MIME framing: the object, then metadata that is known only at its end (spec: proxy.md §11,
§13).

An object server that is sent footers takes a body of framing instead of the bare object. A filter that must
add metadata after it saw the body leaves a callback in the environment (``UPDATE_FOOTERS``), which is called
with a ``Footers`` once the body was read. Erasure coding has footers of its own and a second round that
confirms the upload.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from functools import partial
from hashlib import md5
from typing import Any

from swift.base.limits import Limits
from swift.http import environkeys, fields
from swift.http.body import BytesBody, ClientDisconnected
from swift.http.headers import HeaderMap, lower_name, title_case, wire_value
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.http.validate import check_metadata
from swift.wire import etagtrailer, reservation

#: Footers are sent in the head up to this size: a small part of what servers of either kind accept.
FOOTERS_IN_HEAD_BYTES = 4096
#: Footers that object servers know; they ignore others.
_ACCEPTED_FOOTERS = (
    "x-object-meta-",
    fields.OBJECT_SYSMETA,
    fields.OBJECT_TRANSIENT_SYSMETA,
    fields.BACKEND_UPDATE_OVERRIDE,
)
#: Names and values that a request head can carry.
_NAME = re.compile(r"[a-z0-9!#$%&'*+.^`|~-]+\Z")
_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]*\Z")
_OBJECT = b"X-Document: object body\r\n\r\n"
_COMMIT = b"X-Document: put commit\r\n\r\nput_commit_confirmation"
_COMMAND = b"X-Document: %s\r\n\r\nplease\r\n"


class Footers(dict[str, str]):
    """Footers by name; filters may spell names in any case."""

    def __init__(self, values: Mapping[str, str] | None = None):
        super().__init__()
        self.update(values or {})

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(lower_name(name), str(value))

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(lower_name(name))

    def __delitem__(self, name: str) -> None:
        super().__delitem__(lower_name(name))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(lower_name(name))

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a footer."""
        return super().get(lower_name(name), default)

    def pop(self, name: str, *default: Any) -> Any:
        """Take a footer out."""
        return super().pop(lower_name(name), *default)

    def setdefault(self, name: str, default: object = "") -> Any:
        """Return the value of a footer, set to ``default`` when there is none."""
        return super().setdefault(lower_name(name), str(default))

    def update(self, *others: Any, **named: str) -> None:
        """Set many; keyword names have underscores for dashes."""
        for name, value in dict(*others).items():
            self[name] = value
        for name, value in named.items():
            self[name.replace("_", "-")] = value


def wants_footers(request: Request) -> bool:
    """Return True if a filter adds footers at the end of the upload."""
    return environkeys.UPDATE_FOOTERS in request.env


def buffer_body(request: Request) -> bytes:
    """Read a small body completely, so that it and its footers can be sent again.

    Raises ``ClientDisconnected`` when it is shorter.
    """
    body = read_exactly(request)
    request.body = BytesBody(body)
    if wants_footers(request):
        request.env[environkeys.UPDATE_FOOTERS] = partial(_add, footers_of(request))
    return body


def _add(known: Mapping[str, str], footers: Footers) -> None:
    footers.update(known)


def is_small(request: Request, size_max: int) -> bool:
    """Return True if the body fits into one read; nodes may hash such a body themselves."""
    length = request.body.length
    return length is not None and length <= size_max


def read_exactly(request: Request) -> bytes:
    """Return the whole announced body; raises ``ClientDisconnected`` when it is shorter."""
    body = request.body
    wanted = body.length or 0
    if not wanted:
        return b""
    data = body.read(wanted)
    if len(data) == wanted:
        return data
    pieces, left = [data], wanted - len(data)
    while left:
        piece = body.read(left)
        if not piece:
            raise ClientDisconnected("the body is shorter than announced")
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def footers_as_headers(headers: HeaderMap, footers: Footers, limits: Limits) -> HeaderMap | None:
    """Return the ``footers`` that object servers act upon, as headers of a request that has ``headers``.

    None when a head has no room for them, or cannot carry them.
    """
    found = {}
    for name, value in footers.items():
        if name == "etag" or name.startswith(_ACCEPTED_FOOTERS):
            # Latin-1 views of wire bytes stay as they are; anything wider is decoded text.
            text = value if all(letter < "\u0100" for letter in value) else wire_value(value)
            if not _NAME.match(name) or not _VALUE.match(text) or text != text.strip():
                return None
            found[name] = text
    if sum(len(name) + len(value) for name, value in found.items()) > FOOTERS_IN_HEAD_BYTES:
        return None
    try:
        check_metadata({**headers, **found}, "object", limits)
    except HTTPError:
        # The limits are for clients' metadata; footers of filters may exceed them.
        return None
    return found


def footers_of(request: Request) -> Footers:
    """Return the footers that filters add; the body must have been read."""
    footers = Footers()
    callback = request.env.get(environkeys.UPDATE_FOOTERS)
    if callback is not None:
        callback(footers)
    return footers


class MultipartFraming:
    """The framing of one upload; the same for all its nodes."""

    def __init__(
        self,
        *,
        commit: bool = False,
        reserve: bool = False,
        has_object: bool = True,
        offers_etag: bool = False,
        boundary: str | None = None,
    ):
        self.commit = commit
        #: Nodes reserve the object before they change it; needs ``commit``.
        self.reserve = reserve
        #: False for a change without a body, whose first round is empty.
        self.has_object = has_object
        #: Nodes are offered the body's MD5 in the footers (``wire.etagtrailer``).
        self.offers_etag = offers_etag
        self._boundary = boundary or secrets.token_hex(32)
        self._mark = b"--" + self._boundary.encode()
        #: The bytes before the object's.
        self.opening = self._mark + b"\r\n" + (_OBJECT if has_object else b"")
        #: The body of the second round.
        self.confirmation = _COMMIT + b"\r\n" + self._mark + b"--"

    def headers(self, length: int | None) -> HeaderMap:
        """Request headers; ``length`` is that of the object document when it is known."""
        headers = {
            "transfer-encoding": "chunked",
            fields.BACKEND_OBJ_BOUNDARY: self._boundary,
        }
        if self.has_object:
            headers[fields.BACKEND_OBJ_METADATA_FOOTER] = "yes"
        if self.commit:
            headers[fields.BACKEND_OBJ_MULTIPHASE_COMMIT] = "yes"
        if self.reserve:
            headers[reservation.OFFER] = "yes"
        if self.offers_etag:
            headers[etagtrailer.OFFER] = etagtrailer.CRC32
        if length is not None:
            headers[fields.BACKEND_OBJ_CONTENT_LENGTH] = str(length)
        return headers

    def command(self, name: str) -> bytes:
        """Return the body of a round before the last: ``reservation.RESERVE`` or ``RELEASE``."""
        return _COMMAND % name.encode() + self._mark + b"\r\n"

    def is_supported_by(self, continue_headers: HeaderMap) -> bool:
        """Return True if the server's 100 says that it supports this framing."""
        says_footers = continue_headers.get("x-obj-metadata-footer", "").lower() == "yes"
        says_commit = continue_headers.get("x-obj-multiphase-commit", "").lower() == "yes"
        return says_footers >= self.has_object and says_commit >= self.commit

    def whole(self, body: bytes, footers: Mapping[str, str]) -> bytes:
        """Return the complete first body of an upload that is in memory."""
        return self.opening + body + self.closing(footers)

    def closing(self, footers: Mapping[str, str]) -> bytes:
        """Return the bytes after the object's: the footers, and the end of the first body."""
        text = json.dumps({title_case(name): value for name, value in footers.items()}).encode()
        digest = md5(text, usedforsecurity=False).hexdigest().encode()
        head = b"\r\n" + self._mark + b"\r\nX-Document: object metadata\r\nContent-MD5: " + digest
        end = self._mark + (b"\r\n" if self.commit else b"--\r\n")
        return head + b"\r\n\r\n" + text + b"\r\n" + end
