"""Messages about one database to one node (spec: account-container.md §13), and whole databases.

A node that takes uploads gets the file over the connection that is there anyway; any other gets it by rsync.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from swift.base.errors import SwiftError
from swift.cluster.direct import DirectClient, node_path
from swift.cluster.health import NodeHealth, replication_server
from swift.cluster.transport import BackendResponse, TimedOut, TransportError, replication_address
from swift.dbsync import rsync
from swift.dbsync.protocol import MERGE_ITEMS
from swift.dbsync.settings import ReplicatorSettings
from swift.http import fields
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.ring.device import Node

_PIECE_BYTES = 1 << 20
#: The slowest pace at which a file is worth waiting for, bytes per second.
_SLOWEST = 4 << 20


class NodeFailed(SwiftError):
    """A node did not do what it was asked; the sentence says what."""


class NodeSkipped(NodeFailed):
    """A node gave no answer a moment ago, so it was not asked."""


@dataclass(frozen=True)
class NodeAccess:
    """Access of a replicator to nodes; the same for all of its databases."""

    direct: DirectClient
    settings: ReplicatorSettings
    #: The rsync module template.
    module: str
    #: Nodes that let a question time out: the other databases do not wait for them.
    health: NodeHealth


class RemoteDatabase:
    """Speaks with ``node`` about the database ``name_hash`` in ``part``.

    ``disk`` is the local device's; ``is_remote_region`` tells whether bytes are dear.
    """

    def __init__(
        self,
        access: NodeAccess,
        node: Node,
        part: int,
        name_hash: str,
        *,
        disk: DiskHandle,
        is_remote_region: bool = False,
    ):
        self.node = node
        self._access = access
        self._disk = disk
        self._is_remote_region = is_remote_region
        self._address = replication_address(node)
        self._path = node_path(node.device, part, f"/{name_hash}")
        self._takes_uploads = False

    def say(self, operation: str, *arguments: object, more_time_s: float = 0.0) -> BackendResponse:
        """Send a message; any status is an answer. Raises ``NodeFailed`` when none comes."""
        return self._ask(json.dumps([operation, *arguments]).encode("ascii"), more_time_s)

    def _ask(self, body: bytes, more_time_s: float = 0.0) -> BackendResponse:
        direct, health = self._access.direct, self._access.health
        if health.is_absent(replication_server(self.node)):
            raise NodeSkipped("it was unresponsive a moment ago")
        headers = {"content-type": "application/json", "user-agent": direct.agent}
        try:
            reply = direct.request(
                self._address, "REPLICATE", self._path, headers, body, more_time_s=more_time_s
            )
        except TransportError as error:
            if isinstance(error, TimedOut):
                health.mark_absent(replication_server(self.node))
            raise NodeFailed(str(error))
        self._takes_uploads = fields.BACKEND_DATABASE_UPLOAD in reply.headers
        return reply

    def tell(self, operation: str, *arguments: object, more_time_s: float = 0.0) -> BackendResponse:
        """Like ``say``; raises ``NodeFailed`` unless the answer is a success."""
        return success(operation, self.say(operation, *arguments, more_time_s=more_time_s))

    def send_items(self, items: str, own_id: str) -> None:
        """Send rows that are JSON text already; raises ``NodeFailed`` unless the node took them."""
        text = f'["{MERGE_ITEMS}", {items}, {json.dumps(own_id)}]'
        success(MERGE_ITEMS, self._ask(text.encode("utf-8", "surrogatepass")))

    def bring(self, path: str, remote_name: str) -> float:
        """Bring a file into the node's temporary directory; how many seconds its size is worth.

        Say something before, so that it is known whether the node takes uploads. Raises ``NodeFailed``.
        """
        size = self._disk.stat(path).st_size
        worth_s = size / _SLOWEST
        if self._takes_uploads:
            self._upload(path, size, remote_name)
        else:
            self._rsync(path, remote_name, worth_s)
        return worth_s

    def _rsync(self, path: str, remote_name: str, worth_s: float) -> None:
        settings = self._access.settings
        module = rsync.module_of(self._access.module, self.node)
        args = rsync.command(
            path,
            f"{module}/{self.node.device}/tmp/{remote_name}",
            conn_timeout_s=settings.conn_timeout,
            io_timeout_s=settings.node_timeout,
            compress=settings.rsync_compress and self._is_remote_region,
        )
        try:
            rsync.run(args, settings.node_timeout + worth_s)
        except rsync.RsyncFailed as error:
            raise NodeFailed(str(error))

    def _upload(self, path: str, size: int, remote_name: str) -> None:
        direct, disk = self._access.direct, self._disk
        headers = {
            "content-type": "application/octet-stream",
            "content-length": str(size),
            "user-agent": direct.agent,
            fields.BACKEND_DATABASE_UPLOAD: remote_name,
        }
        fd = disk.call(_opened, path)
        try:
            pieces = iter(lambda: disk.call(_read, fd), b"")
            reply = direct.stream(self._address, "REPLICATE", self._path, headers, pieces)
        except TransportError as error:
            raise NodeFailed(str(error))
        finally:
            disk.call(_close, fd)
        if reply.status != 204:
            raise NodeFailed(f"an upload failed with {reply.status} {reply.reason}")


def _opened(disk: Disk, path: str) -> int:
    return disk.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _read(disk: Disk, fd: int) -> bytes:
    return disk.read(fd, _PIECE_BYTES)


def _close(disk: Disk, fd: int) -> None:
    disk.close(fd)


def success(operation: str, reply: BackendResponse) -> BackendResponse:
    """Return the reply; raises ``NodeFailed`` unless it is a success."""
    if not reply.is_success:
        raise NodeFailed(f"{operation} failed with {reply.status} {reply.reason}")
    return reply
