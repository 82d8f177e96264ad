"""Bringing one object of a container to another cluster (spec: account-container.md §17).

What is stored is copied: a link, not what it leads to; a manifest, not the bytes of its segments. A link that
is no link over there is a failure.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.timestamp import ZERO, InvalidTimestamp, Timestamp
from swift.cluster.transport import BackendResponse
from swift.container.rows import ObjectRow, split_swift_bytes
from swift.container.sync.remote import RemoteCluster, RemoteError, SyncTarget
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.runtime.report import Counters
from swift.telemetry.log import Log

#: Headers of the response, or of this cluster.
_NOT_SENT = frozenset(
    (
        *("date", "last-modified", "connection", "keep-alive", "transfer-encoding", "content-length"),
        *("accept-ranges", "server", "x-timestamp", "x-trans-id", "x-openstack-request-id"),
    )
)
#: A link is made by other headers than those by which it is stored.
_LINK = {
    fields.SYSMETA_SYMLINK_TARGET: "x-symlink-target",
    fields.SYSMETA_SYMLINK_TARGET_ACCOUNT: "x-symlink-target-account",
    fields.SYSMETA_SYMLINK_TARGET_ETAG: "x-symlink-target-etag",
    fields.SYSMETA_SYMLINK_TARGET_BYTES: "x-symlink-target-bytes",
}
_TARGET = "x-symlink-target"
#: Asks for a link itself.
_UNFOLLOWED = "symlink=get"


class Copier:
    """Copies objects of one container to its target."""

    def __init__(
        self,
        client: InternalClient,
        remote: RemoteCluster,
        target: SyncTarget,
        container: EntityPath,
        *,
        counters: Counters,
        log: Log,
    ):
        self._client = client
        self._remote = remote
        self._target = target
        self.container = container
        self._counters = counters
        self._log = log

    def copy(self, row: ObjectRow) -> bool:
        """Make the other cluster's object what a row says; whether that succeeded.

        A row of a newer release that is neither an object nor a deletion is left alone.
        """
        if row.deleted > 1:
            return True
        try:
            return self._delete(row) if row.deleted else self._put(row)
        except (RemoteError, UnexpectedResponse, BodyError) as error:
            self._counters.add("failures")
            self._log.error(f"ERROR cannot copy {self.container}/{row.name}: {error}")
            return False

    def _delete(self, row: ObjectRow) -> bool:
        stamp = row.times()[0].internal
        answer = self._remote.ask("DELETE", self._target, row.name, stamp, {})
        if answer.is_success:
            self._counters.add("deletes")
        return answer.is_success or answer.status in (404, 409) or self._refused(row, "DELETE", answer.status)

    def _put(self, row: ObjectRow) -> bool:
        wanted = max(row.times())
        there = self._head(row, wanted)
        if there.is_success and _time(there.headers.get("x-timestamp")) >= wanted:
            return not self._may_be_mangled(row, there) or self._is_link(row, there, wanted)
        if not there.is_success and there.status != 404 and not self._is_write_only(there):
            return self._refused(row, "HEAD", there.status)
        with self._ask_here("GET", row) as source:
            stamp = _time(source.headers.get(fields.BACKEND_TIMESTAMP) or source.headers.get("x-timestamp"))
            if not source.is_success:
                # Its deletion has a row of its own.
                return stamp >= wanted or self._refused(row, "GET", source.status)
            if stamp < wanted:
                return self._refused(row, "GET", 404)
            sent = _sent_headers(source)
            with as_request_body(source) as body:
                answer = self._remote.ask("PUT", self._target, row.name, stamp.internal, sent, body)
        if answer.status == 409 and "content-location" not in answer.headers:
            # Something newer is there; else the target of a static link is not what it should be.
            return True
        if not answer.is_success:
            return self._refused(row, "PUT", answer.status)
        if _TARGET in sent and not self._is_link(row, self._head(row, stamp), stamp):
            return False
        self._counters.add("puts")
        return True

    def _ask_here(self, method: str, row: ObjectRow) -> AbstractContextManager[Response]:
        """Return the newest version of the row's policy, as it is stored; raises ``UnexpectedResponse``."""
        headers = {"x-newest": "true", fields.BACKEND_STORAGE_POLICY_INDEX: str(row.storage_policy_index)}
        path = EntityPath(self.container.account, self.container.container, row.name)
        return self._client.request(method, path, headers, query=_UNFOLLOWED, accept=(2, 404))

    def _may_be_mangled(self, row: ObjectRow, there: BackendResponse) -> bool:
        """Return True if a link was copied that is none over there.

        The row of a link has parameters, perhaps encrypted, and no bytes.
        """
        if row.size or ";" not in row.etag or _TARGET in there.headers:
            return False
        with self._ask_here("HEAD", row) as found:
            return fields.SYSMETA_SYMLINK_TARGET in found.headers

    def _is_write_only(self, there: BackendResponse) -> bool:
        """Return True if the answer only says that a key without a realm does not read."""
        return self._target.sync_to.realm is None and there.status in (401, 403)

    def _head(self, row: ObjectRow, stamp: Timestamp) -> BackendResponse:
        return self._remote.ask("HEAD", self._target, row.name, stamp.internal, {}, query=_UNFOLLOWED)

    def _is_link(self, row: ObjectRow, there: BackendResponse, stamp: Timestamp) -> bool:
        """Return True if the other cluster has made a link; log an error if it made an empty object."""
        if there.status == 404 or _TARGET in there.headers or self._is_write_only(there):
            return True
        if not there.is_success:
            return self._refused(row, "HEAD", there.status)
        if _time(there.headers.get("x-timestamp")) > stamp:
            return True
        self._counters.add("failures")
        self._log.error(
            f"ERROR cannot copy {self.container}/{row.name}: it is a symbolic link, of which "
            f"{self._target.sync_to.url} made an empty object; its proxies need the symlink filter"
        )
        return False

    def _refused(self, row: ObjectRow, method: str, status: int) -> bool:
        self._counters.add("failures")
        self._log.error(
            f"ERROR cannot copy {self.container}/{row.name} to {self._target.sync_to.url}: "
            f"{method} answered {status}"
        )
        return False


def _time(text: str | None) -> Timestamp:
    try:
        return Timestamp(text) if text else ZERO
    except InvalidTimestamp:
        return ZERO


def _sent_headers(source: Response) -> HeaderMap:
    """Return the headers that make the same object elsewhere."""
    headers = source.headers
    sent = {
        name: value
        for name, value in headers.items()
        if name not in _NOT_SENT and not name.startswith((fields.BACKEND, fields.OBJECT_SYSMETA))
    }
    sent |= {public: headers[name] for name, public in _LINK.items() if headers.get(name)}
    if "etag" in sent:
        sent["etag"] = unquote_etag(sent["etag"])
    if "content-type" in sent:
        sent["content-type"] = split_swift_bytes(sent["content-type"])[0]
    return sent
