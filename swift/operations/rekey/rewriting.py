"""Stored objects get another root secret, and otherwise stay as they are (decision 0034).

An object is stored again with its own timestamp and the next offset: the same encrypted body, and headers
that ``rewrap`` encrypted with the active secret. A concurrent write or deletion by a client is later and
wins, and later metadata of a POST stays. Metadata of a POST is replaced by a POST in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.container.reconciler.task import stored_headers
from swift.http import fields
from swift.http.cryptokeys import EncryptionKeysUnavailable
from swift.http.headers import HeaderMap
from swift.http.objectlock import MAY_REWRITE
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.middleware.encryption.cipher import CryptoError
from swift.middleware.encryption.rewrap import data_secrets, metadata_secrets, rewrap
from swift.operations.rekey.rawcluster import RawCluster

_READ = {"x-newest": "true", fields.BACKEND_OPEN_EXPIRED: "true"}


class Outcome(StrEnum):
    """Outcome for one object."""

    REWRITTEN = "rewritten"
    #: It does not use the old secret.
    KEPT = "kept"
    #: A client changed or removed it at the same time.
    CHANGED = "changed"
    #: A lock, and a node that does not let it be stored again.
    LOCKED = "locked"


class Rewriter:
    """Gives objects of a root secret the active one."""

    def __init__(self, cluster: RawCluster, old: str, consume: Callable[[int], None] = lambda _bytes: None):
        """``consume`` is called with the bytes of each body before it is read; it may wait."""
        self._cluster = cluster
        self._old = old
        self._consume = consume

    def rewrite(self, path: EntityPath, listed_bytes: int) -> Outcome:
        """Give one object the active secret.

        Raises ``UnexpectedResponse`` and ``OBJECT_ERRORS``; then the object is as it was.
        """
        with self._cluster.client.request("HEAD", path, _READ, accept=(2, 404)) as response:
            found = dict(response.headers) if response.is_success else None
        if found is None:
            return Outcome.CHANGED
        has_post = _stamp(found) > _data_stamp(found)
        uses_old = self._old in metadata_secrets(found)
        outcome = Outcome.KEPT
        if self._old in data_secrets(found) or (uses_old and not has_post):
            # No node holds a response open during the wait.
            self._consume(int(found.get("content-length", "0")))
            outcome = self._store_again(path, listed_bytes)
        if uses_old and has_post and outcome in (Outcome.KEPT, Outcome.REWRITTEN):
            outcome = self._post_again(path, found)
        return outcome

    def _store_again(self, path: EntityPath, listed_bytes: int) -> Outcome:
        """Store the object's data and metadata with the next offset of its data's timestamp."""
        with self._cluster.client.request("GET", path, _READ, accept=(2, 404)) as source:
            if not source.is_success:
                return Outcome.CHANGED
            headers = self._rewrapped(path, source.headers)
            headers["x-timestamp"] = _data_stamp(source.headers).above(1).internal
            headers["etag"] = unquote_etag(headers.get("etag", ""))
            if is_true(headers.get("x-static-large-object")):
                size = headers.get(fields.SYSMETA_SLO_SIZE, listed_bytes)
                headers["content-type"] = f"{headers.get('content-type', '')};swift_bytes={size}"
            with as_request_body(source) as body:
                accept = (2, 403, 404, 409)
                with self._cluster.writer.request(
                    "PUT", path, headers, lambda: body, accept=accept
                ) as result:
                    return _outcome_of(result, 201)

    def _post_again(self, path: EntityPath, found: HeaderMap) -> Outcome:
        """Replace the metadata of a POST with the next offset of its timestamp."""
        headers = self._rewrapped(path, found)
        for name in ("content-type", "etag"):
            headers.pop(name, None)
        headers["x-timestamp"] = _stamp(found).above(1).internal
        with self._cluster.client.request("POST", path, headers, accept=(2, 403, 404, 409)) as result:
            return _outcome_of(result, 202)

    def _rewrapped(self, path: EntityPath, found: HeaderMap) -> HeaderMap:
        headers = {
            name: value
            for name, value in stored_headers(found).items()
            if not name.startswith(fields.SYSMETA_EC)
        }
        rewrap(headers, self._cluster.fetch_keys(path))
        if fields.TRANSIENT_S3_LOCK in headers:
            headers[fields.BACKEND_OBJECT_LOCK] = MAY_REWRITE
        return headers


def used_secrets(copies: Iterable[HeaderMap]) -> set[str]:
    """Return the ids of the root secrets of an object's copies; raises ``CryptoError``."""
    return set().union(*(data_secrets(copy) | metadata_secrets(copy) for copy in copies))


#: Errors of one object, after which the others go on.
OBJECT_ERRORS = (CryptoError, EncryptionKeysUnavailable)


def _outcome_of(response: Response, stored: int) -> Outcome:
    if response.status == 403:
        return Outcome.LOCKED
    return Outcome.REWRITTEN if response.status == stored else Outcome.CHANGED


def _stamp(found: HeaderMap) -> Timestamp:
    """Return the time of the last change of an object."""
    return Timestamp(found.get(fields.BACKEND_TIMESTAMP) or found["x-timestamp"])


def _data_stamp(found: HeaderMap) -> Timestamp:
    """Return the time of its data."""
    return Timestamp(found.get(fields.BACKEND_DATA_TIMESTAMP) or found["x-timestamp"])
