"""Container updates for object writes (spec: object-server.md §11, §12).

Updates are computed as values (``Update``); ``UpdateSender`` sends them to all hosts at once. A client
waits for that only so long, and not at all for an unresponsive server (``cluster.health``); what
failed is kept on the object's device as an async pending and delivered later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from swift.base.entity import EntityPath, quote_path
from swift.base.errors import SwiftError
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.cluster.direct import DirectClient
from swift.cluster.expiry import queue_container, queue_task
from swift.cluster.health import NodeHealth
from swift.cluster.redirect import redirect_of
from swift.cluster.transport import BackendResponse, NodeAddress, TimedOut
from swift.green import Event, spawn_detached
from swift.http import fields
from swift.http.headers import HeaderMap, lower_name, title_case
from swift.http.request import Request
from swift.obj.put import NAMES_MAX
from swift.obj.rowbatches import RowBatches
from swift.obj.settings import ObjectSettings
from swift.policy.policy import Policy
from swift.runtime.backendapp import BackendContext
from swift.store.api import AsyncUpdate, ObjectKey, ObjectState, ObjectStore
from swift.store.calls import Effort
from swift.store.handle import StoreHandle
from swift.store.metadata import Metadata
from swift.telemetry.repeatederrors import RepeatedErrorLog

#: Lists of hosts remembered: those of the containers that are written to.
HOSTS_MAX = 1024
_OVERRIDES = (fields.BACKEND_UPDATE_OVERRIDE, fields.SYSMETA_UPDATE_OVERRIDE)
#: The engine that keeps the updates of a policy's objects.
StoreAt = Callable[[Policy, str], StoreHandle]

#: Attempts to save an update whose directory vanishes.
SAVE_TRIES = 5
_EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"

#: Header that requests the list of container servers with the row → header with the list.
_REPORTS = (
    (fields.BACKEND_REPORT_CONTAINER_SERVERS, fields.BACKEND_CONTAINER_SERVERS),
    (fields.FORMER_REPORT_CONTAINER_SERVERS, fields.FORMER_CONTAINER_SERVERS),
)


class Update(NamedTuple):
    """One container row and its hosts; without hosts it becomes an async pending at once."""

    op: str
    path: EntityPath
    headers: HeaderMap
    hosts: tuple[tuple[str, str], ...] = ()
    partition: str = ""
    db_state: str | None = None
    container_path: str | None = None

    @property
    def timestamp(self) -> Timestamp:
        """Timestamp in the name of this update's pending file."""
        return Timestamp(self.headers.get("x-meta-timestamp") or self.headers["x-timestamp"])

    @property
    def target_container(self) -> str:
        """Quoted path of the container of the row, or of the shard that replaces it."""
        account, container, _obj = self.path
        return quote_path(f"/{self.container_path or f'{account}/{container}'}")


@lru_cache(maxsize=HOSTS_MAX)
def split_hosts(hosts: str, devices: str) -> tuple[tuple[str, str], ...]:
    """``ip:port`` and device pairs; empty when the two lists differ in length."""
    addresses = [host.strip() for host in hosts.split(",") if host.strip()]
    names = [device.strip() for device in devices.split(",") if device.strip()]
    if len(addresses) != len(names):
        return ()
    return tuple(zip(addresses, names, strict=True))


@lru_cache(maxsize=HOSTS_MAX)
def split_address(host: str) -> tuple[str, int] | None:
    """``ip:port`` with IPv6 in brackets; None when it is none."""
    ip, _, port = host.rpartition(":")
    if not ip or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        return None
    return ip.strip("[]"), int(port)


def shard_path(headers: HeaderMap) -> str | None:
    """Return the ``account/container`` that stands in for the object's own; None when absent or malformed."""
    quoted = headers.get(fields.BACKEND_QUOTED_CONTAINER_PATH)
    text = unquote(quoted) if quoted is not None else headers.get(fields.BACKEND_CONTAINER_PATH)
    if not text:
        return None
    parts = text.lstrip("/").split("/")
    return "/".join(parts) if len(parts) == 2 and all(parts) else None


class UpdateMaker:
    """Builds the updates of one object request."""

    def __init__(self, request: Request, key: ObjectKey, context: BackendContext, settings: ObjectSettings):
        self._request = request
        self._key = key
        self._context = context
        self._settings = settings

    def _sign(self, row: HeaderMap) -> None:
        """Say which request a row comes from."""
        request = self._request
        row["x-trans-id"] = request.headers.get("x-trans-id", "-")
        row["referer"] = f"{request.method} {request.url}"

    # --- the container's row -------------------------------------------------------------------------

    def container(self, op: str, row: HeaderMap) -> Update | None:
        """Return the update of the object's container; None when the proxy asked for none."""
        headers = self._request.headers
        if "x-container-partition" not in headers:
            return None
        hosts = split_hosts(headers.get("x-container-host", ""), headers.get("x-container-device", ""))
        if not hosts:
            if headers.get("x-container-host"):
                self._context.telemetry.log.error(
                    "ERROR Container update failed: different numbers of hosts and devices in request: "
                    f"{headers.get('x-container-host')!r} vs {headers.get('x-container-device')!r}",
                    txid=headers.get("x-trans-id"),
                )
            return None
        self._sign(row)
        row[fields.BACKEND_STORAGE_POLICY_INDEX] = str(self._key.policy.index)
        return Update(
            op,
            self._key.path,
            row,
            hosts,
            headers["x-container-partition"],
            headers.get("x-container-root-db-state"),
            shard_path(headers),
        )

    def put_row(self, metadata: Metadata, footers: HeaderMap) -> HeaderMap:
        """Return the row of a PUT."""
        row = {
            "x-size": metadata["Content-Length"],
            "x-content-type": metadata["Content-Type"],
            "x-timestamp": metadata["X-Timestamp"],
            "x-etag": metadata["ETag"],
        }
        headers = self._request.headers
        if footers or _has_overrides(tuple(headers)):
            self._override(row, headers, footers)
        return row

    def post_row(
        self, before: ObjectState, content_type: str, ctype_timestamp: Timestamp, written: Timestamp
    ) -> HeaderMap:
        """Return the row of a POST: the data's facts with the new times."""
        stored = {lower_name(name): value for name, value in before.metadata.items()}
        row = {
            "x-size": stored.get("content-length", "0"),
            "x-content-type": with_swift_bytes(content_type, before.data_content_type),
            "x-timestamp": before.data_timestamp.internal,
            "x-content-type-timestamp": ctype_timestamp.internal,
            "x-meta-timestamp": written.internal,
            "x-etag": stored.get("etag", ""),
        }
        if self._key.policy.is_ec:
            row["x-size"] = stored.get(fields.SYSMETA_EC_CONTENT_LENGTH, row["x-size"])
            row["x-etag"] = stored.get(fields.SYSMETA_EC_ETAG, row["x-etag"])
        self._override(row, stored)
        return row

    @staticmethod
    def _override(row: HeaderMap, *sources: HeaderMap) -> None:
        for prefix in _OVERRIDES:
            for source in sources:
                for name, value in source.items():
                    if name.startswith(prefix):
                        row[f"x-{name[len(prefix) :]}"] = value

    # --- the expirer's queue -------------------------------------------------------------------------

    def _queue(self, op: str, delete_at: int, row: HeaderMap, container: str | None = None) -> Update:
        settings, path = self._settings, self._key.path
        own = queue_container(
            self._context.hasher, path, delete_at, settings.expiring_objects_container_divisor
        )
        row = {fields.BACKEND_STORAGE_POLICY_INDEX: "0", **row}
        self._sign(row)
        account = f".{settings.expiring_objects_account_name}"
        return Update(op, EntityPath(account, container or own, queue_task(path, delete_at)), row)

    def enqueue(self, delete_at: int, metadata: Metadata, data_timestamp: Timestamp) -> Update | None:
        """Queue the object for expiry; None when another replica does it."""
        headers = self._request.headers
        host = headers.get("x-delete-at-host")
        if host is None:
            return None
        update = self._queue(
            "PUT",
            delete_at,
            {
                "x-timestamp": self._request.timestamp.internal,
                "x-size": "0",
                "x-content-type": f"text/plain;swift_expirer_bytes={metadata['Content-Length']}",
                "x-etag": _EMPTY_MD5,
                "x-content-type-timestamp": data_timestamp.internal,
            },
            headers.get("x-delete-at-container"),
        )
        hosts = split_hosts(host, headers.get("x-delete-at-device", ""))
        partition = headers.get("x-delete-at-partition", "")
        return update._replace(hosts=hosts, partition=partition) if hosts and partition else update

    def dequeue(self, delete_at: int) -> Update | None:
        """Take a former entry out of the queue; None when the proxy says that others do."""
        if not is_true(self._request.headers.get(fields.BACKEND_CLEAN_EXPIRING_QUEUE, "true")):
            return None
        return self._queue("DELETE", delete_at, {"x-timestamp": self._request.timestamp.internal})

    def expiry(
        self, before: int | None, after: int | None, metadata: Metadata, data_timestamp: Timestamp
    ) -> list[Update]:
        """Return the queue updates of a write that changed X-Delete-At from ``before`` to ``after``."""
        if before is None and after is None:
            return []
        if is_true(self._request.headers.get(fields.BACKEND_REPLICATION)):
            return []
        found = []
        if after is not None:
            found.append(self.enqueue(after, metadata, data_timestamp))
        if before is not None and before != after:
            found.append(self.dequeue(before))
        return [update for update in found if update is not None]


@lru_cache(maxsize=NAMES_MAX)
def _has_overrides(names: tuple[str, ...]) -> bool:
    """Return True if a header changes the container's row."""
    return any(name.startswith(_OVERRIDES) for name in names)


def with_swift_bytes(content_type: str, stored: str) -> str:
    """``content_type`` with the ``swift_bytes`` parameter of the type that came with the body."""
    start = stored.find(";swift_bytes=")
    if start < 0 or ";swift_bytes=" in content_type:
        return content_type
    return content_type + stored[start:].partition(" ")[0]


def without_swift_bytes(content_type: str) -> str:
    """Return a content type as clients see it."""
    start = content_type.find(";swift_bytes=")
    if start < 0:
        return content_type
    return (
        content_type[:start]
        + content_type[start + 1 :].partition(";")[1]
        + (content_type[start + 1 :].partition(";")[2])
    )


class UpdateSender:
    """Sends updates, or saves them for later."""

    def __init__(self, context: BackendContext, settings: ObjectSettings, store_at: StoreAt):
        self._context = context
        self._settings = settings
        self._store_at = store_at
        self._direct = DirectClient(context.transport, "object-server", settings)
        self._batches = RowBatches(self._direct, context.clock)
        self._failures = RepeatedErrorLog(context.telemetry.log, context.clock)
        self._health = NodeHealth(context.clock, patience_s=settings.node_timeout)

    def send(
        self, request: Request, key: ObjectKey, updates: Sequence[Update], container: Update | None
    ) -> HeaderMap:
        """Send all updates at once; returns when all are done or the client has waited long enough.

        If the request wants it, a header of the response names the places (``address:port/device``) that
        took the row of the ``container`` until then. Raises OSError if an update could be neither sent nor
        saved: its row would be lost.
        """
        if container is None and not updates:
            return {}
        waiting, accepted, lost = [], list[str](), list[Exception]()
        for update in (*updates, *(() if container is None else (container,))):
            update.headers["user-agent"] = self._direct.agent
            if not update.hosts:
                self._save_for_later(key, update, None)
                continue
            for host, device in update.hosts:
                done = Event()
                accepted_by = accepted if update is container else None
                spawn_detached(self._deliver, key, update, host, device, done, accepted_by, lost)
                waiting.append(done)
        clock = self._context.clock
        deadline = clock.monotonic() + self._settings.container_update_timeout
        for done in waiting:
            if not done.wait(max(0.0, deadline - clock.monotonic())):
                break
        if lost:
            raise lost[0]
        for wanted, header in _REPORTS:
            if wanted in request.headers:
                return {header: ",".join(accepted)}
        return {}

    def _deliver(
        self,
        key: ObjectKey,
        update: Update,
        host: str,
        device: str,
        done: Event,
        accepted_by: list[str] | None,
        lost: list[Exception],
    ) -> None:
        try:
            reply, reason = self._request(update, host, device, done)
            if reply is None or not reply.is_success:
                self._save_for_later(
                    key, update, self._redirect_or_log(update, f"{host}/{device}", reply, reason)
                )
            elif accepted_by is not None:
                accepted_by.append(f"{host}/{device}")
        except (OSError, SwiftError) as error:
            self._context.telemetry.log.error(
                f"ERROR container update of {key.path} to {host} is lost, neither sent nor saved: {error}",
                txid=update.headers["x-trans-id"],
            )
            lost.append(error)
        except Exception as error:
            # The request may not wait any more.
            self._context.telemetry.log.exception(
                f"ERROR container update of {key.path} to {host}", error, txid=update.headers["x-trans-id"]
            )
            lost.append(error)
        finally:
            done.set()

    def _request(
        self, update: Update, host: str, device: str, done: Event
    ) -> tuple[BackendResponse | None, str]:
        """Return a server's response, or the failure's reason; rarely tries unresponsive servers."""
        address, place = split_address(host), f"{host}/{device}"
        if address is None:
            return None, f"bad address {host!r}"
        request = self._batches.request
        if self._health.is_unresponsive(place):
            if not self._health.is_probe_due(place):
                return None, "unresponsive"
            done.set()
            request = self._batches.request_alone
        self._health.requested(place, self._context.clock.monotonic())
        try:
            # Device and partition are as a proxy sent them.
            container = f"/{device}/{update.partition}{update.target_container}"
            reply = request(
                NodeAddress(*address), container, update.op, quote_path(update.path.obj or ""), update.headers
            )
        except Exception as error:  # noqa: BLE001 - the row is kept for later whatever it is
            if not isinstance(error, TimedOut):
                self._health.responded(place)
            return None, str(error)
        self._health.responded(place)
        return reply, ""

    def _redirect_or_log(
        self, update: Update, server: str, reply: BackendResponse | None, reason: str
    ) -> str | None:
        """Return the shard that must get the update later, None for the same container; logs failures."""
        if reply is not None:
            if reply.status == 301:
                redirect = redirect_of(reply)
                return None if redirect is None else redirect.container
            reason = f"status {reply.status}"
        self._failures.error(
            f"ERROR Container update failed (saving for async update later): {reason} from {server}",
            txid=update.headers["x-trans-id"],
        )
        return None

    def _save_for_later(self, key: ObjectKey, update: Update, redirect: str | None) -> None:
        headers = {title_case(name): value for name, value in update.headers.items()}
        record = AsyncUpdate(
            update.op, update.path, headers, update.db_state, redirect or update.container_path
        )
        store = self._store_at(key.policy, key.device)
        store.call(Effort.SHORT, _save_record, key, record, update.timestamp)


def _save_record(engine: ObjectStore, key: ObjectKey, record: AsyncUpdate, timestamp: Timestamp) -> None:
    """Save; again when the object updater removed the emptied directory in the midst of it."""
    for _ in range(SAVE_TRIES - 1):
        try:
            engine.updates.save(key.device, key.policy, record, timestamp)
            return
        except FileNotFoundError:
            continue
    engine.updates.save(key.device, key.policy, record, timestamp)
