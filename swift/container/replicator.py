"""The container replicator as a task: see ``dbsync.daemon``."""

from __future__ import annotations

from swift.container.misplaced import queue_misplaced
from swift.container.replication import identify, replica_at
from swift.dbsync.kind import Kind

KIND = Kind("container", "containers", replica_at, identify, queue_misplaced)
