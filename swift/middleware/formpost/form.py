"""The parts of a form as they arrive: small fields kept whole, files as bodies of requests.

A part is read to its end before the next one begins, so that no more than a buffer is ever in memory. What a
browser sends is MIME (``wire.mime``); a body that ends before the form does makes no shortened files.
"""

from __future__ import annotations

import re
from abc import abstractmethod

from swift.http.body import CHUNK_BYTES, BodyError, RequestBody
from swift.http.headers import HeaderMap
from swift.wire.mime import BadMime, DocumentBegins, DocumentData, DocumentEnds, Event, MimeParser

#: A field's value longer than this is cut, bytes.
FIELD_BYTES_MAX = 4096
STARTS_WRONGLY = "invalid starting boundary"

_PARAMETER = re.compile(r';\s*([^\s;="]+)\s*=\s*("(?:\\.|[^"\\])*"|[^;"]*)')


class BadForm(BodyError):
    """The body is no form (400)."""

    status = 400


class FileTooLarge(BodyError):
    """A file is larger than the form allows (413)."""

    status = 413


def parse_parameters(value: str) -> tuple[str, dict[str, str]]:
    """Return a header value such as ``form-data; name="a"`` as its first word and its parameters.

    Backslashes stay as they are: browsers do not mean them as escapes.
    """
    kind, _, rest = value.partition(";")
    return kind.strip(), {m[1]: m[2].strip().strip('"') for m in _PARAMETER.finditer(f";{rest}")}


class Form:
    """Reads a form part by part."""

    def __init__(self, body: RequestBody, boundary: str):
        self._body = body
        try:
            self._parser = MimeParser(boundary)
        except BadMime:
            raise BadForm(STARTS_WRONGLY)
        #: The next event is the last of these.
        self._events: list[Event] = []
        self._last = False
        self._begun = False
        #: Only empty lines came so far.
        self._leads = True

    def next_part(self) -> HeaderMap | None:
        """Return the headers of the next part, None after the last.

        Raises ``BadForm`` and what reading raises.
        """
        while True:
            event = None if self._last and not self._events else self._next_event()
            if event is None:
                return None
            if isinstance(event, DocumentBegins):
                return event.headers

    def data(self) -> bytes:
        """Return some bytes of the current part, empty at its end; raises as ``next_part``."""
        event = self._next_event()
        return event.data if isinstance(event, DocumentData) else b""

    def value(self) -> str:
        """Return the current field's value, a Latin-1 view of at most ``FIELD_BYTES_MAX`` bytes."""
        value = b""
        while data := self.data():
            value = (value + data)[:FIELD_BYTES_MAX]
        return value.decode("latin-1")

    def _next_event(self) -> Event:
        while not self._events:
            data = self._body.read(CHUNK_BYTES)
            if not data:
                raise BadForm("the form ended early" if self._begun else STARTS_WRONGLY)
            if self._leads:
                data = data.lstrip(b"\r\n")
                self._leads = not data
            try:
                self._events = self._parser.feed(data)[::-1]
            except BadMime as error:
                raise BadForm(str(error) if self._begun else STARTS_WRONGLY)
            self._begun = self._begun or bool(self._events)
        event = self._events.pop()
        if isinstance(event, DocumentEnds):
            self._last = event.last
        return event


class FormFileBody(RequestBody):
    """A file of a form as the body of a PUT; those who know how large it may be say so in ``judge``."""

    def __init__(self, form: Form):
        self.length: int | None = None
        self.received = 0
        self._form = form
        self._rest = b""
        self._ended = False

    @abstractmethod
    def judge(self, *, is_whole: bool) -> None:
        """Raise ``BodyError`` for what is too large already, or too small as a whole."""

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``; raises ``BadForm`` and what ``judge`` does too."""
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        while size and not self._rest and not self._ended:
            self._rest = self._form.data()
            self._ended = not self._rest
        data, self._rest = self._rest[:size], self._rest[size:]
        self.received += len(data)
        self.judge(is_whole=self._ended and not data)
        return data


class BoundedFileBody(FormFileBody):
    """A file of which more than ``size_max`` bytes are refused (``FileTooLarge``)."""

    def __init__(self, form: Form, size_max: int):
        super().__init__(form)
        self.is_too_large = False
        self._size_max = size_max

    def judge(self, *, is_whole: bool) -> None:
        """See ``FormFileBody``."""
        if self.received > self._size_max:
            self.is_too_large = True
            raise FileTooLarge(f"a file of more than {self._size_max} bytes")

    def drain(self) -> None:
        """Read and discard the rest."""
        while self.read(CHUNK_BYTES):
            pass
