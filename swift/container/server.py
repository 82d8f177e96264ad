"""The container server: what each verb does (spec: account-container.md §12).

Reads answer from the broker, writes go through it and then tell the account servers. Everything about
tables is in ``container.broker``, everything about shard range records in ``container.records``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from swift.base.entity import RESERVED, quote_path
from swift.base.errors import DeviceUnavailable, InvalidValue
from swift.base.shardrange import UPDATING_STATES
from swift.base.timestamp import InvalidTimestamp, Timestamp, http_date
from swift.base.truth import is_true
from swift.cluster.outbound import Outbound, OutboundRefused
from swift.cluster.rings import Rings
from swift.cluster.syncrealms import Realms, SyncToError, endpoint_of, validate_sync_to
from swift.compose import backend_context, merged
from swift.config.common import StorageSettings
from swift.container import listing, records
from swift.container.accounts import AccountResponse, AccountUpdater, ContainerSettings
from swift.container.broker import (
    LISTED,
    ContainerBroker,
    ContainerFacts,
    NotEmpty,
    StaysAlive,
    StaysDeleted,
    WrongPolicy,
)
from swift.container.held import held_document, knows_shards
from swift.container.replication import ContainerReplica
from swift.container.rows import ObjectRow, rows_of_mappings, tombstone
from swift.container.syncstore import keep_link
from swift.db import metadata as meta
from swift.db.listing import PageRow
from swift.db.stat import as_timestamp
from swift.dbserver.app import (
    DatabaseApp,
    StorageTarget,
    check_metadata_text,
    header_int,
    listing_query,
    metadata_headers,
    metadata_of,
    whole_body,
)
from swift.dbsync.receiver import Receiver
from swift.http import fields
from swift.http.headers import HeaderMap, utf8_value
from swift.http.listing import container_xml
from swift.http.negotiate import ListingFormat, choose_format
from swift.http.request import Request
from swift.http.response import HTML, TEXT, HTTPError, Response, error_response
from swift.http.validate import validate_stored_metadata
from swift.platform.devices import SpaceGuard
from swift.platform.disk import Disk
from swift.runtime.backendapp import BackendContext, Handler, UnexpectedPath, reject_sync_key
from swift.wire import rowbatch

_SAVED = frozenset(("x-container-read", "x-container-write", "x-container-sync-key", "x-container-sync-to"))
_LEGACY_SAVED = _SAVED | {"x-versions-location"}
_PREFIXES = ("x-container-meta-", fields.CONTAINER_SYSMETA)
_CTYPE_TIME = "x-content-type-timestamp"
_META_TIME = "x-meta-timestamp"
_TARGETS_MAX = 1024
_POLICY = fields.BACKEND_STORAGE_POLICY_INDEX
_REDIRECT = fields.BACKEND_ACCEPT_REDIRECT
_SHARDS_PREFIX = "shards_"


@dataclass(slots=True)
class _RowBatch:
    """Rows of a BATCH, and what was found out for all of them."""

    rows: dict[int, ObjectRow] = field(default_factory=dict)
    broker: ContainerBroker | None = None
    has_looked: bool = False
    has_space: bool = False


class ContainerServer(DatabaseApp[ContainerBroker]):
    """Serves ``/device/partition/account/container[/object]``."""

    server_type = "container"
    directory = "containers"
    broker_class = ContainerBroker

    def __init__(
        self,
        context: BackendContext,
        settings: ContainerSettings | None = None,
        *,
        disk: Disk | None = None,
        space: SpaceGuard | None = None,
        realms: Realms | None = None,
        outbound: Outbound | None = None,
    ):
        self.settings = settings or ContainerSettings()
        super().__init__(context, self.settings, disk=disk, space=space)
        self._realms = realms or Realms()
        self._outbound = outbound or Outbound()
        self._saved = _LEGACY_SAVED if self.settings.allow_versions else _SAVED
        #: Parsed raw paths of containers, up to the slash before the object.
        self._targets: dict[str, StorageTarget] = {}
        self._accounts = AccountUpdater(context, self.settings)

    def database_verbs(self) -> Mapping[str, Handler]:
        """Return the verbs of §12."""
        return {
            "PUT": self.put,
            "DELETE": self.delete,
            "POST": self.post,
            "HEAD": self.head,
            "GET": self.get,
            "UPDATE": self.update,
            rowbatch.METHOD: self.batch,
            "REPLICATE": Receiver(self, ContainerReplica, has_ranges=True).handle,
        }

    # --- PUT --------------------------------------------------------------------------------------

    def put(self, request: Request) -> Response:
        """Return a container, shard ranges or an object row."""
        target, name = self._target(request)
        timestamp = request.timestamp
        sync_to = request.headers.get("x-container-sync-to")
        if sync_to is not None:
            self._check_sync_to(sync_to)
        if name is not None:
            broker = self._broker_for_row(request, target)
            self.check_space(broker)
            row = self._row_to_put(request, name)
            return self._store_row(request, target, broker, row, 201)
        broker = self._broker(target)
        self.check_space(broker)
        if request.headers.get(fields.BACKEND_RECORD_TYPE, "").lower() == records.SHARD:
            return self._put_shards(request, target, broker, timestamp)
        self.check_date(request)
        return self._put_container(request, target, broker, timestamp)

    def _put_container(
        self, request: Request, target: StorageTarget, broker: ContainerBroker, timestamp: Timestamp
    ) -> Response:
        self._accounts.check(request)
        metadata = self._metadata(request, timestamp)
        self._check_metadata(metadata)
        asked = self._policy(request)
        try:
            created = self._create_or_put(broker, timestamp, asked, self._default_policy(request))
        except WrongPolicy as error:
            return error_response(409, headers={_POLICY: str(error.own)})
        except StaysDeleted as error:
            return error_response(409, headers={fields.BACKEND_TIMESTAMP: error.newer})
        newer = self.merge_metadata(broker.update_metadata, metadata, self._check_metadata)
        info = broker.info()
        self._keep_sync_link(broker, info)
        outcome = self._accounts.report(request, target, info)
        if outcome is AccountResponse.ALL_MISSING:
            return error_response(404)
        headers = {_POLICY: str(info.storage_policy_index), **newer}
        return error_response(201 if created else 202, headers=headers)

    def _create_or_put(
        self, broker: ContainerBroker, timestamp: Timestamp, asked: int | None, default: int
    ) -> bool:
        """Make the database or record the put in it; whether the container is new."""
        if not broker.exists:
            policy_index = default if asked is None else asked
            if broker.create(timestamp, policy_index, created_at=self.now()):
                return True
        return broker.put(timestamp, asked, default)

    def _put_shards(
        self, request: Request, target: StorageTarget, broker: ContainerBroker, timestamp: Timestamp
    ) -> Response:
        ranges = records.ranges_of_body(whole_body(request))
        metadata = self._metadata(request, timestamp)
        self._check_metadata(metadata)
        created = False
        asked = self._policy(request)
        if not broker.exists:
            if not is_true(request.headers.get(fields.BACKEND_AUTO_CREATE)):
                return error_response(404)
            if asked is None:
                return error_response(400, "X-Backend-Storage-Policy-Index header is required")
        if is_true(request.headers.get(fields.BACKEND_AUTO_CREATE)) and asked is not None:
            try:
                created = self._create_or_put(broker, timestamp, asked, asked)
            except WrongPolicy as error:
                return error_response(409, headers={_POLICY: str(error.own)})
            except StaysDeleted:
                return error_response(409)
        if metadata:
            broker.update_metadata(metadata, self._check_metadata)
        if ranges:
            broker.merge_shard_ranges(ranges)
        headers = {_POLICY: str(broker.info().storage_policy_index)}
        return error_response(201 if created else 202, headers=headers)

    def _target(self, request: Request) -> tuple[StorageTarget, str | None]:
        """Return the container and the object's name.

        Where rows come by the thousand only the names are new.
        """
        raw = request.raw_path
        parts = raw.split("/", 5)
        name = parts[-1]
        if len(parts) < 6 or not name or not raw.isascii() or "%" in raw or RESERVED in raw:
            target = self.target(request, 4, 5)
            return target, target.path.obj
        container = raw[: -len(name)]
        known = self._targets.get(container)
        if known is None:
            if len(self._targets) == _TARGETS_MAX:
                self._targets.clear()
            known = self._targets[container] = self.target(request, 4, 5)
        return known, name

    def _broker_for_row(self, request: Request, target: StorageTarget) -> ContainerBroker:
        """Return putting the row looks at the files anyway.

        Only what is decided before needs an earlier look.
        """
        reject_sync_key(request.headers)
        broker = self._known_container(target)
        if self._needs_look(request, target, broker):
            broker.refresh()
        return broker

    def _known_container(self, target: StorageTarget) -> ContainerBroker:
        return self.known_broker(target, target.path.account, target.path.container or "")

    def _needs_look(self, request: Request, target: StorageTarget, broker: ContainerBroker) -> bool:
        is_fresh = broker.freshness.is_fresh
        return not is_fresh or _REDIRECT in request.headers or self._creates_itself(request, target)

    def _row_to_put(self, request: Request, name: str) -> ObjectRow:
        """Return the row of a PUT; raises ``HTTPError`` 400."""
        headers, timestamp = request.headers, request.timestamp
        if "x-etag" not in headers or "x-content-type" not in headers:
            raise HTTPError(400, "X-Etag and X-Content-Type are required", content_type=TEXT)
        content_type, etag = headers["x-content-type"], headers["x-etag"]
        return ObjectRow(
            name,
            timestamp.internal,
            header_int(headers, "x-size"),
            content_type if content_type.isascii() else _clean_text(content_type),
            etag if etag.isascii() else _clean_text(etag),
            0,
            self._policy(request) or 0,
            _time(headers, _CTYPE_TIME) if _CTYPE_TIME in headers else None,
            _time(headers, _META_TIME) if _META_TIME in headers else None,
        )

    def _store_row(
        self, request: Request, target: StorageTarget, broker: ContainerBroker, row: ObjectRow, status: int
    ) -> Response:
        """Write a row here, or tell the caller which shard wants it."""
        refusal = self._row_refusal(request, target, broker, row)
        if refusal is not None:
            return refusal
        broker.put_rows((row,))
        return Response(status, {"content-type": HTML})

    def _row_refusal(
        self, request: Request, target: StorageTarget, broker: ContainerBroker, row: ObjectRow
    ) -> Response | None:
        """Return the response for a row that is not stored here; creates the container if the row may."""
        headers = request.headers
        if not broker.databases:
            if not self._creates_itself(request, target):
                return error_response(404)
            broker.create(request.timestamp, self._policy(request) or 0, created_at=self.now())
        elif _REDIRECT in headers and is_true(headers[_REDIRECT]):
            redirect = self._redirect(request, row.name, broker)
            if redirect is not None:
                return redirect
        return None

    def _creates_itself(self, request: Request, target: StorageTarget) -> bool:
        """Return True if a row may create its container: internal accounts, and shards on request."""
        told = request.headers.get(fields.BACKEND_AUTO_CREATE)
        if told is not None:
            return is_true(told)
        prefix = self.context.limits.auto_create_account_prefix
        return target.path.account.startswith(prefix) and not self._is_shard(target)

    def _is_shard(self, target: StorageTarget) -> bool:
        """Return True if the account holds shards."""
        prefix = self.context.limits.auto_create_account_prefix
        return target.path.account.startswith(prefix + _SHARDS_PREFIX)

    def _redirect(self, request: Request, name: str, broker: ContainerBroker) -> Response | None:
        shard = broker.shard_for(name, UPDATING_STATES)
        if shard is None:
            return None
        location = f"/{shard.name}/{name}"
        quoted = quote_path(location)
        if quoted != location and not is_true(request.headers.get(fields.BACKEND_ACCEPT_QUOTED_LOCATION)):
            return None
        return error_response(
            301,
            headers={
                "location": quoted,
                fields.BACKEND_LOCATION_IS_QUOTED: "true",
                fields.BACKEND_REDIRECT_TIMESTAMP: shard.timestamp,
            },
        )

    # --- DELETE, POST, UPDATE ---------------------------------------------------------------------

    def delete(self, request: Request) -> Response:
        """Return a container or an object row."""
        target, name = self._target(request)
        timestamp = request.timestamp
        if name is not None:
            broker = self._broker_for_row(request, target)
            row = tombstone(name, timestamp, self._policy(request) or 0)
            return self._store_row(request, target, broker, row, 204)
        self.check_date(request)
        broker = self._broker(target)
        self._accounts.check(request)
        if not broker.exists:
            return error_response(404)
        try:
            existed = broker.delete(timestamp)
        except NotEmpty:
            return error_response(409)
        except StaysAlive as error:
            return error_response(409, headers={fields.BACKEND_TIMESTAMP: error.newer})
        info = broker.info()
        self._keep_sync_link(broker, info)
        if self._accounts.report(request, target, info) is AccountResponse.ALL_MISSING:
            return error_response(404)
        return error_response(204 if existed else 404)

    def post(self, request: Request) -> Response:
        """Change metadata."""
        target = self.target(request, 4, 4)
        self.check_date(request)
        timestamp = request.timestamp
        sync_to = request.headers.get("x-container-sync-to")
        if sync_to is not None:
            self._check_sync_to(sync_to)
        broker = self._broker(target)
        self.check_space(broker)
        metadata = self._metadata(request, timestamp)
        self._check_metadata(metadata)
        if not broker.exists or broker.info().is_deleted:
            return error_response(404)
        if not is_true(request.headers.get(fields.BACKEND_NO_TIMESTAMP_UPDATE)):
            broker.touch(timestamp)
        newer = self.merge_metadata(broker.update_metadata, metadata, self._check_metadata)
        if metadata:
            self._keep_sync_link(broker, broker.info())
        return error_response(204, headers=newer)

    def update(self, request: Request) -> Response:
        """Merge many object rows."""
        target = self.target(request, 4, 4)
        request.timestamp  # noqa: B018 -- required, though every row has its own
        broker = self._broker(target)
        self.check_space(broker)
        try:
            body = json.loads(whole_body(request))
            rows = rows_of_mappings(body or ())
        except (ValueError, TypeError, RecursionError) as error:
            return error_response(400, str(error), content_type=TEXT)
        if not broker.exists:
            return error_response(404)
        if rows:
            broker.merge_rows(rows)
        return error_response(202)

    # --- BATCH ------------------------------------------------------------------------------------

    def batch(self, request: Request) -> Response:
        """Store rows of several requests; each has its own answer (doc/formats/row-batches.md)."""
        target = self.target(request, 4, 4)
        try:
            asked = rowbatch.decode_rows(whole_body(request, rowbatch.BYTES_MAX))
        except InvalidValue as error:
            return error_response(400, str(error), content_type=TEXT)
        responses: list[Response] = []
        batch = _RowBatch()
        with suppress(DeviceUnavailable, UnexpectedPath):
            # Each row is told.
            batch.broker = self._known_container(target)
        for number, each in enumerate(asked):
            path = f"{request.raw_path}/{each.name}"
            part = Request(each.method, path, each.headers, remote_addr=request.remote_addr)
            responses.append(self.respond(partial(self._prepare_row, batch, number), part))
        rows = batch.rows
        if rows:
            stored = self.respond(partial(self._put_rows, list(rows.values())), request)
            if stored.status != 200:
                responses = [stored if n in rows else each for n, each in enumerate(responses)]
        answers = [rowbatch.RowAnswer(each.status, each.headers) for each in responses]
        return Response(200, {"content-type": "application/json"}, rowbatch.encode_answers(answers))

    def _prepare_row(self, batch: _RowBatch, number: int, request: Request) -> Response:
        """Add the row of a request to a batch and return the response for the case that it is stored."""
        if request.method not in ("PUT", "DELETE"):
            return error_response(405)
        target, name = self._target(request)
        sync_to = request.headers.get("x-container-sync-to")
        if sync_to is not None and request.method == "PUT":
            self._check_sync_to(sync_to)
        if name is None:
            return error_response(400, "A batch has rows of objects only", content_type=TEXT)
        reject_sync_key(request.headers)
        broker = batch.broker or self._known_container(target)
        if not batch.has_looked and self._needs_look(request, target, broker):
            broker.refresh()
            batch.has_looked = True
        if request.method == "PUT":
            if not batch.has_space:
                self.check_space(broker)
                batch.has_space = True
            row, status = self._row_to_put(request, name), 201
        else:
            row, status = tombstone(name, request.timestamp, self._policy(request) or 0), 204
        refusal = self._row_refusal(request, target, broker, row)
        if refusal is None:
            batch.rows[number] = row
        return refusal or Response(status)

    def _put_rows(self, rows: Sequence[ObjectRow], request: Request) -> Response:
        self._known_container(self.target(request, 4, 4)).put_rows(rows)
        return Response(200)

    # --- HEAD, GET --------------------------------------------------------------------------------

    def head(self, request: Request) -> Response:
        """Facts about a container."""
        target = self.target(request, 4, 5)
        shape = choose_format(request)
        broker = self._broker(target)
        info = broker.info() if broker.exists else None
        headers = _always(info)
        if info is None or info.is_deleted:
            return Response(404, {**headers, "content-type": HTML})
        headers.update(_facts(info))
        headers["content-type"] = shape.content_type
        return Response(204, headers)

    def get(self, request: Request) -> Response:
        """Return a listing of objects or shard ranges."""
        target = self.target(request, 4, 5)
        query = listing_query(request, self.context.limits.container_listing_limit)
        shape = choose_format(request)
        broker = self._broker(target)
        self._policy(request)
        info = broker.info() if broker.exists else None
        headers = _always(info)
        overridden = is_true(request.headers.get(fields.BACKEND_OVERRIDE_DELETED))
        if info is None or (info.is_deleted and not overridden):
            return error_response(404, headers=headers)
        headers.update(_facts(info))
        if self._is_shard(target) and records.is_retired(broker):
            headers[fields.BACKEND_SHARD_RETIRED] = "true"
        wanted = request.headers.get(fields.BACKEND_RECORD_TYPE, "").lower()
        if wanted == records.SHARD or (wanted == records.AUTO and broker.lists_shards(info)):
            rows, extra = records.shard_rows(request, broker, info)
            headers.update(extra)
            body = records.render(shape, rows, target.path.container or "")
        elif wanted in records.REPLICA_ROWS:
            shape, body = ListingFormat.JSON, held_document(broker, query, self._policy_shown(request, info))
            headers[fields.BACKEND_RECORD_TYPE] = wanted
        else:
            policy_index = self._policy_shown(request, info)
            columns = ("name",) if shape is ListingFormat.PLAIN else LISTED
            only = is_true(request.headers.get(fields.BACKEND_LISTING_DIRECTORIES))
            page = broker.listing(query, policy_index, columns, only_directories=only)
            headers[fields.BACKEND_RECORD_TYPE] = records.OBJECT
            headers[fields.BACKEND_RECORD_STORAGE_POLICY_INDEX] = str(policy_index)
            if fields.BACKEND_SHARDS_KNOWN in request.headers and knows_shards(broker):
                headers[fields.BACKEND_SHARDS_KNOWN] = "true"
            body = _render(shape, page, target.path.container or "")
        headers["content-type"] = shape.content_type
        headers["content-length"] = str(len(body))
        return Response(200 if body else 204, headers, body)

    # --- pieces -----------------------------------------------------------------------------------

    def _broker(self, target: StorageTarget) -> ContainerBroker:
        return self.broker_of(target, target.path.account, target.path.container or "")

    def _policy(self, request: Request) -> int | None:
        """Return the policy index of the request, None when it names none; 400 for an unknown one."""
        text = request.headers.get(_POLICY)
        if text is None:
            return None
        try:
            index = int(text)
        except ValueError:
            raise HTTPError(400, f"Invalid X-Backend-Storage-Policy-Index {text!r}", content_type=TEXT)
        if self.context.policies.get(index) is None:
            raise HTTPError(400, f"Invalid X-Backend-Storage-Policy-Index {index}", content_type=TEXT)
        return index

    def _policy_shown(self, request: Request, info: ContainerFacts) -> int:
        """Return the policy whose rows a listing has."""
        index = self._policy(request)
        return info.storage_policy_index if index is None else index

    def _default_policy(self, request: Request) -> int:
        text = request.headers.get(fields.BACKEND_STORAGE_POLICY_DEFAULT)
        if text is None:
            return self.context.policies.default.index
        return header_int(request.headers, fields.BACKEND_STORAGE_POLICY_DEFAULT)

    def _metadata(self, request: Request, timestamp: Timestamp) -> dict[str, tuple[str, str]]:
        return metadata_of(request.headers, _PREFIXES, self._saved, timestamp)

    def _check_metadata(self, metadata: Mapping[str, tuple[str, str]]) -> None:
        check_metadata_text(metadata)
        validate_stored_metadata(meta.user_items(metadata, "container"), self.context.limits)

    def _keep_sync_link(self, broker: ContainerBroker, info: ContainerFacts) -> None:
        keep_link(broker, info)

    def _check_sync_to(self, value: str) -> None:
        try:
            found = validate_sync_to(value, self.settings.allowed_sync_hosts, self._realms)
            if found is not None and found.realm is None:
                self._outbound.check_literal(*endpoint_of(found.url), found.trust)
        except SyncToError as error:
            raise HTTPError(400, str(error))
        except OutboundRefused:
            # The reason would tell a client what listens where.
            raise HTTPError(400, "Invalid host and port in X-Container-Sync-To")


def _always(info: ContainerFacts | None) -> HeaderMap:
    """Return the headers of every HEAD and GET answer, also of a 404."""
    if info is None:
        zero = Timestamp(0).internal
        times, policy_index = (zero, zero, zero, zero), 0
    else:
        columns = (info.created_at, info.put_timestamp, info.delete_timestamp, info.status_changed_at)
        times = tuple(as_timestamp(text).internal for text in columns)  # type: ignore[assignment]
        policy_index = info.storage_policy_index
    return {
        fields.BACKEND_TIMESTAMP: times[0],
        fields.BACKEND_PUT_TIMESTAMP: times[1],
        fields.BACKEND_DELETE_TIMESTAMP: times[2],
        fields.BACKEND_STATUS_CHANGED_AT: times[3],
        _POLICY: str(policy_index),
    }


def _facts(info: ContainerFacts) -> HeaderMap:
    """Return the headers of HEAD and GET for an existing container."""
    put = as_timestamp(info.put_timestamp)
    return {
        "x-container-object-count": str(info.object_count),
        "x-container-bytes-used": str(info.bytes_used),
        "x-timestamp": as_timestamp(info.created_at).normal,
        "x-put-timestamp": put.normal,
        fields.BACKEND_SHARDING_STATE: info.db_state,
        **metadata_headers(info.metadata),
        "last-modified": http_date(put.ceil_seconds),
    }


def _render(shape: ListingFormat, page: list[PageRow], container: str) -> bytes:
    if shape is ListingFormat.JSON:
        return listing.as_json(page)
    if shape is ListingFormat.PLAIN:
        return listing.as_text(page)
    return container_xml(listing.as_rows(page), container)


def _time(headers: HeaderMap, name: str) -> str:
    try:
        return Timestamp(headers[name]).internal
    except InvalidTimestamp:
        raise HTTPError(400, f"Invalid {name} header", content_type=TEXT)


def _clean_text(value: str) -> str:
    """Return a header value as text that a database can hold; bytes that are not UTF-8 become U+FFFD."""
    return utf8_value(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def app_factory(global_conf: Mapping[str, str], **local_conf: str) -> ContainerServer:
    """PasteDeploy factory of ``egg:swift#container``; raises ``ConfigError``."""
    context, settings = backend_context(
        global_conf, local_conf, server_type="container", settings_class=ContainerSettings
    )
    conf = merged(global_conf, local_conf)
    storage = StorageSettings.parse(conf)
    disk = Disk()
    space = SpaceGuard(disk, storage.fallocate_reserve, enabled=not storage.disable_fallocate)
    swift_dir = conf.get("swift_dir", "/etc/swift")
    return ContainerServer(
        context,
        settings,
        disk=disk,
        space=space,
        realms=Realms.of_file(f"{swift_dir}/container-sync-realms.conf"),
        outbound=Outbound.of_rings(Rings(swift_dir, context.policies)),
    )
