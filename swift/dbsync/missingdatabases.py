"""Missing databases of a device, and notification of the nodes that can push them.

Replicators push databases and never fetch any. They skip a database in order until it changes
(``db.unchanged``). So the replicator of a device that was exchanged for an empty
one, or from which a broken database was moved away, tells the other primaries which partitions it lacks
(``BACKEND_LOST_PARTITIONS``). Their servers touch the databases that they have of these, which their
replicators take for a change. A partition without databases is told of once in the life of a process; a node
that does not hear it is told again in the next pass. Servers of the peer refuse it and need not hear it,
because their replicators visit everything in every pass.

Format: ``doc/formats/database-replication.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue
from swift.cluster.direct import DirectClient, node_path
from swift.cluster.transport import BackendResponse, TransportError, replication_address
from swift.db import files, walk
from swift.db.files import DatabasePath
from swift.http import fields
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.ring.device import Device
from swift.ring.view import RingView
from swift.telemetry.log import Log

#: Partitions of one message.
PARTITIONS_MAX = 2000
#: Bytes of a message: what so many partitions take at most.
BODY_BYTES_MAX = 32 << 10


class MissingDatabases:
    """Partitions that one device lacks, and the nodes to notify; kept from pass to pass."""

    def __init__(self) -> None:
        self._absent: frozenset[int] = frozenset()
        self._owned: tuple[RingView, frozenset[int], frozenset[int]] | None = None
        #: Id of a device → the partitions of which it was not told yet.
        self._unnotified: dict[int, set[int]] = {}
        #: Partitions of which other nodes said that they have databases.
        self._held_by_others: set[int] = set()

    def note(
        self, view: RingView, own_ids: frozenset[int], present: Collection[int], gone: Collection[int]
    ) -> None:
        """Record the partitions seen in a pass, and databases that disappeared.

        The ring knows the device by ``own_ids``: none when it has left the ring meanwhile.
        """
        if self._owned is None or self._owned[0] is not view or self._owned[1] != own_ids:
            owned = frozenset().union(*(view.parts_of(own_id) for own_id in own_ids))
            self._owned = view, own_ids, owned
        absent = self._owned[2].difference(present)
        for part in (absent - self._absent).union(gone):
            for node in view.primaries(part):
                if node.id not in own_ids:
                    self._unnotified.setdefault(node.id, set()).add(part)
        self._absent = absent

    def lacking(self, present: Collection[int]) -> int:
        """Return the number of partitions that the device lacks and of which others reported databases.

        ``present`` are on it now: some may have come since the pass saw it.
        """
        self._held_by_others &= self._absent
        return len(self._held_by_others.difference(present))

    def tell(self, view: RingView, direct: DirectClient, log: Log, may_continue: Callable[[], bool]) -> None:
        """Notify the nodes that have not been notified yet, as long as ``may_continue``."""
        unresponsive: set[tuple[str, int]] = set()
        for dev_id in list(self._unnotified):
            device = view.devices[dev_id] if dev_id < len(view.devices) else None
            if device is None:
                del self._unnotified[dev_id]
                continue
            address = device.replication_ip, device.replication_port
            while may_continue() and address not in unresponsive and dev_id in self._unnotified:
                try:
                    self._notify_node(device, direct, log)
                except TransportError as error:
                    log.warning(f"{device.replication_key} cannot be notified of missing databases: {error}")
                    unresponsive.add(address)

    def _notify_node(self, device: Device, direct: DirectClient, log: Log) -> None:
        """Notify a node of some partitions; raises ``TransportError`` unless it responded."""
        untold = self._unnotified[device.id]
        parts = sorted(untold)[:PARTITIONS_MAX]
        body = json.dumps(parts, separators=(",", ":")).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "user-agent": direct.agent,
            fields.BACKEND_LOST_PARTITIONS: "true",
        }
        path = node_path(device.device, parts[0], "")
        reply = direct.request(replication_address(device), "REPLICATE", path, headers, body)
        if reply.status >= 500:
            raise TransportError(f"{reply.status} {reply.reason}")
        untold.difference_update(parts)
        if not untold:
            del self._unnotified[device.id]
        self._held_by_others |= touched_partitions(reply)
        count = touched_count(reply)
        if count:
            log.info(
                f"{device.replication_key} will push {count} databases of partitions that are missing here"
            )

    def __repr__(self) -> str:
        return f"<MissingDatabases {len(self._absent)} partitions, {len(self._unnotified)} nodes to be told>"


def touched_count(reply: BackendResponse) -> int:
    """Return the number of databases that a node touched; 0 if it does not report it."""
    count = _answer(reply).get("databases")
    return count if type(count) is int else 0


def touched_partitions(reply: BackendResponse) -> set[int]:
    """Return the partitions in which a node touched databases."""
    found = _answer(reply).get("partitions")
    return {part for part in found if type(part) is int} if isinstance(found, list) else set()


def _answer(reply: BackendResponse) -> JsonObject:
    if fields.BACKEND_LOST_PARTITIONS not in reply.headers:
        return {}
    try:
        value = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def partitions_in(body: bytes) -> list[str]:
    """Return the partitions in a message; raises ``InvalidValue``."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidValue("Invalid JSON")
    if not isinstance(found, list) or len(found) > PARTITIONS_MAX:
        raise InvalidValue(f"a list of at most {PARTITIONS_MAX} partitions is needed")
    if any(type(part) is not int or not 0 <= part < 1 << 32 for part in found):
        raise InvalidValue("a partition is a whole number")
    return [str(part) for part in found]


def touch(disk: Disk, device_path: str, kind: str, partitions: Collection[str]) -> JsonObject:
    """Touch the databases of some partitions; return the response to the message.

    What cannot be listed is left to the daemons, which tell of it. Raises OSError.
    """
    touched, held = 0, []
    for partition in partitions:
        before = touched
        for place in walk.places(DiskHandle(disk), device_path, kind, partition, lambda _error: None):
            touched += _touch_database(disk, place)
        if touched > before:
            held.append(int(partition))
    return {"databases": touched, "partitions": held}


def _touch_database(disk: Disk, place: DatabasePath) -> bool:
    """Return True if the database exists; changes its file's time."""
    paths = files.database_files(disk, place)
    try:
        for path in paths:
            disk.touch(path)
    except FileNotFoundError:
        return False
    return bool(paths)
