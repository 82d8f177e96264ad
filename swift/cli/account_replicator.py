"""swift-account-replicator: bring account databases to all nodes that should have them."""

from __future__ import annotations

from swift import green

green.patch()

from swift.account.replicator import KIND  # noqa: E402
from swift.cli.replicators import replicator  # noqa: E402
from swift.runtime.service.daemonize import run_daemon  # noqa: E402

DAEMON = replicator(KIND, lambda rings: rings.account)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
