"""swift-account-replicator: bring account databases to all nodes that should have them."""

from __future__ import annotations

from swift.account.replicator import KIND
from swift.cli.daemonize import run_daemon
from swift.cli.replicators import replicator

DAEMON = replicator(KIND, lambda rings: rings.account)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
