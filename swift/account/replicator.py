"""The account replicator as a task: see ``dbsync.daemon``."""

from __future__ import annotations

from swift.account.replication import identify, replica_at
from swift.dbsync.kind import ReplicatorKind

KIND = ReplicatorKind("account", "accounts", replica_at, identify)
