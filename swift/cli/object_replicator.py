"""swift-object-replicator: bring objects to all nodes that should have them."""

from __future__ import annotations

from swift import green

green.patch()

from swift.cli.comparers import comparer  # noqa: E402
from swift.obj.replicator.settings import ObjectReplicatorSettings  # noqa: E402
from swift.obj.replicator.task import NAME, ObjectReplicator  # noqa: E402
from swift.runtime.service.daemonize import run_daemon  # noqa: E402

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
