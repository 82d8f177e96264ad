"""swift-container-auditor: read all container databases and move broken ones away."""

from __future__ import annotations

from swift import green

green.patch()

from swift.container.auditor import KIND, ContainerAuditorSettings  # noqa: E402
from swift.runtime.databaseaudit import DatabaseAuditor  # noqa: E402
from swift.runtime.service.daemonize import Daemon, run_daemon  # noqa: E402

DAEMON = Daemon(
    KIND.daemon,
    KIND.server_type,
    "Read all container databases and move broken ones away.",
    ContainerAuditorSettings,
    lambda parts: DatabaseAuditor(parts.context, KIND, selection=parts.selection),
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
