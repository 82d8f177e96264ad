"""What account and container replicators differ in, and what all visits of one replicator share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swift.base.hashing import PathHasher
from swift.cluster.owndevices import OwnDevices
from swift.db.broker import Engine
from swift.db.files import DatabasePlace
from swift.dbsync.remote import NodeAccess
from swift.dbsync.replica import Replica
from swift.dbsync.settings import ReplicatorSettings
from swift.platform.disk import Disk
from swift.ring.ring import Ring
from swift.ring.view import RingView
from swift.runtime.backendapp import BackendContext


@dataclass(frozen=True)
class ReplicatorKind:
    """What account and container replicators differ in."""

    server_type: str
    #: Of the devices: ``accounts`` or ``containers``.
    directory: str
    replica_at: Callable[[DatabasePlace, Engine], Replica]
    identify: Callable[[Replica, tuple[str, ...]], None]
    #: Called when the copies of a database were told; with the ring, and which of them have it now.
    afterwards: Callable[[Replica, RingView, PathHasher, Sequence[bool]], object] | None = None

    @property
    def daemon(self) -> str:
        """E.g. ``account-replicator``."""
        return f"{self.server_type}-replicator"


@dataclass(frozen=True)
class Replication:
    """What a replicator and its visits are made of."""

    context: BackendContext
    ring: Ring
    kind: ReplicatorKind
    settings: ReplicatorSettings
    disk: Disk
    access: NodeAccess
    own: OwnDevices
