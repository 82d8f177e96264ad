"""The account replicator as a task: see ``dbsync.daemon``."""

from __future__ import annotations

from swift.account.replication import replica_at
from swift.dbsync.daemon import DatabaseReplicator
from swift.dbsync.kind import ReplicatorKind
from swift.dbsync.settings import ReplicatorSettings
from swift.runtime.declaration import Daemon

KIND = ReplicatorKind("account", "accounts", replica_at)


DAEMON = Daemon(
    "account-replicator",
    "account",
    "Bring account databases to all nodes that should have them.",
    ReplicatorSettings,
    lambda parts: DatabaseReplicator(
        parts.context, parts.rings.account, KIND, parts.settings, selection=parts.selection
    ),
    small_cluster={"databases_per_second": 10},
)
