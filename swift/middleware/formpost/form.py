"""Parser for multipart forms: fields are read whole, files are bodies of requests.

Each part is read to its end before the next one, so that only one buffer is in memory. Forms are MIME
(``wire.mime``). A body that ends before the form does raises an error instead of storing a truncated file.
"""

from __future__ import annotations

import re
from abc import abstractmethod

from swift.http.body import CHUNK_BYTES, BodyError, RequestBody
from swift.http.headers import HeaderMap
from swift.wire.mime import BadMime, DocumentBegins, DocumentData, DocumentEnds, Event, MimeParser

#: Longer values of fields are truncated, bytes.
FIELD_BYTES_MAX = 4096
INVALID_START = "invalid starting boundary"

_PARAMETER_PATTERN = re.compile(r';\s*([^\s;="]+)\s*=\s*("(?:\\.|[^"\\])*"|[^;"]*)')


class InvalidForm(BodyError):
    """The body is not a valid form (400)."""

    status = 400


class FileTooLarge(BodyError):
    """A file is larger than the form allows (413)."""

    status = 413


def parse_parameters(value: str) -> tuple[str, dict[str, str]]:
    """Return value and parameters of a header such as ``form-data; name="a"``.

    Backslashes stay as they are: browsers do not use them as escapes.
    """
    kind, _, rest = value.partition(";")
    return kind.strip(), {m[1]: m[2].strip().strip('"') for m in _PARAMETER_PATTERN.finditer(f";{rest}")}


class Form:
    """Reads a form part by part."""

    def __init__(self, body: RequestBody, boundary: str):
        self._body = body
        try:
            self._parser = MimeParser(boundary)
        except BadMime:
            raise InvalidForm(INVALID_START)
        #: Parsed events in reverse order.
        self._events: list[Event] = []
        self._is_last_part = False
        self._has_events = False
        #: True while only empty lines have arrived.
        self._skips_empty_lines = True

    def next_part(self) -> HeaderMap | None:
        """Return the headers of the next part, None after the last.

        Raises ``InvalidForm`` and the errors of the body.
        """
        while True:
            event = None if self._is_last_part and not self._events else self._next_event()
            if event is None:
                return None
            if isinstance(event, DocumentBegins):
                return event.headers

    def read_data(self) -> bytes:
        """Return some bytes of the current part, empty at its end; raises the errors of ``next_part``."""
        event = self._next_event()
        return event.data if isinstance(event, DocumentData) else b""

    def read_value(self) -> str:
        """Return the current field's value, a Latin-1 view of at most ``FIELD_BYTES_MAX`` bytes."""
        value = b""
        while data := self.read_data():
            value = (value + data)[:FIELD_BYTES_MAX]
        return value.decode("latin-1")

    def _next_event(self) -> Event:
        while not self._events:
            data = self._body.read(CHUNK_BYTES)
            if not data:
                raise InvalidForm("the form ended early" if self._has_events else INVALID_START)
            if self._skips_empty_lines:
                data = data.lstrip(b"\r\n")
                self._skips_empty_lines = not data
            try:
                self._events = self._parser.feed(data)[::-1]
            except BadMime as error:
                raise InvalidForm(str(error) if self._has_events else INVALID_START)
            self._has_events = self._has_events or bool(self._events)
        event = self._events.pop()
        if isinstance(event, DocumentEnds):
            self._is_last_part = event.last
        return event


class FormFileBody(RequestBody):
    """A file of a form as the body of a PUT; subclasses limit its size in ``check_size``."""

    def __init__(self, form: Form):
        self.length: int | None = None
        self.received = 0
        self._form = form
        self._buffered = b""
        self._ended = False

    @abstractmethod
    def check_size(self, *, is_complete: bool) -> None:
        """Raise ``BodyError`` for a file that is too large already, or too small at its end."""

    def read(self, size: int = -1) -> bytes:
        """Return bytes of the file; raise ``InvalidForm`` and the errors of ``check_size``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        while size and not self._buffered and not self._ended:
            self._buffered = self._form.read_data()
            self._ended = not self._buffered
        data, self._buffered = self._buffered[:size], self._buffered[size:]
        self.received += len(data)
        self.check_size(is_complete=self._ended and not data)
        return data


class SizeLimitedFileBody(FormFileBody):
    """A file with at most ``size_max`` bytes; a larger one raises ``FileTooLarge``."""

    def __init__(self, form: Form, size_max: int):
        super().__init__(form)
        self.is_too_large = False
        self._size_max = size_max

    def check_size(self, *, is_complete: bool) -> None:
        """Raise ``FileTooLarge`` for a file above the largest size of the form."""
        if self.received > self._size_max:
            self.is_too_large = True
            raise FileTooLarge(f"a file of more than {self._size_max} bytes")

    def drain(self) -> None:
        """Read and discard the rest."""
        while self.read(CHUNK_BYTES):
            pass
