"""swift-container-replicator: bring container databases to all nodes that should have them."""

from __future__ import annotations

from swift.cli.daemonize import run_daemon
from swift.cli.replicators import replicator
from swift.container.replicator import KIND

DAEMON = replicator(KIND, lambda rings: rings.container)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
