"""The account server: what each verb does (spec: account-container.md §11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from swift.account.broker import AccountBroker, AccountFacts, RecentlyDeleted
from swift.account.replication import replica_of
from swift.account.rows import ContainerRow
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.compose import backend_context, merged
from swift.config.common import StorageSettings
from swift.config.kinds import COUNT
from swift.config.schema import Settings, option
from swift.db import metadata as meta
from swift.db.listing import PageRow
from swift.db.stat import as_timestamp
from swift.dbserver.app import (
    DatabaseApp,
    StorageTarget,
    check_metadata_text,
    header_int,
    header_time,
    listing_query,
    metadata_headers,
    metadata_of,
)
from swift.dbsync.receiver import Receiver
from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.http.listing import render_account
from swift.http.negotiate import choose_format
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import validate_stored_metadata
from swift.platform.devices import SpaceGuard
from swift.platform.disk import Disk
from swift.policy.policy import Policies
from swift.runtime.backendapp import Handler, reject_sync_key


@dataclass(frozen=True)
class AccountSettings(Settings):
    """Options of the account server."""

    db_preallocation: bool = option(False, "Allocate databases in large steps.")
    db_query_logging: bool = option(False, "Log every SQL statement.")
    threads_per_disk: int = option(
        4,
        "Threads per device for long calls, and for all while it is slow or not the only one of its process. "
        "0 runs everything on the event loop.",
        kind=COUNT,
    )


_PREFIXES = ("x-account-meta-", fields.ACCOUNT_SYSMETA)
_POLICY = fields.BACKEND_STORAGE_POLICY_INDEX
#: Answers about accounts without body say their type like this.
_EMPTY_TYPE = "text/html; charset=utf-8"


class AccountServer(DatabaseApp[AccountBroker]):
    """Serves ``/device/partition/account[/container]``."""

    server_type = "account"
    directory = "accounts"
    broker_class = AccountBroker

    def database_verbs(self) -> Mapping[str, Handler]:
        """Return the verbs of §11."""
        return {
            "PUT": self.put,
            "DELETE": self.delete,
            "POST": self.post,
            "HEAD": self.head,
            "GET": self.get,
            "REPLICATE": Receiver(self, replica_of, has_ranges=False).handle,
        }

    def put(self, request: Request) -> Response:
        """Return an account, or a container row in it."""
        target = self.target(request, 3, 4)
        broker = self._broker(target)
        self.check_space(broker)
        if target.path.container is not None:
            return self._put_container(request, target, broker)
        timestamp = request.timestamp
        metadata = self._metadata(request, timestamp)
        if metadata:
            # An account is made whatever the date, lest containers be refused where a node's clock is slow.
            self.check_date(request)
        created = not broker.exists and broker.create(timestamp, created_at=self.now())
        if not created:
            try:
                broker.put(timestamp)
            except RecentlyDeleted:
                return self._deleted(403, "Recently deleted")
        newer = self.merge_metadata(broker.update_metadata, metadata, self._check_metadata)
        return error_response(201 if created else 202, headers=newer)

    def _put_container(self, request: Request, target: StorageTarget, broker: AccountBroker) -> Response:
        headers = request.headers
        reject_sync_key(headers)
        row = self._row_of(headers, target)
        if target.path.account.startswith(self.context.limits.auto_create_account_prefix):
            if not broker.exists:
                timestamp = Timestamp(headers.get("x-timestamp") or row.put_timestamp)
                broker.create(timestamp, created_at=self.now())
        elif not broker.exists:
            return error_response(404)
        if not is_true(headers.get("x-account-override-deleted")) and broker.info().is_deleted:
            return error_response(404)
        broker.put_rows([row])
        removed = (row.delete_timestamp or "") > (row.put_timestamp or "")
        return error_response(204 if removed else 201)

    def _row_of(self, headers: HeaderMap, target: StorageTarget) -> ContainerRow:
        put = header_time(headers, "x-put-timestamp").internal
        delete = headers.get("x-delete-timestamp", "0")
        if delete != "0":
            delete = header_time(headers, "x-delete-timestamp").internal
        objects = header_int(headers, "x-object-count", 0)
        policy_index = header_int(headers, _POLICY, 0)
        if policy_index < 0:
            raise HTTPError(400, f"Invalid X-Backend-Storage-Policy-Index {policy_index}", content_type=TEXT)
        is_deleted = Timestamp(delete) > Timestamp(put) and not objects
        return ContainerRow(
            target.path.container or "",
            put,
            delete,
            objects,
            header_int(headers, "x-bytes-used", 0),
            int(is_deleted),
            policy_index,
        )

    def post(self, request: Request) -> Response:
        """Change metadata."""
        target = self.target(request, 3, 3)
        self.check_date(request)
        timestamp = request.timestamp
        broker = self._broker(target)
        self.check_space(broker)
        metadata = self._metadata(request, timestamp)
        self._info(broker)
        return error_response(
            204, headers=self.merge_metadata(broker.update_metadata, metadata, self._check_metadata)
        )

    def delete(self, request: Request) -> Response:
        """Mark an account deleted; the reaper empties it."""
        target = self.target(request, 3, 3)
        broker = self._broker(target)
        self.check_date(request)
        timestamp = request.timestamp
        self._info(broker)
        broker.delete(timestamp)
        return self._deleted(204)

    def head(self, request: Request) -> Response:
        """Facts about an account."""
        target = self.target(request, 3, 3)
        shape = choose_format(request)
        broker = self._broker(target)
        info = self._info(broker)
        headers = self._facts(broker, info)
        headers["content-type"] = shape.content_type
        return Response(204, headers)

    def get(self, request: Request) -> Response:
        """Return a listing of containers."""
        target = self.target(request, 3, 3)
        query = listing_query(request, self.context.limits.account_listing_limit, path=False)
        shape = choose_format(request)
        broker = self._broker(target)
        info = self._info(broker)
        headers = self._facts(broker, info)
        rows = as_rows(broker.listing(query), self.context.policies)
        body = render_account(shape, rows, target.path.account)
        headers["content-type"] = shape.content_type
        headers["content-length"] = str(len(body))
        return Response(200 if body else 204, headers, body)

    # --- pieces -----------------------------------------------------------------------------------

    def _broker(self, target: StorageTarget) -> AccountBroker:
        return self.broker_of(target, target.path.account)

    def _metadata(self, request: Request, timestamp: Timestamp) -> dict[str, tuple[str, str]]:
        metadata = metadata_of(request.headers, _PREFIXES, frozenset(), timestamp)
        self._check_metadata(metadata)
        return metadata

    def _check_metadata(self, metadata: Mapping[str, tuple[str, str]]) -> None:
        check_metadata_text(metadata)
        validate_stored_metadata(meta.user_items(metadata, "account"), self.context.limits)

    def _info(self, broker: AccountBroker) -> AccountFacts:
        """Return the facts of an account that exists; raises ``HTTPError`` 404.

        The response for a deleted account says since when: by this it counts from handoffs too.
        """
        info = broker.info() if broker.exists else None
        if info is not None and not info.is_deleted:
            return info
        response = Response(404, {"content-type": _EMPTY_TYPE})
        if info is not None and info.is_status_deleted:
            response = self._deleted(404)
            response.headers[fields.BACKEND_TIMESTAMP] = as_timestamp(info.delete_timestamp).internal
        raise HTTPError.of(response)

    @staticmethod
    def _deleted(status: int, text: str = "") -> Response:
        headers = {"content-type": _EMPTY_TYPE, "x-account-status": "Deleted"}
        return Response(status, headers, text.encode("ascii"))

    def _facts(self, broker: AccountBroker, info: AccountFacts) -> HeaderMap:
        """Return the headers of HEAD and GET for an existing account."""
        headers = {
            "x-account-container-count": str(info.container_count),
            "x-account-object-count": str(info.object_count),
            "x-account-bytes-used": str(info.bytes_used),
            "x-timestamp": as_timestamp(info.created_at).normal,
            "x-put-timestamp": as_timestamp(info.put_timestamp).normal,
        }
        for stats in broker.policy_stats():
            policy = self.context.policies.get(stats.index)
            if policy is None:
                continue
            prefix = f"x-account-storage-policy-{wire_value(policy.name).lower()}"
            headers[f"{prefix}-container-count"] = str(stats.container_count)
            headers[f"{prefix}-object-count"] = str(stats.object_count)
            headers[f"{prefix}-bytes-used"] = str(stats.bytes_used)
        headers.update(metadata_headers(info.metadata))
        return headers


def app_factory(global_conf: Mapping[str, str], **local_conf: str) -> AccountServer:
    """PasteDeploy factory of ``egg:swift#account``; raises ``ConfigError``."""
    context, settings = backend_context(
        global_conf, local_conf, server_type="account", settings_class=AccountSettings
    )
    storage = StorageSettings.parse(merged(global_conf, local_conf))
    disk = Disk()
    space = SpaceGuard(disk, storage.fallocate_reserve, enabled=not storage.disable_fallocate)
    return AccountServer(context, settings, disk=disk, space=space)


# Account listings as JSON rows (public-api.md §7.2).


def as_rows(page: Iterable[PageRow], policies: Policies) -> list[dict[str, object]]:
    """Return the JSON rows of a page; a policy that this cluster does not know has no name to show."""
    rows: list[dict[str, object]] = []
    for name, objects, size, put, policy_index, directory in page:
        if directory is not None:
            rows.append({"subdir": directory})
            continue
        row = {"name": name, "count": objects, "bytes": size, "last_modified": as_timestamp(put).isoformat}
        policy = policies.get(policy_index)
        if policy is not None:
            row["storage_policy"] = policy.name
        rows.append(row)
    return rows
