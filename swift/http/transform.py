"""Bodies around other bodies: transformed, observed, or replaced in a response.

    response.body = Mapped(response.body, decryptor.update)
    request.body = MappedRequest(request.body, encryptor.update)
    with as_request_body(self.forward(get)) as body:
        ...  # a copy: the body of a PUT

Observed bytes must pass through this process: a body that is wrapped here is neither sent by sendfile nor
spliced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from swift.base.digits import is_digits
from swift.http.body import (
    CHUNK_BYTES,
    FILE_CHUNK_BYTES,
    BodyError,
    RequestBody,
    ResponseBody,
    as_response_body,
    iter_body_bytes,
)
from swift.http.response import Response

#: Transforms the next bytes, e.g. a cipher or codec; it may hold some back.
Transform = Callable[[bytes], bytes]
#: Returns the held-back bytes at the end.
Last = Callable[[], bytes]


class SourceBodyError(BodyError):
    """The response whose body a request carries broke off, so nothing may be stored; no client error."""

    status = 503


# --- response bodies --------------------------------------------------------------------------------


class TransformedBody(ResponseBody):
    """A response body transformed by ``transform``; closes the body below it.

    With ``keeps_length`` every byte becomes one byte, as with stream ciphers.
    """

    __slots__ = ("length", "_source", "_transform", "_last")

    def __init__(
        self,
        source: bytes | ResponseBody,
        transform: Transform,
        *,
        last: Last | None = None,
        keeps_length: bool = True,
    ):
        self._source = as_response_body(source)
        self.length = self._source.length if keeps_length else None
        self._transform = transform
        self._last = last

    def __iter__(self) -> Iterator[bytes]:
        transform = self._transform
        for chunk in iter_body_bytes(self._source):
            data = transform(chunk)
            if data:
                yield data
        data = b"" if self._last is None else self._last()
        if data:
            yield data

    def close(self) -> None:
        """Release the body below."""
        self._source.close()


# --- request bodies ---------------------------------------------------------------------------------


class WrappedRequestBody(RequestBody):
    """Base of request bodies over another one; counts, trailers and 100 Continue are those of that one."""

    __slots__ = ("length", "_source")

    def __init__(self, source: RequestBody):
        self.length: int | None = source.length
        self._source = source

    @property
    def received(self) -> int:  # type: ignore[override]
        """Bytes that were read from the sender's body."""
        return self._source.received

    @property
    def trailers(self) -> dict[str, str]:
        """See ``RequestBody``."""
        return self._source.trailers

    def send_continue(self, headers: dict[str, str]) -> None:
        """See ``RequestBody``."""
        self._source.send_continue(headers)

    def begin_next_body(self) -> None:
        """See ``RequestBody``."""
        self._source.begin_next_body()


class TransformedRequestBody(WrappedRequestBody):
    """A request body transformed by ``transform``; the arguments are those of ``TransformedBody``."""

    __slots__ = ("_transform", "_last", "_rest", "_ended")

    def __init__(
        self,
        source: RequestBody,
        transform: Transform,
        *,
        last: Last | None = None,
        keeps_length: bool = True,
    ):
        super().__init__(source)
        if not keeps_length:
            self.length = None
        self._transform = transform
        self._last = last
        self._rest = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(FILE_CHUNK_BYTES), b""))
        while size and not self._rest and not self._ended:
            data = self._source.read(size)
            if data:
                self._rest = self._transform(data)
            else:
                self._ended = True
                self._rest = b"" if self._last is None else self._last()
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


class ForwardedBody(RequestBody):
    """The body of a response as that of a new request (``as_request_body``).

    Raises ``SourceBodyError`` if the response has other bytes than it announced, so that no shortened copy is
    ever stored. As a context manager it releases the response and notifies its observers.
    """

    __slots__ = ("length", "received", "_response", "_source", "_complete")

    def __init__(self, response: Response):
        self._response = response
        self._source = as_response_body(response.body)
        announced = response.headers.get("content-length", "")
        known = self._source.length
        self.length: int | None = known if known is not None or not is_digits(announced) else int(announced)
        self.received = 0
        self._complete = False

    def read(self, size: int = -1) -> bytes:
        """See ``RequestBody``; raises ``SourceBodyError``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        if not size:
            return b""
        try:
            data = self._source.read(min(size, FILE_CHUNK_BYTES))
        except BodyError as error:
            raise SourceBodyError(f"the source failed: {error}")
        self._count(len(data))
        return data

    def read_into(self, view: memoryview) -> int:
        """See ``RequestBody``; raises ``SourceBodyError``."""
        try:
            size = self._source.read_into(view)
        except BodyError as error:
            raise SourceBodyError(f"the source failed: {error}")
        self._count(size)
        return size

    def _count(self, size: int) -> None:
        self.received += size
        length = self.length
        if length is not None and (self.received > length or (not size and self.received < length)):
            raise SourceBodyError(f"the source sent {self.received} of {length} bytes")
        self._complete = not size or self.received == length

    def close(self) -> None:
        """Release the response and notify the observers of its end."""
        self._response.discard()
        self._response.report_end(self.received, self._complete)

    def __enter__(self) -> ForwardedBody:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def as_request_body(response: Response) -> ForwardedBody:
    """Return a response's body as the body of a new request: copies, large objects, versions.

    The caller closes it (``with``) after the new request was answered.
    """
    return ForwardedBody(response)
