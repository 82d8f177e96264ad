"""swift-account-auditor: read all account databases and move broken ones away."""

from __future__ import annotations

from swift import green

green.patch()

from swift.account.auditor import KIND, AccountAuditorSettings  # noqa: E402
from swift.runtime.databaseaudit import DatabaseAuditor  # noqa: E402
from swift.runtime.service.daemonize import Daemon, run_daemon  # noqa: E402

DAEMON = Daemon(
    KIND.daemon,
    KIND.server_type,
    "Read all account databases and move broken ones away.",
    AccountAuditorSettings,
    lambda parts: DatabaseAuditor(parts.context, KIND, selection=parts.selection),
)


def main() -> int:
    """The console script; the exit code."""
    return run_daemon(DAEMON)


if __name__ == "__main__":
    raise SystemExit(main())
