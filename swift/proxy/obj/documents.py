"""Uploads as MIME documents: the object, then what is known only at its end (spec: proxy.md §11, §13).

An object server that is asked for footers takes a body of documents instead of the bare object. A filter
that must add metadata after it saw the body leaves a callback in the environment (``UPDATE_FOOTERS``); it is
called with a ``Footers`` once the body was read. Erasure coding has footers of its own and a second round
that confirms the upload.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from hashlib import md5
from typing import Any

from swift.http import fields
from swift.http.headers import HeaderMap, lower_name, title_case
from swift.http.request import Request
from swift.wire import reservation

_OBJECT = b"X-Document: object body\r\n\r\n"
_COMMIT = b"X-Document: put commit\r\n\r\nput_commit_confirmation"
_ORDER = b"X-Document: %s\r\n\r\nplease\r\n"


class Footers(dict[str, str]):
    """Footers by name; filters may spell names in any case."""

    def __init__(self, values: Mapping[str, str] | None = None):
        super().__init__()
        self.update(values or {})

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(lower_name(name), str(value))

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(lower_name(name))

    def __delitem__(self, name: str) -> None:
        super().__delitem__(lower_name(name))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(lower_name(name))

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a footer."""
        return super().get(lower_name(name), default)

    def pop(self, name: str, *default: Any) -> Any:
        """Take a footer out."""
        return super().pop(lower_name(name), *default)

    def setdefault(self, name: str, default: Any = "") -> Any:
        """The value of a footer, set to ``default`` when there is none."""
        return super().setdefault(lower_name(name), str(default))

    def update(self, *others: Any, **named: str) -> None:
        """Set many; keyword names have underscores for dashes."""
        for name, value in dict(*others).items():
            self[name] = value
        for name, value in named.items():
            self[name.replace("_", "-")] = value


def wants_footers(request: Request) -> bool:
    """Whether a filter has something to add at the end of the upload."""
    return fields.UPDATE_FOOTERS in request.env


def footers_of(request: Request) -> Footers:
    """What filters add; the body was read."""
    footers = Footers()
    callback = request.env.get(fields.UPDATE_FOOTERS)
    if callback is not None:
        callback(footers)
    return footers


class Documents:
    """The framing of one upload's documents; the same for all its nodes."""

    def __init__(self, *, commit: bool = False, reserve: bool = False, boundary: str | None = None):
        self.commit = commit
        #: Nodes are asked to promise the object before they store it; needs ``commit``.
        self.reserve = reserve
        #: What filters added; known when the body was read.
        self.footers = Footers()
        self._boundary = boundary or secrets.token_hex(32)
        self._mark = b"--" + self._boundary.encode()
        #: What goes before the object's bytes.
        self.opening = self._mark + b"\r\n" + _OBJECT
        #: The body of the second round.
        self.confirmation = _COMMIT + b"\r\n" + self._mark + b"--"

    def headers(self, length: int | None) -> HeaderMap:
        """Request headers; ``length`` is that of the object document when it is known."""
        headers = {
            "transfer-encoding": "chunked",
            fields.BACKEND_OBJ_BOUNDARY: self._boundary,
            fields.BACKEND_OBJ_METADATA_FOOTER: "yes",
        }
        if self.commit:
            headers[fields.BACKEND_OBJ_MULTIPHASE_COMMIT] = "yes"
        if self.reserve:
            headers[reservation.OFFER] = "yes"
        if length is not None:
            headers[fields.BACKEND_OBJ_CONTENT_LENGTH] = str(length)
        return headers

    def order(self, name: str) -> bytes:
        """The body of a round before the last: ``reservation.RESERVE`` or ``RELEASE``."""
        return _ORDER % name.encode() + self._mark + b"\r\n"

    def understood(self, continue_headers: HeaderMap) -> bool:
        """Whether the server's 100 says that it takes such documents."""
        return continue_headers.get("x-obj-metadata-footer", "").lower() == "yes" and (
            not self.commit or continue_headers.get("x-obj-multiphase-commit", "").lower() == "yes"
        )

    def closing(self, footers: Mapping[str, str]) -> bytes:
        """What goes after the object's bytes: the footers, and the end of the (first) body."""
        text = json.dumps({title_case(name): value for name, value in footers.items()}).encode()
        digest = md5(text, usedforsecurity=False).hexdigest().encode()
        head = b"\r\n" + self._mark + b"\r\nX-Document: object metadata\r\nContent-MD5: " + digest
        end = self._mark + (b"\r\n" if self.commit else b"--\r\n")
        return head + b"\r\n\r\n" + text + b"\r\n" + end
