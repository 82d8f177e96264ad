"""Documents of the cluster itself: objects of hidden accounts, changed by conditional writes.

Of several writers one wins; the others get ``Conflict``. Users, keys and policies are such documents
(``identity``), and the state of a layout (``layout``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.base.errors import SwiftError
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.gateway.subrequest import Forward
from swift.http import environkeys
from swift.http.body import BodyError
from swift.http.request import Request
from swift.http.response import Response

REQUEST_TIMEOUT_S = 10.0


class StoreUnavailable(SwiftError):
    """Documents cannot be read or changed now."""


class Conflict(SwiftError):
    """Another client has changed or created the document meanwhile."""


class Document(NamedTuple):
    """Content of a document, None if there is none, and its ETag."""

    content: bytes | None
    etag: str


def document_client(forward: Forward, agent: str) -> InternalClient:
    """Return the client of documents for a pipeline; they are stored without encryption, as they are."""

    def send(request: Request) -> Response:
        env = request.env
        env[environkeys.AUTHORIZE] = _allow
        env[environkeys.AUTHORIZE_OVERRIDE] = True
        env[environkeys.CRYPTO_OVERRIDE] = True
        env[environkeys.ACCESS_LOG_MADE] = True
        env[environkeys.RATELIMIT_HANDLED] = True
        env[environkeys.ADMITTED] = True
        return forward(request)

    return InternalClient(send, agent, tries=2, timeout_s=REQUEST_TIMEOUT_S, backoff_s=0.1)


def _allow(_request: Request) -> None:
    """Authorize everything."""


class DocumentStore:
    """Reads and changes the documents of an account; ``create_containers`` is called when one is missing."""

    def __init__(
        self, client: InternalClient, account: str, limit_bytes: int, create_containers: Callable[[], object]
    ):
        self._client = client
        self._account = account
        self._limit_bytes = limit_bytes
        self._create_containers = create_containers

    def read(self, container: str, name: str) -> Document:
        """Return the newest version of a document; raise ``StoreUnavailable``."""
        path = EntityPath(self._account, container, name)
        try:
            with self._client.request("GET", path, {"x-newest": "true"}, accept=(200, 404)) as response:
                if response.status == 404:
                    return Document(None, "")
                etag = response.headers.get("etag", "").strip('"')
                return Document(response.read_body(self._limit_bytes), etag)
        except (UnexpectedResponse, BodyError) as error:
            raise StoreUnavailable(f"cannot read {container}/{name}: {error}")

    def write(self, container: str, name: str, content: bytes, etag: str, headers: Mapping[str, str]) -> str:
        """Store a document in place of the one with an ETag, empty for none; return the new ETag.

        Raises ``StoreUnavailable`` and ``Conflict``.
        """
        if len(content) > self._limit_bytes:
            raise StoreUnavailable(f"{container}/{name} is larger than {self._limit_bytes} bytes")
        condition = {"if-match": f'"{etag}"'} if etag else {"if-none-match": "*"}
        path = EntityPath(self._account, container, name)
        sent = {**headers, **condition}
        try:
            for attempt in (1, 2):
                with self._client.request(
                    "PUT", path, sent, content, accept=(201, 404, 412, 409)
                ) as response:
                    status, stored = response.status, response.headers.get("etag", "").strip('"')
                if status != 404 or attempt == 2:
                    break
                self._create_containers()
            if status != 201:
                stored = self._etag_of_stored(path, content)
        except (UnexpectedResponse, BodyError) as error:
            raise StoreUnavailable(f"cannot store {container}/{name}: {error}")
        if not stored:
            raise Conflict(f"{container}/{name} was changed by another client meanwhile")
        return stored

    def _etag_of_stored(self, path: EntityPath, content: bytes) -> str:
        """Return the ETag of a document if it is stored, else an empty text.

        A PUT that was stored although its response was an error is sent again, and then refused.
        """
        with self._client.request("GET", path, {"x-newest": "true"}, accept=(200, 404)) as response:
            is_stored = response.status == 200 and response.read_body(self._limit_bytes) == content
            return response.headers.get("etag", "").strip('"') if is_stored else ""

    def __repr__(self) -> str:
        return f"DocumentStore({self._account!r})"
