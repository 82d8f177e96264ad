"""The REPLICATE verb of account and container servers: what a replica on another node asks of ours.

Spec: account-container.md §13. Every operation merges, so a message that is lost, repeated or late does no
harm. A broken database is quarantined and answered with 404, so that the sender brings a whole one at once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue
from swift.db import files
from swift.db.broker import Broker, Engine
from swift.db.connection import DatabaseBroken, DatabaseMissing
from swift.db.files import DatabasePath
from swift.db.syncpoints import get_sync, merge_syncs, set_sync
from swift.dbserver.app import DatabaseApp, whole_body
from swift.dbsync import missingdatabases, protocol
from swift.dbsync.protocol import RemoteState, check_identity
from swift.dbsync.receivedfiles import ReceivedFiles, epoch_in
from swift.dbsync.replica import Items, Replica
from swift.http import fields
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.runtime.backendapp import UnexpectedPath, split_backend_path

_HEX = frozenset("0123456789abcdef")
_PIECE_BYTES = 1 << 20
_ANNOUNCED = {fields.BACKEND_DATABASE_UPLOAD: "true"}

Operation = Callable[[Replica, Sequence[object]], Response]


class Receiver:
    """Serves REPLICATE for one server; ``replica_of`` makes a replica of its brokers."""

    def __init__(self, app: DatabaseApp[Any], replica_of: Callable[[Any], Replica], *, has_ranges: bool):
        self._app = app
        self._replica_of = replica_of
        self._operations: dict[str, Operation] = {
            protocol.SYNC: self._sync,
            protocol.MERGE_ITEMS: self._merge_items,
            protocol.MERGE_SYNCS: self._merge_syncs,
        }
        if has_ranges:
            self._operations[protocol.MERGE_SHARD_RANGES] = self._merge_ranges
            self._operations[protocol.GET_SHARD_RANGES] = self._get_ranges

    def handle(self, request: Request) -> Response:
        """Return the handler of the verb; every answer says that uploads are taken."""
        try:
            response = self._answer(request)
        except InvalidValue as error:
            response = error_response(400, str(error), content_type=TEXT)
        except HTTPError as error:
            response = error.response
        response.headers = {**response.headers, **_ANNOUNCED}
        return response

    def _answer(self, request: Request) -> Response:
        if fields.BACKEND_LOST_PARTITIONS in request.headers:
            return self._touch_missing(request)
        place = self._place(request)
        if self._app.space.enabled:
            self._app.space.check(place.device_path, None)
        remote_id = request.headers.get(fields.BACKEND_DATABASE_UPLOAD)
        if remote_id is not None:
            return self._upload(request, place, check_identity(remote_id))
        operation, arguments = _message(request)
        if operation == protocol.COMPLETE_RSYNC:
            return self._complete(place, *_arrival(arguments))
        if operation == protocol.RSYNC_THEN_MERGE:
            return self._merge_arrival(request, place, *_arrival(arguments))
        handler = self._operations.get(operation)
        if handler is None:
            raise InvalidValue("unknown operation")
        try:
            self._arrivals(place).prepare()
            replica = self._found(place)
            return error_response(404) if replica is None else handler(replica, arguments)
        except DatabaseBroken as error:
            # 404 asks for a whole database, which is right once the broken one is out of the way.
            return error_response(404 if self._app.quarantine(error, request) else 503)

    def _place(self, request: Request) -> DatabasePath:
        device, partition, name_hash = split_backend_path(request, 3, 3)
        self._app.context.partitions.check(partition, self._app.server_type)
        if len(name_hash) != 32 or not _HEX.issuperset(name_hash):
            raise UnexpectedPath(f"Invalid path: {request.raw_path}")
        return DatabasePath(self._app.context.devices.path(device), self._app.directory, partition, name_hash)

    def _touch_missing(self, request: Request) -> Response:
        """Have our replicator visit what another node lacks."""
        device, _partition = split_backend_path(request, 2, 2)
        context = self._app.context
        device_path = context.devices.path(device)
        lost = missingdatabases.partitions_in(whole_body(request, missingdatabases.BODY_BYTES_MAX))
        for partition in lost:
            context.partitions.check(partition, self._app.server_type)
        disk = self._disk_at(device)
        response = _json(disk.call(missingdatabases.touch, device_path, self._app.directory, lost))
        response.headers[fields.BACKEND_LOST_PARTITIONS] = "true"
        return response

    def _disk_at(self, device: str) -> DiskHandle:
        """Return a disk with threads of its own, because merging a whole database takes long."""
        return self._app.context.disk_at(device, self._app.disk, "replication")

    def _arrivals(self, place: DatabasePath) -> ReceivedFiles:
        return ReceivedFiles(self._disk_at(place.device), place)

    def _found(self, place: DatabasePath) -> Replica | None:
        """Return the replica of a place by the names that its database has, None when there is none."""
        cache = self._app.brokers
        broker = cache.peek(place)
        if broker is None:
            names = self._disk_at(place.device).call(self._names_at, place)
            if names is None:
                return None
            broker = cache.get(place, *names)
        return self._replica_of(broker) if broker.refresh() else None

    def _names_at(self, disk: Disk, place: DatabasePath) -> tuple[str, ...] | None:
        if not files.database_files(disk, place):
            return None
        nameless = self._nameless(place)
        try:
            if not nameless.broker.refresh():
                return None
            names = nameless.broker.read(nameless.names, merged=False)
        except DatabaseMissing:
            return None
        finally:
            nameless.broker.close()
        if self._hash_of(names) != place.name_hash:
            raise HTTPError(409, f"The database there is of {'/'.join(names)}", content_type=TEXT)
        return names

    def _nameless(self, place: DatabasePath) -> Replica:
        """Return a replica that knows no names yet and works in the calling thread."""
        blanks = ("",) * (1 if self._app.server_type == "account" else 2)
        broker: Broker = self._app.broker_class(place, Engine(disk=self._app.disk), *blanks)
        return self._replica_of(broker)

    def _hash_of(self, names: tuple[str, ...]) -> str:
        return self._app.context.hasher.hexdigest(*names)

    # --- operations on a database ------------------------------------------------------------------

    def _sync(self, replica: Replica, arguments: Sequence[object]) -> Response:
        remote = RemoteState.of_arguments(arguments)
        now = self._app.now()

        def look(connection: sqlite3.Connection) -> tuple[bool, JsonObject]:
            info = replica.info(connection)
            info["point"] = get_sync(connection, remote.id, incoming=True)
            is_news = replica.lacks(connection, remote) or _has_all(info, remote)
            return is_news, info

        def learn(connection: sqlite3.Connection) -> JsonObject:
            if replica.lacks(connection, remote):
                replica.adopt(connection, remote, now)
            _is_news, info = look(connection)
            if _has_all(info, remote):
                set_sync(connection, remote.id, remote.max_row, incoming=True)
                info["point"] = remote.max_row
            return info

        is_news, info = replica.broker.read(look)
        return _json(replica.broker.write(learn) if is_news else info)

    def _merge_items(self, replica: Replica, arguments: Sequence[object]) -> Response:
        items, source = _two(arguments)
        check_identity(source)
        replica.broker.write(lambda connection: replica.merge_items(connection, _list(items), source))
        return error_response(202)

    def _merge_syncs(self, replica: Replica, arguments: Sequence[object]) -> Response:
        syncs = _list(arguments[0] if arguments else None)
        if syncs:
            replica.broker.write(lambda connection: merge_syncs(connection, syncs, incoming=True))
        return error_response(202)

    def _merge_ranges(self, replica: Replica, arguments: Sequence[object]) -> Response:
        ranges = _list(arguments[0] if arguments else None)
        replica.broker.write(lambda connection: replica.merge_ranges(connection, ranges))
        return error_response(202)

    def _get_ranges(self, replica: Replica, _arguments: Sequence[object]) -> Response:
        return _json(replica.broker.read(replica.ranges))

    # --- whole databases ---------------------------------------------------------------------------

    def _upload(self, request: Request, place: DatabasePath, remote_id: str) -> Response:
        """Store a body as what rsync would have brought."""
        upload = self._arrivals(place).upload(remote_id)
        try:
            while piece := request.body.read(_PIECE_BYTES):
                upload.write(piece)
            upload.finish()
        finally:
            upload.discard()
        return error_response(204)

    def _complete(self, place: DatabasePath, remote_id: str, file_name: str | None) -> Response:
        arrivals = self._arrivals(place)
        replica = self._nameless(place)
        try:
            done = arrivals.install(replica, remote_id, file_name, self._hash_of)
        except DatabaseBroken as error:
            return self._refuse(error)
        return error_response(204 if done else 404)

    def _merge_arrival(
        self, request: Request, place: DatabasePath, remote_id: str, file_name: str | None
    ) -> Response:
        """Exchange our database for the arrived one with all our rows merged in."""
        arrivals = self._arrivals(place)
        try:
            replica = self._found(place)
        except DatabaseBroken as error:
            if not self._app.quarantine(error, request):
                return error_response(503)
            replica = None
        if replica is None or not arrivals.has(remote_id):
            return error_response(404)
        broker = replica.broker
        target = broker.newest.path
        if place.file(epoch_in(place, file_name)) != target:
            # Sharding has started here; the file is from before. While it goes on, ``replace`` refuses.
            return error_response(404)
        try:
            received = arrivals.open(replica, remote_id, self._hash_of)
        except DatabaseBroken as error:
            return self._refuse(error)
        try:
            broker.merge_pending()
            arrivals.catch_up(received, target)
            now = self._app.now()
            broker.alone(lambda have, _disk: received.replace(have, target, remote_id, now))
        finally:
            received.close()
        broker.refresh()
        return error_response(204)

    def _refuse(self, error: DatabaseBroken) -> Response:
        self._app.context.telemetry.log.error(f"ERROR received database or rows are invalid: {error}")
        return error_response(404)


def _message(request: Request) -> tuple[str, list[object]]:
    """Operation and arguments; raises ``InvalidValue``."""
    try:
        message = json.loads(whole_body(request))
    except (ValueError, RecursionError):
        raise InvalidValue("Invalid JSON")
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise InvalidValue("Invalid object type")
    return message[0], message[1:]


def _arrival(arguments: Items) -> tuple[str, str | None]:
    """Return the sender's database id and the file name that it has there."""
    if not arguments:
        raise InvalidValue("not the id of a database")
    return check_identity(arguments[0]), arguments[1] if len(arguments) > 1 else None


def _two(arguments: Items) -> tuple[Any, Any]:
    if len(arguments) < 2:
        raise InvalidValue("rows and the id of their sender are needed")
    return arguments[0], arguments[1]


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidValue("a list is needed")
    return value


def _has_all(info: JsonObject, remote: RemoteState) -> bool:
    """Return True if equal hashes show that the remote has no rows left to send."""
    return info["hash"] == remote.hash and info["point"] < remote.max_row


def _json(value: object) -> Response:
    body = json.dumps(value).encode("ascii")
    return Response(200, {"content-type": "application/json", "content-length": str(len(body))}, body)
