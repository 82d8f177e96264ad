"""The operations of a workload as requests of one API, Swift's or S3's."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote, urlencode

from swift.base.errors import SwiftError
from swift.cluster.transport import (
    Exchange,
    NodeAddress,
    NodeRequest,
    NodeTimeouts,
    Transport,
    TransportError,
)
from swift.http.headers import HeaderMap
from swift.load.endpoint import LoadEndpoint

CONNECT_TIMEOUT_S = 10.0
#: Seconds without data after which a request has failed.
TIMEOUT_S = 120.0
_TIMEOUTS = NodeTimeouts(CONNECT_TIMEOUT_S, TIMEOUT_S)
#: Bodies up to this size travel with the head.
WHOLE_BYTES = 1 << 20
PAGE = 1000
#: Swift's status for a change that another client's newer one overtook: it is done, and nothing is left of
#: it.
CONFLICT_STATUS = 409
READ_BYTES = 256 << 10
_KEY = re.compile(rb"<Key>([^<]*)</Key>")
_UPLOAD_ID = re.compile(rb"<UploadId>([^<]+)</UploadId>")

Body = Callable[[], Iterator[memoryview]]


class OperationFailed(SwiftError):
    """An operation that did not succeed; the text is its kind: a status, or what broke."""


class Api(ABC):
    """Requests against one endpoint. All methods raise ``OperationFailed``."""

    def __init__(self, endpoint: LoadEndpoint, transport: Transport):
        self._endpoint = endpoint
        self._address = NodeAddress(endpoint.host, endpoint.port)
        self._transport = transport

    # what workloads do

    @abstractmethod
    def make_container(self, container: str, policy: str) -> None:
        """Make a container, or find that it is there."""

    @abstractmethod
    def remove_container(self, container: str) -> None:
        """Remove an empty container, or find that it is gone."""

    @abstractmethod
    def listing(self, container: str, after: str) -> list[str]:
        """Return at most a thousand names after ``after``; none if the container is gone."""

    @abstractmethod
    def post(self, container: str, name: str) -> None:
        """Replace an object's metadata."""

    @abstractmethod
    def multipart(self, container: str, name: str, sizes: list[int], part: Callable[[int], Body]) -> None:
        """Store an object of parts of these sizes; ``part`` gives the body of each."""

    def put(self, container: str, name: str, size: int, body: Body) -> None:
        """Store an object."""
        self._send("PUT", self._path(container, name), {}, size=size, body=body)

    def get(self, container: str, name: str, take: Callable[[memoryview], bool]) -> int:
        """Read an object and return its size; ``take`` gets the bytes and returns True if they are right."""
        size = 0
        try:
            reply = self._open("GET", self._path(container, name), {}, {}).response()
            try:
                if reply.status != 200:
                    reply.stream.read_all()
                    raise OperationFailed(str(reply.status))
                whole = reply.stream.remaining_bytes
                if whole is not None:
                    size = len(whole)
                    is_right = take(memoryview(whole))
                else:
                    buffer = memoryview(bytearray(READ_BYTES))
                    is_right = True
                    while is_right and (got := reply.stream.read_into(buffer)):
                        size += got
                        is_right = take(buffer[:got])
                if not is_right:
                    raise OperationFailed("wrong bytes")
            finally:
                reply.stream.close()
        except TransportError as error:
            raise OperationFailed(error_kind(error))
        announced = reply.headers.get("content-length")
        if announced is not None and int(announced) != size:
            raise OperationFailed("short body")
        return size

    def head(self, container: str, name: str) -> None:
        """Ask for an object's metadata."""
        self._send("HEAD", self._path(container, name), {})

    def delete(self, container: str, name: str) -> None:
        """Remove an object; one that is gone already is no failure."""
        self._send("DELETE", self._path(container, name), {}, also=(404, CONFLICT_STATUS))

    # how

    @abstractmethod
    def _headers(self, method: str, path: str, query: Mapping[str, str], sent: HeaderMap) -> HeaderMap:
        """Return the credentials of a request with the headers ``sent``."""

    def _path(self, container: str, name: str = "") -> str:
        path = f"{self._endpoint.root}/{quote(container)}"
        return f"{path}/{quote(name)}" if name else path

    def _open(
        self, method: str, path: str, query: Mapping[str, str], headers: HeaderMap, body: bytes = b""
    ) -> Exchange:
        target = f"{path}?{urlencode(sorted(query.items()), quote_via=quote)}" if query else path
        sent = {**headers, **self._headers(method, path, query, headers)}
        return self._transport.stream(NodeRequest(self._address, method, target, sent, body, _TIMEOUTS))

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        headers: HeaderMap | None = None,
        size: int | None = None,
        body: Body | None = None,
        also: tuple[int, ...] = (),
    ) -> tuple[int, HeaderMap, bytes]:
        """Send one request and return its whole response, which must be 2xx or one of ``also``."""
        sent = dict(headers or {})
        if size is not None or method in ("PUT", "POST"):
            sent["content-length"] = str(size or 0)
        pieces = iter(()) if body is None else body()
        first = b"".join(pieces) if (size or 0) <= WHOLE_BYTES else b""
        try:
            exchange = self._open(method, path, query, sent, first)
            for piece in pieces:
                exchange.send(piece)
            reply = exchange.response()
            try:
                text = reply.stream.read_all()
            finally:
                reply.stream.close()
        except TransportError as error:
            raise OperationFailed(error_kind(error))
        if reply.status // 100 != 2 and reply.status not in also:
            raise OperationFailed(str(reply.status))
        return reply.status, reply.headers, text


def error_kind(error: TransportError) -> str:
    """Return a failure's kind, without addresses and times, so that equal ones are counted together."""
    text = type(error).__name__
    return {"TimedOut": "timeout", "BrokenOff": "broken off", "TransportError": "no answer"}.get(text, text)


class SwiftLoadApi(Api):
    """The Swift API."""

    def _headers(self, method: str, path: str, query: Mapping[str, str], sent: HeaderMap) -> HeaderMap:
        """See ``Api``."""
        return {"x-auth-token": self._endpoint.token}

    def make_container(self, container: str, policy: str) -> None:
        """See ``Api``."""
        headers = {"x-storage-policy": policy} if policy else {}
        self._send("PUT", self._path(container), {}, headers=headers)

    def remove_container(self, container: str) -> None:
        """See ``Api``."""
        self._send("DELETE", self._path(container), {}, also=(404,))

    def listing(self, container: str, after: str) -> list[str]:
        """See ``Api``."""
        query = {"marker": after, "limit": str(PAGE)}
        status, _headers, text = self._send("GET", self._path(container), query, also=(404,))
        return text.decode().splitlines() if status == 200 else []

    def post(self, container: str, name: str) -> None:
        """See ``Api``."""
        headers = {"x-object-meta-load": "posted"}
        self._send("POST", self._path(container, name), {}, headers=headers, also=(CONFLICT_STATUS,))

    def multipart(self, container: str, name: str, sizes: list[int], part: Callable[[int], Body]) -> None:
        """See ``Api``: segments beside the object, and a manifest of them."""
        manifest = []
        for number, size in enumerate(sizes):
            segment = f"{name}/part-{number:05d}"
            self._send("PUT", self._path(container, segment), {}, size=size, body=part(number))
            manifest.append({"path": f"/{container}/{segment}", "size_bytes": size})
        text = json.dumps(manifest).encode()
        self._send(
            "PUT",
            self._path(container, name),
            {"multipart-manifest": "put"},
            size=len(text),
            body=lambda: iter((memoryview(text),)),
        )


class S3LoadApi(Api):
    """The S3 API, path style."""

    def _headers(self, method: str, path: str, query: Mapping[str, str], sent: HeaderMap) -> HeaderMap:
        """See ``Api``: query and headers are signed as well."""
        more = {name: value for name, value in sent.items() if name.startswith("x-amz-")}
        return self._endpoint.sign_headers(method, path, query, more=more)

    def make_container(self, container: str, policy: str) -> None:
        """See ``Api``; policies are the endpoint's own affair."""
        self._send("PUT", self._path(container), {}, also=(409,))

    def remove_container(self, container: str) -> None:
        """See ``Api``."""
        self._send("DELETE", self._path(container), {}, also=(404,))

    def listing(self, container: str, after: str) -> list[str]:
        """See ``Api``."""
        query = {"list-type": "2", "max-keys": str(PAGE), "start-after": after}
        status, _headers, text = self._send("GET", self._path(container), query, also=(404,))
        return [key.decode() for key in _KEY.findall(text)] if status == 200 else []

    def post(self, container: str, name: str) -> None:
        """See ``Api``: a copy of the object onto itself."""
        headers = {
            "x-amz-copy-source": quote(f"/{container}/{name}"),
            "x-amz-metadata-directive": "REPLACE",
            "x-amz-meta-load": "posted",
        }
        self._send("PUT", self._path(container, name), {}, headers=headers)

    def multipart(self, container: str, name: str, sizes: list[int], part: Callable[[int], Body]) -> None:
        """See ``Api``."""
        path = self._path(container, name)
        _status, _headers, text = self._send("POST", path, {"uploads": ""})
        found = _UPLOAD_ID.search(text)
        if found is None:
            raise OperationFailed("no upload id")
        upload = found[1].decode()
        parts = []
        for number, size in enumerate(sizes, 1):
            query = {"partNumber": str(number), "uploadId": upload}
            _status, headers, _text = self._send("PUT", path, query, size=size, body=part(number - 1))
            etag = headers.get("etag", "")
            parts.append(f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
        text = f"<CompleteMultipartUpload>{''.join(parts)}</CompleteMultipartUpload>".encode()
        self._send("POST", path, {"uploadId": upload}, size=len(text), body=lambda: iter((memoryview(text),)))


def make_api(endpoint: LoadEndpoint, transport: Transport) -> Api:
    """Return the API that an endpoint speaks."""
    return S3LoadApi(endpoint, transport) if endpoint.is_s3 else SwiftLoadApi(endpoint, transport)
