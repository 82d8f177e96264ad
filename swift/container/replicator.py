"""The container replicator as a task: see ``dbsync.daemon``."""

from __future__ import annotations

from collections.abc import Sequence

from swift.base.hashing import PathHasher
from swift.container.broker import ContainerBroker
from swift.container.misplaced import queue_misplaced
from swift.container.replication import replica_at
from swift.container.syncstore import keep_link
from swift.dbsync.daemon import DatabaseReplicator
from swift.dbsync.kind import ReplicatorKind
from swift.dbsync.replica import Replica
from swift.dbsync.settings import ReplicatorSettings
from swift.ring.view import RingView
from swift.runtime.declaration import Daemon


def _afterwards(replica: Replica, view: RingView, hasher: PathHasher, answers: Sequence[bool]) -> None:
    """Queue misplaced rows of a replicated container, and link it for container sync."""
    queue_misplaced(replica, view, hasher, answers)
    broker = replica.broker
    assert isinstance(broker, ContainerBroker)
    keep_link(broker, broker.info())


KIND = ReplicatorKind("container", "containers", replica_at, _afterwards)


DAEMON = Daemon(
    "container-replicator",
    "container",
    "Bring container databases to all nodes that should have them.",
    ReplicatorSettings,
    lambda parts: DatabaseReplicator(
        parts.context, parts.rings.container, KIND, parts.settings, selection=parts.selection
    ),
    small_cluster={"databases_per_second": 10},
)
