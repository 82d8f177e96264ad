"""swift-object-replicator: bring objects to all nodes that should have them."""

from __future__ import annotations

from swift.cli.comparers import comparer
from swift.cli.daemonize import run_daemon
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.obj.replicator.task import NAME, ObjectReplicator

DAEMON = comparer(
    NAME,
    "Bring objects of replicated policies to all nodes that should have them.",
    ObjectReplicatorSettings,
    ObjectReplicator,
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
