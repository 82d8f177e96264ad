"""What the commands of both database replicators share: their daemon."""

from __future__ import annotations

from collections.abc import Callable

from swift.cluster.rings import Rings
from swift.dbsync.daemon import DatabaseReplicator
from swift.dbsync.kind import ReplicatorKind
from swift.dbsync.settings import ReplicatorSettings
from swift.ring.ring import Ring
from swift.runtime.service.daemonize import Daemon, DaemonParts


def replicator(kind: ReplicatorKind, ring_of: Callable[[Rings], Ring]) -> Daemon:
    """The command of one kind."""

    def make(parts: DaemonParts) -> DatabaseReplicator:
        ring = ring_of(parts.rings)
        return DatabaseReplicator(parts.context, ring, kind, parts.settings, selection=parts.selection)

    return Daemon(
        kind.daemon,
        kind.server_type,
        f"Bring {kind.server_type} databases to all nodes that should have them.",
        ReplicatorSettings,
        make,
    )
