"""Differences between account and container replicators, and their shared dependencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swift.base.hashing import PathHasher
from swift.cluster.owndevices import OwnDevices
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.dbsync.remote import NodeAccess
from swift.dbsync.replica import Replica
from swift.dbsync.settings import ReplicatorSettings
from swift.platform.disk import Disk
from swift.ring.ring import Ring
from swift.ring.view import RingView
from swift.runtime.backendapp import BackendContext


@dataclass(frozen=True)
class ReplicatorKind:
    """Differences between account and container replicators."""

    server_type: str
    #: Of the devices: ``accounts`` or ``containers``.
    directory: str
    replica_at: Callable[[DatabasePath, Engine], Replica]
    #: Called when the copies of a database were told; with the ring, and which of them have it now.
    afterwards: Callable[[Replica, RingView, PathHasher, Sequence[bool]], object] | None = None

    @property
    def daemon(self) -> str:
        """E.g. ``account-replicator``."""
        return f"{self.server_type}-replicator"


@dataclass(frozen=True)
class Replication:
    """Dependencies of a replicator."""

    context: BackendContext
    ring: Ring
    kind: ReplicatorKind
    settings: ReplicatorSettings
    disk: Disk
    access: NodeAccess
    own: OwnDevices
